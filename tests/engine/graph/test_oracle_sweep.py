"""The oracle over torch's operator database: predicted facts against real runs."""

from __future__ import annotations

import collections
import warnings

import pytest
import torch

pytestmark = pytest.mark.slow

op_db = pytest.importorskip("torch.testing._internal.common_methods_invocations").op_db

KNOWN = {
    "addbmm_": "the real kernel accepts what its out-of-place form broadcasts",
    "addr_": "the real kernel refuses with another message",
    "masked_scatter_": "the real kernel refuses what the fake one accepts",
    "nn.functional.max_pool1d": "the fake kernel returns a view of a 2d pooling",
}
"""Operators whose prediction differs, and how (torch's own fake kernels; torch.compile sees the same)."""


def samples(op, requires_grad: bool):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield from op.sample_inputs("cpu", torch.float32, requires_grad=requires_grad)
        except Exception:
            return


def check(mirror, call, args, kwargs, name, report):
    before = len(mirror.mismatches), len(mirror.unsupported)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            mirror.call(call, args, kwargs)
        except Exception:
            pass
    for text in mirror.mismatches[before[0] :]:
        report[name].append(text)
    for text in mirror.unsupported[before[1] :]:
        report["unsupported " + name].append(text)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_operator_database(oracle, requires_grad, make_mirror, capsys):
    report: dict[str, list[str]] = collections.defaultdict(list)
    seen = 0
    for op in op_db:
        if torch.float32 not in op.dtypes or requires_grad and not op.supports_autograd:
            continue
        mirror = make_mirror(("nbytes",))  # real reductions keep the buffer of their input
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        seen += 1
        for i, sample in enumerate(samples(op, requires_grad)):
            if i >= 6:
                break
            torch.manual_seed(0)
            args = (sample.input, *sample.args)
            check(mirror, op.op, args, dict(sample.kwargs), name, report)
            if (
                op.inplace_variant is not None
                and not requires_grad
                and isinstance(sample.input, torch.Tensor)
            ):
                args = (sample.input.clone(), *sample.args)
                check(mirror, op.inplace_variant, args, dict(sample.kwargs), name + "_", report)
    wrong = {k: v for k, v in report.items() if not k.startswith("unsupported ")}
    with capsys.disabled():
        print(f"\n{seen} operators, requires_grad={requires_grad}")
        for name, texts in sorted(report.items()):
            print(f"  {name}: {len(texts)}: {texts[0][:300]}")
    assert not set(wrong) - set(KNOWN)
