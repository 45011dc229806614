"""Tensors: a node of the graph and a record of metadata, never a live tensor."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import FunctionType, NoneType
from typing import Any, Final

import torch

from dynacheck import reasons
from dynacheck.graph import fromfacts
from dynacheck.graph.facts import TensorRef
from dynacheck.graph.functional import item_at
from dynacheck.sources import ABSENT, CAttr, DictAttr, Node, TypeAttr, instance_dict, type_lookup
from dynacheck.variables.base import NOT_IMPLEMENTED, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.functions import BoundMethodVariable, CallableVariable
from dynacheck.variables.methods import bound_type

BINARY: Final = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
INPLACE: Final = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "<<": operator.ilshift, ">>": operator.irshift,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor,
}  # fmt: skip
COMPARE: Final = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
UNARY: Final = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": operator.abs}
READS_VALUE: Final = frozenset(
    {"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__"}
)
TENSOR_ATTRIBUTES: Final = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
UNLESS_SET: Final[dict[str, Any]] = {
    "grad": None, "_grad": None, "_backward_hooks": None, "_post_accumulate_grad_hooks": None, "retains_grad": False,
    "output_nr": 0,
}  # fmt: skip
"""Attributes that a tensor of the caller's may have of its own, with what one that was made in the frame has."""
INDEXED_BY_TENSORS: Final = "numbers are tensors without dimensions"
"""In a tracer's state: what is indexed with 0-d tensors alone is looked up in the graph, not by their values."""


class Overloaded(Exception):
    """An operation was asked of a value whose class has a `__torch_function__`."""


