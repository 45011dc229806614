"""Families beyond the table of `wrap`: builtin containers, builtin bases of user classes, descriptors with C getters."""

from __future__ import annotations

import collections
import functools
import itertools
import types
import weakref
from typing import Any, Final

import torch
from torch.utils.hooks import RemovableHandle

from dynacheck import reasons
from dynacheck.bytecode.assemble import continues
from dynacheck.guards import Is, TypeIs
from dynacheck.guards.objects import LengthIs
from dynacheck.sources import ABSENT, CAttr, Converted, DictAttr, Local, Node, Referent
from dynacheck.variables import abstract, exceptions
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.callables import CachedFunctionVariable, PartialVariable, ScriptFunctionVariable
from dynacheck.variables.carried import BACKWARD, FORWARD, CarriedEnumerate, CarriedIterator, wrap_count
from dynacheck.variables.classes import SuperVariable
from dynacheck.variables.contexts import (
    AttentionKernels,
    AttentionKernelsVariable,
    AutocastVariable,
    GradModeVariable,
    InferenceModeVariable,
    NullContextVariable,
)
from dynacheck.variables.defaultdicts import DefaultDictVariable
from dynacheck.variables.deques import DequeVariable
from dynacheck.variables.functions import BoundMethodVariable, ObjectVariable
from dynacheck.variables.hooks import GivenHandleVariable, HookTableVariable, is_hook_table
from dynacheck.variables.instance_dicts import InstanceDictVariable
from dynacheck.variables.iterators import SequenceProtocolIterator
from dynacheck.variables.mappings import DictVariable, OrderedDictVariable
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.modules import NNModuleVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.proxies import MappingProxyVariable, proxied
from dynacheck.variables.sequences import (
    ListVariable,
    NamedTupleVariable,
    SizeVariable,
    TupleVariable,
    is_structseq,
)
from dynacheck.variables.sets import FrozenSetVariable, SetVariable
from dynacheck.variables.slices import RangeVariable, SliceVariable
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.weak_references import WeakReferenceVariable
from dynacheck.variables.wrap import wrap_user_object, wraps

_LENGTHY: Final[dict[type, type[Any]]] = {
    list: ListVariable, tuple: TupleVariable, torch.Size: SizeVariable, dict: DictVariable,
    collections.OrderedDict: OrderedDictVariable, collections.defaultdict: DefaultDictVariable,
}  # fmt: skip


