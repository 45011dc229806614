"""What operands mean: one row per opcode of the running interpreter."""

import opcode as _opcode
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from dynacheck.versions import PY312, PY313, PY314

OPMAP: Final[dict[str, int]] = dict(_opcode.opmap)
OPNAME: Final[list[str]] = list(_opcode.opname)
EXTENDED_ARG: Final[int] = OPMAP["EXTENDED_ARG"]

_tables: Any = _opcode
HAS_ARG: Final[frozenset[int]] = frozenset(
    getattr(_tables, "hasarg", None) or range(_opcode.HAVE_ARGUMENT, 256)
)
BINARY_OPS: Final[tuple[str, ...]] = tuple(row[1] for row in _tables._nb_ops)
COMPARE_OPS: Final[tuple[str, ...]] = tuple(_opcode.cmp_op)
INTRINSICS_1: Final[tuple[str, ...]] = tuple(getattr(_opcode, "_intrinsic_1_descs", ()))
INTRINSICS_2: Final[tuple[str, ...]] = tuple(getattr(_opcode, "_intrinsic_2_descs", ()))
COMPARE_SHIFT: Final[int] = 5 if PY313 else 4 if PY312 else 0
COMPARE_BOOL: Final[int] = 16 if PY313 else 0


def _cache_units() -> list[int]:
    table: Any = _tables._inline_cache_entries
    units = [0] * 256
    if isinstance(table, dict):
        for name, count in table.items():
            if name in OPMAP and OPMAP[name] < 256:
                units[OPMAP[name]] = count
    else:
        units[: len(table)] = table[:256]
    return units


CACHES: Final[list[int]] = _cache_units()
"""Inline cache units after each opcode."""

JUMPS: Final[frozenset[int]] = frozenset(
    op
    for op in (*_opcode.hasjrel, *_opcode.hasjabs)
    if op < 256 and not OPNAME[op].startswith("INSTRUMENTED")
)
BACKWARD: Final[frozenset[int]] = frozenset(
    op for op in JUMPS if "BACKWARD" in OPNAME[op] or OPNAME[op] == "END_ASYNC_FOR"
)
PAIRS: Final[frozenset[int]] = frozenset(
    OPMAP[name]
    for name in (
        "LOAD_FAST_LOAD_FAST",
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        "STORE_FAST_LOAD_FAST",
        "STORE_FAST_STORE_FAST",
    )
    if name in OPMAP
)
LOCALS: Final[frozenset[int]] = frozenset(
    op for op in _opcode.haslocal if op < 256 and op not in PAIRS and OPNAME[op] != "LOAD_CLOSURE"
)
CELLS: Final[frozenset[int]] = frozenset(op for op in _opcode.hasfree if op < 256)
"""Opcodes whose operand is a slot that holds a cell (the slot numbers are those of the locals)."""
CONSTS: Final[frozenset[int]] = frozenset(op for op in _opcode.hasconst if op < 256)
NAMES: Final[frozenset[int]] = frozenset(op for op in _opcode.hasname if op < 256)

NAME_SHIFT: Final[dict[int, int]] = {OPMAP["LOAD_GLOBAL"]: 1}
"""Bits of the operand below the index into `co_names`, for opcodes that have some."""
if PY312:
    NAME_SHIFT[OPMAP["LOAD_ATTR"]] = 1
    NAME_SHIFT[OPMAP["LOAD_SUPER_ATTR"]] = 2

