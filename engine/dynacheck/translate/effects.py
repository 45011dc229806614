"""Side effects: writes to objects that existed before the frame, recorded while translating and replayed, in order,
by the rewritten code after the graph has run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacheck.variables.base import Rebuilder, VariableTracker


def store_global(globals_: dict[str, Any], name: str, value: object) -> None:
    """Store into a function's globals (used by rewritten code)."""
    globals_[name] = value


def delete_global(globals_: dict[str, Any], name: str) -> None:
    """Delete from a function's globals, if it is there (used by rewritten code)."""
    globals_.pop(name, None)


class GlobalNames:
    """Pending stores to one globals dict."""

    def __init__(self, globals_: dict[str, Any], load: Callable[[Rebuilder], None]) -> None:
        self.globals = globals_
        self.load = load
        self.names: dict[str, VariableTracker | None] = {}
        self.remade: set[str] = set()
        """Names deleted and stored again."""

    def write_back(self, to: Rebuilder) -> None:
        for name, value in self.names.items():
            if name in self.remade:
                to.call_helper(delete_global, lambda: self.load(to), lambda: to.load_const(name))
                to.pop()
            if value is None:
                to.call_helper(delete_global, lambda: self.load(to), lambda: to.load_const(name))
            else:
                to.call_helper(
                    store_global, lambda: self.load(to), lambda: to.load_const(name), lambda: to.load(value)
                )
            to.pop()

    def children(self) -> list[VariableTracker]:
        return [v for v in self.names.values() if v is not None]


class Deferred:
    """A call to make when the side effects are replayed (a warning, a state change): its arguments are trackers."""

    def __init__(self, fn: Callable[..., object], args: tuple[VariableTracker, ...]) -> None:
        self.fn = fn
        self.args = args

    def write_back(self, to: Rebuilder) -> None:
        to.call_helper(self.fn, *[lambda a=a: to.load(a) for a in self.args])
        to.pop()

    def children(self) -> tuple[VariableTracker, ...]:
        return self.args


class SideEffects:
    """The writes of one attempt, by object, in the order of each object's first write."""

    def __init__(self) -> None:
        self._order: dict[Any, None] = {}
        self._globals: dict[int, GlobalNames] = {}
        self.closed: Callable[[str], object] | None = None
        """Called, with what is written, where writing isn't allowed: a break."""

    def __bool__(self) -> bool:
        return bool(self._order)

    def mutated(self, value: VariableTracker) -> None:
        """An object that existed before the frame was changed."""
        self._order[value] = None

    def forget(self, value: VariableTracker) -> None:
        """What was to be done at replay isn't."""
        self._order.pop(value, None)

    def defer(self, fn: Callable[..., object], *args: VariableTracker) -> None:
        """Call fn with the values at replay."""
        if self.closed is not None:
            self.closed(fn.__name__)
        self._order[Deferred(fn, args)] = None

    def globals_of(self, globals_: dict[str, Any], load: Callable[[Rebuilder], None]) -> GlobalNames:
        """The pending stores to a globals dict."""
        found = self._globals.get(id(globals_))
        if found is None:
            found = self._globals[id(globals_)] = GlobalNames(globals_, load)
        return found

    def global_value(self, globals_: dict[str, Any], name: str) -> tuple[bool, VariableTracker | None]:
        """Whether the frame stored to a global, and what (None: deleted)."""
        found = self._globals.get(id(globals_))
        if found is None or name not in found.names:
            return False, None
        return True, found.names[name]

    def writes_globals(self, globals_: dict[str, Any]) -> bool:
        """Whether the frame stored to a globals dict."""
        return id(globals_) in self._globals

    def store_global(
        self,
        globals_: dict[str, Any],
        load: Callable[[Rebuilder], None],
        name: str,
        value: VariableTracker | None,
    ) -> None:
        if self.closed is not None:
            self.closed(f"the global {name!r}")
        names = self.globals_of(globals_, load)
        if names.names.get(name, value) is None and value is not None:
            names.remade.add(name)  # the new one comes last
        if name in names.remade or value is None:
            names.names.pop(name, None)
        names.names[name] = value
        self._order[names] = None

    def items(self) -> list[Any]:
        """What has to be written back, in order."""
        return list(self._order)
