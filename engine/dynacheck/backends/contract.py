"""What a backend is to the engine: a name, an identity, and a callable from a captured graph to one that
runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dynacheck.graph.recorder import CapturedGraph

GraphCompiler: TypeAlias = Callable[[Any, list[Any]], Callable[..., Any]]
"""What users write: `(GraphModule, example_inputs) -> callable`."""


@dataclass(frozen=True, slots=True, eq=False)
class Backend:
    """A backend as one compile uses it.

    Args:
        name: what reports call it.
        identity: equal for compiles that may share entries; together with `compile` it is what a region
            belongs to.
        compile: makes the callable that runs a graph. Called once for each graph that is kept.
        function: the user's callable; None for a backend known by name.
    """

    name: str
    identity: tuple[Any, ...]
    compile: Callable[[CapturedGraph], Callable[..., Any]]
    function: Callable[..., Any] | None = None


def calling(fn: GraphCompiler, keywords: Mapping[str, Any]) -> Callable[[CapturedGraph], Callable[..., Any]]:
    """Hand a graph to a callable of the contract that looks at nothing else.

    Args:
        fn: the callable.
        keywords: further arguments for it (`mode`, `options`).
    """

    def compile_graph(captured: CapturedGraph) -> Callable[..., Any]:
        return fn(captured.gm, captured.example_inputs(), **keywords)

    return compile_graph
