"""Which locals are live where."""

from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.liveness import liveness
from resume_cases import CASES


def live_at(fn, mark):
    """Live locals and cells before the load of a marker constant."""
    index = next(i.index for i in decode(fn.__code__) if i.argval == mark)
    live = liveness(fn.__code__)
    return live.locals(index), live.cells(index)


def test_straight_line():
    def f(a, b, unused):
        c = a
        "mark".upper()
        d = b
        return c + d

    assert live_at(f, "mark") == (("b", "c"), ())


def test_branches_and_loops():
    def f(a, b, c):
        while a:
            "mark".upper()
            if b:
                d = 1
            a = a - 1
        return d

    assert live_at(f, "mark") == (("a", "b", "d"), ())


def test_handlers_and_delete():
    def f(a, b, c):
        try:
            a = "mark".upper()
        except ValueError:
            return a, b
        del c
        return None

    assert live_at(f, "mark") == (("a", "b", "c"), ())

    def g(a):
        a = "mark".upper()
        return a

    assert live_at(g, "mark") == ((), ())


def test_touched_is_what_a_continuation_must_own():
    def f(a, b, c):
        "mark".upper()
        a = None
        del b
        return a

    index = next(i.index for i in decode(f.__code__) if i.argval == "mark")
    assert live_at(f, "mark") == (("b",), ())
    assert liveness(f.__code__).touched(index) == ("a", "b")


def test_cells():
    def f(a, b):
        def inner():
            return a, c

        c = "mark".upper()
        return b, inner

    assert live_at(f, "mark") == (("b", "inner"), ("c",))


def test_super_needs_the_first_argument():
    class A:
        def f(self, a):
            "mark".upper()
            return super().f(a)

        def g(self, a):
            "mark".upper()
            return __class__, a

    assert live_at(A.f, "mark") == (("self", "a"), ("__class__",))
    assert live_at(A.g, "mark") == (("a",), ("__class__",))


def test_once_per_code():
    code = test_cells.__code__
    assert liveness(code) is liveness(code)


def test_what_is_loaded_is_live():
    for make, *_ in CASES.values():
        code = make().__code__
        live = liveness(code)
        for i in decode(code):
            if i.opname in ("LOAD_FAST", "DELETE_FAST", "LOAD_DEREF"):
                assert i.argval in (*live.locals(i.index), *live.cells(i.index))
            assert set(live.locals(i.index)) <= set(code.co_varnames)
