"""Which sizes and numbers of a frame become symbols: their history, the user's marks, `dynamic=`.

Parameters, buffers and what torch's own modules own stay static; so do ints of modules, globals and default
arguments. Tensors, floats, and ints of arguments, closures and plain objects become symbols once they
changed.
"""

from __future__ import annotations

import math
from types import FunctionType
from typing import Any

import torch
from torch import nn

from dynacheck import errors
from dynacheck.config import Config
from dynacheck.graph.facts import PLAIN, TensorRef, UnsupportedTensor, facts_of, is_wrapper
from dynacheck.graph.symbolic import AUTO, BASE, DUCK, STATIC, Dim, Layout
from dynacheck.guards import MarksAre, NoMarks, TensorMatch, TypeIs
from dynacheck.guards.tensors import MARKS, FlattenIs, UnbackedMarksAre, flattened
from dynacheck.marks import marked_at
from dynacheck.runtime.codes import code_ref
from dynacheck.runtime.history import (
    CHANGED,
    NOT_A_NUMBER,
    NOT_A_TENSOR,
    History,
    Seen,
    place_of,
    relative_strides,
)
from dynacheck.sources import CAttr, DictAttr, Free, Key, Local, Node, instance_dict, is_a

_DEFAULTS = (CAttr("__defaults__"), CAttr("__kwdefaults__"))
_SETTLES_STRIDES = (
    "static",
    "dynamic",
    "strict_unbacked",
)  # marks of a size that keep its stride from being one
_OWNED = (DictAttr("_buffers"), DictAttr("_parameters"))


class ShapePolicy:
    """Decides for the frames of one compile.

    Args:
        history: what earlier translations saw.
        settings: the settings that hold.
        dynamic: the compile's `dynamic`.
        isolation: number of the isolated compile, or None.
    """

    def __init__(
        self, history: History, settings: Config, dynamic: bool | None, isolation: int | None
    ) -> None:
        self.history = history
        self.isolation = isolation
        self.settings = settings
        self.static = settings.assume_static_by_default if dynamic is None else not dynamic
        self.automatic = settings.automatic_dynamic_shapes and dynamic is not False

    # -- tensors
    def wrap_tensor(self, tx: Any, node: Node, tensor: torch.Tensor) -> TensorRef:
        """The ref of an input tensor, guards installed.

        Args:
            tx: the translator's frame that reads it.
            node: where it comes from.
            tensor: the tensor.

        Returns:
            Its ref: with symbols where its history, a mark or `dynamic=True` asks for them.
        """
        facts = facts_of(tensor)
        marks = _marks_of(tensor)
        layout = self._layout(tx, node, tensor, has_fixed_shape(node, tensor))
        if layout.is_static:
            ref = TensorRef(facts)
            tx.guard(node, TensorMatch.of(tensor))
        else:
            if tx.env is None:
                tx.need_symbols()
            ref = tx.env.tensor_symbols(layout, facts)
            self._guard(tx, layout)
        tx.guard(node, MarksAre.of(tensor) if marks else NoMarks())
        if "_dynamo_unbacked_indices" in marks:
            tx.guard(node, UnbackedMarksAre.of(tensor))
        return ref

    def _layout(self, tx: Any, node: Node, tensor: torch.Tensor, fixed: bool) -> Layout:
        """What to make of the sizes of a tensor, of those that a traceable wrapper is made of, and of a view's base."""
        under = None
        if type(tensor) in PLAIN and tensor._base is not None:  # asking a subclass could run the user's code
            under = self._layout(tx, node.child(BASE), tensor._base, fixed)
        inner = {}
        for name in flattened(tensor)[0] if is_wrapper(type(tensor)) else ():
            child = node.child(DictAttr(name))
            part = child.peek()
            if not isinstance(part, torch.Tensor):
                raise UnsupportedTensor(
                    f"a {type(tensor).__name__} whose tensors are no attributes of its own"
                )
            inner[name] = self._layout(tx, child, part, fixed)
        return Layout(node, *self._dims(tx, node, tensor, fixed), inner, under)

    def _guard(self, tx: Any, layout: Layout) -> None:
        """Guard a tensor with symbols, and what it is made of."""
        node = layout.node
        tensor = node.peek()
        tx.guard(node, TensorMatch.of(tensor, *tx.env.dynamic_dims(node)))
        if layout.inner:
            tx.guard(node, FlattenIs.of(tensor))
        for part in layout.inner.values():
            self._guard(tx, part)

    def _dims(self, tx: Any, node: Node, tensor: torch.Tensor, fixed: bool) -> tuple[list[Dim], list[Dim]]:
        """What to make of each size and stride."""
        marks = _marks_of(tensor)
        dims = range(tensor.dim())
        if fixed and not marks:
            return [STATIC for _ in dims], [STATIC for _ in dims]
        sizes = tuple(tensor.shape)
        # a dimension marked dynamic counts as one that changed, from then on
        noted = tuple(CHANGED if _marked(marks, "dynamic", i) else size for i, size in enumerate(sizes))
        seen = self.history.note(
            self._place(tx), node.path, Seen(NOT_A_NUMBER, noted, relative_strides(sizes, tensor.stride()))
        )
        settled = [any(_marked(marks, kind, i) for kind in _SETTLES_STRIDES) for i in dims]
        strides = [
            AUTO if self.automatic and seen.stride_changed(i) and not settled[i] else STATIC for i in dims
        ]
        return [self._size(node, seen, marks, i, size) for i, size in enumerate(sizes)], strides

    def _size(self, node: Node, seen: Seen, marks: dict[str, Any], dim: int, size: int) -> Dim:
        if _marked(marks, "unbacked", dim):
            return _bounded("unbacked", node, dim)
        if _marked(marks, "dynamic", dim):
            marked = _bounded("marked", node, dim)
            low, high = marked.min or 0, math.inf if marked.max is None else marked.max
            if size > 1 and not low <= size <= high:  # of 0 and 1 it is told that they are constants
                what = f"{node.user_path}.size()[{dim}] is {size}, which isn't from {low} to {high} as marked"
                raise errors.make(errors.ConstraintViolationError, f"{what} by {marked.mark}")
            return marked
        if _marked(
            marks, "strict_unbacked", dim
        ):  # torch takes its value, and only refuses to make it constant
            return Dim("marked", None, None, f"mark_unbacked({node.user_path}, {dim}, strict=True)")
        if size in (0, 1):
            return STATIC
        if _marked(marks, "weak_dynamic", dim):
            return AUTO
        if _marked(marks, "static", dim):
            return STATIC
        if self.automatic and seen.size_changed(dim):
            return AUTO
        return STATIC if self.static else DUCK

    # -- numbers
    def number(self, tx: Any, node: Node, value: int | float) -> Any:
        """The symbol of an int or float of the frame, or None where it is a constant.

        Args:
            tx: the translator's frame that reads it.
            node: where it comes from.
            value: the number now.
        """
        settings = self.settings
        if type(value) is int:
            if settings.specialize_int:
                return None
            fixed = self._fixed_int(node)
        elif type(value) is float:
            fixed = settings.specialize_float or math.isnan(value) or math.isinf(value)
        else:
            return None
        seen = self.history.note(self._place(tx), node.path, Seen(value, NOT_A_TENSOR, NOT_A_TENSOR))
        if fixed or (self.static and not (self.automatic and seen.number_changed)):
            return None
        if tx.env is None:
            tx.need_symbols()
        tx.guard(node, TypeIs(type(value)))
        return tx.env.symbol(node, "int" if type(value) is int else "float", 0, value, AUTO)

    def _fixed_int(self, node: Node) -> bool:
        """Ints that are never symbols: of globals, of modules and what they own, default arguments."""
        root = node
        while True:
            if root.accessor in _DEFAULTS:
                return True
            above = root.above()
            if above is None:
                break
            root = above
        if not isinstance(root.accessor, (Local, Free)):
            return True
        return owning_module(node) is not None and not self.settings.allow_unspec_int_on_nn_module

    def observe(self, func: FunctionType, args: tuple[Any, ...]) -> None:
        """Note a frame that isn't translated: its arguments that are tensors and numbers.

        Args:
            func: its function.
            args: the values of its argument slots.
        """
        code = func.__code__
        place = place_of(code_ref(code), self.isolation)
        for name, value in zip(code.co_varnames, args):
            path = Local(name, 0).path("")
            if is_a(value, torch.Tensor) and not isinstance(value, nn.Parameter):
                sizes = tuple(value.shape)
                self.history.note(place, path, Seen(None, sizes, relative_strides(sizes, value.stride())))
            elif type(value) in (int, float):
                self.history.note(place, path, Seen(value, NOT_A_TENSOR, NOT_A_TENSOR))

    def _place(self, tx: Any) -> Any:
        return place_of(code_ref(tx.code), self.isolation)


