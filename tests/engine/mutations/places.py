"""Every place in a world where one thing can be changed, and the changes that suit what is there.

A place is a path of steps from the world's globals, its function or its arguments; the same path finds the same thing
in every execution of the world's file.
"""

from __future__ import annotations

import collections
import copy
import enum
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Step = tuple[str, Any]
Path = tuple[Step, ...]


@dataclass
class World:
    """One execution of a world's file."""

    module: types.ModuleType
    fn: Any
    args: list[Any]

    def root(self, step: Step) -> Any:
        return {"globals": self.module, "fn": self.fn, "args": self.args}[step[1]]


def spelled(path: Path) -> str:
    """`args[1].items[0]`, `globals.shift.__defaults__[0]`."""
    text = ""
    for kind, key in path:
        text += {"root": f"{key}", "attr": f".{key}", "cell": f".<cell {key}>"}.get(kind, f"[{key!r}]")
    return text


def get(value: Any, step: Step) -> Any:
    kind, key = step
    if kind == "attr":
        return (
            vars(value)[key]
            if isinstance(value, type) or key in getattr(value, "__dict__", ())
            else getattr(value, key)
        )
    if kind == "cell":
        return value.__closure__[key].cell_contents
    return value[key]


def put(value: Any, step: Step, new: Any) -> None:
    kind, key = step
    if kind == "attr":
        setattr(value, key, new)
    elif kind == "cell":
        value.__closure__[key].cell_contents = new
    else:
        value[key] = new


def find(world: World, path: Path) -> Any:
    value = world.root(path[0])
    for step in path[1:]:
        value = get(value, step)
    return value


# ---- where something is ---------------------------------------------------------------------------------------------

_ATOMS = (int, float, str, bytes, type(None), torch.dtype, enum.Enum)
_HOOKS = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"}
_STATE = {"_parameters", "_buffers", "_modules"}
_DUNDERS = {
    "__dict__",
    "__weakref__",
    "__doc__",
    "__module__",
    "__qualname__",
    "__annotations__",
    "__slots__",
}


