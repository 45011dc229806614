"""The rules above the slots, as CPython's `Objects/abstract.c` and `Objects/object.c` have them.

Which operand is asked first, what `NotImplemented` leads to, what stands in for a missing slot and how
errors read is decided here; trackers only answer their slots. Every function takes lazy trackers and
realizes them.
"""

from __future__ import annotations

import builtins
from collections import deque
from types import BuiltinFunctionType, EllipsisType, ModuleType, NoneType, NotImplementedType
from typing import Any, Final, NoReturn

from dynacheck.guards.base import relate
from dynacheck.guards.relations import Distinct, Same
from dynacheck.sources import ABSENT, HEAP_TYPE, TypeAttr, is_a, type_lookup
from dynacheck.variables.base import NOT_IMPLEMENTED, NotConstant, ObservedException, Tracer, VariableTracker
from dynacheck.variables.operators import COMPARE_SWAPPED, INPLACE, REFLECTED, UNARY_DUNDERS
from dynacheck.versions import PY314

_SCALARS: Final = frozenset(
    (NoneType, bool, int, float, complex, str, bytes, EllipsisType, NotImplementedType)
)
"""Types whose values are compared for identity, and operated on in place, as the objects they are."""

_SEQUENCES: Final = (list, tuple, str, bytes, bytearray, deque)
_SEQUENCE_SLOTS: Final = {
    name: frozenset(cls.__dict__[name] for cls in _SEQUENCES if name in cls.__dict__)
    for name in ("__add__", "__mul__", "__iadd__", "__imul__")
}
"""Raw methods that stand for sequence slots (`sq_concat`, ...), which are asked after all number slots."""


# -- what trackers stand for


def type_name(cls: type) -> str:
    """The C name of a type (`tp_name`), which CPython's messages use: a dotted one for types of C modules.

    >>> type_name(int), type_name(deque)
    ('int', 'collections.deque')
    """
    probe: Any = int if dict in cls.__mro__ else dict
    try:
        probe.__new__(cls)
    except TypeError as error:
        # "dict.__new__(collections.deque): collections.deque is not a subtype of dict"
        return str(error).partition("(")[2].partition("):")[0]
    return cls.__name__


def name_of(value: VariableTracker) -> str:
    """The C name of a value's type."""
    return type_name(value.get_type())


def special(tx: Tracer, value: VariableTracker, dunder: str) -> Any:
    """What the type of a value has as a special method, or ABSENT: guarded for a class of Python, which may get one."""
    cls = value.get_type()
    raw = type_lookup(cls, dunder)
    if raw is ABSENT and cls.__flags__ & HEAP_TYPE:
        tx.guard_absent(tx.class_node(cls).named(TypeAttr, dunder))
    return raw


def has(tx: Tracer, value: VariableTracker, dunder: str) -> bool:
    """Whether the type of a value defines a special method (None, which blocks one, counts as defining)."""
    return special(tx, value, dunder) is not ABSENT


def python_object(value: VariableTracker) -> Any:
    """The object a tracker stands for, if it existed before the frame or is a constant; else ABSENT."""
    known = getattr(value, "value", None)
    if known is not None:
        return known
    if value.get_type() is NoneType:
        return None
    return ABSENT if value.node is None else value.node.peek()


def python_class(value: VariableTracker) -> type | None:
    """The class a tracker stands for, or None when it is no class."""
    found = python_object(value)
    return found if is_a(found, type) else None


def constant_of(tx: Tracer, value: VariableTracker, operation: str) -> Any:
    """The value of a constant; a break when it isn't one.

    Args:
        tx: the tracer.
        value: the operand.
        operation: what needs it, for the break's message.
    """
    value = value.realize(tx)
    try:
        return value.as_constant(tx)
    except NotConstant:
        value.unmodelled(tx, operation)


def is_none(tx: Tracer, value: VariableTracker) -> bool:
    """Whether a value is None."""
    return value.realize(tx).get_type() is NoneType


def raised(observed: ObservedException, *classes: type[BaseException]) -> bool:
    """Whether what the program raised is of one of the classes (by their MRO, as `except` asks)."""
    mro = observed.exception.get_type().__mro__
    return any(cls in mro for cls in classes)


# -- operators


def _sequence_slot(cls: type, dunder: str) -> bool:
    raw = type_lookup(cls, dunder)
    try:
        return raw in _SEQUENCE_SLOTS[dunder]
    except TypeError:  # an unhashable class attribute
        return False


