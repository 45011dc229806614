"""What a guarded value was when torch.compile assumed it, and what it is when the guard fails.

Torch hands out every guard with its value while it builds an entry; the values themselves may change in place
later, so what is kept is a description (a snapshot), never the object. Later the same source is looked up in
the frame again and described again; only the aspects that the guard is about are compared.
"""

from __future__ import annotations

import builtins
import collections
import enum
import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType
from typing import Any

from dynacheck import places
from dynacheck.accessors import is_a
from dynacheck.events import Named
from dynacheck.guards.held import describe as named
from dynacheck.guards.held import is_made_anew
from dynacheck.guards.tensors import arrangement

__all__ = ["Change", "Snapshot", "changes", "describe", "snapshot"]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS: tuple[Any, ...] = (list, tuple, dict, collections.OrderedDict, set, frozenset, collections.deque)
_VALUE_GUARDS = frozenset(
    {
        "EQUALS_MATCH",
        "CONSTANT_MATCH",
        "CONSTANT_SUBCLASS_MATCH",
        "BOOL_MATCH",
        "NONE_MATCH",
        "NOT_NONE_MATCH",
    }
)
_IDENTITY_GUARDS = frozenset(
    {
        "ID_MATCH",
        "FUNCTION_MATCH",
        "CLASS_MATCH",
        "MODULE_MATCH",
        "BUILTIN_MATCH",
        "NN_MODULE",
    }
)
_LENGTH_GUARDS = frozenset({"SEQUENCE_LENGTH", "TUPLE_ITERATOR_LEN"})
_KEY_GUARDS = frozenset({"DICT_KEYS_MATCH", "MAPPING_KEYS_CHECK"})
_TENSOR_ASPECTS = ("dtype", "device", "requires_grad", "layout", "rank", "size", "stride")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_global_")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One assumed value that is different now: where it lives, of which kind, and both values as plain data.

    ``source`` is torch's spelling. ``decided``: the guard that failed is about it; the others only differ.
    ``trait``: as ``ChangeRow`` of the engine's events has it.
    """

    source: str
    kind: str
    then: Any
    now: Any
    detail: str = ""
    file: str | None = None
    line: int | None = None
    decided: bool = False
    trait: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A guarded source as it was when the entry was made. Invariant: plain data, no reference to the value.

    ``ids`` are those of the object, of its type and of its code, for guards on them. Sizes and strides that
    may vary are None.
    """

    source: str
    aspects: Mapping[str, Any]
    ids: tuple[int, int, int]
    file: str | None
    line: int | None


