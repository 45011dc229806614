"""Running an operator on fake tensors and writing down what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from dynacheck.graph import plainmeta
from dynacheck.graph.facts import (
    Storage,
    TensorFacts,
    TensorRef,
    UnsupportedTensor,
    facts_after_write,
    facts_of,
)
from dynacheck.graph.outcomes import DataDependent, OperatorRaised, UnsupportedOperator
from dynacheck.graph.runs import check_leaves, classified, invoke, map_structure, rebuild, running
from dynacheck.graph.throwaway import World, as_no_grad


class Argument:
    """In a plan: the result is argument tensor `index` itself."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Made:
    """In a plan: a new tensor.

    Args:
        facts: its facts.
        storage: number of its storage: the arguments' storages first, by first appearance, then new ones.
        base: ("ref", i) if it is a view of argument tensor i, ("base", i) of argument tensor i's base,
            ("made", n) of the n-th new tensor; None otherwise.
        nth: its number among the new tensors.
    """

    __slots__ = ("base", "facts", "nth", "storage")

    def __init__(self, facts: TensorFacts, storage: int, base: tuple[str, int] | None, nth: int) -> None:
        self.facts = facts
        self.storage = storage
        self.base = base
        self.nth = nth


class Effect:
    """In a plan: argument tensor `index` has other facts afterwards, and perhaps another storage."""

    __slots__ = ("facts", "index", "storage")

    def __init__(self, index: int, facts: TensorFacts, storage: int | None) -> None:
        self.index = index
        self.facts = facts
        self.storage = storage


class Plan:
    """What an operator does to metadata.

    Attributes:
        fresh: facts of the one new tensor, when that is all there is.
        result: the result with Argument and Made in place of tensors.
        effects: changes of the arguments.
        spreads: argument tensors written to in a way that other tensors over their storage may feel.
        writes: argument tensors written to.
        raises: makes the exception to raise instead of all of the above.
    """

    __slots__ = ("effects", "fresh", "raises", "result", "spreads", "writes")

    def __init__(self) -> None:
        self.fresh: TensorFacts | None = None
        self.result: Any = None
        self.effects: tuple[Effect, ...] = ()
        self.spreads: tuple[int, ...] = ()
        self.writes: tuple[int, ...] = ()
        self.raises: Callable[[], Exception] | None = None


_RESHAPING = frozenset(
    {
        "resize_",
        "resize_as_",
        "set_",
        "t_",
        "transpose_",
        "swapaxes_",
        "swapdims_",
        "squeeze_",
        "unsqueeze_",
        "as_strided_",
        "__set__",
        "set_data",
        "_copy_from_and_resize",
        "moveaxis_",
        "movedim_",
    }
)


