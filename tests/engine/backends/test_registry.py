"""Names of backends, and what is handed to them."""

from __future__ import annotations

import re
import subprocess
import sys

import dynacheck
import pytest
import torch
from dynacheck.backends import local, registry


def test_names():
    names = dynacheck.list_backends(None)
    assert {"eager", "inspect", "check", "aot_eager", "inductor"} <= set(names)
    assert names == sorted(names)
    assert set(names) == {*torch._dynamo.list_backends(None), "eager", "inspect", "check"}


def test_those_for_debugging_are_left_out_as_torch_does():
    assert set(dynacheck.list_backends()) == {*torch.compiler.list_backends(), "eager", "inspect", "check"}


def test_torchs_names_are_loaded_late():
    code = (
        "import sys, torch, dynacheck\n"
        "f = dynacheck.compile(lambda x: x, backend='eager')\n"
        "print('torch._dynamo' in sys.modules, 'torch._inductor' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("name", "hint"), [("aot_egaer", "did you mean 'aot_eager'"), ("nothing at all like it", "there are ")]
)
def test_unknown_names(name, hint):
    import torch._dynamo.exc as theirs

    with pytest.raises(dynacheck.InvalidBackend, match=hint) as caught:
        dynacheck.compile(lambda x: x, backend=name)
    assert isinstance(caught.value, theirs.InvalidBackend)


def test_registering(monkeypatch):
    monkeypatch.setattr(registry, "registry", registry.Registry())
    seen = []

    @dynacheck.register_backend
    def mine(gm, example_inputs, **keywords):
        seen.append((type(gm).__name__, [type(i).__name__ for i in example_inputs], keywords))
        return gm.forward

    dynacheck.register_backend(mine, name="other")
    assert {"mine", "other"} <= set(dynacheck.list_backends())
    compiled = dynacheck.compile(lambda x: x + 1, backend="mine", options={"fast": True})
    compiled(torch.ones(2))
    assert seen == [("GraphModule", ["Tensor"], {"options": {"fast": True}})] or seen[0][2] == {
        "options": {"fast": True}
    }
    with pytest.raises(ValueError, match="there is a backend 'mine' already"):
        dynacheck.register_backend(lambda gm, _: gm, name="mine")
    with pytest.raises(ValueError, match="there is a backend 'eager' already"):
        dynacheck.register_backend(mine, name="eager")
    with pytest.raises(TypeError, match="must be callable"):
        dynacheck.register_backend(3, name="three")


def test_entry_points(monkeypatch):
    class Point:
        name = "pointed"

        def load(self):
            return lambda gm, example_inputs: gm.forward

    monkeypatch.setattr(registry, "registry", registry.Registry())
    monkeypatch.setattr(registry.importlib.metadata, "entry_points", lambda group: [Point()])
    assert "pointed" in dynacheck.list_backends()
    assert dynacheck.compile(lambda x: x + 1, backend="pointed")(torch.ones(1)).item() == 2


def test_inspect_prints(capsys):
    dynacheck.compile(lambda x: x.relu() + 1, backend="inspect")(torch.ones(2, 3))
    (seen,) = local.inspect.captured
    assert seen.inputs == [(2, 3)] and ("relu", 1) in seen.ops and seen.nodes == 4
    dynacheck.reset()
    assert local.inspect.captured == []
    out = capsys.readouterr().out
    assert "inputs: (2, 3)" in out and "'relu': 1" in out and "def forward" in out


def test_a_callable_is_called_once_for_each_kept_graph():
    calls = []

    def backend(gm, example_inputs):
        calls.append(gm)
        return gm.forward

    def f(x):
        x = x + 1
        print(end="")
        return x * 2

    compiled = dynacheck.compile(f, backend=backend)
    for size in (2, 2, 3, 4):
        compiled(torch.ones(size))
    assert len(calls) == 4


