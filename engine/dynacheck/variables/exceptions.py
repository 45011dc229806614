"""Exceptions: making, reading, chaining and matching them, as CPython's `Objects/exceptions.c` does."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dynacheck.guards import TypeIs
from dynacheck.reasons import UNKNOWN_OPERATION
from dynacheck.sources import CAttr, Node, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import NotConstant, ObservedException, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.exception_fields import (
    KEYWORDS,
    PARTS,
    as_traceback,
    builtin_class,
    fields,
    is_builtin_part,
    is_exception_class,
    real_exception,
)
from dynacheck.variables.methods import BuiltinMethodVariable
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.sequences import ListVariable, TupleVariable
from dynacheck.variables.tracebacks import Place, TracebackVariable


def build_exception(
    cls: type, args: tuple[Any, ...], init: tuple[Any, ...] | None, kwargs: dict[str, Any]
) -> BaseException:
    """An exception made by the builtin class's own rule (used by rewritten code).

    Args:
        cls: the class.
        args: what the class was called with.
        init: what the builtin `__init__` was called with; None if it wasn't called.
        kwargs: the keywords of that call.
    """
    base = builtin_class(cls)
    exception: BaseException = base.__new__(cls, *args)
    if init is not None:
        base.__init__(exception, *init, **kwargs)
    return exception


def set_builtin_attribute(exception: BaseException, name: str, value: object) -> None:
    """Store an attribute of the builtin part of an exception (used by rewritten code)."""
    BaseException.__setattr__(exception, name, value)


class ExceptionVariable(UserObjectVariable):
    """An exception instance.

    Invariant: `builtin` holds what the frame knows of the C part (`args`, `__cause__`, `value`, ...); for a
    sourced exception the rest is read through its node. `attrs` is the instance dict, as for any object.
    """

    __slots__ = ("builtin", "given", "init", "init_kwargs", "new_args", "stack")

    def __init__(
        self, cls: type, args: Sequence[VariableTracker] = (), value: Any = None, node: Node | None = None
    ) -> None:
        super().__init__(cls, value, node)
        self.builtin: dict[str, VariableTracker] = {}
        self.given: dict[str, VariableTracker] = {}
        """Parts as the class itself sets them: rebuilding the exception gives them by itself."""
        self.new_args: tuple[VariableTracker, ...] = tuple(args)
        self.init: tuple[VariableTracker, ...] | None = None
        self.init_kwargs: dict[str, VariableTracker] = {}
        self.stack: tuple[Any, ...] = ()
        """The user's lines where it was raised last; what raises it again behind a handler goes on from there."""
        if node is None:
            self.builtin["args"] = self.given["args"] = TupleVariable(list(args))

    @classmethod
    def sourced(cls, node: Node) -> ExceptionVariable:
        """An exception that existed before the frame; its exact type is guarded by the caller."""
        value = node.peek()
        return cls(type(value), value=value, node=node)

    @property
    def was_raised(self) -> bool:
        """Whether it was raised in the frame, or before it."""
        return self.node is not None or isinstance(self.builtin.get("__traceback__"), TracebackVariable)

    # -- parts
    def part(self, tx: Tracer, name: str) -> VariableTracker:
        """An attribute of the C part."""
        found = self.builtin.get(name)
        if found is None:
            found = self.builtin[name] = self.given[name] = self._read(tx, name)
        return found

    def _read(self, tx: Tracer, name: str) -> VariableTracker:
        if self.node is not None:
            node = self.node.child(CAttr(name))
            if name == "__traceback__":
                if node.peek() is not None:
                    tx.guard(node, TypeIs(types.TracebackType))
                    return TracebackVariable(node=node)
            return tx.wrap(node)
        if name == "__suppress_context__":
            return tx.constant(False)
        return tx.constant(None)

    def args(self, tx: Tracer) -> list[VariableTracker]:
        """The items of `args`."""
        return abstract.iterate(tx, self.part(tx, "args"))

    def passed(self, tx: Tracer, place: Place) -> None:
        """It was raised there, or passed through."""
        before = self.builtin.get("__traceback__")
        if isinstance(before, TracebackVariable):
            traceback = before.passed(place)
        elif before is None and self.node is not None:  # whatever it is then
            traceback = TracebackVariable((place,), tx.wrap(self.node.child(CAttr("__traceback__"))))
        else:
            traceback = TracebackVariable((place,))
        self.set_part(tx, "__traceback__", traceback)

    def set_part(self, tx: Tracer, name: str, value: VariableTracker) -> None:
        """Store an attribute of the C part without checking it."""
        self.builtin[name] = value
        tx.mutated(self)

    # -- construction
    def initialize(
        self, tx: Tracer, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> None:
        """The builtin class's `__init__`."""
        base = builtin_class(self.cls)
        if kwargs and not issubclass(base, KEYWORDS):
            tx.raise_(TypeError, f"{abstract.type_name(self.cls)}() takes no keyword arguments")
        self.set_part(tx, "args", TupleVariable(list(args)))
        self.init, self.init_kwargs = tuple(args), dict(kwargs)
        if issubclass(base, BaseExceptionGroup):
            return
        made = fields(tx, base, self.init, kwargs)
        for name, value in made.items():
            self.set_part(tx, name, value)
        if issubclass(base, OSError) and 3 <= len(args) <= 5:
            self.set_part(tx, "args", TupleVariable(list(args[:2])))
        self.given.update((name, self.builtin[name]) for name in ("args", *made))

    # -- attributes
    def data_descriptor(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        if is_builtin_part(raw) and name != "__dict__":
            return self.part(tx, name)
        return super().data_descriptor(tx, name, raw, node)

    def bind(self, tx: Tracer, name: str, raw: object, node: Node) -> VariableTracker:
        if isinstance(raw, (types.WrapperDescriptorType, types.MethodDescriptorType)):
            return BuiltinMethodVariable(self, name)
        return super().bind(tx, name, raw, node)

    def _is_sealed(self, tx: Tracer) -> bool:
        """Whether, as with torch, only what chains it can be written: it is of a builtin class, and made in the frame."""
        return self.cls is builtin_class(self.cls) and self.node is None and not tx.traces_more

    def generic_setattr(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        raw = type_lookup(self.cls, name)
        if self._is_sealed(tx) and value is not None and (name not in PARTS or name == "args"):
            self.unmodelled(tx, f"writing the attribute {name!r}")
        if not is_builtin_part(raw) or name == "__dict__":
            super().generic_setattr(tx, name, value)
            return
        if value is None:
            if name in PARTS:
                tx.raise_(TypeError, f"{name} may not be deleted")
            self.unmodelled(tx, f"deleting the attribute {name!r}")
        value = value.realize(tx)
        if name in PARTS:
            value = PARTS[name](tx, value)
        elif isinstance(raw, types.MemberDescriptorType) and issubclass(self.cls, BaseExceptionGroup):
            tx.raise_(AttributeError, "readonly attribute")
        self.set_part(tx, name, value)
        if name == "__cause__":
            self.set_part(tx, "__suppress_context__", tx.constant(True))

    # -- methods of the C part
    def call_method(
        self, tx: Tracer, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Call a builtin method, also past the overrides of the class. As with torch, `__init__` called by the program
        (`super().__init__(…)`) and `add_note` break."""
        method: Callable[..., VariableTracker | None] | None = getattr(self, f"m_{name}", None)
        if name in ("__init__", "add_note") and not tx.traces_more:
            method = None
        if method is None or (name != "__init__" and kwargs):
            self.unmodelled(tx, method=repr(name))
        found = method(tx, *args, **kwargs)
        return tx.constant(None) if found is None else found

    def m___init__(self, tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> None:
        self.initialize(tx, args, kwargs)

    def m___str__(self, tx: Tracer) -> VariableTracker:
        return tx.constant(_text(tx, self))

    def m___repr__(self, tx: Tracer) -> VariableTracker:
        items = [abstract.constant_of(tx, abstract.repr_(tx, a), "repr()") for a in self.args(tx)]
        return tx.constant(f"{self.cls.__name__}({', '.join(items)})")

    def m_with_traceback(self, tx: Tracer, traceback: VariableTracker) -> VariableTracker:
        self.set_part(tx, "__traceback__", as_traceback(tx, traceback.realize(tx)))
        return self

    def m_add_note(self, tx: Tracer, note: VariableTracker) -> None:
        note = note.realize(tx)
        if str not in note.get_type().__mro__:
            tx.raise_(TypeError, f"note must be a str, not '{abstract.name_of(note)}'")
        missing = tx.constant(None)
        notes = abstract.getattr_default(tx, self, "__notes__", missing)
        if notes is missing:
            notes = ListVariable([])
            abstract.setattr_(tx, self, "__notes__", notes)
        if list not in notes.realize(tx).get_type().__mro__:
            tx.raise_(TypeError, "Cannot add note: __notes__ is not a list")
        tx.call(abstract.getattr_(tx, notes, "append"), [note])

    def m___format__(self, tx: Tracer, spec: VariableTracker) -> VariableTracker:
        if abstract.constant_of(tx, spec, "a format specification"):
            tx.raise_(TypeError, f"unsupported format string passed to {self.cls.__name__}.__format__")
        return self.tp_str(tx)

    def m___setattr__(self, tx: Tracer, name: VariableTracker, value: VariableTracker) -> None:
        self.generic_setattr(tx, abstract.constant_of(tx, name, "an attribute name"), value)

    def m___delattr__(self, tx: Tracer, name: VariableTracker) -> None:
        self.generic_setattr(tx, abstract.constant_of(tx, name, "an attribute name"), None)

    def m___getattribute__(self, tx: Tracer, name: VariableTracker) -> VariableTracker:
        return self.generic_getattr(tx, abstract.constant_of(tx, name, "an attribute name"))

    # -- slots
    def tp_repr(self, tx: Tracer) -> VariableTracker:
        found = self.method(tx, "__repr__")
        return self.m___repr__(tx) if found is None else tx.call(found, [])

    def tp_str(self, tx: Tracer) -> VariableTracker:
        found = self.method(tx, "__str__")
        return self.m___str__(tx) if found is None else tx.call(found, [])

    def nb_bool(self, tx: Tracer) -> bool:
        return True if self.method(tx, "__bool__") is None else super().nb_bool(tx)

    # -- rewritten code
    def children(self) -> Sequence[VariableTracker]:
        made = (*self.new_args, *(self.init or ()), *self.init_kwargs.values())
        return (*super().children(), *made, *self.builtin.values())

    def _store_parts(self, to: Rebuilder) -> None:
        changed = [n for n, v in self.builtin.items() if self.given.get(n) is not v]
        # storing a cause suppresses the context, so that flag comes last
        for name in sorted(changed, key=lambda n: n == "__suppress_context__"):
            self._store_part(to, name, self.builtin[name])

    def _store_part(self, to: Rebuilder, name: str, value: VariableTracker) -> None:
        loads = (lambda: to.load(self), lambda: to.load_const(name), lambda: to.load(value))
        to.call_helper(set_builtin_attribute, *loads)
        to.pop()

    def reconstruct(self, to: Rebuilder) -> None:
        cls, init, kwargs = self.cls, self.init, self.init_kwargs

        def keywords() -> None:
            for name, value in kwargs.items():
                to.load_const(name)
                to.load(value)
            to.build_map(len(kwargs))

        to.call_helper(
            build_exception,
            lambda: to.load_class(cls),
            lambda: _load_tuple(to, self.new_args),
            lambda: to.load_const(None) if init is None else _load_tuple(to, init),
            keywords,
        )
        to.remember(self)
        self._store_parts(to)
        self._store_attributes(to)

    def write_back(self, to: Rebuilder) -> None:
        self._store_parts(to)
        super().write_back(to)


def _load_tuple(to: Rebuilder, values: Sequence[VariableTracker]) -> None:
    for value in values:
        to.load(value)
    to.build_tuple(len(values))


# -- text, making, raising, matching


def _text(tx: Tracer, exception: ExceptionVariable) -> str:
    """`str()` by the builtin class's rule."""
    base = builtin_class(exception.cls)
    args = exception.args(tx)
    if issubclass(base, BaseExceptionGroup):
        if not tx.traces_more:
            exception.unmodelled(tx, "str()")
        children = group_items(tx, exception)
        plural = "" if len(children) == 1 else "s"
        message = abstract.constant_of(tx, group_message(tx, exception), "str()")
        return f"{message} ({len(children)} sub-exception{plural})"
    special = "__str__" in base.__dict__ or any("__str__" in c.__dict__ for c in base.__mro__[:-2])
    if special and not issubclass(base, KeyError):
        try:
            real = base.__new__(base, *[a.realize(tx).as_constant(tx) for a in exception.new_args])
            if exception.init is not None:
                values = [a.realize(tx).as_constant(tx) for a in exception.init]
                named = {k: v.realize(tx).as_constant(tx) for k, v in exception.init_kwargs.items()}
                real.__init__(*values, **named)  # type: ignore[misc]
            told = {} if issubclass(base, (AttributeError, NameError)) else exception.builtin
            for name, value in told.items():
                if name not in PARTS and exception.given.get(name) is not value:
                    setattr(real, name, value.realize(tx).as_constant(tx))
            return str(real)
        except NotConstant:
            exception.unmodelled(tx, "str()")
    if not args:
        return ""
    show = abstract.repr_ if len(args) > 1 or issubclass(base, KeyError) else abstract.str_
    shown = [abstract.constant_of(tx, show(tx, a), "str()") for a in args]
    return shown[0] if len(args) == 1 else f"({', '.join(shown)})"


def construct(
    tx: Tracer, cls: type, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    """Call an exception class.

    Args:
        tx: the tracer.
        cls: the class, builtin or the user's.
        args: positional arguments.
        kwargs: keyword arguments.

    Returns:
        The new exception.
    """
    make_new = type_lookup(cls, "__new__")
    if isinstance(make_new, (types.FunctionType, staticmethod)):
        tx.break_(UNKNOWN_OPERATION, operation="a user-defined __new__", what=cls.__qualname__)
    if issubclass(cls, BaseExceptionGroup):
        if cls not in (ExceptionGroup, BaseExceptionGroup) and not tx.traces_more:
            tx.break_(UNKNOWN_OPERATION, operation="a group of a derived class", what=cls.__qualname__)
        return _construct_group(tx, cls, args, kwargs)
    if cls is OSError and args:
        try:
            cls = type(real_exception(tx, OSError, args, {}))  # errno chooses the class
        except NotConstant:
            pass
    exception = ExceptionVariable(cls, args)
    _run_init(tx, exception, args, kwargs)
    return exception


def _run_init(
    tx: Tracer,
    exception: ExceptionVariable,
    args: Sequence[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> None:
    init = exception.method(tx, "__init__")
    if init is None:
        if kwargs and issubclass(exception.cls, KEYWORDS) and not tx.traces_more:
            exception.unmodelled(tx, "keyword arguments")
        exception.initialize(tx, args, kwargs)
        return
    found = tx.call(init, list(args), kwargs)
    if not abstract.is_none(tx, found):
        name = abstract.name_of(found.realize(tx))
        tx.raise_(TypeError, f"__init__() should return None, not '{name}'")


def make_exception(
    tx: Tracer, cls: type[BaseException] | VariableTracker, args: Sequence[Any] = ()
) -> ExceptionVariable:
    """An exception, without raising it.

    Args:
        tx: the tracer.
        cls: the class, or the tracker of a class or instance.
        args: trackers or Python constants.

    Returns:
        The instance.
    """
    if isinstance(cls, VariableTracker):
        return to_instance(tx, cls)
    made = new_exception(tx, cls, args)
    assert isinstance(made, ExceptionVariable)
    return made


def new_exception(
    tx: Tracer,
    cls: type[BaseException],
    args: Sequence[Any] = (),
    kwargs: dict[str, VariableTracker] | None = None,
) -> VariableTracker:
    """Call an exception class known to Python, with trackers or Python constants."""
    values = [a if isinstance(a, VariableTracker) else tx.constant(a) for a in args]
    return construct(tx, cls, values, kwargs or {})


def to_instance(
    tx: Tracer, v: VariableTracker, error: str = "exceptions must derive from BaseException"
) -> ExceptionVariable:
    """What `raise v` raises: an instance, or a class called without arguments.

    Args:
        tx: the tracer.
        v: the operand.
        error: the message of the TypeError for anything else.
    """
    value = v.realize(tx)
    if isinstance(value, ExceptionVariable):
        return value
    cls = abstract.python_class(value)
    if not is_exception_class(cls):
        tx.raise_(TypeError, error)
    made = tx.call(value, []).realize(tx)
    if not isinstance(made, ExceptionVariable):
        wanted = "should have returned an instance of BaseException"
        tx.raise_(TypeError, f"calling {cls!r} {wanted}, not {made.get_type()!r}")
    return made


def set_cause(tx: Tracer, exception: ExceptionVariable, cause: VariableTracker) -> None:
    """`raise exception from cause`."""
    if not abstract.is_none(tx, cause):
        cause = to_instance(tx, cause, "exception causes must derive from BaseException")
    exception.set_part(tx, "__cause__", cause.realize(tx))
    exception.set_part(tx, "__suppress_context__", tx.constant(True))


def chain(tx: Tracer, exception: ExceptionVariable, handled: VariableTracker | None) -> None:
    """Make the exception that is being handled the context of a newly raised one (`_PyErr_SetObject`).

    Args:
        tx: the tracer.
        exception: the one being raised.
        handled: what `sys.exc_info()` names, or None.
    """
    if not isinstance(handled, ExceptionVariable) or handled is exception:
        return
    seen: list[VariableTracker] = []
    link: VariableTracker = handled
    while isinstance(link, ExceptionVariable) and link not in seen:
        seen.append(link)
        following = link.part(tx, "__context__").realize(tx)
        if following is exception:  # never a cycle
            link.set_part(tx, "__context__", tx.constant(None))
            break
        link = following
    exception.set_part(tx, "__context__", handled)


def raised(tx: Tracer, exception: VariableTracker, cause: VariableTracker | None = None) -> ExceptionVariable:
    """What `raise exception from cause` raises: an instance, chained, with a traceback of its own.

    Args:
        tx: the tracer.
        exception: an exception class or instance.
        cause: the operand of `from`, or None when there is none.

    Returns:
        The instance; the caller raises `ObservedException` of it.
    """
    instance = to_instance(tx, exception)
    if cause is not None:
        set_cause(tx, instance, cause)
    chain(tx, instance, tx.handled_exception)
    if not instance.was_raised:
        instance.set_part(tx, "__traceback__", TracebackVariable())
    return instance


def stop_iteration(tx: Tracer, value: VariableTracker) -> ExceptionVariable:
    """`StopIteration(value)`, as a generator's return raises it (without arguments for None)."""
    return make_exception(tx, StopIteration, () if abstract.is_none(tx, value) else (value,))


def stop_iteration_left(tx: Tracer, stop: VariableTracker) -> ExceptionVariable:
    """The RuntimeError that stands for a StopIteration that left a generator's body."""
    error = make_exception(tx, RuntimeError, ("generator raised StopIteration",))
    set_cause(tx, error, stop)
    error.set_part(tx, "__context__", stop)
    error.set_part(tx, "__traceback__", TracebackVariable())
    return error


def match_classes(tx: Tracer, matcher: VariableTracker) -> tuple[type, ...]:
    """The classes of an `except` clause.

    TypeError is raised in the program when one isn't an exception class.
    """
    value = matcher.realize(tx)
    several = tuple in value.get_type().__mro__
    items = abstract.iterate(tx, value) if several else [value]
    classes = []
    for item in items:
        cls = abstract.python_class(item.realize(tx))
        if cls is None or not is_exception_class(cls):
            message = "catching classes that do not inherit from BaseException is not allowed"
            tx.raise_(TypeError, message)
        classes.append(cls)
    return tuple(classes)


def matches(tx: Tracer, exception: VariableTracker, matcher: VariableTracker) -> bool:
    """Whether `except matcher` catches the exception (CHECK_EXC_MATCH): by MRO, no `__subclasscheck__`."""
    mro = exception.realize(tx).get_type().__mro__
    return any(cls in mro for cls in match_classes(tx, matcher))


# -- groups


def group_message(tx: Tracer, group: ExceptionVariable) -> VariableTracker:
    """The message of a group."""
    return group.part(tx, "message")


def group_items(tx: Tracer, group: ExceptionVariable) -> list[ExceptionVariable]:
    """The exceptions of a group."""
    items = [item.realize(tx) for item in abstract.iterate(tx, group.part(tx, "exceptions"))]
    return [item for item in items if isinstance(item, ExceptionVariable)]


def _construct_group(
    tx: Tracer, cls: type, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> VariableTracker:
    new = "BaseExceptionGroup.__new__()"
    if len(args) != 2:
        tx.raise_(TypeError, f"{new} takes exactly 2 arguments ({len(args)} given)")
    message, given = args[0].realize(tx), args[1].realize(tx)
    if str not in message.get_type().__mro__:
        tx.raise_(TypeError, f"{new} argument 1 must be str, not {abstract.name_of(message)}")
    if not abstract.has(tx, given, "__getitem__") or dict in given.get_type().__mro__:
        tx.raise_(TypeError, "second argument (exceptions) must be a sequence")
    items = [item.realize(tx) for item in abstract.iterate(tx, given)]
    if not items:
        tx.raise_(ValueError, "second argument (exceptions) must be a non-empty sequence")
    for i, item in enumerate(items):
        if not isinstance(item, ExceptionVariable):
            tx.raise_(ValueError, f"Item {i} of second argument (exceptions) is not an exception")
    plain = all(Exception in item.get_type().__mro__ for item in items)
    if cls is BaseExceptionGroup and plain:
        cls = ExceptionGroup
    elif not plain and cls is ExceptionGroup:
        tx.raise_(TypeError, "Cannot nest BaseExceptions in an ExceptionGroup")
    elif not plain and issubclass(cls, Exception):
        tx.raise_(TypeError, f"Cannot nest BaseExceptions in '{cls.__name__}'")
    group = ExceptionVariable(cls, args)
    parts: dict[str, VariableTracker] = {"message": message, "exceptions": TupleVariable(items)}
    group.builtin.update(parts)
    group.given.update(parts)
    _run_init(tx, group, args, kwargs)
    return group


def raise_name_error(tx: Tracer, name: str, text: str) -> NoReturn:
    """Raise a NameError that tells the name."""
    try:
        tx.raise_(NameError, text)
    except ObservedException as observed:
        exception: Any = observed.exception
        exception.set_part(tx, "name", tx.constant(name))
        raise