def describe(value: Any) -> dict[str, Any]:
    """Returns the aspects of ``value`` that guards can be about, as plain data by kind of change."""
    aspects: dict[str, Any] = {"type": named(type(value)), "identity": named(value)}
    code, torch = _code(value), importlib.import_module("torch")
    if code is not None:
        aspects["code"] = named(code)
    aspects["value"] = value if is_a(value, _SCALARS) else aspects["identity"]
    kind: Any = next((base for base in type(value).__mro__ if base in _CONTAINERS), None)
    if kind is not None:  # as the builtin class does it: a class derived from it may do anything
        aspects["length"] = kind.__len__(value)
        if issubclass(kind, dict):
            aspects["keys"] = [key if is_a(key, _SCALARS) else named(key) for key in kind.__iter__(value)]
    elif is_a(value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            try:
                aspects.update(
                    dtype=value.dtype,
                    device=str(value.device),
                    requires_grad=value.requires_grad,
                    layout=str(value.layout),
                    rank=value.dim(),
                    size=tuple(value.shape),
                    stride=tuple(value.stride()),
                )
            except (RuntimeError, TypeError, AttributeError):
                pass  # sparse and nested tensors have no strides: the rest stays unknown
    return aspects


def _code(value: Any) -> CodeType | None:
    """The code of a function or method; no other object is asked, since its attributes may be anything."""
    return value.__code__ if issubclass(type(value), (FunctionType, MethodType)) else None


def _compared(guard_type: str) -> frozenset[str]:
    """Returns the aspects that a guard of this type is about."""
    if guard_type == "TENSOR_MATCH":
        return frozenset({"type", *_TENSOR_ASPECTS})
    if guard_type in _VALUE_GUARDS:
        return frozenset({"value"})
    if guard_type in _LENGTH_GUARDS:
        return frozenset({"length"})
    if guard_type in _KEY_GUARDS:
        return frozenset({"keys"})
    if guard_type == "CLOSURE_MATCH":
        return frozenset({"code"})
    if guard_type in _IDENTITY_GUARDS:
        return frozenset({"identity"})
    return frozenset({"type"}) if guard_type == "TYPE_MATCH" else frozenset()


Static = Callable[[Any, str], Sequence[int | None] | None]


def snapshot(entries: Iterable[Any], static: Static | None = None) -> list[Snapshot]:
    """Returns a description of every guarded source among torch's ``GuardFilterEntry`` values.

    Args:
        entries: what torch gives a guard filter.
        static: gives the sizes (or strides) that a tensor's guard holds, None for those that may vary; or None
            if all are held.
    """
    found: list[Snapshot] = []
    for entry in entries:
        source = entry.orig_guard.name
        if not source or not entry.has_value:
            continue
        wanted = frozenset[str]().union(*map(_compared, (entry.guard_type, *entry.derived_guard_types)))
        if not wanted:
            continue
        aspects = {kind: found for kind, found in describe(entry.value).items() if kind in wanted}
        if "code" in aspects and is_a(entry.value, FunctionType) and not is_made_anew(entry.value):
            del aspects["code"]  # there is one function of that code: it is another one
            aspects["identity"] = named(entry.value)
        for kind in {"size", "stride"} & aspects.keys():
            held = None if static is None else static(entry.orig_guard.originating_source, kind)
            aspects[kind] = aspects[kind] if held is None else tuple(held)
        stack = entry.orig_guard.user_stack
        own = [line for line in stack or () if not places.is_library(line.filename)]
        last = (own or stack or [None])[-1]
        where = (last.filename, last.lineno) if last else (None, None)
        found.append(Snapshot(source, aspects, _ids(entry.value), *where))
    return found


def texts(entries: Iterable[Any], taken: Iterable[Snapshot]) -> tuple[str, ...]:
    """Returns the guards as torch's logs spell them; those of tensors, which it gives no text of, from the snapshots.

    Args:
        entries: what torch gives a guard filter.
        taken: the snapshots made of them.
    """
    tensors = [
        "check_tensor({}, {dtype}, device={device}, requires_grad={requires_grad}, size={size}, stride={stride})".format(
            shot.source,
            **{**shot.aspects, "size": list(shot.aspects["size"]), "stride": list(shot.aspects["stride"])},
        )
        for shot in taken
        if {"dtype", "size", "stride"} <= shot.aspects.keys()
    ]
    return (*tensors, *(text for entry in entries for text in entry.orig_guard.code_list or ()))


def _now(source: str, names: dict[str, Any]) -> Any:
    """Returns what a source leads to now; _MISSING when it leads nowhere or can't be read."""
    try:
        return eval(source, names)  # torch writes sources as expressions over L and G
    except Exception:
        return _MISSING


def _ids(value: Any) -> tuple[int, int, int]:
    return id(value), id(type(value)), id(_code(value))


def _kind(kind: str, source: str, value: Any) -> str:
    """The kind in the user's terms."""
    if any(name in source for name in _HOOKS) and ".__closure__[" not in source:
        return "hooks"
    if kind == "value" and source.endswith(".training"):
        return "training"
    return "value" if kind == "identity" and is_a(value, enum.Enum) else kind


def _another(then: Any, now: Any) -> Any:
    """What is there now, told apart from what has the same name."""
    return Named(f"another {now}") if then == now else now


def _differences(shot: Snapshot, value: Any) -> Iterable[tuple[str, Any, Any, str]]:
    """Kind, then, now and detail of what differs; what follows from another type or rank is left out."""
    now, then = describe(value), shot.aspects
    ids = _ids(value)
    if "type" in then and shot.ids[1] != ids[1]:
        yield "type", then["type"], _another(then["type"], now["type"]), ""
        return
    if "value" in then:
        differs = type(then["value"]) is not type(now["value"]) or then["value"] != now["value"]
        if differs and not (then["value"] != then["value"] and now["value"] != now["value"]):
            yield "value", then["value"], now["value"], ""
    for kind, place in (("identity", 0), ("code", 2)):
        if kind in then and shot.ids[place] != ids[place]:
            yield kind, then[kind], _another(then[kind], now.get(kind, now["identity"])), ""
    for kind in ("length", "keys"):
        if kind in then and then[kind] != now.get(kind):
            container = "dict" if kind == "length" and is_a(value, dict) else ""
            yield kind, then[kind], now.get(kind, now["identity"]), container
    for kind in _TENSOR_ASPECTS[:5]:
        if kind in then and then[kind] != now.get(kind):
            yield kind, then[kind], now.get(kind), ""
    size, was, came = now.get("size"), then.get("stride"), now.get("stride")
    if size and was and came and size == then.get("size") and None not in was != came:
        yield "stride", arrangement(size, was), arrangement(size, came), "memory format"
        return
    for kind in ("size", "stride"):
        if kind in then and len(then[kind]) == len(now.get(kind, ())):
            for i, (a, b) in enumerate(zip(then[kind], now[kind], strict=True)):
                if a is not None and a != b:
                    yield kind, a, b, f"{kind} of dim {i}"


def _gone(shot: Snapshot, failed: str) -> Change:
    there, gone, decided = Named("present"), Named("absent"), shot.source in failed
    hook = re.match(r"(.+\._\w*hooks)(?:_always_called|_with_kwargs)?\[", shot.source)
    source, kind, detail = (hook[1], "hooks", "a hook") if hook else (shot.source, "presence", "")
    return Change(source, kind, there, gone, detail, shot.file, shot.line, decided)


def made_by(nodes: Iterable[Any]) -> frozenset[tuple[int, ...]]:
    """Returns the shapes of the tensors that a graph gives, as far as they are numbers."""
    given = [made for node in nodes if node.op == "output" for made in node.all_input_nodes]
    shapes = [getattr(made.meta.get("example_value"), "shape", ()) for made in given]
    return frozenset(tuple(shape) for shape in shapes if all(type(size) is int for size in shape))


_SELF = "L['self']"
_OWNED = re.compile(r"\._(?:parameters|buffers)\['\w+'\]$")


def _trait(change: Change, value: Any, made: frozenset[tuple[int, ...]], moved: bool) -> str:
    """What is known of a tensor whose size differs, or a value that does; `moved`: `self` is another module."""
    if moved and change.kind == "value" and change.source.startswith(f"{_SELF}."):
        return "of another module"
    config = importlib.import_module("torch._dynamo.config")
    fixed = "" if config.automatic_dynamic_shapes or not config.assume_static_by_default else "fixed"
    if change.kind != "size":
        return fixed if change.kind == "value" and type(value) in (int, float) else ""
    if change.now > change.then and describe(value).get("size") in made:
        return "grown"
    if _OWNED.search(change.source):
        return "owned"
    marks = vars(value).get("_dynamo_static_indices", ())
    return "marked static" if change.detail in [f"size of dim {dim}" for dim in marks] else fixed


def changes(
    taken: Iterable[Snapshot], scope: Mapping[str, Any], failed: str, made: frozenset[tuple[int, ...]]
) -> tuple[Change, ...]:
    """Returns what differs now from the snapshots.

    Args:
        taken: the snapshots of one entry.
        scope: the names that sources are written in (``L``, ``G`` and torch's own).
        failed: the text of the guard that decided; a change whose source it names is marked so.
        made: shapes of what the entry's graph gave.
    """
    names = {**vars(builtins), **scope}
    found: dict[tuple[str, str, str], Change] = {}
    taken, module = list(taken), importlib.import_module("torch").nn.Module
    mine = _now(_SELF, names)
    moved = is_a(mine, module) and any(s.source == _SELF and s.ids[0] != id(mine) for s in taken)
    for shot in taken:
        value = _now(shot.source, names)
        if value is _MISSING:
            found.setdefault((shot.source, "presence", ""), _gone(shot, failed))
            continue
        for kind, then, now, detail in _differences(shot, value):
            told = _kind(kind, shot.source, value)
            decided = shot.source in failed
            change = Change(shot.source, told, then, now, detail, shot.file, shot.line, decided)
            change = replace(change, trait=_trait(change, value, made, moved))
            found.setdefault((shot.source, told, detail), change)
    return tuple(found.values())
