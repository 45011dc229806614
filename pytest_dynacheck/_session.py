"""A run's state (options, engine, seam) and a test's (plan, observation, verdict), in pytest's stashes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_dynacheck import _baseline
from pytest_dynacheck._baseline import Baseline, judged
from pytest_dynacheck._budgets import Mistake
from pytest_dynacheck._compiling import Compiling
from pytest_dynacheck._isolation import Leak, Snapshot
from pytest_dynacheck._marks import RUN, Plan, plan_of
from pytest_dynacheck._options import Settings, missing_device, unknown_backend
from pytest_dynacheck._public import BudgetExceeded, DynacheckUnusedAllowance
from pytest_dynacheck._redirect import Redirection
from pytest_dynacheck._trace_log import without_capture
from pytest_dynacheck._verdict import DIFFERS, OVER, Verdict, causes_of, judge
from pytest_dynacheck.engines import Engine, load


class Session:
    """One run of pytest."""

    def __init__(self, settings: Settings, root: str) -> None:
        self.settings = settings
        self.baseline = None if settings["baseline"] is None else _baseline.load(settings)
        self.root = root
        self._engines: dict[str, Engine] = {}
        self.redirection = Redirection()
        self.current: TestRun | None = None
        self.finished = False

    def engine(self, name: str | None = None) -> Engine:
        """The engine of that name, or the run's.

        Raises:
            ImportError: it can't be loaded.
        """
        name = name or str(self.settings["engine"])
        if name not in self._engines:
            self._engines[name] = load(self.settings.engines[name], self.root)
        return self._engines[name]

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Those that a test has asked for."""
        return tuple(self._engines.values())

    def close(self) -> None:
        self.redirection.close()

    def begin(self, item: pytest.Item) -> TestRun | None:
        """Start a test before its setup; None if the plugin has nothing to do for it.

        Raises:
            pytest.fail.Exception: a marker with a wrong argument, or an engine that can't be loaded.
            pytest.skip.Exception: a marker asks for a GPU that isn't there.
        """
        try:
            plan = plan_of(item, self.settings)
        except Mistake as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        why = missing_device(plan.other.get("device"))
        if why is not None:
            pytest.skip(why)
        observes = plan.under_test or self.settings.observe
        if not observes and self.settings["isolate"] != "all":
            return None
        try:
            engine = plan.other.get("engine")
            why = unknown_backend(plan.other.get("backend"), lambda: self.engine(engine).backends())
            if why is not None:
                raise pytest.fail.Exception(f"@pytest.mark.dynacheck: {why}", pytrace=False)
            run = TestRun(self, item, plan, observes=observes)
            item.stash[RUN] = self.current = run
            run.begin()
        except ImportError as error:
            name = plan.other.get("engine") or self.settings["engine"]
            raise pytest.fail.Exception(f"engine {name} can't be loaded: {error}", pytrace=False) from None
        return run


