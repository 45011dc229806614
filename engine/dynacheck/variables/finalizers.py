"""What CPython does when the last reference to a value goes: `__del__`, the `finally` of a suspended generator, weak
references that die. Trackers aren't counted; what the running frames hold is walked when one of them lets go of
something, if the frame has made such a value at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dynacheck.reasons import FINALIZER
from dynacheck.sources import ABSENT, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import LazyVariable, ObservedException, Tracer, VariableTracker
from dynacheck.variables.generators import GeneratorVariable
from dynacheck.variables.sequences import SequenceVariable
from dynacheck.variables.walk import reachable
from dynacheck.variables.weak_references import WeakReferenceVariable

MADE: Final = object()
"""The key of the attempt's state under which the entries are, oldest first."""
HELD: Final = object()
"""The key of what the frames held when nothing had to be finalized, in the order in which frames let go of it."""


class Entry:
    """A value made while translating whose end can be seen.

    Args:
        value: its tracker.
    """

    __slots__ = ("finalized", "in_traceback", "references", "value")

    def __init__(self, value: VariableTracker) -> None:
        self.value = value
        self.references: list[WeakReferenceVariable] = []
        self.finalized = type_lookup(value.get_type(), "__del__") is ABSENT or isinstance(
            value, GeneratorVariable
        )
        self.in_traceback = False
        """An exception has left the frame that made it: its traceback holds the value."""

    def acts(self) -> bool:
        """Whether something happens when the value goes."""
        value = self.value
        if isinstance(value, GeneratorVariable) and value.suspended_in_block():
            return True
        return not self.finalized or any(not ref.dead for ref in self.references)

    def finalize(self, tx: Tracer) -> None:
        """Do it."""
        value = self.value
        try:
            if isinstance(value, GeneratorVariable):
                value.close(tx)
            elif not self.finalized:
                self.finalized = True
                tx.call(abstract.getattr_(tx, value, "__del__"), [])
                return  # which may have stored it somewhere
        except ObservedException as observed:
            what = observed.exception.get_type().__name__
            tx.break_(FINALIZER, value=value.describe(), what=what)
        for reference in self.references:
            if reference.callback is not None and not reference.dead:
                reference.unmodelled(tx, "calling back at its end")
            reference.dead = True


def entries(tx: Tracer) -> list[Entry]:
    """The entries of the attempt, oldest first."""
    found: list[Entry] = tx.state.setdefault(MADE, [])
    return found


def note(tx: Tracer, value: VariableTracker) -> Entry:
    """Watch a value that was made while translating."""
    made = Entry(value)
    entries(tx).append(made)
    return made


def note_instance(tx: Tracer, value: VariableTracker) -> None:
    """Watch a new object if its class has a `__del__`."""
    if type_lookup(value.get_type(), "__del__") is not ABSENT:
        note(tx, value)


def note_reference(tx: Tracer, reference: WeakReferenceVariable) -> None:
    """Watch what a weak reference refers to, if it was made while translating."""
    target = reference.target.realize(tx)
    if target.node is None and abstract.python_object(target) is ABSENT:
        known = [made for made in entries(tx) if made.value is target]
        (known[0] if known else note(tx, target)).references.append(reference)


def watched(tx: Tracer, values: Iterable[VariableTracker]) -> bool:
    """Whether values hold, or are, one whose end can be seen."""
    acting = {id(made.value) for made in tx.state.get(MADE, ()) if made.acts()}
    return bool(acting) and any(id(value) in acting for value in reachable(values, weak=False))


def let_go(tx: Tracer, since: int, held: Callable[[], Iterable[VariableTracker]], handling: bool) -> None:
    """Finalize what nothing holds any more.

    Args:
        tx: the running frame.
        since: how many entries there were when it was entered: older ones may be held by a handler of an outer frame.
        held: gives what the running frames hold.
        handling: whether an exception is being handled.
    """
    while True:
        acting = [
            made for made in entries(tx)[since:] if made.acts() and not (handling and made.in_traceback)
        ]
        if not acting:
            return
        roots = list(held())
        alive = {id(value) for value in reachable(roots, weak=False)}
        dead = [made for made in acting if id(made.value) not in alive and not _kept_by_others(made, acting)]
        if not dead:
            tx.state[HELD] = roots
            return
        order = _freed(tx.state.get(HELD, ()), alive) if len(dead) > 1 else {}
        min(dead, key=lambda made: order.get(id(made.value), len(order))).finalize(tx)


def _freed(roots: Iterable[VariableTracker], alive: set[int]) -> dict[int, int]:
    """In which order CPython frees what was held and isn't any more: lists and tuples from their end."""
    order: dict[int, int] = {}
    todo = list(roots)[::-1]
    while todo:
        value = todo.pop()
        if isinstance(value, LazyVariable) and value.real is not None:
            value = value.real
        if id(value) not in alive and id(value) not in order:
            order[id(value)] = len(order)
            held = list(value.children())
            todo.extend(held if isinstance(value, SequenceVariable) else held[::-1])
    return order


def _kept_by_others(made: Entry, acting: list[Entry]) -> bool:
    """Whether a value that isn't reached is part of a cycle, or goes with another one that holds it."""
    for other in acting:
        inside = reachable(other.value.children(), weak=False)
        if any(value is made.value for value in inside):
            return True
    return False
