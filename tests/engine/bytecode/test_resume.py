"""Functions split at every instruction: prefix + resume function must behave as the whole."""

import gc
import sys
import weakref
from types import FunctionType

import pytest
from dynacheck.bytecode.assemble import assemble
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.flow import BlockKind, blocks, flow
from dynacheck.translate.resume import (
    ResumeLayout,
    attribute,
    load_resume,
    origin,
    resume_code,
    why_not_resumable,
)
from resume_cases import CASES, LOG, Manager, note
from splitting import layout_at, outcome, split, with_code


def splittable(code):
    """(index, layout) of every place where a static layout is known."""
    for index in range(len(decode(code))):
        layout = layout_at(code, index)
        if not isinstance(layout, str):
            yield index, layout


@pytest.mark.parametrize("name", CASES)
def test_split_everywhere(name):
    make, args, kwargs = CASES[name]
    expected = outcome(make(), args, kwargs)
    code = make().__code__
    places = list(splittable(code))
    assert len(places) > 3
    for index, layout in places:
        fn = make()
        got = outcome(with_code(fn, split(fn.__code__, index, layout)), args, kwargs)
        assert sys.exc_info() == (None, None, None)
        assert got == expected, (index, decode(code)[index])


@pytest.mark.parametrize("name", CASES)
def test_split_a_resume_function_again(name):
    make, args, kwargs = CASES[name]
    expected = outcome(make(), args, kwargs)
    code = make().__code__
    for index, layout in list(splittable(code))[1::7]:
        first = resume_code(code, index, layout)
        for again, inner in list(splittable(first.code))[::5]:
            fn = make()
            resume = resume_code(fn.__code__, index, layout)
            second = resume_code(resume.code, again, inner)
            assert attribute(second.code, len(decode(second.code)) - 1)[0] is fn.__code__
            outer = split(fn.__code__, index, layout, through=lambda c: split(c, again, inner))
            assert outcome(with_code(fn, outer), args, kwargs) == expected, (index, again)


def two(a, b):
    c = note(a)
    return c + b


def test_one_code_per_place_layout_and_parent():
    index, layout = list(splittable(two.__code__))[-1]
    made = resume_code(two.__code__, index, layout)
    assert resume_code(two.__code__, index, ResumeLayout(layout.depth, layout.locals)) is made
    assert resume_code(two.__code__, index, ResumeLayout(layout.depth, ("a", *layout.locals))) is not made
    twin = two.__code__.replace()
    assert twin == two.__code__
    assert resume_code(twin, index, layout).code is not made.code


def test_resume_code_dies_with_its_parent():
    code = two.__code__.replace()
    index, layout = list(splittable(code))[-1]
    dead = weakref.ref(resume_code(code, index, layout).code)
    assert dead() is not None
    del code
    gc.collect()
    assert dead() is None


def test_names_lines_and_arguments():
    def outer(self, x):
        y = x + 1

        def inner():
            return y, self

        z = note(x)
        return inner, z

    code = outer.__code__
    index = max(i for i, layout in splittable(code) if layout.depth)
    resume = resume_code(code, index, layout_at(code, index))
    new = resume.code
    line = decode(code)[index].lineno
    assert new.co_firstlineno == line
    assert (new.co_name, new.co_qualname) == (
        code.co_name,
        code.co_qualname,
    )  # in tracebacks, logs and reports
    assert new.co_filename == code.co_filename
    assert new.co_freevars == code.co_cellvars + code.co_freevars and new.co_cellvars == code.co_cellvars
    assert new.co_varnames[: new.co_argcount] == (
        *(f"___stack{i}" for i in range(len(resume.stack))),
        *resume.locals,
    )


def test_attribution():
    code = two.__code__
    index, layout = list(splittable(code))[-2]
    resume = resume_code(code, index, layout)
    found = origin(resume.code)
    assert found.code is code and found.resumed_at == index and origin(code) is None
    new, old = decode(resume.code), decode(code)
    assert len(found.indexes) == len(new)
    for instruction in new:
        at, where = attribute(resume.code, instruction.index)
        assert at is code
        if where is not None and instruction.opname != "NOP":
            assert (instruction.opname, instruction.lineno) == (old[where].opname, old[where].lineno)
    assert attribute(code, 3) == (code, 3)


