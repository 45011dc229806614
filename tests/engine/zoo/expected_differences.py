"""Models on which the bundled engine doesn't agree with torch.compile, or the figures differ on purpose."""

from typing import Any

__all__ = ["EXPECTED_FAILURES", "ON_PURPOSE", "OTHER_OPERATORS"]


def both(name: str, why: Any) -> dict[tuple[str, bool], Any]:
    """One reason for eval and training mode."""
    return {(name, False): why, (name, True): why}


# Not yet: (name, training) -> why. Strict: one that agrees fails.
EXPECTED_FAILURES: dict[tuple[str, bool], str] = {
    ("m2m_100", True): (
        "torch compiles the decoder's output class for the size it sees, though the encoder's came with another one "
        "by the same path in the same code"
    ),
}

# Never: (name, training) -> why, and the figures that differ. Strict: these differ, and no others.
ON_PURPOSE: dict[tuple[str, bool], tuple[str, frozenset[str]]] = {
    **both(
        "switch_transformers",
        (
            "a function whose first call raises while it is traced isn't left eager for good; what raises is named, and "
            "torch names the end of the `finally` that the exception passes",
            frozenset({"places", "recompiles", "entries", "max_entries"}),
        ),
    ),
    ("vilt", False): (
        "torch names the line of `unique()` for the break at `nonzero()` two lines before it",
        frozenset({"places"}),
    ),
}

# Agrees, but for the number of operators in the graph: name -> why.
OTHER_OPERATORS: dict[str, str] = {
    "mamba": "torch.func's transforms are one operator each, where torch has their steps",
    "falcon_mamba": "torch.func's transforms are one operator each, where torch has their steps",
    "jamba": "torch.func's transforms are one operator each, where torch has their steps",
    "quantizer": "an autograd.Function is one operator, where torch has a subgraph and its inputs and items",
    "policy_distribution": "broadcasting that changes nothing gives the tensor itself, not an item of the result",
}
