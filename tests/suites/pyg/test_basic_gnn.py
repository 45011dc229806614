"""No graph break in a GNN, and graphs of any size with two entries at most."""

import pytest
import torch
from conv import GNN

GRAPHS = ((10, 20), (11, 24), (7, 9), (30, 64))


def graph(nodes, edges):
    return torch.randn(nodes, 6), torch.randint(0, nodes, (2, edges))


@pytest.mark.max_graph_breaks(0)
def test_no_graph_break():
    torch.compile(GNN())(*graph(10, 20))


@pytest.mark.dynacheck(graphs=1, max_recompiles=0, max_graph_breaks=0)
def test_compile_dynamic():
    model = torch.compile(GNN(), dynamic=True)
    for nodes, edges in GRAPHS:
        model(*graph(nodes, edges))


@pytest.mark.dynacheck(max_recompiles=0, max_graph_breaks=0, allow={"recompile:size:*": 1})
def test_sizes_become_symbols():
    model = torch.compile(GNN())
    for nodes, edges in GRAPHS:
        model(*graph(nodes, edges))
