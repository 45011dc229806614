"""The listing shows every instruction and runs no user code."""

from dynacheck.bytecode.assemble import assemble
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.listing import listing
from resume_cases import Manager, note


def sample(x, items):
    with Manager("m") as m:
        for item in items:
            note(item, key=lambda: x)
    return m, "a" * 100, ("t", 1)


def test_shows_everything():
    text = listing(sample.__code__)
    lines = text.splitlines()
    decoded = decode(sample.__code__)
    assert len(lines) == 1 + len(decoded)
    assert lines[0] == f"sample ({__file__}:{sample.__code__.co_firstlineno})"
    for line, instruction in zip(lines[1:], decoded):
        assert f"{instruction.index:>4} {instruction.opname}" in line
        assert (">" in line[:8]) == instruction.is_jump_target
        if instruction.handler is not None:
            assert f"! {instruction.handler.target} keeps {instruction.handler.depth}" in line
    assert "<code sample.<locals>.<lambda>>" in text and "('t', 1)" in text


def test_runs_no_user_code():
    class Loud:
        def __repr__(self):
            raise AssertionError("shown")

        __str__ = __repr__

    def f():
        pass

    build = Builder(f.__code__)
    build.load_const(Loud())
    build.load_const((Loud(), 1))
    build.return_value()
    assert "<Loud>" in listing(assemble(build)) and "(<Loud>, 1)" in listing(assemble(build))
