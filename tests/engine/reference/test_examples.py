"""The programs of PyTorch's explanation of Dynamo: what they capture, assume, log and split."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import dynacheck
import pytest
import torch


class Block(torch.nn.Module):
    def __init__(self, n_layers=3, dim=256):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(dim, dim) for _ in range(n_layers))
        self.scale = 0.5

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        if x.shape[-1] > 128:
            x = x * self.scale
        return x


def guards_of(fn):
    """Texts of the guards of all entries, the first made first."""
    return [entry.guards for entry in entries_of(fn)]


def entries_of(fn):
    """All entries in the order they were made, those of resume functions last."""
    return sorted(dynacheck.cache_entries(fn), key=lambda entry: (entry.resume_line or 0, entry.index))


# -- Block


def test_block_is_one_graph_with_the_loop_unrolled(seen, backend):
    block = Block()
    compiled = dynacheck.compile(block, backend=backend)
    x = torch.randn(8, 256)
    torch.testing.assert_close(compiled(x), block(x))
    assert [c.outcome for c in seen.calls] == ["miss"]
    assert backend.operators() == ["linear", "relu"] * 3 + ["mul"]
    (graph,) = backend.graphs
    (multiplied,) = [n for n in graph.graph.nodes if getattr(n.target, "__name__", "") == "mul"]
    assert multiplied.args[1] == 0.5
    assert len(backend.inputs[0]) == 7  # x, three weights, three biases


def test_block_guards_the_shape_and_the_attribute(backend):
    block = Block()
    dynacheck.compile(block, backend=backend)(torch.randn(8, 256))
    (guards,) = guards_of(block)
    assert "L['self'].scale == 0.5" in guards
    wanted = "check_tensor(L['x'], torch.float32, device=None, requires_grad=False, size=[8, 256], stride=[256, 1])"
    assert wanted in guards


def test_only_the_branch_taken_is_recorded(backend):
    block = Block(dim=64)
    dynacheck.compile(block, backend=backend)(torch.randn(8, 64))
    assert backend.operators() == ["linear", "relu"] * 3
    assert not any(".scale" in guard for guard in guards_of(block)[0])


def test_a_changed_attribute_recompiles(seen, backend):
    block = Block()
    compiled = dynacheck.compile(block, backend=backend)
    x = torch.randn(8, 256)
    compiled(x)
    block.scale = 0.6
    torch.testing.assert_close(compiled(x), block(x))
    (recompile,) = seen.recompiles
    (change,) = recompile.changes
    assert (change.source, change.then, change.now) == ("self.scale", 0.5, 0.6)
    block.scale = 0.7
    torch.testing.assert_close(compiled(x), block(x))
    assert seen.counts["recompiles"] == 1  # a float that changed is an input of the graph


# -- `fn` with a string


def with_text(a, b):
    return a * len(b)


def test_a_string_is_guarded_by_value(seen, backend):
    compiled = dynacheck.compile(with_text, backend=backend)
    x = torch.arange(10)
    torch.testing.assert_close(compiled(x, "Hello"), x * 5)
    assert "L['b'] == 'Hello'" in guards_of(with_text)[0]
    torch.testing.assert_close(compiled(x, "Hi"), x * 2)
    assert [c.outcome for c in seen.calls] == ["miss", "miss"]


def test_guards_and_recompiles_are_logged(backend, logged):
    dynacheck.logs(guards=True, recompiles=True)
    compiled = dynacheck.compile(with_text, backend=backend)
    compiled(torch.arange(10), "Hello")
    compiled(torch.arange(10), "Hi")
    assert "    L['b'] == 'Hello'" in logged("guards")[0].splitlines()
    first = with_text.__code__.co_firstlineno
    (text,) = logged("recompiles")
    head, triggered, *changes = text.splitlines()
    assert head == f"Recompiling function with_text in {os.path.relpath(__file__)}:{first}"
    assert triggered == "triggered by the following guard failure(s):"
    place = f"{os.path.relpath(__file__)}:{first + 1} in with_text"
    assert changes == [f"     - L['b'] == 'Hello'  # now 'Hi'  # return a * len(b)  # {place}"]


SCRIPT = """\
import dynacheck
import torch
@dynacheck.compile(backend="eager")
def fn(a, b):
    return a * len(b)