class _Walker:
    def __init__(self, world: World) -> None:
        self.world = world
        self.own = world.module.__name__
        self.seen: set[int] = set()

    def children(self, value: Any) -> Iterator[Step]:
        if isinstance(value, types.ModuleType):
            for name, found in vars(value).items():
                if not name.startswith("__") and not isinstance(found, types.ModuleType) and self.mine(found):
                    yield "attr", name
        elif isinstance(value, types.FunctionType):
            if value.__defaults__:
                yield "attr", "__defaults__"
            if value.__kwdefaults__:
                yield "attr", "__kwdefaults__"
            for i in range(len(value.__closure__ or ())):
                if value.__code__.co_freevars[i] != "__class__":
                    yield "cell", i
        elif isinstance(value, type):
            yield from (
                ("attr", name)
                for name in vars(value)
                if name not in _DUNDERS and not name.startswith("__match")
            )
        elif isinstance(value, (staticmethod, classmethod)):
            yield "attr", "__func__"
        elif isinstance(value, (list, tuple, collections.deque)):
            yield from (("item", i) for i in range(len(value)))
        elif isinstance(value, dict):
            yield from (("key", key) for key in value)
        elif not isinstance(value, (*_ATOMS, torch.Tensor, property)):
            inside = (
                set()
                if not isinstance(value, nn.Module)
                else set(vars(nn.Module())) - _HOOKS - _STATE - {"training"}
            )
            yield from (("attr", name) for name in getattr(value, "__dict__", ()) if name not in inside)
            yield from (
                ("attr", name) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)
            )

    def mine(self, value: Any) -> bool:
        """Is it the world's, not torch's or the library's?"""
        if isinstance(value, (type, types.FunctionType)):
            return value.__module__ == self.own
        return type(value).__module__.partition(".")[0] in (
            self.own,
            "torch",
            "builtins",
            "collections",
            "types",
        )

    def walk(self, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
        yield path, value
        if not isinstance(value, _ATOMS):
            if id(value) in self.seen:
                return
            self.seen.add(id(value))
        if not self.mine(value) or len(path) > 12:
            return
        for step in self.children(value):
            yield from self.walk((*path, step), get(value, step))


def places(world: World) -> Iterator[tuple[Path, Any]]:
    """All places and what is there, each object once."""
    walker = _Walker(world)
    for name in ("globals", "fn", "args"):
        yield from walker.walk((("root", name),), world.root(("root", name)))


# ---- what can be done -----------------------------------------------------------------------------------------------

Change = Callable[[World, Any], Any]
"""Gives the new value of the place, or `KEPT` when the value was changed in itself."""

KEPT = object()


def kept(fn: Callable[[Any], Any]) -> Change:
    def change(world: World, value: Any) -> Any:
        fn(value)
        return KEPT

    return change


def new(fn: Callable[[Any], Any]) -> Change:
    return lambda world, value: fn(value)


def another(world: World, value: Any) -> Any:
    """Any value of the type of another one, for new items and keys."""
    return copy.deepcopy(value) if isinstance(value, (torch.Tensor, nn.Module)) else value


def _replace_same(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad)


def _no_grad(fn: Callable[[Any], Any]) -> Change:
    def change(value: Any) -> None:
        with torch.no_grad():
            fn(value)

    return kept(change)


def _data(fn: Callable[[Any], Any]) -> Change:
    return kept(lambda t: setattr(t, "data", fn(t.data)))


NUMBERS: dict[str, Change] = {
    "int plus one": new(lambda n: n + 1),
    "zero": new(lambda n: type(n)(0)),
    "negative": new(lambda n: -n),
    "float": new(lambda n: float(n) + 0.5),
    "None": new(lambda n: None),
    "equal": new(lambda n: n + 0),
}
TENSORS: dict[str, Change] = {
    "requires_grad_": kept(lambda t: t.requires_grad_(not t.requires_grad)),
    "in place": _no_grad(lambda t: t.add_(1)),
    "data double": _data(lambda t: t.double()),
    "data doubled": _data(lambda t: t * 2),
    "data transposed": _data(
        lambda t: t.t().contiguous().t() if t.dim() == 2 else t.repeat_interleave(2)[::2]
    ),
    "data of one": _data(lambda t: t[:1].clone()),
    "resize_": _no_grad(lambda t: t.data.resize_(t.numel() + 4)),
    "set_": _no_grad(lambda t: t.data.set_(torch.zeros(t.shape).untyped_storage(), 0, t.shape, t.stride())),
    "new, the same": new(_replace_same),
    "new, half": new(lambda t: t.detach().half()),
    "new, 0-d": new(lambda t: t.detach().flatten()[0].clone()),
    "new, a row more": new(lambda t: torch.cat([t, t[:1]]).detach()),
    "None": new(lambda t: None),
    "attribute": kept(lambda t: setattr(t, "tag", 1)),
    "a parameter": new(lambda t: nn.Parameter(t.detach().clone(), requires_grad=False)),
}
SEQUENCES: dict[str, Change] = {
    "append": kept(lambda s: s.append(copy.deepcopy(s[-1]))),
    "pop": kept(lambda s: s.pop()),
    "reverse": kept(lambda s: s.reverse()),
    "clear": kept(lambda s: s.clear()),
    "equal copy": new(copy.copy),
    "rotated": new(lambda s: type(s)([*list(s)[1:], s[0]])),
}
TUPLES: dict[str, Change] = {
    "equal copy": new(lambda t: tuple(list(t))),
    "longer": new(lambda t: (*t, t[-1])),
    "shorter": new(lambda t: t[:-1]),
    "reversed": new(lambda t: t[::-1]),
    "a list": new(list),
}
DICTS: dict[str, Change] = {
    "new key": kept(lambda d: d.__setitem__("late", next(iter(d.values()), 1))),
    "first key gone": kept(lambda d: d.pop(next(iter(d)))),
    "moved to the end": kept(lambda d: d.__setitem__(k := next(iter(d)), d.pop(k))),
    "equal copy": new(copy.copy),
    "clear": kept(lambda d: d.clear()),
    "key and back": kept(lambda d: (d.__setitem__("late", 1), d.pop("late"))),
}
HOOKS: dict[str, Change] = {
    "a hook": kept(lambda d: d.__setitem__(0, lambda *args: None)),
    "a hook and back": kept(lambda d: (d.__setitem__(0, lambda *args: None), d.pop(0))),
    "equal copy": new(copy.copy),
}
SETS: dict[str, Change] = {
    "add": new(lambda s: s | {"late"}),
    "add in place": kept(lambda s: s.add("late")),
    "without one": new(lambda s: s - {sorted(s, key=repr)[0]}),
    "discard in place": kept(lambda s: s.discard(sorted(s, key=repr)[0])),
    "equal copy": new(copy.copy),
}
FUNCTIONS: dict[str, Change] = {
    "__code__": kept(lambda f: setattr(f, "__code__", _plus_one(f))),
    "equal __code__": kept(lambda f: setattr(f, "__code__", f.__code__.replace())),
    "replaced": new(lambda f: _wrapped(f)),
    "another of the same code": new(lambda f: _again(f)),
    "defaults gone": kept(lambda f: setattr(f, "__defaults__", None)),
    "attribute": kept(lambda f: setattr(f, "tag", 1)),
}
OBJECTS: dict[str, Change] = {
    "new attribute": kept(lambda o: setattr(o, "late", 1)),
    "shadowed methods": kept(lambda o: [setattr(o, n, _method(o, n)) for n in _methods(o)]),
    "subclass": kept(
        lambda o: setattr(o, "__class__", type(type(o).__name__ + "Too", (type(o),), {"__slots__": ()}))
    ),
    "equal copy": new(copy.copy),
    "deep copy": new(copy.deepcopy),
    "dict replaced": kept(lambda o: setattr(o, "__dict__", dict(o.__dict__))),
    "None": new(lambda o: None),
}
MODULES: dict[str, Change] = {
    "flip training": kept(lambda m: m.train(not m.training)),
    "training of itself": kept(lambda m: setattr(m, "training", not m.training)),
    "forward hook": lambda w, m: (m.register_forward_hook(hook), KEPT)[1],
    "forward pre hook": lambda w, m: (m.register_forward_pre_hook(lambda m, a: None), KEPT)[1],
    "hook and back": lambda w, m: (m.register_forward_hook(hook).remove(), KEPT)[1],
    "forward of its own": kept(lambda m: setattr(m, "forward", _doubled(m.forward))),
    "added child": kept(lambda m: m.add_module("late", nn.Identity())),
    "added parameter": kept(lambda m: m.register_parameter("late", nn.Parameter(torch.ones(2)))),
    "double": kept(lambda m: m.double()),
    "requires_grad_": kept(lambda m: m.requires_grad_(False)),
    "first child gone": kept(lambda m: m._modules.pop(next(iter(m._modules)))),
    "zero_grad": kept(lambda m: m.zero_grad()),
}
CLASSES: dict[str, Change] = {
    "new attribute": kept(lambda c: setattr(c, "late", 1)),
    "__getattribute__": kept(
        lambda c: setattr(c, "__getattribute__", lambda s, n: object.__getattribute__(s, n))
    ),
    "bases": kept(
        lambda c: setattr(c, "__bases__", (*c.__bases__[:-1], type("Late", (c.__bases__[-1],), {})))
    ),
    "replaced by a subclass": new(lambda c: type(c.__name__, (c,), {})),
}


def hook(module: Any, args: Any, output: Any) -> Any:
    return output + 1


def _plus_one(fn: types.FunctionType) -> types.CodeType:
    """The same signature and free variables, another result: constants are replaced where there are numbers."""
    code = fn.__code__
    bigger = {float: lambda n: n + 1.0, int: lambda n: n + 1}
    consts = tuple(bigger[type(c)](c) if type(c) in bigger and i else c for i, c in enumerate(code.co_consts))
    return code.replace(co_consts=consts)


def _wrapped(fn: types.FunctionType) -> Any:
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return replaced


def _again(fn: types.FunctionType) -> types.FunctionType:
    made = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
    return made


def _doubled(fn: Any) -> Any:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) * 2

    return forward


