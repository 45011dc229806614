"""Arrays and scalars of numpy: in the graph they are tensors, which rewritten code gives their class back."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final

import torch

from dynacheck import reasons
from dynacheck.accessors import Converted
from dynacheck.graph import arrays
from dynacheck.graph.arrays import SCALARS, numpy
from dynacheck.graph.behaviour import divides_integers
from dynacheck.graph.numbers import exact_float
from dynacheck.guards import Is, TypeIs
from dynacheck.sources import ABSENT, Node
from dynacheck.variables import abstract
from dynacheck.variables.base import NOT_IMPLEMENTED, ObservedException, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.iterators import IndexIterator
from dynacheck.variables.sequences import ListVariable, TupleVariable
from dynacheck.variables.tensor import BINARY, COMPARE, INPLACE, UNARY, TensorMethodVariable, TensorVariable
from dynacheck.variables.wrap import wraps

KEEP_ARRAYS: Final = frozenset({
    "array", "asarray", "ascontiguousarray", "atleast_1d", "zeros", "ones", "full", "empty", "zeros_like", "ones_like",
    "full_like", "empty_like", "reshape", "squeeze", "copy", "transpose", "view", "broadcast_to", "astype", "T", "real",
    "imag", "swapaxes", "moveaxis", "where", "roll", "pad",
})  # fmt: skip
"""What returns an array without dimensions as it is; other operations make a scalar of one."""
_OF_SCALARS: Final = frozenset({"T", "real", "imag", "astype", "squeeze", "transpose"})
"""Those of them that give a scalar of a scalar."""
_LISTS: Final = frozenset({"split", "array_split", "hsplit", "vsplit", "dsplit"})
"""What returns a list where torch's numpy returns a tuple."""
_WRITERS: Final = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask", "fill"})
"""What writes to its first argument and returns nothing."""
_GIVEN: Final = "arrays that came into the frame"
"""Key in `Tracer.state`."""
_ATTRIBUTES: Final = frozenset({"T", "real", "imag", "flat"})
_UNKNOWN: Final = frozenset({"base", "flags", "dtype", "ctypes", "data", "strides", "nbytes"})
_READS: Final = frozenset({"item", "tolist", "tobytes", "tostring", "tofile", "dump", "dumps"})


