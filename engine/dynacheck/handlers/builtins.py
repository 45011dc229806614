"""Builtin functions."""

from __future__ import annotations

import abc
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Final

import torch

from dynacheck import interop
from dynacheck.guards import Is, NoSubclass
from dynacheck.handlers import torch_constructors
from dynacheck.handlers.folding import fold_call, folds
from dynacheck.handlers.registry import handles
from dynacheck.reasons import FRAME_INSPECTION, PRINT, UNKNOWN_CALL, Reason
from dynacheck.sources import ABSENT, TypeAttr, is_a, type_lookup
from dynacheck.variables import abstract, classes
from dynacheck.variables.base import NotConstant, Tracer, VariableTracker
from dynacheck.variables.coerce import integer
from dynacheck.variables.functions import BoundMethodVariable, ObjectVariable
from dynacheck.variables.handing_on import typed
from dynacheck.variables.identity import IdentityVariable
from dynacheck.variables.iterators import (
    CallableIterator,
    EnumerateIterator,
    FilterIterator,
    MapIterator,
    ReversedIterator,
    ZipIterator,
    is_iterator,
)
from dynacheck.variables.listing import listed
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.results import fold, python_value
from dynacheck.variables.sequences import ListVariable, TupleVariable, sort
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.weak_references import WeakReferenceVariable
from dynacheck.versions import PY312

Arg = VariableTracker


# -- numbers


def _plain(tx: Tracer, operation: str, *operands: Arg) -> None:
    """Break at an operation on numbers that has no symbolic form, if one of them is symbolic."""
    for operand in operands:
        found = operand.realize(tx)
        if isinstance(found, SymNumberVariable):
            found.needs_plain(tx, operation)


@handles(abs)
def absolute(tx: Tracer, x: Arg, /) -> VariableTracker:
    return abstract.unary(tx, "abs", x)


@handles(divmod)
def divide(tx: Tracer, x: Arg, y: Arg, /) -> VariableTracker:
    return abstract.binary(tx, "divmod", x, y)


@handles(pow)
def power(tx: Tracer, base: Arg, exp: Arg, mod: Arg | None = None) -> VariableTracker | None:
    if mod is None or abstract.is_none(tx, mod):
        return abstract.binary(tx, "**", base, exp)
    _plain(tx, "pow()", base, exp, mod)
    if any(
        isinstance(type_lookup(part.get_type(), "__pow__"), types.FunctionType) for part in (base, exp, mod)
    ):
        return tx.break_(UNKNOWN_CALL, what="pow() of an object with an operator of its own")
    return fold_call(tx, pow, [base, exp, mod], {})


@handles(round)
def rounded(tx: Tracer, number: Arg, ndigits: Arg | None = None) -> VariableTracker:
    if isinstance(number, SymNumberVariable):
        return number.rounded(tx, None if ndigits is None or abstract.is_none(tx, ndigits) else ndigits)
    extra = [] if ndigits is None else [ndigits]
    found = fold_call(tx, round, [number, *extra], {})
    if found is not None:
        return found
    if not abstract.has(tx, number, "__round__"):
        tx.raise_(TypeError, f"type {abstract.name_of(number)} doesn't define __round__ method")
    return tx.call(number.tp_getattro(tx, "__round__"), extra)


@handles(sum)
def total(tx: Tracer, iterable: Arg, /, start: Arg | None = None) -> VariableTracker:
    first = tx.constant(0) if start is None else start
    for kind, advice in ((str, "''.join(seq)"), (bytes, "b''.join(seq)"), (bytearray, "b''.join(seq)")):
        if first.get_type() is kind:
            name = {str: "strings", bytes: "bytes", bytearray: "bytearray"}[kind]
            tx.raise_(TypeError, f"sum() can't sum {name} [use {advice} instead]")
    items = [i.realize(tx) for i in abstract.iterate(tx, iterable)]
    if first.is_constant() and all(i.is_constant() for i in items):
        values = [i.as_constant(tx) for i in items]
        if all(type(v) in (int, float, bool, complex) for v in values):
            return fold(tx, sum, values, first.as_constant(tx))
    result = first
    for item in items:
        result = abstract.binary(tx, "+", result, item)
    return result


