"""What a program may do with a number that varies between calls: expressions over `n`, a size of `x` or an argument.

Rows whose first word is `size`: n is `x.shape[0]`; `pair`: m is `y.shape[0]`, too; `int` and `float`: n is an argument.
`item`, `found` and `both`: a tensor t of three integers and a table x, with torch's settings that let a graph go on with
numbers and sizes that only its values tell.
"""

from __future__ import annotations

__all__ = ["EXPRESSIONS", "OTHERWISE", "QUICK"]

_INDEXING = """
size x[n - 1]; x[-n + 1]; x[n // 2]; x[: n // 2]; x[n // 2 :]; x[::n]; x[:, : n - 3]; x[n - 1, 2]; x[(n - 1,)]
size x[[0, n - 1]]; x[None, n - 1]; x[slice(0, n - 1)]; x.flip(0)[n - 1]; x.select(0, n - 1); x.narrow(0, 0, n - 1)
size x.split(n // 2); x.split([1, n - 1]); x.chunk(n); x.unfold(0, n - 1, 1); x.roll(n - 1, 0); x.topk(n - 3, dim=0)
size x.kthvalue(n - 1, 0); x.index_select(0, torch.tensor([n - 1])); x.gather(0, torch.full((1, 4), n - 1))
size x.as_strided((n - 1, 2), (4, 1)); x.diagonal(n - 5); x.tril(n - 5)
size x.clone().index_fill_(0, torch.tensor([0]), n)
size x.reshape(n * 4); x.view(-1, n); x.expand(2, n, 4); x.repeat(n, 1); x.unbind(0); x.__getitem__(n - 1)
int x[n - 1]; x[:n]; x.cumsum(0)[n - 1]; x.split(n); x.chunk(n); x.narrow(0, n - 1, 1); x.sum(n % 2); x.roll(n)
"""

_FACTORIES = """
size torch.tensor(n); torch.tensor([n, 2]); torch.tensor(float(n)); torch.tensor(n / 2); torch.tensor([n, n * 2.5])
size torch.tensor(n, dtype=torch.float32); torch.tensor(x.shape); torch.as_tensor(n); torch.scalar_tensor(n)
size x.new_tensor(n); x.new_tensor([n, 1]); x.new_zeros(n); x.new_full((n,), n); torch.full((n, 2), 1.5)
size torch.full((2,), n)
size torch.zeros(n); torch.ones(n, 3); torch.eye(n); torch.arange(n); torch.arange(0, n, 2); torch.arange(n / 2)
size torch.linspace(0, 1, n); torch.logspace(0, 1, n); torch.rand(n).shape; torch.randint(0, n, (3,)).shape
size torch.randperm(n).shape; torch.tril_indices(n, n); torch.hann_window(n); torch.vander(torch.arange(3.0), n)
size torch.nn.functional.one_hot(torch.arange(3), n); torch.nn.functional.pad(x, (n, 0))
size torch.cartesian_prod(torch.arange(n))
size torch.nn.functional.interpolate(x[None], size=n); torch.nn.functional.interpolate(x[None], scale_factor=n)
size torch.nn.functional.layer_norm(x.t(), (n,)); torch.stack([x[i] for i in range(n)])
size torch.broadcast_to(x, (2, n, 4))
int torch.tensor(n); torch.tensor([[n, 1], [2, n]]); torch.tensor((n,), dtype=torch.float64); torch.zeros(n)
int torch.arange(n)
int torch.full((2,), n); torch.clamp(x, min=n); torch.where(x > 3, n, 0); torch.asarray(n); torch.add(x, x, alpha=n)
float torch.tensor(n); torch.full((2,), n); torch.clamp(x, min=n); x.pow(n); torch.linspace(0, n, 3)
float torch.nn.functional.leaky_relu(x, n); torch.add(x, x, alpha=n); torch.lerp(x, x, n); torch.where(x > n, x, n)
"""

