"""What an operator returns, without running it on data: a memo over throw-away fake tensors.

A lookup's key is everything metadata depends on: the operator, the facts of the tensor arguments with their
aliasing pattern, the other arguments and ambient state. A miss runs the operator once on fake tensors and
keeps a plan: what comes back, and what changed on the arguments. The memo outlives frames and resets, because
its key holds all it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch

from dynacheck.graph import fromfacts, numbers, plans
from dynacheck.graph.facts import Storage, TensorRef
from dynacheck.graph.outcomes import DataDependent, OperatorRaised, UnsupportedOperator
from dynacheck.graph.plans import Plan
from dynacheck.graph.runs import NAMES, NUMBERS, is_once, is_own_class, is_users, run_symbolic
from dynacheck.graph.state import autocast_state, default_device, switches
from dynacheck.graph.symbolic import SymbolicEnv
from dynacheck.graph.throwaway import without_function_modes

__all__ = ["DataDependent", "Op", "OperatorRaised", "Oracle", "UnsupportedOperator"]

Op: TypeAlias = Literal["call_function", "call_method", "attribute"]

# Leaves that equal only themselves; int, float, bool and complex need their type beside them (1 == 1.0 ==
# True).
_SELF_KEYED = frozenset({*NAMES, type(Ellipsis), type})
_NUMBERS = frozenset(NUMBERS)
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_MEMO_LIMIT = 200_000

_grad = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_default_dtype = torch.get_default_dtype
_any_autocast: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
_modes: Callable[[], int] = torch._C._len_torch_function_stack
_ATTENTION = torch.nn.functional.scaled_dot_product_attention


class _Symbolic(Exception):
    """A symbol was met while making a key: the call belongs to the symbolic environment."""


class Oracle:
    """The memo of operators' metadata.

    Attributes:
        hits: lookups answered from the memo.
        misses: lookups that ran the operator on throw-away tensors.
    """

    def __init__(self) -> None:
        self._memo: dict[tuple[Any, ...], Plan] = {}
        self._switches: tuple[Any, ...] = switches()
        self._mode: Any = None
        self.hits = 0
        self.misses = 0

    def _fake_mode(self) -> Any:
        """The mode that misses run in. One serves all: a mode remembers only the real tensors it is shown."""
        if self._mode is None:
            from torch._subclasses.fake_tensor import FakeTensorMode

            self._mode = FakeTensorMode()
            # torch's own memo costs more than it saves under this one: each signature runs once
            self._mode.cache_enabled = False
        return self._mode

    def _open_mode(self) -> Any:
        """A mode for functions of users, which may close over real tensors, and for operators that take functions, which
        may make symbols."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        return FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)

    def refresh(self) -> None:
        """Read the ambient state that lookups don't read themselves.

        Grad and inference mode, autocast, default dtype and device are read by every lookup. Deterministic
        flags and the SDPA, cuDNN and mkldnn switches are read here: call it when a translation starts and
        after code that sets them.
        """
        self._switches = switches()

    def clear(self) -> None:
        """Forget everything."""
        self._memo.clear()

    def call(
        self,
        op: Op,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        env: SymbolicEnv | None = None,
    ) -> Any:
        """What calling an operator returns.

        Args:
            op: "call_function" with a callable, or "call_method" with a method's name (the tensor is the
                first argument).
            target: the callable or the name.
            args: positional arguments; tensors are TensorRefs, also inside lists, tuples, dicts and slices.
            kwargs: keyword arguments.
            env: the symbolic environment of the attempt, if it has one.

        Returns:
            The operator's result with TensorRefs for tensors: an argument's own ref where the operator
            returns the argument, a new ref over the argument's storage for a view. Refs of changed arguments
            have their new facts.

        Raises:
            OperatorRaised: the operator raises.
            DataDependent: the result depends on the tensors' data.
            UnsupportedOperator: metadata propagation can't tell.
        """
        if _modes():
            with without_function_modes():
                return self._told(op, target, args, kwargs, env)
        return self._told(op, target, args, kwargs, env)

    def _told(
        self,
        op: Op,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None,
        env: SymbolicEnv | None,
    ) -> Any:
        """`call`, with no user mode on: again with numbers where the operator needs those of tensors made of numbers."""
        try:
            found = self._lookup(op, target, args, kwargs, env)
        except DataDependent as error:
            known = None if error.size else numbers.replaced(args, kwargs)
            if known is None:
                raise
            return self._lookup(op, target, *known, env)
        if type(found) is TensorRef and numbers.is_one(found, target):
            numbers.note(found, target, args, kwargs)
        return found

    def _lookup(
        self,
        op: Op,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None,
        env: SymbolicEnv | None,
    ) -> Any:
        """What the memo, or the symbolic environment, says."""
        refs: list[TensorRef] = []
        key: list[Any] = [target]
        add = key.append
        try:
            for a in args:
                t = type(a)
                if t is TensorRef:
                    add(a.facts)
                    refs.append(a)
                elif t is int:
                    add(t)
                    add(a)
                elif t in _SELF_KEYED:
                    add(a)
                else:
                    _flatten(a, key, refs)
            if kwargs:
                for name, a in kwargs.items():
                    add(name)
                    _flatten(a, key, refs)
        except _Symbolic:
            return self._symbolic(op, target, args, kwargs, env)
        symbolic = env is not None and any(r.facts.has_symbols or r.fake is not None for r in refs)
        if symbolic or is_own_class(target):  # it makes what only fake tensors can be
            return self._symbolic(op, target, args, kwargs, env)
        n = len(refs)
        if n == 2:
            if refs[0].storage is refs[1].storage:
                _alias_pattern(refs, key)
        elif n > 2 and len({r.storage for r in refs}) != n:
            _alias_pattern(refs, key)
        add((_grad(), _inference(), _default_dtype()))
        if _any_autocast():
            add(autocast_state())
        if _modes():
            add(default_device())
        add(switches() if target is _ATTENTION else self._switches)
        try:
            return self._answer(op, target, args, kwargs, refs, tuple(key))
        except DataDependent:
            if env is None:
                raise
            return self._symbolic(op, target, args, kwargs, env)

    def _answer(
        self,
        op: Op,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None,
        refs: list[TensorRef],
        key: tuple[Any, ...],
    ) -> Any:
        """Apply the plan of a key, making it if there is none."""
        try:
            plan = self._memo.get(key)
        except TypeError:  # an unhashable argument
            self.misses += 1
            return plans.apply(plans.make(op, target, args, kwargs, refs, len(refs), self._fake_mode), refs)
        if plan is None:
            plan = self._make(key, op, target, args, kwargs, refs, len(refs))
        else:
            self.hits += 1
        fresh = plan.fresh
        if fresh is not None:
            return TensorRef(fresh, Storage(fresh.nbytes))
        if plan.spreads:
            mates = plans.mates_of(plan, refs)
            if mates:
                # other views of what is written to change too: look up again with them in the key
                direct = len(refs)
                refs = refs + mates
                more: list[Any] = [key, *(m.facts for m in mates)]
                _alias_pattern(refs, more)
                wide = tuple(more)
                plan = self._memo.get(wide)
                if plan is None:
                    plan = self._make(wide, op, target, args, kwargs, refs, direct)
        return plans.apply(plan, refs)

    def _make(
        self,
        key: tuple[Any, ...],
        op: Op,
        target: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any] | None,
        refs: list[TensorRef],
        direct: int,
    ) -> Plan:
        self.misses += 1
        if is_once(target) or is_users(target):
            return plans.make(op, target, args, kwargs, refs, direct, self._open_mode)
        plan = plans.make(op, target, args, kwargs, refs, direct, self._fake_mode)
        if len(self._memo) >= _MEMO_LIMIT:
            self._memo.clear()
        self._memo[key] = plan
        return plan

    def _symbolic(
        self, op: Op, target: Any, args: Sequence[Any], kwargs: dict[str, Any] | None, env: SymbolicEnv | None
    ) -> Any:
        if env is None:
            raise UnsupportedOperator("a symbolic size outside an attempt with symbols")
        closed = env.fake_mode.allow_non_fake_inputs
        env.fake_mode.allow_non_fake_inputs = closed or is_users(target)
        try:
            return run_symbolic(op, target, args, kwargs or {}, env)
        finally:
            env.fake_mode.allow_non_fake_inputs = closed

    def attribute(
        self, ref: TensorRef, name: str, *args: Any, env: SymbolicEnv | None = None, **kwargs: Any
    ) -> Any:
        """An attribute of a tensor, or the result of a method that only asks for metadata.

        Args:
            ref: the tensor.
            name: an attribute (`shape`, `T`, `real`, `data`) or a metadata method (`size`, `stride`,
                `is_contiguous`).
            args: arguments of the metadata method.
            env: the symbolic environment of the attempt, if it has one.
            kwargs: keyword arguments of the metadata method.

        Returns:
            The value, with TensorRefs for tensors.

        Raises:
            OperatorRaised: getting it raises (AttributeError included).
            DataDependent: it depends on the tensor's data.
            UnsupportedOperator: metadata propagation can't tell.
        """
        found = fromfacts.answer(ref.facts, name, args, kwargs)
        if found is not fromfacts.UNKNOWN:
            return found
        if fromfacts.is_method(name):
            return self.call("call_method", name, (ref, *args), kwargs, env)
        return self.call("attribute", fromfacts.getter(name), (ref,), None, env)


