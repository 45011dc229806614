"""Every builder method does what it says, on the version that runs."""

import sys

import pytest
from dynacheck.bytecode.assemble import assemble
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.operands import BINARY_OPS
from resume_cases import LOG, Manager


class Box:
    def __init__(self, value=None):
        self.value = value

    def add(self, *args, **kwargs):
        return self.value, args, kwargs


def run(write, *args):
    """Let `write(builder)` fill the body of a function of (a, b, c); call it."""

    def body(a=None, b=None, c=None):
        pass

    build = Builder(body.__code__)
    write(build)
    body.__code__ = assemble(build)
    return body(*args)


def returns(*steps):
    """Run steps of (method, arguments …), then return the top."""

    def write(build):
        for name, *arguments in steps:
            getattr(build, name)(*arguments)
        build.return_value()

    return write


def load(*names):
    return [("load_fast", name) for name in names]


@pytest.mark.parametrize("symbol", [s for s in BINARY_OPS if s not in ("@", "@=", "[", "[]")])
def test_binary_op(symbol):
    expected = eval(f"7 {symbol.rstrip('=')} 2")
    assert run(returns(*load("a", "b"), ("binary_op", symbol)), 7, 2) == expected


@pytest.mark.parametrize("symbol", ["<", "<=", "==", "!=", ">", ">="])
def test_compare_op(symbol):
    nan = float("nan")
    for left, right in ((1, 2), (2, 2), (3, 2), (1.5, nan), ("a", "b"), ("a", "a")):
        expected = eval(f"left {symbol} right")
        write = returns(*load("a", "b"), ("compare_op", symbol))
        results = {run(write, left, right) for _ in range(30)}
        assert results == {expected}

    # often enough in one code object to be specialised
    def counts(a, b):
        pass

    build = Builder(counts.__code__)
    build.load_fast("a")
    build.load_fast("b")
    build.compare_op(symbol)
    build.return_value()
    counts.__code__ = assemble(build)
    for left, right in ((1, 2), (2, 2), (3, 2)):
        assert {counts(left, right) for _ in range(100)} == {eval(f"left {symbol} right")}
    assert counts(nan, nan) is (symbol == "!=")


@pytest.mark.parametrize("symbol", ["-", "~", "+", "not"])
def test_unary_op(symbol):
    assert run(returns(*load("a"), ("unary_op", symbol)), 5) == eval(f"{symbol} 5")


def test_is_and_in():
    box = Box()
    assert run(returns(*load("a", "b"), ("is_op",)), box, box) is True
    assert run(returns(*load("a", "b"), ("is_op", True)), box, box) is False
    assert run(returns(*load("a", "b"), ("contains_op",)), 1, [1]) is True
    assert run(returns(*load("a", "b"), ("contains_op", True)), 1, [1]) is False


def test_build():
    abc = load("a", "b", "c")
    assert run(returns(*abc, ("build_tuple", 3)), 1, 2, 3) == (1, 2, 3)
    assert run(returns(*abc, ("build_list", 3)), 1, 2, 3) == [1, 2, 3]
    assert run(returns(*abc, ("build_set", 3)), 1, 2, 3) == {1, 2, 3}
    assert run(returns(*load("a", "b"), ("build_map", 1)), 1, 2) == {1: 2}
    assert run(returns(*abc, ("build_slice", 3)), 1, 2, 3) == slice(1, 2, 3)
    assert run(returns(*abc, ("build_string", 3)), "x", "y", "z") == "xyz"
    extend = returns(
        ("build_list", 0), *load("a"), ("list_append",), *load("b"), ("list_extend",), ("list_to_tuple",)
    )
    assert run(extend, 1, (2, 3)) == (1, 2, 3)
    assert run(returns(("build_map", 0), *load("a"), ("dict_update",)), {"k": 1}) == {"k": 1}
    assert run(returns(*load("a"), ("unpack_sequence", 2), ("build_tuple", 2)), (1, 2)) == (2, 1)


def test_items_and_attributes():
    assert run(returns(*load("a", "b"), ("binary_subscr",)), [5, 6], 1) == 6
    row, box = [1, 2], Box()
    run(returns(*load("c", "a", "b"), ("store_subscr",), *load("a")), row, 0, "new")
    assert row == ["new", 2]
    run(returns(*load("a", "b"), ("delete_subscr",), *load("a")), row, 0)
    assert row == [2]
    run(returns(*load("b", "a"), ("store_attr", "value"), *load("a")), box, 7)
    assert run(returns(*load("a"), ("load_attr", "value")), box) == 7
    run(returns(*load("a"), ("delete_attr", "value"), *load("a")), box)
    assert not hasattr(box, "value")


