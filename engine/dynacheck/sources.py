"""Where a value came from: a trie of nodes per translation attempt.

A frame's values are reached by steps (`Accessor`) from a root (`Root`). Each path exists once: asking a node twice for
the same child gives the same node, so that a node is the place for everything known about that value: its children,
the guards installed on it and, once wrapped, its tracker. The trie is walked once to make the guard program.

A node can be read in three ways, which a property test holds to the same object: `fetch` (the value, from a live
frame), `emit` (bytecode that loads it in the rewritten code) and the native program's own accessor.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

from dynacheck.accessors import (
    ABSENT,
    HEAP_TYPE,
    Accessor,
    Attribute,
    Builtin,
    Captured,
    CAttr,
    CellContents,
    Converted,
    DictAttr,
    Emitter,
    FrameGlobals,
    FrameView,
    Free,
    Global,
    Item,
    Key,
    KeyAt,
    Local,
    Module,
    OwnItem,
    Referent,
    SlotAttr,
    TypeAttr,
    TypeOf,
    c_attribute,
    cell_contents,
    dict_item,
    dict_key_at,
    dict_keys_of,
    imported_module,
    instance_dict,
    is_a,
    is_own_dict,
    list_item,
    own_dict,
    referent,
    type_lookup,
)

__all__ = [
    "ABSENT",
    "HEAP_TYPE",
    "Accessor",
    "Builtin",
    "CAttr",
    "Captured",
    "CellContents",
    "Converted",
    "DictAttr",
    "Emitter",
    "FrameGlobals",
    "FrameView",
    "Free",
    "Global",
    "Item",
    "Key",
    "KeyAt",
    "Local",
    "MadeNode",
    "Module",
    "Node",
    "Referent",
    "Root",
    "SlotAttr",
    "TypeAttr",
    "TypeOf",
    "UserLine",
    "c_attribute",
    "cell_contents",
    "dict_item",
    "dict_key_at",
    "dict_keys_of",
    "imported_module",
    "instance_dict",
    "is_a",
    "is_own_dict",
    "list_item",
    "own_dict",
    "referent",
    "type_lookup",
]

_UNREAD = object()


@dataclass(frozen=True, slots=True)
class UserLine:
    """The user's line that needed something: file, 1-based line, function name and the text of the line."""

    file: str
    line: int
    function: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Node:
    """One value of the frame. Made only by `child` and `Root`.

    Attributes:
        guards: installed guards with the line that needed each, in order; filled by `guards.base.install`.
        tracker: the tracker that the value was wrapped as, or None (typed loosely: sources know no trackers).
        children: by accessor.
    """

    __slots__ = (
        "_path",
        "_user_path",
        "accessor",
        "children",
        "guards",
        "parent",
        "root",
        "slot",
        "tracker",
        "value",
    )

    def __init__(self, root: Root, parent: Node | None, accessor: Accessor) -> None:
        self.root = root
        self.parent = parent
        self.accessor = accessor
        self.children: dict[Hashable, Node] = {}
        self.guards: list[Any] = []
        self.tracker: Any = None
        self.slot = -1
        self.value: Any = _UNREAD
        self._path: str | None = None
        self._user_path: str | None = None

    def child(self, accessor: Accessor) -> Node:
        """The one child reached by this accessor."""
        key = accessor.step
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = Node(self.root, self, accessor)
        return node

    def named(self, kind: type[Attribute], name: str) -> Node:
        """`child(kind(name))`."""
        key = (kind, name)
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = Node(self.root, self, kind(name))
        return node

    def attr(self, name: str) -> Node:
        return self.named(DictAttr, name)

    def item(self, index: int) -> Node:
        own = isinstance(type_lookup(type(self.peek()), "__getitem__"), FunctionType)
        return self.child(OwnItem(index) if own else Item(index))

    def key(self, key: Any) -> Node:
        return self.child(Key(key))

    def type_of(self) -> Node:
        node = self.children.get(TypeOf)
        return self.child(TypeOf()) if node is None else node

    def class_attr(self, name: str) -> Node:
        """The raw class attribute an instance's lookup ends at."""
        return self.type_of().named(TypeAttr, name)

    def above(self) -> Node | None:
        """The node that this one was reached from: its parent; of a class, the object that it was asked for."""
        return self.root.reached.get(self) if self.parent is None else self.parent

    def asked_of(self, by: Node | None) -> Node:
        """This node of a class attribute, after it was asked for through an object or another path to the class."""
        if self.parent is not None:
            self.parent.reach(by)
        return self

    def reach(self, by: Node | None) -> None:
        """Remember from where a class that is held was met first, unless that is through the class itself."""
        above = by
        while above is not None and above is not self:
            above = above.above()
        if by is not None and above is None and isinstance(self.accessor, Captured):
            self.root.reached.setdefault(self, by)

    def peek(self) -> Any:
        """The value in the frame being translated (ABSENT if there is none), read once per attempt."""
        if self.value is _UNREAD:
            base = None if self.parent is None else self.parent.peek()
            self.value = ABSENT if base is ABSENT else self._step(base, self.root.frame)
        return self.value

    def fetch(self, frame: FrameView) -> Any:
        """The value in that frame, or ABSENT if a step of the path leads nowhere."""
        base = None
        if self.parent is not None:
            base = self.parent.fetch(frame)
            if base is ABSENT:
                return ABSENT
        return self._step(base, frame)

    def _step(self, base: Any, frame: FrameView) -> Any:
        """The value, from that of the parent."""
        return (
            self.root.captured_value(self.accessor)
            if isinstance(self.accessor, Captured)
            else self.accessor.fetch(base, frame)
        )

    def emit(self, to: Emitter) -> None:
        """Append instructions that push the value."""
        parent = self.parent
        if isinstance(self.accessor, Captured):
            to.load_weak(self.root.captured[self.accessor.key])
            return
        self.accessor.emit(to, (lambda: None) if parent is None else (lambda: parent.emit(to)))

    @property
    def path(self) -> str:
        """As logs spell it: `L['self'].layers[0].weight`."""
        if self._path is None:
            self._path = self.accessor.path("" if self.parent is None else self.parent.path)
        return self._path

    @property
    def user_path(self) -> str:
        """As the user spells it: `self.layers[0].weight`."""
        if self._user_path is None:
            self._user_path = self.accessor.user_path("" if self.parent is None else self.parent.user_path)
        return self._user_path

    def name_missing(self, name: str) -> None:
        """A key below this object that `__getattr__` looked for in vain: to users it is an attribute that isn't there."""
        for node in self.walk():
            if getattr(node.accessor, "key", None) == name and node.peek() is ABSENT:
                node._user_path = f"{self.user_path}.{name}"

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left.extend(reversed(node.children.values()))

    def __repr__(self) -> str:
        return f"<Node {self.path}>"