fn(torch.arange(10), "Hello")
fn(torch.arange(10), "Hi")
"""


def test_the_environment_variable_logs_a_script(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path, env={**os.environ, "DYNACHECK_LOGS": "guards,recompiles"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = run.stderr.splitlines()
    assert "    L['b'] == 'Hello'" in lines
    at = lines.index("[dynacheck.recompiles] Recompiling function fn in script.py:3")
    assert lines[at + 1 : at + 3] == [
        "triggered by the following guard failure(s):",
        "     - L['b'] == 'Hello'  # now 'Hi'  # return a * len(b)  # script.py:5 in fn",
    ]


# -- `fn` with shapes


def with_shape(a, b):
    return a.shape[0] * a * b


def test_sizes_that_changed_are_symbols(seen, backend):
    compiled = dynacheck.compile(with_shape, backend=backend)
    static = (
        "check_tensor(L['{}'], torch.float32, device=None, requires_grad=False, size=[4, 3], stride=[3, 1])"
    )
    dynamic = static.replace("size=[4", "size=[None")
    for rows in (4, 8, 16, 9):
        a, b = torch.randn(rows, 3), torch.randn(rows, 3)
        torch.testing.assert_close(compiled(a, b), with_shape(a, b))
    assert [c.outcome for c in seen.calls] == ["miss", "miss", "hit", "hit"]
    first, second = guards_of(with_shape)
    for name in "ab":
        assert static.format(name) in first
        assert dynamic.format(name) in second
    # the broadcast needs equal sizes; which side is named first is torch's choice
    assert {"L['b'].size()[0] == L['a'].size()[0]", "L['a'].size()[0] == L['b'].size()[0]"} & set(second)
    assert {"2 <= L['a'].size()[0]", "2 <= L['b'].size()[0]"} & set(second)


def branches_on_size(a):
    return a + 1 if 2 * a.shape[0] >= 16 else a - 1


def test_a_branch_on_a_size_is_a_guard_with_its_line(seen, backend, logged):
    dynacheck.logs(recompiles=True)
    compiled = dynacheck.compile(branches_on_size, backend=backend, dynamic=True)
    for rows in (8, 9, 5):
        a = torch.randn(rows, 3)
        torch.testing.assert_close(compiled(a), branches_on_size(a))
    assert [c.outcome for c in seen.calls] == ["miss", "hit", "miss"]
    assert any("8 <= L['a'].size()[0]" in guard for guard in guards_of(branches_on_size)[0])
    (change,) = seen.recompiles[0].changes
    assert change.text == "return a + 1 if 2 * a.shape[0] >= 16 else a - 1"
    assert change.line == branches_on_size.__code__.co_firstlineno + 1
    place = f"{os.path.relpath(__file__)}:{change.line} in branches_on_size"
    assert logged("recompiles")[0].endswith(
        f"8 <= L['a'].size()[0]  # now 5 (size of dim 0)  # {change.text}  # {place}"
    )


# -- `fn` with a print


def with_print(a):
    b = a + 2
    print("Hi")
    return b + a


def test_a_print_splits_the_function_in_two(seen, backend, capsys):
    compiled = dynacheck.compile(with_print, backend=backend)
    x = torch.ones(3)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), torch.full((3,), 4.0))
    assert capsys.readouterr().out == "Hi\nHi\n"
    assert [c.outcome for c in seen.calls] == ["miss", "hit"]
    assert [backend.operators(i) for i in range(2)] == [["add"], ["add"]]
    first, second = entries_of(with_print)
    assert first.breaks and first.resume_line is None
    assert not second.breaks and second.resume_line == with_print.__code__.co_firstlineno + 2
    (broke,) = seen.graph_breaks
    assert (broke.line, broke.text) == (with_print.__code__.co_firstlineno + 2, 'print("Hi")')


def test_the_rewritten_code_calls_graph_print_and_resume_function(backend, logged):
    dynacheck.logs(bytecode=True, graph_breaks=True)
    dynacheck.compile(with_print, backend=backend)(torch.ones(3))
    first, second = (text.split("\n", 2) for text in logged("bytecode"))
    line = with_print.__code__.co_firstlineno + 2
    assert first[0] == "[0/0] MODIFIED BYTECODE with_print"
    steps = [
        "<GraphCall>", "('builtins', 'print')", "'Hi'", "<code ", "RETURN_VALUE",
    ]  # fmt: skip
    found = [step for word in first[2].split("\n") for step in steps if step in word]
    assert found[: len(steps)] == steps
    assert found[len(steps) :] == ["<GraphCall>"]  # the handler, for a graph that raises
    assert second[0] == "[1/0] MODIFIED BYTECODE with_print"
    assert second[1].endswith(f"{__file__}:{line})")
    assert "<GraphCall>" in second[2] and "print" not in second[2]
    (text,) = logged("graph_breaks")
    assert f"test_examples.py:{with_print.__code__.co_firstlineno + 2}" in text.splitlines()[0]
    assert 'print("Hi")' in text


def test_each_half_is_guarded_by_itself(seen, backend):
    """The resume function is code of its own: what only it reads recompiles it alone."""

    def fn(a, n):
        a = a + 1
        print("Hi")
        return a * n

    compiled = dynacheck.compile(fn, backend=backend)
    for text in ("x", "yy"):
        compiled(torch.ones(3), len(text) + 0.5)
    (recompile,) = seen.recompiles
    assert recompile.resume_line is not None
    assert recompile.changes[0].source == "n"


# -- the backend that looks


def test_the_inspection_backend_sees_each_graph(capsys):
    captured = []

    def inspect_backend(gm: torch.fx.GraphModule, example_inputs):
        ops = Counter(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
        captured.append(
            {
                "nodes": len(gm.graph.nodes),
                "inputs": [tuple(t.shape) if isinstance(t, torch.Tensor) else t for t in example_inputs],
                "top_ops": ops.most_common(3),
            }
        )
        print(gm.code)
        return gm.forward

    model = dynacheck.compile(Block(), backend=inspect_backend)
    model(torch.randn(8, 256))
    model(torch.randn(16, 256))
    static, dynamic = captured
    # in the order in which the frame looks at them: the first layer's parameters, then what it is given
    assert static["inputs"][:3] == [(256, 256), (256,), (8, 256)]
    (symbol,) = [value for value in dynamic["inputs"] if isinstance(value, torch.SymInt)]
    rest = [value for value in dynamic["inputs"] if value is not symbol]
    assert rest[:2] == [(256, 256), (256,)] and int(rest[2][0]) == 16
    assert len(rest) == len(static["inputs"])
    assert sorted(count for _, count in static["top_ops"]) == [1, 3, 3]
    assert static["top_ops"] == dynamic["top_ops"]
    printed = capsys.readouterr().out
    assert printed.count("def forward(self") == 2
    assert printed.count("linear(") == 6


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inspect", "check"])
def test_backends_by_name(seen, name):
    def fn(x):
        return torch.relu(x) * 2

    compiled = dynacheck.compile(fn, backend=name)
    x = torch.randn(4, requires_grad=True)
    torch.testing.assert_close(compiled(x), fn(x))
    compiled(x).sum().backward()
    torch.testing.assert_close(x.grad, (x > 0) * 2.0)
    assert [c.outcome for c in seen.calls] == ["miss", "hit"]


# -- the budget


def test_limits_and_their_alias(backend):
    config = dynacheck.config
    assert (config.get("recompile_limit"), config.get("accumulated_recompile_limit")) == (8, 256)
    with dynacheck.configured(cache_size_limit=2):
        assert config.get("recompile_limit") == 2
