"""What operators say about wrong arguments, caught and uncaught, is what they say to plain Python."""

import dynacheck
import pytest
import torch

CALLS = """
torch.stack(x); torch.cat(x, 0); torch.cat([x, 1]); x.view(7); x @ x.view(2, 2) @ x[:3]; x.expand(2, 3); torch.add(x)
x.reshape('a'); x.softmax(); torch.ones(2) + torch.ones(3); x.permute(0, 1); x.unknown; x.sum(5); x[1, 2, 3]; x + 'a'; len(x[0])
torch.zeros(4, out=x[:1].to(torch.int64), dtype=torch.float64); torch.nn.functional.linear(x, x[:3]); torch.where(x, x, x)
"""


def said(fn):
    try:
        return fn(torch.arange(4.0))[1:]
    except Exception as error:
        if isinstance(error, dynacheck.errors.DynacheckError):
            raise
        return type(error), str(error)


@pytest.mark.parametrize("caught", [True, False])
@pytest.mark.parametrize("call", [c.strip() for c in CALLS.replace("\n", ";").split(";") if c.strip()])
def test_message(call, caught):
    body = f"    y = x + 1\n    {call}\n    return y, 'nothing'\n"
    if caught:
        body = f"    y = x + 1\n    try:\n        {call}\n    except Exception as error:\n        return y, type(error), str(error)\n    return y, 'nothing'\n"
    scope = {"torch": torch}
    exec(f"def program(x):\n{body}", scope)
    dynacheck.reset()
    compiled = dynacheck.compile(scope["program"], backend="eager")
    for _ in range(2):
        assert said(compiled) == said(scope["program"])
