"""Calling: handlers, graph operators, inlining, classes, modules."""

from __future__ import annotations

import enum
import itertools
import types
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import nn

from dynacheck import interop, reasons
from dynacheck.guards import CodeIs, Is
from dynacheck.handlers import annotations as annotation_handlers
from dynacheck.handlers import (
    collections_,
    numpy_,
    registry,
    rules,
    skip,
    torch_operators,
    torch_overrides,
    torch_tensors,
    unbound,
)
from dynacheck.handlers.decorating import decorated
from dynacheck.sources import ABSENT, CAttr, DictAttr, Node, TypeAttr, type_lookup
from dynacheck.translate.arguments import bind_arguments
from dynacheck.translate.leaving import read_constant
from dynacheck.translate.signals import SkipFrame
from dynacheck.translate.tracing import Tracing
from dynacheck.variables import abstract, enums, exceptions, families, scalars
from dynacheck.variables.base import LazyVariable, ObservedException, VariableTracker
from dynacheck.variables.callables import CachedFunctionVariable
from dynacheck.variables.classes import ASKED_FOR_ITS_CLASS, ClassVariable, keeps_making
from dynacheck.variables.finalizers import note_instance
from dynacheck.variables.functions import BoundMethodVariable, ObjectVariable, UserFunctionVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.methods import BuiltinObject
from dynacheck.variables.modules import NNModuleVariable, is_lazy
from dynacheck.variables.namespaces import class_namespace
from dynacheck.variables.objects import UserObjectVariable
from dynacheck.variables.proxies import MappingProxyVariable
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.torch_names import NAMES, TorchNameVariable

COROUTINES = 0x80 | 0x200
GENERATORS = 0x20 | COROUTINES
NOT_CALLED = 1 << 7
IMMUTABLE = (tuple.__new__, frozenset.__new__)
"""The flag of a class of C code that makes its instances elsewhere."""
_OPERATORS = ("builtins", "_operator")  # modules whose functions torch takes for operators
ABSTRACT = 1 << 20
"""The flag of a class that has abstract methods left."""


