"""Symbols, the guards they leave, and torch's own guard text as the second opinion."""

from __future__ import annotations

import operator
import random

import pytest
import torch
from dynacheck.graph.facts import TensorRef, facts_of
from dynacheck.graph.oracle import DataDependent
from dynacheck.graph.recorder import GraphRecorder
from dynacheck.graph.symbolic import AUTO, BASE, DUCK, STATIC, Dim, Layout, SymbolicEnv
from dynacheck.guards.shapes import SizeExpression
from dynacheck.sources import FrameView, Root, UserLine

LINE = UserLine("model.py", 7, "forward", "if x.shape[0] > 6:")


def frame(*args):
    def f(a, b, c): ...

    root = Root(FrameView(f, args))
    return [root.local(name, i) for i, name in zip(range(len(args)), "abc")]


def layout(node, tensor, sizes):
    """A tensor of these sizes, over a base of the like."""
    strides = [STATIC] * tensor.ndim
    base = tensor._base if tensor._is_view() else None
    kind = STATIC if all(size == STATIC for size in sizes) else AUTO
    return Layout(
        node, sizes, strides, {}, None if base is None else layout(node.child(BASE), base, [kind] * base.ndim)
    )


class Attempt:
    """Inputs with symbols, and the operators a test runs on them."""

    def __init__(self, oracle, policies, *args) -> None:
        self.oracle = oracle
        self.env = SymbolicEnv()
        self.nodes = frame(*args)
        self.refs = []
        for node, arg, policy in zip(self.nodes, args, policies):
            if isinstance(arg, torch.Tensor):
                sizes = [policy] * arg.ndim if isinstance(policy, Dim) else policy
                self.refs.append(self.env.tensor_symbols(layout(node, arg, sizes), facts_of(arg)))
            else:
                what = "float" if isinstance(arg, float) else "int"
                self.refs.append(self.env.symbol(node, what, 0, arg, policy))

    def call(self, target, *args, **kwargs):
        op = "call_method" if isinstance(target, str) else "call_function"
        return self.oracle.call(op, target, args, kwargs, self.env)

    def size(self, ref, dim):
        return ref.facts.shape[dim]

    def guards(self):
        self.env.freeze()
        return self.env.guard_expressions()

    def texts(self):
        return sorted(g.text for g in self.guards())

    def verdict(self, *args) -> bool:
        given = dict(zip(self.nodes, args))

        def value(node):
            return given[node] if node in given else value(node.parent)._base

        return all(
            SizeExpression(g.program).check([value(n) for n in g.nodes]) for g in self.env.guard_expressions()
        )

    def torch_verdict(self, *args) -> bool:
        """What torch's own guard text says."""
        env = self.env
        fakes = [env.input_fake(n) if isinstance(r, TensorRef) else r for n, r in zip(self.nodes, self.refs)]
        sources = [env.source(n) for n in self.nodes]
        contexts = [env.tensor_contexts.get(n) for n in self.nodes]
        texts = env.shape_env.produce_guards(fakes, sources, input_contexts=contexts, ignore_static=False)
        scope = {
            "L": dict(zip("abc", args)),
            "Mod": operator.mod,
            "FloorDiv": operator.floordiv,
            "PythonMod": operator.mod,
        }
        return all(eval(t, scope) for t in texts)


def test_automatic_dynamic_sizes_do_not_duck_shape(oracle):
    a = Attempt(oracle, [AUTO, AUTO], torch.ones(5, 5), torch.ones(5, 6))
    assert len({str(s) for r in a.refs for s in r.facts.shape}) == 4
    assert a.texts()[:4] == [f"2 <= L['{n}'].size()[{i}]" for n in "ab" for i in range(2)]
    assert not [t for t in a.texts()[4:] if "stride" not in t]
    assert a.env.dynamic_dims(a.nodes[0]) == ({0, 1}, {0})


def test_dynamic_true_duck_shapes(oracle):
    a = Attempt(oracle, [DUCK, DUCK], torch.ones(5, 5), torch.ones(5, 6))
    assert len({str(s) for r in a.refs for s in r.facts.shape}) == 2
    assert "L['b'].size()[0] == L['a'].size()[0]" in a.texts()
    assert a.verdict(torch.ones(7, 7), torch.ones(7, 3))
    assert not a.verdict(torch.ones(7, 7), torch.ones(6, 3))


@pytest.mark.parametrize("size", [0, 1])
def test_zero_and_one_are_specialised(oracle, size):
    a = Attempt(oracle, [AUTO], torch.ones(size, 4))
    assert a.refs[0].facts.shape[0] == size and type(a.refs[0].facts.shape[0]) is int
    assert a.env.dynamic_dims(a.nodes[0])[0] == {1}


def test_strides_follow_sizes(oracle):
    a = Attempt(oracle, [AUTO], torch.ones(5, 6, 7))
    sizes, strides = a.refs[0].facts.shape, a.refs[0].facts.stride
    assert strides[0].node.expr == (sizes[1] * sizes[2]).node.expr
    assert [str(s) for s in strides[1:]] == [str(sizes[2]), "1"]
    assert a.verdict(torch.ones(2, 3, 4))
    assert not a.verdict(torch.ones(2, 4, 3).transpose(1, 2))


