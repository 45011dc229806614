"""Example values of a graph: asked for at any time, they decide nothing that the translation left open."""

import dynacheck
import pytest
import torch

pytestmark = pytest.mark.usefixtures("engine")


def keeping(graphs, look):
    def backend(gm, example_inputs):
        graphs.append(gm)
        if look:
            [node.meta.get("example_value") for node in gm.graph.nodes]
        return gm.forward

    return backend


def padded(x):
    return torch.nn.functional.pad(x, (0, x.shape[0]))


@pytest.mark.parametrize("look", [False, True])
def test_looking_at_examples_specialises_nothing(look):
    graphs = []
    compiled = dynacheck.compile(padded, backend=keeping(graphs, look))
    x = torch.ones(5, 2)
    dynacheck.mark_dynamic(x, 1)
    for columns in (2, 3, 7):
        x = torch.ones(5, columns)
        dynacheck.mark_dynamic(x, 1)
        assert compiled(x).shape == (5, columns + 5)
    assert len(graphs) == 1
    size = graphs[0].graph.find_nodes(op="placeholder")[-1].meta["example_value"].shape[1]
    assert isinstance(size, torch.SymInt) and size.node.expr.is_Symbol


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_kept_graph_is_printed_after_the_compile(dynamic):
    graphs = []
    compiled = dynacheck.compile(lambda x, p: x * p + 1, backend=keeping(graphs, False), dynamic=dynamic)
    compiled(torch.ones(3, 4), torch.nn.Parameter(torch.ones(4)))
    assert "placeholder" in str(graphs[0].graph)
    x, p = [node.meta["example_value"] for node in graphs[0].graph.find_nodes(op="placeholder")][-2:]
    assert p.shape == (4,) and p.requires_grad and x.dim() == 2


def test_a_stride_that_became_a_number_is_no_input():
    graphs = []

    def flat(x, flag):
        return x.reshape(-1, 1) + (1 if flag else 2)

    compiled = dynacheck.compile(flat, backend=keeping(graphs, False))
    compiled(torch.ones(2, 5), True)
    compiled(torch.ones(5, 2).t(), True)
    compiled(torch.ones(2, 5), False)
    kinds = [[node.type for node in gm.graph.find_nodes(op="placeholder")] for gm in graphs]
    assert kinds == [[torch.Tensor], [torch.SymInt, torch.Tensor], [torch.Tensor]]
