"""More of the small programs: classes, modules, decorators, callables with state."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools

import torch
from engine.semantics.programs import X, program


@dataclasses.dataclass
class D:
    a: object
    b: int = 3

    def twice(self):
        return self.a * 2


@program
def dc():
    def f(x):
        d = D(x + 1)
        d.b += 1
        return d, d.twice()

    return f, (X,)


NT = collections.namedtuple("NT", "x y")


@program
def nt():
    def f(x):
        p = NT(x, x + 1)
        q = p._replace(x=p.y)
        return p, q, q.x

    return f, (X,)


@program
def with_user():
    class CM:
        def __init__(s):
            s.log = []

        def __enter__(s):
            s.log.append("in")
            return s

        def __exit__(s, *a):
            s.log.append(a[0].__name__ if a[0] else None)
            return True

    def f(x):
        with CM() as c:
            y = x + 1
            raise KeyError("q")
        return x, c.log

    return f, (X,)


@program
def prop():
    class A:
        def __init__(s):
            s._v = 2

        @property
        def v(s):
            return s._v

        @v.setter
        def v(s, n):
            s._v = n * 2

        @classmethod
        def k(cls, n):
            return n + 1

        @staticmethod
        def st(n):
            return n * 3

        def __call__(s, x):
            return x * s.v

        def __getitem__(s, i):
            return i

        def __len__(s):
            return 4

    a = A()

    def f(x):
        a.v = a.v + 1
        return a(x), A.k(3), a.st(2), a[5], len(a), bool(a)

    return f, (X,)


@program
def supr():
    class A:
        def f(s, x):
            return x + 1

    class B(A):
        def f(s, x):
            return super().f(x) * 2

    b = B()
    return (lambda x: b.f(x)), (X,)


@program
def mod_buf():
    class M(torch.nn.Module):
        def __init__(s):
            super().__init__()
            s.register_buffer("n", torch.zeros(1))
            s.bn = torch.nn.BatchNorm1d(3)

        def forward(s, x):
            s.n = s.n + 1
            s.n.add_(1)
            return s.bn(x) + s.n

    torch.manual_seed(0)
    m = M()

    def f(x):
        return m(x), m.n.clone(), m.bn.running_mean.clone(), m.bn.num_batches_tracked.clone()

    return f, (torch.randn(2, 3, generator=torch.Generator().manual_seed(0)),)


@program
def ctx_dec():
    @torch.no_grad()
    def h(x):
        return x * 2

    def f(x):
        y = h(x)
        return y, y.requires_grad, torch.is_grad_enabled()

    return f, (X.clone().requires_grad_(),)


@program
def lru():
    @functools.lru_cache
    def h(n):
        return n * 2

    def f(x):
        return x * h(3)

    return f, (X,)


@program
def partial():
    def h(a, b, c=1):
        return a + b * c

    p = functools.partial(h, 2, c=3)

    def f(x):
        return p(x), functools.partial(h, 1)(x)

    return f, (X,)


class Color(enum.Enum):
    R = 1
    B = 2


@program
def enums():
    def f(x, c):
        return (x + 1 if c is Color.R else x - 1), c.name, Color(2), c == Color.R, c in (Color.R,)

    return f, (X, Color.R)
