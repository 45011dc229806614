"""Calls of torch that give something else than a tensor, or a tensor that a graph can't return (row 37)."""

import torch
from parity.harness import registry

PROGRAMS, program = registry()


def returning(name, call, *, graphs, breaks):
    @program(f"result_of_{name}", 37, graphs=graphs, breaks=breaks)
    def _():
        def f(x):
            y = x + 1
            found = call(x)
            return y * 2, found

        return f, [(torch.ones(3),), (torch.ones(3),)]


for name, call in {
    "storage_offset": lambda x: x[1:].storage_offset(),
    "is_conj": lambda x: x.is_conj(),
    "is_neg": lambda x: x.is_neg(),
    "is_inference": lambda x: x.is_inference(),
    "is_pinned": lambda x: x.is_pinned(),
    "is_shared": lambda x: x.is_shared(),
    "is_set_to": lambda x: x.is_set_to(x),
    "is_same_size": lambda x: torch.is_same_size(x, x),
    "result_type": lambda x: torch.result_type(x, 1),
    "get_num_threads": lambda x: torch.get_num_threads(),
    "device_count": lambda x: torch.cuda.device_count(),
    "is_inference_mode_enabled": lambda x: torch.is_inference_mode_enabled(),
    "get_default_device": lambda x: torch.get_default_device(),
    "resize": lambda x: x.clone().resize_(2),
    "resize_as": lambda x: x.clone().resize_as_(x),
    "zeros_that_require_grad": lambda x: torch.zeros(3, requires_grad=True),
}.items():
    # the break splits `f` at the call and the callee, of which some compute something
    computes = name in ("storage_offset", "resize", "resize_as")
    returning(name, call, graphs=2 + computes, breaks=2)

for name, call in {
    "dim": lambda x: (x.dim(), x.numel(), x.element_size(), x.is_contiguous(), x.get_device(), x.stride()),
    "dtype": lambda x: (
        x.dtype,
        x.device,
        x.layout,
        x.is_floating_point(),
        x.is_complex(),
        torch.is_tensor(x),
    ),
    "finfo": lambda x: (torch.finfo(x.dtype).max, torch.promote_types(x.dtype, torch.float64)),
    "broadcast_shapes": lambda x: torch.broadcast_shapes(x.shape, (3, 1)),
    "is_grad_enabled": lambda x: (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.is_autocast_enabled(),
    ),
    "deterministic": lambda x: torch.are_deterministic_algorithms_enabled(),
}.items():
    returning(name, call, graphs=1, breaks=0)
