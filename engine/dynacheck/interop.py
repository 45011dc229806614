"""What users set through torch's own API. Looks in `sys.modules`, never imports torch's compiler."""

from __future__ import annotations

import sys
from typing import Any, Final

_MISSING = object()


def loaded(name: str) -> Any:
    """The module if something has imported it already, else None."""
    return sys.modules.get(name)


def torch_config(name: str, default: Any) -> Any:
    """A value of `torch._dynamo.config` if the user has that module loaded, else `default`."""
    config = loaded("torch._dynamo.config")
    return default if config is None else getattr(config, name, default)


def torch_exception(name: str) -> type[Exception] | None:
    """torch's exception type of that name, if its module is loaded."""
    for place in ("torch._dynamo.exc", "torch.fx.experimental.symbolic_shapes") if name else ():
        found = getattr(loaded(place), name, None)
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return None


_joined: dict[tuple[type, type], type[Any]] = {}


def joined_exception(ours: type, theirs: type) -> type[Any]:
    """A class with both bases, made once (named like ours)."""
    key = (ours, theirs)
    if key not in _joined:
        _joined[key] = type(ours.__name__, (ours, theirs), {"__module__": ours.__module__})
    return _joined[key]


def torch_stance() -> str | None:
    """The stance set through `torch.compiler.set_stance`, or None when nobody has."""
    frame = loaded("torch._dynamo.eval_frame")
    stance = getattr(frame, "_stance", None) if frame is not None else None
    name = getattr(stance, "stance", None)
    return name if isinstance(name, str) and name != "default" else None


def is_torch_disabled(fn: Any) -> bool:
    """True for what `torch.compiler.disable` (or `torch._dynamo.disable`) returned or marked."""
    return bool(getattr(fn, "_torchdynamo_disable", False))


def optimized_module() -> type[Any] | None:
    """torch's class of compiled modules, if its module is loaded."""
    frame = loaded("torch._dynamo.eval_frame")
    return getattr(frame, "OptimizedModule", None) if frame is not None else None


_TORCH_TABLES: Final = (
    ("_nonstrict_trace_callable_ids", "nonstrict"),
    ("_allowed_callable_ids", "allow"),
    ("_disallowed_callable_ids", "disallow"),
)
_NOTHING: Final[dict[str, Any]] = {}


def torch_rule(obj: Any) -> tuple[str, Any] | None:
    """What `torch.compiler.allow_in_graph` and its relatives were told about a function, as
    `dynacheck.marks` names it.

    Returns:
        The kind and the function to trace instead, or None.
    """
    rules = loaded("torch._dynamo.trace_rules")
    if rules is None:
        return None
    replacement = getattr(obj, "__dict__", _NOTHING).get("__torch_dynamo_polyfill__")
    if replacement is not None:
        return "substitute", replacement
    key = id(obj)
    for name, kind in _TORCH_TABLES:
        # torch fills these tables itself when they are first read: only what users added is asked for, and
        # what torch itself adds, its compiler's own functions, has handlers
        ids = getattr(getattr(rules, name, None), "function_ids", None)
        if ids and key in ids and not str(getattr(obj, "__module__", "")).startswith("torch._dynamo"):
            return kind, None
    return None
