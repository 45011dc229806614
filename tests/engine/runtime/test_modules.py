"""What `compile` makes of modules."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import weakref

import dynacheck
import pytest
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(3, width)
        self.drop = nn.Dropout(0.5)
        self.scale = 2.0

    def forward(self, x):
        return self.drop(self.layer(x)) * self.scale

    def describe(self):
        return f"width {self.layer.out_features}"


@pytest.fixture
def net():
    return Net().eval()


def test_it_is_a_module_around_the_module(net, x):
    compiled = dynacheck.compile(net, backend="eager")
    assert isinstance(compiled, nn.Module) and not isinstance(compiled, Net)
    assert compiled._orig_mod is net
    torch.testing.assert_close(compiled(x), net(x))
    torch.testing.assert_close(compiled.forward(x), net(x))
    assert list(compiled.state_dict()) == [f"_orig_mod.{name}" for name in net.state_dict()]
    assert [n for n, _ in compiled.named_parameters()] == ["_orig_mod.layer.weight", "_orig_mod.layer.bias"]
    assert list(compiled.children()) == [net]


def test_torch_takes_it_for_its_own(net):
    import torch._dynamo.eval_frame as eval_frame

    compiled = dynacheck.compile(net, backend="eager")
    assert isinstance(compiled, eval_frame.OptimizedModule)
    assert eval_frame.innermost_fn(compiled.forward) is not None


def test_attributes_are_those_of_the_module(net):
    compiled = dynacheck.compile(net, backend="eager")
    assert compiled.scale == 2.0 and compiled.describe() == "width 4" and compiled.layer is net.layer
    compiled.scale = 3.0
    compiled.extra = nn.Linear(1, 1)
    assert net.scale == 3.0 and isinstance(net.extra, nn.Linear)
    del compiled.extra
    assert not hasattr(net, "extra")
    assert {"describe", "layer", "state_dict"} <= set(dir(compiled))
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        compiled.nothing
    with pytest.raises(TypeError):
        len(compiled)
    assert bool(compiled)


def test_containers_stay_containers():
    compiled = dynacheck.compile(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), backend="eager")
    assert len(compiled) == 2 and isinstance(compiled[1], nn.ReLU) and len(list(compiled)) == 2


def test_train_and_eval(net, backend):
    compiled = dynacheck.compile(net, backend=backend)
    assert not compiled.training
    compiled.train()
    assert net.training and net.drop.training and compiled.training
    compiled.eval()
    assert not net.training
    compiled.training = True
    assert net.training and not net.drop.training


def test_a_guard_failure_and_a_hit(net, backend, seen, x):
    compiled = dynacheck.compile(net, backend=backend)
    compiled(x)
    compiled(x)
    net.scale = 3.0
    torch.testing.assert_close(compiled(x), net(x))
    assert [c.outcome for c in seen.calls] == ["miss", "hit", "miss"]
    assert [c.function for c in seen.calls] == ["Net.forward"] * 3
    (recompile,) = seen.recompiles
    assert recompile.cause.startswith("recompile:value:self.scale@") and recompile.cause.endswith(
        ":Net.forward"
    )
    assert (recompile.changes[0].then, recompile.changes[0].now) == (2.0, 3.0)
    assert recompile.changes[0].text == "return self.drop(self.layer(x)) * self.scale"
    assert recompile.trigger.text == "torch.testing.assert_close(compiled(x), net(x))"


def test_hooks_on_the_compiled_module(net, x):
    compiled = dynacheck.compile(net, backend="eager")
    plain = net(x)
    handle = compiled.register_forward_hook(lambda module, args, out: out + 1)
    torch.testing.assert_close(compiled(x), plain + 1)
    handle.remove()
    torch.testing.assert_close(compiled(x), plain)


def test_global_hooks_run(net, x):
    seen = []
    handle = nn.modules.module.register_module_forward_pre_hook(lambda m, a: seen.append(type(m).__name__))
    try:
        dynacheck.compile(net, backend="eager")(x)
    finally:
        handle.remove()
    assert "Net" in seen and "Linear" in seen


def test_copies_and_pickles(net, x):
    compiled = dynacheck.compile(net, backend="eager", dynamic=False)
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(twin) is type(compiled) and twin._orig_mod is not net
        torch.testing.assert_close(twin(x), net(x))
        assert twin._dynacheck_compile.options == compiled._dynacheck_compile.options
        twin.scale = 5.0
        assert net.scale == 2.0
    assert copy.copy(compiled)._orig_mod is net
    buffer = io.BytesIO()
    torch.save(compiled.state_dict(), buffer)
    buffer.seek(0)
    compiled.load_state_dict(torch.load(buffer))


def test_a_compiled_module_compiled_again(net, backend, x):
    twice = dynacheck.compile(dynacheck.compile(net, backend="inspect"), backend=backend)
    assert twice._orig_mod is net
    twice(x)
    assert len(backend) == 1


def test_modules_of_torch_share_one_wrapper(backend, seen):
    for width in range(2, 5):
        layer = nn.Linear(3, width)
        torch.testing.assert_close(
            dynacheck.compile(layer, backend=backend)(torch.ones(3)), layer(torch.ones(3))
        )
    assert len(backend) == 3 and seen.counts["cache_entries"] == 3 and len(seen.recompiles) == 2


def test_lazy_modules_are_initialised_first(seen):
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LazyLinear(4)

        def forward(self, x):
            return self.layer(x)

    for model in (nn.LazyLinear(4), Lazy()):
        compiled = dynacheck.compile(model, backend="eager")
        assert compiled(torch.ones(2, 3)).shape == (2, 4)
        assert compiled(torch.ones(2, 3)).shape == (2, 4)
    assert not seen.failures


def test_a_lazy_module_is_initialised_by_its_first_call(seen):
    """As eagerly, with the same random numbers; what is compiled is the module that it has become."""

    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)
            self.rest = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())

        def forward(self, x):
            return self.rest(self.drop(self.first(x)))

    found = []
    for compile in (lambda model: model, lambda model: dynacheck.compile(model, backend="eager")):
        torch.manual_seed(0)
        model = Lazy()
        compiled = compile(model)
        found.append([compiled(torch.ones(5, 3)) for _ in range(3)])
        found.append([*model.parameters(), *model.buffers(), torch.get_rng_state()])
    for one, other in zip(found[0] + found[1], found[2] + found[3], strict=True):
        torch.testing.assert_close(one, other)
    assert len(seen.graphs) == 1 and not seen.graph_breaks


def test_bound_call_of_a_module(net, backend, x):
    compiled = dynacheck.compile(net._call_impl, backend=backend)  # what nn.Module.compile compiles
    torch.testing.assert_close(compiled(x), net(x))
    assert len(backend) == 1


def test_moving_and_casting(net):
    compiled = dynacheck.compile(net, backend="eager")
    assert compiled.double() is compiled
    assert compiled(torch.ones(3, dtype=torch.float64)).dtype is torch.float64
    compiled.zero_grad()
    compiled.requires_grad_(False)
    assert not net.layer.weight.requires_grad


def test_models_that_a_backend_closes_over_are_collected(net):
    def make():
        model = Net()

        def backend(gm, example_inputs):
            return lambda *args: (model, gm(*args))[1]

        compiled = dynacheck.compile(model, backend=backend)
        compiled(torch.ones(3))
        model.compiled = [compiled]
        return weakref.ref(model)

    gone = [make() for _ in range(5)]
    gc.collect()
    assert [ref() for ref in gone] == [None] * 5
    assert dynacheck.cache_entries(Net) == ()
    assert sys.getrefcount(Net.forward.__code__) < 100
