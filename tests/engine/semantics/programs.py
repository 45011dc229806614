"""Small programs, each with one thing that frames do, as makers of (function, arguments)."""

from __future__ import annotations

import torch

PROGRAMS = {}


"""Makers of (function, arguments), by name."""


def program(make):
    PROGRAMS[make.__name__] = make
    return make


X = torch.arange(3.0)


class Box:
    pass


@program
def swap_attrs():
    def f(b, x):
        b.a, b.b = b.b, b.a
        b.c = x + 1
        return b.a

    b = Box()
    b.a = 1
    b.b = torch.ones(3)
    return f, (b, X)


@program
def list_mut():
    def f(l, x):
        l.append(x * 2)
        l[0] = l[1]
        y = l.pop()
        l.insert(0, y + 1)
        return l, len(l)

    return f, ([X, X + 1], X)


@program
def dict_mut():
    def f(d, x):
        d["n"] = d.get("n", 0) + 1
        d["y"] = x + d["n"]
        del d["a"]
        d.setdefault("q", []).append(x)
        return list(d)

    return f, ({"a": 1, "b": 2}, X)


G = 0


@program
def glob():
    global G
    G = 0

    def f(x):
        global G
        G += 1
        return x + G

    return f, (X,)


@program
def closure_counter():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n, n

    return f, (X,)


@program
def ret_closure():
    def f(x):
        k = x + 1
        m = 3

        def g(z):
            nonlocal m
            m += 1
            return z * k + m

        r = g(x)
        return g, r, m

    return f, (X,)


@program
def brk_in_expr():
    def f(x):
        y = [x + 1, x * 2, print("p") or x, {"a": x - 1}]
        return y

    return f, (X,)


@program
def brk_kwargs():
    def h(a, *, b, c):
        return a + b * c

    def f(x):
        return h(x + 1, b=print("p") or x, c=x * 3)

    return f, (X,)


@program
def brk_closure():
    def f(x):
        k = x + 1

        def g(z):
            return z * k

        print("hi")
        k = k + 1
        return g(x)

    return f, (X,)


@program
def brk_cellarg():
    def f(x, n):
        def g(z):
            return z * n + x

        x = x + 1
        print("hi")
        n = n + 1
        return g(x)

    return f, (X, 2)


@program
def brk_unbound():
    def f(x):
        if x.shape[0] == 3:
            y = x + 1
        else:
            q = 1
        print("z")
        try:
            return q
        except UnboundLocalError as e:
            return str(e), y

    return f, (X,)


@program
def brk_effects():
    def f(b, x):
        b.a = x + 1
        print("eff", b.a)
        b.a = b.a * 2
        return b.a

    return f, (Box(), X)


@program
def brk_iter():
    def f(x):
        it = iter([1, 2, 3])
        a = next(it)
        print("it")
        return x * a + sum(it)

    return f, (X,)


@program
def item():
    def f(x):
        s = x.sum().item()
        return x * s

    return f, (X,)


@program
def datadep():
    def f(x):
        y = x + 1
        if (y > 0).all():
            z = y * 2
        else:
            z = y * 3
        return z + y

    return f, (X,)


@program
def gen():
    def f(x):
        def g(n):
            for i in range(n):
                r = yield x * i
                if r:
                    yield r

        it = g(3)
        a = next(it)
        b = it.send(x + 5)
        return a, b, list(it)

    return f, (X,)


@program
def star():
    def f(x, *a, k=1, **kw):
        def h(*b, **c):
            return b, c

        return h(x, *a, **kw, k=k), {**kw, "z": x}

    return f, (X, 1, 2)


@program
def exc():
    def f(x):
        try:
            raise ValueError("boo", 3)
        except (KeyError, ValueError) as e:
            r = e.args
        finally:
            x = x + 1
        return x, r

    return f, (X,)


@program
def exc_out():
    def f(b, x):
        b.n = getattr(b, "n", 0) + 1
        y = x + 1
        raise ValueError(f"bad {b.n}")

    return f, (Box(), X)


@program
def comp():
    def f(x):
        return (
            [x * i for i in range(3) if i % 2 == 0],
            {i: x + i for i in range(2)},
            {i for i in (1, 2)},
            list(map(lambda v: v + x, [1, 2])),
            list(zip([1, 2], [x, x + 1])),
            sorted([3, 1, 2], key=lambda v: -v),
            sum(x for _ in range(3)),
        )

    return f, (X,)


@program
def alias():
    def f(a, b):
        a.append(1)
        b.append(2)
        return a is b, len(a)

    l = []
    return f, (l, l)


@program
def fmt():
    def f(x):
        return f"{x.shape[0]:03d} {x.dtype} {3.5:.2f} {'a'!r}", x + 1

    return f, (X,)


@program
def inplace():
    def f(x):
        y = x.clone()
        y += 1
        y[0] = 5
        y.mul_(2)
        x.add_(1)
        return y, x

    return f, (X.clone(),)


@program
def views():
    def f(x):
        v = x[1:]
        v.zero_()
        return x, v.shape, x.t().is_contiguous(), x.size(0)

    return f, (X.clone(),)


@program
def walrus():
    def f(x):
        if (n := x.shape[0]) > 2 and 1 < n <= 3:
            return x * n
        return x

    return f, (X,)


@program
def matchs():
    def f(x, v):
        match v:
            case {"k": int(n), **rest}:
                return x * n, rest
            case [a, *b]:
                return x + a, b
            case _:
                return x

    return f, (X, {"k": 2, "z": 1})


@program
def nested_brk():
    def a(x):
        print("a")
        return x + 1

    def b(x):
        return a(x) * 2

    def f(x):
        return b(x) + b(x + 1)

    return f, (X,)


@program
def autoc():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y, y.dtype

    return f, (torch.eye(3),)


@program
def deflt():
    def f(x, acc=[]):
        acc.append(1)
        return x * len(acc)

    return f, (X,)


@program
def del_():
    def f(x):
        y = x + 1
        del y
        try:
            y
        except NameError as e:
            return type(e).__name__, x * 2

    return f, (X,)


@program
def tens_attr():
    def f(x):
        return x.T, x.real, x.dtype == torch.float32, x.device.type, x.data + 1, x.ndim, x.grad

    return f, (torch.ones(2, 3),)


@program
def kwonly():
    def f(x, /, y, *, z=2):
        return x + y * z

    return (lambda x: f(x, y=3)), (X,)


@program
def unpack():
    def f(x):
        a, *b, c = [x, 1, 2, x + 1]
        (d, e), g = (1, 2), 3
        q, r = torch.split(torch.arange(4), 2)
        m = x.max(dim=0)
        return a, b, c, d, e, g, q, r, m.values, m[1]

    return f, (X,)