def test_branches_become_bounds_with_their_line(oracle):
    a = Attempt(oracle, [[AUTO, STATIC]], torch.ones(3, 4))
    assert a.env.evaluate(a.size(a.refs[0], 0) > 6, LINE) is False
    guards = {g.text: g.line for g in a.guards()}
    assert guards == {"2 <= L['a'].size()[0]": None, "L['a'].size()[0] <= 6": LINE}


def test_broadcasting_makes_an_equality_with_its_line(oracle):
    a = Attempt(oracle, [[AUTO, STATIC], [AUTO, STATIC]], torch.ones(3, 4), torch.ones(3, 4))
    a.env.locate(lambda: LINE)
    a.call(operator.add, *a.refs)
    [equality] = [g for g in a.guards() if "==" in g.text]
    assert {n.path for n in equality.nodes} == {"L['a']", "L['b']"} and equality.line == LINE


def test_a_view_of_half_leaves_divisibility(oracle):
    a = Attempt(oracle, [[AUTO, STATIC]], torch.ones(6, 4))
    a.call("view", a.refs[0], a.size(a.refs[0], 0) // 2, 8)
    assert a.verdict(torch.ones(8, 4)) and not a.verdict(torch.ones(7, 4))


def test_an_int_serves_zero_and_one(oracle):
    a = Attempt(oracle, [AUTO], 7)
    a.call(torch.add, TensorRef(facts_of(torch.ones(3))), a.refs[0])
    assert a.texts() == []


def test_a_float_is_a_scalar_tensor_of_the_graph(oracle):
    a = Attempt(oracle, [[AUTO], AUTO], torch.ones(3), 2.5)
    recorder = GraphRecorder(a.env)
    x = recorder.add_input(a.nodes[0], a.refs[0])
    out = a.call(operator.mul, *a.refs)
    node = recorder.call("call_function", operator.mul, (x, a.refs[1]))
    graph = recorder.finish([node])
    assert out.facts.dtype is torch.float32
    assert [i.what for i in graph.inputs] == ["size", "tensor", "float"]
    values = [i.value(n) for i, n in zip(graph.inputs, (torch.ones(4), torch.ones(4), 3.5))]
    assert graph.gm(*values)[0].tolist() == [3.5] * 4
    assert a.env.hint(a.refs[1]) == 2.5


def test_static_results_go_back_to_the_memo(oracle):
    a = Attempt(oracle, [[AUTO, STATIC]], torch.ones(3, 4))
    mask = a.call(torch.ones, 4, 4)
    assert mask.fake is None and not mask.facts.has_symbols
    row = a.call(torch.sum, a.call(operator.mul, a.refs[0], 2), 0)
    assert row.fake is None and row.facts.shape == (4,)


def test_in_place_on_a_view_reaches_its_base(oracle):
    a = Attempt(oracle, [[AUTO, STATIC]], torch.ones(3, 4))
    weight = TensorRef(facts_of(torch.nn.Parameter(torch.ones(4))))
    view = a.call("view", a.refs[0], -1, 2, 2)
    assert view.base is a.refs[0] and view.storage is a.refs[0].storage
    row = a.call(operator.getitem, view, 0)
    a.call("mul_", row, a.call("view", weight, 2, 2))
    assert a.refs[0].facts.requires_grad and not a.refs[0].facts.is_leaf


def test_metadata_mutation(oracle):
    a = Attempt(oracle, [[AUTO, STATIC]], torch.ones(3, 4))
    size = a.size(a.refs[0], 0)
    assert a.call("t_", a.refs[0]) is a.refs[0]
    assert a.refs[0].facts.shape[0] == 4 and str(a.refs[0].facts.shape[1]) == str(size)


def test_data_dependence(oracle):
    a = Attempt(oracle, [[AUTO]], torch.ones(3))
    for target in ("item", "nonzero", "tolist"):
        with pytest.raises(DataDependent):
            a.call(target, a.call("sum", a.refs[0]) if target == "item" else a.refs[0])


def test_a_decision_on_an_unbacked_size_is_data_dependent(oracle):
    a = Attempt(oracle, [[Dim("unbacked"), STATIC]], torch.ones(3, 4))
    assert a.env.hint(a.size(a.refs[0], 0)) is None
    with pytest.raises(DataDependent):
        a.env.evaluate(a.size(a.refs[0], 0) > 3, LINE)


def test_unbacked_bounds_become_guards(oracle):
    a = Attempt(oracle, [[Dim("unbacked", 1, 8), STATIC]], torch.ones(3, 4))
    a.call(operator.mul, a.refs[0], 2)
    assert a.verdict(torch.ones(1, 4)) and a.verdict(torch.ones(8, 4)) and not a.verdict(torch.ones(9, 4))


def test_a_marked_dimension_that_is_pinned_names_mark_and_line(oracle):
    a = Attempt(oracle, [[Dim("marked", mark="mark_dynamic(a, 0)"), STATIC]], torch.ones(5, 4))
    assert a.env.specialize(a.size(a.refs[0], 0), LINE) == 5
    [violation] = a.env.violations()
    assert violation.value == 5 and violation.line == LINE
    assert "mark_dynamic(a, 0)" in str(violation) and "model.py:7" in str(violation)
    assert "L['a'].size()[0] == 5" in a.texts()


@pytest.mark.parametrize(
    ("low", "high", "broken"), [(2, 64, True), (6, 64, True), (8, 64, False), (None, None, False)]
)
def test_a_marked_range_may_not_be_narrowed(oracle, low, high, broken):
    a = Attempt(oracle, [[Dim("marked", low, high), STATIC]], torch.ones(9, 4))
    a.env.evaluate(a.size(a.refs[0], 0) > 6, LINE)
    assert bool(a.env.violations()) is broken


def test_marked_dimensions_have_their_own_symbols(oracle):
    mark = Dim("marked")
    a = Attempt(oracle, [[mark, mark], [mark, mark]], torch.ones(5, 5), torch.ones(5, 6))
    assert len({str(s) for r in a.refs for s in r.facts.shape}) == 4
    assert not a.env.violations()


def test_views_of_bases_as_inputs(oracle):
    base = torch.ones(9, 8)
    a = Attempt(oracle, [[AUTO, STATIC]], base[2:7])
    out = a.call("sum", a.call(operator.add, a.refs[0], 1), 1)
    assert str(out.facts.shape[0]) == str(a.size(a.refs[0], 0))
    for again in (base[1:5], base[3:7], torch.ones(3, 8)):
        assert a.verdict(again) == a.torch_verdict(again)
    assert a.verdict(base[1:5])


def _programs():
    """Programs over two tensors and an int: name, policies, body."""

    def cat(a, x, y, n):
        z = a.call(torch.cat, [x, y], 0)
        a.call("view", z, -1)

    def split(a, x, y, n):
        a.call("chunk", x, 2)
        a.env.evaluate(a.size(x, 0) % 2 == 0, LINE)

    def branches(a, x, y, n):
        a.env.evaluate(a.size(x, 0) + 2 * a.size(y, 0) > 9, LINE)
        a.env.evaluate(n * n < 50, LINE)
        a.env.evaluate(torch.sym_max(a.size(x, 0), n) == a.size(x, 0), LINE)

    def matmul(a, x, y, n):
        a.call(torch.matmul, x, a.call("t", y))
        a.call(operator.getitem, x, (slice(None, n),))

    def broadcast(a, x, y, n):
        a.call(operator.add, x, y)
        a.call("reshape", x, 2, -1)

    def arange(a, x, y, n):
        a.call(operator.mul, a.call(torch.arange, a.size(x, 0)), 2)
        a.env.evaluate(a.size(x, 0) // 3 >= 1, LINE)
        a.env.evaluate(-n < 0, LINE)

    def pinned(a, x, y, n):
        a.env.specialize(a.size(y, 0), LINE)
        a.env.specialize(n, LINE)

    return [cat, split, branches, matmul, broadcast, arange, pinned]


@pytest.mark.parametrize("policy", [AUTO, DUCK], ids=["auto", "duck"])
@pytest.mark.parametrize("program", _programs(), ids=lambda p: p.__name__)
def test_guards_agree_with_torch_on_many_values(oracle, program, policy):
    a = Attempt(oracle, [[policy, STATIC], [policy, STATIC], AUTO], torch.ones(6, 4), torch.ones(6, 4), 5)
    program(a, *a.refs)
    a.env.freeze()
    assert a.verdict(torch.ones(6, 4), torch.ones(6, 4), 5)
    rng = random.Random(0)
    verdicts = set()
    for _ in range(150):
        x = rng.choice([2, 3, 4, 5, 6, 7, 8, 12, 40])
        y = rng.choice([x, x, rng.randrange(2, 12)])
        args = (torch.empty(x, 4), torch.empty(y, 4), rng.choice([-3, 0, 1, 2, 5, 7, 9]))
        ours, theirs = a.verdict(*args), a.torch_verdict(*args)
        assert ours == theirs, (x, y, args[2], a.texts())
        verdicts.add(ours)
    assert verdicts == {True, False} or program.__name__ == "cat" or policy is AUTO


def test_a_recorded_expression_is_arithmetic_of_the_graph(oracle):
    a = Attempt(oracle, [[AUTO, STATIC]], torch.ones(6, 4))
    recorder = GraphRecorder(a.env)
    x = recorder.add_input(a.nodes[0], a.refs[0])
    size = a.size(a.refs[0], 0)
    node = recorder.call("call_method", "reshape", (x, size // 2 + size % 2, torch.sym_max(2, 2), -1))
    recorder.symbolic(size * 77)
    graph = recorder.finish([node])
    assert [n.name for n in graph.placeholders] == [str(size), "l_a_"]
    assert "77" not in str(graph.graph)
    assert graph.gm(8, torch.ones(8, 4))[0].shape == (4, 2, 4)
    assert str(node.meta["example_value"].shape[0]) == str(size // 2 + size % 2)