_OPERATORS = """
size x * n; x / n; n / x; x // n; x % n; x ** n; n ** x; n - x.sum(); x * (n / 2); x * (n // 2); x * (n % 4)
size x * (2 ** n)
size x * (n ** 0.5); x * -n; x * abs(n - 5); x * (n << 1); x * (n >> 1); x * (n & 3); x * (n | 1); x * (n ^ 1)
size x * (n > 5); x * (3 < n < 8); x * (n == 6); x * (not n); x * (n and 2); x * (n if n > 5 else 1)
size x * (n is not None)
size x * operator.add(n, 1); x * operator.floordiv(n, 2); x * operator.xor(n, 1); x * operator.index(n)
size x * n.__add__(1)
size x * n.__index__(); x * n.conjugate(); x * n.bit_length(); x * n.bit_count(); n; n + 1; n / 2; n > 5; n ** 2; -n
float x * n; x * (n * 2); n; n + 1; x * (n > 2); x if n > 2 else x * 2; x ** n; x * -n; x * (n // 1); x * (n % 1)
float n == 1.5
pair x * (n > m); x * (n == m); x * (n + m); x * (n // m); x * (n % m); torch.zeros(n, m); x @ y.t()
pair x * (x.shape == y.shape); x * (x.shape < y.shape); torch.broadcast_shapes((n, 1), (1, m))
pair x[: min(n, m)] + y[: min(n, m)]; x * {n: 1, m: 2}[m]; x * len({n, m})
"""

_BUILTINS = """
size x * round(n * 0.7); x * round(n / 3); x * round(n); x * round(n / 3, 1); x[: round(n * 0.7)]; x * int(n * 0.7)
size x * float(n); x * bool(n); hash(n); hash(x.shape); x * (hash(x.shape) == hash(x.shape)); x * min(n, 5)
size x * max(n, 5.5)
size x * max(n / 2, 3.0); x * min(x.shape); x * min([n, 5, 6]); x * max((n, 3), key=lambda v: -v); x * sum(x.shape)
size x * sum([n, 2, n]); x * sum(range(n)); x * len(range(0, n, 2)); x * len([0] * n); x * len("a" * n)
size x * range(n)[-1]
size x * (3 in range(n)); x * (n in (4, 6)); x * (n in [4, 6]); x * (n in {4, 6}); x * {4: 1}.get(n, 2)
size x * sorted([n, 5])[0]
size x * [1, 2, 3, 4, 5, 6, 7, 8, 9, 10][n]; x * [10, 11][n % 2]; x * sorted(x.shape)[0]
size x * list(reversed(x.shape))[0]
size x * x.shape.count(4); x * (x.shape == (4, 4)); x * (list(x.shape) == [4, 4]); x * (4 in x.shape)
size x * x.shape[:1][0]
size x * next(iter(x.shape)); x * [a * b for a, b in zip(x.shape, (2, 3))][0]; x * any(v == 6 for v in x.shape)
size x * isinstance(n, int); x * (type(n) is int); x * pow(n, 2); x * pow(n, 2, 5); x * complex(n).real
size x * bin(n).count("1")
size x * int(str(n)); x * len(str(n)); x * len(hex(n)); x * ord(chr(n + 60)); str(n); repr(x.shape); f"{n}"
size [0] * n; "a" * n
size list(range(n)); "{}".format(n); (n, n * 2); {"a": n}; torch.Size([n, 2]); torch.sym_max(n, 5)
size torch.sym_int(n / 2); torch.sym_sqrt(n)
size torch.sym_sum([n, 2, n]); complex(n); x.numel(); len(x); x.stride(); x.t().stride(); x.shape; x.nelement()
int x * (n > 5); str(n); repr(n); "a" + str(n); str((n, 1)); x * [1, 2, 3, 4, 5, 6, 7, 8, 9, 10][n]
int x * sum(range(n)); {n: x}
float x * round(n); x * round(n, 1); x * int(n); x * max(n, 2.0); x * abs(n); int(n); str(n); x * sum([n, 1.0])
float hash(n)
pair x * max(n, m); x * sorted([n, m])[0]
"""

