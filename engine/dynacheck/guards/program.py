"""From a trie of guarded nodes to a native guard program.

The specification handed to `_C.GuardProgram` is a nested tuple

    (ambient, nodes, relations, slots, captures)

    ambient    None, or (reads, slow, guard): reads are (signature, address, argument, expected), see `state`; `guard`
               is checked in Python besides when `slow`
    nodes      (accessor, operands, checks, nodes, slot) per child of the root
    checks     (op, operands, guard): `guard` is there for ops that may end in Python
    relations  (op, operands, slot numbers, guard)
    slots      how many numbered slots there are; a node with slot >= 0 stores its value there
    captures   slot numbers, in the order in which the hook hands their values over

with the numbers of `_C.GUARD_ACCESSORS` and `_C.GUARD_OPS`. An operand that stands for an object is
("WEAK", object), ("STRONG", object), ("CONST", constant), ("THROUGH", address, owner), ("DESCRIPTOR", type, owner, name),
("PARTS", type, ((attribute, operand), …)), ("ANY",) or ("DEAD",), which never passes.

Order: ambient state; the nodes, a node's guards before its children; what was read of classes, once per class however
many instances were seen (their types are checked by then); relations. The first guard that fails decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dynacheck import _C
from dynacheck.guards.base import Installed
from dynacheck.guards.held import Held
from dynacheck.guards.objects import Is, TypeIs
from dynacheck.guards.state import AmbientState
from dynacheck.sources import Accessor, Captured, FrameView, Node, Root, TypeOf, UserLine


@dataclass(frozen=True, slots=True, eq=False)
class CompiledGuards:
    """A guard program with what explains it.

    Args:
        program: the native program.
        installed: its guards in the order in which it checks them, the ambient state first.
        capture: nodes whose values the hook hands over, in order.
        slow: guards that run in Python on every check.
    """

    program: _C.GuardProgram
    installed: tuple[Installed, ...]
    capture: tuple[Node, ...]
    slow: tuple[Installed, ...]

    def check(self, frame: FrameView) -> bool:
        """The native verdict for a frame."""
        return self.program.check(frame.args, frame.func)

    def texts(self) -> list[str]:
        """The guards as logs spell them, in order."""
        return [installed.text() for installed in self.installed]

    def tree(self) -> list[str]:
        """The guards below the values that they are about, each with the user's line that needed it."""
        lines: list[str] = []
        seen: set[int] = set()
        for installed in self.installed:
            chain: list[Node] = []
            if len(installed.nodes) == 1:
                node: Node | None = installed.nodes[0]
                while node is not None:
                    chain.insert(0, node)
                    node = node.parent
            for depth, node in enumerate(chain):
                if id(node) not in seen:
                    lines.append(f"{'|  ' * depth}+- {node.path}")
                    seen.add(id(node))
            where = "" if installed.where is None else f"  # {installed.where} in {installed.where.function}"
            lines.append(f"{'|  ' * len(chain)}+- {installed.text()}{where}")
        return lines


class _Spec:
    """A node of the program while it is put together; several nodes of the trie may end in one."""

    __slots__ = ("accessor", "children", "guards", "operands", "slot")

    def __init__(self, accessor: str, operands: tuple[object, ...]) -> None:
        self.accessor = accessor
        self.operands = operands
        self.guards: list[Installed] = []
        self.children: dict[Any, _Spec] = {}
        self.slot = -1


