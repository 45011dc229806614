"""Code taken apart and put together is the same code; new slots leave the old behaviour."""

import pytest
from code_objects import code_objects
from dynacheck.bytecode.assemble import Shape, assemble, assemble_shape
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.copying import Copier, rebuild
from dynacheck.bytecode.decode import decode
from dynacheck.bytecode.ops import Cover, Label
from resume_cases import CASES
from splitting import outcome, with_code

SAME = (
    "co_code co_exceptiontable co_consts co_names co_varnames co_cellvars co_freevars co_flags co_stacksize "
    "co_argcount co_posonlyargcount co_kwonlyargcount co_name co_qualname co_filename co_firstlineno"
).split()
GENERATORS = 0x20 | 0x80 | 0x200


def check_round_trip(code):
    new = rebuild(code)
    for name in SAME:
        assert getattr(new, name) == getattr(code, name), (name, code)
    assert list(new.co_positions()) == list(code.co_positions())
    if not code.co_flags & GENERATORS and code.co_name != "<module>":
        builder = Builder(code)
        Copier(builder, decode(code), verbatim=True).copy_range(0, len(decode(code)))
        tables = {"names": builder.names, "consts": builder.consts}
        computed = assemble_shape(builder.ops, Shape.of(code), code, **tables)
        assert computed.co_stacksize == max(code.co_stacksize, 1)


def test_round_trip():
    for code in code_objects(every=9):
        check_round_trip(code)


@pytest.mark.slow
def test_round_trip_everywhere():
    for code in code_objects():
        check_round_trip(code)


def copied(code, **options):
    """The code with its body copied into a new builder: other slot numbers, own prologue."""
    builder = Builder(code)
    copier = Copier(builder, decode(code))
    copier.copy_range(decode(code).start, len(decode(code)))
    return assemble(builder, **options)


@pytest.mark.parametrize("name", CASES)
def test_extra_locals_after_the_arguments(name):
    make, args, kwargs = CASES[name]
    expected = outcome(make(), args, kwargs)
    fn = make()
    code = fn.__code__
    extra = ["___captured", *(f"___more{i}" for i in range(20))]
    new = copied(code, extra_locals=extra)
    nargs = decode(code).nargs
    assert new.co_varnames[: nargs + 1] == (*code.co_varnames[:nargs], "___captured")
    for attribute in ("co_freevars", "co_cellvars", "co_flags", "co_argcount", "co_name", "co_qualname"):
        assert getattr(new, attribute) == getattr(code, attribute)
    assert outcome(with_code(fn, new), args, kwargs) == expected
    assert handlers(new) == handlers(code)


def handlers(code):
    """(opname, handler's opname, depth, lasti) of all instructions but those that a copy splits."""
    decoded = decode(code)
    rows = []
    for i in decoded:
        if "FAST" not in i.opname and i.index >= decoded.start:
            h = i.handler
            rows.append((i.opname, h and (decoded[h.target].opname, h.depth, h.lasti)))
    return rows


def test_positional():
    def f(a, /, b, *c, d, **e):
        return a, b, c, d, e

    new = copied(f.__code__, positional=True)
    f.__code__ = new
    f.__kwdefaults__ = None
    assert f(1, 2, 3, (4,), {"x": 5}) == (1, 2, (4,), 3, {"x": 5})
    assert new.co_argcount == 5 and not new.co_kwonlyargcount and not new.co_flags & 0x0C


def test_name_and_line():
    def f(x):
        return x

    new = copied(f.__code__, name="other", firstlineno=f.__code__.co_firstlineno - 3)
    assert (new.co_name, new.co_qualname) == ("other", "other")
    # only RESUME has the first line; what was copied keeps its own
    assert [p[0] for p in new.co_positions()][1:] == [p[0] for p in f.__code__.co_positions()][1:]


def test_many_slots_constants_names_and_far_jumps():
    body = "".join(f"    v{i} = {i}.5 + x\n    n{i}.a{i} = v{i}\n" for i in range(300))
    source = f"def f(x):\n  while x > 0:\n{body}    x -= 1\n  return v299, x\n"
    names = {f"n{i}": type("Box", (), {})() for i in range(300)}
    exec(compile(source, "generated", "exec"), names)
    fn = names["f"]
    new = copied(fn.__code__, extra_locals=["___captured"])
    assert len(new.co_code) > 10_000
    fn.__code__ = new
    assert fn(3) == (300.5, 0) and names["n7"].a7 == 8.5


def test_errors():
    def f(x):
        return x

    builder = Builder(f.__code__)
    builder.jump(builder.label())
    with pytest.raises(ValueError, match="never placed"):
        assemble(builder)
    builder = Builder(f.__code__)
    start = builder.label()
    builder.place(start)
    with pytest.raises(ValueError, match="placed already"):
        builder.place(start)
    builder.nop()
    builder.emit("JUMP_FORWARD", start)
    with pytest.raises(ValueError, match="direction"):
        assemble(builder)
    builder = Builder(f.__code__)
    builder.cover = Cover(Label(), 0, False)
    builder.load_const(None)
    builder.return_value()
    with pytest.raises(ValueError, match="never placed"):
        assemble(builder)
    with pytest.raises(ValueError, match="already a slot"):
        copied(f.__code__, extra_locals=["x"])
    builder = Builder((lambda: (yield)).__code__)
    with pytest.raises(ValueError, match="generators"):
        assemble(builder)
