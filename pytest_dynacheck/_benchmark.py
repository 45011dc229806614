"""Eager and compiled side by side, as two ordinary results of pytest-benchmark in one group."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_dynacheck._marks import Plan
from pytest_dynacheck._public import BudgetExceeded
from pytest_dynacheck._verdict import OVER, judge

if TYPE_CHECKING:
    from pytest_dynacheck._session import TestRun

_WARM_UP = 3  # calls after the first until one compiles nothing
_HITS = ("fxgraph_cache_hit", "autograd_cache_hit")
_MISSES = ("fxgraph_cache_miss", "autograd_cache_miss")


class Benchmark:
    """What a test gets as `dynacheck_benchmark`.

    Attributes:
        speedup: the shortest eager time over the shortest compiled time; None if it wasn't measured.
        first_call: seconds that the first compiled call took, compiling included.
        first_call_cache: warm if compiled code came from a disk cache, cold if it was made, none if no disk cache
            was asked.
        break_even: how many calls make up for the first one; infinity if compiled is no faster, None if it wasn't
            measured.
    """

    def __init__(self, run: TestRun, benchmark: Any) -> None:
        self._run = run
        self._benchmark = benchmark
        self.speedup: float | None = None
        self.first_call: float | None = None
        self.first_call_cache = "none"
        self.break_even: float | None = None
        self._times: tuple[float, float] | None = None

    def __call__(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Time the target as it is and compiled.

        Args:
            target: a function or module; of one that is compiled already, what it was made from is the eager side.
            *args: its arguments.
            **kwargs: its keyword arguments.

        Returns:
            The compiled result.

        Raises:
            BudgetExceeded: something was compiled while it was timed, or it isn't fast enough.
        """
        __tracebackhide__ = True
        original = _original(target)
        wait = _wait_for(devices((original, args, kwargs)))
        compiled = self._run.compiling.alone(target) if original is target else target
        result = self._first_call(_followed_by(compiled, wait), args, kwargs)
        self._warm_up(compiled, args, kwargs)
        if self._benchmark.disabled:
            self._benchmark(compiled, *args, **kwargs)
            self._judge()
            return result
        eager = self._eager_side()
        with self._run.engine.unwatched():
            eager(_followed_by(original, wait), *args, **kwargs)
            before = self._run.engine.compile_count()
            result = self._benchmark(_followed_by(compiled, wait), *args, **kwargs)
            added = self._run.engine.compile_count() - before
        self._check_steady(compiled, args, kwargs, added)
        self._measure(eager.stats.stats.min, self._benchmark.stats.stats.min)
        self._judge()
        return result

    def _first_call(self, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = _disk_cache()
        start = time.perf_counter()
        result = compiled(*args, **kwargs)
        self.first_call = time.perf_counter() - start
        hits, misses = (now - then for now, then in zip(_disk_cache(), before, strict=True))
        self.first_call_cache = "cold" if misses else "warm" if hits else "none"
        return result

    def _warm_up(self, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call until nothing is compiled any more."""
        __tracebackhide__ = True
        start = self._run.position
        for _ in range(_WARM_UP):
            position = self._run.position
            compiled(*args, **kwargs)
            why = _unsteady(self._run.report_since(position))
            if not why:
                return
        self._fail(self._run.report_since(start), f"not steady after {_WARM_UP + 1} calls: {why}")

    def _fail(self, report: Any, message: str) -> NoReturn:
        __tracebackhide__ = True
        self._run.show(report, judge(report, _nothing_asked(), vacuous=False)._replace(kind=OVER))
        raise BudgetExceeded(message)

    def _eager_side(self) -> Any:
        """A second result beside that of the test: pytest-benchmark takes one from each fixture object."""
        own = self._benchmark
        eager = copy.copy(own)
        eager.extra_info = dict(own.extra_info)
        eager.group = own.group = own.group or own.name
        eager.name, eager.fullname = f"{own.name} (eager)", f"{own.fullname} (eager)"
        own.name, own.fullname = f"{own.name} (compiled)", f"{own.fullname} (compiled)"
        return eager

    def _check_steady(
        self, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], added: int
    ) -> None:
        """Fail if a timed call wasn't served by what had been compiled; calls that are watched say why."""
        __tracebackhide__ = True
        position = self._run.position
        for _ in range(_WARM_UP if added else 1):
            compiled(*args, **kwargs)
        report = self._run.report_since(position)
        why = _unsteady(report)
        if added or why:
            what = "was compiled" if added else "ran eagerly"
            self._fail(report, f"something {what} while it was timed{f': {why}' if why else ''}")

    def _measure(self, eager: float, compiled: float) -> None:
        first = self.first_call or 0.0
        self._times = (eager, compiled)
        self.speedup = eager / compiled
        gain = eager - compiled
        self.break_even = math.ceil(first / gain) if gain > 0 else math.inf
        self._benchmark.extra_info["dynacheck"] = {
            "engine": self._run.engine.name,
            "backend": self._run.compiling.backend,
            "speedup": self.speedup,
            "first_call": first,
            "first_call_cache": self.first_call_cache,
            "break_even": None if math.isinf(self.break_even) else self.break_even,
        }

    def _judge(self) -> None:
        __tracebackhide__ = True
        run = self._run
        wanted: float | None = run.plan.other.get("min_speedup")
        run.benchmark = self.plain()
        if wanted is None:
            return
        if self.speedup is None or self._times is None:
            run.notes.append(f"min_speedup({wanted}) is not measured: benchmarks are disabled")
        elif self.speedup < wanted:
            eager, compiled = map(seconds, self._times)
            raise BudgetExceeded(
                f"speed-up {self.speedup:.2f}, min_speedup({wanted}): eager {eager}, compiled {compiled} "
                f"(shortest; engine {run.engine.name}, backend {run.compiling.backend})"
            )

    def plain(self) -> dict[str, Any]:
        """What was measured, as plain data."""
        eager, compiled = self._times or (None, None)
        finite = self.break_even is not None and not math.isinf(self.break_even)
        return {
            "eager": eager,
            "compiled": compiled,
            "speedup": self.speedup,
            "first_call": self.first_call,
            "first_call_cache": self.first_call_cache,
            "break_even": self.break_even if finite else None,
            "min_speedup": self._run.plan.other.get("min_speedup"),
        }


def seconds(time: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> seconds(0.0000123), seconds(2.5)
        ('12.3 µs', '2.5 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time / 1e-9:.3g} ns"


def sentence(data: Mapping[str, Any]) -> str:
    """What was measured, in words; `data` is what `Benchmark.plain` gives."""
    first = f"first call {seconds(data['first_call'])}"
    if data["first_call_cache"] != "none":
        first += f" (disk cache {data['first_call_cache']})"
    if data["speedup"] is None:
        return f"speed-up not measured, {first}"
    pays = "never pays" if data["break_even"] is None else f"pays after {data['break_even']} calls"
    return (
        f"speed-up {data['speedup']:.2f} (eager {seconds(data['eager'])}, "
        f"compiled {seconds(data['compiled'])}), {first}, {pays}"
    )


def devices(value: Any) -> set[Any]:
    """Accelerators that tensors in a value are on: in containers, and a module's own.

    Args:
        value: arguments, a module, or containers of these.
    """
    return {tensor.device for tensor in _tensors(value) if tensor.device.type not in ("cpu", "meta")}


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _tensors(item)
    elif getattr(value, "__self__", None) is not None and callable(value):  # a bound method
        yield from _tensors(value.__self__)


def _wait_for(found: Iterable[Any]) -> Callable[[], None] | None:
    """What waits until devices have done their work; None if nothing is to be waited for."""
    import torch

    wanted = sorted(found, key=str)
    if not wanted:
        return None

    def wait() -> None:
        for device in wanted:
            torch.accelerator.synchronize(device)

    return wait


def _followed_by(fn: Callable[..., Any], wait: Callable[[], None] | None) -> Callable[..., Any]:
    if wait is None:
        return fn

    def synchronised(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        wait()
        return result

    return synchronised


def _original(target: Any) -> Any:
    """What a compiled callable was made from; the target itself if it isn't compiled."""
    namespace = getattr(target, "__dict__", {})
    inner = namespace.get("_modules", {}).get("_orig_mod") or namespace.get("_torchdynamo_orig_callable")
    return target if inner is None else inner


def _unsteady(report: Any) -> str | None:
    """Why a call wasn't served by what had been compiled before: a cause, or what happened; None if it was."""
    causes = [record.cause for record in (*report.recompiles, *report.eager_runs)]
    if causes:
        return str(causes[0])
    return "a graph" if report.counts["graphs"] else None


def _nothing_asked() -> Plan:
    return Plan(marked=False, uses_fixture=False)


def _disk_cache() -> tuple[int, int]:
    """How often compiled code came from a disk cache in this process, and how often it had to be made."""
    module: Any = sys.modules.get("torch._dynamo.utils")
    if module is None:
        return 0, 0
    counts = {**module.counters["inductor"], **module.counters["aot_autograd"]}
    return sum(counts.get(name, 0) for name in _HITS), sum(counts.get(name, 0) for name in _MISSES)
