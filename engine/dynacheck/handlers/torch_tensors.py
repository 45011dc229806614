"""Methods of tensors: answered from metadata, recorded, or a break."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Any, Final

import torch

from dynacheck import reasons
from dynacheck.graph.custom import register_hook
from dynacheck.graph.oracle import DataDependent, OperatorRaised, UnsupportedOperator
from dynacheck.graph.subgraphs import union
from dynacheck.graph.throwaway import on_its_own
from dynacheck.sources import type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.hooks import GraphHookVariable, TensorHookVariable
from dynacheck.variables.iterators import IndexIterator
from dynacheck.variables.sequences import ListVariable, SequenceVariable, TupleVariable
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import BINARY, COMPARE, AddressVariable, TensorVariable

# Answered from the tensor's metadata, without a node in the graph.
METADATA: Final = frozenset({
    "size", "stride", "dim", "ndimension", "numel", "nelement", "is_contiguous", "element_size", "is_floating_point",
    "is_complex", "get_device", "__len__", "has_names",
})  # fmt: skip
READS_VALUE: Final = frozenset({
    "item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__",
    "__repr__", "__str__",
    "__format__", "numpy", "__array__", "is_nonzero", "equal", "storage",
    "storage_type", "apply_", "map_", "map2_",
})  # fmt: skip
BACKWARD: Final = frozenset({"backward"})
OF_A_GRADIENT: Final = "strides are those of a gradient"
"""In a tracer's state: a hook is interpreted, and autograd chooses the strides of what it gets."""
_DUNDERS: Final[dict[str, str]] = {
    "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__floordiv__": "//", "__mod__": "%",
    "__pow__": "**", "__matmul__": "@", "__and__": "&", "__or__": "|", "__xor__": "^", "__lshift__": "<<",
    "__rshift__": ">>",
}  # fmt: skip
_COMPARES: Final = {
    "__lt__": "<",
    "__le__": "<=",
    "__eq__": "==",
    "__ne__": "!=",
    "__gt__": ">",
    "__ge__": ">=",
}

Special = Callable[
    [Tracer, TensorVariable, list[VariableTracker], dict[str, VariableTracker]], VariableTracker
]
_SPECIAL: Final[dict[str, Special]] = {}


def special(*names: str) -> Callable[[Special], Special]:
    """Register a tensor method that is neither answered from metadata nor recorded as it is."""

    def add(fn: Special) -> Special:
        for name in names:
            _SPECIAL[name] = fn
        return fn

    return add


VIEWS_IN_PLACE: Final = frozenset((
    "as_strided_", "detach_", "set_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
))  # fmt: skip
"""What torch traces for tensors that the graph makes alone."""


