"""What a tracker is, and what trackers may ask of the translator.

A `VariableTracker` is the engine's model of one Python value. Its methods are CPython's type slots (`tp_getattro`,
`nb_bool`, `mp_subscript`, ...), so that a Python rule is written where CPython has it. The rules above the slots are in
`variables/abstract.py`, as CPython's are in `Objects/abstract.c`. One tracker stands for one object, during one attempt
to translate: two names of a list are one tracker, and changing it changes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final, NoReturn, Protocol, TypeAlias

from dynacheck.graph.facts import TensorRef
from dynacheck.guards.base import Guard
from dynacheck.reasons import UNKNOWN_CALL, UNKNOWN_OPERATION, Reason
from dynacheck.sources import Emitter, Node, Root, UserLine


class GraphBreak(Exception):
    """Translation can't model the current instruction: split the frame here, or give it up.

    Args:
        reason: the declared reason.
        **fields: fill the reason's sentence.
    """

    def __init__(self, reason: Reason, **fields: object) -> None:
        super().__init__(f"{reason.id}: {reason.message(**fields)}")
        self.reason = reason
        self.message = reason.message(**fields)
        self.stack: tuple[Any, ...] = ()  # user stack, filled by the translator nearest to it


class ObservedException(Exception):
    """The traced program raised `exception`. Unwound through the traced frames' exception tables."""

    def __init__(self, exception: VariableTracker) -> None:
        super().__init__(repr(exception))
        self.exception = exception
        self.stack: tuple[Any, ...] = ()  # user stack at the raise


class NotConstant(Exception):
    """`as_constant` was asked of a value that is not one."""


class CantRebuild(Exception):
    """A value made in the frame that rewritten code can't make again: the frame can't end or be split with it alive."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} can't be rebuilt")
        self.what = what


NOT_IMPLEMENTED = object()
"""What a binary slot returns when it does not know the other operand."""

Concrete: TypeAlias = Any
"""A tracker of a class above this file, named in the docstring of the method that takes it."""


class Rebuilder(Emitter, Protocol):
    """What reconstruction may emit, beyond loading sources. Each call appends instructions."""

    def build_tuple(self, n: int) -> None: ...
    def build_list(self, n: int) -> None: ...
    def build_set(self, n: int) -> None: ...
    def build_map(self, n: int) -> None:
        """A dict of n key/value pairs on the stack."""

    def build_slice(self, n: int) -> None: ...
    def push_callable(self, load: Callable[[], None]) -> None:
        """Push a callable to be called by `call`."""

    def call(self, n: int, kwnames: tuple[str, ...] = ()) -> None:
        """Call with n arguments on the stack, the last len(kwnames) by keyword."""

    def load_method(self, name: str) -> None:
        """Replace the object on top of the stack by its method, ready for `call`."""

    def load_globals(self, globals_: dict[str, Any]) -> None:
        """Push a function's globals."""

    def load_class(self, cls: type) -> None:
        """Push a class of the user's."""

    def load_const_type(self, cls: type) -> None:
        """Push a builtin class."""

    def load_module(self, name: str) -> None:
        """Push a module of sys.modules."""

    def pop(self) -> None: ...
    def dup(self) -> None: ...
    def store_attr(self, name: str) -> None:
        """Pops an object and, below it, the value."""

    def remember(self, value: VariableTracker) -> None:
        """The object on top of the stack is the one `value` stands for; later loads give the same object."""

    def settle(self, value: VariableTracker) -> None:
        """Write an object's changes back now, if they still have to be: what is made from it next looks at it."""

    def graph_output(self, value: VariableTracker) -> None:
        """Push a tensor or symbolic number that the graph computes."""


