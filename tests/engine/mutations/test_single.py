"""One thing changes between two calls, a kind of thing a row: what is compiled does as plain Python does."""

import abc
import builtins
import collections
import collections.abc
import contextlib
import functools
import sys
import types

import dynacheck
import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("engine")

ROWS = {}
X = torch.arange(6.0).reshape(2, 3) + 1


def row(make):
    """A row: a function that gives a function, its arguments and a change, with an `undo` where it reaches further."""
    ROWS[make.__name__] = make
    return make


class Lin(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3) * 2)

    def forward(self, x):
        return x * self.w


class Lin2(Lin):
    def forward(self, x):
        return x * self.w + 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Lin()
        self.register_buffer("b", torch.ones(3))
        self.k = 3

    def forward(self, x):
        return self.a(x) + self.b * self.k


@row
def class_of_submodule():
    m = Net()
    return m.forward, (X,), lambda: setattr(m.a, "__class__", Lin2)


@row
def parameters_dict_replaced():
    m = Net()

    def ch():
        m.a._parameters = {"w": nn.Parameter(torch.ones(3) * 5)}

    return m.forward, (X,), ch


@row
def modules_dict_replaced():
    m = Net()

    def ch():
        m._modules = {"a": Lin2()}

    return m.forward, (X,), ch


@row
def instance_dict_shadows_param():
    m = Net()
    return m.forward, (X,), lambda: m.a.__dict__.__setitem__("w", torch.ones(3) * 9)


@row
def register_buffer_over():
    m = Net()
    return m.forward, (X,), lambda: m.register_buffer("b", torch.ones(3) * 4)


@row
def forward_on_instance():
    m = Net()
    return m.forward, (X,), lambda: setattr(m.a, "forward", lambda x: x - 1)


@row
def property_fget_code():
    def get(self):
        return 2.0

    class C:
        p = property(get)

    def f(x, c):
        return x * c.p

    return f, (X, C()), lambda: setattr(get, "__code__", (lambda self: 3.0).__code__)


@row
def metaclass_attr():
    class M(type):
        q = 2.0

    class C(metaclass=M):
        pass

    def f(x):
        return x * C.q

    return f, (X,), lambda: setattr(M, "q", 3.0)


@row
def metaclass_property():
    class M(type):
        @property
        def q(c):
            return 2.0

    class C(metaclass=M):
        pass

    def f(x):
        return x * C.q

    return f, (X,), lambda: setattr(M, "q", property(lambda c: 4.0))


@row
def class_attr_over_metaclass():
    class M(type):
        q = 2.0

    class C(metaclass=M):
        pass

    def f(x):
        return x * C.q

    return f, (X,), lambda: setattr(C, "q", 3.0)


@row
def metaclass_call():
    class M(type):
        pass

    class C(metaclass=M):
        def __init__(self):
            self.v = 2.0

    def f(x):
        return x * C().v

    return f, (X,), lambda: setattr(M, "__call__", lambda c: types.SimpleNamespace(v=7.0))


@row
def metaclass_instancecheck():
    class M(type):
        pass

    class C(metaclass=M):
        pass

    def f(x, o):
        return x + 1 if isinstance(o, C) else x - 1

    return f, (X, object()), lambda: setattr(M, "__instancecheck__", lambda c, o: True)


@row
def new_of_class():
    class C:
        def __init__(self):
            self.v = 2.0

    class D(C):
        def __init__(self):
            self.v = 9.0

    def f(x):
        return x * C().v

    return f, (X,), lambda: setattr(C, "__new__", lambda c: object.__new__(D))


@row
def slot_deleted():
    class C:
        __slots__ = ("v",)

    c = C()
    c.v = 2.0

    def f(x, c):
        return x * getattr(c, "v", 5.0)

    return f, (X, c), lambda: delattr(c, "v")


@row
def partial_setstate():
    def g(x, k=1):
        return x * k

    p = functools.partial(g, k=2)

    def f(x, p):
        return p(x)

    return f, (X, p), lambda: p.__setstate__((g, (), {"k": 5}, {}))


@row
def partial_attr():
    def g(x, k=1):
        return x * k

    p = functools.partial(g, k=2)
    p.z = 2.0

    def f(x, p):
        return p(x) * p.z

    return f, (X, p), lambda: setattr(p, "z", 3.0)


@row
def decorator_cell():
    def deco(g):
        n = 2.0

        def w(x):
            return g(x) * n

        def ch():
            nonlocal n
            n = 3.0

        w.ch = ch
        return w

    @deco
    def g(x):
        return x + 1

    def f(x):
        return g(x)

    return f, (X,), lambda: g.ch()


