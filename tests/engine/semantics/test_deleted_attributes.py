"""Attributes that a frame stores and deletes before a break: what is written afterwards is what plain Python leaves."""

import types

import dynacheck
import pytest
import torch


class Strict(type):
    """A metaclass whose hooks aren't to run again when effects are written."""

    calls = 0

    def __delattr__(cls, name):
        Strict.calls += 1
        super().__delattr__(name)


def stored_and_deleted(x, owner):
    owner.new = 2
    del owner.new
    dynacheck.graph_break()
    return x + 1


def deleted(x, owner):
    owner.kept = 3
    del owner.kept
    dynacheck.graph_break()
    return x + hasattr(owner, "kept")


def deleted_and_stored(x, owner):
    owner.new = 2
    del owner.new
    owner.new = 4
    dynacheck.graph_break()
    return x * owner.new


def a_class():
    return type("Made", (), {"kept": 1})


def a_watched_class():
    return Strict("Made", (), {"kept": 1})


def an_object():
    made = a_class()()
    made.kept = 5
    return made


def a_module():
    made = types.ModuleType("made")
    made.kept = 1
    return made


@pytest.mark.parametrize("fn", [stored_and_deleted, deleted, deleted_and_stored])
@pytest.mark.parametrize("make", [a_class, a_watched_class, an_object, a_module])
def test_as_plain(fn, make):
    compiled, x = dynacheck.compile(fn, backend="eager"), torch.ones(3)
    plain, traced = make(), make()
    dynacheck.reset()
    with dynacheck.observe() as report:
        for _ in range(2):
            Strict.calls = 0
            wanted = fn(x, plain)
            hooks, Strict.calls = Strict.calls, 0
            torch.testing.assert_close(compiled(x, traced), wanted)
            assert Strict.calls == hooks
            assert {n for n in vars(traced) if n in ("new", "kept")} == {
                n for n in vars(plain) if n in ("new", "kept")
            }
    assert report.counts["graphs"]


kept = 1


def only_deleted(x, owner):
    del owner.kept
    return x + 1


def only_deleted_global(x, owner):
    global kept
    del kept
    return x + 1


def stored_then_deleted(x, owner):
    owner.kept = x.sum()
    del owner.kept
    return x + 1


def stored_then_deleted_global(x, owner):
    global kept
    kept = x.sum()
    del kept
    return x + 1


def deleted_then_stored(x, owner):
    del owner.kept
    owner.kept = 7
    return x + 1


def deleted_then_stored_global(x, owner):
    global kept
    del kept
    kept = 7
    return x + 1


def a_heir():
    return type("Heir", (a_class(),), {})


def an_object_with_slots():
    made = type("Made", (), {"__slots__": ("kept", "other")})()
    made.kept = 5
    return made


def the_globals():
    return globals()


def put(owner, there):
    """Have the owner, last of all, or not have the attribute."""
    if isinstance(owner, dict):
        owner.pop("kept", None)
        if there:
            owner["kept"] = 1
        return
    if (
        "kept" in getattr(owner, "__dict__", ())
        or hasattr(type(owner), "__slots__")
        and hasattr(owner, "kept")
    ):
        type.__delattr__(owner, "kept") if isinstance(owner, type) else delattr(owner, "kept")
    if there:
        owner.kept = 1


def left(owner):
    """What of the attribute is there, and where in the order."""
    if isinstance(owner, dict):
        return owner.get("kept"), list(owner)[-1] == "kept"
    names = list(getattr(owner, "__dict__", ()))
    return getattr(owner, "kept", None), [n for n in names if n[:2] != "__"]


def called(fn, x, owner):
    try:
        return fn(x, owner).tolist(), left(owner)
    except Exception as error:
        return type(error), str(error), left(owner)


WAYS = {
    only_deleted: only_deleted_global,
    stored_then_deleted: stored_then_deleted_global,
    deleted_then_stored: deleted_then_stored_global,
}


@pytest.mark.parametrize("there", [(1, 1), (1, 0), (0, 1), (0, 0)], ids=str)
@pytest.mark.parametrize("fn", WAYS)
@pytest.mark.parametrize(
    "make", [a_class, a_watched_class, a_heir, an_object, an_object_with_slots, a_module, the_globals]
)
def test_what_is_deleted_has_to_be_there(make, fn, there):
    """An entry made where the attribute was (or wasn't) there serves no call where it isn't (or is)."""
    fn = WAYS[fn] if make is the_globals else fn
    compiled, x = dynacheck.compile(fn, backend="eager"), torch.ones(3)
    dynacheck.reset()
    wanted, found = [], []
    with dynacheck.observe() as report:
        for run, results in ((fn, wanted), (compiled, found)):
            owner = make()
            for present in there:
                put(owner, present)
                results.append(called(run, x, owner))
    put(globals(), True)
    assert found == wanted
    assert report.cache_entries or report.skipped
