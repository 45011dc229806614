"""Every allocation of building and checking a program failing in turn: MemoryError or the right verdict."""

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import AmbientState, KeysAre, PyCheck, install
from dynacheck.guards.program import build_program
from dynacheck.sources import FrameView, Root
from torch import nn

testcapi = pytest.importorskip("_testcapi")


def sweep(action, check, reset=lambda: None, most=400):
    """Runs `action` with its n-th allocation failing, for every n."""
    failed = 0
    for n in range(most):
        reset()
        testcapi.set_nomemory(n, n + 1)
        try:
            result = action()
        except MemoryError:
            failed += 1
            continue
        finally:
            testcapi.remove_mem_hooks()
        check(result)
    return failed


def right(result):
    assert result is True


def test_building(monkeypatch, modules):
    """The specification is taken from `build_program`, so that only the native side allocates."""
    seen = []
    real = _C.GuardProgram
    x, model = torch.ones(2, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    root = Root(FrameView(lambda m, x: x, (model, x)))
    modules.guard(root.local("m", 0), model, [])
    install(root.local("x", 1).attr("a"), KeysAre(["a", "b"]), None)
    with monkeypatch.context() as patch:
        patch.setattr(_C, "GuardProgram", lambda spec: (seen.append(spec), real(spec))[1])
        build_program(root, AmbientState.now())
    assert sweep(lambda: real(seen[0]), lambda p: p.alive) > 20
    assert real(seen[0]).alive


def test_checking(modules, shortcut):
    x, model = torch.ones(2, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    compiled, frame = modules.program(model, x, AmbientState.now()), modules.frame(model, x)
    program, args, func = compiled.program, frame.args, frame.func

    def reset():
        model.seen = object()
        model[0].__dict__["training"] = True

    sweep(lambda: program.check(args, func), right, reset, 60)
    sweep(lambda: program.captured(args, func) is not None, right, reset, 60)
    assert program.check(args, func)


def test_new_models(modules):
    x = torch.ones(2, 4)
    models = [nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(61)]
    program = modules.program(models[-1], x).program
    frames = iter([modules.frame(model, x) for model in models])
    now = []

    def reset():
        now[:] = [next(frames)]

    sweep(lambda: program.check(now[0].args, now[0].func), right, reset, 60)


def test_python_checks(guarded):
    compiled = guarded.program([1], PyCheck(lambda v: True, (), ""), at=lambda n: n.item(0))
    args, func = guarded.frame([1]).args, guarded.frame([1]).func
    assert sweep(lambda: compiled.program.check(args, func), right, most=30)
    assert compiled.program.check(args, func)
