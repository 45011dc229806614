"""What to do about a recompile: a hint per kind of guard, and the history of a value that keeps changing."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynacheck.events import ChangeRow
from dynacheck.records import Change

_BY_KIND = {
    "size": "a size that varies is dynamic after one recompile, or from the start with mark_dynamic",
    "stride": "make the memory format the same on every call, e.g. x.contiguous()",
    "dtype": "convert to one dtype before the call",
    "device": "move the tensor to one device before the call",
    "requires_grad": "each value of requires_grad has an entry of its own; call it the same way every time",
    "layout": "convert to one layout before the call",
    "dispatch_keys": "the tensor was made in another mode (inference mode, a subclass); make it in one mode",
    "rank": "each number of dimensions is a graph of its own",
    "length": "loops over it are unrolled: each length is a graph of its own; keep it fixed, or use a tensor",
    "keys": "pass the same keys on every call",
    "type": "pass the same type on every call",
    "identity": "it is compared by identity: make the object once and keep it",
    "presence": "set it always, e.g. to None in __init__",
    "code": "define the function once, outside of the code that runs on every call",
    "aliasing": "whether two arguments are the same tensor is part of the compiled code; call it one way",
    "expression": "a branch depends on this condition: each side is a graph of its own",
    "training": "train() and eval() have an entry each; allow this one recompile, or keep the mode",
    "hooks": "register hooks before the first call",
    "mark": "mark the tensor the same way before every call",
    "grad_mode": "grad mode is part of the compiled code: warm up in the mode that you serve in",
    "inference_mode": "inference mode is part of the compiled code: warm up in the mode that you serve in",
    "autocast": "autocast is part of the compiled code: enter it the same way on every call",
    "default_dtype": "the default dtype is part of the compiled code: set it once, before the first call",
    "default_device": "the default device is part of the compiled code: set it once, before the first call",
    "deterministic": "the flag is part of the compiled code: set it once, before the first call",
    "function_mode": "function modes are part of the compiled code: enter them the same way each time",
    "global_state": "this setting is part of the compiled code: set it once, before the first call",
    "region": "each compile of a function has entries of its own: compile it once and keep the result",
}  # fmt: skip


def hint_for(change: ChangeRow) -> str:
    """One sentence on what to do about a failed guard; "" if there is nothing useful to say."""
    if change.hint:
        return change.hint
    if change.kind == "size":
        return _size_hint(change)
    if change.kind == "identity" and change.path.startswith("L['___stack"):
        return "taken before a graph break, it is another object on every call: compute what it gets first"
    if change.kind == "expression" and re.fullmatch(
        r"\S+\.size\(\)\[\d+\] == \S+\.size\(\)\[\d+\]", str(change.then)
    ):
        return (
            "the sizes were equal in the first call and are taken to stay equal; make it with different ones"
        )
    if change.kind != "value":
        return _BY_KIND.get(change.kind, "")
    kind, own = type(change.then), change.source.startswith("self.")
    where = "forward" if own else "the compiled function"
    if change.then is None or change.now is None:
        return "None or not is part of the compiled code: set it before the first call"
    if kind is bool:
        return "each of True and False is a graph of its own: warm up both, or call it one way"
    if kind is float:
        way_out = "make it a buffer, or pass it as a tensor" if own else "pass it as a tensor"
        return f"a Python float read in {where} is part of the compiled code; {way_out}"
    if kind is int:
        way_out = "make it a buffer, or move it out of forward" if own else "pass it as a tensor"
        return f"a Python int read in {where} is part of the compiled code; {way_out}"
    if kind is str:
        return "a string is part of the compiled code: each value is a graph of its own"
    return "this value is part of the compiled code; keep it constant, or pass it as a tensor"


def _size_hint(change: ChangeRow) -> str:
    if {change.then, change.now} & {0, 1}:
        return "sizes 0 and 1 have entries of their own, whatever is marked dynamic; don't call it with them"
    if change.source.startswith("self."):
        return "sizes of what a module owns are never dynamic: modules of other widths share its function's entries"
    return _BY_KIND["size"]


@dataclass(frozen=True, slots=True)
class History:
    """How one guarded value changed over successive recompiles.

    Args:
        source: the user's spelling.
        values: the first assumed value and what it became, in order, as reports print them.
        note: what can be said about it (`only ever incremented at model.py:12`), or "".
    """

    source: str
    values: tuple[str, ...]
    note: str = ""


def history_of(changes: Sequence[Change]) -> History:
    """The history of one value from the failed guards on it.

    Args:
        changes: changes of one source, oldest first, at least one.
    """
    first = changes[0]
    values = (first.then, *(change.now for change in changes))
    return History(first.source, (first.was, *(change.became for change in changes)), _note(first, values))


def _note(change: Change, values: tuple[Any, ...]) -> str:
    if change.kind not in ("value", "length") or not all(type(v) is int for v in values) or len(values) < 3:
        return ""
    steps = [b - a for a, b in itertools.pairwise(values)]
    if not (all(s > 0 for s in steps) or all(s < 0 for s in steps)):
        return ""
    if change.kind == "length":
        return "grows on every call" if steps[0] > 0 else "shrinks on every call"
    word = "incremented" if steps[0] > 0 else "decremented"
    lines = counted_at(change.origin, change.source.rpartition(".")[2], steps[0] > 0) if change.origin else ()
    places = ", ".join(f"{change.file}:{line}" for line in lines)
    return f"only ever {word} at {places}" if places else f"only ever {word}"


@functools.lru_cache(maxsize=256)
def counted_at(file: str, name: str, up: bool) -> tuple[int, ...]:
    """Lines of a file where the attribute or variable is counted; () if it is also written in another way.

    Writes in `__init__` and outside of functions don't count as another way.

    Args:
        file: absolute file name.
        name: attribute or variable.
        up: look for `+=`, else for `-=`.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    found: list[int] = []

    def visit(node: ast.AST, function: str) -> bool:
        """False when the name is written some other way."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        elif isinstance(node, ast.AugAssign) and _names(node.target) == name:
            if not isinstance(node.op, ast.Add if up else ast.Sub):
                return False
            found.append(node.lineno)
        elif isinstance(node, ast.Assign) and function not in ("", "__init__"):
            for target in node.targets:
                if _names(target) == name:
                    if not _counts(node.value, name, up):
                        return False
                    found.append(node.lineno)
        return all(visit(child, function) for child in ast.iter_child_nodes(node))

    return tuple(found) if visit(tree, "") else ()


def _names(target: ast.expr) -> str:
    return (
        target.attr
        if isinstance(target, ast.Attribute)
        else target.id
        if isinstance(target, ast.Name)
        else ""
    )


def _counts(value: ast.expr, name: str, up: bool) -> bool:
    """True for `name + 1`."""
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add if up else ast.Sub)
        and name in (_names(value.left), _names(value.right))
    )
