"""A tensor whose values are kept scaled to eight bits, and a linear layer that multiplies with it."""

import torch
from torch import nn

LIMIT = 448.0


class ScaledTensor(torch.Tensor):
    """Values in a narrow type and the scale that they were multiplied with."""

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32, device=data.device)

    def __init__(self, data, scale):
        self.data8, self.scale = data, scale

    def __tensor_flatten__(self):
        return ["data8", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return ScaledTensor(inner["data8"], inner["scale"])

    def original(self):
        return self.data8.float() / self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return ScaledTensor(args[0].data8, args[0].scale)
        plain = [a.original() if isinstance(a, ScaledTensor) else a for a in args]
        return func(*plain, **(kwargs or {}))


def scale_of(w):
    return LIMIT / w.abs().amax().clamp(min=1e-12)


def to_scaled(w):
    s = scale_of(w)
    return ScaledTensor((w * s).round().to(torch.int16), s)


class ScaledLinear(nn.Linear):
    def forward(self, x):
        w = self.weight
        s = scale_of(w)
        return nn.functional.linear(x, w + ((w * s).round() / s - w).detach(), self.bias)


def swap(model):
    for name, child in model.named_children():
        if type(child) is nn.Linear:
            new = ScaledLinear(child.in_features, child.out_features)
            new.load_state_dict(child.state_dict())
            setattr(model, name, new)
    return model
