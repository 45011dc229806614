"""Asserts on torch's own counters, as many suites have them: they count this engine's graphs."""

import pytest
import torch
import torch._dynamo.testing
from kv_cache import KVCache


@pytest.mark.max_recompiles(0)
def test_kv_cache_no_recompiles():
    torch._dynamo.reset()
    cnts = torch._dynamo.testing.CompileCounter()
    cache = KVCache(1, 16, 4)

    @torch.compile(backend=cnts, fullgraph=True)
    def update(k):
        return cache.update(k).sum()

    for _ in range(4):
        update(torch.randn(1, 1, 4))
    assert cnts.frame_count == 1


def test_explain(dynacheck):
    cache = KVCache(1, 16, 4)
    out = torch._dynamo.explain(lambda k: cache.update(k) + 1)(torch.randn(1, 1, 4))
    assert out.graph_break_count == 0 and out.graph_count == 1
