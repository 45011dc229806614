"""What a class tells of its instances: which attributes it has a say in, what their hash is made of."""

from __future__ import annotations

from dynacheck.sources import ABSENT, type_lookup


def is_data_descriptor(raw: object) -> bool:
    """Whether the type of a raw class attribute defines `__set__` or `__delete__`."""
    cls = type(raw)
    return type_lookup(cls, "__set__") is not ABSENT or type_lookup(cls, "__delete__") is not ABSENT


def hashed_fields(cls: type) -> list[str] | None:
    """The fields that the generated `__hash__` and `__eq__` of a frozen dataclass look at; None for other classes."""
    params = cls.__dict__.get("__dataclass_params__")
    if params is None or not (params.frozen and params.eq):
        return None
    for name in ("__hash__", "__eq__"):
        code = getattr(cls.__dict__.get(name), "__code__", None)
        if code is None or code.co_filename != "<string>":
            return None
    fields = cls.__dict__["__dataclass_fields__"].values()
    return [f.name for f in fields if f.compare and (f.hash is None or f.hash)]
