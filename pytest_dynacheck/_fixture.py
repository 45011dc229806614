"""The `dynacheck` fixture: compile, look at the report so far, expect numbers of a block."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import dynacheck
import pytest
from dynacheck.places import display_name

from pytest_dynacheck import _check
from pytest_dynacheck._budgets import BOUNDS, COUNTS, Mistake, allowances, limits_from, unknown
from pytest_dynacheck._marks import Plan
from pytest_dynacheck._public import BudgetExceeded
from pytest_dynacheck._verdict import OVER, judge
from pytest_dynacheck._words import name_of

if TYPE_CHECKING:
    from dynacheck.report import Report

    from pytest_dynacheck._session import TestRun


class Dynacheck:
    """What a test gets as `dynacheck`."""

    def __init__(self, run: TestRun) -> None:
        self._run = run

    def compile(self, fn: Any = None, **keywords: Any) -> Any:
        """Compile a function or module, or decorate one, as the test runs everything it compiles.

        Args:
            fn: function, method or module; None to use it as a decorator.
            **keywords: torch.compile's.
        """
        __tracebackhide__ = True
        if fn is None:
            return functools.partial(self.compile, **keywords)
        if not callable(fn):
            raise TypeError(f"dynacheck.compile takes a function or a module, not {type(fn).__name__}")
        self._refuse_unknown(keywords, "dynacheck.compile()")
        return self._run.compiling.compile(fn, **keywords)

    @property
    def report(self) -> Report:
        """What happened in the test's call phase so far; a copy that stays as it is."""
        report: Report = self._run.so_far()
        return report

    def expect(
        self, *, of: Any = None, allow: Iterable[str] | Mapping[str, int] = (), **numbers: int | None
    ) -> contextlib.AbstractContextManager[None]:
        """Numbers that hold for what happens inside the block.

        Args:
            of: a compiled function or module; only what happens in its calls counts.
            allow: globs over cause keys, or {glob: at_most}.
            **numbers: graphs=, graph_breaks=, recompiles=, cache_entries= (exact) or max_graphs= ... bounds.

        Raises:
            BudgetExceeded: when the block ends, if they didn't hold.
        """
        __tracebackhide__ = True
        if not numbers:
            raise pytest.UsageError(f"expect() takes at least one number: {', '.join((*COUNTS, *BOUNDS))}")
        plan = _plan(numbers, allow)
        plan.allow.update(self._run.plan.allow)
        plan.other.update(self._run.plan.other)
        graphs = plan.limits.get("graphs")
        if graphs is not None and graphs.number == 0:
            self._run.expects_nothing = True
        place = self._place(sys._getframe(1))
        judge_block = functools.partial(self._expected, plan, _target(of, "expect"), place)
        return _Block(self._run, f"expect() at {place}", judge_block)

    def _expected(self, plan: Plan, of: Any, place: str, report: Any) -> None:
        if of is not None:
            report = report.of(of)
        verdict = judge(report, plan, vacuous=True, uncalled=_uncalled(of))
        if verdict.failed:
            self._run.show(report, verdict)
            raise BudgetExceeded(f"in expect() at {place}: " + "\n".join(verdict.lines))

    def steady(self, of: Any = None) -> contextlib.AbstractContextManager[None]:
        """Nothing compiles, breaks or runs eagerly inside the block, and something compiled is called.

        Args:
            of: a compiled function or module; only its calls count.

        Raises:
            BudgetExceeded: when the block ends, naming the first call that wasn't a hit.
        """
        __tracebackhide__ = True
        place = self._place(sys._getframe(1))
        return _Block(
            self._run, f"steady() at {place}", functools.partial(self._steady, _target(of, "steady"))
        )

    def _steady(self, of: Any, report: Any) -> None:
        if of is not None:
            report = report.of(of)
        for number, call in enumerate(report.calls, 1):
            if call.outcome == "hit" and not call.eager:
                continue
            what = "compiled" if call.outcome == "miss" else "ran eagerly"
            where = f" at {report.display_name(call.where.file)}:{call.where.line}" if call.where else ""
            self._run.show(report, judge(report, _plan({}, ()), vacuous=False)._replace(kind=OVER))
            causes = [r.cause for r in report.recompiles if r.call == call.number] + list(call.eager)
            why = f": {causes[0]}" if causes else ""
            raise BudgetExceeded(f"not steady: call {number} of {call.function}{where} {what}{why}")
        if not report.calls:
            raise BudgetExceeded(f"not steady: {_uncalled(of)}")

    def check(
        self,
        fn: Callable[..., Any],
        calls: Iterable[Any],
        *,
        grad: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
        **keywords: Any,
    ) -> None:
        """Compare the compiled form of `fn` with `fn` itself over several calls.

        Each side gets its own copy of a module and of the arguments, and the same random numbers. Results,
        exceptions, changed arguments, parameters, buffers and plain attributes are compared after each call.

        Args:
            fn: function or module.
            calls: arguments of each call: an `Args`, a tuple of positional arguments, or one argument.
            grad: also run backward on the sum of the results and compare gradients.
            rtol: relative tolerance; torch.testing's by default.
            atol: absolute tolerance.
            **keywords: torch.compile's.

        Raises:
            AssertionError: naming the first call that differs, and what.
        """
        __tracebackhide__ = True
        self._refuse_unknown(keywords, "dynacheck.check()", "grad", "rtol", "atol")
        _check.compare(fn, calls, lambda f: self.compile(f, **keywords), grad=grad, rtol=rtol, atol=atol)

    def _place(self, frame: FrameType) -> str:
        return f"{display_name(frame.f_code.co_filename, self._run.session.root)}:{frame.f_lineno}"

    def _refuse_unknown(self, keywords: Mapping[str, Any], where: str, *more: str) -> None:
        """Keywords that neither the engine's compile has nor, where torch compiles, that may be torch's."""
        __tracebackhide__ = True
        known = list(inspect.signature(dynacheck.compile).parameters)[1:]
        for name in keywords:
            if name not in known and self._run.engine.name == "bundled":
                raise TypeError(str(unknown(name, (*more, *known), where)))


