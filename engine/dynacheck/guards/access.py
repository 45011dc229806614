"""How the native program reads tensors and torch's global state without linking torch, checked at first use.

Symbols are looked up in the libtorch that is loaded; where something lies in memory is found by comparing with what
Python says about sample tensors. Whatever doesn't agree isn't used: its guards then run in Python.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from dynacheck import _C


@dataclass(frozen=True, slots=True)
class TensorAccess:
    """What the native program can read of tensors.

    Args:
        dtype_codes: torch's number of each dtype.
        layout_codes: torch's number of each layout but the usual one.
    """

    dtype_codes: dict[torch.dtype, int]
    layout_codes: dict[torch.layout, int]


def _library() -> str:
    name = "libtorch_cpu.dylib" if sys.platform == "darwin" else "libtorch_cpu.so"
    return os.path.join(os.path.dirname(torch.__file__), "lib", name)


def _dtypes() -> list[torch.dtype]:
    """The dtypes whose tensors can be made without a warning; guards on the others run in Python."""
    found = {
        name: getattr(torch, name) for name in dir(torch) if not name.startswith(("q", "complex32", "chalf"))
    }
    return list({d: None for d in found.values() if isinstance(d, torch.dtype)})


def _samples() -> list[torch.Tensor]:
    """Tensors with many different dispatch key sets, shapes and strides."""
    plain = torch.ones(2, 3)
    with torch.inference_mode():
        inference = torch.ones(2)
    made = [
        plain,
        plain.t(),
        plain[1:],
        torch.ones(()),
        torch.ones(4, 2, dtype=torch.int64),
        torch.ones(3, 5, 2, dtype=torch.bfloat16).transpose(0, 2),
        torch.ones(2, 3, 4, 5, 6, dtype=torch.bool),
        torch.ones(2, 1, 3, 1, 2, 1, 2),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, requires_grad=True),
        torch.ones(2, requires_grad=True).requires_grad_(False),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2, dtype=torch.complex64).conj().imag,
        torch.empty(2, device="meta"),
        inference,
    ]
    with torch.enable_grad():
        made.append(torch.ones(2, requires_grad=True) * 2)
        made.append(torch.eye(2).to_sparse())
    return made


def _expected(tensor: torch.Tensor) -> tuple[Any, ...]:
    strides = None if tensor.layout is not torch.strided else tuple(tensor.stride())
    index = -1 if tensor.device.index is None else tensor.device.index
    return (
        index,
        torch._C._dispatch_keys(tensor).raw_repr(),
        tensor.requires_grad,
        tuple(tensor.size()),
        strides,
    )


def _set_up() -> TensorAccess | None:
    with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
        samples = _samples()
        seen = [
            (
                t,
                t._cdata,
                torch._C._dispatch_keys(t).raw_repr(),
                t.layout is torch.strided,
                2 if t.grad_fn is not None else int(t.requires_grad),
                t.untyped_storage()._cdata if t.layout is torch.strided else 0,
            )
            for t in samples
        ]
        if not _C.setup_tensors(seen, _library()):
            return None
        codes: dict[torch.dtype, int] = {}
        for dtype in _dtypes():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch calls some of its dtypes experimental
                try:
                    codes[dtype] = _C.tensor_facts(torch.empty(1, dtype=dtype, device="meta"))[0]
                except (RuntimeError, TypeError, NotImplementedError):
                    continue
        agree = all(_C.tensor_facts(t)[1:] == _expected(t) for t in samples if t.layout is torch.strided)
        if not agree or len(set(codes.values())) != len(codes):
            _C.setup_tensors([], "")
            return None
    return TensorAccess(codes | _numbers("dtype", ["complex32"]), _numbers("layout", _LAYOUTS))


_LAYOUTS = ("_mkldnn", "jagged", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_GIVES_INT = 1  # a signature of `guards/state.py`


def _numbers(kind: str, names: Iterable[str]) -> dict[Any, int]:
    """What torch numbers as it tells C code, without making a tensor, which may warn."""
    found = {
        name: _C.ambient_read(_GIVES_INT, _C.native_symbol(f"aoti_torch_{kind}_{name}"), 0) for name in names
    }
    return {getattr(torch, name): code for name, code in found.items() if code is not None}


_state: list[
    TensorAccess | None
] = []  # one item once it is known; reset() needn't name it: it is about the process


def tensor_access() -> TensorAccess | None:
    """What the native program can read of tensors; None when the self-test failed (or was forced to fail)."""
    if not _state:
        _state.append(_set_up())
    return _state[0] if _C.tensors_ready() else None
