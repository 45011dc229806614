"""Models of other libraries, each run where its library can be imported: they are dependencies of nothing here.

timm, torchvision, diffusers, peft, torch_geometric, monai and x-transformers (`pip install` those that are wanted).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from zoo_model import Calls, registry

MODELS, model = registry("other libraries")


def images(size: int, channels: int = 3) -> Calls:
    return [((torch.randn(n, channels, size, size),), {}) for n in (2, 3, 4)]


def tokens() -> Calls:
    return [((torch.randint(0, 50, (2, length)),), {}) for length in (8, 12, 9)]


def graphs() -> Calls:
    made = ((10, 30), (12, 40), (9, 25))
    return [((torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))), {}) for nodes, edges in made]


def add(
    library: str, name: str, make: Callable[[Any], nn.Module], calls: Callable[[], Calls], **options: Any
) -> None:
    """A model made by a library's module, under the library's name and its own."""
    needs = library.partition(".")[0]

    @model(f"{needs}_{name}", needs=needs, **options)
    def _() -> Any:
        return make(importlib.import_module(library)), calls()


TIMM = (
    "beit_base_patch16_224", "test_byobnet", "cait_xxs24_224", "convit_tiny", "test_convnext", "densenet121",
    "edgenext_xx_small", "test_efficientnet", "efficientvit_b0", "ghostnet_100", "levit_128s", "mixer_s16_224",
    "mobilenetv3_small_050", "poolformer_s12", "test_resnet", "swin_tiny_patch4_window7_224", "test_vit",
)  # fmt: skip
SIZED = ("beit", "cait", "convit", "levit", "mixer", "swin", "test_vit")


def of_timm(name: str) -> None:
    size = {"img_size": 64} if name.startswith(SIZED) and not name.startswith("levit") else {}
    pixels = 224 if name.startswith("levit") else 64
    add("timm", name, lambda timm: timm.create_model(name, num_classes=10, **size), lambda: images(pixels))


for _name in TIMM:
    of_timm(_name)

VISION = {
    "resnet18": 64, "efficientnet_b0": 64, "convnext_tiny": 64, "mobilenet_v3_small": 64, "swin_t": 64,
    "vit_b_16": 224, "regnet_y_400mf": 64, "densenet121": 64, "shufflenet_v2_x0_5": 64,
}  # fmt: skip


def of_torchvision(name: str, size: int) -> None:
    add("torchvision.models", name, lambda models: getattr(models, name)(weights=None), lambda: images(size))


for _name, _size in VISION.items():
    of_torchvision(_name, _size)

BLOCKS = {"block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1}
CROSS = {
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "cross_attention_dim": 8,
    "attention_head_dim": 2,
    "in_channels": 4,
}


def noisy() -> Calls:
    return [((torch.randn(n, 4, 16, 16), torch.tensor(3), torch.randn(n, 5, 8)), {}) for n in (1, 2, 3)]


def unet(diffusers: Any) -> nn.Module:
    up = ("CrossAttnUpBlock2D", "UpBlock2D")
    return diffusers.UNet2DConditionModel(
        **BLOCKS, **CROSS, sample_size=16, out_channels=4, up_block_types=up
    )


def autoencoder(diffusers: Any) -> nn.Module:
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )


def flux(diffusers: Any) -> nn.Module:
    return diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=8,
        pooled_projection_dim=8,
        axes_dims_rope=[4, 4, 8],
    )


def of_flux() -> Calls:
    fixed = {"img_ids": torch.randn(16, 3), "txt_ids": torch.randn(5, 3)}
    return [
        (
            (),
            {
                "hidden_states": torch.randn(n, 16, 4),
                "encoder_hidden_states": torch.randn(n, 5, 8),
                "pooled_projections": torch.randn(n, 8),
                "timestep": torch.ones(n),
                **fixed,
            },
        )
        for n in (1, 2, 3)
    ]


add("diffusers", "unet", unet, noisy)
add("diffusers", "autoencoder", autoencoder, lambda: images(16))
add("diffusers", "flux", flux, of_flux)

ADAPTERS = {
    "lora": ("LoraConfig", {"r": 2}),
    "dora": ("LoraConfig", {"r": 2, "use_dora": True}),
    "lokr": ("LoKrConfig", {"r": 2}),
    "oft": ("OFTConfig", {"oft_block_size": 8}),
    "vera": ("VeraConfig", {"r": 2}),
}


def of_peft(name: str, config: str, options: dict[str, Any]) -> None:
    def adapted(peft: Any) -> nn.Module:
        transformers = importlib.import_module("transformers")
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=50, **sizes))
        return peft.get_peft_model(llama, getattr(peft, config)(target_modules=["q_proj"], **options))

    def calls() -> Calls:
        return [((), {"input_ids": ids}) for (ids,), _ in tokens()]

    add("peft", name, adapted, calls, training=name == "lora")


for _name, (_config, _options) in ADAPTERS.items():
    of_peft(_name, _config, _options)

CONVOLUTIONS = (
    "GCNConv", "SAGEConv", "GATConv", "GATv2Conv", "GraphConv", "TransformerConv", "GENConv", "TAGConv", "FiLMConv",
)  # fmt: skip


def of_geometric(name: str) -> None:
    add("torch_geometric.nn", name, lambda nets: getattr(nets, name)(8, 8), graphs)


for _name in CONVOLUTIONS:
    of_geometric(_name)

add("monai.networks.nets", "unet", lambda nets: nets.UNet(2, 1, 2, (4, 8, 16), (2, 2)), lambda: images(32, 1))
add(
    "monai.networks.nets",
    "swin_unetr",
    lambda nets: nets.SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2),
    lambda: images(64, 1),
    training=False,
)

DECODERS = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True},
    "glu": {"ff_glu": True},
}


def of_x(name: str, options: dict[str, Any]) -> None:
    def decoder(x: Any) -> nn.Module:
        layers = x.Decoder(dim=32, depth=2, heads=4, **options)
        return x.TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers)

    add("x_transformers", name, decoder, tokens)


for _name, _options in DECODERS.items():
    of_x(_name, _options)
