"""Callable objects of C code that hold other values: partials, getters, cached functions, sort keys."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from dynacheck.reasons import UNKNOWN_ATTRIBUTE
from dynacheck.sources import CAttr, DictAttr, Node
from dynacheck.variables import abstract
from dynacheck.variables.base import Rebuilder, Tracer, VariableTracker
from dynacheck.variables.coerce import text
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.sequences import TupleVariable


class PartialVariable(BuiltinObject):
    """A functools.partial. Invariant: a sourced one reads its parts through its node.

    `attrs` are attributes that the frame gave to one it made; those of a sourced one aren't modelled.
    """

    __slots__ = ("args", "attrs", "function", "keywords")
    python_type = functools.partial

    def __init__(
        self,
        function: VariableTracker,
        args: VariableTracker,
        keywords: VariableTracker,
        node: Node | None = None,
    ) -> None:
        super().__init__(node)
        self.function = function
        self.args = args
        self.keywords = keywords
        self.attrs: dict[str, VariableTracker] = {}

    @classmethod
    def sourced(cls, tx: Tracer, node: Node) -> PartialVariable:
        """A partial that existed before the frame; its exact type is guarded by the caller."""
        parts = [tx.wrap(node.child(CAttr(name))) for name in ("func", "args", "keywords")]
        return cls(parts[0], parts[1], parts[2], node)

    @classmethod
    def made(
        cls,
        tx: Tracer,
        function: VariableTracker,
        args: Sequence[VariableTracker],
        keywords: dict[str, VariableTracker],
    ) -> PartialVariable:
        """`functools.partial(function, *args, **keywords)`; a partial of a partial is flat."""
        inner = function.realize(tx)
        named = [(tx.constant(k), v) for k, v in keywords.items()]
        if isinstance(inner, PartialVariable):
            function = inner.function
            args = [*abstract.iterate(tx, inner.args), *args]
            named = [*inner.pairs(tx), *named]
        return cls(function, TupleVariable(args), DictVariable.of(tx, named))

    def pairs(self, tx: Tracer) -> list[tuple[VariableTracker, VariableTracker]]:
        """The keyword arguments."""
        keywords = self.keywords.realize(tx)
        assert isinstance(keywords, DictVariable)
        return list(keywords.content(tx).values())

    def sample(self) -> Any:
        return functools.partial(len)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        named = {k.as_constant(tx): v for k, v in self.pairs(tx)}
        return tx.call(self.function, [*abstract.iterate(tx, self.args), *args], {**named, **kwargs})

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        found = self.attrs.get(name)
        return super().tp_getattro(tx, name) if found is None else found

    def tp_setattro(self, tx: Tracer, name: str, value: VariableTracker | None) -> None:
        if self.node is not None or value is None or name in ("func", "args", "keywords"):
            super().tp_setattro(tx, name, value)
            return
        self.attrs[name] = value

    def a_func(self, tx: Tracer) -> VariableTracker:
        return self.function

    def a_args(self, tx: Tracer) -> VariableTracker:
        return self.args

    def a_keywords(self, tx: Tracer) -> VariableTracker:
        return self.keywords

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return self

    def tp_repr(self, tx: Tracer) -> VariableTracker:
        shown = [text(tx, self.function), *(text(tx, a) for a in abstract.iterate(tx, self.args))]
        shown += [f"{k.as_constant(tx)}={text(tx, v)}" for k, v in self.pairs(tx)]
        return tx.constant(f"functools.partial({', '.join(shown)})")

    def children(self) -> Sequence[VariableTracker]:
        return (self.function, self.args, self.keywords, *self.attrs.values())

    def reconstruct(self, to: Rebuilder) -> None:
        loads = [_loader(to, part) for part in (self.function, self.args, self.keywords)]
        to.call_helper(make_partial, *loads)
        to.remember(self)
        for name, value in self.attrs.items():
            to.load(value)
            to.load(self)
            to.store_attr(name)


def _loader(to: Rebuilder, value: VariableTracker) -> Callable[[], None]:
    return lambda: to.load(value)


def make_partial(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> functools.partial[Any]:
    """A partial of its parts (used by rewritten code)."""
    return functools.partial(function, *args, **keywords)


class GetterVariable(BuiltinObject):
    """An operator.itemgetter, attrgetter or methodcaller, known by what it was made of.

    Args:
        kind: its class.
        args: positional arguments of the class.
        kwargs: keyword arguments of the class.
    """

    __slots__ = ("args", "kind", "kwargs")

    def __init__(
        self,
        kind: type,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker] | None = None,
        node: Node | None = None,
    ) -> None:
        super().__init__(node)
        self.kind = kind
        self.args = list(args)
        self.kwargs = kwargs or {}

    def get_type(self) -> type:
        return self.kind

    def sample(self) -> Any:
        return operator.itemgetter(0)

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if len(args) != 1 or kwargs:
            self.misuse(tx, "__call__", args, kwargs)
        obj = args[0].realize(tx)
        if self.kind is operator.methodcaller:
            name = abstract.constant_of(tx, self.args[0], "a method name")
            return tx.call(abstract.getattr_(tx, obj, name), self.args[1:], self.kwargs)
        found = [self._get(tx, obj, a) for a in self.args]
        return found[0] if len(found) == 1 else tx.tuple_of(found)

    def _get(self, tx: Tracer, obj: VariableTracker, what: VariableTracker) -> VariableTracker:
        if self.kind is operator.itemgetter:
            return abstract.getitem(tx, obj, what)
        for name in abstract.constant_of(tx, what, "an attribute name").split("."):
            obj = abstract.getattr_(tx, obj, name)
        return obj

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return self

    def children(self) -> Sequence[VariableTracker]:
        return (*self.args, *self.kwargs.values())

    def reconstruct(self, to: Rebuilder) -> None:
        to.push_callable(lambda: to.call_helper(_getter_class, lambda: to.load_const(self.kind.__name__)))
        for value in (*self.args, *self.kwargs.values()):
            to.load(value)
        to.call(len(self.args) + len(self.kwargs), tuple(self.kwargs))
        to.remember(self)


def _getter_class(name: str) -> Any:
    return getattr(operator, name)


class ScriptFunctionVariable(ObjectVariable):
    """What `torch.jit.script` makes of a function, which is interpreted."""

    __slots__ = ()

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        assert self.node is not None
        return tx.call(tx.wrap(self.node.child(DictAttr("_torchdynamo_inline"))), args, kwargs)


class CachedFunctionVariable(BuiltinObject):
    """What `functools.lru_cache` returns: the function below is interpreted, the cache isn't touched."""

    __slots__ = ("value",)
    python_type = type(functools.lru_cache(_getter_class))

    def __init__(self, value: Any, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value

    def describe(self) -> str:
        return str(self.value.__qualname__)

    def wrapped(self, tx: Tracer) -> VariableTracker:
        """The function below the cache."""
        if self.node is None:
            return tx.object(self.value.__wrapped__)
        return tx.wrap(self.node.child(DictAttr("__wrapped__")))

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.call(self.wrapped(tx), args, kwargs)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if name == "__wrapped__":
            return self.wrapped(tx)
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return tx.constant(getattr(self.value, name))
        if name in ("cache_info", "cache_clear"):  # of a cache that the frame's calls have passed over
            tx.give_up(UNKNOWN_ATTRIBUTE, name=name, what=self.describe())
        return super().tp_getattro(tx, name)

    def nb_bool(self, tx: Tracer) -> bool:
        return True

    def hash_key(self, tx: Tracer) -> Any:
        return self.value