def _methods(obj: Any) -> list[str]:
    return [
        n for n, f in vars(type(obj)).items() if isinstance(f, types.FunctionType) and not n.startswith("__")
    ]


def _method(obj: Any, name: str) -> Any:
    return _doubled(getattr(obj, name))


def suits(value: Any, path: Path) -> dict[str, Change]:
    """The changes that suit a value, by name."""
    found: dict[str, Change] = {}
    if isinstance(value, bool):
        found = {"not": new(lambda b: not b), "an int": new(int), "None": new(lambda b: None)}
    elif isinstance(value, enum.Enum):
        found = {
            "another member": new(lambda e: next(m for m in type(e) if m is not e)),
            "None": new(lambda e: None),
        }
    elif isinstance(value, (int, float)):
        found = NUMBERS
    elif isinstance(value, str):
        found = {
            "longer": new(lambda s: s + "x"),
            "equal": new(lambda s: "".join(list(s))),
            "None": new(lambda s: None),
        }
    elif value is None:
        found = {"a number": new(lambda n: 1.0), "a tensor": new(lambda n: torch.ones(4))}
    elif isinstance(value, torch.Tensor):
        found = TENSORS
    elif isinstance(value, (list, collections.deque)):
        found = SEQUENCES
    elif isinstance(value, tuple):
        found = TUPLES
    elif path[-1][1] in _HOOKS:
        found = HOOKS
    elif isinstance(value, dict):
        found = DICTS if value else {n: DICTS[n] for n in ("new key", "equal copy", "key and back")}
    elif isinstance(value, (set, frozenset)):
        found = SETS
    elif isinstance(value, types.FunctionType):
        found = FUNCTIONS
    elif isinstance(value, type):
        found = CLASSES
    elif isinstance(value, nn.Module):
        found = {**OBJECTS, **MODULES}
    elif not isinstance(value, (types.ModuleType, property, staticmethod, classmethod)) and not callable(
        value
    ):
        found = OBJECTS
    if len(path) > 1 and path[-1][0] in ("attr", "key") and path[-1][1] not in _HOOKS | _STATE:
        found = {**found, "deleted": _DELETED}
    return found


def _DELETED(world: World, value: Any) -> Any:  # noqa: N802
    raise NotImplementedError


@dataclass(frozen=True)
class Mutation:
    """One change at one place."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{spelled(self.path)}: {self.name}"

    def apply(self, world: World) -> None:
        """Make the change; an exception of the change itself is let through."""
        holder = find(world, self.path[:-1]) if len(self.path) > 1 else None
        value = find(world, self.path)
        change = suits(value, self.path)[self.name]
        if change is _DELETED:
            (holder.pop if self.path[-1][0] == "key" else holder.__delattr__)(
                self.path[-1][1]
            ) if not isinstance(holder, type) else type.__delattr__(holder, self.path[-1][1])
            return
        found = change(world, value)
        if found is not KEPT:
            if isinstance(holder, tuple):  # in the tuple's own place
                items = list(holder)
                items[self.path[-1][1]] = found
                above = find(world, self.path[:-2])
                put(above, self.path[-2], tuple(items))
            else:
                put(holder, self.path[-1], found)


def mutations(world: World) -> list[Mutation]:
    """Every change at every place of a world."""
    return [
        Mutation(path, name) for path, value in places(world) for name in suits(value, path) if len(path) > 1
    ]
