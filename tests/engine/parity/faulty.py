"""Programs for the harness's own tests: each does one thing that a faulty engine could get wrong."""

import random
import warnings

import torch
from parity.harness import registry

PROGRAMS, program = registry()
COUNT = 0


@program("everything", 0, graphs=0, state=lambda f: COUNT)
def _():
    def f(x, items):
        global COUNT
        COUNT += 1
        print("number", COUNT)
        warnings.warn(f"warned {COUNT}")
        items.append(x * 2)
        x.add_(torch.rand(3) + random.random())
        if COUNT == 2:
            raise ValueError("second")
        return {"sum": x.sum(), "items": items}

    return f, [(torch.ones(3), []), (torch.ones(3), []), (torch.ones(3), [])]