class Calls(Tracing):
    """The calling half of a frame's translator."""

    code: CodeType

    def call(
        self,
        fn: VariableTracker,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker] | None = None,
    ) -> VariableTracker:
        fn = fn.realize(self)
        if isinstance(fn, CachedFunctionVariable):
            sentence = f"`{fn.describe()}` is called each time: its functools.lru_cache is passed over."
            self.attempt.cautions.setdefault(sentence, self.stack_lines())
        return fn.tp_call(self, list(args), kwargs or {})

    def call_python(
        self, fn: Callable[..., Any], *args: VariableTracker, **kwargs: VariableTracker
    ) -> VariableTracker:
        assert isinstance(fn, FunctionType)
        return self.inline(UserFunctionVariable(fn), list(args), kwargs)

    def _handled(
        self, value: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker | None:
        handler = registry.lookup(value) or annotation_handlers.lookup(value)
        return None if handler is None else handler(self, *args, **kwargs)

    def _operator(
        self, value: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker | None:
        """The call of an operator of torch, or of a tensor's method taken from the class."""
        target = torch_operators.operator_target(value)
        if target is not None:
            return self.record("call_function", target, args, kwargs)
        method = torch_operators.method_name(value)
        if method is not None and args:
            tensor = args[0].realize(self)
            if isinstance(tensor, TensorVariable):
                return tensor.call_method(self, method, list(args[1:]), kwargs)
        return None

    def _own_meaning(
        self,
        fn: ObjectVariable | UserFunctionVariable,
        value: Any,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker | None:
        """The call of something with a meaning of its own: by a rule, a handler, or as an operator."""
        return (
            rules.follow(self, fn, value, args, kwargs)
            or self._handled(value, args, kwargs)
            or numpy_.call(self, value, args, kwargs)
            or self._operator(value, args, kwargs)
        )

    def call_object(
        self, fn: ObjectVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        value = fn.value
        found = self._own_meaning(fn, value, args, kwargs)
        if found is not None:
            return found
        attribute = torch_overrides.attribute_of(value)
        if attribute is not None and args:
            return args[0].realize(self).tp_getattro(self, attribute)
        if (
            isinstance(
                value,
                (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType),
            )
            and args
        ):
            if unbound.breaks(fn) and ASKED_FOR_ITS_CLASS not in self.state:
                self.break_(reasons.UNKNOWN_CALL, what=fn.describe())
            return self.call_base_method(
                args[0].realize(self), value.__objclass__, value.__name__, args[1:], kwargs
            )
        if isinstance(value, type):
            if issubclass(value, BaseException):
                return exceptions.construct(self, value, list(args), kwargs)
            return self.call_class(fn, args, kwargs)
        why = skip.why_skipped(value)
        if why is not None and getattr(value, "__module__", None) not in _OPERATORS:
            self.break_(reasons.SKIPPED_CALL, call=fn.describe(), why=why + self._called_by())
        self.break_(reasons.UNKNOWN_CALL, what=fn.describe())

    def _called_by(self) -> str:
        """What of a library the user's line has called, where the running frame is inside of it."""
        frames = [
            *itertools.takewhile(
                lambda f: skip.is_library_file(f.code.co_filename), self.attempt.frames[::-1]
            )
        ]
        return (
            f"; `{frames[-1].globals['__name__']}.{frames[-1].code.co_qualname}` calls it" if frames else ""
        )

    def call_function(
        self, fn: UserFunctionVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        value = fn.value
        if value is not None:
            found = self._own_meaning(fn, value, args, kwargs)
            if found is not None:
                return found
            if fn.node is not None and _compiled_from(value):  # compiled inside compiled
                return self.call(
                    self.wrap(fn.node.child(DictAttr("_torchdynamo_orig_callable"))), args, kwargs
                )
            self._may_inline(fn, value)
        else:
            read_constant(self, fn)  # as torch, which tries to make the function
        return self.inline(fn, args, kwargs)

    def _may_inline(self, fn: UserFunctionVariable, value: FunctionType) -> None:
        """Break where a function must not be looked into."""
        if interop.is_torch_disabled(value) or getattr(value, "_dynacheck_disable", False):
            reason = getattr(value, "_torchdynamo_disable_msg", None)
            self.break_(
                reasons.DISABLED_CALL, call=fn.describe(), why=f" Reason: {reason}." if reason else ""
            )
        why = skip.why_not_inlined(value)
        if why is not None:
            self.break_(reasons.SKIPPED_CALL, call=fn.describe(), why=why)

    def inline(
        self, fn: UserFunctionVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Interpret a function's body as part of this frame."""
        code = fn.code
        if code.co_flags & COROUTINES:
            self.break_(reasons.UNKNOWN_CALL, what=f"the coroutine function {fn.describe()}")
        if args and isinstance(args[0], LazyVariable) and issubclass(args[0].get_type(), nn.Module):
            # a module handed to a call is looked at, as torch does: its type is guarded
            args[0].realize(self)
        if (
            fn.node is not None and fn.value is not None
        ):  # a function keeps its identity when its code is replaced
            self.guard(fn.node, CodeIs(fn.value))
        bound = bind_arguments(self, fn, args, kwargs)
        return self.run_frame(code, bound, fn)

    def run_frame(
        self, code: CodeType, bound: dict[str, VariableTracker], fn: UserFunctionVariable
    ) -> VariableTracker:
        """What an inlined call gives: its result, or a generator that owns the new frame."""
        raise NotImplementedError

    # -- methods
    def call_named_method(
        self,
        owner: VariableTracker,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        real = owner.realize(self)
        if isinstance(real, UserFunctionVariable) and name == "__get__":
            instance = args[0].realize(self)
            if instance.is_constant() and instance.as_constant(self) is None:
                if len(args) < 2 or abstract.is_none(self, args[1]):
                    self.raise_(TypeError, "__get__(None, None) is invalid")
                return real
            return BoundMethodVariable(real, instance)
        if isinstance(real, (UserFunctionVariable, BoundMethodVariable)) and name == "__call__":
            return self.call(real, args, kwargs)
        raw: Any = type_lookup(real.get_type(), name)
        if raw is object.__getattribute__:  # as torch, which knows it through super() alone
            self.break_(reasons.UNKNOWN_CALL, what=f"the method {name!r} of {real.describe()}")
        if isinstance(real, ObjectVariable) and isinstance(real.value, type):
            return self._class_method(real, name, args, kwargs)
        if isinstance(real, UserObjectVariable):
            base = getattr(raw, "__objclass__", object)
            return self.call_base_method(real, base, name, args, kwargs)
        if raw is not ABSENT:
            found = self._handled(raw, [real, *args], kwargs)
            if found is not None:
                return found
        self.break_(reasons.UNKNOWN_CALL, what=f"the method {name!r} of {real.describe()}")

    def _class_method(
        self,
        cls: ObjectVariable,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        """A C method of a class object: `type.__call__`, `type.mro`, `dict.fromkeys` on a subclass."""
        raw = type_lookup(cls.value, name)
        if raw is ABSENT:
            raw = type_lookup(type(cls.value), name)
        found = self._handled(raw, [cls, *args], kwargs)
        if found is None and isinstance(raw, types.ClassMethodDescriptorType):
            found = self._handled(raw.__get__(None, cls.value), args, kwargs)
        if found is not None or name == "__call__":  # type's own, also where the metaclass has another
            return found or self._instance(cls, args, kwargs)
        self.break_(reasons.UNKNOWN_CALL, what=f"{cls.describe()}.{name}")

    def call_base_method(
        self,
        owner: VariableTracker,
        base: type,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        """A C method of a builtin base on an object: `super().__setitem__(k, v)`, `object.__setattr__(self, n, v)`."""
        owner = owner.realize(self)
        if base is type and isinstance(owner, ClassVariable) and name in ("__setattr__", "__delattr__"):
            stored = args[1] if name == "__setattr__" else None
            owner.type_setattr(self, self._name(args[0]), stored)
            return self.constant(None)
        if base is type and isinstance(owner, ObjectVariable) and isinstance(owner.value, type):
            return self._class_method(owner, name, args, kwargs)
        if base is object and (found := self._object_method(owner, name, args, kwargs)) is not None:
            return found
        raw = type_lookup(base, name)
        found = None if isinstance(owner, UserObjectVariable) else self._handled(raw, [owner, *args], kwargs)
        if found is not None:
            return found
        if isinstance(owner, UserObjectVariable):
            hooked = collections_.by_items(owner.cls, raw)
            if hooked is not None:
                return self.call_python(hooked, owner, *args, **kwargs)
        target = owner.base or owner if isinstance(owner, UserObjectVariable) else owner
        if (method := getattr(target, "call_method", None)) is not None:
            called: VariableTracker = method(self, name, list(args), dict(kwargs))
            return called
        self.break_(reasons.UNKNOWN_CALL, what=f"{base.__name__}.{name} on {owner.describe()}")

    def _name(self, value: VariableTracker) -> str:
        """The name of an attribute."""
        name: object = abstract.constant_of(self, value, "an attribute's name")
        if not isinstance(name, str):
            self.raise_(TypeError, f"attribute name must be string, not {type(name).__name__!r}")
        return name

    def refuse_excess(self, cls: type, method: str, other: str) -> None:
        """The TypeError of `object`'s `__new__` or `__init__` given arguments that neither of the two takes."""
        if type_lookup(cls, method) is not type_lookup(object, method):
            what = "type to instantiate" if method == "__new__" else "instance to initialize"
            self.raise_(TypeError, f"object.{method}() takes exactly one argument (the {what})")
        if type_lookup(cls, other) is type_lookup(object, other):
            one = ".__init__() takes exactly one argument (the instance to initialize)"
            self.raise_(TypeError, cls.__name__ + ("() takes no arguments" if method == "__new__" else one))

    def _object_method(
        self,
        owner: VariableTracker,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker | None:
        """`object`'s own methods, called past a class's overrides."""
        if isinstance(owner, UserObjectVariable):
            if name == "__setattr__":
                owner.generic_setattr(self, self._name(args[0]), args[1])
                return self.constant(None)
            if name == "__delattr__":
                owner.generic_setattr(self, self._name(args[0]), None)
                return self.constant(None)
            if name == "__getattribute__":
                wanted = self._name(args[0])
                try:
                    return owner.generic_getattr(self, wanted)
                except ObservedException as observed:
                    abstract.tell_of(self, observed, wanted, owner)
                    raise
            if name == "__init__" and (args or kwargs):
                self.refuse_excess(owner.cls, "__init__", "__new__")
        if name in ("__init__", "__init_subclass__"):
            return self.constant(None)
        if name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__") and len(args) == 1:
            same = owner is args[0].realize(self) and name in ("__eq__", "__ne__")
            return self.constant(name == "__eq__" if same else NotImplemented)
        return self._handled(type_lookup(object, name), [owner, *args], kwargs)

    def bind_object(self, owner: VariableTracker, name: str, raw: object, node: Node) -> VariableTracker:
        """A class attribute with a C `__get__` (a partialmethod's, a cached property's) through an instance."""
        if isinstance(raw, type) or not (callable(raw) or type(raw) is super):
            return self.wrap(node)
        found = families.bind_descriptor(self, owner, name, raw, node)
        if found is not None:
            return found
        self.break_(reasons.UNKNOWN_ATTRIBUTE, name=name, what=owner.describe())

    def property_getter(self, node: Node, raw: property) -> VariableTracker:
        self.guard(node, Is(raw))
        return self.wrap(node.child(CAttr("fget")))

    def property_setter(self, node: Node, raw: property, which: str) -> VariableTracker:
        self.guard(node, Is(raw))
        return self.wrap(node.child(CAttr(which)))

    def unwrap_method(self, node: Node, raw: Any) -> VariableTracker:
        """The function of a staticmethod or classmethod."""
        return self.wrap(node.child(CAttr("__func__")))

    def instance_dict(self, owner: UserObjectVariable) -> VariableTracker:
        """`obj.__dict__`."""
        return families.instance_dict(self, owner)

    def builtin_base(self, node: Node, value: Any) -> BuiltinObject | None:
        return families.builtin_base(self, node, value)

    # -- abstract operations for trackers
    def truth(self, value: VariableTracker) -> bool:
        return abstract.is_true(self, value)

    def contains_by_iteration(self, owner: VariableTracker, item: VariableTracker) -> VariableTracker:
        for found in abstract.iterate(self, owner):
            if abstract.is_(self, found, item) or abstract.is_true(
                self, abstract.richcompare(self, "==", found, item)
            ):
                return self.constant(True)
        return self.constant(False)

    def sequence_iterator(self, owner: VariableTracker) -> VariableTracker:
        return families.sequence_iterator(owner)

    def call_next(self, method: VariableTracker) -> VariableTracker | None:
        """Call a `__next__`; None at StopIteration."""
        try:
            return self.call(method, [])
        except ObservedException as observed:
            if abstract.raised(observed, StopIteration):
                return None
            raise

    def iterate_tensor(self, tensor: TensorVariable) -> VariableTracker:
        return torch_tensors.iterate(self, tensor)

    def string_items(self, value: VariableTracker) -> dict[str, VariableTracker]:
        """The items of a dict with string keys."""
        return families.string_items(self, value)

    # -- tensors
    def torch_function(
        self, op: str, target: Any, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return torch_overrides.dispatch(self, op, target, args, kwargs)

    def string_dict(self, items: dict[str, VariableTracker]) -> VariableTracker:
        return DictVariable.of(self, [(self.constant(k), v) for k, v in items.items()])

    def call_tensor_method(
        self,
        tensor: TensorVariable,
        name: str,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        if self.attempt.function_modes:
            return self.torch_function("call_method", name, [tensor, *args], kwargs)
        return torch_tensors.call_method(self, tensor, name, list(args), kwargs)

    def store_tensor_attribute(
        self, tensor: TensorVariable, name: str, value: VariableTracker | None
    ) -> None:
        torch_tensors.store_attribute(self, tensor, name, value)

    def graph_call(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        return self.attempt.graph.call("call_function", target, list(args), kwargs, self.stack_lines())

    def object_attribute(self, owner: ObjectVariable, name: str) -> VariableTracker:
        value = owner.value
        try:
            found = getattr(value, name)
        except AttributeError as error:
            self.raise_(AttributeError, *error.args)
        if name == "__dict__" and isinstance(value, type):
            return MappingProxyVariable(class_namespace(self, value))
        if name in NAMES and isinstance(found, str) and not isinstance(value, type) and _is_torch(value):
            return TorchNameVariable(found)
        if owner.node is not None and not isinstance(value, type) and not _is_torch(value):
            child = owner.node.child(CAttr(name))
            if child.peek() is ABSENT:
                self.break_(reasons.UNKNOWN_ATTRIBUTE, name=name, what=owner.describe())
            return self.wrap(child)
        return self.object(found)

    # -- classes and modules
    def call_class(
        self, cls: ObjectVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        value: type = cls.value
        called: object = type_lookup(type(value), "__call__")
        if (found := self._handled(value, args, kwargs)) is not None:
            return found
        if isinstance(called, type):  # a TypedDict's is dict
            return self.call(self.object(called), args, kwargs)
        if issubclass(value, enum.Enum) and args:
            return enums.call(self, value, args, kwargs)
        if isinstance(called, FunctionType) and not issubclass(value, enum.Enum):
            method = self.class_node(type(value)).named(TypeAttr, "__call__")
            return self.call(self.wrap(method), [cls, *args], kwargs)
        return self._instance(cls, args, kwargs)

    def _instance(
        self, cls: ObjectVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """`type.__call__`."""
        value: type = cls.value
        if value.__flags__ & NOT_CALLED:
            self.break_(reasons.UNKNOWN_CALL, what=f"the class {value.__qualname__}")
        if (special := families.construct(self, cls, list(args), kwargs)) is not None:
            return special
        if (made := torch_overrides.construct(self, value, args, kwargs)) is not None:
            return made
        called = type_lookup(type(value), "__call__")
        own = called is type.__call__ or isinstance(called, FunctionType)
        if not own or issubclass(value, (torch.Tensor, enum.Enum)):
            self.break_(reasons.UNKNOWN_CALL, what=f"the class {value.__qualname__}")
        if not isinstance(cls, ClassVariable):
            why = skip.why_skipped(value)
            if why is None:
                self.break_(reasons.UNKNOWN_CALL, what=f"{cls.describe()}, a class of C code,")
            self.break_(reasons.SKIPPED_CALL, call=cls.describe(), why=why)
        return self._construct(cls, value, args, kwargs)

    def _construct(
        self,
        cls: ClassVariable,
        value: type,
        args: Sequence[VariableTracker],
        kwargs: dict[str, VariableTracker],
    ) -> VariableTracker:
        """`__new__`, then `__init__` if the result is an instance."""
        keeps_making(self, value)
        new_raw = type_lookup(value, "__new__")
        if isinstance(new_raw, (staticmethod, classmethod, FunctionType)):
            made = self.call(cls.tp_getattro(self, "__new__"), [cls, *args], kwargs)
        else:
            fixed = self._handled(new_raw, [cls, *args], kwargs) if new_raw in IMMUTABLE else None
            fixed = fixed or scalars.new(self, cls, args, kwargs)
            made = self.new_instance(cls) if fixed is None else fixed
        real = made.realize(self)
        kind = real.get_type()
        if not issubclass(kind, value):
            return made
        init_raw = type_lookup(kind, "__init__")
        if isinstance(init_raw, FunctionType):
            init = abstract.getattr_(self, cls if kind is value else self.class_variable(kind), "__init__")
            result = self.call(init, [real, *args], kwargs).realize(self)
            if not (result.is_constant() and result.as_constant(self) is None):
                self.raise_(TypeError, f"__init__() should return None, not {result.get_type().__name__!r}")
        elif init_raw is object.__init__:
            if (args or kwargs) and new_raw is type_lookup(object, "__new__"):
                self.refuse_excess(kind, "__new__", "__init__")
        elif isinstance(init_raw, types.WrapperDescriptorType):
            self.call_base_method(real, init_raw.__objclass__, "__init__", args, kwargs)
        else:
            self.call(abstract.getattr_(self, real, "__init__"), args, kwargs)
        return real

    def new_instance(self, cls: ClassVariable) -> VariableTracker:
        """`object.__new__(cls)`, or the builtin base's."""
        value: type = cls.value
        if value.__flags__ & ABSTRACT:
            try:
                object.__new__(value)  # only CPython's wording is asked for: it lists the abstract methods
            except TypeError as error:
                self.raise_(TypeError, *error.args)
        base = families.empty_base(self, value)
        made = UserObjectVariable(value, None, None, base)
        note_instance(self, made)
        return made

    def call_module(
        self, module: NNModuleVariable, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        attempt = self.attempt
        assert module.node is not None
        if is_lazy(module.value):  # its first call makes its parameters, and another class of it
            reason = reasons.AMBIENT_STATE
            raise SkipFrame(
                reason, reason.message(what="the first call of a lazy module"), self.stack_lines()
            )
        attempt.modules.append((module.node.path, module.cls))
        try:
            if module.has_plain_call(self):
                module.guard_no_hooks(self)
                return self.call(module.tp_getattro(self, "forward"), args, kwargs)
            return self.call(module.tp_getattro(self, "_call_impl"), args, kwargs)
        finally:
            attempt.modules.pop()

    def store_module_attribute(self, module: NNModuleVariable, name: str, value: VariableTracker) -> None:
        """`nn.Module.__setattr__`."""
        real = value.realize(self)
        container = module.is_registered(self, name)
        if container is None and not issubclass(real.get_type(), (nn.Module, nn.Parameter)):
            module.generic_setattr(self, name, value)
            return
        if container == "_buffers" and (isinstance(real, TensorVariable) or real.is_constant()):
            families.store_buffer(self, module, name, real)
            return
        if module.attrs.get(name) is not None or name in {*module.value.__dict__} - {
            *module.attrs
        }:  # `remove_from`
            module.generic_setattr(self, name, None)
        node = self.class_node(nn.Module)
        from_class = self.wrap(node.child(TypeAttr("__setattr__")))
        self.call(from_class, [module, self.constant(name), value])

    def decorate_with_context(self, context: VariableTracker, args: list[VariableTracker]) -> VariableTracker:
        function = args[0].realize(self) if len(args) == 1 else None
        if isinstance(function, UserFunctionVariable) and not function.code.co_flags & GENERATORS:
            return self.call_python(decorated, context, function)
        self.break_(reasons.UNKNOWN_CALL, what=f"{context.describe()} as a decorator")


def _compiled_from(value: FunctionType) -> bool:
    """Whether a function is the compiled form of another."""
    return "_torchdynamo_orig_callable" in value.__dict__ and not interop.is_torch_disabled(value)


def _is_torch(value: Any) -> bool:
    return str(getattr(value, "__module__", "") or "").startswith("torch")