@row
def default_helper_code():
    def h():
        return 2.0

    def g(x, h=h):
        return x * h()

    def f(x):
        return g(x)

    return f, (X,), lambda: setattr(h, "__code__", (lambda: 3.0).__code__)


@row
def kwdefaults_dict():
    def g(x, *, k=2.0):
        return x * k

    def f(x):
        return g(x)

    return f, (X,), lambda: g.__kwdefaults__.__setitem__("k", 3.0)


@row
def sys_modules():
    m = types.ModuleType("changing")
    m.v = 2.0
    sys.modules["changing"] = m

    def f(x):
        import changing

        return x * changing.v

    n = types.ModuleType("changing")
    n.v = 3.0
    return f, (X,), lambda: sys.modules.__setitem__("changing", n)


@row
def module_attr():
    m = types.ModuleType("changing2")
    m.v = 2.0
    sys.modules["changing2"] = m

    def f(x):
        from changing2 import v

        return x * v

    return f, (X,), lambda: setattr(m, "v", 4.0)


@row
def module_getattr():
    m = types.ModuleType("changing3")
    sys.modules["changing3"] = m
    m.__getattr__ = lambda n: 2.0

    def f(x):
        import changing3

        return x * changing3.zz

    return f, (X,), lambda: setattr(m, "__getattr__", lambda n: 6.0)


@row
def module_getattr_added():
    m = types.ModuleType("changing4")
    sys.modules["changing4"] = m

    def f(x):
        import changing4

        return x * getattr(changing4, "zz", 2.0)

    return f, (X,), lambda: setattr(m, "__getattr__", lambda n: 6.0)


@row
def builtins_override():
    def f(x):
        return x * len([1, 2])

    def ch():
        f.__globals__["len"] = lambda a: 9

    ch.undo = lambda: f.__globals__.pop("len")
    return f, (X,), ch


@row
def builtins_module():
    def f(x):
        return x * abs(-2)

    o = builtins.abs

    def ch():
        builtins.abs = lambda a: 9

    ch.undo = lambda: setattr(builtins, "abs", o)
    return f, (X,), ch


@row
def builtins_dict_of_function():
    d = {"__builtins__": {"len": len}, "torch": torch}
    exec("def f(x): return x*len([1,2])", d)
    f = d["f"]
    return f, (X,), lambda: f.__builtins__.__setitem__("len", lambda a: 5)


@row
def function_globals_entry():
    d = {"s": 2.0}
    exec("def g(x): return x*s", d)
    g = d["g"]

    def f(x):
        return g(x)

    return f, (X,), lambda: d.__setitem__("s", 3.0)


@row
def mro_bases():
    class A:
        v = 2.0

    class B:
        v = 3.0

    class C(A):
        pass

    def f(x, c):
        return x * c.v

    return f, (X, C()), lambda: setattr(C, "__bases__", (B,))


@row
def descriptor_get():
    class D:
        def __get__(self, o, t):
            return 2.0

    class C:
        d = D()

    def f(x, c):
        return x * c.d

    return f, (X, C()), lambda: setattr(D, "__get__", lambda self, o, t: 3.0)


@row
def descriptor_becomes_data():
    class D:
        def __get__(self, o, t):
            return 2.0

    class C:
        d = D()

    c = C()
    c.__dict__["d"] = 7.0

    def f(x, c):
        return x * c.d

    return f, (X, c), lambda: setattr(D, "__set__", lambda self, o, v: None)


@row
def enum_value():
    import enum

    class E(enum.Enum):
        A = 2

    def f(x, e):
        return x * e.value

    return f, (X, E.A), lambda: setattr(E.A, "_value_", 5)


@row
def enum_attribute():
    import enum

    class P(enum.Enum):
        E = (1.0,)

        def __init__(self, m):
            self.mass = m

    def f(x, p):
        return x * p.mass

    return f, (X, P.E), lambda: setattr(P.E, "mass", 5.0)


@row
def metaclass_over():
    class M(type):
        def q(c):
            return 2.0

    class C(metaclass=M):
        pass

    def f(x):
        return x * C.q()

    return f, (X,), lambda: setattr(C, "q", lambda: 3.0)


@row
def dict_subclass_missing():
    class D(dict):
        def __missing__(self, k):
            return 2.0

    def f(x, d):
        return x * d["q"]

    return f, (X, D()), lambda: setattr(D, "__missing__", lambda self, k: 3.0)


@row
def dict_subclass_getitem_added():
    class D(dict):
        pass

    def f(x, d):
        return x * d["q"]

    return f, (X, D(q=2.0)), lambda: setattr(D, "__getitem__", lambda self, k: 3.0)


@row
def dataclass_default():
    import dataclasses

    @dataclasses.dataclass
    class C:
        k: float = 2.0

    def f(x):
        return x * C().k

    return f, (X,), lambda: C.__init__.__defaults__ and setattr(C.__init__, "__defaults__", (3.0,))


