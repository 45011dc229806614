"""Models on which the bundled engine doesn't agree with torch.compile, or the figures differ on purpose."""

__all__ = ["EXPECTED_FAILURES", "OTHER_OPERATORS"]

# Not yet: (name, training) -> why. Strict: one that agrees fails.
EXPECTED_FAILURES: dict[tuple[str, bool], str] = {
    ("checkpointed", False): "torch.utils.checkpoint isn't modelled: its body isn't captured",
    ("checkpointed", True): "torch.utils.checkpoint isn't modelled: its body isn't captured",
}

# Agrees, but for the number of operators in the graph: name -> why.
OTHER_OPERATORS: dict[str, str] = {
    "quantizer": "an autograd.Function is one operator, where torch has a subgraph and its inputs and items",
    "policy_distribution": "broadcasting that changes nothing gives the tensor itself, not an item of the result",
}