def _check_broadcast(
    target: Any, kwargs: dict[str, Any] | None, refs: Sequence[TensorRef], plan: Plan
) -> None:
    """Raise what eager raises when an in-place result doesn't fit (some fake kernels grow the tensor)."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if name in _RESHAPING or "out" in (kwargs or {}):
        return
    for effect in plan.effects:
        before, after = list(refs[effect.index].facts.shape), list(effect.facts.shape)
        if before != after and effect.facts.device.type != "meta":
            message = f"output with shape {before} doesn't match the broadcast shape {after}"
            raise OperatorRaised(RuntimeError(message))


def _raiser(outcome: Exception) -> Callable[[], Exception]:
    """Makes fresh copies of an outcome, so that a kept one collects no tracebacks."""
    if isinstance(outcome, OperatorRaised):
        error = outcome.error
        kind, error_args = type(error), error.args
        error.__traceback__ = None
        error.__context__ = error.__cause__ = None

        def again() -> Exception:
            try:
                return OperatorRaised(kind(*error_args))
            except Exception:
                return OperatorRaised(error.with_traceback(None))

        return again
    if isinstance(outcome, DataDependent):
        return partial(DataDependent, outcome.reason, outcome.size)
    kind_of, reason = type(outcome), str(outcome)
    return lambda: kind_of(reason)


class _Reader:
    """Reads results and changes of arguments back into a plan."""

    def __init__(
        self, world: World, refs: Sequence[TensorRef], inference: bool, meta_for: torch.device | None
    ) -> None:
        self.world = world
        self.meta_for = meta_for
        self.inference = inference
        self.normal = {id(r.storage) for r in refs if not r.facts.is_inference}
        self.refs = refs
        self.arguments: dict[int, int] = {}
        self.bases: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.made: dict[int, Made] = {}
        self.keep: list[torch.Tensor] = []
        for i, tensor in enumerate(world.tensors):
            self.arguments.setdefault(id(tensor), i)
            self.storage(tensor)
            base = world.base_of(refs[i])
            if base is not None:
                self.bases.setdefault(id(base), i)

    def storage(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's storage."""
        return self.storages.setdefault(tensor.untyped_storage()._cdata, len(self.storages))

    def facts(self, tensor: torch.Tensor, before: TensorFacts | None = None) -> TensorFacts:
        """The facts of a fake tensor, with the class that the real one has."""
        if before is not None:
            cls = before.cls
        else:
            cls = torch.nn.Parameter if getattr(tensor, "_is_param", False) else torch.Tensor
        facts = facts_of(tensor, cls, before, self.meta_for)
        if self.inference and (before.is_inference if before is not None else not self._is_normal(tensor)):
            return facts.as_inference()
        return facts

    def _is_normal(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor shares the storage of an argument that is no inference tensor."""
        number = self.storage(tensor)
        seen: dict[int, int] = {}
        return any(
            seen.setdefault(id(ref.storage), len(seen)) == number and id(ref.storage) in self.normal
            for ref in self.refs
        )

    def same_storage(self, a: torch.Tensor, b: torch.Tensor) -> bool:
        """Whether two tensors share a storage."""
        return self.storage(a) == self.storage(b)

    def result(self, tensor: torch.Tensor) -> Argument | Made:
        """What stands for a result tensor in the plan."""
        index = self.arguments.get(id(tensor))
        if index is not None:
            return Argument(index)
        made = self.made.get(id(tensor))
        if made is not None:
            return made
        facts = self.facts(tensor)
        base: tuple[str, int] | None = None
        if facts.view is not None:
            of = tensor._base
            if id(of) in self.arguments:
                base = ("ref", self.arguments[id(of)])
            elif id(of) in self.bases:
                base = ("base", self.bases[id(of)])
            elif id(of) in self.made:
                base = ("made", self.made[id(of)].nth)
            if of is not None:
                self.keep.append(of)
        made = self.made[id(tensor)] = Made(facts, self.storage(tensor), base, len(self.made))
        self.keep.append(tensor)
        return made


def make(
    op: str,
    target: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
    refs: Sequence[TensorRef],
    direct: int,
    mode: Callable[[], Any],
) -> Plan:
    """Run an operator on throw-away tensors and read back what it does.

    Args:
        op: "call_function", "call_method" or "attribute".
        target: the callable or method name.
        args: arguments with TensorRefs.
        kwargs: keyword arguments with TensorRefs.
        refs: the TensorRefs in the arguments, then other tensors over the same storages.
        direct: how many of `refs` are in the arguments.
        mode: gives the fake mode to run in where plain meta tensors don't do; it must never see a real
            tensor.

    Returns:
        The plan.
    """
    plan = Plan()
    for ref in refs:
        if not _is_plain(ref.facts.cls):
            plan.raises = _raiser(UnsupportedOperator(f"a tensor subclass, {ref.facts.cls.__name__}"))
            return plan
    kwargs = kwargs or {}
    device = plainmeta.device_of(op, target, args, kwargs, refs)
    if device is not None:
        named = kwargs if refs else {**kwargs, "device": "meta"}
        try:
            with running(contextlib.nullcontext()):
                return _run(op, target, args, named, refs, direct, device)
        except _Failed:
            pass  # fake tensors tell how
    try:
        with running(mode()):
            return _run(op, target, args, kwargs, refs, direct, None)
    except _Failed as failed:
        outcome = classified(failed.error)
    if isinstance(outcome, DataDependent) and not outcome.size:  # forms in Python may ask for less
        try:
            with running(mode()), torch._C._EnablePythonDispatcher():
                return _run(op, target, args, kwargs, refs, direct, None)
        except _Failed:
            pass
    plan.raises = _raiser(outcome)
    return plan


def _is_plain(cls: type) -> bool:
    """Whether operators treat a class as they treat torch.Tensor."""
    return cls is torch.Tensor or (
        issubclass(cls, torch.nn.Parameter)
        and cls.__torch_function__ is torch.nn.Parameter.__torch_function__
    )


class _Failed(Exception):
    """The operator raised, or returned what there are no facts for."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _run(
    op: str,
    target: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    refs: Sequence[TensorRef],
    direct: int,
    meta_for: torch.device | None,
) -> Plan:
    """The plan of a call that does not fail, on fake tensors or, for a device's tensors, on meta ones."""
    inference = torch.is_inference_mode_enabled()
    with as_no_grad():
        world = World(refs, plain=inference, meta=meta_for is not None)
        versions = [_version(t) for t in world.tensors]
        standins = {id(r): t for r, t in zip(refs, world.tensors)}
        reader = _Reader(world, refs, inference, meta_for)
        run_args = [map_structure(a, lambda r: standins[id(r)], TensorRef) for a in args]
        run_kwargs = {k: map_structure(a, lambda r: standins[id(r)], TensorRef) for k, a in kwargs.items()}
        try:
            result = invoke(op, target, run_args, run_kwargs)
        except Exception as error:
            raise _Failed(error) from None
        plan = Plan()
        try:
            _read(plan, reader, result, versions, direct)
            _check_broadcast(target, kwargs, refs, plan)
        except (OperatorRaised, UnsupportedOperator, UnsupportedTensor) as error:
            raise _Failed(error) from None
    return plan


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _read(plan: Plan, reader: _Reader, result: Any, versions: Sequence[int], direct: int) -> None:
    """Fill a plan from a result and from the arguments, the first `direct` tensors, and their mates."""
    effects, spreads, writes = [], [], []
    for i, (ref, tensor) in enumerate(zip(reader.refs, reader.world.tensors)):
        if reader.arguments[id(tensor)] != i:
            continue
        number = len(reader.storages)
        storage = reader.storage(tensor)
        if i < direct:
            facts = reader.facts(tensor, ref.facts)
        else:
            written = next(
                (t for t in reader.world.tensors[:direct] if reader.same_storage(t, tensor)), tensor
            )
            facts = facts_after_write(tensor, ref.facts, written, reader.meta_for)
        moved = storage if storage == number or storage != _storage_of(reader, i) else None
        if facts is not ref.facts or moved is not None:
            effects.append(Effect(i, facts, moved))
        if _version(tensor) != versions[i]:
            writes.append(i)
            if facts.requires_grad or facts.nbytes != ref.facts.nbytes:
                spreads.append(i)
    plan.effects = tuple(effects)
    plan.spreads = tuple(spreads)
    plan.writes = tuple(writes)
    template = map_structure(result, reader.result, torch.Tensor)
    check_leaves(template, (Argument, Made))
    plan.result = template
    if isinstance(template, Made) and not effects and not writes and template.base is None:
        if template.storage >= len({id(r.storage) for r in reader.refs}):
            plan.fresh = template.facts