class TensorVariable(VariableTracker):
    """A tensor.

    Invariant: `ref` holds its metadata as it is at this point of the trace; a sourced tensor becomes a graph input the
    first time the graph uses it, and was guarded by its metadata when it was wrapped.
    """

    __slots__ = ("_proxy", "attrs", "ref")

    def __init__(self, ref: TensorRef, proxy: Any = None, node: Node | None = None) -> None:
        super().__init__(node)
        self.ref = ref
        self._proxy = proxy
        self.attrs: dict[str, VariableTracker | None] = {}

    def get_type(self) -> type:
        return self.ref.facts.cls

    def describe(self) -> str:
        return self.node.user_path if self.node is not None else "a tensor"

    def as_proxy(self, tx: Tracer) -> Any:
        if self._proxy is None:
            assert self.node is not None
            self._proxy = tx.graph_input(self.node, self.ref)
        return tx.graph_node(self._proxy, self.ref)

    def as_meta(self, tx: Tracer) -> Any:
        return self.ref

    def is_made_in(self, graph: Any) -> bool:
        """Whether it is the result of an operation of an FX graph."""
        return self._proxy is not None and self._proxy.graph is graph

    def move(self, proxy: Any) -> None:
        """Make it the result of another node: of the graph around the one it was made in."""
        self._proxy = proxy

    def hash_key(self, tx: Tracer) -> Any:
        return self

    # -- attributes
    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if tx.function_modes and not callable(getattr(torch.Tensor, name, None)) and name != "__class__":
            return tx.torch_function("call_function", getattr, [self, tx.constant(name)], {})
        facts, name = self.ref.facts, "grad" if name == "_grad" else name
        if name == "shape":
            return tx.size_of(self)
        if fromfacts.is_known(name):
            return tx.wrap_result(None, tx.oracle_attribute(self.ref, name))
        if name == "__class__":
            return tx.class_variable(facts.cls)
        if name in TENSOR_ATTRIBUTES:
            return tx.record("call_function", getattr, [self, tx.constant(name)])
        if name in ("grad_fn", "_grad_fn") and (facts.is_leaf or not facts.requires_grad):
            return tx.constant(None)
        if name in UNLESS_SET and name not in self.attrs:
            return self._held(tx, name) or tx.constant(UNLESS_SET[name])
        if name == "_base":
            return self._held(tx, name) or self._base_of_view(tx)
        if name in self.attrs:
            found = self.attrs[name]
            if found is not None:
                return found
        return self._other_attribute(tx, name)

    def _held(self, tx: Tracer, name: str) -> VariableTracker | None:
        """An attribute of a tensor of the caller's."""
        return None if self.node is None else tx.wrap(self.node.child(CAttr(name)))

    def _base_of_view(self, tx: Tracer) -> VariableTracker:
        base = self.ref.base
        if base is None:
            return tx.constant(None)
        found = tx.wrap_result(None, base)
        if found.node is None and getattr(found, "_proxy", None) is None:  # a base that isn't in the frame
            tx.break_(reasons.UNKNOWN_ATTRIBUTE, name="_base", what=self.describe())
        return found

    def _other_attribute(self, tx: Tracer, name: str) -> VariableTracker:
        if self.node is not None:
            attributes = instance_dict(self.node.peek())
            child = self.node.named(DictAttr, name)
            if attributes is not None and name in attributes:
                return tx.wrap(child)
        found = ABSENT if type_lookup(torch.Tensor, name) is ABSENT else getattr(torch.Tensor, name)
        cls = self.ref.facts.cls
        if found is ABSENT and (raw := type_lookup(cls, name)) is not ABSENT:  # derived from Parameter
            bound = class_attribute(tx, self, cls, name, raw)
            if bound is not None:
                return bound
            tx.break_(reasons.UNKNOWN_ATTRIBUTE, name=name, what=self.describe())
        if found is ABSENT:  # what only the class has (`__name__`, `__call__`) isn't its tensors'
            if self.node is not None:
                tx.guard_absent(self.node.named(DictAttr, name))
            tx.raise_(AttributeError, f"{self.get_type().__name__!r} object has no attribute {name!r}")
        if callable(found):
            return TensorMethodVariable(self, name)
        if type(raw := type_lookup(cls, name)) in (
            str,
            int,
            NoneType,
        ):  # `__module__`, `__doc__`
            return tx.constant(raw)
        return tx.break_(reasons.UNKNOWN_ATTRIBUTE, name=name, what=self.describe())

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        tx.store_tensor_attribute(self, "grad" if name == "_grad" else name, value)

    # -- methods
    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call a tensor method by name: answered from metadata, recorded, or a break."""
        return tx.call_tensor_method(self, name, args, kwargs)

    # -- operators
    def nb_bool(self, tx: Tracer) -> bool:
        tx.break_(reasons.DATA_DEPENDENT_BRANCH, opname="bool()")

    def sq_length(self, tx: Tracer) -> VariableTracker:
        shape = self.ref.facts.shape
        if not shape:
            tx.raise_(TypeError, "len() of a 0-d tensor")
        return tx.size_item(self, 0)

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        if INDEXED_BY_TENSORS in tx.state:
            parts = [part.realize(tx) for part in key.children()] if key.get_type() is tuple else [key]
            if all(isinstance(part, TensorVariable) for part in parts):
                return tx.record("call_function", item_at, [self, *parts])
        key = key.realize(tx)
        if isinstance(getattr(key, "sym", None), torch.SymInt) and not tx.function_modes:
            return tx.record("call_function", torch.select, [self, tx.constant(0), key])
        return tx.record("call_function", operator.getitem, [self, key])

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        if value is None:
            tx.raise_(TypeError, "Tensor does not support deleting items")
        tx.record("call_function", operator.setitem, [self, key, value])

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        tx.break_(reasons.DATA_DEPENDENT_BRANCH, opname="in")

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        if not self.ref.facts.shape:
            tx.raise_(TypeError, "iteration over a 0-d tensor")
        return tx.iterate_tensor(self)

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if not _operand(other):
            return tx.constant(op == "!=") if op in ("==", "!=") else NOT_IMPLEMENTED
        return tx.record("call_function", COMPARE[op], [self, other])

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        if op not in BINARY or not _operand(right if left is self else left):
            return NOT_IMPLEMENTED
        return tx.record("call_function", BINARY[op], [left, right])

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        as_number: Any = getattr(right, "as_number_for", None)
        if as_number is not None:
            as_number(tx, self)
        elif op not in INPLACE or not _operand(right):
            return NOT_IMPLEMENTED
        return tx.record("call_function", INPLACE[op], [self, right])

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        if op in UNARY:
            return tx.record("call_function", UNARY[op], [self])
        return self.call_method(tx, f"__{op}__", [], {})

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        tx.break_(reasons.SCALAR_OUTPUT, call="repr()")

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        tx.break_(reasons.SCALAR_OUTPUT, call="format()")

    # -- rewritten code
    def children(self) -> Sequence[VariableTracker]:
        return [v for v in self.attrs.values() if v is not None]

    def reconstruct(self, to: Rebuilder) -> None:
        to.graph_output(self)

    def write_back(self, to: Rebuilder) -> None:
        for name, value in self.attrs.items():
            assert value is not None
            to.load(value)
            to.load(self)
            to.store_attr(name)


def _operand(value: VariableTracker) -> bool:
    """Whether a tensor operator takes it: a tensor or a number."""
    if isinstance(value, TensorVariable):
        return True
    if value.get_type().__module__ == "numpy":
        return False  # arrays and scalars say themselves what they are to a tensor
    return issubclass(value.get_type(), (int, float, complex, bool))


class TensorMethodVariable(CallableVariable):
    """A method of a tensor (or an array) that was loaded and not called yet."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__()
        self.owner = owner
        self.name = name

    def get_type(self) -> type:
        return bound_type(self.owner, self.name)

    def describe(self) -> str:
        return f"{'Tensor' if isinstance(self.owner, TensorVariable) else 'ndarray'}.{self.name}"

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        found: VariableTracker = self.owner.call_method(tx, self.name, args, kwargs)
        return found

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__self__":
            owner: VariableTracker = self.owner
            return owner
        if name in ("__name__", "__qualname__"):
            return tx.constant(self.name if name == "__name__" else self.describe())
        return super().tp_getattro(tx, name)

    def children(self) -> Sequence[VariableTracker]:
        return (self.owner,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.owner)
        to.load_attr(self.name)
        to.remember(self)