@handles(max)
def largest(tx: Tracer, *args: Arg, key: Arg | None = None, default: Arg | None = None) -> VariableTracker:
    return _extreme(tx, max, ">", args, key, default)


@handles(min)
def smallest(tx: Tracer, *args: Arg, key: Arg | None = None, default: Arg | None = None) -> VariableTracker:
    return _extreme(tx, min, "<", args, key, default)


def _extreme(
    tx: Tracer, fn: Any, op: str, args: tuple[Arg, ...], key: Arg | None, default: Arg | None
) -> VariableTracker:
    if not args:
        tx.raise_(TypeError, f"{fn.__name__} expected at least 1 argument, got 0")
    if len(args) > 1 and default is not None:
        tx.raise_(
            TypeError, f"Cannot specify a default for {fn.__name__}() with multiple positional arguments"
        )
    items = [i.realize(tx) for i in (args if len(args) > 1 else abstract.iterate(tx, args[0]))]
    if not items:
        if default is not None:
            return default
        word = "iterable argument is empty" if PY312 else "arg is an empty sequence"
        tx.raise_(ValueError, f"{fn.__name__}() {word}")
    if key is not None and not abstract.is_none(tx, key):
        keys = [tx.call(key, [i]).realize(tx) for i in items]
        _plain(tx, f"{fn.__name__}() with a key", *keys)
    else:
        keys = items
        symbolic = _symbolic_extreme(tx, fn, items) or _tensor_extreme(tx, fn, op, items)
        if symbolic is not None:
            return symbolic
    best = 0
    for i in range(1, len(items)):
        if abstract.is_true(tx, abstract.richcompare(tx, op, keys[i], keys[best])):
            best = i
    return items[best]


def _symbolic_extreme(tx: Tracer, fn: Any, items: list[VariableTracker]) -> VariableTracker | None:
    """`max` of symbolic integers as an expression, which assumes nothing about their order."""
    symbols = [i for i in items if isinstance(i, SymNumberVariable)]
    numbers = [i for i in items if i.is_constant() and type(i.as_constant(tx)) in (int, float)]
    if not symbols or len(symbols) + len(numbers) < len(items) or len({i.get_type() for i in items}) > 1:
        return None
    result = items[0]
    for item in items[1:]:
        symbol = result if isinstance(result, SymNumberVariable) else item
        if isinstance(symbol, SymNumberVariable):
            result = symbol.call_math(tx, fn, [result, item])
        else:
            result = fold(tx, fn, result.as_constant(tx), item.as_constant(tx))
    return result


def _tensor_extreme(tx: Tracer, fn: Any, op: str, items: list[VariableTracker]) -> VariableTracker | None:
    """`max` of tensors that hold one number each, perhaps with numbers of their kind: a tensor, as torch has it.

    With floats the comparison decides, as in Python: `torch.maximum` spreads nan, and gradients where both are equal.
    """
    tensors = [i for i in items if isinstance(i, TensorVariable)]
    dtypes = {t.ref.facts.dtype for t in tensors}
    dtype = next(iter(dtypes), torch.bool)
    numbers = (int, float) if dtype.is_floating_point else (int,)
    if (
        not tensors
        or len(dtypes) > 1
        or dtype is torch.bool
        or dtype.is_complex
        or any(t.ref.facts.shape or t.ref.facts.cls is not torch.Tensor for t in tensors)
        or not all(
            isinstance(i, TensorVariable) or (i.is_constant() and type(i.as_constant(tx)) in numbers)
            for i in items
        )
    ):
        return None
    result = items[0]
    for item in items[1:]:
        of_tensors = [isinstance(i, TensorVariable) for i in (result, item)]
        if not any(of_tensors):
            result = fold(tx, fn, result.as_constant(tx), item.as_constant(tx))
        elif dtype.is_floating_point:
            result = tx.call(
                tx.object(torch.where), [abstract.richcompare(tx, op, item, result), item, result]
            )
        elif all(of_tensors):
            result = tx.call(tx.object(torch.maximum if fn is max else torch.minimum), [result, item])
        else:
            tensor, bound = (result, item) if of_tensors[0] else (item, result)
            result = tx.call(tx.object(torch.clamp), [tensor], {"min" if fn is max else "max": bound})
        result = result.realize(tx)
    return result


