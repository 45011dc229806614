"""Whether the bundled engine agrees with torch.compile on a program, and behaves as plain Python does."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from parity.engines import ENGINES
from parity.expected_failures import AS_TORCH, HERE, ON_PURPOSE
from parity.harness import Outcome, Program, differences, run

__all__ = ["Comparison", "compare", "disagreements"]


@dataclass
class Comparison:
    """One program three times: plainly, under torch.compile, under the bundled engine."""

    program: Program
    plain: Outcome
    torch: Outcome
    bundled: Outcome

    def wrong(self) -> list[str]:
        """Returns where the bundled engine's behaviour differs from plain Python's."""
        return [*differences(self.plain, self.bundled), *self.bundled.figures.faults]

    def counted(self) -> list[str]:
        """Returns the figures on which the engines differ, calls (hit, miss, eager) included."""
        theirs, ours = self.torch.figures.compared(), self.bundled.figures.compared()
        found = [
            f"{name}: {ours[name]!r} instead of {theirs[name]!r}"
            for name in theirs
            if theirs[name] != ours[name]
        ]
        if self.torch.outcomes != self.bundled.outcomes:
            calls = zip(self.torch.outcomes, self.bundled.outcomes, strict=True)
            found += [
                f"call {i}: {our} instead of {their}" for i, (their, our) in enumerate(calls) if our != their
            ]
        return found

    def disagreements(self) -> list[str]:
        """Returns everything that makes the comparison fail; what differs on purpose doesn't."""
        name = self.program.name
        if name in HERE:
            return self.wrong() + (
                [] if self.counted() else ["agrees: no longer one of those that differ here"]
            )
        if name in AS_TORCH:
            return differences(self.torch, self.bundled, tracebacks=False, messages=False) + self.counted()
        if name in ON_PURPOSE:
            wanted, ours = ON_PURPOSE[name][1], self.bundled.figures.compared()
            return self.wrong() + [
                f"{key}: {ours[key]}, wanted {wanted[key]}" for key in wanted if ours[key] != wanted[key]
            ]
        return self.wrong() + self.counted()


@functools.cache
def _reference(program_file: str, name: str) -> tuple[Outcome, Outcome]:
    program = Program(name, lambda: (None, []), file=program_file)
    return run(program), run(program, ENGINES["torch"])


def compare(program: Program) -> Comparison:
    """Runs a program plainly, under torch.compile (once a process) and under the bundled engine."""
    plain, theirs = _reference(program.file, program.name)
    return Comparison(program, plain, theirs, run(program, ENGINES["bundled"]))


def disagreements(program: Program) -> list[str]:
    """Returns why the bundled engine doesn't agree on a program; empty when it does."""
    return compare(program).disagreements()
