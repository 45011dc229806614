"""From operations to a code object: slots, jumps, caches, line and exception tables, stack size."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from dis import stack_effect as effect
from types import CodeType
from typing import Final

from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.instruction import NO_POSITIONS
from dynacheck.bytecode.operands import BACKWARD, CACHES, ENDS, EXTENDED_ARG, HAS_ARG, OPMAP, OPNAME
from dynacheck.bytecode.ops import Cell, Cover, Label, Local, Op
from dynacheck.bytecode.tables import exception_table, location_table
from dynacheck.versions import PY313

_VARARGS: Final = 0x04
_VARKEYWORDS: Final = 0x08
_GENERATORS: Final = 0x20 | 0x80 | 0x200

_COPY_FREE_VARS: Final = OPMAP["COPY_FREE_VARS"]
_MAKE_CELL: Final = OPMAP["MAKE_CELL"]
_RESUME: Final = OPMAP["RESUME"]


_LOAD_CELL: Final = OPMAP["LOAD_FAST" if PY313 else "LOAD_CLOSURE"]
_STORE_FAST: Final = OPMAP["STORE_FAST"]


class _Mark:
    """The constant that resume codes have, and with their constants whatever is made from them."""


CONTINUES: Final = _Mark()
"""A constant of codes that go on with a frame that another code began: its own cells reach them by their closure."""


def continues(code: CodeType) -> bool:
    """Return whether frames of a code object, or of what it was rewritten from, go on with what another one began."""
    return any(const is CONTINUES for const in code.co_consts)


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a code object isn't instructions: its name, its arguments, its slots.

    Slots are `arguments`, then `locals`, then the cells that aren't arguments or locals, then `freevars`. With `shared`
    cells of the names that are in `freevars` too are those, and no new ones.
    """

    name: str
    qualname: str
    firstlineno: int
    flags: int
    argcount: int
    posonlyargcount: int
    kwonlyargcount: int
    arguments: tuple[str, ...]
    locals: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    shared: bool = False
    _locals: dict[str, int] = field(init=False, repr=False, compare=False)
    _cells: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        slots = {name: slot for slot, name in enumerate(self.varnames)}
        cells = {}
        number = len(slots)
        for name in self.cellvars:
            if name in slots:
                cells[name] = slots[name]
            else:
                cells[name] = number
                number += 1
        for name in self.freevars:
            if not (self.shared and name in cells):
                cells[name] = number
            number += 1
        object.__setattr__(self, "_locals", slots)
        object.__setattr__(self, "_cells", cells)

    @property
    def varnames(self) -> tuple[str, ...]:
        """The code object's `co_varnames`."""
        return self.arguments + self.locals

    @classmethod
    def of(cls, code: CodeType) -> "Shape":
        """Return the shape of a code object."""
        nargs = code.co_argcount + code.co_kwonlyargcount
        nargs += bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
        return cls(
            name=code.co_name,
            qualname=code.co_qualname,
            firstlineno=code.co_firstlineno,
            flags=code.co_flags,
            argcount=code.co_argcount,
            posonlyargcount=code.co_posonlyargcount,
            kwonlyargcount=code.co_kwonlyargcount,
            arguments=code.co_varnames[:nargs],
            locals=code.co_varnames[nargs:],
            cellvars=code.co_cellvars,
            freevars=code.co_freevars,
            shared=continues(code),
        )

    def with_locals(self, first: Sequence[str], last: Sequence[str] = ()) -> "Shape":
        """Return the shape with more locals.

        Args:
            first: locals directly after the arguments, in order.
            last: locals after all others; names that are there already are left out.

        Returns:
            The new shape.

        Raises:
            ValueError: a name of `first` is taken.
        """
        taken = set(self.varnames).union(self.cellvars)
        clash = taken.intersection(first)
        if clash:
            raise ValueError(f"already a slot of {self.name}: {', '.join(sorted(clash))}")
        taken.update(first)
        more = tuple(dict.fromkeys(name for name in last if name not in taken))
        return replace(self, locals=(*first, *self.locals, *more))

    def positional(self) -> "Shape":
        """Return the shape with every argument slot positional, `*args` and `**kwargs` included."""
        return replace(
            self,
            argcount=len(self.arguments),
            posonlyargcount=0,
            kwonlyargcount=0,
            flags=self.flags & ~(_VARARGS | _VARKEYWORDS),
        )

    def local(self, name: str) -> int:
        """Return the slot of a local; a cell when there is no such local."""
        slot = self._locals.get(name)
        return self._cells[name] if slot is None else slot

    def cell(self, name: str) -> int:
        """Return the slot of a cell or free variable."""
        return self._cells[name]

    def free(self, name: str) -> int:
        """Return the slot of a free variable, also of one that has another slot as a cell."""
        slots = len(self.varnames) + len(set(self.cellvars) - set(self.varnames))
        return slots + self.freevars.index(name)