@handles(hash)
def hash_of(tx: Tracer, obj: Arg, /) -> VariableTracker:
    if isinstance(type_lookup(obj.get_type(), "__hash__"), types.FunctionType) and not obj.is_constant():
        return tx.call(obj.tp_getattro(tx, "__hash__"), [])
    key = obj.hash_key(tx)
    try:
        return tx.constant(hash(key if obj.is_constant() else _hashable(tx, obj)))
    except NotConstant:
        return tx.break_(UNKNOWN_CALL, what=f"hash() of {obj.describe()}")


def _hashable(tx: Tracer, obj: Arg) -> Any:
    """What has the hash of an object: itself, kept by a guard where it is hashed by identity; else NotConstant."""
    obj = obj.realize(tx)
    if type(obj) is TupleVariable:
        return tuple(_hashable(tx, item) for item in obj.items(tx))
    if isinstance(obj, BoundMethodVariable):
        return types.MethodType(_hashable(tx, obj.function), _hashable(tx, obj.owner))
    if isinstance(obj, ObjectVariable):
        return obj.value
    if isinstance(obj, WeakReferenceVariable) and not obj.dead:
        return _hashable(tx, obj.target)
    found = kept(tx, obj) if type_lookup(obj.get_type(), "__hash__") in _BY_IDENTITY else ABSENT
    return python_value(tx, obj) if found is ABSENT else found


_BY_IDENTITY: Final = (object.__hash__, type.__hash__, types.FunctionType.__hash__)


def kept(tx: Tracer, obj: Arg) -> Any:
    """An object from before the frame, the same one in every run by a guard; ABSENT if it can't be held to that."""
    value = None if obj.node is None else obj.node.peek()
    if obj.node is None or not type(value).__weakrefoffset__ or type(value) is types.MethodType:
        return ABSENT
    tx.guard(obj.node, Is(value))
    return value


@handles(id)
def identity(tx: Tracer, obj: Arg, /) -> VariableTracker:
    if obj.is_constant():
        value = obj.as_constant(tx)
        if value is not None and type(value) is not bool:
            return tx.break_(UNKNOWN_CALL, what=f"id() of {obj.describe()}")
        return tx.constant(id(value))
    found = kept(tx, obj)
    return IdentityVariable(obj) if found is ABSENT else tx.constant(id(found))


# -- truth and iteration


