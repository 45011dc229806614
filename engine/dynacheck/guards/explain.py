"""Why no entry of a code object passed: every guard that fails, what was assumed and what is there now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dynacheck.guards.base import Change, Installed
from dynacheck.guards.objects import LengthIs
from dynacheck.guards.program import CompiledGuards
from dynacheck.sources import ABSENT, CAttr, DictAttr, FrameView, Node, UserLine


class GuardMismatch(AssertionError):
    """The native program and the Python guards disagree about a frame: an engine error."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that changed.

    Args:
        installed: the guard that fails.
        change: kind, then, now and detail.
        path: the value as logs spell it; several joined by ", ".
        user_path: as the user spells it.
        where: the user's line that needed the guard.
    """

    installed: Installed
    change: Change
    path: str
    user_path: str
    where: UserLine | None

    @property
    def text(self) -> str:
        """The guard as logs spell it."""
        return self.installed.text()

    @property
    def key(self) -> str:
        """`<kind>:<source>`, the middle of a recompile's cause key."""
        return f"{self.change.kind}:{self.user_path}"


@dataclass(frozen=True, slots=True, eq=False)
class EntryFailure:
    """Why one entry did not serve a frame.

    Args:
        index: position of the entry among those asked about.
        guards: its guards.
        failures: all that fail, in the order of the program; the first decides. Empty when the entry holds an object
            that died.
    """

    index: int
    guards: CompiledGuards
    failures: tuple[Failure, ...]

    @property
    def key(self) -> str:
        """`<kind>:<source>` of the first failing guard."""
        return self.failures[0].key if self.failures else "identity:"


_HOOKS = frozenset(
    {
        "_forward_hooks",
        "_forward_pre_hooks",
        "_backward_hooks",
        "_backward_pre_hooks",
        "_forward_hooks_always_called",
        "_forward_hooks_with_kwargs",
        "_forward_pre_hooks_with_kwargs",
        "_global_forward_hooks",
        "_global_forward_pre_hooks",
        "_global_backward_hooks",
        "_global_backward_pre_hooks",
    }
)


def _kind(change: Change, nodes: Sequence[Node]) -> str:
    """The kind in the user's terms: a value named `training`, anything about hooks."""
    node: Node | None = nodes[0] if nodes else None
    if node is not None and change.kind == "value" and node.accessor == DictAttr("training"):
        return "training"
    while node is not None:
        if isinstance(node.accessor, CAttr):  # what a hook closes over is no hook
            return change.kind
        if isinstance(node.accessor, DictAttr) and node.accessor.name in _HOOKS:
            return "hooks"
        node = node.parent
    return change.kind


def _changes(installed: Installed, slots: Sequence[Any], paths: Sequence[str]) -> list[Change]:
    missing = [paths[i] for i, value in enumerate(slots) if value is ABSENT]
    if missing and not installed.guard.check(slots):
        return [Change("presence", "present", "absent", ", ".join(missing) if len(paths) > 1 else "")]
    return installed.guard.changes(slots, paths)


def values_of(installed: Installed, frame: FrameView) -> list[Any]:
    """The values that a guard looks at, in a frame; read without torch function modes."""
    if not installed.nodes:
        return []
    with torch._C.DisableTorchFunction():
        return [node.fetch(frame) for node in installed.nodes]


def failures_of(installed: Installed, frame: FrameView) -> list[Failure]:
    """What one guard has against a frame; nothing when it passes.

    Args:
        installed: the guard and its nodes.
        frame: the frame's values.
    """
    slots = values_of(installed, frame)
    if installed.guard.check(slots):
        return []
    paths = [node.user_path for node in installed.nodes]
    joined, user = ", ".join(node.path for node in installed.nodes), ", ".join(paths)
    found: list[Failure] = []
    for change in _changes(installed, slots, paths):
        change = Change(_kind(change, installed.nodes), change.then, change.now, change.detail)
        if change.kind == "hooks" and found:  # their keys are torch's numbers
            continue
        found.append(Failure(installed, change, joined, user or change.detail, installed.where))
    return found


def mirror(compiled: CompiledGuards, frame: FrameView) -> bool:
    """The verdict, which must be the same natively and in Python.

    Args:
        compiled: the guards.
        frame: the frame's values.

    Returns:
        Whether the guards pass.

    Raises:
        GuardMismatch: the two disagree.
    """
    native = compiled.check(frame)
    failing = [i for i in compiled.installed if not i.guard.check(values_of(i, frame))]
    if native == bool(failing):
        raise GuardMismatch(
            f"native verdict {'pass' if native else 'fail'}, failing in Python: {[i.text() for i in failing]}"
        )
    return native


def explain_miss(compiled: Sequence[CompiledGuards], frame: FrameView) -> list[EntryFailure]:
    """Why none of a code object's entries passed, the nearest entry first.

    Args:
        compiled: the entries' guards, most recent first.
        frame: the frame that they were checked against.

    Returns:
        One per entry, the least different first; of equals the most recent.

    Raises:
        GuardMismatch: an entry whose held objects are all alive fails natively and no guard fails in Python.
    """
    found = []
    for index, guards in enumerate(compiled):
        failures = tuple(f for installed in guards.installed for f in failures_of(installed, frame))
        if not failures and guards.program.alive and not guards.check(frame):
            raise GuardMismatch("the native program fails a frame that passes every guard in Python")
        found.append(EntryFailure(index, guards, failures))
    return sorted(
        found, key=lambda e: distance((f.change.kind, f.path) for f in e.failures if not _only_says(f))
    )


def _only_says(failure: Failure) -> bool:
    """Whether it is there to tell what makes another change."""
    return failure.change.kind == "keys" and isinstance(failure.installed.guard, LengthIs)


def distance(changes: Iterable[tuple[str, str]]) -> int:
    """How much differs: what differs in several items of a list counts once, and strides that follow from a size that
    differs don't count.

    Args:
        changes: kind and path of each.
    """
    found = {(kind, re.sub(r"\[\d+\]", "[]", path)) for kind, path in changes}
    resized = {path for kind, path in found if kind == "size"}
    return sum(kind != "stride" or path not in resized for kind, path in found)