def prologue(shape: Shape) -> list[Op]:
    """Return what a function starts with: COPY_FREE_VARS, MAKE_CELL for each cell, RESUME.

    Shared cells take the place of new ones. That they lie where a frame has its own makes them count as such: an empty
    one is an unbound local variable.
    """
    ops = []
    if shape.freevars:
        ops.append(Op(_COPY_FREE_VARS, len(shape.freevars), NO_POSITIONS, None))
    ops.extend(Op(_MAKE_CELL, Cell(name), NO_POSITIONS, None) for name in shape.cellvars)
    if shape.shared:
        for name in shape.cellvars:
            if name in shape.freevars:
                ops.append(Op(_LOAD_CELL, shape.free(name), NO_POSITIONS, None))
                ops.append(Op(_STORE_FAST, Cell(name), NO_POSITIONS, None))
    line = shape.firstlineno
    ops.append(Op(_RESUME, 0, (line, line, 0, 0), None))
    return ops


def _extended(arg: int) -> int:
    """Number of EXTENDED_ARG prefixes."""
    return 0 if arg < 256 else 1 if arg < 65536 else 2 if arg < 16777216 else 3


class _Assembly:
    """One run of the assembler."""

    def __init__(self, ops: list[Op], shape: Shape, base: int) -> None:
        self.ops = ops
        self.shape = shape
        self.base = base
        self.args: list[int] = []
        self.units: list[int] = []
        self.starts: list[int] = []

    def resolve(self) -> None:
        """Number slots, then jumps: sizes only grow, until every distance fits."""
        shape = self.shape
        jumps: list[tuple[int, Label]] = []
        args, units = self.args, self.units
        for index, op in enumerate(self.ops):
            arg = op.arg
            if type(arg) is int:
                number = arg
            elif type(arg) is Local:
                number = shape.local(arg)
            elif type(arg) is Cell:
                number = shape.cell(arg)
            elif type(arg) is Label:
                jumps.append((index, arg))
                number = 0
            else:
                number = self.pair(arg)  # type: ignore[arg-type]
            args.append(number)
            units.append(1 + (0 if number < 256 else _extended(number)) + CACHES[op.opcode])
        self.place()
        while self.jump(jumps):
            self.place()

    def pair(self, names: "tuple[Local | Cell, Local | Cell]") -> int:
        first, second = (
            self.shape.cell(name) if type(name) is Cell else self.shape.local(name) for name in names
        )
        if first > 15 or second > 15:
            raise ValueError("a fused pair of locals needs slots below 16")
        return first << 4 | second

    def position(self, label: Label) -> int:
        if label.position is None:
            raise ValueError("a label was never placed")
        return label.position + self.base

    def place(self) -> None:
        starts = self.starts
        starts.clear()
        at = 0
        for size in self.units:
            starts.append(at)
            at += size
        starts.append(at)

    def jump(self, jumps: list[tuple[int, Label]]) -> bool:
        """Set the operand of every jump; return whether one needed more room."""
        starts = self.starts
        grown = False
        for index, label in jumps:
            code = self.ops[index].opcode
            distance = starts[self.position(label)] - starts[index + 1]
            if code in BACKWARD:
                distance = -distance
            if distance < 0:
                raise ValueError(f"{OPNAME[code]} can't go in that direction")
            self.args[index] = distance
            size = 1 + _extended(distance) + CACHES[code]
            if size > self.units[index]:
                self.units[index] = size
                grown = True
        return grown

    def code(self) -> bytes:
        out = bytearray()
        for op, arg, units in zip(self.ops, self.args, self.units):
            code = op.opcode
            caches = CACHES[code]
            if units > 1 + caches:
                for shift in range(8 * (units - 1 - caches), 0, -8):
                    out += bytes((EXTENDED_ARG, (arg >> shift) & 255))
            out.append(code)
            out.append(arg & 255)
            if caches:
                out += bytes(2 * caches)
        return bytes(out)

    def handlers(self) -> bytes:
        rows: list[tuple[int, int, int, int, bool]] = []
        starts = self.starts
        current: Cover | None = None
        begin = 0
        for index in range(len(self.ops) + 1):
            cover = self.ops[index].cover if index < len(self.ops) else None
            if cover is current or cover == current:
                continue
            if current is not None:
                target = starts[self.position(current.target)]
                rows.append((begin, starts[index], target, current.depth, current.lasti))
            current, begin = cover, starts[index]
        return exception_table(rows)

    def locations(self) -> bytes:
        rows = ((op.positions, units) for op, units in zip(self.ops, self.units))
        return location_table(rows, self.shape.firstlineno)

    def stack_size(self) -> int:
        """Return the greatest stack depth over all paths from the first operation."""
        ops, args = self.ops, self.args
        depths: list[int] = [-1] * (len(ops) + 1)
        greatest = 1
        todo: list[tuple[int, int]] = [(0, 0)]
        while todo:
            index, depth = todo.pop()
            while depth > depths[index]:
                depths[index] = depth
                op = ops[index]
                cover = op.cover
                if cover is not None:
                    todo.append((self.position(cover.target), cover.depth + cover.lasti + 1))
                code, label = op.opcode, op.arg
                if isinstance(label, Label):
                    jumped = depth + effect(code, args[index], jump=True)
                    greatest = max(greatest, jumped)
                    todo.append((self.position(label), jumped))
                depth += effect(code, args[index] if code in HAS_ARG else None, jump=False)
                greatest = max(greatest, depth)
                if code in ENDS:
                    break
                index += 1
        return greatest