@handles(all)
def all_of(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    return _quantified(tx, iterable, False)


@handles(any)
def any_of(tx: Tracer, iterable: Arg, /) -> VariableTracker:
    return _quantified(tx, iterable, True)


def _quantified(tx: Tracer, iterable: Arg, decisive: bool) -> VariableTracker:
    iterator = abstract.get_iter(tx, iterable)
    while (item := abstract.iternext(tx, iterator)) is not None:
        if abstract.is_true(tx, item) is decisive:
            return tx.constant(decisive)
    return tx.constant(not decisive)


@handles(len)
def length(tx: Tracer, obj: Arg, /) -> VariableTracker:
    return abstract.length(tx, obj)


@handles(iter)
def iterator_of(tx: Tracer, obj: Arg, sentinel: Arg | None = None, /) -> VariableTracker:
    if sentinel is None:
        return abstract.get_iter(tx, obj)
    if not abstract.has(tx, obj, "__call__"):
        tx.raise_(TypeError, "iter(v, w): v must be callable")
    return CallableIterator(obj, sentinel)


@handles(next)
def next_item(tx: Tracer, iterator: Arg, default: Arg | None = None, /) -> VariableTracker:
    if not is_iterator(iterator):
        tx.raise_(TypeError, f"'{abstract.name_of(iterator)}' object is not an iterator")
    if default is not None:
        item = abstract.iternext(tx, iterator)
        return default if item is None else item
    item = iterator.tp_iternext(tx)
    if item is None:
        stopped = getattr(iterator, "stopped_with", None)
        if stopped is None or abstract.is_none(tx, stopped):
            tx.raise_(StopIteration)
        tx.raise_(StopIteration, stopped)
    return item


@handles(reversed)
def reversed_of(tx: Tracer, sequence: Arg, /) -> VariableTracker:
    raw = type_lookup(sequence.get_type(), "__reversed__")
    if raw is None or (raw is ABSENT and not abstract.has(tx, sequence, "__getitem__")):
        tx.raise_(TypeError, f"'{abstract.name_of(sequence)}' object is not reversible")
    if raw is not ABSENT:
        if isinstance(sequence, BuiltinObject):
            return sequence.call_method(tx, "__reversed__", [], {})
        return tx.call(sequence.tp_getattro(tx, "__reversed__"), [])
    if not abstract.has(tx, sequence, "__len__"):
        tx.raise_(TypeError, f"object of type '{abstract.name_of(sequence)}' has no len()")
    return ReversedIterator(sequence, integer(tx, abstract.length(tx, sequence)))


@handles(zip)
def zipped(tx: Tracer, *iterables: Arg, strict: Arg | None = None) -> VariableTracker:
    sources = [abstract.get_iter(tx, i) for i in iterables]
    return ZipIterator(sources, strict is not None and abstract.is_true(tx, strict))


@handles(enumerate)
def enumerated(tx: Tracer, iterable: Arg, start: Arg | None = None) -> VariableTracker:
    count = tx.constant(0) if start is None else abstract.unary(tx, "index", start)
    return EnumerateIterator(abstract.get_iter(tx, iterable), count)


@handles(map)
def mapped(tx: Tracer, function: Arg, iterable: Arg, /, *iterables: Arg) -> VariableTracker:
    return MapIterator(function, [abstract.get_iter(tx, i) for i in (iterable, *iterables)])


@handles(filter)
def filtered(tx: Tracer, function: Arg, iterable: Arg, /) -> VariableTracker:
    return FilterIterator(function, abstract.get_iter(tx, iterable))


@handles(sorted)
def sorted_list(
    tx: Tracer, iterable: Arg, /, *, key: Arg | None = None, reverse: Arg | None = None
) -> VariableTracker:
    backwards = reverse is not None and bool(integer(tx, reverse))
    return ListVariable(sort(tx, listed(tx, iterable), key, backwards))


# -- attributes and classes


def _name(tx: Tracer, name: Arg) -> str:
    if str not in name.get_type().__mro__:
        tx.raise_(TypeError, f"attribute name must be string, not '{abstract.name_of(name)}'")
    found: str = abstract.constant_of(tx, name, "an attribute name")
    return found


@handles(getattr)
def get_attribute(tx: Tracer, obj: Arg, name: Arg, default: Arg | None = None, /) -> VariableTracker:
    if default is None:
        return abstract.getattr_(tx, obj, _name(tx, name))
    return abstract.getattr_default(tx, obj, _name(tx, name), default)


@handles(hasattr)
def has_attribute(tx: Tracer, obj: Arg, name: Arg, /) -> VariableTracker:
    wanted = _name(tx, name)
    if _has_by_type(obj.realize(tx).get_type(), wanted):
        return tx.constant(True)
    missing = tx.constant(None)
    return tx.constant(abstract.getattr_default(tx, obj, wanted, missing) is not missing)


def _has_by_type(cls: type, name: str) -> bool:
    """Whether every object of a class has an attribute: a method of C code of its class, anything of a function's."""
    raw = type_lookup(cls, name)
    found = isinstance(raw, _METHODS_OF_C) or (cls is types.FunctionType and raw is not ABSENT)
    return found and not isinstance(type_lookup(cls, "__getattribute__"), types.FunctionType)


_METHODS_OF_C: Final = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)


@handles(setattr)
def set_attribute(tx: Tracer, obj: Arg, name: Arg, value: Arg, /) -> VariableTracker:
    abstract.setattr_(tx, obj, _name(tx, name), value)
    return tx.constant(None)


@handles(delattr)
def delete_attribute(tx: Tracer, obj: Arg, name: Arg, /) -> VariableTracker:
    abstract.delattr_(tx, obj, _name(tx, name))
    return tx.constant(None)


@handles(callable, lazy=True)
def is_callable(tx: Tracer, obj: Arg, /) -> VariableTracker:
    return tx.constant(abstract.has(tx, typed(tx, obj), "__call__"))


