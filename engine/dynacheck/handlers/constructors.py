"""Calls of builtin types."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from types import ClassMethodDescriptorType, MappingProxyType
from typing import Any

import torch

from dynacheck.handlers.folding import fold_call, folds
from dynacheck.handlers.registry import handles
from dynacheck.reasons import UNKNOWN_CALL
from dynacheck.sources import ABSENT, HEAP_TYPE, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.classes import ClassVariable
from dynacheck.variables.coerce import integer
from dynacheck.variables.defaultdicts import DefaultDictVariable
from dynacheck.variables.deques import DequeVariable
from dynacheck.variables.handing_on import typed
from dynacheck.variables.indices import new_slice
from dynacheck.variables.listing import listed
from dynacheck.variables.made_classes import make_class
from dynacheck.variables.mappings import DictVariable, OrderedDictVariable
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.proxies import MappingProxyVariable
from dynacheck.variables.results import fold
from dynacheck.variables.sequences import (
    ListVariable,
    NamedTupleVariable,
    SizeVariable,
    TupleVariable,
    is_structseq,
    keeps_slots,
)
from dynacheck.variables.sets import FrozenSetVariable, SetVariable, merged
from dynacheck.variables.slices import RangeVariable
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import TensorVariable
from dynacheck.versions import torch_since

Arg = VariableTracker


@handles(list)
def make_list(tx: Tracer, values: Arg | None = None, /) -> VariableTracker:
    made = ListVariable([])
    if values is not None:
        made.m_extend(tx, values)
    return made


@handles(tuple)
def make_tuple(tx: Tracer, values: Arg | None = None, /) -> VariableTracker:
    if values is None:
        return TupleVariable([])
    if values.get_type() is tuple:
        return values
    return TupleVariable(listed(tx, values))


@handles(tuple.__new__)
def new_tuple(tx: Tracer, cls: Arg, values: Arg | None = None, /) -> VariableTracker | None:
    kind = abstract.python_class(cls)
    if kind is tuple:
        return make_tuple(tx, values) if values is not None else TupleVariable([])
    if kind is None or is_structseq(kind):
        return None
    items = [] if values is None else listed(tx, values)
    if hasattr(kind, "_fields") and keeps_slots(kind):
        return NamedTupleVariable(kind, items, cls)
    return _derived(cls, tuple, TupleVariable(items))


def _derived(cls: VariableTracker, base: type, contents: BuiltinObject) -> VariableTracker | None:
    """An object of a class of the program's that is a kind of an immutable container."""
    kind = abstract.python_class(cls)
    if not isinstance(cls, ClassVariable) or kind is None:
        return None
    between = kind.__mro__[: kind.__mro__.index(base)]
    if not all(c.__flags__ & HEAP_TYPE for c in between):  # torch.Size
        return None
    return UserObjectVariable(kind, None, None, contents)


@handles(frozenset.__new__)
def new_frozen_set(tx: Tracer, cls: Arg, values: Arg | None = None, /) -> VariableTracker | None:
    kind = abstract.python_class(cls)
    if kind is frozenset:
        return make_frozenset(tx, values)
    return _derived(cls, frozenset, FrozenSetVariable.of(tx, merged(tx, values)))


@handles(torch.Size)
def make_size(tx: Tracer, values: Arg | None = None, /) -> VariableTracker:
    items = [] if values is None else listed(tx, values)
    for item in items:
        if not abstract.has(tx, item.realize(tx), "__index__"):
            name = abstract.name_of(item.realize(tx))
            tx.raise_(TypeError, f"torch.Size() takes an iterable of 'int' (item 0 is '{name}')")
    numbers = [v.nb_unary(tx, "index") if isinstance(v.realize(tx), TensorVariable) else v for v in items]
    return SizeVariable(numbers)


@handles(dict, lazy=True)
def make_dict(tx: Tracer, /, *args: Arg, **named: Arg) -> VariableTracker:
    made = DictVariable({})
    return _initialized(tx, made, "dict", args, named)


@handles(OrderedDict, lazy=True)
def make_ordered_dict(tx: Tracer, /, *args: Arg, **named: Arg) -> VariableTracker:
    made = OrderedDictVariable({})
    return _initialized(tx, made, "OrderedDict", args, named)


def _initialized(
    tx: Tracer, made: DictVariable, name: str, args: tuple[Arg, ...], named: dict[str, Arg]
) -> VariableTracker:
    if len(args) > 1:
        tx.raise_(TypeError, f"{name} expected at most 1 argument, got {len(args)}")
    made.m_update(tx, *args, **named)
    return made


@handles(defaultdict, lazy=True)
def make_defaultdict(tx: Tracer, /, *args: Arg, **named: Arg) -> VariableTracker:
    made = DefaultDictVariable({})
    made.m___init__(tx, *args, **named)
    return made


@handles(set)
def make_set(tx: Tracer, values: Arg | None = None, /) -> VariableTracker:
    made: VariableTracker = SetVariable.of(tx, merged(tx, values))
    return made


@handles(frozenset)
def make_frozenset(tx: Tracer, values: Arg | None = None, /) -> VariableTracker:
    if values is not None and values.get_type() is frozenset:
        return values
    made: VariableTracker = FrozenSetVariable.of(tx, merged(tx, values))
    return made


