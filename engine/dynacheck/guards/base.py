"""What a guard is: a frozen fact about one or several values, with a Python check, a native opcode and an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from dynacheck.sources import MadeNode, Node, Root, UserLine

Slots: TypeAlias = Sequence[Any]
"""The values a guard looks at: one for a guard on a node, several for a relation; ABSENT where a path leads nowhere."""

KINDS = (
    "value", "size", "stride", "dtype", "device", "requires_grad", "layout", "dispatch_keys", "rank", "length", "keys",
    "type", "identity", "presence", "code", "aliasing", "expression", "training", "hooks", "mark", "grad_mode",
    "inference_mode", "autocast", "default_dtype", "default_device", "deterministic", "function_mode", "global_state",
    "region", "other",
)  # fmt: skip
"""The closed table of what a guard is about; the `<kind>` of a recompile's cause key."""


@dataclass(frozen=True, slots=True)
class Change:
    """Why a guard failed: what was assumed and what is there now.

    Args:
        kind: one of KINDS.
        then: the assumed value, as plain data.
        now: the current value, as plain data.
        detail: which part of the value, in the user's words (`size of dim 0`), or "".
    """

    kind: str
    then: Any
    now: Any
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """A frozen fact. Subclasses add fields; the fields are the identity."""

    native_op: ClassVar[str]
    """Name of the native check; "PYCHECK" when there is none: then the native program calls `check` (slow, counted)."""

    def native(self) -> tuple[object, ...]:
        """Operands of the native check."""
        return ()

    def native_form(self) -> tuple[str, tuple[object, ...]]:
        """The native check and its operands, for guards that have one only for some values."""
        return self.native_op, self.native()

    def check(self, slots: Slots) -> bool:
        """The verdict. Runs no user code; raising is an engine error, not a miss."""
        raise NotImplementedError

    def explain(self, slots: Slots) -> Change:
        """What differs; called only when `check` is false."""
        raise NotImplementedError

    def changes(self, slots: Slots, paths: Sequence[str] = ()) -> list[Change]:
        """All that differs, for guards that look at several things; the first is what `explain` gives.

        Args:
            slots: the values.
            paths: how the user spells them, for guards that name them.
        """
        return [self.explain(slots)]

    def text(self, paths: Sequence[str]) -> str:
        """How logs spell it, given the paths of its values: `L['b'] == 'Hello'`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Installed:
    """A guard on nodes, with the user's line that needed it."""

    guard: Guard
    nodes: tuple[Node, ...]
    where: UserLine | None

    def text(self) -> str:
        return self.guard.text([n.path for n in self.nodes])


def is_installed(node: Node, guard: Guard) -> bool:
    """Whether a node has the guard already: asked first where making the line that needs it costs more."""
    for have in node.guards:  # noqa: SIM110 (a generator is dearer than what it does)
        if have.guard is guard or have.guard == guard:
            return True
    return False


def install(node: Node, guard: Guard, where: UserLine | None) -> None:
    """Install a guard on a node, unless the same is there already, or the frame made what is there."""
    if not is_installed(node, guard) and not isinstance(node, MadeNode):
        node.guards.append(Installed(guard, (node,), where))


def relate(root: Root, guard: Guard, nodes: Sequence[Node], where: UserLine | None) -> None:
    """Install a relation over several nodes (identity, aliasing, expressions over sizes)."""
    if any(isinstance(node, MadeNode) for node in nodes):
        return
    have = Installed(guard, tuple(nodes), where)
    for other in root.relations:
        if other.guard == guard and other.nodes == have.nodes:
            return
    root.relations.append(have)
