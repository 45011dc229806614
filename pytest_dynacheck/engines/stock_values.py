"""What a guarded value was when torch.compile assumed it, and what it is when the guard fails.

Torch hands out every guard with its value while it builds an entry; the values themselves may change in place
later, so what is kept is a description (a snapshot), never the object. Later the same source is looked up in
the frame again and described again; only the aspects that the guard is about are compared.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Change", "Snapshot", "changes", "describe", "snapshot"]

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, tuple, dict, set, frozenset)
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
        "CLOSURE_MATCH",
        "BUILTIN_MATCH",
        "NN_MODULE",
    }
)
_LENGTH_GUARDS = frozenset({"SEQUENCE_LENGTH", "TUPLE_ITERATOR_LEN"})
_KEY_GUARDS = frozenset({"DICT_KEYS_MATCH", "MAPPING_KEYS_CHECK", "DICT_CONTAINS", "DICT_NOT_CONTAINS"})
_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Change:
    """One assumed value that is different now: where it lives, of which kind, and both values as text."""

    source: str
    kind: str
    then: str
    now: str
    file: str | None = None
    line: int | None = None
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A guarded source as it was when the entry was made. Invariant: text only, no reference to the value."""

    source: str
    aspects: Mapping[str, str]
    file: str | None
    line: int | None


def _cut(text: str) -> str:
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"


def _named(value: Any) -> str:
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{value.__qualname__} at line {code.co_firstlineno}"
    name = getattr(value, "__qualname__", None)
    return str(name) if isinstance(name, str) else f"a {type(value).__qualname__}"


def describe(value: Any) -> dict[str, str]:
    """Returns the aspects of ``value`` that guards can be about, as text by kind of change."""
    aspects = {"type": f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")}
    if isinstance(value, _SCALARS):
        aspects["value"] = _cut(repr(value))
    elif isinstance(value, _CONTAINERS):
        aspects["length"] = str(len(value))
        if isinstance(value, dict):
            aspects["keys"] = _cut(repr([key if isinstance(key, _SCALARS) else _named(key) for key in value]))
    elif hasattr(value, "stride") and hasattr(value, "dtype"):
        try:
            aspects.update(
                size=str(tuple(value.shape)),
                stride=str(tuple(value.stride())),
                dtype=str(value.dtype),
                device=str(value.device),
                requires_grad=str(value.requires_grad),
            )
        except (
            RuntimeError,
            TypeError,
            AttributeError,
        ):  # sparse and nested tensors have no strides: the rest stays unknown
            pass
    aspects["identity"] = f"{_named(value)} #{id(value)}"
    return aspects


def _compared(guard_type: str, source: str) -> frozenset[str]:
    """Returns the aspects that a guard of this type on this source is about."""
    if guard_type == "TENSOR_MATCH":
        return frozenset({"type", "size", "stride", "dtype", "device", "requires_grad"})
    if guard_type in _VALUE_GUARDS:
        return frozenset({"type", "value"})
    if guard_type in _LENGTH_GUARDS:
        return frozenset({"type", "length"})
    if guard_type in _KEY_GUARDS:
        return frozenset({"keys"})
    if guard_type in _IDENTITY_GUARDS:
        return frozenset({"identity"})
    return frozenset({"type"}) if guard_type == "TYPE_MATCH" else frozenset()


def snapshot(entries: Iterable[Any]) -> list[Snapshot]:
    """Returns a description of every guarded source among torch's ``GuardFilterEntry`` values."""
    found: list[Snapshot] = []
    for entry in entries:
        source = entry.orig_guard.name
        if not source or not entry.has_value:
            continue
        wanted = _compared(entry.guard_type, source)
        for derived in entry.derived_guard_types:
            wanted |= _compared(derived, source)
        if not wanted:
            continue
        value = entry.value
        if "type" in wanted and isinstance(value, _SCALARS):
            wanted |= {"value"} if entry.guard_type in _VALUE_GUARDS else frozenset()
        aspects = {kind: text for kind, text in describe(value).items() if kind in wanted}
        stack = entry.orig_guard.user_stack
        last = stack[-1] if stack else None
        found.append(
            Snapshot(source, aspects, last.filename if last else None, last.lineno if last else None)
        )
    return found


def _kind(kind: str, source: str) -> str:
    return "training" if kind == "value" and source.endswith(".training") else kind


def _now(source: str, names: dict[str, Any]) -> dict[str, str] | None:
    """Returns the aspects of what a source leads to now; None when it leads nowhere or can't be read."""
    try:
        return describe(eval(source, names))  # torch writes sources as expressions over L and G
    except Exception:
        return None


def changes(taken: Iterable[Snapshot], scope: Mapping[str, Any], failed: str) -> tuple[Change, ...]:
    """Returns what differs now from the snapshots, those the failing guard names first.

    Args:
        taken: the snapshots of one entry.
        scope: the names that sources are written in (``L``, ``G`` and torch's own).
        failed: the text of the guard that decided; a change whose source it names is marked so.
    """
    names = {**vars(builtins), **scope}
    found: dict[tuple[str, str], Change] = {}
    for shot in taken:
        now = _now(shot.source, names)
        if now is None:
            continue
        for kind, then in shot.aspects.items():
            value = now.get(kind, "missing" if kind != "value" else f"a {now['type']}")
            other_type = shot.aspects.get("type", now["type"]) != now["type"]
            if value == then or (kind == "value" and other_type):
                continue
            key = (shot.source, _kind(kind, shot.source))
            if kind == "identity":
                then, value = then.rpartition(" #")[0], value.rpartition(" #")[0]
            found.setdefault(
                key, Change(shot.source, key[1], then, value, shot.file, shot.line, shot.source in failed)
            )
    return tuple(sorted(found.values(), key=lambda change: not change.decided))
