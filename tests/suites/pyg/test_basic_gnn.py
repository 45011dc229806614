"""`explain(model)(x, edge_index).graph_break_count == 0`, which says nothing of later graphs; and what does."""

import pytest
import torch
from conv import GNN, GateConv, MeanConv

GRAPHS = ((10, 20), (11, 24), (7, 9), (30, 64))


def graph(nodes, edges):
    return torch.randn(nodes, 6), torch.randint(0, nodes, (2, edges))


@pytest.fixture(params=[MeanConv, GateConv], ids=lambda conv: conv.__name__)
def model(request):
    return GNN(request.param)


def test_explain(model, dynacheck):
    out = torch._dynamo.explain(model)(*graph(10, 20))
    assert out.graph_break_count == 0 and out.graph_count == 1


@pytest.mark.max_graph_breaks(0)
def test_no_graph_break(model):
    x, edge_index = graph(10, 20)
    torch.testing.assert_close(torch.compile(model)(x, edge_index), model(x, edge_index))


@pytest.mark.dynacheck(graphs=1, max_recompiles=0, max_graph_breaks=0)
def test_compile_dynamic(model):
    model = torch.compile(model, dynamic=True)
    for nodes, edges in GRAPHS:
        model(*graph(nodes, edges))


@pytest.mark.dynacheck(max_recompiles=0, max_graph_breaks=0, allow={"recompile:size:*": 1})
def test_sizes_become_symbols(model):
    model = torch.compile(model)
    for nodes, edges in GRAPHS:
        model(*graph(nodes, edges))