@handles(isinstance, lazy=True)
def is_instance(tx: Tracer, obj: Arg, class_or_tuple: Arg, /) -> VariableTracker:
    obj = typed(tx, obj)
    return tx.constant(_matches(tx, obj.get_type(), class_or_tuple, obj, "isinstance"))


@handles(issubclass)
def is_subclass(tx: Tracer, cls: Arg, class_or_tuple: Arg, /) -> VariableTracker:
    kind = abstract.python_class(cls)
    if kind is None:
        if abstract.has(tx, cls, "__bases__") or abstract.has(tx, cls, "__getattr__"):
            cls.unmodelled(tx, "issubclass()")  # an object that stands for a class
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    return tx.constant(_matches(tx, kind, class_or_tuple, None, "issubclass"))


_CHECKED: Final = tuple(type(vars(typing)[name]) for name in ("List", "Tuple", "Callable"))


def _matches(tx: Tracer, kind: type, wanted: Arg, obj: Arg | None, function: str) -> bool:
    wanted = wanted.realize(tx)
    if isinstance(wanted, TupleVariable):
        return any(_matches(tx, kind, w, obj, function) for w in wanted.items(tx))
    cls = abstract.python_object(wanted)
    union = type(cls).__name__ == "_UnionGenericAlias"  # of typing, until 3.14
    if obj is not None and (union or type(cls) in _CHECKED):
        if wanted.node is not None:
            tx.guard(wanted.node, Is(cls))
        if union:
            return any(_matches(tx, kind, tx.object(arg), obj, function) for arg in cls.__args__)
        return _is_kind(tx, kind, cls.__origin__, obj)
    if not is_a(cls, (type, types.UnionType)):
        hooks = (f"__{function[2:]}check__", "__bases__", "__getattr__")
        if cls is ABSENT or any(type_lookup(type(cls), hook) is not ABSENT for hook in hooks):
            wanted.unmodelled(tx, f"{function}()")
        kinds, plural = ("class", "classes") if function == "issubclass" else ("type", "types")
        tx.raise_(TypeError, f"{function}() arg 2 must be a {kinds}, a tuple of {plural}, or a union")
    classes = cls.__args__ if is_a(cls, types.UnionType) else (cls,)
    if any(type(c) is types.GenericAlias for c in classes):
        tx.raise_(TypeError, f"{function}() argument 2 cannot be a parameterized generic")
    return any(_is_kind(tx, kind, c, obj) for c in classes)


def _is_kind(tx: Tracer, kind: type, cls: type, obj: Arg | None) -> bool:
    """Whether an object of exactly this type is an instance of a class."""
    if cls in kind.__mro__ or torch_constructors.is_of_type(obj, cls):
        return True
    if getattr(cls, "_is_protocol", False) and obj is not None:
        return _satisfies(tx, obj, cls)
    check = type_lookup(type(cls), "__subclasscheck__" if obj is None else "__instancecheck__")
    if isinstance(check, types.FunctionType) and check.__module__ not in (
        "abc",
        "typing",
        "torch.nn.parameter",
    ):
        return tx.break_(UNKNOWN_CALL, what=f"{type(cls).__qualname__}.{check.__name__}")
    if type(cls) is not type and isinstance(check, types.MethodDescriptorType):
        tx.guard(tx.class_node(type(cls)).child(TypeAttr(check.__name__)), Is(check))
    hook = type_lookup(cls, "__subclasshook__")
    function = getattr(hook, "__func__", None)
    if isinstance(function, types.FunctionType) and function.__module__.partition(".")[0] not in (
        "collections", "_collections_abc", "typing", "numbers", "io", "os", "contextlib", "importlib", "abc",
    ):  # fmt: skip
        return tx.break_(UNKNOWN_CALL, what=f"{cls.__qualname__}.__subclasshook__")
    if issubclass(kind, cls):
        return True
    if isinstance(cls, abc.ABCMeta) and not (_is_known(kind) and _is_known(cls)):
        tx.guard(tx.class_node(kind), NoSubclass.now(cls))
    claimed = None if obj is None else classes.claimed_class(tx, obj)
    return claimed is not None and issubclass(claimed, cls)