class ArrayVariable(VariableTracker):
    """An array, or a scalar of numpy.

    Args:
        tensor: its numbers.
        scalar: whether it is a scalar.
        node: where it comes from.
    """

    __slots__ = ("read_only", "scalar", "tensor")

    def __init__(self, tensor: TensorVariable, scalar: bool, node: Node | None = None) -> None:
        super().__init__(node)
        self.tensor = tensor
        self.scalar = scalar
        self.read_only = False

    def get_type(self) -> type:
        found: type = numpy.ndarray
        if self.scalar:
            found = getattr(
                numpy, str(self.tensor.ref.facts.dtype).removeprefix("torch.").replace("bool", "bool_")
            )
        return found

    def describe(self) -> str:
        return self.node.user_path if self.node is not None else "an array"

    def as_proxy(self, tx: Tracer) -> Any:
        return self.tensor.as_proxy(tx)

    def as_meta(self, tx: Tracer) -> Any:
        return self.tensor.as_meta(tx)

    def hash_key(self, tx: Tracer) -> Any:
        if self.scalar:
            tx.break_(reasons.SCALAR_OUTPUT, call="hash()")
        tx.raise_(TypeError, "unhashable type: 'numpy.ndarray'")

    # -- attributes and methods
    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        shape = self.tensor.ref.facts.shape
        if name in ("shape", "size"):
            sizes = [tx.size_item(self.tensor, i) for i in range(len(shape))]
            if name == "shape":
                return tx.tuple_of(sizes)
            return reduce(partial(abstract.binary, tx, "*"), sizes, tx.constant(1))
        if name in ("ndim", "itemsize"):
            return tx.constant(len(shape) if name == "ndim" else self.tensor.ref.facts.dtype.itemsize)
        if name == "__class__":
            return tx.object(self.get_type())
        if name in _ATTRIBUTES:
            return self._recorded(tx, arrays.attribute(name), [self])
        found = getattr(self.get_type(), name, ABSENT)
        if callable(found) or (name not in _UNKNOWN and arrays.has_method(name)):
            return TensorMethodVariable(self, name)
        if found is ABSENT:
            tx.raise_(AttributeError, f"{self.get_type()!r} object has no attribute {name!r}")
        tx.break_(reasons.UNKNOWN_ATTRIBUTE, name=name, what=self.describe())

    def call_method(
        self, tx: Tracer, name: str, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "item" and not args and not kwargs and (known := self._known(tx)) is not None:
            return tx.constant(known)
        if name in _READS:
            tx.break_(reasons.SCALAR_OUTPUT, call=f"ndarray.{name}()")
        if name == "__len__":
            return self.sq_length(tx)
        if name in _UNKNOWN or not arrays.has_method(name):
            tx.break_(reasons.UNKNOWN_CALL, what=f"ndarray.{name}")
        return self._recorded(tx, arrays.method(name), [self, *args], kwargs)

    def _recorded(
        self,
        tx: Tracer,
        target: arrays.OnTensors,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker] | None = None,
    ) -> VariableTracker:
        return record(tx, target, args, kwargs or {})

    def _known(self, tx: Tracer) -> float | None:
        """The float that it holds, where it is made of Python's numbers: torch keeps those."""
        return exact_float(self.tensor.ref, tx.specialize)

    # -- operators
    def nb_bool(self, tx: Tracer) -> bool:
        known = self._known(tx)
        if known is not None:
            return bool(known)
        tx.break_(reasons.DATA_DEPENDENT_BRANCH, opname="bool()")

    def sq_length(self, tx: Tracer) -> VariableTracker:
        if not self.tensor.ref.facts.shape:
            what = f"object of type {self.get_type().__name__!r} has no len()"
            tx.raise_(TypeError, what if self.scalar else "len() of unsized object")
        return tx.size_item(self.tensor, 0)

    def sq_contains(self, tx: Tracer, item: VariableTracker) -> VariableTracker:
        tx.break_(reasons.DATA_DEPENDENT_BRANCH, opname="in")

    def mp_subscript(self, tx: Tracer, key: VariableTracker) -> VariableTracker:
        return self._recorded(tx, arrays.operator_of(operator.getitem), [self, key])

    def mp_ass_subscript(self, tx: Tracer, key: VariableTracker, value: VariableTracker | None) -> None:
        if value is None:
            tx.raise_(ValueError, "cannot delete array elements")
        self.writes(tx)
        self._recorded(tx, arrays.operator_of(operator.setitem), [self, key, value])

    def writes(self, tx: Tracer) -> None:
        """Before it is written to: an array that can't be is a copy in the graph."""
        if _is_read_only(tx, self.tensor):
            tx.break_(reasons.UNKNOWN_OPERATION, operation="writing", what=self.describe())

    def tp_iter(self, tx: Tracer) -> VariableTracker:
        shape = self.tensor.ref.facts.shape
        if not shape:
            what = f"{self.get_type().__name__!r} object is not iterable"
            tx.raise_(TypeError, what if self.scalar else "iteration over a 0-d array")
        length = shape[0] if type(shape[0]) is int else tx.specialize(shape[0])
        items = [self.mp_subscript(tx, tx.constant(i)) for i in range(length)]
        return IndexIterator(TupleVariable(items), type(iter(())))

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        return self._operation(tx, COMPARE[op], self, other)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        return self._operation(tx, BINARY[op], left, right) if op in BINARY else NOT_IMPLEMENTED

    def nb_inplace(self, tx: Tracer, op: str, right: VariableTracker) -> VariableTracker | object:
        if op not in INPLACE or self.scalar:
            return NOT_IMPLEMENTED
        self.writes(tx)
        return self._operation(tx, INPLACE[op], self, right)

    def _operation(
        self, tx: Tracer, function: Callable[..., Any], left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        other = right if left is self else left
        if isinstance(other, TensorVariable):
            self.as_number_for(tx, other)
            return tx.record("call_function", function, [left, right])
        if not isinstance(other, ArrayVariable) and not issubclass(other.get_type(), (int, float, complex)):
            tx.break_(reasons.UNKNOWN_OPERATION, operation=function.__name__, what=self.describe())
        return self._recorded(tx, arrays.operator_of(function), [left, right])

    def as_number_for(self, tx: Tracer, tensor: TensorVariable) -> None:
        """A scalar is a number to a tensor, whose dtype may not depend on the scalar's; an array isn't modelled."""
        mine, its = self.tensor.ref.facts.dtype, tensor.ref.facts.dtype
        stays = torch.result_type(torch.empty(1, dtype=its), torch.empty((), dtype=mine)) is its
        if not self.scalar or not stays or not tensor.ref.facts.shape:
            tx.break_(reasons.UNKNOWN_OPERATION, operation="arithmetic with a tensor", what=self.describe())

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        if op not in UNARY:
            known = self._known(tx)
            if known is not None:
                return tx.constant(known).nb_unary(tx, op)
            tx.break_(reasons.SCALAR_OUTPUT, call=f"{op}()")
        return self._recorded(tx, arrays.operator_of(UNARY[op]), [self])

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        tx.break_(reasons.SCALAR_OUTPUT, call="repr()")

    def tp_format(self, tx: Tracer, spec: str) -> VariableTracker:
        known = self._known(tx) if self.scalar and self.get_type() is numpy.float64 else None
        if known is not None:
            return tx.constant(format(numpy.float64(known), spec))
        tx.break_(reasons.SCALAR_OUTPUT, call="format()")

    # -- rewritten code
    def children(self) -> Sequence[VariableTracker]:
        return (self.tensor,)

    def reconstruct(self, to: Rebuilder) -> None:
        kept = arrays.as_read_only if self.read_only else arrays.as_array
        to.call_helper(arrays.as_scalar if self.scalar else kept, lambda: to.load(self.tensor))
        to.remember(self)


def _is_read_only(tx: Tracer, tensor: TensorVariable) -> bool:
    """Whether a tensor stands for memory of an array that came in and can't be written to; guarded."""
    for given in tx.state.get(_GIVEN, ()):
        if given.tensor.ref.storage is tensor.ref.storage:
            node = given.node.child(Converted(arrays.writable, "writable"))
            if node.peek() is ABSENT:
                return True
            tx.wrap(node).realize(tx)
    return False


def record(
    tx: Tracer, target: arrays.OnTensors, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """Record an operation on arrays.

    Args:
        tx: the translator.
        target: the operation.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        The array, scalar or sequence of them that it returns.
    """
    name = target.__name__.removeprefix("wrapped_")
    for written in (kwargs.get("out"), args[0] if name in _WRITERS and args else None):
        if isinstance(written, ArrayVariable):
            written.writes(tx)
    given = [_plain(tx, arg) for arg in args]
    named = {name: _plain(tx, arg) for name, arg in kwargs.items()}
    if divides_integers(
        target, [arg.as_meta(tx) for arg in given]
    ):  # numpy does; then the frame is run again
        if tx.graph.changes_state():
            tx.break_(reasons.RAISE_IN_TRY, call=target.__name__)
        tx.graph.caught = True
    try:
        found = tx.record("call_function", target, given, named)
    except ObservedException as raised:  # torch's numpy refuses what numpy may take
        why = f"torch's numpy raises {raised.exception.get_type().__name__}"
        tx.break_(reasons.OPERATOR_FAILED, call=f"numpy.{name}", why=why)
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, ArrayVariable) and arg.tensor is found:  # `out`, and operators in place
            return arg
    if name in _WRITERS:
        return tx.constant(None)
    if name in _LISTS and isinstance(found, TupleVariable):
        found = ListVariable(found.items(tx))
    first = args[0].realize(tx) if args else None
    scalar = name in _OF_SCALARS and isinstance(first, ArrayVariable) and first.scalar
    return _as_arrays(tx, found, scalar or name not in KEEP_ARRAYS)


def _plain(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """An argument as torch's numpy takes it: dtypes by name; tensors aren't what the program gets from numpy."""
    real = value.realize(tx)
    if isinstance(real, TensorVariable):
        tx.break_(reasons.UNKNOWN_CALL, what="a function of numpy with a tensor")
    if isinstance(real, (ListVariable, TupleVariable)):
        return type(real)([_plain(tx, item) for item in real.items(tx)])
    if isinstance(real, ObjectVariable) and (isinstance(real.value, (type, numpy.dtype))):
        try:
            return tx.constant(numpy.dtype(real.value).name)
        except TypeError:
            return real
    return real


def _as_arrays(tx: Tracer, found: VariableTracker, scalar: bool) -> VariableTracker:
    if isinstance(found, TensorVariable):
        made = ArrayVariable(found, scalar and not found.ref.facts.shape)
        made.read_only = not made.scalar and _is_read_only(tx, found)
        return made
    if isinstance(found, (ListVariable, TupleVariable)):
        return type(found)([_as_arrays(tx, item, scalar) for item in found.items(tx)])
    return found


def of_tensor(tx: Tracer, tensor: TensorVariable) -> VariableTracker:
    """`tensor.numpy()` of a tensor that has an array."""
    made = tx.record("call_method", "view_as", [tensor, tensor])
    assert isinstance(made, TensorVariable)
    return ArrayVariable(made, False)


def wrap_array(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """An array or scalar, as a tensor over its memory, or a copy where it can't be written to."""
    tx.guard(node, TypeIs(type(value)))
    child = node.child(Converted(arrays.tensor_of, "___from_numpy"))
    if child.peek() is ABSENT:
        tx.break_(
            reasons.UNKNOWN_VALUE, what=node.user_path, why="no tensor has the array's dtype or strides"
        )
    tensor = tx.wrap(child).realize(tx)
    assert isinstance(tensor, TensorVariable)
    found = ArrayVariable(tensor, type(value) in SCALARS, node)
    tx.state.setdefault(_GIVEN, []).append(found)
    return found


def wrap_numpys(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    """A function, or a dtype, of numpy."""
    try:
        tx.guard(node, Is(value))
    except TypeError:  # a program's own: nothing keeps it
        tx.break_(reasons.UNKNOWN_VALUE, what=node.user_path, why="it is no function or dtype of numpy's own")
    return DtypeVariable(value, node) if isinstance(value, numpy.dtype) else ObjectVariable(value, node)


class DtypeVariable(ObjectVariable):
    """A dtype of numpy, which equals its names and classes."""

    __slots__ = ()

    def tp_richcompare(self, tx: Tracer, op: str, other: VariableTracker) -> VariableTracker | object:
        known = other.is_constant() or isinstance(other, ObjectVariable)
        if op not in ("==", "!=") or not known:
            tx.break_(reasons.UNKNOWN_OPERATION, operation=op, what=self.describe())
        value = other.value if isinstance(other, ObjectVariable) else other.as_constant(tx)
        return tx.constant((self.value == value) is (op == "=="))


if numpy is not None:
    wraps(numpy.ndarray, *SCALARS)(wrap_array)
    wraps(numpy.ufunc, type(numpy.prod), type(numpy.dtype("float32")), *map(type, map(numpy.dtype, SCALARS)))(
        wrap_numpys
    )
