"""What users say about functions, here and through torch."""

from __future__ import annotations

import gc
import math
import operator

import pytest
import torch
from dynacheck import marks


def test_rules_are_kept_by_identity_and_die_with_the_function():
    def make():
        def f(x):
            return x

        assert marks.rule_of(f) is None
        assert marks.allow_in_graph(f) is f
        assert marks.rule_of(f).kind == marks.ALLOW
        return id(f)

    key = make()
    gc.collect()
    assert key not in marks._rules._rows


def test_all_kinds():
    def f(x):
        return x

    assert marks.disallow_in_graph([f]) == [f] and marks.rule_of(f).kind == marks.DISALLOW
    traced = marks.nonstrict_trace(f)
    assert traced is not f and traced(3) == 3 and marks.rule_of(traced).kind == marks.NONSTRICT

    def g(x):
        return x

    assert marks.assume_constant_result(g) is g and marks.rule_of(g).kind == marks.CONSTANT

    def h(x):
        return x

    assert marks.forbid_in_graph(h) is h and marks.rule_of(h).kind == marks.FORBID
    with pytest.raises(TypeError, match="allow_in_graph takes a callable"):
        marks.allow_in_graph(3)


def test_substitutes():
    @marks.substitute_in_graph(
        math.dist
    )  # one that no other test calls: replacements are for the whole process
    def dist(p, q, /):
        return sum((a - b) ** 2 for a, b in zip(p, q)) ** 0.5

    assert dist([0, 0], [3, 4]) == 5
    assert marks.rule_of(math.dist).replacement.__name__ == "dist"
    with pytest.raises(ValueError, match="has a replacement already"):
        marks.substitute_in_graph(math.dist)(dist)
    with pytest.raises(TypeError, match="signatures differ"):
        marks.substitute_in_graph(operator.truth)(lambda a, b: a)
    with pytest.raises(TypeError, match="takes a function"):
        marks.substitute_in_graph(3)
    with pytest.raises(TypeError, match="must be a Python function"):
        marks.substitute_in_graph(operator.add)(len)


def test_what_torch_was_told():
    import torch._dynamo

    def f(x):
        return x

    torch._dynamo.allow_in_graph(f)
    assert marks.rule_of(f).kind == marks.ALLOW

    @torch._dynamo.nonstrict_trace
    def g(x):
        return x

    assert marks.rule_of(g).kind == marks.NONSTRICT
    assert marks.rule_of(torch.compiler.assume_constant_result(lambda: 3)).kind == marks.CONSTANT
    assert marks.rule_of(torch.relu) is None


def test_marks_on_tensors_are_torchs():
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    marks.mark_dynamic(x, [0, 1], min=2, max=9)
    marks.mark_unbacked(y, 1, min=3)
    marks.mark_static(y, 0)
    assert x._dynamo_dynamic_indices == {0, 1} and y._dynamo_static_indices == {0}
    assert {(r.dim, r.min, r.max) for r in x._dynamo_dynamic_range} == {(0, 2, 9), (1, 2, 9)}
    assert y._dynamo_unbacked_indices == {1} and y._dynamo_unbacked_bounds == {1: (3, None)}
    torch.compile(lambda x: x * 2, backend="eager")(x)  # torch's own compiler reads them


def test_static_module_classes():
    class Net(torch.nn.Module):
        pass

    assert marks.mark_static(Net) is Net and Net._dynamo_marked_static
