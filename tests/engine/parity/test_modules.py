"""Every module of torch.nn, in training and eval mode: results, gradients and buffers are eager's, figures torch's."""

import copy
import warnings

import pytest
import torch
from parity.engines import ENGINES
from torch import nn


def floats(*shape):
    return lambda: (torch.randn(*shape),)


ROWS, LINE, IMAGE, VOLUME = floats(3, 8), floats(2, 4, 8), floats(2, 4, 8, 8), floats(2, 4, 6, 6, 6)


def pair():
    return torch.randn(3, 8), torch.randn(3, 8)


def words():
    return (torch.randint(0, 10, (3, 5)),)


def sequences(n):
    return lambda: tuple(torch.randn(5, 3, 8) for _ in range(n))


# Constructor's arguments and what makes the input's; modules without a row take none and rows (losses a pair).
ARGUMENTS = {
    "Linear": ((8, 4), ROWS),
    "Bilinear": ((8, 8, 4), pair),
    "LayerNorm": ((8,), ROWS),
    "RMSNorm": ((8,), ROWS),
    "GroupNorm": ((2, 4), IMAGE),
    "LocalResponseNorm": ((2,), IMAGE),
    "CrossMapLRN2d": ((2,), IMAGE),
    "SyncBatchNorm": ((4,), IMAGE),
    "Embedding": ((10, 4), words),
    "EmbeddingBag": ((10, 4), words),
    "MultiheadAttention": ((8, 2), sequences(3)),
    "TransformerEncoderLayer": ((8, 2, 16), sequences(1)),
    "TransformerDecoderLayer": ((8, 2, 16), sequences(2)),
    "Transformer": ((8, 2, 1, 1, 16), sequences(2)),
    "Unfold": ((2,), IMAGE),
    "Fold": (((4, 5), (2, 2)), floats(1, 12, 12)),
    "Upsample": ((None, 2), IMAGE),
    "UpsamplingNearest2d": ((None, 2), IMAGE),
    "UpsamplingBilinear2d": ((None, 2), IMAGE),
    "PixelShuffle": ((2,), IMAGE),
    "PixelUnshuffle": ((2,), IMAGE),
    "ChannelShuffle": ((2,), IMAGE),
    "Flatten": ((), IMAGE),
    "Unflatten": ((1, (2, 2)), IMAGE),
    "Softmax": ((1,), ROWS),
    "LogSoftmax": ((1,), ROWS),
    "Softmin": ((1,), ROWS),
    "Softmax2d": ((), IMAGE),
    "Threshold": ((0.1, 1.0), ROWS),
    "FractionalMaxPool2d": ((2, None, 0.5), IMAGE),
    "FractionalMaxPool3d": ((2, None, 0.5), VOLUME),
    "AdaptiveLogSoftmaxWithLoss": ((8, 20, [4, 8]), lambda: (torch.randn(3, 8), torch.tensor([1, 5, 12]))),
    "CosineSimilarity": ((), pair),
    "PairwiseDistance": ((), pair),
    "CrossEntropyLoss": ((), lambda: (torch.randn(3, 5), torch.tensor([1, 2, 0]))),
    "NLLLoss": ((), lambda: (torch.randn(3, 5).log_softmax(1), torch.tensor([1, 2, 0]))),
    "MultiMarginLoss": ((), lambda: (torch.randn(3, 5), torch.tensor([1, 2, 0]))),
    "MultiLabelMarginLoss": ((), lambda: (torch.randn(3, 5), torch.randint(0, 5, (3, 5)))),
    "GaussianNLLLoss": ((), lambda: (torch.randn(3, 5), torch.randn(3, 5), torch.rand(3, 5))),
    "BCELoss": ((), lambda: (torch.rand(3, 5), torch.rand(3, 5))),
    "CosineEmbeddingLoss": ((), lambda: (*pair(), torch.tensor([1.0, -1, 1]))),
    "MarginRankingLoss": ((), lambda: (torch.randn(3), torch.randn(3), torch.tensor([1.0, -1, 1]))),
    "TripletMarginLoss": ((), lambda: (*pair(), torch.randn(3, 8))),
    "TripletMarginWithDistanceLoss": ((), lambda: (*pair(), torch.randn(3, 8))),
    "CTCLoss": (
        (),
        lambda: (
            torch.randn(10, 2, 5).log_softmax(2),
            torch.randint(1, 5, (2, 4)),
            torch.tensor([10, 10]),
            torch.tensor([4, 4]),
        ),
    ),
}
for _d, _input in ((1, LINE), (2, IMAGE), (3, VOLUME)):
    for _name in ("Conv", "ConvTranspose"):
        ARGUMENTS[f"{_name}{_d}d"] = ((4, 6, 3), _input)
    for _name in ("BatchNorm", "InstanceNorm"):
        ARGUMENTS[f"{_name}{_d}d"] = ((4,), _input)
    for _name in ("MaxPool", "AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool"):
        ARGUMENTS[f"{_name}{_d}d"] = ((2,), _input)
    for _name in ("ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"):
        ARGUMENTS[f"{_name}{_d}d"] = ((1,), _input)
    ARGUMENTS[f"LPPool{_d}d"] = ((2, 2), _input)
    ARGUMENTS[f"ConstantPad{_d}d"] = ((1, 2.0), _input)
