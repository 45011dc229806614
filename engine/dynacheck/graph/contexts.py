"""How torch is told to make fake tensors of what an input hangs on."""

from __future__ import annotations

from typing import Any

from dynacheck.graph.facts import is_wrapper


def alike(shapes: Any, tensor: Any, kind: Any, source: Any) -> Any:
    """The symbolic context of a tensor whose sizes are all treated alike: the base of a view.

    Args:
        shapes: `torch.fx.experimental.symbolic_shapes`.
        tensor: the tensor; of a traceable wrapper, what it is made of is treated like it.
        kind: of its sizes, a `DimDynamic`.
        source: the source of the tensor that hangs on it.

    Returns:
        The context.
    """
    n = tensor.dim()
    given: dict[str, Any] = {
        "dynamic_sizes": [kind] * n,
        "dynamic_strides": [shapes.DimDynamic.INFER_STRIDE] * n,
        "constraint_sizes": [None] * n,
        "constraint_strides": [None] * n,
    }
    if not is_wrapper(type(tensor)):
        return shapes.StatelessSymbolicContext(**given)
    parts = tensor.__tensor_flatten__()[0]
    inner = {name: alike(shapes, getattr(tensor, name), kind, source) for name in parts}
    return shapes.SubclassSymbolicContext(**given, tensor_source=source, inner_contexts=inner)
