"""Whether data is what a JSON Schema says, for the part of that language that ours uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def faults(data: Any, schema: dict[str, Any], whole: dict[str, Any], path: str = "$") -> Iterator[str]:
    """Where the data differs, in words."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema and data != schema["const"]:
        yield f"{path}: {data!r} is not {schema['const']!r}"
    if "enum" in schema and data not in schema["enum"]:
        yield f"{path}: {data!r} is not among {schema['enum']}"
    if "type" in schema and not _is(data, schema["type"]):
        yield f"{path}: {data!r} is not a {schema['type']}"
        return
    if data is not None and "minimum" in schema and data < schema["minimum"]:
        yield f"{path}: {data!r} is below {schema['minimum']}"
    if isinstance(data, list):
        for i, value in enumerate(data):
            yield from faults(value, schema["items"], whole, f"{path}[{i}]")
    if isinstance(data, dict):
        yield from _fields(data, schema, whole, path)


def _is(data: Any, kinds: Any) -> bool:
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return any(
        isinstance(data, _TYPES[kind]) and (kind == "boolean" or not isinstance(data, bool)) for kind in kinds
    )


def _fields(data: dict[str, Any], schema: dict[str, Any], whole: dict[str, Any], path: str) -> Iterator[str]:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", False)
    yield from (f"{path}: no {name}" for name in schema.get("required", ()) if name not in data)
    for name, value in data.items():
        known = fields.get(name, others)
        if known is False:
            yield f"{path}: {name} isn't documented"
        else:
            yield from faults(value, known, whole, f"{path}.{name}")
