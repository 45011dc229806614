"""Ambient state: snapshots, restoring, and the complaint when something leaks."""

from __future__ import annotations

import random

import pytest
import torch
from dynacheck.graph.state import AmbientStateChanged, ambient, check_unchanged, preserved
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack


class Mode(TorchFunctionMode):
    """A user's mode; the base class refuses every call that reaches it."""


def leak_grad():
    torch._C._set_grad_enabled(False)


def leak_autocast():
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)


def leak_dtype():
    torch.set_default_dtype(torch.float64)


def leak_deterministic():
    torch.use_deterministic_algorithms(True, warn_only=True)


def leak_attention():
    torch.backends.cuda.enable_flash_sdp(False)


def leak_mkldnn():
    torch._C._set_mkldnn_enabled(False)


def leak_fastpath():
    torch.backends.mha.set_fastpath_enabled(False)


def leak_device():
    torch.device("meta").__enter__()


LEAKS = [
    leak_grad,
    leak_autocast,
    leak_dtype,
    leak_deterministic,
    leak_attention,
    leak_mkldnn,
    leak_fastpath,
    leak_device,
]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("leak", LEAKS, ids=lambda f: f.__name__)
def test_leaks_are_put_back(leak, fails):
    before = ambient()
    try:
        with preserved() as snapshot:
            leak()
            assert ambient() != before
            with pytest.raises(AmbientStateChanged, match="->"):
                check_unchanged(snapshot)
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert ambient() == before and hash(before)


def test_random_states_are_put_back():
    torch.manual_seed(1)
    random.seed(1)
    cpu, python = torch.get_rng_state(), random.getstate()
    with preserved():
        torch.rand(3)
        random.random()
    assert torch.equal(torch.get_rng_state(), cpu) and random.getstate() == python


def test_function_modes_are_put_back():
    with Mode() as mode:
        with preserved():
            torch._C._pop_torch_function_stack()
        assert _get_current_function_mode_stack() == [mode]
    with preserved():
        Mode().__enter__()
    assert _get_current_function_mode_stack() == []


def test_states_within_modes_stay():
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        before = ambient()
        with preserved():
            torch.set_autocast_enabled("cpu", False)
        assert ambient() == before
