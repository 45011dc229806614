"""Networks written here: convolutional and attention nets in the style of timm, a U-Net, a graph network, policies."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from models_classics import batches
from torch import nn
from torch.utils.checkpoint import checkpoint
from zoo_model import Calls, registry

MODELS, model = registry("written here")


def sinusoidal(t: torch.Tensor, size: int) -> torch.Tensor:
    """Embedding of time steps."""
    half = size // 2
    frequencies = torch.exp(-math.log(10000.0) * torch.arange(half, device=t.device) / half)
    angles = t.float()[:, None] * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class ResidualBlock(nn.Module):
    """Two convolutions with the time step added in between."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(2, inputs), nn.GroupNorm(2, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class SpatialAttention(nn.Module):
    def __init__(self, channels: int, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(2, channels)
        self.qkv = nn.Conv2d(channels, channels * 3, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        qkv = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).transpose(-1, -2)
        q, k, v = qkv.unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w)
        return x + self.out(y)


class UNet(nn.Module):
    """A denoising network of a diffusion model."""

    def __init__(self, channels: int = 8, time: int = 16) -> None:
        super().__init__()
        self.size = channels
        self.time = nn.Sequential(nn.Linear(channels, time), nn.SiLU(), nn.Linear(time, time))
        self.inlet = nn.Conv2d(3, channels, 3, padding=1)
        widths = [channels, channels * 2]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        last = channels
        for width in widths:
            self.down.append(
                nn.ModuleList([ResidualBlock(last, width, time), nn.Conv2d(width, width, 3, 2, 1)])
            )
            last = width
        self.middle = nn.ModuleDict(
            {"one": ResidualBlock(last, last, time), "attention": SpatialAttention(last)}
        )
        for width in reversed(widths):
            self.up.append(
                nn.ModuleList([nn.ConvTranspose2d(last, width, 2, 2), ResidualBlock(2 * width, width, time)])
            )
            last = width
        self.outlet = nn.Conv2d(last, 3, 1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        time = self.time(sinusoidal(t, self.size))
        x, skips = self.inlet(x), []
        for block, down in self.down:
            x = block(x, time)
            skips.append(x)
            x = down(x)
        x = self.middle["attention"](self.middle["one"](x, time))
        for up, block in self.up:
            x = torch.cat([up(x), skips.pop()], dim=1)
            x = block(x, time)
        return self.outlet(x)


@model(ci=True)
def unet() -> Any:
    return UNet(), [((torch.randn(n, 3, 8, 8), torch.randint(0, 100, (n,))), {}) for n in (2, 3, 5)]


class GraphLayer(nn.Module):
    """Messages along edges, summed at their targets, and a gated update."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * size, size), nn.ReLU(), nn.Linear(size, size))
        self.update = nn.GRUCell(size, size)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = self.message(torch.cat([x[source], x[target]], -1))
        gathered = torch.zeros_like(x).index_add_(0, target, messages)
        degree = torch.ones_like(x[:, 0]).scatter_add(0, target, torch.ones_like(target, dtype=x.dtype))
        return self.update(gathered / degree.unsqueeze(-1), x)


@model(ci=True)
def graph_network() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(3, 8)
            self.layers = nn.ModuleList(GraphLayer(8) for _ in range(2))

        def forward(self, x: torch.Tensor, edges: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
            x = self.embed(x)
            for layer in self.layers:
                x = x + layer(x, edges)
            pooled = x.new_zeros(2, x.shape[-1])
            return pooled.scatter_reduce(0, batch[:, None].expand_as(x), x, "mean", include_self=False)

    calls: Calls = []
    for nodes in (5, 6, 9):
        edges = torch.randint(0, nodes, (2, nodes * 3))
        calls.append(((torch.randn(nodes, 3), edges, torch.arange(nodes) % 2), {}))
    return Net(), calls


@model()
def policy() -> Any:
    """An actor and critic whose actions are sampled."""

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
            self.mean, self.value = nn.Linear(16, 2), nn.Linear(16, 1)
            self.log_std = nn.Parameter(torch.zeros(2))

        def forward(self, state: torch.Tensor) -> dict[str, torch.Tensor]:
            h = self.trunk(state)
            mean, std = self.mean(h), self.log_std.clamp(-5, 2).exp()
            action = mean + std * torch.randn_like(mean)
            log_prob = (-((action - mean) ** 2) / (2 * std**2) - std.log() - 0.5 * math.log(2 * math.pi)).sum(
                -1
            )
            return {"action": action, "log_prob": log_prob, "value": self.value(h).squeeze(-1)}

    return Policy(), batches(4)


@model()
def policy_distribution() -> Any:
    """The same with `torch.distributions`."""
    from torch import distributions

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 3)

        def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            choice = distributions.Categorical(logits=self.body(state))
            action = choice.sample()
            return action, choice.log_prob(action), choice.entropy()

    return Policy(), batches(4)


class DropPath(nn.Module):
    """Stochastic depth."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.rate == 0.0 or not self.training:
            return x
        keep = 1 - self.rate
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        mask = x.new_empty(shape).bernoulli_(keep)
        return x * mask.div_(keep)


class ConvNeXtBlock(nn.Module):
    def __init__(self, size: int, rate: float) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(size, size, 7, padding=3, groups=size)
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
        self.gamma = nn.Parameter(1e-2 * torch.ones(size)) if rate > 0 else None
        self.drop = DropPath(rate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        if self.gamma is not None:
            y = y.mul(self.gamma)
        return x + self.drop(y.permute(0, 3, 1, 2))


@model()
def convnext_style() -> Any:
    stages = [ConvNeXtBlock(8, 0.1 * i) for i in range(3)]
    net = nn.Sequential(
        nn.Conv2d(3, 8, 4, 4), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
    )
    return net, batches(3, 32, 32)


class SqueezeExcite(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(size, size // 4, 1), nn.Conv2d(size // 4, size, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = x.mean((2, 3), keepdim=True)
        return x * self.expand(F.silu(self.reduce(s))).sigmoid()


class MBConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        hidden = inputs * 4
        self.has_skip = inputs == outputs and stride == 1
        self.body = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.SiLU(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.SiLU(True),
            SqueezeExcite(hidden), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x
        x = self.body(x)
        if self.has_skip:
            x += shortcut
        return x


@model()
def efficientnet_style() -> Any:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), MBConv(8, 8, 1), MBConv(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    return net, batches(3, 16, 16)


class WindowAttention(nn.Module):
    """Attention in shifted windows with a table of relative positions."""

    def __init__(self, size: int, window: int, shift: int, heads: int = 2) -> None:
        super().__init__()
        self.window, self.shift, self.heads = window, shift, heads
        self.scale = (size // heads) ** -0.5
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(
            1
        )
        relative = (grid[:, :, None] - grid[:, None]).permute(1, 2, 0) + window - 1
        self.register_buffer(
            "index", relative[..., 0] * (2 * window - 1) + relative[..., 1], persistent=False
        )
        self.norm, self.qkv, self.out = nn.LayerNorm(size), nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut, (b, h, w, c), n = x, x.shape, self.window
        x = self.norm(x)
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = x.view(b, h // n, n, w // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, k, v = self.qkv(windows).view(-1, n * n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(n * n, n * n, -1).permute(2, 0, 1)
        attended = (scores + bias.unsqueeze(0)).softmax(-1) @ v
        x = self.out(attended.transpose(1, 2).reshape(-1, n, n, c))
        x = x.view(b, h // n, w // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        if self.shift:
            x = torch.roll(x, (self.shift, self.shift), (1, 2))
        return shortcut + x


@model()
def swin_style() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, 8, 2, 2)
            self.blocks = nn.Sequential(WindowAttention(8, 4, 0), WindowAttention(8, 4, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.blocks(self.patch(x).permute(0, 2, 3, 1)).mean((1, 2))

    return Net(), batches(3, 16, 16)


class Mixer(nn.Module):
    def __init__(self, tokens: int, size: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.token, self.channel = nn.Linear(tokens, tokens), nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.token(self.norms[0](x).mT).mT
        return x + self.channel(self.norms[1](x))


@model()
def mixer() -> Any:
    return nn.Sequential(*[Mixer(6, 8) for _ in range(3)]), batches(6, 8)


@model(ci=True)
def recommender() -> Any:
    """Embedding bags, a tower for dense features, pairwise products (DLRM)."""

    class Recommender(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(10, 4, mode="sum") for _ in range(3))
            self.bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
            self.top = nn.Linear(4 + 6, 1)

        def forward(self, dense: torch.Tensor, ids: list[torch.Tensor]) -> torch.Tensor:
            x = self.bottom(dense)
            parts = torch.stack([x, *(bag(i) for bag, i in zip(self.bags, ids))], dim=1)
            products = torch.bmm(parts, parts.transpose(1, 2))
            rows, columns = torch.tril_indices(parts.shape[1], parts.shape[1], offset=-1)
            return torch.sigmoid(self.top(torch.cat([x, products[:, rows, columns]], 1))).squeeze(1)

    calls = [((torch.randn(n, 5), [torch.randint(0, 10, (n, 2)) for _ in range(3)]), {}) for n in (2, 3, 5)]
    return Recommender(), calls


@model()
def detection_head() -> Any:
    """Boxes that score high enough: how many is known at run time only."""

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 5, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = self.conv(x).flatten(2).transpose(1, 2).reshape(-1, 5)
            scores, boxes = out[:, 0].sigmoid(), out[:, 1:]
            keep = scores > 0.5
            chosen = boxes[keep]
            if chosen.numel() == 0:
                return boxes.sum() * 0
            return chosen.clamp(-1, 1).mean(0) + scores.max()

    return Head(), batches(3, 4, 4)


@model()
def router() -> Any:
    """A mixture of experts with a loop over the experts."""

    class Router(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(8, 4)
            self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
            weights = weights / weights.sum(-1, keepdim=True)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                weight = (weights * (chosen == i)).sum(-1, keepdim=True)
                out += weight * expert(x)
            return out

    return Router(), batches(8)


@model()
def checkpointed() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = x + checkpoint(block, x, use_reentrant=False)
            return x

    return Net(), batches(8)


class Straight(torch.autograd.Function):
    """Rounds; gradients pass."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: float) -> torch.Tensor:
        ctx.scale = scale
        return (x * scale).round() / scale

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad * 1.0, None


@model()
def quantizer() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(Straight.apply(self.one(x).relu(), 4.0))

    return Net(), batches(4)


@model()
def lora() -> Any:
    class Adapted(nn.Module):
        def __init__(self, base: nn.Linear, rank: int = 2) -> None:
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
            self.up = nn.Parameter(torch.zeros(base.out_features, rank))
            self.scaling = 1 / rank
            self.dropout = nn.Dropout(0.1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + (self.dropout(x) @ self.down.T @ self.up.T) * self.scaling

    return nn.Sequential(Adapted(nn.Linear(4, 8)), nn.ReLU(), Adapted(nn.Linear(8, 2))), batches(4)


@model()
def autocast_blocks() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                h = self.one(x).relu()
                with torch.autocast("cpu", enabled=False):
                    h = h.float() * 2
                y = self.two(h)
            return y.float()

    return Net(), batches(4)


@model()
def einsum_attention() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Parameter(torch.randn(3, 8, 2, 4) * 0.2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = torch.einsum("bnd,tdhe->tbhne", x, self.qkv)
            scores = torch.einsum("bhie,bhje->bhij", q, k) / math.sqrt(q.shape[-1])
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
            return torch.einsum("bhij,bhje->bihe", scores.softmax(-1), v).flatten(2)

    return Net(), [((torch.randn(2, n, 8),), {}) for n in (4, 5, 7)]


@model(ci=True)
def state_space() -> Any:
    """A selective scan, unrolled."""

    class Scan(nn.Module):
        def __init__(self, size: int = 4, state: int = 3) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.randn(size, state))
            self.project = nn.Linear(size, size + 2 * state)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            size, state = self.a.shape
            delta, b, c = self.project(x).split([size, state, state], dim=-1)
            delta = F.softplus(delta)
            h = x.new_zeros(x.shape[0], size, state)
            out = []
            for t in range(x.shape[1]):
                decay = torch.exp(delta[:, t, :, None] * -self.a.exp())
                h = decay * h + delta[:, t, :, None] * b[:, t, None] * x[:, t, :, None]
                out.append((h * c[:, t, None]).sum(-1))
            return torch.stack(out, 1)

    return Scan(), batches(5, 4)
