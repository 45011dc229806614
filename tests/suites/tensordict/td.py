"""A dict of tensors with one batch size."""

import torch


class TensorDict:
    made = 0

    def __init__(self, items, batch_size):
        self._items = dict(items)
        self.batch_size = torch.Size(batch_size)

    def __getitem__(self, key):
        return self._items[key]

    def set(self, key, value):
        if value.shape[: len(self.batch_size)] != self.batch_size:
            raise ValueError(f"batch size of {key} is {tuple(value.shape)}, not {tuple(self.batch_size)}")
        self._items[key] = value
        return self

    def replace(self, **items):
        return TensorDict({**self._items, **items}, self.batch_size)

    def apply(self, fn):
        return TensorDict({k: fn(v) for k, v in self._items.items()}, self.batch_size)

    def keys(self):
        return self._items.keys()