def assemble_shape(
    ops: list[Op],
    shape: Shape,
    template: CodeType,
    *,
    names: tuple[str, ...],
    consts: tuple[object, ...],
    base: int = 0,
    stacksize: int | None = None,
) -> CodeType:
    """Make a code object of operations that include its prologue.

    Args:
        ops: the operations, with all labels placed.
        shape: name, arguments and slots.
        template: gives the file name.
        names: `co_names`.
        consts: `co_consts`.
        base: number of operations that were put in front after labels were placed.
        stacksize: known stack depth; None computes it.

    Returns:
        The code object.

    Raises:
        ValueError: a label was never placed.
        KeyError: an operand names a slot that the shape lacks.
    """
    assembly = _Assembly(ops, shape, base)
    assembly.resolve()
    return template.replace(
        co_argcount=shape.argcount,
        co_posonlyargcount=shape.posonlyargcount,
        co_kwonlyargcount=shape.kwonlyargcount,
        co_nlocals=len(shape.varnames),
        co_stacksize=assembly.stack_size() if stacksize is None else stacksize,
        co_flags=shape.flags,
        co_firstlineno=shape.firstlineno,
        co_code=assembly.code(),
        co_consts=consts,
        co_names=names,
        co_varnames=shape.varnames,
        co_freevars=shape.freevars,
        co_cellvars=shape.cellvars,
        co_name=shape.name,
        co_qualname=shape.qualname,
        co_linetable=assembly.locations(),
        co_exceptiontable=assembly.handlers(),
    )


def assemble(
    builder: Builder,
    template: CodeType | None = None,
    *,
    name: str | None = None,
    extra_locals: Sequence[str] = (),
    firstlineno: int | None = None,
    positional: bool = False,
) -> CodeType:
    """Make a code object that can run in place of the template's, in the same frame.

    It has the template's arguments in the same slots, its flags, free variables (equal tuple), cells, file
    name and, unless others are given, its name and first line. COPY_FREE_VARS, MAKE_CELL and RESUME come
    first by themselves. Locals that the builder names and the template lacks are added at the end.

    Args:
        builder: what to run.
        template: the code object replaced; the builder's own by default.
        name: another `co_name` and `co_qualname`.
        extra_locals: new locals for the slots directly after the arguments.
        firstlineno: another `co_firstlineno`.
        positional: make every argument slot positional (`*args` then is a plain argument that holds a tuple).

    Returns:
        The code object.

    Raises:
        ValueError: the template is a generator or coroutine, a label wasn't placed, or the name of an extra
            local is taken.
    """
    template = builder.template if template is None else template
    if template.co_flags & _GENERATORS:
        raise ValueError("generators and coroutines aren't rewritten")
    shape = Shape.of(template)
    cells = {*shape.cellvars, *shape.freevars}
    shape = shape.with_locals(extra_locals, [name for name in builder.locals if name not in cells])
    if positional:
        shape = shape.positional()
    if name is not None or firstlineno is not None:
        shape = replace(
            shape,
            name=shape.name if name is None else name,
            qualname=shape.qualname if name is None else name,
            firstlineno=shape.firstlineno if firstlineno is None else firstlineno,
        )
    ops = prologue(shape)
    code = assemble_shape(
        ops + builder.ops, shape, template, names=builder.names, consts=builder.consts, base=len(ops)
    )
    assert code.co_varnames[: len(shape.arguments)] == template.co_varnames[: len(shape.arguments)]
    assert code.co_freevars == template.co_freevars and code.co_cellvars == template.co_cellvars
    return code
