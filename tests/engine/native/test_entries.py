"""Entries, regions and states: validation, order, what lives how long."""

import gc
import itertools
import weakref

import pytest
from dynacheck import _C

PAIR = "def f(a): return 0\ndef r(a):\n    k = w = a\n    return ('r', a)\n"

UNFIT = {
    "one argument more": ("def f(a): pass", "def f(a, b): pass", "number of arguments"),
    "positional-only": ("def f(a, b): pass", "def f(a, /, b): pass", "number of arguments"),
    "keyword-only": ("def f(a, b): pass", "def f(a, *, b): pass", "number of arguments"),
    "varargs": ("def f(a): pass", "def f(a, *b): pass", "flags"),
    "other name": ("def f(a, b): pass", "def f(a, c): pass", "argument names"),
    "other order": ("def f(a, b): pass", "def f(b, a): pass", "argument names"),
    "generator": ("def f(a): pass", "def f(a): yield a", "generator"),
    "coroutine": ("def f(a): pass", "async def f(a): pass", "generator or coroutine"),
    "from a generator": ("def f(a): yield a", "def f(a): pass", "generator"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_code_that_does_not_fit_is_refused(native, kind):
    original, other, message = UNFIT[kind]
    state = _C.state(native.make(original)["f"].__code__)
    with pytest.raises(ValueError, match=f"rewritten code of f has .*{message}"):
        state.add(_C.Entry(None, native.make(other)["f"].__code__, None))
    assert state.entries == ()


def test_free_variables_must_be_the_same(native):
    ns = native.make(
        """
def outer(x, y):
    def none(a): return a
    def one(a): return x
    def both(a): return x, y
    def other(a): return y
    return none, one, both, other
"""
    )
    none, one, both, other = (f.__code__ for f in ns["outer"](1, 2))
    for was, now, message in [
        (none, one, "number of free"),
        (one, other, "other free"),
        (one, both, "number of free"),
    ]:
        with pytest.raises(ValueError, match=message):
            _C.state(was).add(_C.Entry(None, now, None))
    swapped = both.replace(co_freevars=both.co_freevars[::-1])
    with pytest.raises(ValueError, match="another order"):
        _C.state(both).add(_C.Entry(None, swapped, None))
    module = compile("x = 1", "<made>", "exec")
    with pytest.raises(ValueError, match="flags"):
        _C.state(module).add(_C.Entry(None, module, None))


def test_argument_types_are_checked(native):
    code = native.make(PAIR)["f"].__code__
    for args in [(1, code, None), (None, 1, None), (None, code, object())]:
        with pytest.raises(TypeError):
            _C.Entry(*args)
    for call in (_C.state, _C.peek_state, _C.state(code).add, _C.state(code).remove):
        with pytest.raises(TypeError):
            call(1)
    with pytest.raises(TypeError):
        _C.CodeState()
    with pytest.raises(TypeError):
        _C.set_callback(1)
    with pytest.raises(TypeError):
        _C.set_callback(None, 1)
    with pytest.raises(TypeError):
        _C.HookedCall(1, None)
    with pytest.raises(ValueError, match="no testing switch"):
        _C.force("nothing", 1)
    assert repr(_C.NULL) == "<NULL>" and _C.ABI == 1


def test_states_come_and_go(native):
    code = native.make(PAIR)["f"].__code__
    assert _C.peek_state(code) is None
    state = _C.state(code)
    assert _C.peek_state(code) is state is _C.state(code) and state.code is code
    assert state in _C.states()
    state.data = 5
    del code
    gc.collect()
    assert state.code is None and state.entries == () and state not in _C.states()
    with pytest.raises(ValueError, match="gone"):
        state.add(_C.Entry(None, native.make(PAIR)["r"].__code__, None))


def test_plain_code_of_the_fallback_is_not_listed(native):
    ns = native.make(PAIR)
    native.serve(ns["f"], ns["r"])
    before = set(_C.states())
    _C.force("fallback", 1)
    try:
        with native.on(False):
            assert ns["f"](1) == ("r", 1)
    finally:
        _C.force("fallback", 0)
    assert {s.code for s in set(_C.states()) - before} <= {None}


def test_add_remove_clear(native):
    ns = native.make(PAIR + "def g(a): return 0\n")
    state = _C.state(ns["f"].__code__)
    first, second = native.serve(ns["f"], ns["r"]), native.serve(ns["f"], ns["r"])
    state.add(first)
    assert state.entries == (second, first)  # new ones in front, adding twice changes nothing
    with pytest.raises(ValueError, match="another code object"):
        _C.state(ns["g"].__code__).add(first)
    state.remove(second)
    with pytest.raises(ValueError, match="isn't one"):
        state.remove(second)
    assert state.entries == (first,)
    state.skip = state.skip_recursive = state.run_only = True
    state.data = object()
    state.clear()
    assert (state.skip, state.skip_recursive, state.run_only) == (False, False, False)
    assert (state.entries, state.hits, state.misses, state.data) == ((), 0, 0, None)
    _C.state(ns["g"].__code__).add(first)  # free again
    assert first.alive


def test_invalidate(native):
    ns = native.make(PAIR)
    entry = native.serve(ns["f"], ns["r"])
    told = []
    entry.on_death(told.append)
    entry.invalidate()
    entry.invalidate()
    assert told == [entry] and not entry.alive and _C.state(ns["f"].__code__).entries == ()
    with native.on(False):
        assert ns["f"](1) == 0
    with pytest.raises(ValueError, match="dead"):
        _C.state(ns["f"].__code__).add(entry)
    entry.on_death(told.append)  # too late: told at once
    assert told == [entry, entry]
    entry.on_death(None)


def test_error_in_on_death_is_reported(native, monkeypatch):
    import sys

    reports = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reports.append(report.exc_type))
    entry = native.serve(*(native.make(PAIR)[n] for n in ("f", "r")))
    entry.on_death(lambda e: 1 / 0)
    entry.invalidate()
    assert reports == [ZeroDivisionError]


def test_regions_see_their_own_entries(native, how):
    ns = native.make(
        "def f(a): return 0\ndef r1(a): return ('one', a)\ndef r2(a):\n    k = w = a\n    return ('two', a)\n"
    )
    one, two = _C.Region("one"), _C.Region("two")
    native.serve(ns["f"], ns["r1"], one)
    entry = native.serve(ns["f"], ns["r2"], two)
    with native.on(False, one):
        assert ns["f"](1) == ("one", 1) and _C.current_region() is one
        with native.on(False, two):
            assert ns["f"](1) == ("two", 1)
        assert ns["f"](1) == ("one", 1)
    with native.on(False):
        assert ns["f"](1) == 0 and _C.current_region() is None
    assert entry.region is two and two.key == "two"


def test_region_death_takes_its_entries_along(native):
    ns = native.make(PAIR)
    told = []
    region, other = _C.Region([]), _C.Region()
    alive = weakref.ref(region)
    entries = [native.serve(ns["f"], ns["r"], region) for _ in range(3)]
    kept = native.serve(ns["f"], ns["r"], other)
    loose = _C.Entry(None, ns["r"].__code__, region)
    for entry in entries:
        entry.on_death(lambda e: told.append((e, e.alive, e.region, _C.state(ns["f"].__code__).entries)))
    del region
    gc.collect()
    assert alive() is None and len(told) == 3 and {e for e, *_ in told} == set(entries)
    assert all((a, r) == (False, None) for _, a, r, _ in told)
    assert _C.state(ns["f"].__code__).entries == (kept,)
    assert not loose.alive and loose.region is None
    with native.on(False):  # dead entries don't turn into entries of no region
        assert ns["f"](1) == 0


@pytest.mark.parametrize("gone", list(itertools.permutations(range(4), 3)))
def test_entries_may_die_before_their_region(native, gone):
    code = native.make(PAIR)["r"].__code__
    region, told = _C.Region(), []
    entries = [_C.Entry(None, code, region) for _ in range(4)]
    for entry in entries:
        entry.on_death(told.append)
    del entry
    for i in gone:
        entries[i] = None  # the last reference
    kept = [entry for entry in entries if entry]
    entries += [_C.Entry(None, code, region)]
    del region
    assert told == kept and not any(entry.alive for entry in entries if entry)


def test_region_stays_while_it_is_current(native):
    ns = native.make(PAIR)
    region = _C.Region()
    alive = weakref.ref(region)
    native.serve(ns["f"], ns["r"], region)
    with native.on(False, region):
        del region
        gc.collect()
        assert ns["f"](1) == ("r", 1)
        assert alive() is not None
    assert alive() is None


def test_region_in_a_cycle_is_collected(native):
    key = []
    region = _C.Region(key)
    key.append(region)
    alive = weakref.ref(region)
    entry = _C.Entry(None, native.make(PAIR)["r"].__code__, region)
    del key, region
    gc.collect()
    assert alive() is None and not entry.alive


def test_two_hits_in_a_row_move_an_entry_to_the_front(native):
    ns = native.make("def f(a): return 0\ndef r1(a): return 1\ndef r2(a): return 2\ndef r3(a): return 3\n")
    regions = {n: _C.Region(n) for n in (1, 2, 3)}
    entries = {n: native.serve(ns["f"], ns[f"r{n}"], region) for n, region in regions.items()}
    state = _C.state(ns["f"].__code__)

    def call(n):
        with native.on(False, regions[n]):
            assert ns["f"](0) == n

    assert state.entries == (entries[3], entries[2], entries[1])
    for n in (1, 2, 1, 2):  # alternating
        call(n)
    assert state.entries == (entries[3], entries[2], entries[1])
    call(1), call(1)
    assert state.entries == (entries[1], entries[3], entries[2])
    call(1), call(2), call(2)
    assert state.entries == (entries[2], entries[1], entries[3])
    assert [entries[n].hits for n in (1, 2, 3)] == [5, 4, 0] and state.hits == 9


def test_code_dies_and_takes_entries_along(native):
    class Owner:
        pass

    for _ in range(3):
        ns = native.make(PAIR)
        owner = Owner()
        alive = weakref.ref(owner)
        _C.state(ns["f"].__code__).add(_C.Entry(None, ns["r"].__code__, None, owner))
        with native.on(False):
            assert ns["f"](5) == ("r", 5)
        del owner
        gc.collect()
        assert alive() is not None
        ns.clear()
        gc.collect()
        assert alive() is None


def test_cycle_through_owner_is_collected(native):
    class Owner:
        pass

    ns = native.make(PAIR)
    owner = Owner()
    owner.entry = _C.Entry(None, ns["r"].__code__, None, owner)
    owner.entry.on_death(lambda e: owner)  # noqa: F821
    alive = weakref.ref(owner)
    _C.state(ns["f"].__code__).add(owner.entry)
    _C.state(ns["f"].__code__).clear()
    del owner
    gc.collect()
    assert alive() is None


def test_cycle_through_data_is_collected_after_the_code(native):
    class Record:
        pass

    ns = native.make(PAIR)
    record = Record()
    alive = weakref.ref(record)
    record.state = _C.state(ns["f"].__code__)
    record.state.data = record
    del record
    gc.collect()
    assert alive() is not None
    ns.clear()
    gc.collect()
    assert alive() is None


def test_one_program_serves_one_entry(native):
    code = native.make(PAIR)["r"].__code__
    program = _C.GuardProgram(())
    entry = _C.Entry(program, code, None)
    if type(program).__doc__ is None and not hasattr(program, "check"):
        pytest.skip("the guard program is a placeholder")
    with pytest.raises(ValueError):
        _C.Entry(program, code, None)
    assert entry.program is program
    del entry
    assert _C.Entry(program, code, None).alive
