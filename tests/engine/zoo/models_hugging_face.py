"""Architectures of Hugging Face's transformers, with random weights from small configs; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from zoo_model import Calls, registry

MODELS, model = registry("encoders")

# Sizes by the names that configs use; a config takes those it knows.
SMALL: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8, "n_positions": 64, "embedding_size": 32,
    "d_kv": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_decoder_layers": 1, "num_local_experts": 3, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "image_size": 16,
    "patch_size": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
    "state_size": 4, "n_routed_experts": 4, "rotary_dim": 4, "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}  # fmt: skip


def small(kind: str, head: str = "", **sizes: Any) -> nn.Module:
    """A small model.

    Args:
        kind: the architecture's name in transformers.
        head: class of the model; default the one without a head.
        **sizes: of the config, beyond `SMALL`; `...` leaves the config's own.
    """
    import transformers

    known = transformers.AutoConfig.for_model(kind)
    chosen = {name: value for name, value in SMALL.items() if hasattr(known, name)}
    config = type(known)(**{name: v for name, v in {**chosen, **sizes}.items() if v is not ...})
    return getattr(transformers, head)(config) if head else transformers.AutoModel.from_config(config)


def ids(rows: int, length: int) -> torch.Tensor:
    return torch.randint(3, 90, (rows, length))


SHAPES = ((2, 6), (2, 7), (2, 9))


def texts() -> Calls:
    return [((ids(*shape),), {}) for shape in SHAPES]


def masked_texts() -> Calls:
    """With attention masks."""
    calls = []
    for rows, length in SHAPES:
        mask = torch.ones(rows, length, dtype=torch.long)
        mask[0, length - 2 :] = 0
        calls.append(((), {"input_ids": ids(rows, length), "attention_mask": mask}))
    return calls


def pairs() -> Calls:
    return [((), {"input_ids": ids(n, m), "decoder_input_ids": ids(n, m + 1)}) for n, m in SHAPES]


def images(size: int = 16) -> Calls:
    return [((torch.randn(n, 3, size, size),), {}) for n in (2, 3, 5)]


def sounds(length: int = 400) -> Calls:
    return [((torch.randn(2, length + 80 * n),), {}) for n in (0, 1, 3)]


def add(
    group: str, calls: Callable[[], Calls], kind: str, head: str = "", *, ci: bool = False, **options: Any
) -> None:
    """Add an architecture to the zoo."""
    training = options.pop("training", True)
    step = options.pop("step", None)
    name = options.pop("name", kind.replace("-", "_"))

    @model(name, group=group, ci=ci, training=training, step=step, needs="transformers")
    def make() -> Any:
        return small(kind, head, **options), calls()


def encoders() -> None:
    for kind in (
        "roberta",
        "electra",
        "albert",
        "mpnet",
        "deberta-v2",
        "xlm-roberta",
        "nystromformer",
        "ernie",
        "ibert",
    ):
        add("encoders", masked_texts, kind)
    add("encoders", masked_texts, "bert", "BertForSequenceClassification", ci=True)
    add("encoders", masked_texts, "distilbert", dim=32, n_layers=2, n_heads=4, hidden_dim=48)
    add("encoders", texts, "modernbert", reference_compile=False, cls_token_id=1, sep_token_id=2)
    add("encoders", texts, "fnet")
    add(
        "encoders",
        texts,
        "squeezebert",
        q_groups=2,
        k_groups=2,
        v_groups=2,
        post_attention_groups=2,
        intermediate_groups=2,
        output_groups=2,
    )
    add(
        "encoders",
        texts,
        "funnel",
        "FunnelModel",
        num_hidden_layers=...,
        d_model=32,
        d_inner=48,
        n_head=4,
        d_head=8,
        block_sizes=[1, 1],
        num_decoder_layers=1,
    )
    add("encoders", texts, "roformer")
    add("encoders", texts, "convbert", conv_kernel_size=3)
    add("encoders", texts, "mobilebert", intra_bottleneck_size=16, true_hidden_size=16)
    add("encoders", texts, "xlnet", max_position_embeddings=..., d_model=32, n_layer=2, n_head=4, d_inner=48)
    add("encoders", texts, "splinter")
    add("encoders", texts, "longformer", attention_window=4)
    add("encoders", texts, "big_bird")


def decoders() -> None:
    for kind in (
        "mistral",
        "qwen2",
        "qwen3",
        "phi",
        "gemma",
        "stablelm",
        "olmo",
        "olmo2",
        "cohere",
        "starcoder2",
        "granite",
        "glm",
        "smollm3",
        "persimmon",
        "diffllama",
        "doge",
        "ernie4_5",
    ):
        extra = {"sliding_window": 4} if kind in ("mistral", "starcoder2") else {}
        add("decoders", texts, kind, "", **extra)
    add("decoders", texts, "llama", "LlamaForCausalLM", ci=True)
    add("decoders", texts, "phi3", rope_scaling=None)
    add("decoders", texts, "gemma2", query_pre_attn_scalar=8, sliding_window=4)
    add("decoders", texts, "gemma3_text", query_pre_attn_scalar=8, sliding_window=4)
    add("decoders", masked_texts, "gpt2", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4)
    add("decoders", texts, "gpt_neo", num_layers=2, attention_types=[[["global", "local"], 1]], window_size=4)
    add("decoders", texts, "gpt_neox")
    add("decoders", texts, "gptj", n_embd=32, n_layer=2, n_head=4)
    add("decoders", texts, "codegen", n_embd=32, n_layer=2, n_head=4)
    add("decoders", masked_texts, "opt", ffn_dim=48, word_embed_proj_dim=32)
    add("decoders", texts, "bloom", n_layer=2, n_head=4)
    add("decoders", texts, "falcon", head_dim=..., num_kv_heads=2)
    add("decoders", texts, "mpt", d_model=32, n_layers=2, n_heads=4)


def experts() -> None:
    add("mixture of experts", texts, "mixtral", "MixtralForCausalLM", ci=True)
    for kind in ("qwen2_moe", "qwen3_moe", "olmoe", "granitemoe"):
        add("mixture of experts", texts, kind)
    add(
        "mixture of experts",
        texts,
        "gpt_oss",
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
    )
    add(
        "mixture of experts",
        texts,
        "deepseek_v3",
        head_dim=...,
        num_local_experts=...,
        n_routed_experts=8,
        n_group=2,
        topk_group=1,
        q_lora_rank=8,
        kv_lora_rank=8,
        qk_rope_head_dim=4,
        qk_nope_head_dim=4,
        v_head_dim=8,
        first_k_dense_replace=1,
    )
    add(
        "mixture of experts",
        pairs,
        "switch_transformers",
        d_model=32,
        d_ff=48,
        num_layers=2,
        num_sparse_encoder_layers=1,
        num_sparse_decoder_layers=1,
    )


def state_spaces() -> None:
    add("state space", texts, "mamba", time_step_rank=4)
    add("state space", texts, "mamba2", num_heads=4, head_dim=16, n_groups=1, chunk_size=4)
    add("state space", texts, "falcon_mamba", time_step_rank=4)
    add("state space", texts, "rwkv", attention_hidden_size=32)
    add(
        "state space",
        texts,
        "recurrent_gemma",
        num_hidden_layers=3,
        head_dim=...,
        lru_width=32,
        attention_window_size=8,
    )
    add(
        "state space",
        texts,
        "jamba",
        mamba_d_state=4,
        mamba_dt_rank=4,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        use_mamba_kernels=False,
    )


def encoder_decoders() -> None:
    add("encoder-decoders", pairs, "t5", d_model=32, d_ff=48, num_layers=2, num_heads=4, ci=True)
    add("encoder-decoders", pairs, "mt5", d_model=32, d_ff=48, num_layers=2, num_heads=4)
    for kind in ("bart", "mbart", "pegasus", "marian", "blenderbot", "m2m_100", "plbart"):
        add("encoder-decoders", pairs, kind, d_model=32)
    add(
        "encoder-decoders",
        pairs,
        "led",
        d_model=32,
        attention_window=4,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
    )


def vision() -> None:
    for kind in ("vit", "deit", "beit", "dinov2", "dinov3_vit", "vit_msn", "ijepa"):
        add("vision", images, kind, ci=kind == "vit")
    add(
        "vision",
        images,
        "vit_mae",
        decoder_hidden_size=16,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=16,
    )
    add(
        "vision",
        lambda: images(32),
        "swin",
        num_attention_heads=...,
        num_hidden_layers=...,
        image_size=32,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 2],
        window_size=4,
    )
    add(
        "vision",
        lambda: images(32),
        "swinv2",
        num_attention_heads=...,
        num_hidden_layers=...,
        image_size=32,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 2],
        window_size=4,
    )
    for kind in ("convnext", "convnextv2"):
        add("vision", lambda: images(32), kind, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    add(
        "vision",
        lambda: images(32),
        "resnet",
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        layer_type="basic",
    )
    add(
        "vision",
        lambda: images(32),
        "regnet",
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        groups_width=4,
    )
    add("vision", lambda: images(32), "mobilenet_v2", depth_multiplier=0.25, image_size=32)
    add(
        "vision",
        lambda: images(32),
        "mobilevit",
        image_size=32,
        hidden_sizes=[16, 16, 16],
        neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 16],
    )
    add("vision", lambda: images(32), "poolformer", hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1])
    add(
        "vision",
        lambda: images(32),
        "segformer",
        hidden_sizes=[8, 8, 8, 8],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
    )
    add(
        "vision",
        lambda: images(32),
        "cvt",
        num_attention_heads=...,
        num_hidden_layers=...,
        embed_dim=[8, 8, 8],
        depth=[1, 2, 3],
        num_heads=[1, 1, 1],
    )
    add(
        "vision",
        lambda: images(32),
        "focalnet",
        image_size=32,
        embed_dim=8,
        depths=[1, 1],
        hidden_sizes=[8, 8],
        focal_levels=[1, 1],
        focal_windows=[3, 3],
    )
    add(
        "vision",
        lambda: images(32),
        "bit",
        embedding_size=8,
        hidden_sizes=[8, 8],
        depths=[1, 1],
        layer_type="preactivation",
        num_groups=2,
    )
    add(
        "vision",
        lambda: images(32),
        "pvt",
        image_size=32,
        hidden_sizes=[8, 8, 8, 8],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 2],
    )
    add("vision", images, "yolos", image_size=[16, 16], num_detection_tokens=3)


def audio() -> None:
    convolutional: dict[str, Any] = {
        "conv_dim": (8, 8),
        "conv_kernel": (10, 3),
        "conv_stride": (5, 2),
        "mask_time_prob": 0.0,
        "num_feat_extract_layers": 2,
    }
    for kind in ("wav2vec2", "hubert", "wavlm", "unispeech", "data2vec-audio"):
        add("audio", sounds, kind, **convolutional)
    add(
        "audio",
        lambda: [((torch.randn(n, 24, 16),), {}) for n in (2, 3, 5)],
        "audio-spectrogram-transformer",
        max_length=24,
        num_mel_bins=16,
    )
    whisper: dict[str, Any] = {
        "d_model": 32,
        "num_mel_bins": 8,
        "max_source_positions": 10,
        "max_target_positions": 20,
    }
    add(
        "audio",
        lambda: [((torch.randn(2, 8, 20),), {"decoder_input_ids": ids(2, n)}) for n in (3, 4, 6)],
        "whisper",
        **whisper,
    )
    add(
        "audio",
        lambda: [((torch.randn(n, 1, 320),), {}) for n in (2, 3, 5)],
        "encodec",
        num_filters=4,
        hidden_size=8,
        num_lstm_layers=1,
        training=False,
    )


def clip_calls(size: int = 16) -> Calls:
    return [((), {"input_ids": ids(n, 6), "pixel_values": torch.randn(n, 3, size, size)}) for n in (2, 3, 5)]


def multimodal() -> None:
    text = {
        name: SMALL[name]
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "bos_token_id",
            "eos_token_id",
        )
    }
    vision = {
        name: SMALL[name]
        for name in (
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "image_size",
            "patch_size",
        )
    }
    add("multimodal", clip_calls, "clip", text_config=text, vision_config=vision, projection_dim=8)
    add("multimodal", clip_calls, "siglip", text_config=text, vision_config=vision)
    add("multimodal", clip_calls, "blip", text_config=text, vision_config=vision, projection_dim=8)
    add("multimodal", clip_calls, "vilt", image_size=16, max_image_length=-1, training=False)
    state = {"n_positions": 64, "n_layer": 2, "n_head": 4, "hidden_size": 32, "state_dim": 3, "act_dim": 2}

    def episodes() -> Calls:
        def of(n: int) -> dict[str, torch.Tensor]:
            return {
                "states": torch.randn(2, n, 3), "actions": torch.randn(2, n, 2), "rewards": torch.randn(2, n, 1),
                "returns_to_go": torch.randn(2, n, 1), "timesteps": torch.arange(n).expand(2, n),
                "attention_mask": torch.ones(2, n),
            }  # fmt: skip

        return [((), of(n)) for n in (4, 5, 7)]

    add("multimodal", episodes, "decision_transformer", **state)
    series = {
        "prediction_length": 4,
        "context_length": 16,
        "patch_length": 4,
        "patch_stride": 4,
        "num_input_channels": 2,
        "d_model": 16,
        "ffn_dim": 16,
        "num_attention_heads": 2,
    }
    add("time series", lambda: [((torch.randn(n, 16, 2),), {}) for n in (2, 3, 5)], "patchtst", **series)
    add(
        "time series",
        lambda: [((torch.randn(n, 16, 2),), {}) for n in (2, 3, 5)],
        "patchtsmixer",
        **{**series, "num_layers": 2},
    )


def generate(target: Any, tokens: torch.Tensor, steps: int) -> list[Any]:
    """Greedy decoding with the model's own cache."""
    found: list[Any] = [target(tokens, use_cache=True)]
    for _ in range(steps):
        chosen = found[-1].logits[:, -1:].argmax(-1)
        found.append(target(chosen, past_key_values=found[-1].past_key_values, use_cache=True))
    return [result.logits for result in found]


