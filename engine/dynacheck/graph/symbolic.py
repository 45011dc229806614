"""Symbolic sizes: an attempt's ShapeEnv and fake mode, its inputs' symbols, the guards they collected."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from types import MethodType
from typing import Any, Final, Literal, TypeAlias

import torch

from dynacheck.graph import sizeguards
from dynacheck.graph.facts import (
    PLAIN,
    Storage,
    TensorFacts,
    TensorRef,
    facts_after_write,
    facts_of,
    is_wrapper,
)
from dynacheck.graph.outcomes import DataDependent
from dynacheck.graph.scalars import scalar_tensor
from dynacheck.graph.sizeguards import ConstraintViolation, Dim, Layout, SizeGuard, Slot, SymbolSource
from dynacheck.graph.throwaway import World
from dynacheck.sources import CAttr, Node, UserLine, instance_dict

__all__ = ["ConstraintViolation", "Dim", "Layout", "SizeGuard", "Slot", "SymbolicEnv"]

What: TypeAlias = Literal["size", "stride", "offset", "int", "float", "drawn"]
Symbolic: TypeAlias = "torch.SymInt | torch.SymFloat | torch.SymBool"

_SYMBOLS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)


BASE: Final = CAttr("_base")
STATIC: Final = Dim("static")
AUTO: Final = Dim("auto")
DUCK: Final = Dim("duck")


@cache
def _torch() -> Any:
    """The parts of torch that symbols need; importing and constructing them loads torch._dynamo."""
    from torch._dynamo import source
    from torch._guards import GuardSource, Source
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental import symbolic_shapes
    from torch.utils._sympy.value_ranges import ValueRanges

    shapes: Any = symbolic_shapes

    class NodeSource(Source):
        """A source of ours as torch wants it: hashable, with a name."""

        def __init__(self, node: Node) -> None:
            object.__setattr__(self, "node", node)

        @property
        def name(self) -> str:
            return str(self.node.path)  # type: ignore[attr-defined]

        @property
        def _name_template(self) -> str:
            return self.name

        @property
        def guard_source(self) -> Any:
            return GuardSource.LOCAL if self.name.startswith("L[") else GuardSource.GLOBAL

        def __hash__(self) -> int:
            return hash(self.name)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, NodeSource) and other.name == self.name

        def __reduce__(self) -> tuple[Any, ...]:
            return str, (self.name,)  # backends hash what they are given by pickling it

    class Env(symbolic_shapes.ShapeEnv):
        """A ShapeEnv that notes the user's line of ours with each guard, instead of walking stacks."""

        locate: Callable[[], UserLine | None] | None = None
        user_lines: dict[str, UserLine]

        def _get_sloc(self, framework_loc: Any = None) -> Any:
            line = None if self.locate is None else self.locate()
            if line is None:
                return shapes.SLoc(None, None)
            text = str(line)
            self.__dict__.setdefault("user_lines", {})[text] = line
            return shapes.SLoc(None, text)

    class Names:
        pass

    names: Any = Names()
    names.NodeSource, names.Env, names.FakeTensorMode, names.shapes = NodeSource, Env, FakeTensorMode, shapes
    names.FloatTensorSource, names.ValueRanges = source.FloatTensorSource, ValueRanges
    return names


def torch_source(node: Node) -> Any:
    """A node of ours as a torch source.

    Args:
        node: the node.

    Returns:
        A `torch._guards.Source` named by the node's path.
    """
    return _torch().NodeSource(node)


def forget_environments() -> None:
    """Empty the caches of torch's ShapeEnv methods: they are process-wide, and keep every environment that asked."""
    for method in vars(_torch().shapes.ShapeEnv).values():
        clear = getattr(method, "cache_clear", None)
        if clear is not None:
            clear()


