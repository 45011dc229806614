"""Models on which the bundled engine doesn't agree with torch.compile, or the figures differ on purpose."""

__all__ = ["EXPECTED_FAILURES", "OTHER_OPERATORS"]


def both(name: str, why: str) -> dict[tuple[str, bool], str]:
    """One reason for eval and training mode."""
    return {(name, False): why, (name, True): why}


# Not yet: (name, training) -> why. Strict: one that agrees fails.
EXPECTED_FAILURES: dict[tuple[str, bool], str] = {
    **both(
        "switch_transformers",
        "frames that are given up because they raise are named at other lines than torch's",
    ),
    ("encodec", False): "a 0-d buffer as a size breaks, torch makes a symbol of its value",
    ("m2m_100", True): "a class's wrapped constructor is compiled once more in torch",
    ("ibert", True): "of 60 entries behind branches on buffers' values one is more than torch's",
    ("vilt", False): "a comprehension over tensors: one more line is named",
}

# Agrees, but for the number of operators in the graph: name -> why.
OTHER_OPERATORS: dict[str, str] = {
    "mamba": "torch.func's transforms are one operator each, where torch has their steps",
    "falcon_mamba": "torch.func's transforms are one operator each, where torch has their steps",
    "jamba": "torch.func's transforms are one operator each, where torch has their steps",
    "quantizer": "an autograd.Function is one operator, where torch has a subgraph and its inputs and items",
    "policy_distribution": "broadcasting that changes nothing gives the tensor itself, not an item of the result",
}