_MATH = """
size x * math.floor(n / 2); x * math.ceil(n / 2); x * math.trunc(n / 2); x * math.sqrt(n); x * math.pow(n, 2)
size x * math.log2(n)
size x * math.log(n); x * math.log(n, 2); x * math.log10(n); x * math.log1p(n); x * math.exp(n / 10)
size x * math.expm1(n / 10)
size x * math.fabs(n); x * math.fmod(n, 3); x * math.remainder(n, 3); x * math.copysign(n, -1); x * math.hypot(n, 3)
size x * math.dist((n,), (3,)); x * math.prod(x.shape); x * math.fsum([n, 2]); x * math.frexp(n)[1]
size x * math.modf(n / 3)[0]
size x * math.ldexp(n, 2); x * math.cos(n); x * math.sin(n); x * math.tan(n); x * math.acos(1 / n)
size x * math.asin(1 / n)
size x * math.atan(n); x * math.atan2(n, 3); x * math.cosh(n / 10); x * math.sinh(n / 10); x * math.tanh(n)
size x * math.acosh(n)
size x * math.asinh(n); x * math.atanh(1 / n); x * math.erf(n); x * math.erfc(n); x * math.gamma(n)
size x * math.lgamma(n)
size x * math.degrees(n); x * math.radians(n); x * math.nextafter(n, 100); x * math.ulp(n); x * math.gcd(n, 6)
size x * math.lcm(n, 6); x * math.isqrt(n); x * math.comb(n, 2); x * math.perm(n, 2); x * math.factorial(n)
size x * math.isfinite(n); x * math.isnan(n); x * math.isinf(n); x * math.isclose(n, 4)
int x * math.gcd(n, 6)
float x * math.floor(n); x * math.ceil(n); x * math.trunc(n); x * math.sqrt(n); x * math.exp(n); x * math.log(n)
float math.isnan(n)
float math.isfinite(n); math.isclose(n, 1.5); x * math.pow(n, 2)
pair x * math.gcd(n, m)
"""

_ITEMS = """
item x * t[0].item(); t[0].item(); t[0].item() + 1; x.sum().item(); x * x.sum().item(); int(t[0]); float(t[0])
item bool(t[0])
item x * int(t[0]); x * float(t[0]); x * bool(t[0]); x * (t[0].item() > 2); x[int(t[0])]; x[: int(t[0])]
item operator.index(t[0])
item t.tolist(); t[:2].tolist(); t[0].tolist(); t.view(3, 1).tolist(); x.tolist(); [v + 1 for v in t.tolist()]
item x * sum(t.tolist()); torch.zeros(t.tolist()); torch.tensor(t.tolist()); x.split(t[1:].tolist() + [4])
item sorted(t.tolist())
item max(t.tolist()); min(t.tolist()) * x; t[0].item() in t.tolist(); t[0].item() in (2, 3)
item torch.full((2,), t[0].item())
item torch.zeros(t[0].item()); torch.arange(t[0].item()); x[: t[0].item()]; x[t[0].item()]; x[t[0].item() :]
item x.narrow(0, 0, t[0].item()); x.split(t[0].item()); x.new_zeros(t[0].item())
item torch.repeat_interleave(x[0], t[0].item())
item x.repeat(t[0].item(), 1); x.expand(t[0].item(), 9, 4); x.view(t[2].item(), -1); x if t[0].item() > 2 else -x
item x * max(t[0].item(), 2); x * min(t[0].item(), t[1].item()); x * abs(t[0].item()); x * (t[0].item() // 2)
item x * (t[0].item() / 2); x * round(t[0].item() / 2); x * math.sqrt(t[0].item()); x * math.exp(t[0].item())
item str(t[0].item()); f"{t[0].item()}"; {2: 1, 3: 5, 4: 2}[t[0].item()]; x * (t[0].item() == t[1].item())
item (t[0].item(), x.shape[0]); {"a": t[0].item()}; torch.tensor(t[0].item()); torch.tensor([t[0].item(), 1])
item torch.as_tensor(t[0].item()); torch.sym_max(t[0].item(), 2); torch.nn.functional.pad(x, (t[0].item(), 0))
item t.max().item() * x; x.argmax().item(); x[x.argmax().item() // 4]; (x > 3).any().item()
item x if (x > 3).any() else -x
item x.double()[0, 0].item(); x.to(torch.complex64)[0, 0].item(); t.to(torch.int32)[0].item()
item t.to(torch.uint8).tolist()
item torch.where(x > t[0].item(), x, 0); x.roll(t[0].item(), 0); list(range(int(t[0]))); complex(t[0])
item hash(t[0].item())
found x.nonzero(); x[x > 5]; (x > 5).nonzero().shape[0]; x[x > 5].numel(); x[x > 5].sum() * x[x > 5].shape[0]
found torch.unique(t); torch.unique(t, return_inverse=True); torch.unique_consecutive(t)
found torch.masked_select(x, x > 5)
found torch.repeat_interleave(x[:3], t, dim=0); torch.nonzero(x > 5, as_tuple=True); torch.where(x > 5)
found x[:3][t > 2]
found torch.argwhere(x > 5); torch.nn.functional.one_hot(t); torch.bincount(t)
found torch.zeros((x > 5).nonzero().shape[0])
found torch.cat([x[x > 5], x[x > 7]]); len(x[x > 5]); x[x > 5].mean(); x[x > 5].tolist(); x[x > 5][0]; x[x > 5][:2]
found x if (x > 5).nonzero().shape[0] > 3 else -x; x.nonzero().max(); x[x > 5].view(-1); x.masked_fill(x > 5, 0)
both torch.arange((x > 5).sum().item()); x[x > 5][: t[0].item()]
both torch.zeros((x > 5).nonzero().shape[0], t[0].item())
both x.nonzero()[t[0].item()]; x[x > 5].tolist(); x[: (x > 5).nonzero().shape[0] % 3]
"""

