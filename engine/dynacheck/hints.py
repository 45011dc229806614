"""What to do about a recompile: a hint per kind of guard, and the history of a value that keeps changing."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from dynacheck.events import SIGNATURE, ChangeRow
from dynacheck.records import ONE_NUMBER, Change, is_condition

_BY_KIND = {
    "size": "a size that varies is dynamic after one recompile, or from the start with mark_dynamic",
    "stride": "make the memory format the same on every call, e.g. x.contiguous()",
    "dtype": "convert to one dtype before the call",
    "device": "move the tensor to one device before the call",
    "requires_grad": "each value of requires_grad has an entry of its own, under no_grad() too: keep it the same",
    "layout": "convert to one layout before the call",
    "dispatch_keys": "how the tensor was made is part of the compiled code: make it in one mode, the same way every time",
    "rank": "each number of dimensions is a graph of its own",
    "length": "loops over it are unrolled: each length is a graph of its own; keep it fixed, or use a tensor",
    "keys": "pass the same keys on every call",
    "type": "give it the same type on every call",
    "identity": "it is compared by identity, not by value: make the object once and keep it",
    "presence": "set it always, e.g. to None in __init__",
    "code": "define the function once, outside of the code that runs on every call",
    "aliasing": "whether these are one object, or overlap, is part of the compiled code; call it one way",
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


_CONTAINERS = {
    "dict": "how many keys it has is part of the compiled code: give it the same keys on every call",
    "set": "how many items it has is part of the compiled code: give it the same items on every call",
}


_STATIC_CACHE = (
    "the compiled function makes it longer on every call: use a static cache, made once for the greatest length and "
    "written in place (transformers: StaticCache)"
)
_SEVERAL = 3
_ALL_DYNAMIC = "several sizes vary: they are dynamic after one recompile, or from the start with dynamic=True"
_SAME_ORDER = "the order of the keys is part of the compiled code: pass them in the same order"
_DUCK_SHAPES = (
    "the sizes were equal in the first call and are taken to stay equal: warm up with different ones, or set "
    "torch.fx.experimental._config.use_duck_shape = False"
)
_AT_THIS_LINE = "the code at this line depends on it: equal sizes and different ones are graphs of their own"
_EACH = "each is a graph of its own: warm up those that are used, or keep it the same"
_ADDS = "the compiled function adds keys to it (line{0}): give it a dict that has them, or return the values"
_REBUILDS = (
    "the compiled function rebuilds it (line{0}): make it before the first call, for the largest input"
)
_COUNTED = "the compiled function counts it (line{0}): count outside of it, or in a tensor"


def varies_now(change: ChangeRow, guards: Collection[str]) -> bool:
    """Whether an entry takes a number or size as it comes that the entry before it had held to one value.

    Args:
        change: the guard of the entry before that failed.
        guards: those of the entry that was made because of it.
    """
    kinds = {type(change.then), type(change.now)}
    if change.kind == "size":
        return kinds == {int} and _held(change, guards) == ""
    number = change.kind == "value" and kinds in ({int}, {float}) and bool(guards)
    return number and not any(text.startswith(f"{change.path} == ") for text in guards)


def _held(change: ChangeRow, guards: Collection[str]) -> str | None:
    """How an entry holds a size to one value: by the tensor's own guard, by a condition (its text), not at all (""), or
    None if its guards don't tell."""
    dim = change.detail.rpartition(" ")[2]
    own = next((text for text in guards if text.startswith(f"check_tensor({change.path}, ")), "")
    sizes = re.search(r" size=\[([^\]]*)\]", own)
    if sizes is None or not dim.isdecimal():
        return None
    held = sizes[1].split(", ")
    if int(dim) >= len(held):  # an entry for another number of dimensions
        return None
    if held[int(dim)] != "None":
        return own
    exactly = f"{change.path}.size()[{dim}] == {change.now}"
    return exactly if exactly in guards else ""