def _overrides(cls: type, base: type, dunder: str) -> bool:
    return type_lookup(cls, dunder) is not type_lookup(base, dunder)


def _number_slots(
    tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | object:
    """CPython's `binary_op1`: the slots of both types, a subclass's reflected method first."""
    left_type, right_type = left.get_type(), right.get_type()
    sequence = {"+": "__add__", "*": "__mul__"}.get(op)
    ask_left = sequence is None or not _sequence_slot(left_type, sequence)
    # values of one type may be of two families (a constant and a symbol): then both are asked
    ask_right = left_type is not right_type or type(left) is not type(right)
    ask_right = ask_right and (sequence is None or not _sequence_slot(right_type, sequence))
    first = (
        ask_left
        and ask_right
        and left_type is not right_type
        and left_type in right_type.__mro__
        and _overrides(right_type, left_type, REFLECTED[op])
    )
    if first:
        found = right.nb_binary(tx, op, left, right)
        if found is not NOT_IMPLEMENTED:
            return found
    if ask_left:
        found = left.nb_binary(tx, op, left, right)
        if found is not NOT_IMPLEMENTED:
            return found
    if ask_right and not first:
        return right.nb_binary(tx, op, left, right)
    return NOT_IMPLEMENTED


def _count(tx: Tracer, value: VariableTracker) -> VariableTracker:
    """How often a sequence is repeated."""
    if not has(tx, value, "__index__"):
        tx.raise_(TypeError, f"can't multiply sequence by non-int of type '{name_of(value)}'")
    return value.nb_unary(tx, "index")


def _sequence_slots(
    tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | object:
    """`sq_concat` and `sq_repeat`, asked when no number slot knew the operands."""
    if op == "+" and _sequence_slot(left.get_type(), "__add__"):
        found = left.nb_binary(tx, op, left, right)
        if found is NOT_IMPLEMENTED:
            _no_concatenation(tx, left, right)
        return found
    if op == "*" and _sequence_slot(left.get_type(), "__mul__"):
        count = _count(tx, right)
        return left.nb_binary(tx, op, left, count)
    if op == "*" and _sequence_slot(right.get_type(), "__mul__"):
        count = _count(tx, left)
        return right.nb_binary(tx, op, count, right)
    return NOT_IMPLEMENTED


def _no_concatenation(tx: Tracer, left: VariableTracker, right: VariableTracker) -> NoReturn:
    for cls in (bytes, bytearray):
        if cls in left.get_type().__mro__:
            tx.raise_(TypeError, f"can't concat {name_of(right)} to {name_of(left)}")
    base = next(cls for cls in _SEQUENCES if cls in left.get_type().__mro__).__name__
    tx.raise_(TypeError, f'can only concatenate {base} (not "{name_of(right)}") to {base}')


def _unsupported(tx: Tracer, op: str, left: VariableTracker, right: VariableTracker) -> NoReturn:
    shown = {"**": "** or pow()", "divmod": "divmod()"}.get(op, op)
    hint = ""
    if op == ">>" and python_object(left) is builtins.print and not PY314:
        hint = '. Did you mean "print(<message>, file=<output_stream>)"?'
    names = f"'{name_of(left)}' and '{name_of(right)}'"
    tx.raise_(TypeError, f"unsupported operand type(s) for {shown}: {names}{hint}")


def _found(
    tx: Tracer, found: VariableTracker | object, op: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker:
    if isinstance(found, VariableTracker):
        return found
    _unsupported(tx, op, left, right)


def binary(tx: Tracer, op: str, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    """`a op b`.

    Args:
        tx: the tracer.
        op: one of + - * / // % ** @ << >> & | ^ divmod.
        a: the left operand.
        b: the right operand.

    Returns:
        The result. TypeError is raised in the program when neither operand knows the other.
    """
    left, right = a.realize(tx), b.realize(tx)
    found = _number_slots(tx, op, left, right)
    if found is NOT_IMPLEMENTED:
        found = _sequence_slots(tx, op, left, right)
    return _found(tx, found, op, left, right)


def inplace(tx: Tracer, op: str, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    """`a op= b`: the in-place slot, else the binary operator.

    Args:
        tx: the tracer.
        op: the operator without its `=`.
        a: the target's value.
        b: the right operand.

    Returns:
        What is stored back.
    """
    left, right = a.realize(tx), b.realize(tx)
    if _plain(left) and _plain(right):  # the binary form, but errors name the in-place one
        try:
            return tx.constant(INPLACE[op](left.as_constant(tx), right.as_constant(tx)))
        except Exception as error:
            tx.raise_(type(error), *error.args)
    dunder = {"+": "__iadd__", "*": "__imul__"}.get(op)
    sequence = dunder is not None and _sequence_slot(left.get_type(), dunder)
    found: VariableTracker | object = NOT_IMPLEMENTED
    if not sequence:
        found = left.nb_inplace(tx, op, right)
    if found is NOT_IMPLEMENTED:
        found = _number_slots(tx, op, left, right)
    if found is NOT_IMPLEMENTED and sequence:
        found = left.nb_inplace(tx, op, right if op == "+" else _count(tx, right))
    if found is NOT_IMPLEMENTED:
        found = _sequence_slots(tx, op, left, right)
    return _found(tx, found, f"{op}=", left, right)


def _plain(value: VariableTracker) -> bool:
    return value.get_type() in _SCALARS and value.is_constant()


_UNARY_ERROR: Final = {
    "-": "bad operand type for unary -: '{}'",
    "+": "bad operand type for unary +: '{}'",
    "~": "bad operand type for unary ~: '{}'",
    "abs": "bad operand type for abs(): '{}'",
    "index": "'{}' object cannot be interpreted as an integer",
}


def unary(tx: Tracer, op: str, v: VariableTracker) -> VariableTracker:
    """`-v`, `+v`, `~v`, `abs(v)` or `operator.index(v)`.

    Args:
        tx: the tracer.
        op: - + ~ abs index.
        v: the operand.

    Returns:
        The result.
    """
    value = v.realize(tx)
    if not has(tx, value, UNARY_DUNDERS[op]):
        tx.raise_(TypeError, _UNARY_ERROR[op].format(name_of(value)))
    return value.nb_unary(tx, op)


def richcompare(tx: Tracer, op: str, a: VariableTracker, b: VariableTracker) -> VariableTracker:
    """`a op b` for < <= == != > >=: a subclass's reflected method first, left, right, then identity."""
    left, right = a.realize(tx), b.realize(tx)
    left_type, right_type = left.get_type(), right.get_type()
    swapped = COMPARE_SWAPPED[op]
    right_first = left_type is not right_type and left_type in right_type.__mro__
    if right_first:
        found = right.tp_richcompare(tx, swapped, left)
        if isinstance(found, VariableTracker):
            return found
    found = left.tp_richcompare(tx, op, right)
    if isinstance(found, VariableTracker):
        return found
    if not right_first:
        found = right.tp_richcompare(tx, swapped, left)
        if isinstance(found, VariableTracker):
            return found
    if op not in ("==", "!="):
        names = f"'{name_of(left)}' and '{name_of(right)}'"
        tx.raise_(TypeError, f"'{op}' not supported between instances of {names}")
    return tx.constant(is_(tx, left, right) is (op == "=="))


def equal(tx: Tracer, a: VariableTracker, b: VariableTracker) -> bool:
    """Identity, or truth of `a == b`: how containers look for an item (`PyObject_RichCompareBool`)."""
    if is_same_tracker(tx, a, b) or is_true(tx, richcompare(tx, "==", a, b)):
        return True
    left, right = a.realize(tx), b.realize(tx)  # a NaN is found where it is the same object
    return (
        left.get_type() is right.get_type() is float
        and _plain(left)
        and _plain(right)
        and is_(tx, left, right)
    )


def is_same_tracker(tx: Tracer, a: VariableTracker, b: VariableTracker) -> bool:
    """Whether two trackers are known to stand for one object without assuming anything."""
    left, right = a.realize(tx), b.realize(tx)
    return left is right or (left.node is not None and left.node is right.node)


def is_(tx: Tracer, a: VariableTracker, b: VariableTracker) -> bool:
    """`a is b`. That two values from outside of the frame are (or aren't) one object is guarded."""
    left, right = a.realize(tx), b.realize(tx)
    if is_same_tracker(tx, left, right):
        return True
    if left.get_type() is not right.get_type():
        return False  # the exact types are known
    if left.get_type() is tuple and left.is_constant() and right.is_constant():
        if left.as_constant(tx) == () == right.as_constant(tx):
            return True  # there is one empty tuple
    one, other = python_object(left), python_object(right)
    if one is ABSENT or other is ABSENT:
        if left.get_type() in _SCALARS and not (_plain(left) and _plain(right)):
            left.unmodelled(tx, "`is`")  # a number that only the graph knows
        return False  # made in the frame
    same = one is other
    # these are guarded by identity
    settled = left.is_constant() or isinstance(one, (type, BuiltinFunctionType, ModuleType))
    if left.node is not None and right.node is not None and not settled:
        relate(tx.root, Same() if same else Distinct(), (left.node, right.node), tx.where())
    return same


def is_true(tx: Tracer, v: VariableTracker) -> bool:
    """`bool(v)`. A value whose truth only the graph knows breaks in its slot."""
    value = v.realize(tx)
    asked = type(value).nb_bool is not VariableTracker.nb_bool or has(tx, value, "__bool__")
    return value.nb_bool(tx) if asked or has(tx, value, "__len__") else True


def not_(tx: Tracer, v: VariableTracker) -> VariableTracker:
    """`not v`."""
    return tx.constant(not is_true(tx, v))


# -- iteration


def get_iter(tx: Tracer, v: VariableTracker) -> VariableTracker:
    """`iter(v)`: `__iter__`, else the sequence protocol."""
    value = v.realize(tx)
    if not is_iterable(tx, value):
        tx.raise_(TypeError, f"'{name_of(value)}' object is not iterable")
    cls = value.get_type()
    if value.node is not None and cls.__module__ in ("builtins", "itertools") and has(tx, value, "__next__"):
        return value  # C code's iterators are their own
    by_items = special(tx, value, "__iter__") is ABSENT
    found: VariableTracker = (tx.sequence_iterator(value) if by_items else value.tp_iter(tx)).realize(tx)
    if not has(tx, found, "__next__"):
        tx.raise_(TypeError, f"iter() returned non-iterator of type '{name_of(found)}'")
    return found


def is_iterable(tx: Tracer, v: VariableTracker) -> bool:
    """Whether `iter()` accepts a realized value, by its type alone."""
    raw = special(tx, v, "__iter__")
    if raw is ABSENT:
        return has(tx, v, "__getitem__") and dict not in v.get_type().__mro__
    return raw is not None


def iternext(tx: Tracer, iterator: VariableTracker) -> VariableTracker | None:
    """The next item of an iterator, or None when it is exhausted (or its `__next__` raised StopIteration)."""
    try:
        return iterator.realize(tx).tp_iternext(tx)
    except ObservedException as observed:
        if raised(observed, StopIteration):
            return None
        raise


def iterate(tx: Tracer, v: VariableTracker) -> list[VariableTracker]:
    """All items."""
    iterator = get_iter(tx, v)
    items = []
    while (item := iternext(tx, iterator)) is not None:
        items.append(item)
    return items


# -- containers


def length(tx: Tracer, v: VariableTracker) -> VariableTracker:
    """`len(v)`."""
    value = v.realize(tx)
    if special(tx, value, "__len__") in (ABSENT, None):
        tx.raise_(TypeError, f"object of type '{name_of(value)}' has no len()")
    return value.sq_length(tx)


def contains(tx: Tracer, container: VariableTracker, item: VariableTracker) -> VariableTracker:
    """`item in container`: `__contains__`, else a search by iteration."""
    value = container.realize(tx)
    raw = special(tx, value, "__contains__")
    if raw is None:
        tx.raise_(TypeError, f"'{name_of(value)}' object is not a container")
    if raw is not ABSENT:
        return value.sq_contains(tx, item)
    if not is_iterable(tx, value):
        what = "a container or iterable" if PY314 else "iterable"
        tx.raise_(TypeError, f"argument of type '{name_of(value)}' is not {what}")
    iterator = get_iter(tx, value)
    while (found := iternext(tx, iterator)) is not None:
        if equal(tx, found, item):
            return tx.constant(True)
    return tx.constant(False)


def getitem(tx: Tracer, v: VariableTracker, key: VariableTracker) -> VariableTracker:
    """`v[key]`."""
    value = v.realize(tx)
    if special(tx, value, "__getitem__") not in (ABSENT, None):
        return value.mp_subscript(tx, key)
    cls = python_class(value)
    if cls is None:
        tx.raise_(TypeError, f"'{name_of(value)}' object is not subscriptable")
    if type(value).mp_subscript is not VariableTracker.mp_subscript:
        return value.mp_subscript(tx, key)
    if cls is not type and type_lookup(cls, "__class_getitem__") is ABSENT:
        tx.raise_(TypeError, f"type '{type_name(cls)}' is not subscriptable")
    return tx.call(value.tp_getattro(tx, "__class_getitem__"), [key])


def setitem(tx: Tracer, v: VariableTracker, key: VariableTracker, item: VariableTracker) -> None:
    """`v[key] = item`."""
    value = v.realize(tx)
    if not has(tx, value, "__setitem__"):
        if has(tx, value, "__delitem__"):
            tx.raise_(AttributeError, "__setitem__")
        tx.raise_(TypeError, f"'{name_of(value)}' object does not support item assignment")
    value.mp_ass_subscript(tx, key, item)


def delitem(tx: Tracer, v: VariableTracker, key: VariableTracker) -> None:
    """`del v[key]`."""
    value = v.realize(tx)
    if not has(tx, value, "__delitem__"):
        if has(tx, value, "__setitem__"):
            tx.raise_(AttributeError, "__delitem__")
        of_sequence = value.get_type().__flags__ & HEAP_TYPE or has(tx, value, "__len__")
        no = "doesn't" if of_sequence and has(tx, key.realize(tx), "__index__") else "does not"
        tx.raise_(TypeError, f"'{name_of(value)}' object {no} support item deletion")
    value.mp_ass_subscript(tx, key, None)


def getattr_(tx: Tracer, v: VariableTracker, name: str) -> VariableTracker:
    """`v.name`; an AttributeError that doesn't say of what is told (`PyObject_GetAttr`)."""
    value = v.realize(tx)
    try:
        return value.tp_getattro(tx, name)
    except ObservedException as observed:
        tell_of(tx, observed, name, value)
        raise


def tell_of(tx: Tracer, observed: ObservedException, name: str, value: VariableTracker) -> None:
    """Note in an AttributeError that doesn't say so which attribute of which object was asked for."""
    exception: Any = observed.exception
    known = raised(observed, AttributeError) and hasattr(exception, "set_part")
    if known and all(is_none(tx, exception.part(tx, part)) for part in ("name", "obj")):
        for part, told in (("name", tx.constant(name)), ("obj", value)):
            exception.set_part(tx, part, told)


def getattr_default(tx: Tracer, v: VariableTracker, name: str, default: VariableTracker) -> VariableTracker:
    """`getattr(v, name, default)`."""
    try:
        return getattr_(tx, v, name)
    except ObservedException as observed:
        if raised(observed, AttributeError):
            return default
        raise


def setattr_(tx: Tracer, v: VariableTracker, name: str, value: VariableTracker) -> None:
    """`v.name = value`."""
    v.realize(tx).tp_setattro(tx, name, value)


def delattr_(tx: Tracer, v: VariableTracker, name: str) -> None:
    """`del v.name`."""
    v.realize(tx).tp_setattro(tx, name, None)


def str_(tx: Tracer, v: VariableTracker) -> VariableTracker:
    """`str(v)`."""
    value = v.realize(tx)
    return value if value.get_type() is str else value.tp_str(tx)


def repr_(tx: Tracer, v: VariableTracker) -> VariableTracker:
    """`repr(v)`."""
    return v.realize(tx).tp_repr(tx)


def ascii_(tx: Tracer, v: VariableTracker) -> VariableTracker:
    """`ascii(v)`."""
    shown: str = constant_of(tx, repr_(tx, v), "ascii()")
    return tx.constant(shown.encode("ascii", "backslashreplace").decode("ascii"))


def format_value(
    tx: Tracer, v: VariableTracker, conversion: str | None = None, spec: VariableTracker | None = None
) -> VariableTracker:
    """What an f-string puts in for `{v!conversion:spec}`.

    Args:
        tx: the tracer.
        v: the value.
        conversion: "s", "r", "a" or None.
        spec: the format specification, or None for an empty one.

    Returns:
        A string.
    """
    convert = {"s": str_, "r": repr_, "a": ascii_}.get(conversion or "")
    value = v.realize(tx) if convert is None else convert(tx, v).realize(tx)
    text = "" if spec is None else constant_of(tx, spec, "a format specification")
    if not text and value.get_type() is str:
        return value
    return value.tp_format(tx, text)