class Tracer(Protocol):
    """What a tracker, handler or opcode may ask of the translator of a frame."""

    @property
    def root(self) -> Root:
        """The attempt's trie of sources."""

    # where we are
    def where(self) -> UserLine | None:
        """The user's line being translated (the innermost one outside of library code)."""

    # values and guards
    def wrap(self, node: Node) -> VariableTracker:
        """The tracker of a sourced value; lazy: nothing is guarded before it is used."""

    def known(self, value: object) -> VariableTracker | None:
        """The tracker of an object that the frame has met already, or None."""

    def meet(self, value: object, tracker: VariableTracker) -> None:
        """Have `known` give it."""

    def wrap_now(self, node: Node) -> VariableTracker:
        """The tracker of a sourced value by its exact type, with the guards that it needs."""

    def wrap_tensor(self, node: Node, value: Any) -> VariableTracker:
        """The tracker of a sourced tensor."""

    def wrap_subclass(self, node: Node, value: Any) -> VariableTracker:
        """The tracker of a sourced tensor of a subclass."""

    def subclassed(self, plain: Concrete, cls: type) -> VariableTracker:
        """A TensorVariable that nothing else holds, as an object of a subclass."""

    def wrap_result(self, node: Any, value: Any) -> VariableTracker:
        """The tracker of what a recorded operator (an fx.Node) returns."""

    def guard(self, node: Node, guard: Guard) -> None: ...
    def guard_absent(self, node: Node) -> None:
        """Assume that the path leads nowhere (no such attribute, key or global; an empty cell)."""

    def guard_length(self, node: Node, length: int) -> None: ...
    def guard_range(self, node: Node, value: range) -> None: ...
    def class_node(self, cls: type) -> Node:
        """The node of a class: reached through a weak cell (for attributes that instances find on it), or made here."""

    def variables(self) -> Iterator[tuple[str, VariableTracker | None]]:
        """The frame's variables in order of their slots; None for one that is unbound."""

    def module_name(self) -> str | None:
        """The `__name__` of the frame's globals: where a class made now belongs."""

    def cell_of(self, node: Node) -> Any:
        """The CellVariable of a sourced cell, one per cell object."""

    def constant(self, value: object) -> VariableTracker:
        """The tracker of a constant of an exact builtin type."""

    def object(self, value: Any) -> VariableTracker:
        """The tracker of an object that is known without a source and is the same in every process run: a builtin, a
        function or class of torch or the standard library, a constant. Anything else is an internal error."""

    def class_variable(self, cls: type) -> VariableTracker:
        """The tracker of a class."""

    def class_of(self, value: VariableTracker) -> VariableTracker:
        """`type(value)`."""

    def tuple_of(self, items: Sequence[VariableTracker]) -> VariableTracker:
        """A new tuple."""

    # calls
    def call(
        self,
        fn: VariableTracker,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker] | None = None,
    ) -> VariableTracker:
        """Call as the program would: a handler, a graph operator, inlining; or break."""

    def call_object(
        self, fn: Concrete, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call an ObjectVariable: a handler, a graph operator, a break."""

    def call_function(
        self, fn: Concrete, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call a UserFunctionVariable: a handler, a graph operator, inlining, a break."""

    def call_class(
        self, cls: Concrete, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call a class (an ObjectVariable): a new object."""

    def new_instance(self, cls: Concrete) -> VariableTracker:
        """`object.__new__` of a ClassVariable, or the builtin base's."""

    def call_named_method(
        self,
        owner: VariableTracker,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        """Call a C method of an object by name."""

    def call_base_method(
        self,
        owner: VariableTracker,
        base: type,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        """Call a C method of a builtin base on an object, past the overrides of its class."""

    def call_module(
        self, module: Concrete, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call an NNModuleVariable: hooks and forward."""

    def call_tensor_method(
        self,
        tensor: Concrete,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        """Call a method of a TensorVariable: answered from metadata, recorded, or a break."""

    def call_python(
        self, fn: Callable[..., Any], *args: VariableTracker, **kwargs: VariableTracker
    ) -> VariableTracker:
        """Inline one of the engine's own Python functions (a polyfill)."""

    def call_next(self, method: VariableTracker) -> VariableTracker | None:
        """Call a `__next__`; None at StopIteration."""

    def decorate_with_context(self, context: VariableTracker, args: list[VariableTracker]) -> VariableTracker:
        """Call a modelled context manager: it decorates a function."""

    # what CPython's object model does above the slots
    def truth(self, value: VariableTracker) -> bool:
        """`bool(value)`."""

    def contains_by_iteration(self, owner: VariableTracker, item: VariableTracker) -> VariableTracker:
        """`item in owner` for an object without `__contains__`."""

    def sequence_iterator(self, owner: VariableTracker) -> VariableTracker:
        """The iterator of an object that has `__getitem__` but no `__iter__`."""

    def iterate_tensor(self, tensor: Concrete) -> VariableTracker:
        """The iterator of a TensorVariable."""

    # attributes
    def object_attribute(self, owner: Concrete, name: str) -> VariableTracker:
        """An attribute of an ObjectVariable."""

    def property_getter(self, node: Node, raw: property) -> VariableTracker:
        """The getter of a property that a class has at the node."""

    def property_setter(self, node: Node, raw: property, which: str) -> VariableTracker:
        """Its `fset` or `fdel`."""

    def unwrap_method(self, node: Node, raw: Any) -> VariableTracker:
        """The function of a staticmethod or classmethod."""

    def bind_object(self, owner: VariableTracker, name: str, raw: Any, node: Node) -> VariableTracker:
        """A class attribute with a C `__get__` through an instance."""

    def instance_dict(self, owner: Concrete) -> VariableTracker:
        """The `__dict__` of a UserObjectVariable."""

    def builtin_base(self, node: Node, value: Any) -> Concrete | None:
        """The data (a BuiltinObject) of the builtin class that a sourced object's class derives from."""

    def store_module_attribute(self, module: Concrete, name: str, value: VariableTracker) -> None:
        """`nn.Module.__setattr__` on an NNModuleVariable."""

    def store_tensor_attribute(self, tensor: Concrete, name: str, value: VariableTracker | None) -> None:
        """Store, or delete when value is None, an attribute of a TensorVariable."""

    # exceptions and breaks
    def raise_(self, exc_type: type[BaseException], *args: Any) -> NoReturn:
        """Raise an exception in the traced program."""

    @property
    def handled_exception(self) -> VariableTracker | None:
        """What `sys.exception()` gives here: the exception handled by this frame, else by a caller."""

    @property
    def traces_more(self) -> bool: ...  # than torch does (`split_more`)
    def break_(self, reason: Reason, **fields: Any) -> NoReturn: ...
    def give_up(self, reason: Reason, **fields: Any) -> NoReturn:
        """Break where torch doesn't split but skips the frame."""

    # graph and metadata
    def record(
        self,
        op: str,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        function: Any = None,
    ) -> VariableTracker:
        """Record an operator ("call_function" or "call_method") on trackers, propagate metadata, wrap the result."""

    def torch_function(
        self, op: str, target: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """An operation of which some operand's class has a `__torch_function__`."""

    @property
    def function_modes(self) -> list[VariableTracker]:
        """The torch function modes that the frame has entered, innermost last."""

    def string_items(self, value: VariableTracker) -> dict[str, VariableTracker]:
        """The items of a dict with string keys."""

    def string_dict(self, items: dict[str, VariableTracker]) -> VariableTracker:
        """A new dict with string keys."""

    def graph_input(self, node: Node, ref: TensorRef) -> Any:
        """The fx.Node of a sourced tensor."""

    def graph_node(self, node: Any, value: Any) -> Any:
        """A value's fx.Node in the graph that is being recorded, which may be a function's inside of another."""

    def function_graph(self, *arguments: VariableTracker, pure: bool = True) -> AbstractContextManager[Any]:
        """Record a function that an operator takes: the graph is the function's (a SubgraphRecorder) in the block.

        A `pure` one may change nothing that was made outside of it, its arguments included: a break.
        """

    def examine(self, fn: Callable[..., Any], *metas: Any) -> Any:
        """What one of the engine's functions says about stand-ins of TensorRefs and constants; nothing is recorded."""

    def graph_call(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Record a call on nodes and constants; its node."""

    def oracle_attribute(self, ref: TensorRef, name: str, *args: Any, **kwargs: Any) -> Any:
        """A tensor's metadata, by the oracle."""

    def size_of(self, tensor: Concrete) -> VariableTracker:
        """The `torch.Size` of a TensorVariable."""

    def size_item(self, tensor: Concrete, index: int) -> VariableTracker:
        """One size of a TensorVariable."""

    # symbols
    @property
    def env(self) -> Any:
        """The attempt's SymbolicEnv, or None in a static attempt."""

    def captures_scalars(self) -> bool:
        """Whether numbers of a tensor become symbols instead of breaks."""

    def need_symbols(self) -> NoReturn:
        """Restart the attempt with a symbolic environment."""

    def restart(self, why: str) -> NoReturn:
        """Start the attempt anew: objects that it has read are no longer as they were."""

    def symbol_for_number(self, node: Node, value: int | float) -> VariableTracker | None:
        """The symbol that a sourced number becomes, or None where it stays a constant."""

    def evaluate_symbolic(self, target: Callable[..., Any], operands: list[Any]) -> Any:
        """An operation on symbols and numbers, by the symbolic environment."""

    def specialize(self, sym: Any) -> Any:
        """The value of a symbol, which the frame then depends on."""

    # side effects on objects that existed before the frame
    def mutated(self, value: VariableTracker) -> None:
        """The tracker's contents no longer equal the object's: write them back at the end of the frame."""

    @property
    def effects(self) -> Any:
        """The frame's side effects (`translate.effects.SideEffects`)."""

    @property
    def state(self) -> dict[Any, Any]:
        """What handlers keep for the attempt: stores to modules."""

    @property
    def graph(self) -> Any:
        """The recorder of the attempt's graph."""


class VariableTracker:
    """The engine's model of one Python value.

    Attributes:
        node: where the value came from; None for a value made in the frame.
    """

    __slots__ = ("node",)

    python_type: ClassVar[type] = object
    """The exact type of the value, where a class of trackers stands for one type; else override `get_type`."""

    def __init__(self, node: Node | None = None) -> None:
        self.node = node

    # -- identity and constants
    def realize(self, tx: Tracer) -> VariableTracker:
        """The tracker itself; a lazy one wraps its value now, installing guards."""
        return self

    def get_type(self) -> type:
        """The value's exact type."""
        return self.python_type

    def describe(self) -> str:
        """For messages: the value in the user's words."""
        return self.node.user_path if self.node is not None else f"a {self.get_type().__name__}"

    def is_constant(self) -> bool:
        """Whether `as_constant` succeeds."""
        return False

    def as_constant(self, tx: Tracer) -> Any:
        """The Python value, for values that are constants throughout (numbers, strings, tuples and slices of them, ...).

        Raises:
            NotConstant: it isn't one.
        """
        raise NotConstant(type(self).__name__)

    def as_proxy(self, tx: Tracer) -> Any:
        """What stands for it in a graph node's arguments: an fx.Node, a constant, a container of them."""
        if self.is_constant():
            return self.as_constant(tx)
        self.unmodelled(tx, "use in a graph")

    def as_meta(self, tx: Tracer) -> Any:
        """What stands for it in metadata propagation: a TensorRef, a SymInt, a constant, a container of them."""
        if self.is_constant():
            return self.as_constant(tx)
        self.unmodelled(tx, "use in a graph")

    def unmodelled(self, tx: Tracer, operation: str = "", *, method: str = "") -> NoReturn:
        """Break: this operation on, or this method of, this kind of value isn't modelled."""
        if method:
            tx.break_(UNKNOWN_CALL, what=f"the method {method} on {self.describe()} ({type(self).__name__})")
        tx.break_(UNKNOWN_OPERATION, operation=operation, what=f"{self.describe()} ({type(self).__name__})")

    # -- attributes
    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__class__" and self.get_type() is not object:
            return tx.object(self.get_type())
        self.unmodelled(tx, f"the attribute {name!r}")

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        """Store, or delete when value is None."""
        self.unmodelled(tx, f"writing the attribute {name!r}")

    # -- calls and iteration
    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        self.unmodelled(tx, "a call")

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        """The iterator. A type without `__iter__` raises TypeError in the program (see `abstract.get_iter`)."""
        self.unmodelled(tx, "iteration")

    def tp_iternext(self, tx: Tracer) -> VariableTracker | None:
        """The next item, or None when exhausted."""
        self.unmodelled(tx, "next()")

    # -- truth, length, items
    def nb_bool(self, tx: Tracer) -> bool:
        """Truth by the type's own `__bool__` or `__len__`; True for plain objects."""
        self.unmodelled(tx, "a truth test")

    def sq_length(self, tx: Tracer) -> VariableTracker:
        self.unmodelled(tx, "len()")

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        self.unmodelled(tx, "indexing")

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        """Store an item, or delete it when value is None."""
        self.unmodelled(tx, "item assignment")

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        """`item in self`: a bool constant or a tensor-free symbolic bool."""
        self.unmodelled(tx, "`in`")

    # -- operators
    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        """op is one of < <= == != > >=. NOT_IMPLEMENTED when the type does not know the other."""
        return NOT_IMPLEMENTED

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        """The type's slot for + - * / // % ** @ << >> & | ^ and divmod, with self being left or right."""
        return NOT_IMPLEMENTED

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        """The in-place form; op without the `=`. NOT_IMPLEMENTED falls back to the binary form."""
        return NOT_IMPLEMENTED

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        """op is one of - + ~ abs int float index complex (`nb_index` for index)."""
        self.unmodelled(tx, f"unary {op}")

    def hash_key(self, tx: Tracer) -> Any:
        """A hashable Python object, equal for two trackers exactly when the values are equal as dict keys.

        A constant gives its value; an object with identity hashing gives itself. Raises TypeError in the program for
        unhashable types.
        """
        self.unmodelled(tx, "hash()")

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        self.unmodelled(tx, "repr()")

    def tp_str(self, tx: Tracer) -> VariableTracker:
        return self.tp_repr(tx)

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        self.unmodelled(tx, "formatting")

    # -- rewritten code
    def reconstruct(self, to: Rebuilder) -> None:
        """Emit code that pushes a new object equal to this one; containers call `to.remember(self)` then."""
        raise CantRebuild(self.describe())

    def write_back(self, to: Rebuilder) -> None:
        """Emit code that brings the object that existed before the frame to this tracker's contents."""
        raise CantRebuild(self.describe())

    def children(self) -> Sequence[VariableTracker]:
        """The trackers it holds, for walks (liveness, escape)."""
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.node.path if self.node is not None else ''}>"


class LazyVariable(VariableTracker):
    """A sourced value that nothing has looked at yet: no guard. Every use goes through `realize`."""

    __slots__ = ("real",)
    node: Node

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.real: VariableTracker | None = None

    def realize(self, tx: Tracer) -> VariableTracker:
        if self.real is None:
            self.real = tx.wrap_now(self.node)
        return self.real

    def get_type(self) -> type:
        return self.real.get_type() if self.real is not None else type(self.node.peek())

    def is_constant(self) -> bool:
        return self.real is not None and self.real.is_constant()

    def describe(self) -> str:
        return self.node.user_path if self.real is None else self.real.describe()

    def reconstruct(self, to: Rebuilder) -> None:
        if self.real is None:
            self.node.emit(to)
        else:
            to.load(self.real)


def _forward(name: str) -> None:
    """Give LazyVariable the slot `name`: wrap now, then ask the real tracker."""

    def slot(self: LazyVariable, tx: Tracer, *args: Any) -> Any:
        return getattr(self.realize(tx), name)(tx, *args)

    setattr(LazyVariable, name, slot)


DELAYED_SLOTS: Final = (
    "as_constant", "as_proxy", "as_meta", "tp_getattro", "tp_setattro", "tp_call", "tp_iter", "tp_iternext", "nb_bool",
    "sq_length", "mp_subscript", "mp_ass_subscript", "sq_contains", "tp_richcompare", "nb_binary", "nb_inplace",
    "nb_unary", "hash_key", "tp_repr", "tp_str", "tp_format",
)  # fmt: skip
for _name in DELAYED_SLOTS:
    _forward(_name)
