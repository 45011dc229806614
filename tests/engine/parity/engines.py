"""The two engines as the parity tests see them: compile, reset, record; figures under the same names."""

from __future__ import annotations

import contextlib
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ENGINES", "Figures", "engine"]

_STDLIB = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_PACKAGES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def is_stdlib(file: str) -> bool:
    """Tells whether a file belongs to the standard library."""
    return file.startswith(_STDLIB) and not file.startswith(_PACKAGES)


@dataclass
class Figures:
    """What one run compiled, user code only (the standard library's own frames left out).

    ``places`` are distinct (file name, line) of breaks, at the user's line; ``entries`` the sum and
    ``max_entries`` the most of one code object; ``raw`` torch's own figures, None under the bundled engine.
    """

    graphs: int = 0
    breaks: int = 0
    places: frozenset[tuple[str, int]] = frozenset()
    recompiles: int = 0
    entries: int = 0
    max_entries: int = 0
    given_up: int = 0
    limit_hits: int = 0
    raw: dict[str, int] | None = None
    reasons: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    COMPARED = ("graphs", "places", "recompiles", "entries", "max_entries")

    def compared(self) -> dict[str, Any]:
        """Returns the figures on which engines must agree."""
        return {name: getattr(self, name) for name in self.COMPARED}

    def short(self) -> str:
        """Returns graphs/places/recompiles/entries in one word."""
        return f"{self.graphs}/{len(self.places)}/{self.recompiles}/{self.entries}"


class TorchSeen:
    """Figures of a run under torch.compile while it goes on."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder

    def calls_so_far(self) -> int:
        return len(self.recorder.calls)

    def outcomes_since(self, number: int) -> tuple[str, ...]:
        return tuple(call.outcome for call in self.recorder.calls[number:])

    def finish(self) -> Figures:
        seen = self.recorder
        added = [entry for entry in seen.added if not is_stdlib(entry.code.co_filename)]
        recompiles = [found for found in seen.recompiles if not is_stdlib(found.code.co_filename)]
        return Figures(
            graphs=len(seen.graphs),
            breaks=len(seen.break_places),
            places=frozenset((Path(found.user[0]).name, found.user[1]) for found in seen.breaks),
            recompiles=len(recompiles),
            entries=len(added),
            max_entries=max(Counter(entry.code for entry in added).values(), default=0),
            given_up=len(seen.given_up),
            limit_hits=len(seen.limit_hits),
            raw=seen.raw,
            reasons=tuple(f"{Path(found.file).name}:{found.line} {found.reason}" for found in seen.breaks),
            guards=tuple(guard for found in seen.all_recompiles for guard in found.guards[:1]),
        )


class Torch:
    """The installed torch.compile, observed."""

    name = "torch"

    def unavailable(self) -> str:
        return ""

    def compile(self, fn: Any, **keywords: Any) -> Callable:
        import torch

        return torch.compile(fn, **keywords)

    def reset(self) -> None:
        import torch._dynamo

        torch._dynamo.reset()

    def patched(self) -> Any:
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def record(self) -> Iterator[TorchSeen]:
        from pytest_dynacheck.engines import stock

        with stock.record(compare_values=False) as recorder:
            yield TorchSeen(recorder)


class BundledSeen:
    """Figures of a run under dynacheck.compile while it goes on; ``report`` grows meanwhile."""

    def __init__(self, report: Any) -> None:
        self.report = report

    def calls_so_far(self) -> int:
        return len(self.report.calls)

    def outcomes_since(self, number: int) -> tuple[str, ...]:
        return tuple(call.outcome for call in self.report.calls[number:])

    def finish(self) -> Figures:
        seen = self.report
        return Figures(
            graphs=len(seen.graphs),
            breaks=len(seen.graph_breaks),
            places=frozenset((Path(found.file).name, found.line) for found in seen.graph_breaks),
            recompiles=len(seen.recompiles),
            entries=len(seen.cache_entries),
            max_entries=seen.counts["cache_entries"],
            given_up=sum(found.caused_by_break for found in seen.skipped),
            limit_hits=sum(found.why == "limit" for found in seen.eager_runs),
            reasons=tuple(f"{found.file}:{found.line} {found.title}" for found in seen.graph_breaks),
            guards=tuple(found.cause for found in seen.recompiles),
            faults=(*map(str, seen.failures), *torch_frames()),
            skipped=tuple(
                f"{found.file}:{found.line} {found.reason} {found.message}" for found in seen.skipped
            ),
        )


def torch_frames() -> tuple[str, ...]:
    """Returns what torch translated itself; under our engine that is nothing."""
    utils = sys.modules.get("torch._dynamo.utils")
    frames = {} if utils is None else dict(utils.counters["frames"])
    return (f"torch translated frames itself: {frames}",) if frames else ()


class Bundled:
    """dynacheck's own engine."""

    name = "bundled"

    def unavailable(self) -> str:
        try:
            from dynacheck import compile, configured, observe, reset  # noqa: F401
        except (ImportError, AttributeError) as error:
            return f"the engine isn't there yet: {error}"
        return ""

    def compile(self, fn: Any, **keywords: Any) -> Callable:
        import dynacheck

        return dynacheck.compile(fn, **keywords)

    def reset(self) -> None:
        import dynacheck

        dynacheck.reset()

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Programs that call torch.compile themselves get this engine's."""
        import torch

        original = torch.compile
        torch.compile = self.compile
        try:
            yield
        finally:
            torch.compile = original

    @contextlib.contextmanager
    def record(self) -> Iterator[BundledSeen]:
        import dynacheck

        utils = sys.modules.get("torch._dynamo.utils")
        if utils is not None:
            utils.counters["frames"].clear()
        with dynacheck.configured(raise_internal_errors=True), dynacheck.observe() as report:
            yield BundledSeen(report)


ENGINES = {"torch": Torch(), "bundled": Bundled()}


def engine(name: str) -> Any:
    """Returns the engine of that name."""
    return ENGINES[name]