def test_what_a_callable_is_given():
    given = {}

    def backend(gm, example_inputs):
        from torch._guards import TracingContext

        context = TracingContext.get()
        given["inputs"] = [type(i).__name__ for i in example_inputs]
        given["names"] = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        given["fake"] = context.fake_mode
        given["values"] = [n.meta["example_value"] for n in gm.graph.nodes if n.op == "placeholder"]
        given["meta"] = sorted(gm.meta)
        return gm.forward

    net = torch.nn.Linear(3, 2)
    compiled = dynacheck.compile(lambda x: net(x) * x.shape[0], backend=backend)
    compiled(torch.ones(4, 3))
    assert sorted(given["inputs"]) == ["Parameter", "Parameter", "Tensor"]
    compiled(torch.ones(5, 3))
    assert given["inputs"].index("SymInt") < given["inputs"].index("Tensor")
    assert given["fake"] is not None and given["fake"].shape_env is not None
    assert all(v.fake_mode is given["fake"] for v in given["values"] if type(v).__name__ == "FakeTensor")
    assert {"backend_id", "dynamo_compile_id", "dynamo_flat_name_to_original_fqn"} <= set(given["meta"])


class Held(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))
        self.kept = torch.ones(3)

    def forward(self, x, y):
        rows = y.ndim
        x.add_(rows)
        z = self.layer(x) + self.shift + self.kept + y
        return z, z.view(-1), x[0], self.shift


def named(source):
    return source.name() if callable(source.name) else source.name


def test_what_a_backend_is_told_is_what_torch_tells():
    """Inputs and nodes by name, their metadata, and which inputs stay where they are in memory."""
    torch.manual_seed(0)
    model, told = Held(), []

    def backend(gm, example_inputs):
        nodes = list(gm.graph.nodes)
        inputs = {
            node.target: (type(given), node.meta["tensor_dict"], named(node._dynamo_source))
            for node, given in zip(nodes, example_inputs)
        }
        calls = [
            (n.op, getattr(n.target, "__name__", n.target), bool(n.meta.get("stack_trace"))) for n in nodes
        ]
        keys = {key for node in nodes for key in node.meta} - {"grapharg", "creation_timestamp"}
        told.append((inputs, sorted(calls[: len(inputs)]), calls[len(inputs) : -1], keys, sorted(gm.meta)))
        return gm.forward

    y = torch.ones(3)
    torch._dynamo.mark_static_address(y)
    for compiler in (torch.compile, dynacheck.compile):
        compiler(model, backend=backend)(torch.ones(2, 3), y)
    torch._dynamo.reset()
    theirs, ours = told
    assert ours == theirs
    assert list(ours[0]) == list(theirs[0])
    assert sum(bool(known) for _, known, _ in ours[0].values()) == 5


class Unread(torch.nn.Module):
    """Looks at parameters and arguments in another order than it uses them in."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, xs, n, scale):
        if scale is None or self.second.weight.shape[0] > 7 or xs["b"].shape[0] == n:
            return xs["a"]
        return self.first(xs["a"]).sum() * n + self.second(xs["b"]) * scale, xs["c"]


def test_inputs_are_in_the_order_in_which_the_frame_looks_at_them():
    torch.manual_seed(0)
    model, told = Unread(), []

    def backend(gm, example_inputs):
        inputs = [n.target for n in gm.graph.nodes if n.op == "placeholder"]
        names = [re.sub(r"^s\d+$", "a size", name) for name in inputs]
        told.append([*zip(names, map(type, example_inputs), strict=True)])
        return gm.forward

    for compiler in (torch.compile, dynacheck.compile):
        compiled = compiler(model, backend=backend)
        for n in (2, 4, 5):
            compiled(
                {"c": torch.ones(n, 1), "a": torch.ones(n, 3), "b": torch.ones(n + 1, 3)}, n + 7, 0.5 * n
            )
    torch._dynamo.reset()
    half = len(told) // 2
    assert told[half:] == told[:half] and half == 2
    assert ("a size", torch.SymInt) in told[-1]


def test_a_backend_that_reads_nothing_pays_for_nothing(monkeypatch):
    from dynacheck.graph.examples import ExampleValues

    def forbidden(*args):
        raise AssertionError("example values were made")

    monkeypatch.setattr(ExampleValues, "inputs", forbidden)
    monkeypatch.setattr(ExampleValues, "_run", forbidden)
    dynacheck.compile(lambda x: x + 1, backend=lambda gm, _: gm.forward)(torch.ones(2))
