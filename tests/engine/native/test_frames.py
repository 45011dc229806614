"""Running other code in a frame: signatures, cells, sizes, stack depths."""

import gc
import sys
import weakref

import pytest
from dynacheck import _C

pytestmark = pytest.mark.usefixtures("how")

SIGNATURES = {
    "plain": ("a, b=2", ["1", "1, 3", "b=1, a=5"]),
    "varargs": ("a, b=2, *c", ["1", "1, 3, 5, 6", "*range(9)"]),
    "keywords": ("a, **e", ["1", "1, q=8", "**{'a': 1, 'z': 2}"]),
    "keyword-only": ("a, *, d, k=4", ["1, d=2", "1, k=9, d=0"]),
    "positional-only": ("a, b, /, c=3", ["1, 2", "1, 2, c=7"]),
    "all": ("p, /, a, b=2, *c, d=4, **e", ["0, 1", "0, 1, 3, 5, 6, d=7, q=8", "*range(6), **{'d': 0}"]),
    "none": ("", [""]),
    "forty": (", ".join(f"a{i}" for i in range(40)), [", ".join(map(str, range(40)))]),
}


def names_of(signature):
    return [p.strip("* ").split("=")[0] for p in signature.split(",") if p.strip("* /")]


@pytest.mark.parametrize("kind", SIGNATURES)
def test_every_kind_of_argument_arrives(native, kind):
    signature, calls = SIGNATURES[kind]
    values = "[" + ", ".join(names_of(signature)) + "]"
    ns = native.make(f"def f({signature}): return 'original', {values}\n")
    originals = [eval(f"f({call})", ns) for call in calls]
    with native.rewriting({ns["f"]: native.big(signature, f"'new', {values}, v59")}) as callback:
        for _ in range(2):
            assert [eval(f"f({call})", ns) for call in calls] == [("new", v, 59) for _, v in originals]
    assert [eval(f"f({call})", ns) for call in calls] == originals
    assert len([name for name, _ in callback.seen if name == "f"]) == 1


def test_callback_sees_raw_argument_slots(native):
    ns = native.make("def f(p, /, a, *c, d=4, **e):\n    return lambda: (p, a, c, d, e)\n")
    with native.rewriting({}) as callback:
        ns["f"](0, 1, 2, 3, x=9)
    assert callback.seen[0] == ("f", (0, 1, 4, (2, 3), {"x": 9}))


def test_closures_and_argument_cells(native):
    ns = native.make(
        """
def outer(y):
    x = 10
    def f(a):
        nonlocal x
        x += 1
        return lambda: (a, x, y)
    def g(a):
        nonlocal x
        x += 100
        k1 = k2 = k3 = k4 = k5 = 0
        return lambda: (a, x, y, k1, k2, k3, k4, k5)
    return f, g
"""
    )
    f, g = ns["outer"]("y1")
    with native.rewriting({f: g}):
        assert f(5)() == (5, 110, "y1", 0, 0, 0, 0, 0)
        other, _ = ns["outer"]("y2")  # the same code with another closure
        assert other(6)() == (6, 110, "y2", 0, 0, 0, 0, 0)


def test_del_argument_and_nonlocal(native):
    ns = native.make(
        """
def f(a, b): return 0
def r(a, b):
    def g():
        nonlocal a
        a += 1
        return a
    del b
    x = g(); y = g()
    try:
        b
    except UnboundLocalError:
        return a, x, y
"""
    )
    native.serve(ns["f"], ns["r"])
    with native.on(False):
        assert ns["f"](1, 2) == (3, 2, 3)


def test_zero_argument_super(native):
    ns = native.make(
        """
class A:
    def m(self, a): return ('A', a)
class B(A):
    def m(self, a): return super().m(a)
class C(A):
    def m(self, a):
        k1 = k2 = k3 = a
        return ('new', super().m(a), __class__)
"""
    )
    native.serve(ns["B"].m, ns["C"].m)
    with native.on(False):
        assert ns["B"]().m(3) == ("new", ("A", 3), ns["B"])


def test_nested_rewritten_frames(native):
    ns = native.make(
        "def inner(a): return ('inner', a)\n"
        "def outer(a): return None\n"
        "def inner2(a): return ('inner2', a)\n"
        "def outer2(a):\n    x = inner(a)\n    return ('outer2', x)\n"
    )
    with native.rewriting({ns["inner"]: ns["inner2"], ns["outer"]: ns["outer2"]}):
        for _ in range(3):
            assert ns["outer"](1) == ("outer2", ("inner2", 1))
    assert ns["outer"](1) is None


def test_smaller_code_at_many_depths(native):
    body = "".join(f"  v{i} = a\n" for i in range(100))
    ns = native.make(f"def f(a, *b):\n{body}  return v99\ndef r(a, *b): return -a\n")
    native.serve(ns["f"], ns["r"])

    def down(n):
        assert ns["f"](n, 1) == -n
        if n:
            down(n - 1)

    with native.on(False):
        down(150)