class SymbolicEnv:
    """The symbols of one attempt.

    Args:
        scalar_outputs: whether `.item()` gives an unbacked symbol instead of raising DataDependent.
        dynamic_output_shapes: whether `nonzero` and its like give unbacked sizes.

    Attributes:
        shape_env: torch's ShapeEnv.
        fake_mode: the FakeTensorMode over it.
        tensor_contexts: symbolic context of each input tensor by source node, for backends.
        scalars: the scalar tensor, real and fake, that carries each symbolic float into the graph.
    """

    def __init__(self, *, scalar_outputs: bool = False, dynamic_output_shapes: bool = False) -> None:
        t = _torch()
        self.shape_env: Any = t.Env(
            allow_scalar_outputs=scalar_outputs, allow_dynamic_output_shape_ops=dynamic_output_shapes
        )
        self.fake_mode: Any = t.FakeTensorMode(shape_env=self.shape_env, allow_non_fake_inputs=False)
        self.fake_mode.cache_enabled = False  # torch's memo is process-wide and would keep this environment
        self.tensor_contexts: dict[Node, Any] = {}
        self.scalars: dict[Node, tuple[torch.Tensor, torch.Tensor]] = {}
        self._sources: dict[Any, list[SymbolSource]] = {}  # by sympy symbol
        self._drawn: dict[Any, Any] = {}  # symbols of random numbers
        self._numbers: set[Node] = set()  # in tensors, which have symbols
        self._inputs: list[
            tuple[SymbolSource, Any, Dim]
        ] = []  # each symbolic property of an input, its expression
        self._dynamic: dict[Node, tuple[set[int], set[int]]] = {}
        self._input_fakes: dict[Node, torch.Tensor] = {}
        self._refs: dict[int, TensorRef] = {}
        self._owners: dict[int, TensorRef] = {}  # a ref over each fake storage
        self._touched: dict[int, tuple[TensorRef, tuple[Any, ...]]] = {}
        self._keep: list[Any] = []

    # Inputs

    def source(self, node: Node) -> Any:
        """A node of ours as a torch source.

        Args:
            node: the node.

        Returns:
            A `torch._guards.Source` named by the node's path.
        """
        return _torch().NodeSource(node)

    def symbol(self, node: Node, what: What, index: int, value: int | float, policy: Dim = AUTO) -> Any:
        """A symbol for an int or float of the frame.

        Args:
            node: where the number comes from.
            what: "int" or "float" (tensors' properties get theirs from `tensor_symbols`).
            index: unused for numbers.
            value: the number now.
            policy: what to make of it.

        Returns:
            The SymInt or SymFloat, or the number itself for a static policy.
        """
        if policy.kind == "static":
            return value
        t = _torch()
        source = self.source(node)
        if what == "float":
            return self._float_symbol(node, source, value, policy)
        kind = t.shapes.DimDynamic.DUCK if policy.kind == "duck" else t.shapes.DimDynamic.DYNAMIC
        if policy.kind == "unbacked":
            made = self.shape_env.create_unbacked_symint(source)
            expr = made.node.expr
        else:
            constraint = self._constraint(policy)
            expr = self.shape_env.create_unspecified_symbol(value, source, kind, constraint)
            made = self.shape_env.create_symintnode(expr, hint=value, source=source)
        self._note(SymbolSource(node, what, index), expr, policy)
        return made

    def _float_symbol(self, node: Node, source: Any, value: float, policy: Dim) -> Any:
        """A symbol for a float: `.item()` of a scalar tensor, as in torch; backends can take that."""
        with torch.inference_mode(False):  # a tensor of inference mode doesn't keep what its item is
            scalar = scalar_tensor(value)
            fake = self.fake_mode.from_tensor(scalar, source=_torch().FloatTensorSource(source))
            with self.fake_mode:
                made = fake.item() if math.isfinite(value) else value
        if isinstance(made, torch.SymFloat):
            self.scalars[node] = (scalar, fake)
            self._note(SymbolSource(node, "float", 0), made.node.expr, policy)
        return made

    def gives_number(self, ref: TensorRef, number: Node) -> bool:
        """Give a tensor that came in a symbol for the one number in it, which operators may ask for; False if it has one.

        Args:
            ref: the tensor.
            number: where the number comes from.
        """
        value = number.peek()
        if number in self._numbers or not math.isfinite(value):
            return False
        self._numbers.add(number)
        source, env = self.source(number), self.shape_env
        with torch.inference_mode(False), self.fake_mode:
            expr = env.create_unspecified_symbol(value, source, _torch().shapes.DimDynamic.DYNAMIC)
            make = env.create_symintnode if type(value) is int else env.create_symfloatnode
            self.fake(ref).item_memo = make(expr, hint=value, source=source)  # type: ignore[attr-defined]
        self._note(SymbolSource(number, "int" if type(value) is int else "float", 0), expr, AUTO)
        return True

    def drawn(self, node: Node, value: int | float) -> Any:
        """A symbol for a number drawn before the graph runs: its value, now an example, is never looked at."""
        self.shape_env.settings = replace(self.shape_env.settings, allow_scalar_outputs=True)
        scalar = scalar_tensor(value)
        with self.fake_mode:  # not made from the tensor, whose value would be a hint
            fake = torch.empty((), dtype=scalar.dtype, device="cpu")
            made: Any = fake.item()
        fake.item_memo = None  # type: ignore[attr-defined]
        self.shape_env.pending_fresh_unbacked_symbols.clear()  # no operator of a graph made it
        self.scalars[node] = (scalar, fake)
        self._sources[made.node.expr] = [SymbolSource(node, "drawn", 0)]
        self._drawn[made.node.expr] = made
        return made

    def unknown(self) -> torch.SymInt:
        """A symbol for an int that only running the graph tells, of which nothing is known."""
        with self.shape_env.ignore_fresh_unbacked_symbols():
            made: torch.SymInt = self.shape_env.create_unbacked_symint()
        return made

    def _constraint(self, policy: Dim) -> Any:
        t = _torch()
        if policy.kind != "marked":
            return None
        if policy.min is None and policy.max is None:
            return t.shapes.RelaxedUnspecConstraint(warn_only=False)
        import sympy  # type: ignore[import-untyped]
        from torch.utils._sympy.numbers import int_oo

        low = sympy.Integer(2 if policy.min is None else policy.min)
        high = int_oo if policy.max is None else sympy.Integer(policy.max)
        return t.shapes.StrictMinMaxConstraint(vr=t.ValueRanges(low, high), warn_only=False)

    def tensor_symbols(self, layout: Layout, facts: TensorFacts) -> TensorRef:
        """An input tensor with symbols.

        Strides follow the sizes' expressions as torch computes them, unless the layout says otherwise.

        Args:
            layout: where the tensor comes from (its value is read for torch's own bookkeeping), and what to make of it.
            facts: its static facts.

        Returns:
            A ref with symbolic facts.
        """
        node = layout.node
        context = self._context(layout)
        self.tensor_contexts[node] = context
        fake = self.fake_mode.from_tensor(node.peek(), symbolic_context=context, source=self.source(node))
        self._input_fakes[node] = fake
        for size, dim in zip(fake.shape, layout.sizes):
            if dim.kind == "unbacked" and dim.min is not None:
                torch._check(size >= dim.min)  # type: ignore[no-untyped-call]
            if dim.kind == "unbacked" and dim.max is not None:
                torch._check(size <= dim.max)  # type: ignore[no-untyped-call]
        ref = self.ref(fake, cls=facts.cls)
        ref.fake = fake
        self._note_symbols(layout, fake)
        return ref

    def _context(self, layout: Layout) -> Any:
        """How torch is to make a fake tensor of an input."""
        shapes = _torch().shapes
        kinds = shapes.DimDynamic
        kind = {"static": kinds.STATIC, "auto": kinds.DYNAMIC, "duck": kinds.DUCK, "marked": kinds.DYNAMIC}
        kind["unbacked"] = kinds.UNBACKED
        ids = (instance_dict(layout.node.peek()) or {}).get("_dynamo_shape_ids")
        more: dict[str, Any] = {"shape_ids": ids} if ids else {}
        make = shapes.StatefulSymbolicContext
        if layout.inner:
            make = shapes.SubclassSymbolicContext
            more["inner_contexts"] = {name: self._context(part) for name, part in layout.inner.items()}
        return make(
            dynamic_sizes=[kind[d.kind] for d in layout.sizes],
            dynamic_strides=[
                kinds.INFER_STRIDE if d.kind == "static" else kinds.DYNAMIC for d in layout.strides
            ],
            constraint_sizes=[self._constraint(d) for d in layout.sizes],
            constraint_strides=[None] * len(layout.sizes),
            view_base_context=None if layout.base is None else self._context(layout.base),
            tensor_source=self.source(layout.node),
            **more,
        )

    def _note_symbols(self, layout: Layout, fake: torch.Tensor) -> None:
        """Remember which symbols are sizes, strides and offset of an input."""
        import sympy

        node = layout.node
        dynamic = self._dynamic[node] = (set(), set())
        for i, (size, dim) in enumerate(zip(fake.shape, layout.sizes)):
            if isinstance(size, torch.SymInt):
                dynamic[0].add(i)
                self._note(SymbolSource(node, "size", i), size.node.expr, dim)
            elif dim.kind == "marked" and (dim.min, dim.max) != (None, None):  # a 0 or 1 breaks the mark
                self._note(SymbolSource(node, "size", i), sympy.Integer(size), dim)
        for i, stride in enumerate(fake.stride()):
            if isinstance(stride, torch.SymInt):
                dynamic[1].add(i)
                self._note(SymbolSource(node, "stride", i), stride.node.expr, AUTO)
        offset: Any = fake.storage_offset()
        if isinstance(offset, torch.SymInt):
            self._note(SymbolSource(node, "offset", 0), offset.node.expr, AUTO)
        for name, part in layout.inner.items():
            self._note_symbols(part, getattr(fake, name))
        if layout.base is not None and fake._base is not None:
            self._note_symbols(layout.base, fake._base)

    def _note(self, at: SymbolSource, expr: Any, policy: Dim) -> None:
        self._inputs.append((at, expr, policy))
        if expr.is_Symbol:
            found = self._sources.setdefault(expr, [])
            found.append(at)
            found.sort(key=lambda at: at.node.accessor == BASE)  # what graphs are handed anyway first

    def dynamic_dims(self, node: Node) -> tuple[frozenset[int], frozenset[int]]:
        """Which sizes and strides of an input tensor are symbolic: those that no guard on the tensor may pin.

        Args:
            node: the tensor's node.

        Returns:
            The dimensions with symbolic sizes, and those with symbolic strides.
        """
        sizes, strides = self._dynamic.get(node, (set(), set()))
        return frozenset(sizes), frozenset(strides)

    # Values

    def expression(self, value: Any) -> Any:
        """The sympy expression of a symbolic value, after replacements.

        Args:
            value: a SymInt, SymFloat, SymBool, or a sympy expression.

        Returns:
            The expression.
        """
        return value.node.expr if isinstance(value, _SYMBOLS) else value

    def value_of(self, symbol: Any) -> Any:
        """The symbolic value of a lone symbol.

        Args:
            symbol: a sympy symbol of this environment.

        Returns:
            A SymInt or SymFloat.
        """
        hint = self.shape_env.backed_var_to_val.get(symbol)
        source = self._sources.get(symbol)
        if source and source[0].what == "drawn":
            return self._drawn[symbol]
        if source and source[0].what == "float":
            return self.shape_env.create_symfloatnode(symbol, hint=None if hint is None else float(hint))
        return self.shape_env.create_symintnode(symbol, hint=None if hint is None else int(hint))

    def symbol_sources(self, value: Any) -> Iterator[tuple[Any, Node, str, int]]:
        """The input symbols that a value is made of.

        Args:
            value: a symbolic value or a sympy expression.

        Returns:
            For each symbol that an input has: the symbol, and the node, property and index of its first
            source.
        """
        expr = value.node._expr if isinstance(value, _SYMBOLS) else value
        for symbol in sorted(expr.free_symbols, key=str):
            sources = self._sources.get(symbol)
            if sources:
                yield symbol, sources[0].node, sources[0].what, sources[0].index

    def spelled(self, value: Any) -> str:
        """A symbolic value in the user's words."""
        return sizeguards.spelled(self.expression(value), self._sources)

    def hint(self, value: Any) -> Any:
        """The value that a symbolic value has in the frame being translated.

        Args:
            value: a symbolic value or a plain number.

        Returns:
            The number, or None for an unbacked symbol.
        """
        if not isinstance(value, _SYMBOLS):
            return value
        return value.node.hint if value.node.has_hint() else None

    def locate(self, where: Callable[[], UserLine | None]) -> None:
        """Say how to find the user's line when a guard is made; costs nothing until one is.

        Args:
            where: gives the line that the translation is at; a method, held weakly: backends may keep the environment.
        """
        method = weakref.WeakMethod(where) if isinstance(where, MethodType) else lambda: where

        def locate() -> UserLine | None:
            now = method()
            return None if now is None else now()

        self.shape_env.locate = locate

    def evaluate(self, value: Any, line: UserLine | None = None) -> Any:
        """Decide a symbolic value: a truth value for a condition, a number for a size. Leaves a guard.

        Args:
            value: a SymBool, SymInt or SymFloat.
            line: the user's line that needs it (by default the one recorded last).

        Returns:
            A bool, an int or a float.

        Raises:
            DataDependent: the value is unbacked.
        """
        before = self.shape_env.locate
        if line is not None:
            self.shape_env.locate = lambda: line
        try:
            if isinstance(value, torch.SymBool):
                return bool(value)
            if isinstance(value, torch.SymInt):
                return int(value)
            if isinstance(value, torch.SymFloat):
                return float(value)
        except _torch().shapes.GuardOnDataDependentSymNode as error:
            raise DataDependent(str(error)) from None
        finally:
            self.shape_env.locate = before
        return value

    specialize = evaluate

    # Tensors

    def fake(self, ref: TensorRef) -> torch.Tensor:
        """The fake tensor of a ref, made with those of its whole storage if it has none.

        Args:
            ref: the tensor.

        Returns:
            A fake tensor of `fake_mode`, which must be on.
        """
        if ref.fake is None:
            members = list(dict.fromkeys(m for m in (*ref.storage.members, ref) if m.fake is None))
            for member, tensor in zip(members, World(members, plain=True).tensors):
                member.fake = tensor
                self._know(member, tensor)
            assert ref.fake is not None
        self._touched.setdefault(id(ref), (ref, _state(ref.fake)))
        fake: torch.Tensor = ref.fake
        return fake

    def _know(self, ref: TensorRef, tensor: torch.Tensor) -> None:
        self._refs[id(tensor)] = ref
        self._owners.setdefault(tensor.untyped_storage()._cdata, ref)
        self._keep.append(tensor)

    def ref(self, tensor: torch.Tensor, cls: type | None = None, inference: bool = False) -> TensorRef:
        """The ref of a fake tensor that an operator returned.

        Args:
            tensor: a fake tensor of this attempt.
            cls: its class; by default what the fake tensor says.
            inference: whether the operator ran in inference mode.

        Returns:
            The ref that has it, or a new one, over the storage it shares.
        """
        found = self._refs.get(id(tensor))
        if found is not None:
            return found
        facts = _facts(tensor, cls)
        cdata = tensor.untyped_storage()._cdata
        owner = self._owners.get(cdata)
        storage = None if owner is None else owner.storage
        if inference and (storage is None or all(m.facts.is_inference for m in storage.members)):
            facts = facts.as_inference()
        own = storage is None and not facts.has_symbols and facts.view is None and facts.nbytes >= 0
        if own and facts.cls in PLAIN:
            return TensorRef(facts)  # static and on its own: the memo goes on with it
        base = self._refs.get(id(tensor._base)) if facts.view is not None else None
        ref = TensorRef(facts, storage or Storage(facts.nbytes), base)
        ref.fake = tensor
        self._know(ref, tensor)
        return ref

    def reread(self) -> None:
        """Read the facts of what the last operator changed, and of all that share their storage."""
        for ref, before in self._touched.values():
            fake = ref.fake
            assert fake is not None
            if _state(fake) == before:
                continue
            ref.storage.wrote()
            facts = facts_of(fake, ref.facts.cls, ref.facts)
            ref.facts = facts.as_inference() if ref.facts.is_inference else facts
            for member in ref.storage.members:
                if member.fake is not None and member is not ref:
                    member.facts = facts_after_write(member.fake, member.facts, fake)
            owner = self._owners.setdefault(fake.untyped_storage()._cdata, ref)
            if owner is not ref and owner.storage is not ref.storage:
                ref.storage = owner.storage
                ref.storage.members.append(ref)
            elif owner is ref and before[-1] != fake.untyped_storage()._cdata:
                ref.storage = Storage(ref.facts.nbytes)
                ref.storage.members.append(ref)
        self._touched.clear()

    def input_fake(self, node: Node) -> torch.Tensor | None:
        """The fake tensor that `tensor_symbols` made for an input, as it was then; None if it made none.

        Args:
            node: the input's node.

        Returns:
            The fake tensor.
        """
        return self._input_fakes.get(node)

    # Guards

    def freeze(self) -> None:
        """Take no more guards; call it when the backend has returned."""
        self.shape_env.freeze()

    def guard_expressions(self) -> list[SizeGuard]:
        """The conditions on the inputs' sizes, strides, offsets and numbers under which the graph holds.

        Returns:
            Conditions over input properties, each with the user's line that added it.

        Raises:
            UnknownExpression: a condition has an operator that guards don't know.
        """
        return sizeguards.collect(self.shape_env, self._inputs, self._sources)

    def violations(self) -> list[ConstraintViolation]:
        """The marks that the trace broke: dimensions marked dynamic that became constant or narrower than
        allowed.

        Returns:
            One record per broken mark.
        """
        return sizeguards.violations(self.shape_env, self._inputs)


def _facts(tensor: torch.Tensor, cls: type | None) -> TensorFacts:
    if cls is None:
        cls = torch.nn.Parameter if getattr(tensor, "_is_param", False) else torch.Tensor
        if is_wrapper(type(tensor)):
            cls = type(tensor)
    return facts_of(tensor, cls)


def _state(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What changes when an operator changes a tensor in place."""
    version = 0 if tensor.is_inference() else tensor._version
    return version, tensor.requires_grad, tensor.is_leaf, tensor.dim(), tensor.untyped_storage()._cdata