def call_method(
    tx: Tracer,
    tensor: TensorVariable,
    name: str,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker:
    """Call a tensor method.

    Args:
        tx: the translator.
        tensor: the tensor.
        name: the method.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        The result's tracker.
    """
    if name in VIEWS_IN_PLACE and tensor.node is not None:
        tx.break_(reasons.RESIZE, call=f"Tensor.{name}()")
    found = _SPECIAL.get(name)
    if found is not None:
        return found(tx, tensor, args, kwargs)
    if name == "random_" or any(map(iskeyword, kwargs)):  # the code of a graph can't name `from`
        tx.break_(reasons.UNKNOWN_CALL, what=f"Tensor.{name}")
    if name in METADATA:
        return metadata(tx, tensor, name, args, kwargs)
    if name in READS_VALUE:
        tx.break_(reasons.SCALAR_OUTPUT, call=f"Tensor.{name}()")
    if name in BACKWARD:
        tx.break_(reasons.BACKWARD_CALL, call=f"Tensor.{name}()")
    if name in _DUNDERS and len(args) == 1:
        return tx.record("call_function", BINARY[_DUNDERS[name]], [tensor, args[0]])
    if name in _COMPARES and len(args) == 1:
        return tx.record("call_function", COMPARE[_COMPARES[name]], [tensor, args[0]])
    if name == "__getitem__":
        return tensor.mp_subscript(tx, args[0])
    if name == "__setitem__":
        tensor.mp_ass_subscript(tx, args[0], args[1])
        return tx.constant(None)
    if name == "__iter__":
        return tensor.tp_iter(tx)
    return tx.record("call_method", name, [tensor, *args], kwargs)


def metadata(
    tx: Tracer,
    tensor: TensorVariable,
    name: str,
    args: Sequence[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker:
    """A method whose answer is in the tensor's metadata."""
    if name in ("stride", "is_contiguous") and OF_A_GRADIENT in tx.state:
        tx.break_(reasons.UNKNOWN_CALL, what=f"Tensor.{name}, which gradients tell when they are there,")
    if name == "size" and not args and not kwargs:
        return tx.size_of(tensor)
    if name == "__len__":
        return tensor.sq_length(tx)
    values = [a.as_meta(tx) for a in args]
    named = {k: v.as_meta(tx) for k, v in kwargs.items()}
    try:
        found = tx.oracle_attribute(tensor.ref, name, *values, **named)
    except OperatorRaised as error:
        tx.raise_(type(error.exc), *error.exc.args)
    except (DataDependent, UnsupportedOperator):
        tx.break_(reasons.UNKNOWN_CALL, what=f"Tensor.{name}")
    return tx.wrap_result(None, found)


@special("item")
def item(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    if not tx.captures_scalars():
        tx.break_(reasons.SCALAR_OUTPUT, call="Tensor.item()")
    if tx.env is None:
        tx.need_symbols()
    return tx.record("call_method", "item", [tensor, *args], kwargs)


_NUMBERS: Final = {"__int__": "int", "__index__": "int", "__float__": "float"}
_INTEGERS: Final = (torch.int8, torch.int16, torch.int32, torch.int64)


def _reading(name: str) -> None:
    """Numbers that only the graph knows, where they are asked for: `int(t)`, `float(t)`, `bool(t)`, `t.tolist()`."""

    @special(name)
    def read(
        tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        facts = tensor.ref.facts
        whole = name != "tolist" or facts.dtype in _INTEGERS
        if not tx.captures_scalars() or not whole or facts.dtype.is_complex:
            tx.break_(reasons.SCALAR_OUTPUT, call=f"Tensor.{name}()")
        if name == "tolist":
            return _listed(tx, tensor)
        number = item(tx, tensor, [], {})
        if name == "__bool__":
            return (
                number
                if number.get_type() is bool
                else abstract.richcompare(tx, "!=", number, tx.constant(0))
            )
        return number.nb_unary(tx, _NUMBERS[name])


for _read in (*_NUMBERS, "__bool__", "tolist"):
    _reading(_read)


def _listed(tx: Tracer, tensor: VariableTracker) -> VariableTracker:
    assert isinstance(tensor, TensorVariable)
    if not tensor.ref.facts.shape:
        return item(tx, tensor, [], {})
    return ListVariable([_listed(tx, part) for part in abstract.iterate(tx, tensor)])


def holds_unread(tx: Tracer, data: VariableTracker) -> bool:
    """Whether a number, or a sequence that a tensor is made of, has parts that only the graph knows."""
    value = data.realize(tx)
    if isinstance(value, (TensorVariable, SymNumberVariable)):
        return True
    return isinstance(value, SequenceVariable) and any(holds_unread(tx, i) for i in value.items(tx))


@special("new_tensor")
def new_tensor(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    if len(args) != 1 or isinstance(args[0], TensorVariable) or not holds_unread(tx, args[0]):
        return tx.record("call_method", "new_tensor", [tensor, *args], kwargs)
    like = {name: tensor.tp_getattro(tx, name) for name in ("dtype", "device")}
    return tx.record("call_function", torch._refs.tensor, args, {**like, **kwargs})


@special("data_ptr")
def data_ptr(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    return AddressVariable(tensor)


@special("requires_grad_")
def requires_grad_(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    wanted = [*args, *kwargs.values(), tx.constant(True)][0].realize(tx).as_constant(tx)
    facts = tensor.ref.facts
    raises = not facts.is_leaf and not wanted
    if wanted != facts.requires_grad and not raises:  # as torch, which doesn't change it in a graph
        tx.break_(reasons.BACKWARD_CALL, call="Tensor.requires_grad_()")
    return tx.record("call_method", "requires_grad_", [tensor, *args], kwargs)


def _hook(method: str) -> None:
    @special(method)
    def register(
        tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        facts = tensor.ref.facts
        if len(args) != 1 or kwargs or not facts.requires_grad:
            tx.break_(reasons.BACKWARD_CALL, call=f"Tensor.{method}()")
        if tensor.node is None and method == "register_hook" and tensor.is_made_in(tx.graph.graph):
            return _hook_of_graph(tx, tensor, args[0])
        if tensor.node is None or tensor.ref.storage.written:
            tx.break_(reasons.BACKWARD_CALL, call=f"Tensor.{method}()")
        handle = TensorHookVariable(tensor, method, args[0].realize(tx))
        tx.effects.mutated(handle)
        return handle


def _hook_of_graph(tx: Tracer, tensor: TensorVariable, hook: VariableTracker) -> VariableTracker:
    """A hook on a tensor that the graph makes: the graph registers it, as a graph of its own."""
    grad = on_its_own(tensor.ref.facts.replace(requires_grad=False, is_leaf=True, view=None))
    previous = torch.is_grad_enabled()
    try:
        with tx.function_graph(hook) as recorder:
            torch._C._set_grad_enabled(False)
            tx.state[OF_A_GRADIENT] = True
            result = tx.call(hook, [tx.wrap_result(recorder.argument("grad"), grad)]).realize(tx)
            if not isinstance(result, TensorVariable) and not abstract.is_none(tx, result):
                tx.break_(reasons.BACKWARD_CALL, call="Tensor.register_hook()")
            recorder.close(result.as_proxy(tx) if isinstance(result, TensorVariable) else None)
    finally:
        torch._C._set_grad_enabled(previous)
        tx.state.pop(OF_A_GRADIENT, None)
    if recorder.has_own_symbols:
        tx.break_(reasons.BACKWARD_CALL, call="Tensor.register_hook()")
    lifted = union([recorder])
    body = recorder.module(lifted, "hook_body")
    module = tx.graph.add_module("hook_body", body, recorder)
    tensor.move(tx.graph_call(register_hook, [tensor.as_proxy(tx), module, *lifted]))
    return GraphHookVariable()


for _method in ("register_hook", "register_post_accumulate_grad_hook"):
    _hook(_method)


@special("retain_grad")
def retain_grad(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    return tx.give_up(reasons.BACKWARD_CALL, call="Tensor.retain_grad()")


@special("resize_", "resize_as_", "resize")
def resize(
    tx: Tracer, tensor: TensorVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    return tx.break_(reasons.RESIZE, call="Tensor.resize_()")


def iterate(tx: Tracer, tensor: TensorVariable) -> VariableTracker:
    """Iterate over the first dimension: `unbind`, as `Tensor.__iter__` does."""
    size = tensor.ref.facts.shape[0]
    length = size if type(size) is int else tx.specialize(size)
    items = [tx.record("call_function", operator.getitem, [tensor, tx.constant(i)]) for i in range(length)]
    return IndexIterator(TupleVariable(items), type(iter(())))


def store_attribute(tx: Tracer, tensor: TensorVariable, name: str, value: VariableTracker | None) -> None:
    """Assign an attribute of a tensor."""
    if name == "data" and value is not None and value.realize(tx) is tensor:
        return  # a conversion that had nothing to convert (`module.to`)
    by_c = isinstance(
        type_lookup(torch.Tensor, name), types.GetSetDescriptorType
    )  # `x.real = 3` writes to the tensor
    if value is None or name == "names" or (by_c and name[0] != "_" and name != "grad"):
        tx.break_(
            reasons.UNKNOWN_OPERATION, operation=f"writing the attribute {name!r}", what=tensor.describe()
        )
    tensor.attrs[name] = value
    tx.mutated(tensor)


__all__: list[Any] = ["call_method", "iterate", "metadata", "store_attribute"]