UNCONDITIONAL: Final[frozenset[int]] = frozenset(
    OPMAP[name]
    for name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP", "JUMP_NO_INTERRUPT")
    if name in OPMAP and OPMAP[name] < 256
)
RETURNS: Final[frozenset[int]] = frozenset(
    OPMAP[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in OPMAP
)
RAISES: Final[frozenset[int]] = frozenset(OPMAP[name] for name in ("RAISE_VARARGS", "RERAISE"))
ENDS: Final[frozenset[int]] = UNCONDITIONAL | RETURNS | RAISES
"""Opcodes after which the next instruction isn't reached by falling through."""

FLAG_MASK: Final[list[int]] = [0] * 256
FLAG_MASK[OPMAP["LOAD_GLOBAL"]] = 1
FLAG_MASK[OPMAP["CALL_FUNCTION_EX"]] = 1
FLAG_MASK[OPMAP["COMPARE_OP"]] = COMPARE_BOOL
if PY312:
    FLAG_MASK[OPMAP["LOAD_ATTR"]] = 1
    FLAG_MASK[OPMAP["LOAD_SUPER_ATTR"]] = 1

CONVERSIONS: Final[tuple[str | None, ...]] = (None, "s", "r", "a")

Resolver = Callable[[int, CodeType, tuple[str, ...]], object]
"""(arg, code, names of the slots) → argval."""


def _name_resolver(shift: int) -> Resolver:
    return lambda arg, code, slots: code.co_names[arg >> shift]


def _common_constants() -> tuple[object, ...]:
    return tuple(
        getattr(_tables, "_common_constants", (AssertionError, NotImplementedError, tuple, all, any))
    )


def _special_names() -> tuple[str, ...]:
    default = ("__enter__", "__exit__", "__aenter__", "__aexit__")
    return tuple(getattr(_tables, "_special_method_names", default))


def _resolvers() -> list[Resolver | None]:
    table: list[Resolver | None] = [None] * 256
    for op in NAMES:
        table[op] = _name_resolver(NAME_SHIFT.get(op, 0))
    for op in CONSTS:
        table[op] = lambda arg, code, slots: code.co_consts[arg]
    for op in (*LOCALS, *CELLS):
        table[op] = lambda arg, code, slots: slots[arg]
    for op in PAIRS:
        table[op] = lambda arg, code, slots: (slots[arg >> 4], slots[arg & 15])
    rows: dict[str, Resolver] = {
        "COMPARE_OP": lambda arg, code, slots: COMPARE_OPS[arg >> COMPARE_SHIFT],
        "BINARY_OP": lambda arg, code, slots: BINARY_OPS[arg],
        "IS_OP": lambda arg, code, slots: "is not" if arg else "is",
        "CONTAINS_OP": lambda arg, code, slots: "not in" if arg else "in",
        "FORMAT_VALUE": lambda arg, code, slots: (CONVERSIONS[arg & 3], bool(arg & 4)),
        "CONVERT_VALUE": lambda arg, code, slots: CONVERSIONS[arg],
        "CALL_INTRINSIC_1": lambda arg, code, slots: INTRINSICS_1[arg],
        "CALL_INTRINSIC_2": lambda arg, code, slots: INTRINSICS_2[arg],
    }
    if PY314:
        rows["LOAD_COMMON_CONSTANT"] = lambda arg, code, slots: _common_constants()[arg]
        rows["LOAD_SPECIAL"] = lambda arg, code, slots: _special_names()[arg]
    for name, row in rows.items():
        if name in OPMAP:
            table[OPMAP[name]] = row
    return table


RESOLVERS: Final[list[Resolver | None]] = _resolvers()
"""How each opcode's operand becomes `Instruction.argval`; None: it is the operand."""


def slot_names(code: CodeType) -> tuple[str, ...]:
    """Return the name of every slot of a frame: locals, then cells that aren't locals, then free variables.

    The order is that of `compute_localsplus_info` in CPython's `Python/assemble.c`. A name may occur twice:
    as the local of an inlined comprehension and as a free variable (3.12+).

    >>> def outer(a):
    ...     b = 1
    ...     return lambda: a + b
    >>> slot_names(outer.__code__)
    ('a', 'b')
    """
    names = code.co_varnames
    if code.co_cellvars:
        local = set(names)
        names += tuple(name for name in code.co_cellvars if name not in local)
    return names + code.co_freevars