def test_locals():
    assert run(returns(*load("a"), ("store_fast", "new"), ("load_bound", "new")), 3) == 3
    for after in (("delete_fast", "a"), ("take_fast", "a")):
        with pytest.raises(UnboundLocalError):
            run(returns(after, ("load_fast", "a")), 3)
    assert run(returns(("take_fast", "a")), 3) == 3


def test_a_cell_is_not_a_local():
    def outer(a):
        return lambda: a

    for code in (outer.__code__, outer(1).__code__):
        build = Builder(code)
        for method in (
            build.load_fast,
            build.load_bound,
            build.take_fast,
            build.store_fast,
            build.delete_fast,
        ):
            with pytest.raises(ValueError, match="a is a cell"):
                method("a")


def test_stack():
    abc = load("a", "b", "c")
    assert run(returns(*abc, ("swap",), ("build_tuple", 3)), 1, 2, 3) == (1, 3, 2)
    assert run(returns(*abc, ("copy", 3), ("build_tuple", 4)), 1, 2, 3) == (1, 2, 3, 1)
    assert run(returns(*abc, ("rotate_down", 3), ("build_tuple", 3)), 1, 2, 3) == (3, 1, 2)
    assert run(returns(*abc, ("rotate_up", 3), ("build_tuple", 3)), 1, 2, 3) == (2, 3, 1)
    assert run(returns(*abc, ("pop",), ("build_tuple", 2)), 1, 2, 3) == (1, 2)


def test_globals():
    name = "test_build_global"
    run(returns(*load("a"), ("store_global", name), *load("a")), 9)
    assert globals()[name] == 9
    assert run(returns(("load_global", name))) == 9
    run(returns(("delete_global", name), ("load_const", None)))
    assert name not in globals()


def called(*args, **kwargs):
    return args, kwargs


def test_calls():
    ready = [("load_global", "called")]
    plain = returns(("null_first",), *ready, ("null_last",), *load("a", "b"), ("call", 2))
    assert run(plain, 1, 2) == ((1, 2), {})
    assert run(returns(*ready, ("prepare_call",), *load("a"), ("call", 1)), 1) == ((1,), {})
    keywords = returns(*load("a"), ("load_method", "add"), *load("b", "c"), ("call", 2, ["key"]))
    assert run(keywords, Box(0), 1, 2) == (0, (1,), {"key": 2})
    assert run(returns(*ready, ("prepare_call",), *load("a"), ("call_function_ex",)), (1, 2)) == ((1, 2), {})

    def both(build):
        build.load_global("called", push_null=True)
        build.load_fast("a")
        build.load_fast("b")
        build.call_function_ex(kwargs=True)
        build.return_value()

    assert run(both, (1,), {"k": 2}) == ((1,), {"k": 2})


def test_functions_share_cells():
    def outer(a):
        kept = 1
        return lambda: (kept, a)

    inner = outer(0).__code__

    def write(build):
        build.load_const(10)
        build.store_deref("kept")
        build.make_function(inner, inner.co_freevars)
        build.load_const(20)
        build.store_deref("kept")
        build.load_deref("kept")
        build.build_tuple(2)
        build.return_value()

    build = Builder(outer.__code__)
    write(build)
    outer.__code__ = assemble(build)
    function, kept = outer(5)
    assert function() == (20, 5) if inner.co_freevars[0] == "kept" else (5, 20)
    assert kept == 20

    def simple(build):
        build.make_function((lambda: 3).__code__)
        build.return_value()

    assert run(simple)() == 3


