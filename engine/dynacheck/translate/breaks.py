"""Splitting a frame at a graph break: whether it may be, and the code that goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Final

from dynacheck import reasons
from dynacheck.bytecode.copying import Copier
from dynacheck.bytecode.flow import Comprehension, comprehension, effect
from dynacheck.bytecode.instruction import Instruction
from dynacheck.bytecode.liveness import liveness, looks_again
from dynacheck.opcodes.table import NULL
from dynacheck.reasons import Reason
from dynacheck.translate.codegen import Codegen
from dynacheck.translate.frame import Frame, WithBlock
from dynacheck.translate.leaving import look_at, look_at_renamed, read_what_is_built
from dynacheck.translate.resume import (
    ResumeLayout,
    call_resume,
    note_side,
    resume_code,
    spill_stack,
    why_not_resumable,
)
from dynacheck.translate.signals import Restart, SkipFrame
from dynacheck.variables.arrays import ArrayVariable
from dynacheck.variables.base import GraphBreak, VariableTracker
from dynacheck.variables.carried import holds_carried, names_written
from dynacheck.variables.contexts import ContextVariable
from dynacheck.variables.finalizers import watched
from dynacheck.variables.namespaces import LOCALS
from dynacheck.versions import PY313

JUMPS = {
    "POP_JUMP_FORWARD_IF_TRUE": True, "POP_JUMP_BACKWARD_IF_TRUE": True, "POP_JUMP_IF_TRUE": True,
    "POP_JUMP_FORWARD_IF_FALSE": False, "POP_JUMP_BACKWARD_IF_FALSE": False, "POP_JUMP_IF_FALSE": False,
}  # fmt: skip
KEEPING_JUMPS = {"JUMP_IF_TRUE_OR_POP": True, "JUMP_IF_FALSE_OR_POP": False}


def why_given_up(frame: Frame, inst: Instruction, split_more: bool) -> Reason | None:
    """Why the frame must be skipped rather than split at an instruction, as torch decides it; None if it may be split."""
    if not split_more and frame.decoded.has_backedge(inst.index):
        return reasons.BREAK_IN_LOOP
    blocks, other = frame.active_blocks()
    if other:
        return reasons.BREAK_IN_TRY
    if any(b.manager is None or not b.manager.restorable for b in blocks):
        return reasons.BREAK_IN_WITH
    return None


_GOING_ON: Final = frozenset({
    "CALL", "CALL_FUNCTION_EX", "CALL_KW", "COMPARE_OP", "BINARY_SUBSCR", "STORE_ATTR", "STORE_SUBSCR",
    "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE", "BUILD_STRING",
})  # fmt: skip
"""Instructions that torch goes on behind, and those that make texts, at which it doesn't break at all."""
_LACKING: Final = (reasons.UNKNOWN_ATTRIBUTE, reasons.UNKNOWN_VALUE)
"""What the engine can't read and torch mostly can, or breaks for where it is called."""


def _goes_on_behind(frame: Frame, inst: Instruction, broke: GraphBreak) -> bool:
    """Whether torch goes on behind a break at this instruction."""
    name = inst.opname
    if name in JUMPS or name in KEEPING_JUMPS:
        return broke.reason is reasons.DATA_DEPENDENT_BRANCH and len(broke.stack) < 2
    if broke.reason in _LACKING and len(broke.stack) < 2:
        attribute = name == "LOAD_ATTR" and broke.reason is reasons.UNKNOWN_ATTRIBUTE
        return not (attribute and _breaks_for_attributes(frame.stack[-1].realize(frame), inst.argval))
    subscript = name == "BINARY_OP" and inst.argval == "[]"
    return name in _GOING_ON or subscript or comprehension(frame.decoded, inst.index) is not None


def _breaks_for_attributes(owner: VariableTracker, name: object) -> bool:
    """Whether torch can't read an attribute either: most of an array's, the history of a tensor."""
    return isinstance(owner, ArrayVariable) or name in ("grad_fn", "_grad_fn")


