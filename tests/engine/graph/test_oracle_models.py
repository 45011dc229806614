"""Every torch call of real models, predicted and then run."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 64,
}


def bert():
    config = transformers.BertConfig(**SMALL, max_position_embeddings=32)
    ids = torch.arange(12).view(2, 6)
    return transformers.BertModel(config), {
        "input_ids": ids,
        "attention_mask": torch.ones(2, 6, dtype=torch.long),
    }


def gpt2():
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64, n_positions=32)
    return transformers.GPT2Model(config), {"input_ids": torch.arange(12).view(2, 6), "use_cache": False}


def llama():
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=1, max_position_embeddings=32)
    return transformers.LlamaModel(config), {"input_ids": torch.arange(12).view(2, 6), "use_cache": False}


def vit():
    config = transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=16,
        patch_size=8,
    )
    return transformers.ViTModel(config), {"pixel_values": torch.ones(2, 3, 16, 16)}


class Block(nn.Module):
    def __init__(self, a: int, b: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(b)
        self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(b)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.down(x)
        return self.relu(out)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.up(self.blocks(self.stem(x)))
        x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


def convnet():
    return ConvNet(), {"x": torch.ones(2, 3, 32, 32)}


MODELS = [bert, gpt2, llama, vit, convnet]


def variants(name: str, model: nn.Module, inputs: dict[str, torch.Tensor | bool]):
    """Change a model or its inputs; return the context to run in."""
    floats = [k for k, v in inputs.items() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    if name == "autocast":
        return torch.autocast("cpu", torch.bfloat16)
    if name == "no_grad":
        model.eval()
        return torch.no_grad()
    if name == "inference":
        model.eval()
        return torch.inference_mode()
    if name == "channels_last":
        model.to(memory_format=torch.channels_last)
        for k in floats:
            inputs[k] = inputs[k].to(memory_format=torch.channels_last)
    if name == "transposed":
        for k, v in inputs.items():
            if isinstance(v, torch.Tensor):
                inputs[k] = v.transpose(0, 1).contiguous().transpose(0, 1)
    if name == "non_leaf":
        for k in floats:
            inputs[k] = inputs[k].requires_grad_() * 2
    if name == "view":
        for k, v in inputs.items():
            if isinstance(v, torch.Tensor):
                inputs[k] = torch.cat([v, v])[1:-1]
    return contextlib.nullcontext()


VARIANTS = ["plain", "autocast", "no_grad", "inference", "channels_last", "transposed", "non_leaf", "view"]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("build", MODELS)
def test_every_call_of_a_model_is_predicted(build, variant, watched):
    torch.manual_seed(0)
    model, inputs = build()
    with variants(variant, model, inputs):
        watched(model, unsupported=("__bool__", "item"), **inputs)
