"""The classes of torch.nn, a model each."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from zoo_model import Calls, registry

MODELS, model = registry("torch.nn")

BATCHES = (2, 3, 5)


def batches(*shape: int, batch: tuple[int, ...] = BATCHES) -> Calls:
    """A call with one random tensor for each batch size."""
    return [((torch.randn(n, *shape),), {}) for n in batch]


@model(ci=True)
def transformer_encoder() -> Any:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), batches(6, 16)


@model()
def transformer_encoder_masked() -> Any:
    layer = nn.TransformerEncoderLayer(16, 2, 32, norm_first=True)
    calls = [
        (
            (torch.randn(n, 2, 16),),
            {"mask": nn.Transformer.generate_square_subsequent_mask(n), "is_causal": True},
        )
        for n in (4, 5, 7)
    ]
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), calls


@model()
def transformer() -> Any:
    calls = [((torch.randn(2, n, 16), torch.randn(2, n + 1, 16)), {}) for n in (3, 4, 6)]
    return nn.Transformer(16, 2, 1, 1, 32, batch_first=True), calls


@model()
def multihead_attention() -> Any:
    class Attend(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)

        def forward(self, x: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.attention(x, memory, memory, need_weights=True)

    return Attend(), [((torch.randn(n, 4, 16), torch.randn(n, 6, 16)), {}) for n in BATCHES]


class Tagger(nn.Module):
    """Embedding, a recurrent layer, a linear one."""

    def __init__(self, kind: type, **options: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.recurrent = kind(8, 8, batch_first=True, **options)
        self.head = nn.Linear(8 * (1 + options.get("bidirectional", False)), 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(torch.relu(self.embedding(tokens)))
        return self.head(states.sin())


def tokens(*lengths: int, vocabulary: int = 20) -> Calls:
    return [((torch.randint(0, vocabulary, (2, n)),), {}) for n in lengths]


@model(ci=True)
def lstm() -> Any:
    return Tagger(nn.LSTM, num_layers=2, dropout=0.1), tokens(4, 5, 7)


@model()
def gru() -> Any:
    return Tagger(nn.GRU, bidirectional=True), tokens(4, 5, 7)


@model()
def lstm_cell() -> Any:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(4, 8)
            self.gru = nn.GRUCell(8, 8)

        def forward(self, xs: torch.Tensor) -> torch.Tensor:
            h = c = xs.new_zeros(xs.shape[0], 8)
            g = None
            for x in xs.unbind(1):
                h, c = self.cell(x, (h, c))
                g = self.gru(h, g)
            return torch.cat([h, c, g], -1)

    return Cell(), batches(3, 4)


@model()
def embedding_bag() -> Any:
    class Bags(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = nn.EmbeddingBag(20, 8, mode="mean")
            self.sum = nn.EmbeddingBag(20, 8, mode="sum", padding_idx=0)
            self.head = nn.Bilinear(8, 8, 2)

        def forward(self, flat: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return self.head(
                self.mean(flat, offsets),
                self.sum(flat.view(-1, 2)).mean(0, keepdim=True).expand(len(offsets), -1),
            )

    calls = [((torch.randint(0, 20, (n,)), torch.tensor([0, 2, 4])), {}) for n in (6, 8, 12)]
    return Bags(), calls


@model()
def convolutions() -> Any:
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding="same", groups=8), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2, ceil_mode=True),
        nn.ConvTranspose2d(8, 4, 2, 2), nn.InstanceNorm2d(4, affine=True), nn.Hardswish(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(4, 5), nn.LogSoftmax(-1),
    )  # fmt: skip
    return layers, batches(3, 16, 16)


@model()
def convolutions_1d_3d() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Sequential(
                nn.Conv1d(2, 4, 3, dilation=2), nn.BatchNorm1d(4), nn.ELU(), nn.AdaptiveMaxPool1d(4)
            )
            self.three = nn.Sequential(nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2), nn.PReLU(), nn.MaxPool3d(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = self.one(x)
            return self.three(a[:, None, None].expand(-1, -1, 4, -1, -1)).flatten(1)

    return Net(), batches(2, 16)


@model()
def norms() -> Any:
    layers = nn.Sequential(
        nn.LayerNorm(8), nn.Linear(8, 8), nn.RMSNorm(8), nn.GELU("tanh"), nn.Linear(8, 8, bias=False), nn.Softplus(),
        nn.Unflatten(1, (2, 4)), nn.LocalResponseNorm(2), nn.Flatten(1), nn.GLU(), nn.CELU(), nn.Threshold(0.1, 0.0),
    )  # fmt: skip
    return layers, batches(8)


@model()
def containers() -> Any:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(3)])
            self.shifts = nn.ParameterDict(
                {"a": nn.Parameter(torch.randn(4)), "b": nn.Parameter(torch.randn(4))}
            )
            self.layers = nn.ModuleDict({"in": nn.Linear(4, 4), "out": nn.Linear(4, 4)})
            self.stages = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)])
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for i, scale in enumerate(self.scales):
                x = x * scale + i
            for name, shift in self.shifts.items():
                x = x + shift if name == "a" else x - shift
            for name, layer in self.layers.items():
                x = layer(x).tanh() if "out" in self.layers else x
            for stage in reversed(self.stages):
                x = x + stage(x)
            for part in self.stages[0]:
                x = part(x)
            self.steps = self.steps + 1
            return self.stages[-1](x) + self.shifts["b"] * len(self.scales)

    return Bag(), batches(4)


@model()
def losses() -> Any:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(4, 4)
            self.cross = nn.CrossEntropyLoss(label_smoothing=0.1)
            self.mse, self.huber, self.kl = nn.MSELoss(), nn.HuberLoss(), nn.KLDivLoss(reduction="batchmean")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.net(x)
            target = x.argmax(-1)
            return (
                self.cross(y, target)
                + self.mse(y, x)
                + self.huber(y, x)
                + self.kl(y.log_softmax(-1), x.softmax(-1))
            )

    return Loss(), batches(4)


@model()
def parametrized() -> Any:
    from torch.nn.utils import parametrizations

    one = parametrizations.weight_norm(nn.Linear(4, 4))
    two = parametrizations.spectral_norm(nn.Linear(4, 4))
    return nn.Sequential(one, nn.Tanh(), two), batches(4)


@model()
def upsampling() -> Any:
    layers = nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.Conv2d(3, 4, 1), nn.PixelShuffle(2),
        nn.ReflectionPad2d(1), nn.ZeroPad2d((0, 1, 0, 1)), nn.Unfold(2), nn.Softmax(1), nn.AlphaDropout(0.1),
    )  # fmt: skip
    return layers, batches(3, 4, 4)


@model()
def hooks() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.a.register_forward_hook(lambda module, args, output: output * 2)
            self.b.register_forward_pre_hook(lambda module, args: (args[0] + 1,))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x).relu())

    return Net(), batches(4)


@model(training=False)
def lazy_layers() -> Any:
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    net(torch.randn(2, 6))
    return net, batches(6)