class _Block(contextlib.AbstractContextManager[None]):
    """A part of a test that is judged where it ends; the run keeps those that were never begun.

    Args:
        run: the test's.
        name: what to call it.
        judge: gets the Report of what happened inside.
    """

    def __init__(self, run: TestRun, name: str, judge: Callable[[Any], None]) -> None:
        self._run = run
        self._judge = judge
        self._starts: list[int] = []
        run.blocks[self] = name

    def __enter__(self) -> None:
        self._run.blocks.pop(self, None)
        self._starts.append(self._run.position)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        start = self._starts.pop()
        if kind is None:
            self._judge(self._run.report_since(start))


def _target(of: Any, name: str) -> Any:
    __tracebackhide__ = True
    if of is not None and not callable(of):
        raise TypeError(f"{name}(of=) takes a compiled function or module, not {type(of).__name__}")
    return of


def _uncalled(of: Any) -> str:
    return (
        "the block calls nothing that is compiled" if of is None else f"the block doesn't call {name_of(of)}"
    )


def _plan(numbers: Mapping[str, Any], allow: Any) -> Plan:
    __tracebackhide__ = True
    plan = Plan(marked=False, uses_fixture=False)
    try:
        for name in numbers:
            if name not in COUNTS and name not in BOUNDS:
                raise unknown(name, (*COUNTS, *BOUNDS, "of", "allow"), "expect()")
        plan.limits = limits_from(numbers, "expect")
        plan.allow = allowances(allow)
    except Mistake as error:
        text = str(error)
        raise pytest.UsageError(text if text.startswith("expect()") else f"expect(): {text}") from None
    return plan