def _flatten(value: Any, key: list[Any], refs: list[TensorRef]) -> None:
    """Append one argument to a key: its structure, its leaves, and its tensors to `refs`."""
    t = type(value)
    if t is TensorRef:
        key.append(value.facts)
        refs.append(value)
    elif t in _SELF_KEYED:
        key.append(value)
    elif t in _NUMBERS:
        key.append(t)
        key.append(value)
    elif isinstance(value, (tuple, list)):
        key.append(t)
        key.append(len(value))
        for item in value:
            _flatten(item, key, refs)
    elif isinstance(value, dict):
        key.append(t)
        key.append(tuple(value))
        for item in value.values():
            _flatten(item, key, refs)
    elif t is slice:
        key.append(t)
        _flatten(value.start, key, refs)
        _flatten(value.stop, key, refs)
        _flatten(value.step, key, refs)
    elif isinstance(value, _SYMBOLS):
        raise _Symbolic
    else:
        key.append(t)
        key.append(value)


def _alias_pattern(refs: Sequence[TensorRef], key: list[Any]) -> None:
    """Append who shares a storage with whom, who is the same tensor and who is a view of whom."""
    tensors: dict[int, int] = {}
    storages: dict[int, int] = {}
    bases: dict[int, int] = {}
    pattern = []
    for i, ref in enumerate(refs):
        same = tensors.setdefault(id(ref), i)
        storage = storages.setdefault(id(ref.storage), len(storages))
        base = -1 if ref.base is None else bases.setdefault(id(ref.base), len(bases))
        pattern.append((same, storage, base))
    key.append(tuple(pattern))
    for ref in refs:
        if ref.base is not None and bases.pop(id(ref.base), None) is not None:
            key.append(ref.base.facts)
            key.append(tensors.get(id(ref.base), -1))
