"""Methods that change what a tensor is, in place, and operators that ask for numbers of tensors (row 41)."""

import torch
from parity.harness import registry

PROGRAMS, program = registry()

METHODS = {
    "squeeze_": "", "unsqueeze_": "0", "transpose_": "0, 1", "t_": "", "swapaxes_": "0, 1", "swapdims_": "0, 1",
    "as_strided_": "(2,), (1,)", "detach_": "",
}  # fmt: skip
TENSORS = {"input": "x", "attribute": "o.w", "made": "(x + 1)", "view": "x[:]"}


class Holder:
    def __init__(self):
        self.w = torch.arange(9.0).reshape(3, 3)


def _add(method, args, kind):
    made = kind in ("made", "view")
    again = (method, kind) != ("detach_", "attribute")  # which torch doesn't compile behind the break

    @program(f"{method}of_{kind}", 41, graphs=int(again), breaks=not made, entries=1 if made else 1 + again)
    def _():
        scope = {}
        text = f"def f(x, o):\n    y = {TENSORS[kind]}\n    y.{method}({args})\n    return y * 2"
        exec(compile(text, __file__, "exec"), scope)
        return scope["f"], [(torch.ones(3, 3), Holder()) for _ in range(2)]


for _method, _args in METHODS.items():
    for _kind in TENSORS:
        if (_method, _kind) != ("detach_", "view"):  # which eager refuses
            _add(_method, _args, _kind)

OPERATORS = {
    "istft": "torch.istft(torch.stft(x.flatten(), 4, return_complex=True, window=W), 4, window=W)",
    "masked_sum": "torch.masked.sum(x, 1, mask=x > 0)",
    "masked_mean": "torch.masked.mean(x, mask=x > 0)",
    "masked_softmax": "torch.masked.softmax(x, 1, mask=x > 0)",
}


def _operator(name, text):
    @program(f"operator_{name}", 41, graphs=1, breaks=0, entries=1)
    def _():
        scope = {"torch": torch, "W": torch.ones(4)}
        exec(compile(f"def f(x):\n    return {text}", __file__, "exec"), scope)
        return scope["f"], [(torch.arange(16.0).reshape(4, 4),) for _ in range(2)]


for _name, _text in OPERATORS.items():
    _operator(_name, _text)


READERS = {
    "apply": "y.apply_(lambda v: v * 2)", "map": "y.map_(x, lambda a, b: a)", "map2": "y.map2_(x, x, lambda a, b, c: a)",
    "apply_to_input": "x.apply_(lambda v: v * 2)", "is_signed": "y.is_signed()",
}  # fmt: skip


def _reader(name, text):
    @program(f"reader_{name}", 41, graphs=2, breaks=1, entries=2)
    def _():
        scope = {}
        exec(compile(f"def f(x):\n    y = x + 1\n    v = {text}\n    return y * 2", __file__, "exec"), scope)
        return scope["f"], [(torch.arange(4.0),) for _ in range(2)]


for _name, _text in READERS.items():
    _reader(_name, _text)


@program("whole_narrow_by_a_tensor", 41, graphs=1, breaks=0, entries=1, compile={"fullgraph": True})
def _():
    def f(x, start):
        return torch.narrow(x, 0, start, 2) + 1

    return f, [(torch.arange(6.0), torch.tensor(i)) for i in (0, 3)]