@row
def generator_fn_code():
    def g():
        yield 2.0

    def h():
        yield 3.0

    def f(x):
        return x * sum(g())

    return f, (X,), lambda: setattr(g, "__code__", h.__code__)


@row
def hook_dict_replaced():
    m = Net()

    def ch():
        m.a._forward_hooks = collections.OrderedDict({1: lambda mod, i, o: o + 10})

    return m.forward, (X,), ch


@row
def global_hook():
    m = Net()
    h = []

    def ch():
        h.append(nn.modules.module.register_module_forward_hook(lambda mod, i, o: o + 10))

    ch.undo = lambda: h[0].remove()
    return m.forward, (X,), ch


@row
def sequential_order():
    m = nn.Sequential(nn.ReLU(), nn.Sigmoid())

    def ch():
        m._modules["0"], m._modules["1"] = m._modules["1"], m._modules["0"]

    return m.forward, (X - 3,), ch


@row
def module_getattr_class():
    class W(Net):
        pass

    w = W()

    def f(x, w):
        return w.a(x)

    return (
        f,
        (X, w),
        lambda: setattr(
            W,
            "__getattr__",
            lambda self, n: (lambda x: x - 50) if n == "a" else nn.Module.__getattr__(self, n),
        ),
    )


@row
def torch_function_replaced():
    o = torch.relu

    def f(x):
        return torch.relu(x - 3)

    def ch():
        torch.relu = lambda x: x * 0 + 5

    ch.undo = lambda: setattr(torch, "relu", o)
    return f, (X,), ch


@row
def contextmanager_fn():
    @contextlib.contextmanager
    def c():
        yield 2.0

    def f(x):
        with c() as k:
            return x * k

    def h():
        yield 3.0

    return f, (X,), lambda: setattr(c.__wrapped__, "__code__", h.__code__)


@row
def exception_class_base():
    class E(ValueError):
        pass

    def f(x):
        try:
            raise E
        except ValueError:
            return x + 1
        except Exception:
            return x - 1

    return f, (X,), lambda: setattr(E, "__bases__", (KeyError,))


def registered(wanted, cls, decide):
    """An abstract class that a class is registered with later, here or one that it is a subclass of."""
    return lambda x: x * 2 if decide(wanted) else x * 3, (X,), lambda: wanted.register(cls)


@row
def class_registered_with_an_abstract_one():
    wanted, cls = abc.ABC.__class__("Wanted", (), {}), type("Cls", (), {})
    obj = cls()
    return registered(wanted, cls, lambda wanted: isinstance(obj, wanted))


@row
def class_registered_for_issubclass():
    wanted, cls = abc.ABC.__class__("Wanted", (), {}), type("Cls", (), {})
    return registered(wanted, cls, lambda wanted: issubclass(cls, (int, wanted)))


@row
def base_class_registered():
    wanted, base = abc.ABC.__class__("Wanted", (), {}), type("Base", (), {})
    obj = type("Cls", (base,), {})()
    return registered(wanted, base, lambda wanted: isinstance(obj, wanted | int))


@row
def class_registered_with_a_subclass_of_the_abstract_one():
    wanted = abc.ABC.__class__("Wanted", (), {})
    below, cls = type(wanted)("Below", (wanted,), {}), type("Cls", (), {})
    obj = cls()
    return lambda x: x * 2 if isinstance(obj, wanted) else x * 3, (X,), lambda: below.register(cls)


@row
def user_class_registered_as_a_sequence():
    cls = type("Cls", (), {})
    obj = cls()
    return (
        lambda x: x * 2 if isinstance(obj, collections.abc.Set) else x * 3,
        (X,),
        lambda: collections.abc.Set.register(cls),
    )


def told(fn, args):
    try:
        return fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.fixture(autouse=True)
def modules_as_before():
    yield
    for name in [name for name in sys.modules if name.startswith("changing")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ROWS)
def test_a_change_is_noticed(name):
    results = []
    for compile_it in (lambda fn: fn, lambda fn: dynacheck.compile(fn, backend="eager")):
        fn, args, change = ROWS[name]()
        called = compile_it(fn)
        with dynacheck.observe() as seen:
            found = [told(called, args), told(called, args)]
            change()
            try:
                found += [told(called, args), told(called, args)]
            finally:
                getattr(change, "undo", lambda: None)()
        results.append(found)
    assert seen.graphs and [call.outcome for call in seen.calls][:2] == ["miss", "hit"]
    for plain, ours in zip(*results, strict=True):
        assert torch.equal(plain, ours) if isinstance(plain, torch.Tensor) else plain == ours
    assert not torch.equal(results[0][0], results[0][2])