def hint_for(change: ChangeRow, others: Sequence[ChangeRow] = (), guards: Collection[str] = ()) -> str:
    """One sentence on what to do about a failed guard; "" if there is nothing useful to say.

    Args:
        change: the guard.
        others: all of the entry that failed.
        guards: those of the entry that was made because of it, if one was.
    """
    if change.hint:
        return change.hint
    if change.trait == "grown":
        return _STATIC_CACHE
    made = change.kind in ("size", "identity") or (
        change.kind == "value" and None in (change.then, change.now)
    )
    if made and change.source.startswith("self."):
        lines = assigned_at(change.file, change.line, ".".join(change.source.split(".")[:2]))
        if lines:
            return _REBUILDS.format(_lines(lines))
    if change.kind == "size":
        return _size_hint(change, others, guards)
    if (
        change.kind == "keys"
        and isinstance(change.then, list | tuple)
        and isinstance(change.now, list | tuple)
    ):
        return (
            _SAME_ORDER if sorted(change.then, key=str) == sorted(change.now, key=str) else _BY_KIND["keys"]
        )
    if change.detail == SIGNATURE:
        return "each way of calling it is a graph of its own: pass the same arguments on every call"
    if change.kind == "length":
        lines = assigned_at(change.file, change.line, f"{change.source}[]") if change.detail == "dict" else ()
        if lines and change.now > change.then:
            return _ADDS.format(_lines(lines))
        return _CONTAINERS.get(change.detail.removeprefix("frozen"), _BY_KIND["length"])
    if change.kind == "presence" and change.source.endswith("]"):
        return "give it on every call, e.g. as None"
    if change.kind == "identity" and change.path.startswith("L['___stack"):
        return "taken before a graph break, it is another object on every call: compute what it gets first"
    if change.kind == "identity" and isinstance(change.then, str):
        if change.then != str(change.now).removeprefix("another "):
            return _EACH  # another function or class
    if change.kind == "expression" and re.fullmatch(
        r"\S+\.size\(\)\[\d+\] == \S+\.size\(\)\[\d+\]", str(change.then)
    ):
        return _AT_THIS_LINE if change.function else _DUCK_SHAPES
    if change.kind != "value":
        return _BY_KIND.get(change.kind, "")
    return _value_hint(change, varies_now(change, guards))


def _lines(lines: Sequence[int]) -> str:
    return ("s " if len(lines) > 1 else " ") + ", ".join(map(str, lines))


_INT_OF_A_MODULE = (
    "make it a buffer, move it out of forward, or set torch._dynamo.config.allow_unspec_int_on_nn_module"
)
_ANOTHER_MODULE = (
    "the entry was made for another module of the class: they share their function's entries, and its limit; pass the "
    "value as an argument, or keep it in a buffer"
)


def _value_hint(change: ChangeRow, varies: bool) -> str:
    kind, own = type(change.then), change.source.startswith("self.")
    where = "forward" if own else "the compiled function"
    if change.trait == "of another module":
        return _ANOTHER_MODULE
    if change.then is None or change.now is None:
        return "None or not is part of the compiled code: set it before the first call"
    if is_condition(change):
        return _pinned(change) or _BY_KIND["expression"]
    if change.detail == "as an index":
        return "a tensor as an index is part of the compiled code: use index_select, index_copy_ or scatter"
    if kind not in (bool, int, float, str, tuple):  # a member of an enum, a dtype, a range
        return _EACH
    if {kind, type(change.now)} == {int, float}:
        return _BY_KIND["type"]
    if change.detail.startswith("is a subclass of "):
        return "register classes with abstract ones before the first call"
    if kind is bool:
        return "each of True and False is a graph of its own: warm up both, or call it one way"
    if kind in (int, float) and ".param_groups[" in change.source:
        return (
            "an optimizer's number is part of the compiled code: make it a tensor, e.g. lr=torch.tensor(0.1)"
        )
    if kind is int and type(change.now) is int and not own and change.file:
        lines = counted_at(change.file, change.source.rpartition(".")[2], change.now > change.then)
        if lines and change.line:
            return _COUNTED.format(_lines(lines))
    if kind in (int, float):
        way_out = "pass it as a tensor"
        if change.trait == "fixed":
            return f"dynamic=False keeps numbers constant: {way_out}, or leave dynamic=False out"
        if own:
            way_out = "make it a buffer, or pass it as a tensor" if kind is float else _INT_OF_A_MODULE
        elif varies:
            return f"a number that varies is dynamic after one recompile; {way_out} to have one entry"
        return f"a Python {kind.__name__} read in {where} is part of the compiled code; {way_out}"
    if kind is str:
        return "a string is part of the compiled code: each value is a graph of its own"
    return "this value is part of the compiled code; keep it constant, or pass it as a tensor"