class MadeNode(Node):
    """A class that the frame itself makes, or what is found on it: nothing has to be assumed about it.

    Attributes:
        base: the node of the class's only base, where lookups of what the class inherits end.
    """

    __slots__ = ("base",)

    def __init__(self, root: Root, parent: Node | None, accessor: Accessor) -> None:
        super().__init__(root, parent, accessor)
        self.base: Node | None = None

    @classmethod
    def of_class(cls, made: type, tracker: Any, base: Node) -> MadeNode:
        """The node of a new class, known to the root of its base from now on.

        Args:
            made: the class, as made while translating.
            tracker: its tracker, by which rewritten code makes the class.
            base: the node of its base.
        """
        node = cls(base.root, None, Captured(id(made), made.__qualname__))
        node.value, node.tracker, node.base = made, tracker, base
        base.root.keep(made, node)
        return node

    def child(self, accessor: Accessor) -> Node:
        if self.base is not None and isinstance(accessor, TypeAttr) and accessor.name not in vars(self.value):
            return self.base.child(accessor)
        key = accessor.step
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = MadeNode(self.root, self, accessor)
        return node

    def named(self, kind: type[Attribute], name: str) -> Node:
        return self.child(kind(name))

    def emit(self, to: Emitter) -> None:
        if self.parent is None:
            to.load(self.tracker)
        else:
            super().emit(to)


class Root:
    """The root of a frame's trie; also holds the relations, which belong to no single node.

    Args:
        frame: the frame being translated, for reading values while translating.
    """

    def __init__(self, frame: FrameView) -> None:
        self.frame = frame
        self.children: dict[Hashable, Node] = {}
        self.relations: list[Any] = []
        self.captured: dict[int, Any] = {}  # weak references, by id
        self._held: dict[int, Node] = {}
        self.reached: dict[Node, Node] = {}  # from where classes that are held were first met

    def child(self, accessor: Accessor) -> Node:
        key = accessor.step
        node = self.children.get(key)
        if node is None:
            node = self.children[key] = Node(self, None, accessor)
        return node

    def local(self, name: str, index: int) -> Node:
        return self.child(Local(name, index))

    def free(self, name: str, index: int) -> Node:
        return self.child(Free(name, index))

    def global_(self, name: str) -> Node:
        return self.child(Global(name))

    def builtin(self, name: str) -> Node:
        return self.child(Builtin(name))

    def module(self, name: str) -> Node:
        return self.child(Module(name))

    def release(self) -> None:
        """Forget the frame and all values and trackers, keeping paths, guards and relations: for a trie that outlives
        its attempt as the explanation of an entry."""
        self.frame = cast(FrameView, None)
        self._held.clear()
        self.reached.clear()
        for node in self.walk():
            node.value = _UNREAD
            node.tracker = None

    def held(self, value: Any, name: str) -> Node:
        """The node of an object without a path, which the entry holds weakly.

        Args:
            value: the object, alive as long as the frame is translated.
            name: how logs call it.
        """
        key = id(value)
        node = self._held.get(key)
        if node is None:
            self.captured[key] = weakref.ref(value)
            node = self._held[key] = self.child(Captured(key, name))
        return node

    def keep(self, made: type, node: MadeNode) -> None:
        """Have `held` give a node for a class that the frame makes."""
        self._held[id(made)] = node

    def captured_value(self, accessor: Captured) -> Any:
        found = self.captured[accessor.key]()
        return ABSENT if found is None else found

    def walk(self) -> Iterator[Node]:
        for node in self.children.values():
            yield from node.walk()
