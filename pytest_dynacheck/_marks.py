"""Markers: what they are called, what they take, and what a test's markers add up to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_dynacheck._budgets import BOUNDS, COUNTS, Limit, Mistake, allowances, limits_from, unknown
from pytest_dynacheck._options import DEVICE, Settings

NAMES = (*BOUNDS, "dynacheck")
FIXTURES = ("dynacheck", "dynacheck_benchmark")
_OTHER = (
    "engine",
    "backend",
    "fullgraph",
    "dynamic",
    "device",
    "compare",
    "isolate",
    "owner",
    "allow",
    "min_speedup",
)

LINES = (
    "max_graphs(n): fail the test if it compiles nothing, or more than n graphs, recompiles included.",
    "max_graph_breaks(n): fail the test if it compiles nothing, or more than n places break the graph.",
    "max_recompiles(n): fail the test if it compiles nothing, or functions are compiled again more than n times.",
    "max_cache_entries(n): fail the test if it compiles nothing, or a function has more than n cache entries.",
    "dynacheck(*, engine, backend, fullgraph, dynamic, device, compare, isolate, owner, allow, min_speedup, graphs, "
    "graph_breaks, recompiles, cache_entries, max_graphs, max_graph_breaks, max_recompiles, max_cache_entries): "
    "say how the test compiles, and what it may compile: exact numbers (graphs=2) or bounds (max_graphs=2). "
    "compare=True also runs each call eagerly; allow excuses causes, as globs or {glob: at_most}; owner counts the "
    "graph breaks of one package only.",
)


RUN = pytest.StashKey[Any]()  # the TestRun of an item that is watched


class Plan:
    """What a test wants: how it compiles, its limits, what is excused."""

    def __init__(self, *, marked: bool, uses_fixture: bool, by_default: bool = False) -> None:
        self.benchmarks = False
        self.by_default = by_default
        self.marked = marked
        self.uses_fixture = uses_fixture
        self.limits: dict[str, Limit] = {}
        self.allow: dict[str, int | None] = {}
        self.other: dict[str, Any] = {}

    @property
    def under_test(self) -> bool:
        """Redirected, isolated and judged."""
        return self.marked or self.uses_fixture or self.by_default

    @property
    def owner(self) -> str | None:
        found: str | None = self.other.get("owner")
        return found

    @property
    def allows_breaks(self) -> bool:
        limit = self.limits.get("graph_breaks")
        return bool(limit and limit.number) or any(glob.startswith(("break", "*")) for glob in self.allow)


def register(config: pytest.Config) -> None:
    for line in LINES:
        config.addinivalue_line("markers", line)


def uses_fixture(item: pytest.Item) -> bool:
    return any(name in getattr(item, "fixturenames", ()) for name in FIXTURES)


def marks_of(item: pytest.Item) -> list[pytest.Mark]:
    """The test's markers of ours, nearest first: those of its parameters, its own, its class's, its module's."""
    marks = [mark for mark in item.iter_markers() if mark.name in NAMES]
    nearest = list(
        getattr(getattr(item, "callspec", None), "marks", ())
    )  # pytest lists them after the function's
    return sorted(marks, key=lambda mark: not any(mark is one for one in nearest))


def is_under_test(item: pytest.Item, settings: Settings) -> bool:
    """The same as `plan_of(...).under_test`, without reading arguments."""
    return settings.judges_all or uses_fixture(item) or any(item.get_closest_marker(name) for name in NAMES)


def plan_of(item: pytest.Item, settings: Settings) -> Plan:
    """What the test's markers, nearest first, and the run's defaults add up to.

    Raises:
        Mistake: a marker with a wrong argument.
    """
    marks = marks_of(item)
    plan = Plan(marked=bool(marks), uses_fixture=uses_fixture(item), by_default=settings.judges_all)
    plan.benchmarks = "dynacheck_benchmark" in getattr(item, "fixturenames", ())
    for mark in marks:  # nearest first
        limits, other, allow = _read(mark)
        for count, limit in limits.items():
            plan.limits.setdefault(count, limit)
        for name, value in other.items():
            plan.other.setdefault(name, value)
        for glob, at_most in allow.items():
            plan.allow.setdefault(glob, at_most)
    if not marks:
        plan.limits.update(settings.defaults)
    engine = plan.other.get("engine")
    if engine is not None and engine not in settings.engines:
        raise Mistake(
            f"@pytest.mark.dynacheck: no engine {engine!r}; there are {', '.join(settings.engines)}"
        )
    if "min_speedup" in plan.other and not plan.benchmarks:
        raise Mistake(
            "@pytest.mark.dynacheck: min_speedup is about what dynacheck_benchmark measures; use that fixture"
        )
    plan.limits = {count: plan.limits[count] for count in COUNTS if count in plan.limits}
    return plan


def _read(mark: pytest.Mark) -> tuple[dict[str, Limit], dict[str, Any], Mapping[str, int | None]]:
    try:
        return _read_bound(mark) if mark.name in BOUNDS else _read_all(mark)
    except Mistake as error:
        raise Mistake(f"@pytest.mark.{mark.name}: {error}") from None


def _read_bound(mark: pytest.Mark) -> tuple[dict[str, Limit], dict[str, Any], Mapping[str, int | None]]:
    if mark.kwargs or len(mark.args) != 1:
        given = ", ".join([*map(repr, mark.args), *(f"{k}={v!r}" for k, v in mark.kwargs.items())])
        raise Mistake(f"takes one number, as in {mark.name}(1), not ({given})")
    return limits_from({mark.name: mark.args[0]}, "marker"), {}, {}


def _read_all(mark: pytest.Mark) -> tuple[dict[str, Limit], dict[str, Any], Mapping[str, int | None]]:
    if mark.args:
        raise Mistake(f"takes keyword arguments only, not {mark.args[0]!r}")
    numbers = {name: value for name, value in mark.kwargs.items() if name in COUNTS or name in BOUNDS}
    other = {name: value for name, value in mark.kwargs.items() if name not in numbers}
    for name, value in other.items():
        if name not in _OTHER:
            raise unknown(name, (*_OTHER, *COUNTS, *BOUNDS), "dynacheck()")
        _check(name, value)
    allow = allowances(other.pop("allow", ()))
    return limits_from(numbers, "marker"), other, allow


def _check(name: str, value: Any) -> None:
    if name == "fullgraph" and not isinstance(value, bool):
        raise Mistake(f"fullgraph takes True or False, not {value!r}")
    if name == "dynamic" and value is not None and not isinstance(value, bool):
        raise Mistake(f"dynamic takes True, False or None, not {value!r}")
    if name in ("compare", "isolate") and not isinstance(value, bool):
        raise Mistake(f"{name} takes True or False, not {value!r}")
    if name == "owner" and (not isinstance(value, str) or not value):
        raise Mistake(f"owner takes the name of a package, not {value!r}")
    if name == "backend" and not isinstance(value, str) and not callable(value):
        raise Mistake(f"backend takes a name or a callable, not {value!r}")
    if name == "min_speedup" and (
        isinstance(value, bool) or not isinstance(value, int | float) or not value > 0
    ):
        raise Mistake(f"min_speedup takes a number above 0, not {value!r}")
    if name == "device" and not (isinstance(value, str) and DEVICE.fullmatch(value)):
        raise Mistake(f"device takes 'auto', 'cpu', 'cuda' or 'cuda:n', not {value!r}")
