"""Sentences of varying length, and the batches made of them."""

import torch
from torch import Tensor

PAD = 0


def sentences(count: int, seed: int = 0) -> list[tuple[list[int], int]]:
    """Token ids with a label each; lengths differ."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(5, 30, (count,), generator=generator).tolist()
    made = [torch.randint(1, 100, (length,), generator=generator).tolist() for length in lengths]
    return [(ids, sum(ids) % 2) for ids in made]


def collate(rows: list[tuple[list[int], int]], multiple: int = 32) -> dict[str, Tensor]:
    """A batch, padded to a multiple, so that few sizes are ever seen."""
    longest = max(len(ids) for ids, _ in rows)
    width = -(-longest // multiple) * multiple
    ids = torch.tensor([ids + [PAD] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([label for _, label in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


def batches(count: int, size: int, seed: int = 0) -> list[dict[str, Tensor]]:
    rows = sentences(count * size, seed)
    return [collate(rows[i : i + size]) for i in range(0, len(rows), size)]
