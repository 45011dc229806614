"""`explain`: what one call of a function or module captures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.fx

from dynacheck import api
from dynacheck.records import GraphBreak
from dynacheck.report import Report, observe


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a call captured. Has the attributes of torch's `ExplainOutput`.

    Args:
        graphs: the graphs, in the order in which they were captured.
        break_reasons: the graph breaks.
        out_guards: guards of all entries, as logs spell them.
        report: everything that happened.
    """

    graphs: tuple[torch.fx.GraphModule, ...]
    break_reasons: tuple[GraphBreak, ...]
    out_guards: tuple[str, ...]
    report: Report

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """Distinct places."""
        return len(self.break_reasons)

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        """The functions that each graph calls, in order; methods of tensors aren't among them, as in torch."""
        return [[n.target for n in gm.graph.nodes if n.op == "call_function"] for gm in self.graphs]

    @property
    def op_count(self) -> int:
        return sum(map(len, self.ops_per_graph))

    @property
    def compile_times(self) -> str:
        """How long each entry took, one a line."""
        return "\n".join(f"{e.function}: {e.seconds * 1000:.1f} ms" for e in self.report.cache_entries)

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, found in enumerate(self.break_reasons, 1):
            lines += [
                f"  Break Reason {number}:",
                f"    Reason: {found.message} [{found.reason}]",
                "    User Stack:",
                *(f'      File "{s.file}", line {s.line}, in {s.function}' for s in found.stack),
            ]
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {number}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Call a function or module once and say what was captured; entries that it has already play no part.

    Args:
        f: the function or module.
        *extra_args: arguments of the call; none of these and no keywords: returns a function that takes them.
        **extra_kwargs: keyword arguments of the call.

    Returns:
        An Explanation, or a function that takes the arguments and gives it.

    Raises:
        TypeError: something that can't be called.

    Example:
        >>> import torch
        >>> found = explain(lambda x: torch.sin(x) + 1)(torch.ones(3))
        >>> found.graph_count, found.op_count
        (1, 2)
    """

    if not callable(f):
        raise TypeError(f"explain takes a function or a module, not {type(f).__name__}")

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        graphs: list[torch.fx.GraphModule] = []

        def record(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
            graphs.append(gm)
            return gm.forward

        compiled = api.compile(f, backend=record, isolate_recompiles=True)
        with observe() as report:
            compiled(*args, **kwargs)
        guards = tuple(g for entry in report.cache_entries for g in entry.guards)
        return Explanation(tuple(graphs), report.graph_breaks, guards, report.frozen())

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained
