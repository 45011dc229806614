"""torch's functions, methods, factories, types and operators by kind (row 43)."""

# ruff: noqa: E501 (one kind a line)

import numpy as np
import torch
import torch.nn.functional as F
from parity.harness import registry
from torch import func

PROGRAMS, program = registry()


def floats(*shape):
    return lambda: [(torch.randn(shape or (3, 4)),) for _ in range(2)]


def sized(*sizes):
    return lambda: [(torch.randn(n, 3),) for n in sizes or (3, 4, 5)]


def on(calls=None, graphs=1, entries=1, **figures):
    def add(fn):
        program(f"api_{fn.__name__}", 43, graphs=graphs, entries=entries, **figures)(
            lambda: (fn, (calls or floats())())
        )
        return fn

    return add


SIZES = {"graphs": 2, "entries": 2, "recompiles": 1}


@on()
def methods(x):
    y = x.abs().clamp(min=0.1).log().t().contiguous().flatten().unfold(0, 4, 2).softmax(-1)
    return (
        y,
        x.std(0),
        x.norm(),
        x.topk(2),
        x.sort(1, descending=True),
        x.new_zeros(2),
        x.type_as(y),
        x.masked_fill(x > 0, 1.0),
    )


@on()
def attributes(x):
    known = (
        x.shape,
        x.dtype,
        x.device,
        x.layout,
        x.ndim,
        x.is_leaf,
        x.requires_grad,
        x.is_cuda,
        x.itemsize,
        x.nbytes,
    )
    return x.T, x.mT, x.H, x.real, x.data, x.grad, known, x.is_sparse, x.is_quantized, x.is_meta


@on(sized(), **SIZES)
def attributes_with_sizes(x):
    return x * x.itemsize, x + x.numel(), x.view(-1, 1) * x.ndim, x[: x.element_size()]


@on()
def operators(x):
    n = (x * 10).long()
    y = x + 1 - x * 2 / 3 // 1 % 2
    return (
        y**2,
        2**x,
        -y,
        +y,
        abs(y),
        ~n,
        n & 3,
        n | 1,
        n ^ 2,
        n << 1,
        n >> 1,
        x @ x.T,
        x == y,
        x != y,
        x < y,
        y >= x,
        1 - x,
        3 // (n * n + 1),
    )


@on()
def operators_in_place(x):
    y = x.clone()
    y += 1
    y -= x
    y *= 2
    y /= 3
    y //= 0.1
    y %= 2
    y **= 2
    n = (x * 10).long()
    n &= 7
    n |= 1
    n ^= 2
    n <<= 1
    n >>= 1
    m = x.clone()
    m @= torch.ones(4, 4)
    return y, n, m


@on()
def functions(x):
    return (
        torch.einsum("ij,kj->ik", x, x), torch.where(x > 0, x, -x), torch.cat([x, x], 1), torch.stack([x, x]).unbind(0),
        torch.meshgrid(x[0], x[1], indexing="ij"), torch.broadcast_tensors(x, x[0]), torch.tensordot(x, x, dims=([1], [1])),
        torch.block_diag(x, x), torch.cartesian_prod(x[0], x[1]), torch.chain_matmul(x, x.T), torch.atleast_2d(x[0], x[1]),
    )  # fmt: skip


@on(floats(2, 4, 8, 8))
def functional(x):
    y = F.conv2d(x, torch.ones(4, 4, 3, 3), padding=1)
    y = F.interpolate(F.max_pool2d(F.gelu(y), 2), scale_factor=2, mode="bilinear")
    y = F.grid_sample(
        y,
        F.affine_grid(torch.eye(2, 3).expand(2, 2, 3), list(x.shape), align_corners=False),
        align_corners=False,
    )
    return (
        F.pad(y, (1, 1)),
        F.normalize(y),
        F.unfold(y, 2),
        F.one_hot(y.argmax(1)[0, 0], 5),
        F.glu(y, 1),
        F.layer_norm(y, (8,)),
    )


@on(floats(4, 4))
def linalg(x):
    a = x @ x.T + torch.eye(4)
    q, r = torch.linalg.qr(a)
    return (
        torch.linalg.inv(a),
        torch.linalg.solve(a, x),
        torch.linalg.svdvals(a),
        q.abs(),
        r.abs(),
        torch.linalg.det(a),
        torch.linalg.norm(a, dim=(0, 1)),
        torch.linalg.cholesky(a),
        torch.linalg.eigh(a).eigenvalues,
    )


@on()
def fft_and_special(x):
    f = torch.fft.rfft(x)
    return (
        torch.fft.irfft(f, n=4),
        torch.fft.fftshift(torch.fft.fft2(x)).abs(),
        torch.special.erf(x),
        torch.special.logit(x, 0.1),
        torch.special.xlog1py(x, x.abs()),
        torch.special.i0(x),
    )


@on()
def results_given(x):
    y, values, indices = torch.empty(3, 4), torch.empty(3), torch.empty(3, dtype=torch.long)
    torch.mul(x, 2, out=y)
    torch.max(x, 1, out=(values, indices))
    z = torch.empty(3, 4)
    same = torch.add(x, 1, out=z)
    return y, values, indices, same is z, torch.matmul(x, x.T, out=torch.empty(3, 3))


@on(lambda: [(torch.randn(3, 4), torch.empty(3, 4)) for _ in range(2)])
def result_given_from_outside(x, y):
    torch.sin(x, out=y)
    return y + 1


@on()
def in_place_methods(x):
    y = x.clone()
    y.add_(1).mul_(2).clamp_(0, 3).t_().squeeze_().unsqueeze_(0)
    y.zero_().fill_(2).copy_(x.T[None])
    z = x.clone()
    z.index_add_(0, torch.tensor([0, 2]), x[:2]).masked_fill_(x > 1, 0).scatter_(1, torch.tensor([[1]]), 5.0)
    F.relu_(z)
    F.dropout(z, 0.5, inplace=True)
    return y, z, torch.relu_(x.clone())


@on(floats(4, 4))
def views_written(x):
    rows = x[1:3]
    column = rows[:, 0]
    column.mul_(10)
    x.view(16)[0] = 7
    x.T[1].add_(1)
    x.diagonal().fill_(3)
    first, second = x.split(2)
    first.sub_(second)
    for part in x.unbind(1):
        part += 1
    return rows._base is x, column


@on()
def arguments_written(x):
    x.add_(1)
    x[0] = 0
    x.data[1] = 9
    x.requires_grad_(False)
    return x * 2


@on(floats(3, 4, 5))
def indices(x):
    i = torch.tensor([0, 2])
    return (
        x[0], x[-1, 1:3], x[..., 2], x[:, None, ::2], x[i], x[:, i], x[i, i], x[[0, 1]], x[0:2, [1, 2]], x[i, :, i], x[None],
        x[slice(None), 1], x[True], x[Ellipsis], x[(1, 2)], x[1][2], x[i[:, None], i[None]], x[..., None], x[np.int64(1)], x[:0],
    )  # fmt: skip


@on(floats(3, 4, 5))
def indices_written(x):
    i = torch.tensor([0, 2])
    x[0] = 1
    x[1, 2:] = torch.ones(5)
    x[..., 0] += 2
    x[i, i] = 3
    x[x > 2] = 0.5
    x[:, [0, 1], None] *= 2
    x[torch.tensor([True, False, False])] = 1
    x[2, 3, 4] = x[0, 0, 0]


@on(floats(3))
def factories(x):
    return (
        torch.zeros(2, 3), torch.ones((2,)), torch.full([2], 7), torch.full((2,), 1.5), torch.arange(5), torch.arange(0, 1, 0.25), torch.eye(2),
        torch.linspace(0, 1, 5), torch.logspace(0, 1, 3), torch.empty(0), torch.zeros_like(x, dtype=torch.int), torch.full_like(x, 2),
        torch.tril_indices(3, 3), torch.scalar_tensor(3), torch.as_tensor([1, 2]), torch.tensor(3), torch.tensor([[1.0], [2]]),
        torch.complex(x, x), torch.hann_window(4), torch.vander(x), torch.LongTensor([3, 1]), torch.FloatTensor([1.0]), torch.LongTensor(2, 3).shape, x.new(x.shape).shape, isinstance(x, torch.FloatTensor), x.type(torch.DoubleTensor),
    )  # fmt: skip


def in_float64(i):
    from contextlib import contextmanager

    @contextmanager
    def around():
        torch.set_default_dtype(torch.float64 if i else torch.float32)
        try:
            with torch.device("meta" if i == 2 else "cpu"):
                yield
        finally:
            torch.set_default_dtype(torch.float32)

    return around()


@on(lambda: [(torch.randn(3),)] * 3, around=in_float64, graphs=3, entries=3, recompiles=2)
def factories_with_defaults(x):
    return (
        torch.zeros(2),
        torch.tensor([1.0, 2]),
        torch.arange(3) / 2,
        torch.get_default_dtype(),
        torch.ones(1).device,
    )


@on()
def types_and_limits(x):
    info, whole = torch.finfo(x.dtype), torch.iinfo(torch.int32)
    y = x.to(torch.float64).to("cpu", dtype=torch.half, memory_format=torch.preserve_format)
    kinds = (
        x.dtype.is_floating_point,
        x.dtype.itemsize,
        torch.bfloat16.is_complex,
        torch.float32 is x.dtype,
        torch.strided == x.layout,
    )
    return (
        x * info.eps,
        x.clamp(info.min, info.max),
        info.bits,
        whole.max,
        info.tiny,
        str(x.dtype),
        x.device.type,
        x.device.index,
        torch.device("cpu", 0),
        y.dtype,
        kinds,
        torch.promote_types(torch.half, torch.int),
    )


@on(sized(), **SIZES)
def sizes_as_values(x):
    shape = x.shape
    assert isinstance(shape, torch.Size)
    both = shape + (1,)
    return (
        x.reshape(both),
        torch.zeros(shape[1:]),
        shape[-1],
        len(shape),
        shape.numel() == x.numel(),
        torch.Size([2, 3]).numel(),
        x.new_ones(*shape[::-1]),
    )


@on(entries=2, breaks=1)
def random_numbers(x):
    torch.manual_seed(3)
    return (
        torch.rand(3),
        torch.randn_like(x),
        torch.randint(0, 9, (4,)),
        torch.randperm(5),
        torch.bernoulli(x.sigmoid()),
        torch.normal(0.0, 1.0, (3,)),
        x.clone().uniform_(),
        F.dropout(x, 0.5),
        torch.multinomial(x.softmax(-1), 2),
    )


@on(entries=4, breaks=3)
def generators(x):
    generator = torch.Generator().manual_seed(5)
    return x + torch.rand(3, 4, generator=generator)


@on(lambda: [(torch.randn(3, 4), torch.Generator().manual_seed(5))] * 2, entries=2, breaks=1)
def generator_given(x, generator):
    return x + torch.randn(3, 4, generator=generator)


@on(graphs=2, entries=3, breaks=2)
def random_state_kept(x):
    state = torch.get_rng_state()
    y = torch.rand(2)
    torch.set_rng_state(state)
    return y, torch.rand(2), x + 1


@on(sized(3, 4, 5), graphs=3, entries=3, recompiles=2)
def tensors_of_traced_values(x):
    n = x.shape[0]
    return (
        torch.tensor([n, n * 2]),
        torch.tensor(n),
        torch.tensor([x.sum(), 1.0]),
        torch.tensor([[n, 1]], dtype=torch.float),
        torch.LongTensor([n, n + 1]),
        torch.as_tensor(n),
        torch.FloatTensor([n]),
    )


@on(lambda: [(np.arange(6.0).reshape(2, 3),), (np.ones((2, 3)),)])
def arrays(a):
    return np.sin(a) + a.mean(0), torch.from_numpy(a) * 2, torch.as_tensor(a).numpy() + 1


@torch.library.custom_op("parity_api::twice", mutates_args=())
def twice(x: torch.Tensor, n: int = 2) -> torch.Tensor:
    return x * n


@twice.register_fake
def _(x, n=2):
    return torch.empty_like(x)


@torch.library.custom_op("parity_api::filled", mutates_args=("x",))
def filled(x: torch.Tensor) -> None:
    x.fill_(3)


@torch.library.custom_op("parity_api::lacking", mutates_args=())
def lacking(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@on()
def operators_by_name(x):
    return (
        torch.ops.aten.mul.Tensor(x, x),
        torch.ops.aten.add(x, 1),
        torch.ops.aten.mul.Scalar(x, 2),
        torch.ops.aten.split(x, 2, 1),
        torch.ops.prims.convert_element_type(x, torch.float64),
    )


@on()
def custom_operators(x):
    y = x.clone()
    filled(y)
    return twice(x), torch.ops.parity_api.twice(x, 3), torch.ops.parity_api.twice.default(x, n=4), y


@on(graphs=0, entries=0, torch_differs="torch raises what its metadata propagation raises")
def custom_operator_without_a_fake(x):
    return lacking(x + 1) * 2


WEIGHT = torch.arange(3.0)


@on(sized(), **SIZES)
def jacfwd_of_sizes(x):
    return func.jacfwd(lambda v: v.sin())(x)


@on(sized(), **SIZES)
def jacrev_of_sizes(x):
    return func.jacrev(lambda v: v.sin() * WEIGHT)(x), func.vmap(func.grad(lambda v: (v * WEIGHT).sum()))(x)


@on(sized(), **SIZES)
def pushed_and_pulled_with_sizes(x):
    out, pull = func.vjp(torch.sin, x)
    return func.jvp(torch.cos, (x,), (x * 2,)), pull(out)


@on(lambda: [(torch.eye(3),)] * 2, graphs=0, breaks=2)
def sparse(x):
    y = x.to_sparse()
    return (y * 2).to_dense() + 1


@on(lambda: [(torch.eye(3).to_sparse(),)] * 2, graphs=0, entries=0, breaks=2)
def sparse_given(x):
    return torch.sparse.mm(x, torch.ones(3, 3)) + 1


@on(
    lambda: [(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),)] * 2, graphs=0, entries=0, breaks=1
)
def nested_given(x):
    return x * 2


@on(lambda: [(torch.ones(2), torch.ones(3))] * 2, breaks=2)
def nested_made(x, y):
    return torch.nested.nested_tensor([x + 1, y]).to_padded_tensor(0.0)


@on(entries=2, breaks=2)
def storage_asked(x):
    return (
        x + x.untyped_storage().size(),
        x.untyped_storage().nbytes(),
        x.storage_offset(),
        x.stride(),
        x.is_contiguous(),
    )


@on(graphs=9, entries=9, breaks=9, recompiles=4)
def numbers_out(x):
    return x.sum().item() + 1, int(x.argmax()), float(x[0, 0]), bool(x[0, 0] > 9), x[0].tolist()


@on(graphs=3, entries=3, breaks=2)
def truth(x):
    y = x * 2
    return y if y.sum() > 0 and torch.all(x < 9) else -y


@on()
def iterated(x):
    return (
        [row.sum() for row in x],
        [*x[0]],
        sum(x[1]),
        max(len(x), 1),
        list(zip(x, x.T)),
        dict(enumerate(x)),
        [row for row in reversed(x)],
    )


@on(graphs=3, entries=3, breaks=2)
def copied(x):
    import copy

    return x.clone(), copy.copy(x), x.detach(), copy.deepcopy(x.detach()), x.new_tensor([1.0])


@on()
def complex_numbers(x):
    z = torch.view_as_complex(x.view(3, 2, 2))
    return (
        z.abs(),
        z.conj().imag,
        torch.view_as_real(z * 1j),
        z.is_complex(),
        torch.polar(x.abs(), x),
        (z + (1 + 2j)).angle(),
        z.resolve_conj(),
    )


@on()
def text_of_a_tensor(x):
    y = x + 1
    return f"{y.shape} {y.dtype} {tuple(y.shape)!r}", y