def owning_module(node: Node) -> nn.Module | None:
    """The innermost module that the value is reached through, or None."""
    above = node.above()
    while above is not None:
        value = above.peek()
        if is_a(value, nn.Module):
            return value
        above = above.above()
    return None


def is_owned(node: Node, tensor: torch.Tensor) -> bool:
    """Whether it is a parameter, or a buffer of a module."""
    above = node.parent
    kept = above is not None and above.accessor in _OWNED and isinstance(node.accessor, Key)
    return kept or isinstance(tensor, nn.Parameter)


def has_fixed_shape(node: Node, tensor: torch.Tensor) -> bool:
    """Parameters, buffers, and tensors of torch's own modules have the same shape for good."""
    if is_owned(node, tensor):
        return True
    owner = owning_module(node)
    return owner is not None and type(owner).__module__.startswith("torch.nn.")


def _marks_of(tensor: torch.Tensor) -> dict[str, Any]:
    """The marks on a tensor, as `mark_dynamic` and its relatives leave them: by attribute name."""
    have = instance_dict(tensor)
    return {name: have[name] for name in MARKS if name in have} if have else {}


def _marked(marks: dict[str, Any], kind: str, dim: int) -> bool:
    return dim in marks.get(f"_dynamo_{kind}_indices", ())


def _bounded(kind: Any, node: Node, dim: int) -> Dim:
    """A marked dimension, with the bounds that the user gave."""
    have = instance_dict(node.peek()) or {}
    low = high = None
    for bound in have.get("_dynamo_dynamic_range", ()):
        if bound.dim == dim:
            low, high = bound.min, bound.max
    if kind == "unbacked":
        low, high = have.get("_dynamo_unbacked_bounds", {}).get(dim, (low, high))
    mark = f"mark_{'dynamic' if kind == 'marked' else 'unbacked'}({node.user_path}, {dim})"
    place = marked_at(node.peek())
    return Dim(kind, low, high, f"{mark} at {place}" if place else mark)
