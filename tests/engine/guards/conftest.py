"""Small frames to guard."""

import types

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import (
    Absent,
    CodeIs,
    Distinct,
    KeysAre,
    LengthIs,
    NoMarks,
    TensorMatch,
    TypeIs,
    ValueIs,
    build_program,
    install,
    mirror,
    relate,
)
from dynacheck.sources import FrameView, Root, UserLine

HERE = UserLine("model.py", 3, "forward")


def one(x):
    return x


def many(*values):
    return values


class Guarded:
    """Makes guard programs over the argument `x` of a one-argument function and compares verdicts."""

    @staticmethod
    def program(value, *guards, at=lambda node: node, capture=False):
        """The guards, on the node that `at` makes of the argument's."""
        root = Root(FrameView(one, (value,)))
        node = at(root.local("x", 0))
        for guard in guards:
            install(node, guard, HERE)
        return build_program(root, None, (node,) if capture else ())

    @staticmethod
    def frame(value):
        return FrameView(one, (value,))

    def passes(self, compiled, value):
        """The verdict, several times over: natively, in Python, walked and by the shortcut."""
        frame = self.frame(value)
        verdict = mirror(compiled, frame)
        assert [mirror(compiled, frame) for _ in range(3)] == [verdict] * 3
        return verdict

    def related(self, values, guard, ambient=None):
        """A relation over several arguments, and its frame maker."""
        code = "def f(" + ", ".join(f"v{i}" for i in range(len(values))) + "): pass"
        namespace = {}
        exec(code, namespace)
        f = namespace["f"]
        root = Root(FrameView(f, tuple(values)))
        relate(root, guard, [root.local(f"v{i}", i) for i in range(len(values))], HERE)
        compiled = build_program(root, ambient)
        return lambda *now: mirror(compiled, FrameView(f, now))


@pytest.fixture
def guarded():
    return Guarded()


@pytest.fixture(params=["native", "python"])
def tensors(request):
    """Runs the test with tensors read natively and with that forced to fail."""
    _C.force("tensors", int(request.param == "native"))
    yield request.param
    _C.force("tensors", 1)


@pytest.fixture(params=["shortcut", "walk"])
def shortcut(request):
    """Runs the test with the shortcut and with the full walk every time."""
    _C.force("shortcut", int(request.param == "shortcut"))
    yield request.param
    _C.force("shortcut", 1)


@pytest.fixture(autouse=True)
def same_global_state():
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    yield
    assert torch.is_grad_enabled() == grad and torch.get_default_dtype() == dtype


def guard_module(node, module, capture):
    """Guards on a module as translating its forward leaves them: types, what was read of it, tensors."""
    install(node, TypeIs(type(module)), HERE)
    install(node.attr("forward"), Absent(), HERE)
    install(node.attr("training"), ValueIs(module.training), HERE)
    for name in ("_forward_hooks", "_forward_pre_hooks"):
        install(node.attr(name), LengthIs(len(getattr(module, name))), HERE)
    forward = node.class_attr("forward")
    if isinstance(type(module).__dict__.get("forward"), types.FunctionType):
        install(forward, CodeIs(type(module).forward), HERE)
    for name, tensor in {**module._parameters, **module._buffers}.items():
        place = node.attr("_parameters" if name in module._parameters else "_buffers").key(name)
        if tensor is None:
            install(place, ValueIs(None), HERE)
        else:
            install(place, TensorMatch.of(tensor), HERE)
            install(place, NoMarks(), HERE)
            capture.append(place)
    for name, child in module._modules.items():
        guard_module(node.attr("_modules").key(name), child, capture)
    if module._modules:
        install(node.attr("_modules"), KeysAre(module._modules), HERE)


def module_program(module, x, ambient=None):
    """The guards of `module.forward(x)`; captures its tensors."""
    root = Root(FrameView(call, (module, x)))
    capture = []
    guard_module(root.local("self", 0), module, capture)
    install(root.local("x", 1), TensorMatch.of(x), HERE)
    install(root.local("x", 1), NoMarks(), HERE)
    if len(capture) > 1:
        relate(root, Distinct(), [*capture, root.local("x", 1)], HERE)
    return build_program(root, ambient, capture)


def call(self, x):
    return self(x)


class Module:
    """Guard programs of whole modules."""

    program = staticmethod(module_program)
    guard = staticmethod(guard_module)

    @staticmethod
    def frame(module, x):
        return FrameView(call, (module, x))


@pytest.fixture
def modules():
    return Module