_RAISES = "torch raises in its own code, and leaves the frame eager for good"
_DIVMOD = "torch takes divmod() of a size for an error, and leaves the frame eager for good"
_BEFORE = "torch breaks before the frame's first operation instead of after it"
_WRONG = "torch puts the first call's text into every other's"

# Where figures aren't torch's, and why; results are plain Python's everywhere.
OTHERWISE: dict[str, str] = {
    "size x * divmod(n, 3)[0]": _DIVMOD,
    "size divmod(17, n)": _DIVMOD,
    "float x * divmod(n, 1)[1]": _DIVMOD,
    "size '%d' % n": _DIVMOD,
    "size x * (n in range(20))": _RAISES,
    "size x.nbytes": _RAISES,
    "size torch.sym_ite(n > 5, n, 2)": _RAISES,
    "int format(n, 'd')": _RAISES,
    "int f'{n}'": _WRONG,
    "float f'{n:.2f}'": _WRONG,
    "size x * n.real": _BEFORE,
    "size x * ~n": _BEFORE,
    "item x * len([0] * t[0].item())": _RAISES,
    "item [1, 2, 3, 4, 5, 6, 7, 8][t[0].item()]": _RAISES,
    "item divmod(t[0].item(), 2)": _DIVMOD,
    "found torch.combinations(t)": _RAISES,
    "item isinstance(t[0].item(), int)": "a number that the graph doesn't use is asked of it all the same",
    "size slice(n)": "a size in a slice that is returned stays a symbol",
    "float x * min(n, 2)": "numbers of two types are compared: Python gives back one of them, torch a float",
    "pair x * math.hypot(n, m)": "a tensor that the graph doesn't use is no input",
}

EXPRESSIONS: tuple[str, ...] = tuple(
    f"{line.partition(' ')[0]} {expression.strip()}"
    for text in (_INDEXING, _FACTORIES, _OPERATORS, _BUILTINS, _MATH, _ITEMS)
    for line in text.strip().splitlines()
    for expression in line.partition(" ")[2].split("; ")
) + tuple(OTHERWISE)

QUICK: tuple[str, ...] = (
    "size x[n - 1]", "int x[n - 1]", "size torch.tensor([n, 2])", "size x.new_tensor(n)", "float torch.tensor(n)",
    "size x * round(n * 0.7)", "float x * round(n, 1)", "size hash(x.shape)", "size x * math.gcd(n, 6)",
    "size x * math.isfinite(n)", "size x * math.trunc(n / 2)", "size x * (n ^ 1)", "size x * n.__add__(1)",
    "size x * n.bit_count()", "size x * sorted([n, 5])[0]", "pair x * (x.shape == y.shape)", "size x * (n in (4, 6))",
    'size x * len("a" * n)', "size str(n)", "float x * max(n, 2.0)", "size x * divmod(n, 3)[0]",
    "item t.tolist()", "item x * bool(t[0])", "item x[int(t[0])]", 'item f"{t[0].item()}"', "found x[x > 5][:2]",
)  # fmt: skip
"""Rows that every run of the tests looks at."""
