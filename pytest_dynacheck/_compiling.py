"""How a test's compiles are made: which backend, fullgraph and dynamic they get, and what was made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pytest_dynacheck._compare import Comparison
from pytest_dynacheck._marks import Plan
from pytest_dynacheck._options import Settings
from pytest_dynacheck._words import name_of

_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Compiling:
    """Compiles for one test, whoever asks: the fixture, `torch.compile`, or a function compiled earlier.

    Args:
        compile: the engine's compile.
        plan: the test's markers.
        settings: the run's options.
    """

    def __init__(self, compile: Callable[..., Any], plan: Plan, settings: Settings) -> None:
        self._compile = compile
        self._plan = plan
        self._settings = settings
        self._made: dict[str, bool] = {}  # whether calling it only makes a generator or coroutine
        self.comparison = Comparison() if plan.other.get("compare", settings.compare) else None

    @property
    def _configured(self) -> Any:
        """The backend for compiles that name none or inductor."""
        if "backend" in self._plan.other:
            return self._plan.other["backend"]
        if self._plan.benchmarks and self._settings.origin("backend") == "default":
            return "as-written"  # a time is worth something for the backend that is shipped only
        return self._settings["backend"]

    @property
    def backend(self) -> str:
        """The configured backend, by name."""
        name = self._configured
        return name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)

    @property
    def uncalled(self) -> str:
        """What to say of a test in which nothing compiled is called."""
        if not self._made:
            return "the test calls nothing that is compiled"
        names = list(self._made)
        return f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} compiled but never called"

    @property
    def generators(self) -> str:
        """What to say where calls run nothing; "" if there is no such callable."""
        names = ", ".join(name for name, later in self._made.items() if later)
        return names and f"generators and coroutines ({names}) run as they are; compile what they call"

    @property
    def fullgraph(self) -> bool | None:
        """What the marker or the command line says; None leaves it to the call."""
        wanted: bool | None = self._plan.other.get("fullgraph")
        if wanted is None and self._settings.fullgraph and not self._plan.allows_breaks:
            return True
        return wanted

    def keywords(self, given: dict[str, Any]) -> dict[str, Any]:
        """The keywords of a compile as the test runs it.

        Args:
            given: torch.compile's keywords as written.
        """
        out = dict(given)
        backend = out.get("backend") or "inductor"
        configured = self._configured
        if backend == "inductor" and configured != "as-written":
            out["backend"] = configured
            if configured != "inductor":
                _drop_inductors(out)
        if self.fullgraph is not None:
            out["fullgraph"] = self.fullgraph
        if "dynamic" in self._plan.other:
            out["dynamic"] = self._plan.other["dynamic"]
        elif out.get("dynamic") is None and self._settings["dynamic"] is not None:
            out["dynamic"] = self._settings["dynamic"]
        return out

    def compile(self, fn: Callable[..., Any], **given: Any) -> Any:
        """The compiled form of `fn`."""
        compiled = self.alone(fn, **given)
        return compiled if self.comparison is None else self.comparison.around(fn, compiled)

    def alone(self, fn: Callable[..., Any], **given: Any) -> Any:
        """The compiled form, whose calls aren't compared with eager ones: what is timed."""
        flags = getattr(getattr(inspect.unwrap(fn), "__code__", None), "co_flags", 0)
        self._made[name_of(fn)] = bool(flags & _RUNS_LATER)
        return self._compile(fn, **self.keywords(given))


def _drop_inductors(keywords: dict[str, Any]) -> None:
    """Take out what is meant for inductor; what torch.compile refuses there is refused here."""
    mode, options = keywords.get("mode"), keywords.get("options")
    if mode is not None and options is not None:
        return  # which no engine takes, whatever the backend
    keywords.pop("mode", None)
    keywords.pop("options", None)
    if isinstance(options, dict) and not _ELSEWHERE.isdisjoint(options):
        # this one is about guards, which are counted
        keywords["options"] = {name: options[name] for name in options if name == "guard_filter_fn"}
        options = {name: value for name, value in options.items() if name not in _ELSEWHERE}
    if options or mode not in (None, "default"):
        import torch

        inductor: Any = torch._TorchCompileInductorWrapper
        try:
            inductor(mode, options, keywords.get("dynamic"))
        except RuntimeError as error:  # which lists the hundreds of options that there are
            raise RuntimeError(str(error).partition(", known options are [")[0]) from None


_ELSEWHERE = frozenset({"guard_filter_fn", "use_aoti"})
"""Options that torch.compile itself reads."""
