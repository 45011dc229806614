"""Torch's spelling of guarded values in the user's words: `L['self']._modules['drop'].p` is `self.drop.p`."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import re
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any, TypeGuard

from dynacheck import places

__all__ = ["behind_property", "line_of", "spelled"]

_CONTAINERS = ("_parameters", "_buffers", "_modules")
_PREFIX = "___stack"
_MISSING = object()


_NEEDED = re.compile(r"(?P<text>.*)  # (?P<file>\S+):(?P<line>\d+) in ")


def line_of(needed: str) -> tuple[str, int, str]:
    """The file, number and text of the user's line that torch names behind a guard; nothing if it names none.

    Args:
        needed: the line's text, the end of its file's name, its number. Torch has just read the file.
    """
    found = _NEEDED.match(needed)
    if found is None:
        return "", 0, ""
    line, text = int(found["line"]), found["text"].strip()
    files = [file for file in list(linecache.cache) if file.endswith(found["file"])]
    same = [file for file in files if linecache.getline(file, line).strip() == text]
    return (same[0], line, text) if same and not places.is_library(same[0]) else ("", 0, "")


def spelled(source: str, names: Mapping[str, Any], code: CodeType, original: CodeType) -> str:
    """Returns how the user would spell a value.

    Args:
        source: torch's spelling, an expression over ``L`` (locals) and ``G`` (globals).
        names: what the expression's names stand for.
        code: the code object of the frame.
        original: the user's code that it continues; itself if it is no resume function.
    """
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError:
        return source
    speller = _Speller(names, code, original)
    return speller.spell(tree) + speller.owner


def behind_property(source: str, names: Mapping[str, Any], function: str) -> str:
    """What to say of an attribute that a property reads; "" of any other value.

    Args:
        source, names: see `spelled`.
        function: the qualified name of the function whose line reads it.
    """
    found = re.fullmatch(r"(.+?)(?:\.__dict__\['\w+'\]|\.\w+)", source)
    name = function.rpartition(".")[2]
    owner = _evaluated(ast.parse(found[1], mode="eval").body, names) if found else None
    is_one = isinstance(inspect.getattr_static(type(owner), name, None), property)
    return f"behind the property {name}" if is_one else ""


class _Speller:
    def __init__(self, names: Mapping[str, Any], code: CodeType, original: CodeType) -> None:
        self.names = names
        self.code = code
        self.original = original
        self.owner = ""  # whose free variable it is

    def spell(self, node: ast.expr) -> str:
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call) and not node.keywords:
            args = [self.spell(arg) for arg in node.args]
            if isinstance(node.func, ast.Attribute):
                return f"{self.spell(node.func)}({', '.join(args)})"
            if isinstance(node.func, ast.Name) and node.func.id.startswith("___") and len(args) == 1:
                return args[0]  # torch's own way to get at something
        return ast.unparse(node)

    def _item(self, node: ast.Subscript) -> str:
        base, key = node.value, node.slice
        if isinstance(base, ast.Name) and base.id in ("L", "G") and isinstance(key, ast.Constant):
            return self._name(str(key.value), base.id)
        if isinstance(base, ast.Attribute) and isinstance(key, ast.Constant):
            if base.attr in _CONTAINERS:
                owner = self.spell(base.value)
                return f"{owner}[{key.value!s}]" if str(key.value).isdigit() else f"{owner}.{key.value!s}"
            if base.attr == "__dict__" and str(key.value).isidentifier():
                return f"{self._owner(base.value)}.{key.value!s}"
        if (
            isinstance(base, ast.Subscript)
            and isinstance(key, ast.Constant)
            and self._answers(base, key.value)
        ):
            return f"{self._owner(base.value.value)}.{key.value!s}"  # type: ignore[attr-defined]
        if _keys_of(base) is not None:
            return f"list({self.spell(_keys_of(base) or base)})[{ast.unparse(key)}]"
        at = _keys_of(key.value) if isinstance(key, ast.Subscript) else None
        if isinstance(key, ast.Subscript) and at is not None and ast.dump(at) == ast.dump(base):
            return f"list({self.spell(base)}.values())[{ast.unparse(key.slice)}]"
        return f"{self.spell(base)}[{ast.unparse(key)}]"

    def _answers(self, kept: ast.Subscript, name: Any) -> bool:
        """Whether `cfg.__dict__['_c']['gain']` is where `__getattr__` of `cfg` looks for what `cfg` itself hasn't."""
        attribute = kept.value
        if not (
            isinstance(name, str) and isinstance(attribute, ast.Attribute) and attribute.attr == "__dict__"
        ):
            return False
        owner = _evaluated(attribute.value, self.names)
        asked = getattr(type(owner), "__getattr__", None)
        own = inspect.getattr_static(owner, name, _MISSING) is not _MISSING
        return (
            isinstance(asked, FunctionType) and not places.is_library(asked.__code__.co_filename) and not own
        )

    def _attribute(self, node: ast.Attribute) -> str:
        base = node.value
        if node.attr == "cell_contents" and isinstance(base, ast.Subscript):
            found = self._free_variable(base)
            if found:
                return found
        return f"{self._owner(base)}.{node.attr}"

    def _owner(self, node: ast.expr) -> str:
        """What an attribute is read from; one of the type is what the user reads from the instance."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type":
            return self.spell(node.args[0])
        return self.spell(node)

    def _free_variable(self, cell: ast.Subscript) -> str:
        """`L['cb'].__closure__[1].cell_contents` as `shift of cb`."""
        closure, key = cell.value, cell.slice
        if not (isinstance(closure, ast.Attribute) and closure.attr == "__closure__"):
            return ""
        function = _evaluated(closure.value, self.names)
        free = getattr(getattr(function, "__code__", None), "co_freevars", ())
        if not (isinstance(key, ast.Constant) and isinstance(key.value, int) and key.value < len(free)):
            return ""
        owner = self.spell(closure.value).rpartition(".")[2]
        self.owner = f" of {owner if owner.isidentifier() else function.__name__}"
        return str(free[key.value])

    def _name(self, name: str, scope: str) -> str:
        if scope == "L" and name.startswith(_PREFIX) and name[len(_PREFIX) :].isdigit():
            return _stack_value(self.code, self.original, int(name[len(_PREFIX) :]))
        if scope == "G" and name.startswith("__import_"):
            return name.removeprefix("__import_").replace("_dot_", ".")
        return name


def _keys_of(node: ast.expr) -> ast.expr | None:
    """The dict of `list(dict.keys(d))`, as torch spells keys that are no constants; None for anything else."""
    return node.args[0].args[0] if _is_call(node, "list") and _is_call(node.args[0], "dict.keys") else None


def _is_call(node: ast.expr, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name and len(node.args) == 1


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return eval(ast.unparse(node), dict(names))  # torch's own expression over the frame's values
    except Exception:
        return None


def _stack_value(code: CodeType, original: CodeType, slot: int) -> str:
    """What the user calls a value that was on the stack at a break: the name it is stored under, or its expression.

    Known for the topmost one: it is what the instruction that broke left.
    """
    unknown = "a value on the stack"
    slots = sum(name.startswith(_PREFIX) for name in code.co_varnames[: code.co_argcount])
    if slot != slots - 1:
        return unknown
    ours = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    jump = next((i for i in ours if i.opname.startswith("JUMP_FORWARD")), None)
    after = next((k for k, i in enumerate(ours) if jump is not None and i.offset == jump.argval), None)
    if after is None:
        return unknown
    if ours[after].opname in ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL"):
        return str(ours[after].argval)
    theirs = [i for i in dis.get_instructions(original) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    place = len(theirs) - (len(ours) - after) - 1
    if place < 0 or theirs[place + 1].opname != ours[after].opname:
        return unknown
    return _text(original, theirs[place]) or unknown


def _text(code: CodeType, instruction: dis.Instruction) -> str:
    """The source text of the expression that an instruction ends, if it is on one line."""
    found = instruction.positions
    if found is None or found.lineno is None or found.lineno != found.end_lineno:
        return ""
    text = linecache.getline(code.co_filename, found.lineno).encode()
    return text[found.col_offset or 0 : found.end_col_offset].decode(errors="replace")[:60]
