"""Models on which the bundled engine doesn't agree with torch.compile, or the figures differ on purpose."""

__all__ = ["EXPECTED_FAILURES", "OTHER_OPERATORS"]


def both(name: str, why: str) -> dict[tuple[str, bool], str]:
    """One reason for eval and training mode."""
    return {(name, False): why, (name, True): why}


# Not yet: (name, training) -> why. Strict: one that agrees fails.
EXPECTED_FAILURES: dict[tuple[str, bool], str] = {
    **both(
        "switch_transformers", "Module.to inside of forward breaks; a loop over nonzero() splits elsewhere"
    ),
    ("encodec", False): "padding sized by a buffer's value and a recurrent layer: frames are split elsewhere",
    ("vilt", False): "a comprehension over tensors: one more line is named",
}

# Agrees, but for the number of operators in the graph: name -> why.
OTHER_OPERATORS: dict[str, str] = {
    "mamba": "torch.func's transforms are one operator each, where torch has their steps",
    "falcon_mamba": "torch.func's transforms are one operator each, where torch has their steps",
    "quantizer": "an autograd.Function is one operator, where torch has a subgraph and its inputs and items",
    "policy_distribution": "broadcasting that changes nothing gives the tensor itself, not an item of the result",
}