_ONE_SIZE_ONLY = (
    "the code needs this size itself: the entry serves one size only, though it was taken as dynamic; pad to one size, "
    "or do without the number"
)


def _pinned(change: ChangeRow | Change) -> str:
    """What to say of a condition that only one number meets; "" of others."""
    if not ONE_NUMBER.fullmatch(str(change.then)):
        return ""
    if change.kind == "size":
        return _ONE_SIZE_ONLY
    return "the code at this line needs the number itself: each one is a graph of its own"


_OWNED = "sizes of what a module owns are never dynamic: modules of other widths share its function's entries"
_KEPT_CONSTANT = {
    "fixed": "dynamic=False (or automatic_dynamic_shapes) keeps sizes constant: leave it out, use mark_dynamic, or pad "
    "to one size",
    "marked static": "mark_static keeps this size constant: leave the mark out, or pad to one size",
}


def _size_hint(change: ChangeRow, others: Sequence[ChangeRow], guards: Collection[str]) -> str:
    if change.trait == "owned" or change.source.startswith("self."):
        return _OWNED
    if change.trait in _KEPT_CONSTANT:
        return _KEPT_CONSTANT[change.trait]
    if {change.then, change.now} & {0, 1}:
        name, dim = change.source, change.detail.rpartition(" ")[2]
        named = name.isidentifier() and dim.isdecimal()
        way_out = "don't call it with them" + (f", or mark_unbacked({name}, {dim})" if named else "")
        return f"sizes 0 and 1 have entries of their own, whatever is marked dynamic: {way_out}"
    if is_condition(change):
        bound = re.fullmatch(r"\S+ <= \S+", str(change.then)) is not None
        return _pinned(change) or (
            f"a branch {'(or a bound of its mark) ' * bound}depends on this size: each side is a graph of its own; "
            "pad it so that one side serves"
        )
    if _held(change, guards):
        return _ONE_SIZE_ONLY
    varying = {(row.source, row.detail) for row in others if row.kind == "size" and type(row.then) is int}
    return _ALL_DYNAMIC if len(varying) >= _SEVERAL else _BY_KIND["size"]


@dataclass(frozen=True, slots=True)
class History:
    """How one guarded value changed over successive recompiles.

    Args:
        source: the user's spelling.
        values: the first assumed value and what it became, in order, as reports print them.
        note: what can be said about it (`only ever incremented at model.py:12`), or "".
        hint: what to do about that, instead of what is said of each change; or "".
    """

    source: str
    values: tuple[str, ...]
    note: str = ""
    hint: str = ""


def history_of(changes: Sequence[Change]) -> History:
    """The history of one value from the failed guards on it.

    Args:
        changes: changes of one source, oldest first, at least one.
    """
    first = changes[0]
    values = (first.then, *(change.now for change in changes))
    of_one = all(change.hint != _ANOTHER_MODULE for change in changes)
    note = _note(first, values) if of_one else "differs from module to module"
    hint = _ALWAYS.get(note.partition(" ")[0], "")
    of_caller = first.source.startswith("self.") or first.source.isidentifier()
    if (first.detail and first.detail != SIGNATURE) or (first.kind == "value" and of_caller):
        hint = ""
    if any(is_condition(change) and _pinned(change) == _ONE_SIZE_ONLY for change in changes):
        hint = _ONE_SIZE_ONLY  # that it becomes dynamic, as is said of the first change, doesn't help
    return History(first.source, (first.was, *(change.became for change in changes)), note, hint)


_ALWAYS = {
    "grows": "collect outside of the compiled function, or return what is collected",
    "only": "count outside of the compiled function, or in a tensor",
}


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


@functools.lru_cache(maxsize=256)
def assigned_at(file: str, line: int, target: str) -> tuple[int, ...]:
    """Lines at which the function around a line assigns to something; () in `__init__`.

    Args:
        file: absolute file name.
        line: the line.
        target: what, as the program spells it; `d[]` for any item of `d`.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    inner: ast.AST | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            inner = node
    if not isinstance(inner, ast.FunctionDef) or inner.name == "__init__":
        return ()
    assigned = [node for node in ast.walk(inner) if isinstance(node, ast.Assign)]
    return tuple(node.lineno for node in assigned if any(_spelled(to) == target for to in node.targets))


def _spelled(target: ast.expr) -> str:
    return f"{ast.unparse(target.value)}[]" if isinstance(target, ast.Subscript) else ast.unparse(target)


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