def test_jumps():
    def countdown(build):
        again, done = build.label(), build.label()
        build.place(again)
        build.load_fast("a")
        build.pop_jump_if(False, done)
        build.load_fast("a")
        build.load_const(1)
        build.binary_op("-")
        build.store_fast("a")
        build.load_fast("b")
        build.load_const("x")
        build.list_append(1)
        build.store_fast("b")
        build.jump(again)
        build.place(done)
        build.load_fast("b")
        build.return_value()

    assert run(countdown, 3, []) == ["x", "x", "x"]

    def backward(build):
        again = build.label()
        build.place(again)
        build.load_fast("a")
        build.load_const(1)
        build.binary_op("-")
        build.store_fast("a")
        build.load_fast("a")
        build.pop_jump_if(True, again)
        build.load_fast("a")
        build.return_value()

    assert run(backward, 4) == 0

    def none(build):
        yes, no = build.label(), build.label()
        build.load_fast("a")
        build.pop_jump_if_none(yes)
        build.load_fast("b")
        build.pop_jump_if_not_none(no)
        build.load_const("both")
        build.return_value()
        build.place(yes)
        build.load_const("a is None")
        build.return_value()
        build.place(no)
        build.load_const("b isn't None")
        build.return_value()

    assert [run(none, *pair) for pair in ((None, 1), (1, None), (1, 1))] == [
        "a is None",
        "both",
        "b isn't None",
    ]


def with_block(build):
    handler, after = build.label(), build.label()
    build.load_const("below")
    build.load_fast("a")
    build.enter_with()
    with build.covered(handler, 1 + build.exit_width, lasti=True):
        build.pop()
        build.load_fast("b")
        build.prepare_call()
        build.call(0)
        build.store_fast("c")
    build.exit_with()
    build.jump(after)
    build.with_handler(handler, after, depth=1)
    build.place(after)
    build.load_fast("c")
    build.build_tuple(2)
    build.return_value()


def test_with_block():
    def fails():
        raise KeyError("inside")

    LOG.clear()
    assert run(with_block, Manager("m"), lambda: 5) == ("below", 5)
    assert LOG == ["enter m", "exit m None"]
    with pytest.raises(KeyError):
        run(with_block, Manager("m"), fails)
    assert run(with_block, Manager("m", swallow=True), fails, 0) == ("below", 0)
    assert sys.exc_info() == (None, None, None)
    assert LOG[-1] == "exit m KeyError"


def test_finally():
    def write(build):
        handler = build.label()
        with build.covered(handler, 0):
            build.load_fast("a")
            build.prepare_call()
            build.call(0)
        build.return_value()
        with build.finally_handler(handler):
            build.load_fast("b")
            build.load_const("cleaned")
            build.list_append(1)
            build.pop()

    log = []
    with pytest.raises(ZeroDivisionError):
        run(write, lambda: 1 / 0, log)
    assert log == ["cleaned"] and sys.exc_info() == (None, None, None)
    assert run(write, lambda: 3, log) == 3


def test_cover_that_begins_with_a_call():
    def write(build):
        handler = build.label()
        build.load_fast("a")
        build.prepare_call()
        with build.covered(handler, 0):
            build.call(0)
        build.return_value()
        build.place(handler)
        build.return_value()

    def fails():
        raise KeyError("inside")

    assert repr(run(write, fails)) == "KeyError('inside')"


def test_raise_and_iterate():
    with pytest.raises(ValueError, match="text"):
        run(lambda build: (build.load_fast("a"), build.raise_top()), ValueError("text"))
    assert list(run(returns(*load("a"), ("get_iter",)), [1, 2])) == [1, 2]


def test_constants():
    class Odd:
        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = None

    odd = Odd()
    values = [1, True, 1.0, 0.0, -0.0, "1", b"1", None, ..., odd, (1,), (1.0,), ("a",), 1j]

    def write(build):
        for value in values:
            build.load_const(value)
        build.build_tuple(len(values))
        build.return_value()
        assert build.const_index(1) == build.const_index(1) and build.const_index(odd) == build.const_index(
            odd
        )
        assert build.const_index(("a", "b")) == build.const_index(("a", "b"))

    for got, value in zip(run(write), values):
        assert got is value or (type(got) is type(value) and repr(got) == repr(value))


def test_lines():
    def f(a):
        pass

    build = Builder(f.__code__)
    build.at(1234)
    build.load_fast("a")
    build.at((1235, 1236, 4, 8))
    build.load_attr("missing")
    build.at(None)
    build.return_value()
    code = assemble(build)
    assert [p for p in dict.fromkeys(code.co_positions())][-3:] == [
        (1234, 1234, None, None),
        (1235, 1236, 4, 8),
        (None, None, None, None),
    ]
    f.__code__ = code
    with pytest.raises(AttributeError) as caught:
        f(1)
    assert caught.tb.tb_next.tb_lineno == 1235
