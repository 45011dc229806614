"""The backend `check`: runs the graph through another backend and compares every call with the graph run
eagerly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.fx

from dynacheck.graph.state import RandomStates


class GraphMismatch(AssertionError):
    """A backend's result differs from the graph's."""


def _copies(args: tuple[Any, ...]) -> list[Any]:
    """Tensors of the same metadata over storage of their own, aliases among them kept."""
    storages: dict[int, torch.UntypedStorage] = {}
    out: list[Any] = []
    for arg in args:
        if not isinstance(arg, torch.Tensor) or arg.layout is not torch.strided:
            out.append(arg.detach().clone() if isinstance(arg, torch.Tensor) else arg)
            continue
        key = arg.untyped_storage()._cdata
        if key not in storages:
            storages[key] = arg.untyped_storage().clone()  # type: ignore[no-untyped-call]
        copy = torch.empty(0, dtype=arg.dtype, device=arg.device)
        copy.set_(storages[key], arg.storage_offset(), arg.size(), arg.stride())
        out.append(copy.requires_grad_(arg.requires_grad) if arg.requires_grad else copy)
    return out


def _compare(what: str, got: Any, wanted: Any, options: Mapping[str, Any]) -> None:
    if not isinstance(wanted, torch.Tensor):
        if got != wanted:
            raise GraphMismatch(f"{what}: {got!r} instead of {wanted!r}")
        return
    for name in ("shape", "dtype", "device", "requires_grad"):
        if getattr(got, name) != getattr(wanted, name):
            raise GraphMismatch(f"{what}: {name} {getattr(got, name)} instead of {getattr(wanted, name)}")
    try:
        torch.testing.assert_close(
            got.detach(), wanted.detach(), rtol=options.get("rtol"), atol=options.get("atol"), equal_nan=True
        )
    except AssertionError as error:
        raise GraphMismatch(f"{what}: {error}") from None


def checking(
    inner: Callable[..., Any], options: Mapping[str, Any]
) -> Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]:
    """A backend that compares another one with the graph run as it is, on every call.

    Args:
        inner: the other backend.
        options: `rtol` and `atol`; torch's defaults for the dtype where absent.
    """

    def check(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        # the other backend may change the graph it is given
        plain = torch.fx.GraphModule(gm, torch.fx.Graph(), "GraphModule")
        plain.graph.output(plain.graph.graph_copy(gm.graph, {}))
        plain.recompile()
        compiled = inner(gm, example_inputs)

        def run(*args: Any) -> Any:
            copies, before = _copies(args), RandomStates()
            wanted = plain(*copies)
            after = RandomStates()
            before.restore()
            got = compiled(*args)
            for i, (one, other) in enumerate(zip(got, wanted)):
                _compare(f"output {i}", one, other, options)
            for i, (one, other) in enumerate(zip(args, copies)):
                if isinstance(one, torch.Tensor):
                    _compare(f"input {i} after the call", one, other, options)
            after.restore()
            return got

        return run

    return check
