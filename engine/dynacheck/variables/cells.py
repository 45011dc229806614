"""Cells: what closures share."""

from __future__ import annotations

from types import CellType
from typing import Any

from dynacheck.sources import ABSENT, CellContents, Node
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker


def new_cell(*contents: Any) -> CellType:
    """A cell with contents, or an empty one (used by rewritten code)."""
    return CellType(*contents)


def set_cell(cell: CellType, *contents: Any) -> None:
    """Store into a cell, or empty it (used by rewritten code)."""
    if contents:
        cell.cell_contents = contents[0]
    else:
        del cell.cell_contents


class CellVariable(VariableTracker):
    """A cell. Invariant: `contents` is the current value in the trace, None when empty; `loaded` says whether it was set.

    A cell of the frame itself is new; one from the closure has a node, and a store is a side effect.
    """

    __slots__ = ("_loaded", "contents")
    python_type = CellType

    def __init__(self, node: Node | None = None, contents: VariableTracker | None = None) -> None:
        super().__init__(node)
        self.contents = contents
        self._loaded = node is None

    def get(self, tx: Tracer) -> VariableTracker | None:
        """The contents, or None when the cell is empty."""
        if not self._loaded:
            assert self.node is not None
            self._loaded = True
            inner = self.node.child(CellContents())
            if inner.peek() is ABSENT:
                tx.guard_absent(inner)
            else:
                self.contents = tx.wrap(inner)
        return self.contents

    def set(self, tx: Tracer, value: VariableTracker | None) -> None:
        """Store into the cell, or empty it."""
        self.contents = value
        self._loaded = True
        tx.mutated(self)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "cell_contents":
            found = self.get(tx)
            if found is None:
                tx.raise_(ValueError, "Cell is empty")
            return found
        return super().tp_getattro(tx, name)

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if name != "cell_contents":
            super().tp_setattro(tx, name, value)
        self.set(tx, value)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(new_cell)
        to.remember(self)
        if self.contents is not None:
            contents = self.contents
            to.call_helper(set_cell, lambda: to.load(self), lambda: to.load(contents))
            to.pop()

    def write_back(self, to: Rebuilder) -> None:
        contents = self.contents
        assert self.node is not None
        node = self.node
        loads = [] if contents is None else [lambda: to.load(contents)]
        to.call_helper(set_cell, lambda: node.emit(to), *loads)
        to.pop()

    def children(self) -> tuple[VariableTracker, ...]:
        return () if self.contents is None else (self.contents,)