class TestRun:
    """One test, from before its setup to after its teardown.

    Attributes:
        plan: what its markers say.
        engine: what compiles in it.
        fixture: what it gets as `dynacheck`.
        report: the engine's Report of the call phase, once that is over.
        verdict: the judgement, once there is one.
        leaks: what it left behind; known after teardown.
    """

    __test__ = False

    def __init__(self, session: Session, item: pytest.Item, plan: Plan, *, observes: bool = True) -> None:
        self.session = session
        self.nodeid = item.nodeid
        self._where = str(item.path), (item.location[1] or 0) + 1
        self.plan = plan
        self.observes = observes
        self.engine = session.engine(plan.other.get("engine"))
        self.compiling = Compiling(self._compile, plan, session.settings)
        self.report: Any = None
        self.fixture: Any = None
        self.make_benchmark: Any = None
        self.benchmark: dict[str, Any] | None = None
        self.notes: list[str] = []
        self.verdict: Verdict | None = None
        self.leaks: list[Leak] = []
        self.expects_nothing = False
        self.blocks: dict[Any, str] = {}  # of `expect` and `steady`, not begun yet
        self.shown: tuple[Any, Verdict] | None = None
        self._watched: Any = None
        self._start = 0
        self._stack = contextlib.ExitStack()

    @property
    def isolated(self) -> bool:
        which = self.session.settings["isolate"]
        wanted: bool = self.plan.other.get(
            "isolate", which == "all" or (which == "marked" and self.plan.under_test)
        )
        return wanted

    def begin(self) -> None:
        """Before setup: a clean engine, the seam, observers."""
        session, engine = self.session, self.engine
        if self.isolated:
            loaded = self.plan.under_test or engine.loaded
            self._stack.callback(self._restore, Snapshot(engine.settings() if loaded else None))
            if loaded:
                engine.reset()
                self._stack.callback(engine.reset)
        if self.observes:
            with without_capture(keep=False):  # the first recording may compile something
                self._watched = self._stack.enter_context(engine.record())
        if self.plan.under_test:
            self._stack.enter_context(self._strict_engine())
            self._stack.callback(session.redirection.stop)
            session.redirection.start(self.compiling.compile, engine.was_reset, engine.explain)

    def _compile(self, fn: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
        with self.session.redirection.aside():
            return self.engine.compile(fn, **keywords)

    def _restore(self, snapshot: Snapshot) -> None:
        self.leaks = snapshot.restore()

    @contextlib.contextmanager
    def _strict_engine(self) -> Iterator[None]:
        """Faults of the engine fail the test instead of running a frame eagerly; the plugin trims tracebacks itself."""
        settings: Any = self.engine.settings()
        if settings is None:
            yield
            return
        before = settings.current_base()
        wanted = {"raise_internal_errors": True, "verbose": True}
        settings.set_base(**wanted)
        try:
            yield
        finally:
            now = settings.current_base()
            settings.set_base(**{name: getattr(before, name) for name in wanted if getattr(now, name)})

    def after_wide_fixture(self) -> None:
        """What a wider-scoped fixture compiled is dropped, so that tests start alike in any order."""
        if self.isolated and self.engine.loaded:
            self.engine.reset()

    @contextlib.contextmanager
    def call(self, captures_log: bool) -> Iterator[None]:
        """The call phase."""
        self._start = 0 if self._watched is None else len(self._watched.events)
        with without_capture(captures_log):
            try:
                yield
            finally:
                self.finish_call()

    def so_far(self) -> Any:
        """The Report of the call phase up to now, frozen."""
        return self._watched.since(self._start, setup=self._setup_counts())

    def _setup_counts(self) -> dict[str, int | None]:
        if not self._start:
            return {}
        return dict(self._watched.until(self._start).counts)

    @property
    def position(self) -> int:
        """How many events there were; for `report_since`."""
        return len(self._watched.events)

    def report_since(self, position: int) -> Any:
        return self._watched.since(position)

    def finish_call(self) -> None:
        if self._watched is not None:
            self.report = self.so_far()

    def judge(self) -> None:
        """The verdict on a test that passed.

        Raises:
            BudgetExceeded: it didn't keep to its budget.
        """
        if self.report is None or not self.plan.under_test:
            return
        baseline = None if self.session.settings.update_baseline else self.session.baseline
        asked = self.plan.marked or self.plan.uses_fixture
        known = baseline is not None and baseline.has(self.nodeid)
        if not (asked or known or self.report.counts["graphs"]):
            return  # a default budget judges only tests that compiled something
        verdict = self.verdict = judge(
            self.report,
            self.plan,
            vacuous=asked and not self.expects_nothing,
            uncalled=self.compiling.uncalled,
            generators=self.compiling.generators,
            strict=self.session.settings["strict"],
        )
        if self.notes:
            verdict = self.verdict = verdict._replace(notes=verdict.notes + tuple(self.notes))
        if self.expects_nothing:
            verdict = self.verdict = verdict._replace(nothing=False)
        comparison = self.compiling.comparison
        if comparison is not None and comparison.difference is not None:
            lines = (comparison.difference, *verdict.lines)
            verdict = self.verdict = verdict._replace(kind=DIFFERS, lines=lines)
        if self.blocks:
            idle = [f"{block} is no `with` block, so it proves nothing" for block in self.blocks.values()]
            verdict = self.verdict = verdict._replace(kind=OVER, lines=(*verdict.lines, *idle))
        if baseline is not None:
            verdict = self.verdict = self._compare(baseline, verdict)
        self.show(self.report, verdict)
        for glob in verdict.unused:
            text = f"allow {glob!r} matched nothing"
            warnings.warn_explicit(text, DynacheckUnusedAllowance, *self._where)
        if verdict.failed:
            raise BudgetExceeded(message_of(verdict))

    def _compare(self, baseline: Baseline, verdict: Verdict) -> Verdict:
        causes = causes_of(self.report, verdict)
        engine = self.engine.name
        found = baseline.compare(self.nodeid, self.report.counts, causes, engine)
        return judged(found, verdict, strict=self.session.settings["strict"])

    def show(self, report: Any, verdict: Verdict) -> None:
        """Remember what the failure's sections are about."""
        self.shown = (report, verdict)

    def finish(self) -> None:
        """After teardown: everything as it was."""
        self._stack.close()
        if self.session.current is self:
            self.session.current = None


def message_of(verdict: Verdict) -> str:
    """The failure's message: one fact a line."""
    return "\n".join(verdict.lines)


SESSION = pytest.StashKey[Session]()
