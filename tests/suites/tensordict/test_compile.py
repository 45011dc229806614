"""Functions over a tensor container: full graphs, no recompile for other values, one for a new key."""

import pytest
import torch
from td import TensorDict


def make(**items):
    return TensorDict({"obs": torch.randn(4, 3), "reward": torch.randn(4, 1), **items}, [4])


@pytest.mark.dynacheck(fullgraph=True, max_graphs=1, max_recompiles=0)
class TestFull:
    def test_apply(self):
        double = torch.compile(lambda td: td.apply(lambda v: v * 2))
        for _ in range(3):
            td = make()
            torch.testing.assert_close(double(td)["obs"], td["obs"] * 2)

    def test_replace_no_recompile(self):
        scaled = torch.compile(lambda td: td.replace(obs=td["obs"] * 2))
        for _ in range(3):
            scaled(make())

    def test_set(self):
        done = torch.compile(lambda td: td.set("done", td["reward"] > 0))
        for _ in range(3):
            assert "done" in done(make()).keys()


def test_a_new_key_compiles_once(dynacheck):
    total = dynacheck.compile(lambda td: sum(td[k].sum() for k in td.keys()))
    total(make())
    with dynacheck.expect(recompiles=1, graphs=1):
        total(make(mask=torch.ones(4)))
        total(make(mask=torch.ones(4)))