class _Builder:
    """Lays out the nodes of one program: those with guards or slots, and all above them."""

    def __init__(self, root: Root, slotted: Iterable[Node]) -> None:
        self.root = root
        self.top: dict[Any, _Spec] = {}
        self.classes: dict[Held, _Spec] = {}
        self.specs: dict[int, _Spec] = {}
        self.slotted = {id(node) for node in slotted}
        self.slots = 0
        self.slow: list[Installed] = []
        for node in root.children.values():
            self._place(node, self.top)

    def _place(self, node: Node, siblings: dict[Any, _Spec]) -> None:
        accessor = node.accessor
        key = accessor.step
        spec = siblings.get(key)
        if spec is None:
            spec = _Spec(accessor.native_op, self._operands(accessor))
            spec.guards.extend(node.guards)
        else:  # what was read of a class through another instance
            known = {installed.guard for installed in spec.guards}
            spec.guards += [installed for installed in node.guards if installed.guard not in known]
        for child in node.children.values():
            cls = _known_class(child) if type(child.accessor) is TypeOf else None
            if cls is None:
                self._place(child, spec.children)
            else:
                self._place_class(child, cls, spec)
        if id(node) in self.slotted:
            self.specs[id(node)] = spec
        elif not spec.guards and not spec.children:
            return
        siblings[key] = spec

    def _place_class(self, node: Node, cls: Held, above: _Spec) -> None:
        """What is read of a class whose identity is guarded: once per class."""
        shared = self.classes.get(cls)
        if shared is None:
            shared = _Spec("PINNED", (cls.native(),))
        if node.guards:  # a guard on the type itself stays where the type is read
            own = above.children.setdefault(node.accessor.step, _Spec(node.accessor.native_op, ()))
            own.guards += node.guards
        for child in node.children.values():
            self._place(child, shared.children)
        if id(node) in self.slotted:
            self.specs[id(node)] = shared
        elif not shared.children:
            return
        self.classes[cls] = shared

    def _operands(self, accessor: Accessor) -> tuple[object, ...]:
        if isinstance(accessor, Captured):
            value = self.root.captured[accessor.key]()
            return (("DEAD",) if value is None else ("WEAK", value),)
        return accessor.native()

    def slot_of(self, node: Node) -> int:
        """The number of the slot that holds the node's value."""
        spec = self.specs[id(node)]
        if spec.slot < 0:
            spec.slot, self.slots = self.slots, self.slots + 1
        return spec.slot

    def tops(self) -> list[_Spec]:
        return [*self.top.values(), *self.classes.values()]

    def check(self, installed: Installed) -> tuple[int, tuple[object, ...], object]:
        """The specification of a check."""
        op, operands = installed.guard.native_form()
        if op == "PYCHECK":
            self.slow.append(installed)
        return _C.GUARD_OPS[op], operands, installed.guard

    def node(self, spec: _Spec) -> tuple[Any, ...]:
        """The specification of a node and what is below it."""
        return (
            _C.GUARD_ACCESSORS[spec.accessor],
            spec.operands,
            tuple([self.check(i) for i in spec.guards]),
            tuple([self.node(child) for child in spec.children.values()]),
            spec.slot,
        )


def _known_class(node: Node) -> Held | None:
    """The class that a TypeOf node is guarded to be, by its parent's type guard or its own identity guard."""
    assert node.parent is not None
    for installed in node.parent.guards:
        if isinstance(installed.guard, TypeIs):
            return installed.guard.cls
    for installed in node.guards:
        if isinstance(installed.guard, Is):
            return installed.guard.held
    return None


def _guards(spec: _Spec) -> Iterator[Installed]:
    left = [spec]
    while left:
        spec = left.pop()
        yield from spec.guards
        left.extend(reversed(spec.children.values()))


def build_program(
    root: Root,
    ambient: AmbientState | None,
    capture: Sequence[Node] = (),
    extra: Sequence[Installed] = (),
    where: UserLine | None = None,
) -> CompiledGuards:
    """Make the native program of a finished attempt.

    Afterwards the trie holds no value of the frame any more (`Root.release`): it is kept for explanations only.

    Args:
        root: the trie with its guards and relations.
        ambient: the global state to hold the entry to; None for none.
        capture: nodes whose values the hook hands over as one tuple, in this order.
        extra: more relations (expressions over sizes), checked after those of the root.
        where: the line that the ambient state is attributed to.

    Returns:
        The program and its guards in order.
    """
    relations = [*root.relations, *extra]
    builder = _Builder(root, [*capture, *(node for relation in relations for node in relation.nodes)])
    related = tuple((*builder.check(r)[:2], tuple(map(builder.slot_of, r.nodes)), r.guard) for r in relations)
    captured = tuple(map(builder.slot_of, capture))
    state = None if ambient is None else (*ambient.native_form()[1], ambient)
    tops = builder.tops()
    program = _C.GuardProgram((state, tuple(map(builder.node, tops)), related, builder.slots, captured))
    installed = [] if ambient is None else [Installed(ambient, (), where)]
    for spec in tops:
        installed += _guards(spec)
    installed += relations
    root.release()
    return CompiledGuards(program, tuple(installed), tuple(capture), tuple(builder.slow))