class AddressVariable(VariableTracker):
    """Where the data of a tensor is: a number that is known when the frame runs, but equal to that of the same tensor."""

    __slots__ = ("tensor",)
    python_type = int

    def __init__(self, tensor: TensorVariable) -> None:
        super().__init__()
        self.tensor = tensor

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        if op in ("==", "!=") and isinstance(other, AddressVariable) and other.tensor is self.tensor:
            return tx.constant(op == "==")
        self.unmodelled(tx, "a comparison")

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        self.unmodelled(tx, op)

    def children(self) -> Sequence[VariableTracker]:
        return (self.tensor,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(torch.Tensor.data_ptr, lambda: to.load(self.tensor))


def class_attribute(
    tx: Tracer, tensor: VariableTracker, cls: type, name: str, raw: Any
) -> VariableTracker | None:
    """What a class derived from `torch.Tensor` has under a name, through one of its tensors; None for a descriptor that
    isn't known.

    Args:
        tx: the translator.
        tensor: the tensor.
        cls: its class.
        name: the name.
        raw: what the class or one of its bases has there.
    """
    node = tx.class_node(cls).child(TypeAttr(name))
    if isinstance(raw, FunctionType):
        return BoundMethodVariable(tx.wrap(node), tensor)
    if isinstance(raw, property):
        return tx.call(tx.property_getter(node, raw), [tensor])
    if isinstance(raw, classmethod):
        return BoundMethodVariable(tx.unwrap_method(node, raw), tx.class_variable(cls))
    if isinstance(raw, staticmethod):
        return tx.unwrap_method(node, raw)
    return tx.wrap(node) if type_lookup(type(raw), "__get__") is ABSENT else None
