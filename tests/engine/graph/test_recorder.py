"""Graphs as torch's backends see them."""

from __future__ import annotations

import copy
import operator

import pytest
import torch
import torch.fx
from dynacheck.graph.facts import TensorRef, facts_of
from dynacheck.graph.recorder import GraphRecorder, placeholder_name
from dynacheck.graph.symbolic import AUTO, STATIC, Layout, SymbolicEnv
from dynacheck.sources import FrameView, Root, UserLine
from torch import nn

LINE = UserLine("model.py", 3, "forward", "    y = self.fc(x)")
CALLER = UserLine("train.py", 9, "step", "model(x)")


class Traced:
    """A recorder over the frame of `forward(self, x)`."""

    def __init__(self, module: nn.Module, x: torch.Tensor, env: SymbolicEnv | None = None, dims=None) -> None:
        def forward(self, x): ...

        self.root = Root(FrameView(forward, (module, x)))
        self.module, self.x = self.root.local("self", 0), self.root.local("x", 1)
        self.recorder = GraphRecorder(env)
        self.ref = (
            env.tensor_symbols(Layout(self.x, dims, [STATIC] * x.ndim), facts_of(x))
            if env
            else TensorRef(facts_of(x))
        )

    def input(self) -> torch.fx.Node:
        return self.recorder.add_input(self.x, self.ref, LINE)

    def parameter(self, name: str) -> torch.fx.Node:
        node = self.module.attr("_parameters").key(name)
        return self.recorder.add_input(node, TensorRef(facts_of(node.peek())), LINE)

    def linear(self) -> torch.fx.Node:
        args = (self.input(), self.parameter("weight"), self.parameter("bias"))
        return self.recorder.call(
            "call_function", torch._C._nn.linear, args, None, (CALLER, LINE), function=nn.Linear
        )


@pytest.fixture
def traced():
    return Traced(nn.Linear(3, 4), torch.ones(2, 3))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("L['x']", "L_x_"),
        ("L['self']._modules['fc']._parameters['weight']", "L_self_modules_fc_parameters_weight_"),
        ("L['args'][0]", "L_args_0_"),
        ("G['scale']", "G_scale_"),
    ],
)
def test_placeholders_are_named_as_torch_names_them(path, name):
    assert placeholder_name(path) == name


def test_inputs_are_interned_and_unused_ones_dropped(traced):
    assert traced.input() is traced.input()
    traced.parameter("bias")
    out = traced.recorder.call("call_function", operator.mul, (traced.input(), 2))
    captured = traced.recorder.finish([out])
    assert [i.placeholder for i in captured.inputs] == ["l_x_"]
    assert captured.example_inputs()[0] is traced.x.peek()
    assert captured.op_count == 1 and not captured.is_empty


def test_a_graph_returns_a_tuple_and_runs(traced):
    y = traced.linear()
    traced.recorder.rename(y, "y")
    captured = traced.recorder.finish([y])
    module = traced.module.peek()
    [out] = captured.gm(*captured.example_inputs())
    assert torch.equal(out, module(traced.x.peek()))
    assert "y = torch._C._nn.linear(l_x_" in captured.code()
    assert [n.type for n in captured.placeholders] == [torch.Tensor, nn.Parameter, nn.Parameter]


def test_placeholders_come_first_whenever_they_are_added(traced):
    y = traced.recorder.call("call_function", operator.mul, (traced.input(), 2))
    z = traced.recorder.call("call_function", operator.mul, (y, traced.parameter("weight")))
    ops = [n.op for n in traced.recorder.finish([z]).graph.nodes]
    assert ops == ["placeholder", "placeholder", "call_function", "call_function", "output"]


def test_dead_operations_stay_as_in_torch(traced):
    traced.recorder.call("call_method", "sin_", (traced.input(),))
    dead = traced.recorder.call("call_function", operator.add, (traced.input(), 1))
    assert dead in traced.recorder.finish([]).graph.nodes


def test_an_empty_graph(traced):
    traced.input()
    assert traced.recorder.calls == 0
    captured = traced.recorder.finish([])
    assert captured.is_empty and captured.inputs == []


def test_metadata_is_what_torch_records_and_made_late(traced):
    node = traced.linear()
    captured = traced.recorder.finish([node])
    assert not dict.__len__(node.meta)
    assert node.meta["stack_trace"] == (
        '  File "train.py", line 9, in step\n    model(x)\n'
        '  File "model.py", line 3, in forward\n    y = self.fc(x)\n'
    )
    assert node.meta["source_fn_stack"] == [("linear", nn.Linear)]
    assert "example_value" in node.meta and not dict.__contains__(node.meta, "example_value")
    value = node.meta["example_value"]
    assert value.shape == (2, 4) and value.requires_grad and value.fake_mode is captured.fake_mode
    assert captured.placeholders[1].meta["example_value"].is_leaf
    assert set(captured.placeholders[0].meta) == {"stack_trace", "tensor_dict", "example_value"}


