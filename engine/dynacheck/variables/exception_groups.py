"""`except*`: splitting groups and putting together what is raised again, as `Objects/exceptions.c` does."""

from __future__ import annotations

import types
from collections.abc import Callable

from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.sources import type_lookup
from dynacheck.variables import abstract, exceptions
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.exceptions import ExceptionVariable
from dynacheck.variables.sequences import ListVariable

_METADATA = ("__traceback__", "__cause__", "__context__")


def is_group(value: VariableTracker) -> bool:
    """Whether an exception is a group."""
    return BaseExceptionGroup in value.get_type().__mro__


def match(
    tx: Tracer, exception: VariableTracker, matcher: VariableTracker
) -> tuple[VariableTracker | None, VariableTracker | None]:
    """What `except* matcher` takes of an exception, and what it leaves (CHECK_EG_MATCH).

    Args:
        tx: the tracer.
        exception: the exception; None when nothing is left of it.
        matcher: a class or tuple of classes.

    Returns:
        The matched group and the rest, each None when empty.
    """
    classes = exceptions.match_classes(tx, matcher)
    if any(BaseExceptionGroup in cls.__mro__ for cls in classes):
        message = "catching ExceptionGroup with except* is not allowed. Use except instead."
        tx.raise_(TypeError, message)
    if not isinstance(exception, ExceptionVariable):
        return None, exception
    if any(cls in exception.cls.__mro__ for cls in classes):
        return exception if is_group(exception) else _new_group(tx, [exception]), None
    if not is_group(exception):
        return None, exception
    split = type_lookup(exception.cls, "split")
    if isinstance(split, types.FunctionType):
        tx.break_(UNKNOWN_OPERATION, operation="except*", what=f"{exception.cls.__name__}.split")
    return _split(tx, exception, lambda e: any(cls in e.cls.__mro__ for cls in classes))


def _new_group(tx: Tracer, items: list[ExceptionVariable]) -> ExceptionVariable:
    return exceptions.make_exception(tx, BaseExceptionGroup, (tx.constant(""), ListVariable(items)))


def _split(
    tx: Tracer, exception: ExceptionVariable, wanted: Callable[[ExceptionVariable], bool]
) -> tuple[ExceptionVariable | None, ExceptionVariable | None]:
    """The part of an exception that is wanted, and the rest, both with the shape of the original."""
    if wanted(exception):
        return exception, None
    if not is_group(exception):
        return None, exception
    matched: list[ExceptionVariable] = []
    rest: list[ExceptionVariable] = []
    for item in exceptions.group_items(tx, exception):
        for found, parts in zip(_split(tx, item, wanted), (matched, rest)):
            if found is not None:
                parts.append(found)
    return _derive(tx, exception, matched), _derive(tx, exception, rest)


def _derive(tx: Tracer, group: ExceptionVariable, items: list[ExceptionVariable]) -> ExceptionVariable | None:
    """A group like another with some of its exceptions; None when there are none."""
    if not items:
        return None
    children = ListVariable(items)
    made: VariableTracker
    if isinstance(type_lookup(group.cls, "derive"), types.FunctionType):
        made = tx.call(abstract.getattr_(tx, group, "derive"), [children]).realize(tx)
    else:
        message = exceptions.group_message(tx, group)
        made = exceptions.make_exception(tx, BaseExceptionGroup, (message, children))
    if not isinstance(made, ExceptionVariable) or not is_group(made):
        tx.raise_(TypeError, "derive must return an instance of BaseExceptionGroup")
    for name in _METADATA:
        made.set_part(tx, name, group.part(tx, name))
    missing = tx.constant(None)
    notes = abstract.getattr_default(tx, group, "__notes__", missing)
    if notes is not missing:
        abstract.setattr_(tx, made, "__notes__", ListVariable(abstract.iterate(tx, notes)))
    return made


def _same_metadata(tx: Tracer, one: ExceptionVariable, other: ExceptionVariable) -> bool:
    """Whether both are parts of one group: then the exception was raised again, not newly."""
    if not is_group(one) or not is_group(other):
        return False
    return all(
        abstract.is_(tx, one.part(tx, name), other.part(tx, name))
        or (abstract.is_none(tx, one.part(tx, name)) and abstract.is_none(tx, other.part(tx, name)))
        for name in _METADATA
    )


def _leaves(tx: Tracer, exception: ExceptionVariable) -> list[ExceptionVariable]:
    if not is_group(exception):
        return [exception]
    return [leaf for item in exceptions.group_items(tx, exception) for leaf in _leaves(tx, item)]


def to_reraise(tx: Tracer, original: VariableTracker, found: VariableTracker) -> VariableTracker:
    """What is raised at the end of a `try` with `except*` clauses (PREP_RERAISE_STAR).

    Args:
        tx: the tracer.
        original: the exception that was caught.
        found: the list of what the clauses raised and what none of them took.

    Returns:
        The exception to raise, or None.
    """
    items = [item.realize(tx) for item in abstract.iterate(tx, found)]
    raised = [item for item in items if isinstance(item, ExceptionVariable)]
    source = original.realize(tx)
    assert isinstance(source, ExceptionVariable)
    if not raised:
        return tx.constant(None)
    if not is_group(source):  # a naked exception: only one clause can have run
        return raised[0]
    new = [item for item in raised if not _same_metadata(tx, item, source)]
    again = [leaf for item in raised if item not in new for leaf in _leaves(tx, item)]
    kept = _split(tx, source, lambda e: e in again)[0] if again else None
    parts = [*new, *([] if kept is None else [kept])]
    return _new_group(tx, parts) if len(parts) > 1 else parts[0]