@handles(deque)
def make_deque(tx: Tracer, iterable: Arg | None = None, maxlen: Arg | None = None) -> VariableTracker:
    limit = None
    if maxlen is not None and not abstract.is_none(tx, maxlen):
        limit = integer(tx, maxlen)
        if limit < 0:
            tx.raise_(ValueError, "maxlen must be non-negative")
    return DequeVariable([] if iterable is None else abstract.iterate(tx, iterable), limit)


@handles(range)
def make_range(tx: Tracer, *bounds: Arg) -> VariableTracker:
    return RangeVariable(_range(tx, [integer(tx, b) for b in bounds]))


def _range(tx: Tracer, bounds: list[int]) -> range:
    try:
        return range(*bounds)
    except (TypeError, ValueError) as error:
        tx.raise_(type(error), *error.args)


@handles(slice, lazy=True)
def make_slice(tx: Tracer, *parts: Arg) -> VariableTracker:
    if not 1 <= len(parts) <= 3:
        fold(tx, slice, *[None] * len(parts))
    none = tx.constant(None)
    if len(parts) == 1:
        return new_slice(tx, none, parts[0], none)
    return new_slice(tx, parts[0], parts[1], parts[2] if len(parts) == 3 else none)


@handles(object)
def make_object(tx: Tracer) -> VariableTracker:
    if not torch_since(2, 14):
        tx.break_(UNKNOWN_CALL, what="object()")
    return UserObjectVariable(object)


# -- scalars


@handles(str)
def make_str(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker | None:
    if len(args) == 1 and not named:
        return abstract.str_(tx, args[0])
    return fold_call(tx, str, args, named)


@handles(bool)
def make_bool(tx: Tracer, value: Arg | None = None, /) -> VariableTracker:
    if isinstance(value, TensorVariable) and tx.captures_scalars():
        return value.call_method(tx, "__bool__", [], {})
    return tx.constant(value is not None and abstract.is_true(tx, value))


@handles(int)
def make_int(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker | None:
    return _number(tx, int, args, named, ("__int__", "int"), ("__index__", "index"))


@handles(float)
def make_float(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker | None:
    return _number(tx, float, args, named, ("__float__", "float"), ("__index__", "index"))


@handles(complex)
def make_complex(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker | None:
    for number in (*args, *named.values()):
        if isinstance(number, SymNumberVariable):
            number.needs_plain(tx, "complex()")
    return _number(
        tx, complex, args, named, ("__complex__", "complex"), ("__float__", "float"), ("__index__", "index")
    )


def _number(
    tx: Tracer, kind: type, args: tuple[Arg, ...], named: dict[str, Arg], *slots: tuple[str, str]
) -> VariableTracker | None:
    """A number from a constant for real, from anything else by its slots."""
    if len(args) == 1 and not named and not args[0].is_constant():
        for dunder, op in slots:
            if abstract.has(tx, args[0], dunder):
                found = args[0].nb_unary(tx, op).realize(tx)
                return found if op == kind.__name__ or kind is int else fold_call(tx, kind, [found], {})
        if type(args[0]) is UserObjectVariable and type_lookup(args[0].cls, "__trunc__") is ABSENT:
            if args[0].cls.__flags__ & HEAP_TYPE:  # C code's may be a buffer
                fold(tx, kind, _sample(args[0]))
    return fold_call(tx, kind, args, named)


def _sample(value: VariableTracker) -> Any:
    """An object whose type has the same name, for the wording of an error."""
    return type(value.get_type().__name__, (), {})()


@handles(type, lazy=True)
def type_of(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker:
    if len(args) == 1 and not named:
        return tx.class_of(typed(tx, args[0]))
    if len(args) != 3 or named:
        return tx.break_(UNKNOWN_CALL, what="type() that makes a class")
    return make_class(tx, *[a.realize(tx) for a in args])


@handles(MappingProxyType)
def make_mapping_proxy(tx: Tracer, mapping: Arg, /) -> VariableTracker:
    if isinstance(mapping, DictVariable):
        return MappingProxyVariable(mapping)
    return tx.break_(UNKNOWN_CALL, what="types.MappingProxyType()")


for _scalar in (int, bool, float, complex):  # as torch: none of str's and bytes'
    for _method, _raw in vars(_scalar).items():
        if isinstance(_raw, (ClassMethodDescriptorType, staticmethod)) and _method != "__new__":
            folds(getattr(_scalar, _method))


def _from_keys(cls: type[dict[Any, Any]], kind: type[DictVariable]) -> None:
    @handles(cls.fromkeys, lazy=True)
    def from_keys(tx: Tracer, keys: Arg, value: Arg | None = None, /) -> VariableTracker:
        filler = tx.constant(None) if value is None else value
        return kind.of(tx, [(k, filler) for k in abstract.iterate(tx, keys)])


_from_keys(dict, DictVariable)
_from_keys(defaultdict, DefaultDictVariable)


@handles(OrderedDict.fromkeys, lazy=True)
def ordered_from_keys(tx: Tracer, iterable: Arg, value: Arg | None = None) -> VariableTracker:
    filler = tx.constant(None) if value is None else value
    return OrderedDictVariable.of(tx, [(k, filler) for k in abstract.iterate(tx, iterable)])