def test_metadata_behaves_as_a_dict(traced):
    node = traced.linear()
    traced.recorder.finish([node])
    meta = node.meta
    copied = copy.copy(meta)
    meta["val"] = 1
    assert "val" not in copied and meta.get("val") == 1 and meta.get("none", 3) == 3
    assert set(dict(meta)) == {"stack_trace", "source_fn_stack", "example_value", "val"} == set({**meta})
    assert len(meta) == 4 and meta and meta.pop("val") == 1 and meta.setdefault("a", 2) == 2
    del meta["a"]
    meta.update(b=1)
    assert (
        list(meta.keys())[-1] == "b" and 1 in list(meta.values())[-1:] and ("b", 1) == list(meta.items())[-1]
    )
    assert copied["example_value"] is meta["example_value"]
    assert (
        copy.deepcopy({"m": 1}) == {"m": 1}
        and "b" in repr(meta)
        and meta != {}
        and (meta | {"c": 1})["c"] == 1
    )


def test_module_stack_entry(traced):
    stack = {"k": ("L['self'].fc", nn.Linear)}
    node = traced.recorder.call(
        "call_method", "sin", (traced.input(),), None, LINE, module_stack=lambda: stack
    )
    assert node.meta["nn_module_stack"] == stack


def test_graph_modules_copy_and_print(traced):
    captured = traced.recorder.finish([traced.linear()])
    captured.meta["backend_id"] = "x"
    again = copy.deepcopy(captured.gm)
    assert torch.equal(again(*captured.example_inputs())[0], captured(*captured.example_inputs())[0])
    assert captured.gm.meta["backend_id"] == "x" and captured.gm is captured.gm
    assert "linear" in captured.gm.print_readable(print_output=False)
    assert isinstance(torch.fx.Interpreter(captured.gm).run(*captured.example_inputs()), tuple)


def test_example_values_leave_ambient_state_alone(traced):
    off = traced.recorder.call("call_function", torch._C._set_grad_enabled, (False,))
    out = traced.recorder.call("call_function", operator.mul, (traced.parameter("weight"), 2))
    captured = traced.recorder.finish([out])
    torch.manual_seed(0)
    before = torch.get_rng_state()
    assert out.meta["example_value"].requires_grad is False
    assert torch.is_grad_enabled() and torch.equal(torch.get_rng_state(), before)
    assert off in captured.graph.nodes


def test_symbols_precede_their_first_tensor():
    env = SymbolicEnv()
    traced = Traced(nn.Linear(3, 4), torch.ones(2, 3), env, [AUTO, STATIC])
    weight = traced.parameter("weight")
    out = traced.recorder.call("call_function", torch._C._nn.linear, (traced.input(), weight))
    captured = traced.recorder.finish([out])
    symbol = str(traced.ref.facts.shape[0])
    assert [i.placeholder for i in captured.inputs] == ["l_self_parameters_weight_", symbol, "l_x_"]
    assert isinstance(captured.example_inputs()[1], torch.SymInt)
    assert [i.what for i in captured.inputs] == ["tensor", "size", "tensor"]
    assert captured.inputs[1].value(torch.ones(7, 3)) == 7
    assert [str(s) for s in out.meta["example_value"].shape] == [symbol, "4"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_aot_takes_the_graph(dynamic):
    from torch._dynamo.backends.registry import lookup_backend
    from torch._guards import TracingContext, tracing

    env = SymbolicEnv() if dynamic else None
    traced = Traced(nn.Linear(3, 4), torch.ones(2, 3), env, [AUTO, STATIC])
    captured = traced.recorder.finish([traced.linear()])
    context = TracingContext(captured.fake_mode)
    inputs = captured.example_inputs()
    if env is not None:
        for spec, value in zip(captured.inputs, inputs):
            if spec.what == "tensor" and spec.node in env.tensor_contexts:
                context.tensor_to_context[value] = env.tensor_contexts[spec.node]
    with tracing(context):
        compiled = lookup_backend("aot_eager")(captured.gm, inputs)
    for rows in (2, 5) if dynamic else (2,):
        x = torch.randn(rows, 3)
        values = [s.value(x if s.node is traced.x else s.node.peek()) for s in captured.inputs]
        module = traced.module.peek()
        [out] = compiled(*values)
        assert torch.allclose(out, module(x))
        module.zero_grad()
        out.sum().backward()
        assert module.weight.grad is not None
    if env is not None:
        env.freeze()
        assert [g.text for g in env.guard_expressions()] == ["2 <= L['x'].size()[0]"]