def _is_known(cls: type) -> bool:
    """Classes of Python, torch and numpy, which nobody registers with each other while a program runs."""
    package = cls.__module__.partition(".")[0]
    return package in sys.stdlib_module_names or package in ("torch", "numpy")


def _satisfies(tx: Tracer, obj: Arg, protocol: type) -> bool:
    """`isinstance` with a runtime-checkable protocol: the object has all its attributes."""
    if not getattr(protocol, "_is_runtime_protocol", False):
        tx.raise_(TypeError, "Instance and class checks can only be used with @runtime_checkable protocols")
    names: Any = typing._get_protocol_attrs(protocol)  # type: ignore[attr-defined]
    missing = tx.constant(None)
    return all(abstract.getattr_default(tx, obj, n, missing) is not missing for n in sorted(names))


# -- text


@handles(repr)
def representation(tx: Tracer, obj: Arg, /) -> VariableTracker:
    return abstract.repr_(tx, obj)


@handles(ascii)
def ascii_representation(tx: Tracer, obj: Arg, /) -> VariableTracker:
    return abstract.ascii_(tx, obj)


@handles(format)
def formatted(tx: Tracer, value: Arg, format_spec: Arg | None = None, /) -> VariableTracker:
    return abstract.format_value(tx, value, None, format_spec)


def _integral(function: Callable[[int], str]) -> None:
    @handles(function)
    def convert(tx: Tracer, number: Arg, /) -> VariableTracker:
        _plain(tx, f"{function.__name__}()", number)
        return fold(tx, function, integer(tx, number))


for _function in (chr, hex, oct, bin):
    _integral(_function)

folds(ord)


# -- the exception that is handled


@handles(sys.exception)
def handled(tx: Tracer) -> VariableTracker:
    found = tx.handled_exception
    return tx.constant(None) if found is None else found


@handles(sys.exc_info)
def handled_as_tuple(tx: Tracer) -> VariableTracker:
    error = handled(tx)
    if abstract.is_none(tx, error):
        return tx.tuple_of([error, error, error])
    return tx.tuple_of([tx.class_of(error), error, abstract.getattr_(tx, error, "__traceback__")])


folds(sys.intern, sys.getrecursionlimit)


# -- what can't be traced


@handles(print, lazy=True)
def printed(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker:
    if print in interop.torch_config("reorderable_logging_functions", ()) and not named:
        tx.effects.defer(print, *args)
        return tx.constant(None)
    return tx.break_(PRINT, call="print()")


def _breaks(function: Callable[..., Any], reason: Reason, field: str) -> None:
    @handles(function, lazy=True)
    def stop(tx: Tracer, *args: Arg, **named: Arg) -> VariableTracker:
        return tx.break_(reason, **{field: f"{function.__name__}()"})


@handles(eval)
def evaluated(tx: Tracer, source: Arg, *namespaces: Arg) -> VariableTracker:
    """A text without names for real."""
    if namespaces:
        tx.break_(UNKNOWN_CALL, what="eval()")
    text = source.as_constant(tx) if source.get_type() is str and source.is_constant() else "name"
    try:
        code = compile(text.lstrip(" \t"), "<string>", "eval")
    except SyntaxError as error:
        tx.raise_(SyntaxError, *error.args)
    if code.co_names or source.get_type() is not str:
        tx.break_(FRAME_INSPECTION, call="eval()")
    return fold(tx, eval, code, {})


@handles(exec)
def executed(tx: Tracer, source: Arg, *namespaces: Arg, closure: Arg | None = None) -> VariableTracker:
    if namespaces:
        tx.break_(UNKNOWN_CALL, what="exec()")
    tx.break_(FRAME_INSPECTION, call="exec()")


_INSPECTING: Final[tuple[Callable[..., Any], ...]] = (sys._getframe, inspect.currentframe)
_OUTSIDE: Final[tuple[Callable[..., Any], ...]] = (globals, compile, __import__, input, open, breakpoint)
for _stop in _INSPECTING:
    _breaks(_stop, FRAME_INSPECTION, "call")
for _stop in _OUTSIDE:
    _breaks(_stop, UNKNOWN_CALL, "what")