def test_refusals():
    def handles(x):
        try:
            return 1 / x
        except ZeroDivisionError:
            return note(x)

    def generates():
        yield 1

    decoded = decode(handles.__code__)
    inside = next(i.index for i in decoded if i.opname == "CHECK_EXC_MATCH")
    assert "exception being handled" in why_not_resumable(handles.__code__, inside)
    assert "generator" in why_not_resumable(generates.__code__, 5)
    index, layout = list(splittable(two.__code__))[-1]
    with pytest.raises(ValueError, match="stack holds"):
        resume_code(two.__code__, index, ResumeLayout(layout.depth + 1, layout.locals))
    with pytest.raises(ValueError, match="distinct locals"):
        resume_code(two.__code__, index, ResumeLayout(layout.depth, ("nonsense",)))
    with pytest.raises(ValueError, match="generator"):
        resume_code(generates.__code__, 5, ResumeLayout(0))


def test_unbound_locals_stay_unbound():
    def maybe(x):
        note("here")
        if x:
            y = 1
        note("there")
        return y

    code = maybe.__code__
    index = [i.index for i in decode(code) if i.opname == "POP_TOP"][-1]
    unbound = resume_code(code, index, ResumeLayout(flow(decode(code)).depths[index]))
    bound = resume_code(code, index, ResumeLayout(flow(decode(code)).depths[index], ("y",)))
    assert FunctionType(bound.code, {})(None, 5) == 5
    with pytest.raises(UnboundLocalError, match="'y'"):
        FunctionType(unbound.code, {})(None)


def test_passed_values_are_not_kept_alive():
    class Thing:
        pass

    def lives(thing):
        watch = weakref.ref(thing)
        note("split")
        del thing
        return watch()

    code = lives.__code__
    index = [i.index for i in decode(code) if i.opname == "POP_TOP"][0]
    rewritten = with_code(lives, split(code, index, layout_at(code, index)))
    seen = rewritten(Thing())
    # while a hook of anybody's is set, CPython keeps the arguments of every call until it returns
    assert seen is None or lives(Thing()) is not None


def entered(code, resume):
    """A function that calls a resume function with its arguments: stack, locals, enters."""
    names = resume.code.co_varnames[: resume.argcount]

    def template(*values):
        pass

    build = Builder(template.__code__)
    load_resume(build, resume)
    build.load_fast("values")
    build.call_function_ex()
    build.return_value()
    assert len(names) == resume.argcount
    return FunctionType(assemble(build), globals())


def in_blocks(x):
    with Manager("outer"):
        with Manager("inner", swallow=x == 2):
            note("body")
            y = 1 // x
        note("between")
    return "end"


def test_blocks_are_entered_again():
    code = in_blocks.__code__
    decoded = decode(code)
    index = next(i.index for i in decoded if i.argval == "//")
    around = blocks(decoded, index)
    assert [block.kind for block in around] == [BlockKind.WITH, BlockKind.WITH]
    exits = tuple(block.exit_position for block in around)
    layout = ResumeLayout(flow(decoded).depths[index], ("x",), blocks=exits)
    run = entered(code, resume_code(code, index, layout))

    def go(x, inner_enter=None):
        LOG.clear()
        managers = Manager("outer", swallow=inner_enter is not None), Manager("inner")
        values = [manager.__exit__ for manager in managers]
        if sys.version_info >= (3, 14):
            values = [part for value in values for part in (type(value.__self__).__exit__, value.__self__)]
        enters = [managers[0].__enter__, inner_enter or managers[1].__enter__]
        return run(*values, 1, x, x, *enters), LOG

    enters = ["enter outer", "enter inner"]
    assert go(1) == ("end", [*enters, "exit inner None", (("between",), {}), "exit outer None"])
    with pytest.raises(ZeroDivisionError):
        go(0)
    assert LOG == [*enters, "exit inner ZeroDivisionError", "exit outer ZeroDivisionError"]

    def fails():
        raise KeyError("enter")

    # what the inner block's entering raises meets the outer block, which swallows it
    assert go(1, fails) == ("end", ["enter outer", "exit outer KeyError"])


@pytest.mark.skipif(sys.version_info < (3, 14), reason="saved instruction offsets are objects before 3.14")
def test_not_where_an_offset_is_on_the_stack():
    def f(manager):
        with manager:
            note("in")

    decoded = decode(f.__code__)
    handler = next(i.index for i in decoded if i.opname == "PUSH_EXC_INFO")
    assert why_not_resumable(f.__code__, handler) == (
        "at the edge of a handler, with an instruction offset on the stack"
    )
