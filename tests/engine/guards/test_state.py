"""The guard on global state: every piece of it, natively and in Python, then and now."""

import contextlib

import pytest
import torch
from dynacheck import _C
from dynacheck.guards import AmbientState, GuardMismatch, build_program, explain_miss, mirror
from dynacheck.guards.fields import FIELDS
from dynacheck.guards.readings import readings
from dynacheck.sources import FrameView, Root
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


def f():
    pass


FRAME = FrameView(f, ())


class Function(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Function2(Function):
    pass


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def switched(setter, getter, value):
    old = getter()
    setter(value)
    try:
        yield
    finally:
        setter(old)


@contextlib.contextmanager
def vmapped():
    level = torch._C._functorch._vmap_increment_nesting(2, "error")
    try:
        yield
    finally:
        assert torch._C._functorch._vmap_decrement_nesting() == level


@contextlib.contextmanager
def deterministic(warn_only):
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default_device():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def flag(name, value):
    c = torch._C
    return switched(getattr(c, f"_set_{name}"), getattr(c, f"_get_{name}"), value)


STATES = {
    "grad off": (torch.no_grad, "grad_mode"),
    "inference": (torch.inference_mode, "grad_mode"),
    "autocast cpu": (lambda: torch.autocast("cpu"), "autocast"),
    "autocast cpu float16": (lambda: torch.autocast("cpu", torch.float16), "autocast"),
    "autocast cpu without cache": (lambda: torch.autocast("cpu", cache_enabled=False), "autocast"),
    "autocast dtype": (
        lambda: switched(
            lambda d: torch.set_autocast_dtype("cpu", d),
            lambda: torch.get_autocast_dtype("cpu"),
            torch.float16,
        ),
        "autocast",
    ),
    "default dtype": (
        lambda: switched(torch.set_default_dtype, torch.get_default_dtype, torch.float64),
        "default_dtype",
    ),
    "default device": (default_device, "default_device"),
    "device context": (lambda: torch.device("meta"), "default_device"),
    "deterministic": (lambda: deterministic(False), "deterministic"),
    "deterministic, warn only": (lambda: deterministic(True), "deterministic"),
    "fill": (lambda: flag("deterministic_fill_uninitialized_memory", False), "deterministic"),
    "function mode": (Function, "function_mode"),
    "other function mode": (Function2, "function_mode"),
    "functions disabled": (torch._C.DisableTorchFunction, "function_mode"),
    "subclass functions disabled": (torch._C.DisableTorchFunctionSubclass, "function_mode"),
    "dispatch mode": (Dispatch, "function_mode"),
    "vmap": (vmapped, "global_state"),
    "threads": (lambda: switched(torch.set_num_threads, torch.get_num_threads, 1), "global_state"),
    "matmul high": (
        lambda: switched(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "high"),
        "global_state",
    ),
    "matmul medium": (
        lambda: switched(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "medium"),
        "global_state",
    ),
    "fp16 reduction": (
        lambda: switched(
            lambda v: setattr(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", v),
            lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
            False,
        ),
        "global_state",
    ),
    "flash": (
        lambda: switched(torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.flash_sdp_enabled, False),
        "global_state",
    ),
    "math": (
        lambda: switched(torch.backends.cuda.enable_math_sdp, torch.backends.cuda.math_sdp_enabled, False),
        "global_state",
    ),
    "mkldnn": (lambda: flag("mkldnn_enabled", False), "global_state"),
    "cudnn": (lambda: flag("cudnn_enabled", False), "global_state"),
    "two": (lambda: contextlib.ExitStack(), None),
}


EQUAL = [{"default device", "device context"}, {"matmul high", "matmul medium"}]


@pytest.fixture(params=["native", "python"])
def how(request):
    _C.force("tensors", int(request.param == "native"))
    yield request.param
    _C.force("tensors", 1)


def compiled_now():
    return build_program(Root(FRAME), AmbientState.now())


@pytest.fixture(autouse=True)
def two_threads():
    old = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(old)


@pytest.mark.parametrize("name", [n for n in STATES if n != "two"])
def test_every_state(name, how):
    make, kind = STATES[name]
    plain = compiled_now()
    assert mirror(plain, FRAME)
    with make():
        changed = compiled_now()
        assert mirror(changed, FRAME) and not mirror(plain, FRAME)
        change = explain_miss([plain], FRAME)[0].failures[0].change
        assert change.kind == kind and change.then != change.now, change
    assert mirror(plain, FRAME) and not mirror(changed, FRAME)


def test_states_against_each_other(how):
    entries = {}
    for name, (make, kind) in STATES.items():
        with make():
            entries[name] = compiled_now()
    for name, (make, kind) in STATES.items():
        with make():
            serving = {other for other, compiled in entries.items() if mirror(compiled, FRAME)}
        assert serving == next((same for same in EQUAL if name in same), {name})


def test_native_reads_cover_everything_in_the_common_case():
    assert all(reading is not None for f, reading in zip(FIELDS, readings()) if f.how not in ("", "global"))
    _, operands = AmbientState.now().native_form()
    assert operands[1] == 0  # no Python


def test_each_thread_has_its_own_state():
    import threading

    compiled = compiled_now()
    results = []

    def other():
        results.append(mirror(compiled, FRAME))
        with torch.no_grad(), torch.autocast("cpu"):
            results.append(mirror(compiled, FRAME))
        results.append(mirror(compiled, FRAME))

    with torch.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert results == [True, False, True]


def test_guards_under_a_function_mode_run_none_of_it(guarded):
    from dynacheck.guards import TensorMatch, ValueIs
    from dynacheck.sources import CAttr

    class Loud(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError("user code ran in a guard")

    x = torch.ones(2)
    with torch._C.DisableTorchFunction():
        match = TensorMatch.of(x)
    compiled = guarded.program(x, match)
    grad = guarded.program(x, ValueIs(None), at=lambda node: node.child(CAttr("grad")))
    with Loud():
        assert guarded.passes(compiled, x) and guarded.passes(grad, x)
        assert torch._C._len_torch_function_stack() == 1 and not torch._C._is_torch_function_all_disabled()
        explain_miss([compiled, grad], guarded.frame(x))


def test_disagreement_is_an_error(monkeypatch):
    compiled = compiled_now()
    monkeypatch.setattr(AmbientState, "check", lambda self, slots: False)
    with pytest.raises(GuardMismatch):
        mirror(compiled, FRAME)
    monkeypatch.setattr(AmbientState, "check", lambda self, slots: True)
    with torch.no_grad(), pytest.raises(GuardMismatch):
        explain_miss([compiled], FRAME)


def test_text_names_the_state():
    text = AmbientState.now().text([])
    assert text.startswith("___check_global_state(grad mode=True, inference mode=False")
