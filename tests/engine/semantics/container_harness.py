"""Programs compiled with `fullgraph=True` against plain Python: values, types, identity, mutations, exceptions."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import dynacheck
import torch

MODULES = ("collections", "contextlib", "copy", "dataclasses", "enum", "functools", "itertools", "math", "numbers",
           "operator", "typing")  # fmt: skip


class Backend:
    """Runs graphs as they are and counts them."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, gm: Any, inputs: Any) -> Any:
        self.graphs += 1
        return gm.forward


def shown(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """A value as comparable data: exact types, order, tensors by value."""
    if id(value) in seen:
        return "<itself>"
    inner = (*seen, id(value))
    if isinstance(value, torch.Tensor):
        return ("tensor", value.dtype, tuple(value.shape), value.tolist())
    if isinstance(value, float):
        return (float, repr(value))
    if isinstance(value, dict):
        extra = (shown(value.default_factory),) if hasattr(value, "default_factory") else ()
        return (type(value), [(shown(k, inner), shown(v, inner)) for k, v in value.items()], *extra)
    if isinstance(value, (set, frozenset)):
        return (type(value), sorted(repr(shown(v, inner)) for v in value))
    if isinstance(value, functools.partial):
        return (type(value), *[shown(p, inner) for p in (value.func, value.args, value.keywords)])
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return (type(value), [shown(v, inner) for v in value])
    if type(value).__name__ in ("object", "Opaque"):
        return type(value).__name__
    return (type(value), value)


def names() -> dict[str, Any]:
    return {"torch": torch, **{name: importlib.import_module(name) for name in MODULES}}


def function(args: str, body: str, extra: dict[str, Any] | None = None) -> Any:
    """`def program(x, <args>)` that adds to the tensor x and leaves `result`; what is raised is returned."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    parameters = f"x, {args}" if args else "x"
    text = (
        f"def program({parameters}):\n    y = x + 1\n    try:\n{lines}    except Exception as error:\n"
        "        result = ('raised', type(error).__name__, str(error))\n    return y, result\n"
    )
    scope = {**names(), **(extra or {})}
    exec(text, scope)
    return scope["program"]


def check(args: str, values: str, body: str, extra: dict[str, Any] | None = None, calls: int = 2) -> None:
    """Compile the program, call it on fresh arguments and compare with plain Python, arguments included."""
    program = function(args, body, extra)
    backend = Backend()
    compiled = dynacheck.compile(program, backend=backend, fullgraph=True)
    for call in range(calls):
        given = eval(f"({values},)", {**names(), **(extra or {})}) if args else ()
        mirror = eval(f"({values},)", {**names(), **(extra or {})}) if args else ()
        expected = program(torch.ones(2), *mirror)
        found = compiled(torch.ones(2), *given)
        have, want = (shown(found), shown(given)), (shown(expected), shown(mirror))
        assert have == want, (call, have, want)
        assert backend.graphs == 1, f"{backend.graphs} graphs"