def pops_of(inst: Instruction, leaves: int) -> int:
    """How many stack values an instruction takes."""
    if inst.opname == "CALL":
        return inst.arg + 2
    return leaves - effect(inst, False)


class Split:
    """Emits the second half of a frame's code: run the unsupported instruction, then call the resume function.

    Args:
        frame: the root frame, standing before the instruction.
        inst: the instruction that can't be modelled.
        broke: why.
        codegen: where to emit.
    """

    def __init__(self, frame: Frame, inst: Instruction, broke: GraphBreak, codegen: Codegen) -> None:
        self.frame = frame
        self.inst = inst
        self.broke = broke
        self.codegen = codegen
        self.blocks: list[WithBlock] = []
        self.whole: Comprehension | None = None
        self.held: set[str] = set()
        """Locals that aren't used any more, and hold what does something when it goes."""
        self.left = False
        """Whether the rest of the frame, from the instruction on, runs as it is."""

    def give_up(self, reason: Reason, **fields: object) -> None:
        """Skip the frame."""
        raise SkipFrame(reason, reason.message(**fields), self.broke.stack, self.broke)

    def leave(self) -> None:
        """Split at the last place before the instruction where nothing was on the stack and two operations were
        recorded; the rest of the frame runs as it is, and so does all of it if there is no such place. As torch does,
        which goes on behind calls, comparisons, subscripts and stores alone.

        Raises:
            Restart: to split there.
        """
        frame = self.frame
        if frame.checkpoint is None:
            self.give_up(reasons.BREAK_NOT_RESUMABLE, why=f"{self.inst.opname} can't be run by itself")
        else:
            self.broke.message += " The rest of the frame runs as it is."
            frame.attempt.speculation.leave_at(*frame.checkpoint, self.broke)
            raise Restart(str(self.broke))

    def check(self) -> None:
        """Skip the frame if torch would, or if it can't be resumed."""
        frame, inst, broke = self.frame, self.inst, self.broke
        if frame.attempt.function_modes:  # they are on in the trace alone
            self.give_up(reasons.BREAK_IN_WITH)
        if broke.reason is reasons.FRAME_INSPECTION and len(broke.stack) == 1:  # it would see our temporaries
            raise SkipFrame(broke.reason, broke.message, broke.stack, broke)
        if frame.attempt.speculation.left == frame.count:
            self.left = True
            return
        split_more = frame.attempt.settings.split_more
        if not (split_more or _goes_on_behind(frame, inst, broke)):
            self.leave()
        reason = why_given_up(frame, inst, split_more)
        if reason is not None:
            self.give_up(reason)
        if (
            frame in frame.attempt.state.get(LOCALS, ())
            and not PY313
            and looks_again(frame.decoded, inst.index + 1)
        ):
            self.give_up(
                reasons.BREAK_NOT_RESUMABLE, why="what locals() gave changes with the frame's next call of it"
            )
        self.blocks = frame.active_blocks()[0]
        row = frame.rows[inst.index]
        self.whole = comprehension(frame.decoded, inst.index)
        if self.whole is not None:
            targets = [self.whole.stop]
            # what it stores beside may or may not be bound behind it
            if any(name in frame.cells for name in self.whole.aside) or not self.whole.stored <= {
                *self.whole.aside,
                *frame.locals,
            }:
                self.give_up(reasons.BREAK_IN_LOOP)
        elif inst.opname in JUMPS or inst.opname in KEEPING_JUMPS:
            assert inst.target is not None
            targets = [inst.index + 1, inst.target]
        elif row is None or row.left_by(inst) is None:
            self.leave()
            return
        else:
            targets = [inst.index + 1]
        for target in targets:
            why = why_not_resumable(frame.code, target)
            if why is not None:
                self.give_up(reasons.BREAK_NOT_RESUMABLE, why=why)

    def emit(self) -> None:
        """Append the code."""
        self.check()
        frame, inst, codegen = self.frame, self.inst, self.codegen
        jump = inst.opname in JUMPS or inst.opname in KEEPING_JUMPS
        look_at(frame, frame.stack, 1 if jump or self.whole or self.left else pops_of(inst, self._leaves()))
        for block in reversed(self.blocks):
            assert isinstance(block.manager, ContextVariable)
            block.manager.leave(frame)
        live = set(liveness(frame.code).locals(inst.index + (not self.left)))
        if self.whole is not None:
            live |= {*liveness(frame.code).locals(inst.index), *liveness(frame.code).locals(self.whole.stop)}
        if inst.target is not None:
            live |= set(liveness(frame.code).locals(inst.target))
        first = frame.code.co_varnames[:1]
        live |= {n for n in first if n in frame.locals and n in liveness(frame.code).locals(inst.index + 1)}
        names = [n for n in frame.decoded.code.co_varnames if n in frame.locals]
        self.held = {n for n in names if n not in live and watched(frame, [frame.locals[n]])}
        names = [n for n in names if n in live or n in self.held]
        look_at_renamed(frame, [(name, frame.locals[name]) for name in names])
        values = [*frame.stack, *(frame.locals[n] for n in names)]
        kept = [value for value in values if value is not NULL]
        read_what_is_built(frame, kept, frame.attempt.effects.items())
        codegen.replay(frame.attempt.effects, values, cells=frame.cells)
        build = codegen.build
        build.at(inst.positions)
        exits = self._managers()
        for position, value in enumerate(frame.stack):
            if value is NULL:
                build.push_null()
            elif position in exits:
                build.load_bound(exits[position])
                build.load_attr("__exit__")
            else:
                codegen.load(value)
        for name in names:
            codegen.load(frame.locals[name])
        for name in reversed(names):
            build.store_fast(name)
        if self.left:
            self._resume(inst.index, 0, [], names, exits)
        elif self.whole is not None:
            self._comprehension(self.whole, names, exits)
        elif inst.opname in JUMPS:
            self._jump(names, exits, JUMPS[inst.opname], keep=False)
        elif inst.opname in KEEPING_JUMPS:
            self._jump(names, exits, KEEPING_JUMPS[inst.opname], keep=True)
        else:
            self._instruction(names, exits)

    def _managers(self) -> dict[int, str]:
        """Make fresh managers for the active `with` blocks: locals that hold them, by the stack position of the exit."""
        codegen = self.codegen
        found: dict[int, str] = {}
        for block in self.blocks:
            manager = block.manager
            assert isinstance(manager, ContextVariable)
            manager.clone().reconstruct_fresh(codegen)
            name = codegen.fresh("with")
            codegen.build.store_fast(name)
            found[block.depth] = name
        return found

    def _instruction(self, names: list[str], exits: dict[int, str]) -> None:
        frame, inst, build = self.frame, self.inst, self.codegen.build
        leaves = self._leaves()
        pops = pops_of(inst, leaves)
        lower = frame.stack[: len(frame.stack) - pops]
        method = leaves == 2 and inst.opname in ("LOAD_ATTR", "LOAD_METHOD")
        under = method and not PY313  # where the NULL beside the attribute is

        def run() -> None:
            if (
                method
            ):  # run as a plain attribute load, since what the method form leaves depends on the attribute
                build.load_attr(str(inst.argval))
                build.push_null()
                if under:
                    build.swap(2)
            elif inst.opname == "CALL" and inst.kwnames:
                build.call(inst.arg, inst.kwnames)
            elif inst.opname == "CALL":
                build.call(inst.arg)
            else:
                Copier(build, frame.decoded).copy(inst, handler=False)

        self._inside(run, exits, len(lower))
        left = [NULL] if under else []
        depth = len(lower) + leaves
        nulls = (depth - 1,) if method and not under else ()
        self._resume(inst.index + 1, depth, [*lower, *left], names, exits, nulls)

    def _comprehension(self, whole: Comprehension, names: list[str], exits: dict[int, str]) -> None:
        """Run a comprehension; what it set aside, perhaps nothing, and the result are on the stack behind it."""
        frame = self.frame

        def run() -> None:
            copier = Copier(self.codegen.build, frame.decoded)
            for index in range(whole.start, whole.stop):
                copier.copy(frame.decoded[index], handler=False)

        self._inside(run, exits, len(frame.stack) - 1)
        aside = [frame.locals.get(name, NULL) for name in whole.aside]
        lower = [*frame.stack[:-1], *aside]
        self._resume(whole.stop, len(lower) + 1, lower, names, exits)

    def _leaves(self) -> int:
        """How many values the instruction leaves."""
        row = self.frame.rows[self.inst.index]
        leaves = None if row is None else row.left_by(self.inst)
        assert leaves is not None
        return leaves

    def _inside(self, run: Callable[[], None], exits: dict[int, str], kept: int) -> None:
        """Run the instruction inside the active `with` blocks: enter them, run it, leave them also if it raises.

        Args:
            run: appends it.
            exits: locals that hold the managers.
            kept: how many stack values it leaves alone.
        """
        if not exits:
            run()
            return
        build, codegen = self.codegen.build, self.codegen
        managers = []
        for block in self.blocks:
            assert isinstance(block.manager, ContextVariable)
            block.manager.clone().reconstruct_fresh(codegen)
            name = codegen.fresh("inside")
            build.store_fast(name)
            managers.append(name)

        def leave(name: str) -> None:
            build.load_bound(name)
            build.load_method("__exit__")
            for _ in range(3):
                build.load_const(None)
            build.call(3)
            build.pop()

        for name in managers:
            build.load_bound(name)
            build.load_method("__enter__")
            build.call(0)
            build.pop()
        handler, after = build.label(), build.label()
        with build.covered(handler, kept):
            run()
        for name in reversed(managers):
            leave(name)
        build.jump(after)
        with build.finally_handler(handler, kept):
            for name in reversed(managers):
                leave(name)
        build.place(after)

    def _jump(self, names: list[str], exits: dict[int, str], when: bool, keep: bool) -> None:
        frame, inst, build = self.frame, self.inst, self.codegen.build
        assert inst.target is not None
        lower = frame.stack[:-1]
        jumped = build.label()
        if keep:
            build.copy()
        build.to_bool()
        build.pop_jump_if(when, jumped)
        if keep:
            build.pop()
        stays = self._resume(inst.index + 1, len(lower), lower, names, exits)
        build.place(jumped)
        jumps = self._resume(inst.target, len(lower) + keep, lower, names, exits)
        if inst.lineno is not None:
            note_side(stays, inst.lineno, not when)
            note_side(jumps, inst.lineno, when)

    def _resume(
        self,
        index: int,
        depth: int,
        lower: list[VariableTracker],
        names: list[str],
        exits: dict[int, str],
        left_nulls: tuple[int, ...] = (),
    ) -> CodeType:
        """Call the resume function for an instruction with the stack as it is now. Returns its code."""
        frame, codegen = self.frame, self.codegen
        build = codegen.build
        nulls = (*(i for i, v in enumerate(lower) if v is NULL), *left_nulls)
        live = {*liveness(frame.code).locals(index), *self.held}
        kept = tuple(n for n in names if n in live)
        blocks = tuple(sorted(exits))
        carried: list[str | int] = [
            i for i, value in enumerate(lower) if value is not NULL and holds_carried(frame, [value])
        ]
        carried += [name for name in kept if holds_carried(frame, [frame.locals[name]])]
        carried += [name for name, cell in frame.cells.items() if holds_carried(frame, [cell])]
        carried += dict.fromkeys(names_written(frame, frame.attempt.effects.items()))
        layout = ResumeLayout(depth, kept, nulls, blocks, tuple(carried), self.left)
        resume = resume_code(frame.code, index, layout)
        enters = []
        for position in blocks:
            build.load_bound(exits[position])
            build.load_attr("__enter__")
            name = codegen.fresh("enter")
            build.store_fast(name)
            enters.append(name)
        spilled = spill_stack(build, depth, codegen.fresh("s"))
        call_resume(build, resume, spilled, enters)
        return resume.code