def static_cache(target: Any, tokens: torch.Tensor, steps: int) -> list[Any]:
    """Greedy decoding with a cache of fixed size."""
    from transformers import StaticCache

    config = target.config
    cache = StaticCache(config=config, max_cache_len=16)
    found, chosen, at = [], tokens, 0
    for _ in range(steps + 1):
        where = torch.arange(at, at + chosen.shape[1])
        found.append(target(chosen, past_key_values=cache, position_ids=where[None], use_cache=True).logits)
        at, chosen = at + chosen.shape[1], found[-1][:, -1:].argmax(-1)
    return found


def generation() -> None:
    def prompts() -> Calls:
        return [((ids(1, n), 3), {}) for n in (4, 5, 7)]

    for kind, head in (
        ("llama", "LlamaForCausalLM"),
        ("qwen2", "Qwen2ForCausalLM"),
        ("mistral", "MistralForCausalLM"),
    ):
        add(
            "generation",
            prompts,
            kind,
            head,
            name=f"{kind}_generation",
            step=generate,
            training=False,
            ci=kind == "llama",
        )
    add(
        "generation",
        prompts,
        "gpt2",
        "GPT2LMHeadModel",
        name="gpt2_generation",
        step=generate,
        training=False,
        n_embd=32,
        n_layer=2,
        n_head=4,
    )
    add(
        "generation",
        prompts,
        "llama",
        "LlamaForCausalLM",
        name="llama_static_cache",
        step=static_cache,
        training=False,
    )


for fill in (
    encoders,
    decoders,
    experts,
    state_spaces,
    encoder_decoders,
    vision,
    audio,
    multimodal,
    generation,
):
    fill()