@wraps(list, tuple, torch.Size, dict, collections.OrderedDict, collections.defaultdict)
def wrap_container(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    if isinstance(value, (list, tuple)):
        tx.guard(node, LengthIs(len(value)))  # as torch: a sequence that is looked at keeps its length
    if type(value) is collections.OrderedDict and is_hook_table(node):
        return HookTableVariable(None, node)
    made: VariableTracker = _LENGTHY[type(value)](None, node)
    return made


@wraps(set, frozenset)
def wrap_set(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    if any(
        issubclass(type(item), torch.Tensor) for item in value
    ):  # as torch: their order is another in each run
        tx.break_(reasons.UNKNOWN_VALUE, what=type(value).__name__, why="it has tensors, in no order")
    return (SetVariable if type(value) is set else FrozenSetVariable)(None, {}, node)


@wraps(collections.deque)
def wrap_deque(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    return DequeVariable(None, value.maxlen, node)


@wraps(slice)
def wrap_slice(tx: Tracer, node: Node, value: slice) -> VariableTracker:
    tx.guard(node, TypeIs(slice))
    return SliceVariable.sourced(tx, node)


@wraps(range)
def wrap_range(tx: Tracer, node: Node, value: range) -> VariableTracker:
    tx.guard_range(node, value)
    return RangeVariable(value, node)


@wraps(functools.partial)
def wrap_partial(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(functools.partial))
    return PartialVariable.sourced(tx, node)


@wraps(types.MappingProxyType)
def wrap_mapping_proxy(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    if type(proxied(value)) not in (dict, collections.OrderedDict):
        tx.break_(reasons.UNKNOWN_VALUE, what="mappingproxy", why="what it reads is no dict")
    tx.guard(node, TypeIs(types.MappingProxyType))
    mapping = tx.wrap(node.child(Converted(proxied, "___proxied"))).realize(tx)
    assert isinstance(mapping, DictVariable)
    return MappingProxyVariable(mapping, node)


@wraps(type(functools.lru_cache(len)))
def wrap_cached_function(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, Is(value))
    return CachedFunctionVariable(value, node)


@wraps(torch.jit.ScriptFunction)
def wrap_script_function(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, Is(value))
    if not hasattr(value, "_torchdynamo_inline"):  # not made of a function: loaded from a file
        tx.break_(reasons.UNKNOWN_VALUE, what="a scripted function", why="it isn't made of a Python function")
    return ScriptFunctionVariable(value, node)


@wraps(torch.no_grad, torch.enable_grad)
def wrap_grad_mode(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    return GradModeVariable(type(value), type(value) is torch.enable_grad, None, node)


@wraps(torch.set_grad_enabled)
def wrap_set_grad_enabled(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    mode, prev = (
        tx.wrap(node.child(DictAttr(name))).realize(tx).as_constant(tx) for name in ("mode", "prev")
    )
    return GradModeVariable(type(value), mode, prev, node)


@wraps(torch.inference_mode)
def wrap_inference_mode(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    mode = tx.wrap(node.child(DictAttr("mode"))).realize(tx).as_constant(tx)
    return InferenceModeVariable(type(value), mode, node)


@wraps(AttentionKernels)
def wrap_attention_kernels(tx: Tracer, node: Node, value: AttentionKernels) -> VariableTracker:
    tx.guard(node, TypeIs(AttentionKernels))
    kernels, priority = (
        tx.wrap(node.child(DictAttr(name))).realize(tx) for name in ("kernels", "set_priority")
    )
    numbers = tuple(item.realize(tx).as_constant(tx) for item in abstract.iterate(tx, kernels))
    return AttentionKernelsVariable(numbers, priority.as_constant(tx), node)


@wraps(torch.profiler.record_function)
def wrap_profiler_scope(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(type(value)))
    return NullContextVariable(type(value), None, node, scope=True)


@wraps(*FORWARD, BACKWARD)
def wrap_iterator(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    return CarriedIterator.wrap(tx, node, value) or wrap_user_object(tx, node, value)


@wraps(enumerate)
def wrap_enumerate(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    return CarriedEnumerate.wrap(tx, node, value) or wrap_user_object(tx, node, value)


@wraps(itertools.count)
def wrap_counting(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    return wrap_count(tx, node, value) or wrap_user_object(tx, node, value)


@wraps(weakref.ref)
def wrap_weak_reference(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(weakref.ref))
    target = node.child(Referent())
    if target.peek() is ABSENT:
        tx.guard_absent(target)
        return WeakReferenceVariable(tx.constant(None), node)
    return WeakReferenceVariable(tx.wrap(target), node)


@wraps(torch.autocast, torch.cuda.amp.autocast, torch.cpu.amp.autocast_mode.autocast)
def wrap_autocast(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    # it, or the method of it that enters, may be made in each call
    places = [n for n in (node, node.parent) if n is not None and isinstance(n.accessor, Local)]
    passed_on = bool(places) and continues(tx.root.frame.func.__code__)
    tx.guard(node, TypeIs(type(value)) if passed_on else Is(value))

    def read(name: str) -> Any:
        return tx.wrap(node.child(DictAttr(name))).realize(tx).as_constant(tx)

    arguments = (read("device"), read("fast_dtype"), read("_enabled"), read("_cache_enabled"))
    return AutocastVariable(type(value), arguments, node)


@wraps(RemovableHandle)
def wrap_hook_handle(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(RemovableHandle))  # each registration makes one, with an id of its own
    return GivenHandleVariable(node)


@wraps(super)
def wrap_super(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    owner = tx.wrap(node.child(CAttr("__self__"))).realize(tx)
    if owner.is_constant():
        tx.break_(reasons.UNKNOWN_VALUE, what="super", why="it is bound to no object")
    return _super(tx, node, value, owner)


def _super(tx: Tracer, node: Node, value: Any, owner: VariableTracker) -> VariableTracker:
    if not issubclass(SuperVariable(value.__thisclass__, owner).kind, value.__thisclass__):
        tx.break_(reasons.UNKNOWN_VALUE, what="super", why="its object only claims to be of the class")
    tx.guard(node, TypeIs(super))
    tx.guard(node.child(CAttr("__thisclass__")), Is(value.__thisclass__))
    return SuperVariable(value.__thisclass__, owner, node if value.__self__ is not None else None)


def builtin_base(tx: Tracer, node: Node, value: Any) -> BuiltinObject | None:
    """The data of the builtin class that a user's class derives from, read from the object itself."""
    for cls in type(value).__mro__:
        if cls in _LENGTHY:
            made: BuiltinObject = _LENGTHY[cls](None, node)
            return made
        if cls is set or cls is frozenset:
            return (SetVariable if cls is set else FrozenSetVariable)(None, {}, node)
        if cls is collections.deque:
            return DequeVariable(None, value.maxlen, node)
        if cls is bytearray and type(value) is not cls:  # itself it is an object of C code like others
            tx.break_(reasons.UNKNOWN_VALUE, what=type(value).__qualname__, why="it is a kind of bytearray")
    return None


def empty_base(tx: Tracer, cls: type) -> BuiltinObject | None:
    """The data of the builtin base of a new object of a user's class."""
    for base in cls.__mro__:
        if base is list:
            return ListVariable([])
        if base is collections.OrderedDict:
            return OrderedDictVariable({})
        if base is collections.defaultdict:
            return DefaultDictVariable({})
        if base is dict:
            return DictVariable({})
        if base is set:
            return SetVariable(set(), {})
        if base is collections.deque:
            return DequeVariable([])
        if base is not object and isinstance(vars(base).get("__new__"), types.BuiltinFunctionType):  # C code
            tx.break_(reasons.UNKNOWN_CALL, what=f"the class {cls.__qualname__}, a kind of {base.__name__}")
    return None


def construct(
    tx: Tracer, cls: ObjectVariable, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker | None:
    """Classes whose instances have trackers of their own; None for others."""
    value = cls.value
    if issubclass(value, BaseException):
        return exceptions.construct(tx, value, args, kwargs)
    if value.__module__ == "torch.return_types" and is_structseq(value) and len(args) == 1 and not kwargs:
        items = abstract.iterate(tx, args[0])
        return NamedTupleVariable(value, items, cls) if len(items) == value.n_sequence_fields else None
    if value is torch.nn.ModuleList and not kwargs:
        return NewModuleListVariable([] if not args else abstract.iterate(tx, args[0]))
    return None


class NewModuleListVariable(TupleVariable):
    """An `nn.ModuleList` made in the frame (a slice of another), which only its own items are asked of."""

    __slots__ = ()
    python_type = torch.nn.ModuleList

    def like(self, items: list[VariableTracker]) -> VariableTracker:
        return NewModuleListVariable(items)

    def is_constant(self) -> bool:
        return False

    def reconstruct(self, to: Rebuilder) -> None:
        def items() -> None:
            for item in self.children():
                to.load(item)
            to.build_list(len(self.children()))

        to.call_helper(torch.nn.ModuleList, items)
        to.remember(self)


def sequence_iterator(owner: VariableTracker) -> VariableTracker:
    """Iteration through `__getitem__`."""
    return SequenceProtocolIterator(owner)


def string_items(tx: Tracer, value: VariableTracker) -> dict[str, VariableTracker]:
    """The items of a dict whose keys are strings (keyword arguments)."""
    real = value.realize(tx)
    if isinstance(real, UserObjectVariable) and real.base is not None:
        real = real.base
    if not isinstance(real, DictVariable):
        found = {}
        for key in abstract.iterate(tx, tx.call(abstract.getattr_(tx, real, "keys"), [])):
            found[key.realize(tx).as_constant(tx)] = abstract.getitem(tx, real, key)
        return found
    return {k.realize(tx).as_constant(tx): v for k, v in real.content(tx).values()}


def instance_dict(tx: Tracer, owner: UserObjectVariable) -> VariableTracker:
    """`obj.__dict__`."""
    if owner.own_dict:
        return owner
    if owner.dictionary is None:
        owner.dictionary = InstanceDictVariable(owner)
    return owner.dictionary


def bind_descriptor(
    tx: Tracer, owner: VariableTracker, name: str, raw: Any, node: Node
) -> VariableTracker | None:
    """A callable class attribute with a C `__get__`."""
    if isinstance(raw, functools.cached_property):
        assert isinstance(owner, UserObjectVariable)
        tx.guard(node, Is(raw))
        value = tx.call(tx.wrap(node.child(DictAttr("func"))), [owner])
        owner.attrs[name] = value
        tx.mutated(owner)
        return value
    if isinstance(raw, functools.partial):
        return tx.wrap(node)
    if type(raw).__name__ == "_lru_cache_wrapper":
        return BoundMethodVariable(tx.wrap(node), owner)
    if isinstance(raw, types.MethodType):
        return tx.wrap(node)
    if type(raw) is super and getattr(raw, "__self__", None) is None:
        return _super(tx, node, raw, owner)
    return None


def store_buffer(tx: Tracer, module: NNModuleVariable, name: str, value: VariableTracker) -> None:
    """Assign a registered buffer: the module's `_buffers` dict gets the tensor."""
    if not isinstance(value, TensorVariable) and value.as_constant(tx) is not None:
        tx.raise_(
            TypeError,
            f"cannot assign {value.get_type()!r} as buffer {name!r} (torch.nn.Buffer, torch.Tensor or None expected)",
        )
    buffers = tx.wrap(module.container("_buffers")).realize(tx)
    assert isinstance(buffers, DictVariable)
    buffers.store(tx, tx.constant(name), value)
