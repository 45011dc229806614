"""A frame being interpreted: the Machine that opcode handlers work on."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from types import CodeType
from typing import Any, NoReturn

import torch

from dynacheck import reasons, versions
from dynacheck.bytecode.assemble import continues
from dynacheck.bytecode.by_code import ByCode
from dynacheck.bytecode.decode import DecodedCode, decode
from dynacheck.bytecode.flow import Block, BlockKind, assertion, blocks, comprehension
from dynacheck.bytecode.instruction import Instruction
from dynacheck.opcodes import table as opcode_table
from dynacheck.opcodes.unwind import goes_on, unwind
from dynacheck.sources import Local, UserLine, type_lookup
from dynacheck.translate.letting_go import let_go, raised
from dynacheck.translate.names import Names
from dynacheck.translate.resume import why_not_resumable
from dynacheck.translate.signals import OPERATOR_RAISED, Restart, SkipFrame
from dynacheck.translate.swallowing import may_catch, may_swallow
from dynacheck.translate.tracing import Attempt
from dynacheck.variables import abstract, exceptions
from dynacheck.variables.base import GraphBreak, ObservedException, VariableTracker
from dynacheck.variables.cells import CellVariable
from dynacheck.variables.classes import PythonModuleVariable
from dynacheck.variables.contexts import ContextVariable, ExitVariable, entered_from_outside
from dynacheck.variables.finalizers import MADE, note
from dynacheck.variables.functions import VARARGS, VARKEYWORDS, UserFunctionVariable
from dynacheck.variables.generators import GeneratorVariable, Step
from dynacheck.variables.tensor import TensorVariable

GENERATOR = 0x20
_rows: tuple[ByCode[tuple[opcode_table.Row | None, ...]], ...] = (ByCode(), ByCode())
_ALL = opcode_table.table(versions.PYTHON)
_TABLES = {name: row for name, row in _ALL.items() if name not in opcode_table.MORE}, _ALL


def rows_of(decoded: DecodedCode, code: CodeType, more: bool) -> tuple[opcode_table.Row | None, ...]:
    """The handler of each instruction, looked up once per code object: with `split_more` also those torch lacks."""
    found = _rows[more].get(code)
    if found is None:
        found = tuple(_TABLES[more].get(inst.opname) for inst in decoded.instructions)
        _rows[more].set(code, found)
    return found


class WithBlock:
    """An active `with` block: the stack position of its exit, and the manager if the engine models it."""

    __slots__ = ("depth", "manager")

    def __init__(self, depth: int, manager: ContextVariable | None) -> None:
        self.depth = depth
        self.manager = manager


class Frame(Names):
    """Interprets one frame's bytecode over trackers.

    Args:
        attempt: the attempt the frame belongs to.
        code: its code.
        locals_: the bound arguments.
        globals_: its globals.
        function: the function's tracker (for its closure and the way to its globals), None for the root frame.
    """

    def __init__(
        self,
        attempt: Attempt,
        code: CodeType,
        locals_: dict[str, VariableTracker],
        globals_: dict[str, Any],
        function: UserFunctionVariable | None,
    ) -> None:
        self.attempt = attempt
        self.code = code
        self.decoded = decode(code)
        self.rows = rows_of(self.decoded, code, attempt.settings.split_more)
        self.locals = locals_
        self.globals = globals_
        self.function = function
        self.stack: list[VariableTracker] = []
        self.cells: dict[str, CellVariable] = {}
        self.kw_names: tuple[str, ...] = ()
        self.exceptions: list[VariableTracker] = []
        self.ip = 0
        self.inst: Instruction = self.decoded.instructions[0]
        self.count = 0
        self.checkpoint: tuple[int, int] | None = None  # where it may be left for good: see `Split.leave`
        self.begun: dict[int, int] = {}  # comprehensions, and how many instructions had run
        self.result: VariableTracker | None = None
        self.yielded: VariableTracker | None = None
        self.done = False
        self.started = False
        self.entered = 0  # entries of finalizers there were
        self.given = tuple(locals_.values())
        self._lined: Instruction | None = None  # whose `_line` it is
        self._blocks: tuple[int, tuple[Block, ...]] | None = None  # of the instruction last asked for

    # -- running
    def run(self) -> VariableTracker:
        """Interpret an inlined frame to its end.

        Returns:
            What it returns.

        Raises:
            ObservedException: the frame raises.
            GraphBreak: something in it can't be modelled.
        """
        frames = self.attempt.frames
        frames.append(self)
        try:
            self._loop()
        finally:
            frames.pop()
        assert self.result is not None
        return self.result

    def _loop(self) -> None:
        """Run until the frame returns or yields."""
        instructions = self.decoded.instructions
        rows = self.rows
        state = self.attempt.state
        self.entered = len(state.get(MADE, ()))
        while True:
            inst = instructions[self.ip]
            self.inst = inst
            self.ip += 1
            row = rows[inst.index]
            try:
                if row is None:
                    self._no_handler(inst)
                else:
                    row.handler(self, inst)
                    if MADE in state and row.lets_go:
                        let_go(self)
            except ObservedException as observed:
                caught = self._unwind(inst, observed)
                if MADE in state:
                    raised(self, observed, caught)
                if not caught:
                    raise
            if self.done or self.yielded is not None:
                return

    def run_root(self) -> tuple[str, Any]:
        """Interpret the frame that the hook handed in.

        Returns:
            ("return", value) or ("break", (instruction, GraphBreak)) for the place where the frame must be split.

        Raises:
            Restart: try again with what was learnt.
            SkipFrame: the frame can't be translated.
        """
        attempt = self.attempt
        speculation = attempt.speculation
        instructions = self.decoded.instructions
        rows = self.rows
        attempt.frames.append(self)
        while True:
            inst = instructions[self.ip]
            self.inst = inst
            self.count += 1
            if speculation.breaks:
                if not self.stack and attempt.graph.calls > 1 and self._may_be_left():
                    self.checkpoint = (self.count, inst.index)
                broke = speculation.break_at(self.count, inst.index)
                if broke is not None:
                    return "break", (inst, broke)
            self.ip += 1
            row = rows[inst.index]
            try:
                if row is None:
                    self._no_handler(inst)
                else:
                    row.handler(self, inst)
                    if MADE in attempt.state and row.lets_go:
                        let_go(self)
            except ObservedException as observed:
                try:
                    caught = self._unwind(inst, observed)
                    if caught and MADE in attempt.state:
                        raised(self, observed, caught)
                except GraphBreak as broke:
                    self._broken(inst, broke)
                if not caught:
                    self._uncaught(observed)
            except GraphBreak as broke:
                self._broken(inst, broke)
            if self.done:
                return "return", self.result

    def _unwind(self, inst: Instruction, observed: ObservedException) -> bool:
        """Go to the handler, if there is one; what is raised again keeps the place where it was raised first."""
        exception = observed.exception
        if isinstance(exception, exceptions.ExceptionVariable):
            if goes_on(inst):
                observed.stack = observed.stack or exception.stack
            exception.stack = observed.stack = observed.stack or self.stack_lines()
        return unwind(self, inst, observed)

    def _uncaught(self, observed: ObservedException) -> NoReturn:
        """The frame ends by raising: it runs as it is, as with torch, which records a break at the place, though not
        where an operator raises."""
        broke = GraphBreak(reasons.UNCAUGHT_RAISE, what=observed.exception.get_type().__name__)
        broke.stack = observed.stack or self.stack_lines()
        of_operator = self.state.get(OPERATOR_RAISED) is observed.exception and not self.attempt.fullgraph
        raise SkipFrame(broke.reason, broke.message, broke.stack, None if of_operator else broke) from None

    def _broken(self, inst: Instruction, broke: GraphBreak) -> None:
        if not broke.stack:
            broke.stack = self.stack_lines()
        broke.__traceback__ = broke.__context__ = (
            None  # it outlives the attempt, whose frames hold the program's values
        )
        count, index = self.count, inst.index
        if not self.attempt.settings.split_more:
            for start, begun in self.begun.items():
                whole = comprehension(self.decoded, start)
                if whole is not None and start < index < whole.stop:
                    count, index = begun, start  # as torch: it runs by itself as a whole
                    break
        self.attempt.speculation.add_break(count, index, broke)
        raise Restart(str(broke))

    def sets_aside(self, inst: Instruction) -> None:
        """A comprehension that is part of the frame's code begins."""
        self.begun[inst.index] = self.count

    def _no_handler(self, inst: Instruction) -> None:
        why = opcode_table.UNSUPPORTED.get(inst.opname, "it is traced with `split_more` alone")
        self.break_(reasons.UNKNOWN_OPCODE, opname=inst.opname, why=why)

    def line(self) -> UserLine:
        inst, code = self.inst, self.code
        if self._lined is not inst:  # a frame that calls is asked again and again
            self._lined = inst
            self._line = UserLine(code.co_filename, inst.lineno or code.co_firstlineno, code.co_qualname)
        return self._line

    def run_frame(
        self, code: CodeType, bound: dict[str, VariableTracker], fn: UserFunctionVariable
    ) -> VariableTracker:
        frame = Frame(self.attempt, code, bound, fn.globals, fn)
        if not code.co_flags & GENERATOR:
            return frame.run()
        made = GeneratorVariable(frame, {n: fn.tp_getattro(self, n) for n in ("__name__", "__qualname__")})
        if frame.decoded.acts_when_closed:
            note(self, made)
        return made

    # -- as a generator's frame
    def in_block(self) -> bool:
        """Whether the suspended frame stands in a `try` or `with`, or has another iterator to close."""
        inside = blocks(self.decoded, self.inst.index)
        return self.delegate() is not None or any(b.kind is not BlockKind.CLEANUP for b in inside)

    def held(self) -> list[VariableTracker]:
        """The trackers that the frame holds where it stands."""
        slots = (self.locals[name] for name in self.code.co_varnames if name in self.locals)
        values = [self.function, *self.stack, *slots, *self.cells.values(), *self.exceptions]
        return [v for v in values if v is not None and v is not opcode_table.NULL]

    def original_call(self) -> tuple[VariableTracker, list[VariableTracker], dict[str, VariableTracker]]:
        """The call that made the frame, while it hasn't started: function, arguments, keywords."""
        code = self.code
        names = code.co_varnames
        count, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        args = [self.locals[name] for name in names[:count]]
        kwargs = {name: self.locals[name] for name in names[count:named]}
        if code.co_flags & VARARGS:
            args += abstract.iterate(self, self.locals[names[named]])
        if code.co_flags & VARKEYWORDS:
            kwargs.update(self.string_items(self.locals[names[named + bool(code.co_flags & VARARGS)]]))
        assert self.function is not None
        return self.function, args, kwargs

    def _step(self) -> Step:
        attempt = self.attempt
        attempt.frames.append(self)
        self.yielded = None
        try:
            self._loop()
        except GraphBreak as broke:  # torch skips the frame that iterates a generator with a break in it
            if not broke.stack:
                broke.stack = self.stack_lines()
            if (
                attempt.frames[-2] is not attempt.frames[0]
            ):  # an inlined one: the frame is split where it calls it
                raise
            reason = reasons.GENERATOR_BREAK
            raise SkipFrame(reason, reason.message(), broke.stack, broke) from None
        finally:
            attempt.frames.pop()
        if self.done:
            assert self.result is not None
            return "return", self.result
        assert self.yielded is not None
        return "yield", self.yielded

    def resume(self, value: VariableTracker) -> Step:
        """Go on with the value as result of the `yield`."""
        if self.started:
            self.push(value)
        self.started = True
        return self._step()

    def throw(self, exception: exceptions.ExceptionVariable) -> Step:
        """Raise the exception at the `yield`."""
        observed = ObservedException(exception)
        if self.exceptions:  # raised while the generator handles another
            exceptions.chain(self, exception, self.exceptions[-1])
        if not self.started or not unwind(self, self.inst, observed):
            raise observed
        return self._step()

    def delegate(self) -> VariableTracker | None:
        """The iterator of the `yield from` the frame is suspended in."""
        index = self.inst.index
        if index and self.decoded.instructions[index - 1].opname == "SEND":
            return self.stack[-1]
        return None

    def finish_delegate(self, value: VariableTracker) -> Step:
        """End that `yield from` with a value and go on."""
        send = self.decoded.instructions[self.inst.index - 1]
        if not versions.PY312:
            self.stack.pop()
        self.push(value)
        assert send.target is not None
        self.ip = send.target
        return self._step()

    # -- the stack
    def push(self, value: VariableTracker) -> None:
        self.stack.append(value)

    def pop(self) -> VariableTracker:
        return self.stack.pop()

    def popn(self, n: int) -> list[VariableTracker]:
        if n == 0:
            return []
        values = self.stack[-n:]
        del self.stack[-n:]
        return values

    # -- control flow
    def jump(self, inst: Instruction) -> None:
        assert inst.target is not None
        self.ip = inst.target

    def jump_to(self, index: int) -> None:
        self.ip = index

    def branch(self, inst: Instruction, condition: VariableTracker, when: bool, keep: bool = False) -> None:
        real = condition.realize(self)
        if isinstance(real, TensorVariable):
            asserts, text = assertion(self.decoded, inst) if when and not keep else (False, None)
            if text is None:
                self.break_(reasons.DATA_DEPENDENT_BRANCH, opname="assert" if asserts else "if")
            self.record("call_function", torch._assert_async, [real, self.constant(text)])
            self.jump(inst)
            return
        if abstract.is_true(self, real) is when:
            if keep:
                self.push(condition)
            self.jump(inst)

    def return_value(self, value: VariableTracker) -> None:
        self.result = value
        self.done = True

    def yield_value(self, value: VariableTracker) -> None:
        self.yielded = value

    def return_generator(self) -> None:
        """Only reached in generator frames, which `inline` starts past it."""
        self.push(self.constant(None))

    # -- names
    def cell(self, name: str) -> CellVariable:
        found = self.cells.get(name)
        if found is None:
            index = self.code.co_freevars.index(name)
            if self.function is None:
                found = self.cell_of(self.attempt.root.free(name, index))
            else:
                found = self.function.closure(self)[index]
            self.cells[name] = found
        return found

    def variables(self) -> Iterator[tuple[str, VariableTracker | None]]:
        for name in self.decoded.slots:
            cell = name in self.code.co_cellvars or name in self.code.co_freevars
            value = self.cell(name).get(self) if cell and name not in self.locals else self.locals.get(name)
            if not name.startswith("___"):  # the engine's own
                yield name, value

    def make_cell(self, name: str) -> None:
        value = self.locals.pop(name, None)
        if name in self.code.co_freevars and continues(self.code):
            self.cell(name)  # which what the frame goes on with has made
        else:
            self.cells[name] = CellVariable(None, value)

    def builtin(self, name: str) -> VariableTracker:
        return self.object(getattr(builtins, name))

    # -- exceptions
    @property
    def exc_info(self) -> list[VariableTracker]:
        return self.exceptions

    def covered(self) -> bool:
        return self.inst.handler is not None

    def catches(self, anything: bool = False) -> bool:
        if not self.covered():
            return False
        index = self.inst.index
        if self._blocks is None or self._blocks[0] != index:
            self._blocks = index, blocks(self.decoded, index)
        return any(
            (block.kind is BlockKind.EXCEPT and may_catch(self, self.decoded, block.handler, anything))
            or (block.kind is BlockKind.WITH and may_swallow(self, self.stack[block.exit_position]))
            for block in self._blocks[1]
        )

    # -- with blocks
    def enter_with(self, manager: VariableTracker) -> None:
        real = manager.realize(self)
        self._check_made(real)
        if isinstance(real, ContextVariable):
            self.push(ExitVariable(real))
            entered = real.enter(self)
        else:
            for name in ("__enter__", "__exit__"):
                self._check_manager(real, name)
                raw = type_lookup(real.get_type(), name)
                if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType)):
                    self.break_(reasons.CONTEXT_MANAGER, what=real.describe(), why="it is of C code")
            self.push(abstract.getattr_(self, real, "__exit__"))
            entered = self.call(abstract.getattr_(self, real, "__enter__"), [])
        self.push(entered)

    def _check_made(self, manager: VariableTracker) -> None:
        """Most managers can't be entered if they were made before the frame, as with torch."""
        node = manager.node
        if node is None or entered_from_outside(manager):
            return
        made_here = continues(self.attempt.frame.func.__code__) and isinstance(node.accessor, Local)
        if not (
            made_here and isinstance(manager, ContextVariable)
        ):  # or in the frame that this one continues
            why = "it was made outside of the compiled function"
            self.break_(reasons.CONTEXT_MANAGER, what=manager.describe(), why=why)

    def _check_manager(self, manager: VariableTracker, name: str) -> None:
        if not abstract.has(self, manager, name):
            kind = manager.get_type().__name__
            missed = " (missed __exit__ method)" if name == "__exit__" else ""
            self.raise_(TypeError, f"{kind!r} object does not support the context manager protocol{missed}")

    def special_method(self, owner: VariableTracker, name: str) -> VariableTracker:
        real = owner.realize(self)
        self._check_made(real)
        if not isinstance(real, ContextVariable):
            self._check_manager(real, name)
        return abstract.getattr_(self, real, name)

    def active_blocks(self) -> tuple[list[WithBlock], bool]:
        """The `with` blocks that the current instruction is in, outermost first, and whether it is in any other block."""
        found: list[WithBlock] = []
        other = False
        for block in blocks(self.decoded, self.inst.index):
            if block.kind is not BlockKind.WITH:
                other = True
                continue
            leave = self.stack[block.exit_position].realize(self)
            found.append(
                WithBlock(block.exit_position, leave.context if isinstance(leave, ExitVariable) else None)
            )
        return found, other

    def _may_be_left(self) -> bool:
        """Whether the frame may be split before its current instruction, nothing being on the stack."""
        return not self.active_blocks()[1] and why_not_resumable(self.code, self.inst.index) is None

    @property
    def traces_more(self) -> bool:
        return bool(self.attempt.settings.split_more)

    # -- functions and imports
    def make_function(
        self,
        code: VariableTracker,
        defaults: VariableTracker | None,
        kwdefaults: VariableTracker | None,
        annotations: VariableTracker | None,
        closure: VariableTracker | None,
    ) -> VariableTracker:
        fn_code = code.realize(self).as_constant(self)
        cells: tuple[Any, ...] = ()
        if closure is not None:
            cells = tuple(abstract.iterate(self, closure))
        keyword = None
        if kwdefaults is not None:
            keyword = self.string_items(kwdefaults)
        positional = None if defaults is None else tuple(abstract.iterate(self, defaults))
        fn = UserFunctionVariable.made(fn_code, self.globals, positional, keyword, cells)
        fn.annotations = annotations
        return fn

    def import_name(self, name: str, fromlist: VariableTracker, level: VariableTracker) -> VariableTracker:
        depth = level.realize(self).as_constant(self)
        full = name
        if depth:
            package = self.globals.get("__package__") or ""
            base = package.rsplit(".", depth - 1)[0] if depth > 1 else package
            full = f"{base}.{name}" if name else base
        wanted = fromlist.realize(self).as_constant(self)
        if full not in sys.modules and full.startswith("torch."):
            with contextlib.suppress(ImportError):
                importlib.import_module(full)  # a module of torch: the program sees no change
        module = sys.modules.get(full if wanted else full.partition(".")[0])
        if module is None or full not in sys.modules:
            self.break_(reasons.IMPORT, call=f"import {full}", why="the module is not imported yet")
        return self.wrap(self.attempt.root.module(module.__name__))

    def import_from(self, module: VariableTracker, name: str) -> VariableTracker:
        real = module.realize(self)
        if isinstance(real, PythonModuleVariable) and name not in real.value.__dict__:
            submodule = sys.modules.get(f"{real.value.__name__}.{name}")
            if submodule is not None:
                return self.wrap(self.attempt.root.module(submodule.__name__))
            self.raise_(
                ImportError,
                f"cannot import name {name!r} from {real.value.__name__!r} ({real.value.__file__})",
            )
        return real.tp_getattro(self, name)
