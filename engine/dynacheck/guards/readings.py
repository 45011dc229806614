"""Which pieces of global state the native program reads itself, found out once by comparing with Python.

What torch keeps per thread is compared in several states of this thread; process-wide switches are compared as they
are, since flipping them, even briefly, would be seen by other threads.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from dynacheck import _C
from dynacheck.guards.access import tensor_access
from dynacheck.guards.fields import FIELDS, Field
from dynacheck.guards.held import Held

# The numbers of csrc/guards_torch.c.
SIGNATURES: Final = {
    "byte()": 0,
    "int()": 1,
    "long()": 2,
    "byte(device)": 3,
    "context": 4,
    "address": 5,
    "keys": 6,
    "grad": 7,
    "functions": 8,
    "precision": 9,
    "global": 10,
}
_LAST_BIT: Final = 40 * 8  # of the struct that holds the grad mode


@dataclass(frozen=True, slots=True)
class Reading:
    """A native read.

    Args:
        signature: one of SIGNATURES.
        address: of the getter or the value; 0 for a thread's own.
        argument: of the getter; a bit; a word.
        mask: what the value natively and the one in Python differ by.
    """

    signature: int
    address: int
    argument: int
    mask: int = 0

    def value(self) -> int | None:
        """The value now, as Python has it; None when it can't be read."""
        found = _C.ambient_read(self.signature, self.address, self.argument)
        return None if found is None else found ^ self.mask


_REDUCTIONS: Final[dict[Any, int]] = {(True, True): 0, (False, True): 1, (False, False): 2}


def code_of(field: Field, value: Any) -> int | None:
    """The number that the native read gives for a value; None when only reading it tells."""
    if field.how == "functions":
        disabled: int = value[0]
        return len(value[1]) << 8 | disabled
    if isinstance(value, int):
        return int(value)
    if isinstance(value, torch.dtype):
        access = tensor_access()
        return None if access is None else access.dtype_codes.get(value)
    return _REDUCTIONS.get(value)


def _candidates(field: Field) -> list[Reading]:
    signature, address = SIGNATURES.get(field.how, -1), _C.native_symbol(field.symbol) if field.symbol else 0
    if field.how == "grad":
        bits = [Reading(signature, 0, bit) for bit in range(_LAST_BIT)]
        return [*bits, Reading(SIGNATURES["byte()"], address, 0)] if address else bits
    if field.how == "context":
        place = _C.context_field(address)
        if place:
            return [Reading(SIGNATURES["address"], place, 0)]
    if field.how in ("", "global") or (field.symbol and not address):
        return []
    return [Reading(signature, address, field.argument)]


class _Functions(torch.overrides.TorchFunctionMode):
    """A mode to look at."""


def _states() -> list[Any]:
    return [
        nullcontext(),
        torch.no_grad(),
        torch.enable_grad(),
        torch.inference_mode(),
        torch.autocast("cpu", torch.float16),
        torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
        torch._C.DisableTorchFunction(),
        torch._C.DisableTorchFunctionSubclass(),
        _Functions(),
    ]


def _find() -> tuple[Reading | None, ...]:
    if tensor_access() is None:
        return (None,) * len(FIELDS)
    found = [_candidates(f) for f in FIELDS]
    for i, f in enumerate(FIELDS):
        if f.how == "keys":  # kept relative to a default
            code = code_of(f, f.read())
            found[i] = [
                replace(r, mask=v ^ code)
                for r in found[i]
                if (v := r.value()) is not None and code is not None
            ]
    for state in _states():
        with state:
            for i, f in enumerate(FIELDS):
                if found[i]:
                    code = code_of(f, f.read())
                    found[i] = [r for r in found[i] if (v := r.value()) is not None and code in (None, v)]
    return tuple(r[0] if r else None for r in found)


_state: list[tuple[Reading | None, ...]] = []  # one item once it is known: it is about the process


def readings() -> tuple[Reading | None, ...]:
    """How the native program reads each of FIELDS; None where it doesn't."""
    if not _state:
        _state.append(_find())
    return _state[0] if _C.ambient_ready() else (None,) * len(FIELDS)


def is_nothing(field: Field, value: Any) -> bool:
    """Whether the value is that of a state nobody touched: no mode, no device."""
    return value is None or value == () or (field.how == "functions" and not value[1])


def plain(value: Any) -> Any:
    """A field's value as explanations give it."""
    if type(value) is tuple:
        return [v.name if isinstance(v, Held) else plain(v) for v in value]
    return value