def _storage_of(reader: _Reader, index: int) -> int:
    """The number of an argument's storage before the run: by first appearance among the references."""
    seen: dict[int, int] = {}
    for ref in reader.refs[: index + 1]:
        seen.setdefault(id(ref.storage), len(seen))
    return seen[id(reader.refs[index].storage)]


def mates_of(plan: Plan, refs: Sequence[TensorRef]) -> list[TensorRef]:
    """Tensors outside the arguments that share a storage with one that the plan writes to.

    Args:
        plan: a plan with `spreads`.
        refs: the argument tensors.

    Returns:
        The others, without duplicates, in the order they were met.
    """
    known = {id(r) for r in refs}
    mates = []
    for index in plan.spreads:
        for mate in refs[index].storage.members:
            if id(mate) not in known and mate.storage is refs[index].storage:
                known.add(id(mate))
                mates.append(mate)
    return mates


def apply(plan: Plan, refs: Sequence[TensorRef]) -> Any:
    """Change the arguments as a plan says and build its result.

    Args:
        plan: the plan.
        refs: the argument tensors, in the order of the plan.

    Returns:
        The result, with TensorRefs.

    Raises:
        OperatorRaised: if that is what the plan says.
        DataDependent: likewise.
        UnsupportedOperator: likewise.
    """
    if plan.raises is not None:
        raise plan.raises()
    storages: dict[int, Storage] = {}
    seen: dict[int, int] = {}
    for ref in refs:
        number = seen.setdefault(id(ref.storage), len(seen))
        storages[number] = ref.storage
    for index in plan.writes:
        refs[index].storage.wrote()
    for effect in plan.effects:
        ref = refs[effect.index]
        ref.facts = effect.facts
        if effect.storage is not None:
            ref.storage = storages.setdefault(effect.storage, Storage(effect.facts.nbytes))
            ref.storage.members.append(ref)
        ref.storage.nbytes = effect.facts.nbytes
    made: dict[int, TensorRef] = {}

    def tensor(spec: Argument | Made) -> TensorRef:
        if isinstance(spec, Argument):
            return refs[spec.index]
        ref = made.get(spec.nth)
        if ref is None:
            storage = storages.get(spec.storage)
            if storage is None:
                storage = storages[spec.storage] = Storage(spec.facts.nbytes)
            base = None
            if spec.base is not None:
                kind, index = spec.base
                base = refs[index] if kind == "ref" else refs[index].base if kind == "base" else made[index]
            ref = made[spec.nth] = TensorRef(spec.facts, storage, base)
        return ref

    return _instantiate(plan.result, tensor)


def _instantiate(template: Any, tensor: Callable[[Any], TensorRef]) -> Any:
    if isinstance(template, (Argument, Made)):
        return tensor(template)
    if isinstance(template, (tuple, list)) and type(template) is not torch.Size:
        return rebuild(type(template), [_instantiate(v, tensor) for v in template])
    if isinstance(template, dict):
        return {k: _instantiate(v, tensor) for k, v in template.items()}
    return template