for _name in ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"):
    ARGUMENTS[_name] = ((8, 4), ROWS if _name.endswith("Cell") else LINE)

# What holds modules, is given more than tensors, or is initialised by its first call.
LEFT_OUT = {
    "Module", "Container", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Sequential", "DataParallel",
    "RNNBase", "RNNCellBase", "NLLLoss2d", "TransformerEncoder", "TransformerDecoder", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "LinearCrossEntropyLoss",
}  # fmt: skip
MODULES = sorted(
    name
    for name, value in vars(nn).items()
    if isinstance(value, type)
    and issubclass(value, nn.Module)
    and name not in LEFT_OUT
    and "Lazy" not in name
)


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def run(module, given, engine=None):
    """Calls a copy of a module twice and differentiates: what came of it, and the figures."""
    torch.manual_seed(1)
    module = copy.deepcopy(module)
    only_first = type(module).__name__.endswith("Loss")  # targets need no gradient
    given = [
        t.clone().requires_grad_(t.is_floating_point() and (i == 0 or not only_first))
        for i, t in enumerate(given)
    ]

    def call(*args):
        return module(*args)

    figures = None
    if engine is None:
        results = [call(*given), call(*given)]
    else:
        engine.reset()
        with engine.patched(), engine.record() as seen:
            compiled = engine.compile(call, backend=lambda gm, inputs: gm.forward)
            results = [compiled(*given), compiled(*given)]
        figures = seen.finish()
        engine.reset()
    leaves = [t for t in flat(results) if isinstance(t, torch.Tensor)]
    sum(t.sum() for t in leaves if t.requires_grad).backward()
    state = [*(t.grad for t in given), *(p.grad for p in module.parameters()), *module.buffers()]
    return [t.detach() for t in leaves], state, torch.get_rng_state(), figures


@pytest.mark.slow
@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
@pytest.mark.parametrize("name", MODULES)
def test_module(name, training):
    arguments, make = ARGUMENTS.get(name, ((), pair if name.endswith("Loss") else ROWS))
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, given = getattr(nn, name)(*arguments).train(training), make()
        wanted = run(module, given)
        found = run(module, given, ENGINES["bundled"])
        theirs = run(module, given, ENGINES["torch"])
    for mine, its in zip(found[:3], wanted[:3]):
        torch.testing.assert_close(mine, its, equal_nan=True, check_stride=True)
    assert found[3].compared() == theirs[3].compared()
    assert not found[3].faults
