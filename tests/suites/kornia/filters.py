"""Two image filters."""

import torch
from torch import nn

SIZES = []


def gaussian(size, sigma, dtype):
    x = torch.arange(size, dtype=dtype) - size // 2
    g = torch.exp(-(x**2) / (2 * sigma**2))
    return g / g.sum()


def blur(image, size, sigma):
    k = gaussian(size, sigma, image.dtype)
    kernel = (k[:, None] * k[None, :]).expand(image.shape[1], 1, size, size)
    padded = nn.functional.pad(image, [size // 2] * 4, mode="reflect")
    return nn.functional.conv2d(padded, kernel, groups=image.shape[1])


def sobel(image):
    gray = image.mean(dim=1, keepdim=True)
    k = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=image.dtype)[None, None]
    x = nn.functional.conv2d(gray, k, padding=1)
    y = nn.functional.conv2d(gray, k.transpose(-1, -2), padding=1)
    return (x**2 + y**2 + 1e-6).sqrt()