def test_code_bigger_than_a_chunk_uses_the_fallback(native):
    body = "".join(f"  v{i} = a\n" for i in range(5000))
    ns = native.make(f"def f(a): return 0\ndef r(a):\n{body}  return v4999\n")
    native.serve(ns["f"], ns["r"])

    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)
    before = _C.hook_stats()["fallback"]
    with native.on(False):
        for _ in range(50):
            assert ns["f"](thing) is thing
    assert _C.hook_stats()["fallback"] - before == 50
    del thing
    assert alive() is None


DEEPEST = 300 if sys.version_info[:2] == (3, 12) else 400


def test_hit_at_every_stack_depth(native):
    ns = native.make("def f(a): return None\n")
    before = _C.hook_stats()

    def down(n):
        assert ns["f"](n) == ("r", n, 59)
        if n:
            down(n - 1)

    with native.rewriting({ns["f"]: native.big("a", "('r', a, v59)")}):
        down(DEEPEST)
    after = _C.hook_stats()
    assert after["grown"] + after["fallback"] - before["grown"] - before["fallback"] == DEEPEST + 1


def test_first_call_at_every_stack_depth(native):
    new = native.big("a", "('r', a, v59)")
    template = native.make("def f(a): return None\n")["f"]
    callback = native.Rewriter({})

    def down(n):
        f = type(template)(template.__code__.replace(co_name=f"f{n}"), {})
        callback.table[f.__code__] = new
        assert f(n) == ("r", n, 59)
        if n:
            down(n - 1)

    with native.on(callback):
        down(DEEPEST)


def test_recursion_limit_is_reached_and_recovered(native):
    ns = native.make("def f(n): return 0\ndef r(n):\n    a = b = c = d = 1\n    return f(n + 1)\n")

    def depth():
        with pytest.raises(RecursionError) as caught:
            ns["f"](0)
        frames, tb = 0, caught.value.__traceback__
        while tb:
            frames, tb = frames + 1, tb.tb_next
        return frames

    with native.rewriting({ns["f"]: ns["r"]}):
        first, second = depth(), depth()
    assert first > 200 and abs(first - second) <= 1
    other = native.make("def f(n): return 0\n")["f"]
    with native.rewriting({other: native.big("n", "n")}):
        assert other(7) == 7


@pytest.mark.parametrize("limit", [6000])
def test_deep_recursion_with_a_raised_limit(native, limit):
    ns = native.make(
        "def f(a, n=0): return ('original', a)\n"
        "def r(a, n=0):\n    k1 = k2 = k3 = k4 = a\n    return f(a, n - 1) if n else ('new', a)\n"
    )

    def deep():
        with native.rewriting({ns["f"]: ns["r"]}):
            try:
                return ns["f"](1, 5000)
            except RecursionError:
                return "RecursionError"

    was = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        assert native.run_in_thread(deep, 64 << 20) in [("new", 1), "RecursionError"]
    finally:
        sys.setrecursionlimit(was)


def test_references_are_balanced(native):
    ns = native.make("def f(a, *b, **c): return None\n")

    class Thing:
        pass

    thing, fresh = Thing(), Thing()
    alive = weakref.ref(thing)
    with native.rewriting({ns["f"]: native.big("a, *b, **c", "a")}):
        for _ in range(50):
            assert ns["f"](thing, thing, thing, z=thing) is thing
    assert sys.getrefcount(thing) == sys.getrefcount(fresh)
    _C.state(ns["f"].__code__).clear()
    del thing
    assert alive() is None


def test_rewritten_code_sees_locals_and_globals(native):
    ns = native.make(
        "def f(a): return 0\n"
        "def r(a):\n    zz = 3\n    return sorted(locals()), 'r' in globals(), dir() and eval('a + zz')\n"
    )
    native.serve(ns["f"], ns["r"])
    with native.on(False):
        assert ns["f"](3) == (["a", "zz"], True, 6)


def test_builtins_of_the_function_are_kept(native):
    ns = native.make("def f(a): return 0\ndef r(a): return len(a)\n")
    names = {"__builtins__": {"len": lambda a: "patched"}}
    patched = type(ns["f"])(ns["f"].__code__, names)
    del names["__builtins__"]  # too late for a function that exists
    native.serve(ns["f"], ns["r"])
    with native.on(False):
        assert patched([1]) == "patched" and ns["f"]([1]) == 1


def test_rewritten_code_may_return_and_take_generators(native):
    ns = native.make(
        "def f(a): return 0\n"
        "def r(a):\n    k1 = k2 = k3 = 5\n    return (i + k1 for i in range(a))\n"
        "def g(it): return list(it)\n"
        "def h(it):\n    a = b = c = 1\n    return [x * 2 for x in it]\n"
    )
    native.serve(ns["f"], ns["r"])
    native.serve(ns["g"], ns["h"])
    with native.on(False):
        made = ns["f"](3)
        gc.collect()
        assert list(made) == [5, 6, 7]
        for _ in range(3):
            assert ns["g"](x for x in range(3)) == [0, 2, 4]
