"""Hints and histories."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest
from dynacheck.events import SIGNATURE, ChangeRow, Named
from dynacheck.guards.base import KINDS
from dynacheck.hints import assigned_at, counted_at, hint_for, history_of, varies_now
from dynacheck.records import Change


def change(then, now, file=""):
    return Change("self.steps", "value", then, now, file="model.py", line=8, origin=file)


def row(then, now, source="self.steps", kind="value", file="", line=0, detail="", trait=""):
    return ChangeRow(kind, source, source, then, now, detail, file, line, trait=trait)


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (row(0.5, 0.6, "self.scale"), "a Python float read in forward"),
        (row(0.5, 0.6, "t"), "a Python float read in the compiled function"),
        (row(1, 2), "a Python int read in forward"),
        (row(1, 2, "k"), "pass it as a tensor"),
        (row(True, False, "flag"), "True and False"),
        (row(False, True, "Cls", detail="is a subclass of Wanted"), "register classes"),
        (row("a", "b", "mode"), "string"),
        (row(None, 3, "mask"), "None or not"),
        (row((1, 2), (1, 3), "pads"), "this value"),
        (row(Named("Act.RELU"), Named("Act.TANH"), "act"), "each is a graph of its own"),
        (row(range(2), range(3), "r"), "each is a graph of its own"),
        (row("relu", "sin", "fn", "identity"), "each is a graph of its own"),
        (row(Named("Key object"), Named("another Key object"), "key", "identity"), "make the object once"),
        (row(2, 3.5, "n"), "the same type"),
        (row("n <= 5", 6, "n"), "a branch depends on this condition"),
        (row("n == 4", 5, "n"), "needs the number itself"),
        (row(Named("n == 4"), 5, "n"), "needs the number itself"),
        (row(3, 4, "pos", detail="as an index"), "index_copy_"),
        (row(0.1, 0.05, "self.param_groups[0]['lr']"), "lr=torch.tensor"),
    ],
)
def test_values(found, part):
    assert part in hint_for(found)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("value", "other")])
def test_every_kind_has_a_hint(kind):
    assert hint_for(row(1, 2, kind=kind))


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (row(1, 2, "bag", "length"), "loops over it are unrolled"),
        (row(1, 2, "bag", "length", detail="dict"), "give it the same keys"),
        (row(1, 2, "bag", "length", detail="frozenset"), "give it the same items"),
        (row("present", "absent", "kw['b']", "presence"), "give it on every call"),
        (row("present", "absent", "self.b", "presence"), "in __init__"),
        (row(4, 5, "x", "size"), "mark_dynamic"),
        (row(4, 1, "x", "size"), "0 and 1"),
        (row("x.size()[0] <= 8", 9, "x", "size"), "a branch (or a bound of its mark) depends on this size"),
        (row("(x.size()[0] % 8) == 0", 9, "x", "size"), "a branch depends on this size"),
        (row("x.size()[0] == 4", 5, "x", "size"), "the entry serves one size only"),
        (row("2 <= x.size()[0]", 1, "x", "size"), "0 and 1"),
        (row("x.size()[0] == y.size()[0]", {}, "x, y", "expression"), "warm up with different ones"),
        (row("n + m <= 5", {}, "n, m", "expression"), "a branch depends on this condition"),
        (row(4, 1, "x", "size", detail="size of dim 1"), "or mark_unbacked(x, 1)"),
        (row(4, 5, "self.k", "size", trait="grown"), "use a static cache"),
        (row(0, 1, "past[0]", "size", trait="grown"), "use a static cache"),
        (row(4, 5, "m.weight", "size", trait="owned"), "never dynamic"),
        (row(1, 5, "m.weight", "size", trait="owned", detail="size of dim 0"), "never dynamic"),
        (row(4, 5, "x", "size", trait="fixed"), "dynamic=False"),
        (row(4, 1, "x", "size", trait="fixed"), "dynamic=False"),
        (row(4, 5, "x", "size", trait="marked static"), "mark_static keeps"),
        (row(4, 5, "n", trait="fixed"), "dynamic=False keeps numbers constant"),
        (row(4, 5, "self.number", trait="of another module"), "another module of the class"),
        (row(None, 5, "self.number", trait="of another module"), "another module of the class"),
        (row(0.5, 0.25, "self.scale", trait="fixed"), "dynamic=False keeps numbers constant"),
        (row(["a", "b"], ["b", "a"], "batch", "keys"), "in the same order"),
        (row(["a", "b"], ["b"], "batch", "keys"), "pass the same keys"),
        (row("(x)", "(x, n=)", "named", "keys", detail=SIGNATURE), "each way of calling it"),
    ],
)
def test_what_suits_one_kind_only(found, part):
    assert part in hint_for(found)


CHECK = "check_tensor(L['x'], torch.float32, device=None, requires_grad=False, size=[{}], stride=[1])"


@pytest.mark.parametrize(
    ("guards", "part", "dynamic"),
    [
        ((CHECK.format("None, 3"), "2 <= L['x'].size()[0]"), "mark_dynamic", True),
        ((CHECK.format("None, 3"), "L['x'].size()[0] == 9"), "the entry serves one size only", False),
        ((CHECK.format("None, 3"), "L['x'].size()[1] == 9"), "mark_dynamic", True),
        ((CHECK.format("9, None"),), "the entry serves one size only", False),
        ((), "mark_dynamic", False),
    ],
)
def test_what_became_of_a_size(guards, part, dynamic):
    """Whether the entry that was made takes it as it comes, or the code needs the number."""
    changed = ChangeRow("size", "x", "L['x']", 4, 9, "size of dim 0")
    assert part in hint_for(changed, (changed,), guards)
    assert varies_now(changed, guards) == dynamic


def test_a_number_that_varies_now_is_dynamic():
    for then, now in ((2, 3), (0.5, 0.25)):
        changed = ChangeRow("value", "n", "L['n']", then, now)
        assert "is dynamic after one recompile" in hint_for(changed, (), ("L['m'] == 2",))
        assert "is part of the compiled code" in hint_for(changed, (), (f"L['n'] == {now}",))
        assert "make it a buffer" in hint_for(replace(changed, source="self.n"), (), ("L['m'] == 2",))


def test_several_sizes_that_vary():
    rows = [row(n, n + 1, "x", "size", detail=f"size of dim {n}") for n in (3, 4, 5)]
    assert "dynamic=True" in hint_for(rows[0], rows)
    assert "mark_dynamic" in hint_for(rows[0], rows[:2])
    assert "0 and 1" in hint_for(row(3, 1, "x", "size", detail="size of dim 0"), rows)


def test_what_the_compiled_function_counts(tmp_path):
    file = source(
        tmp_path,
        """
        n = 0
        def f(x):
            global n
            n += 1
            return x * n
        """,
    )
    assert "counts it (line 5)" in hint_for(row(0, 1, "n", file=file, line=5))
    assert "pass it as a tensor" in hint_for(row(0, 1, "n")) and "pass it" in hint_for(
        row(1, 0, "n", file=file, line=5)
    )


@pytest.mark.parametrize(
    ("guards", "dynamic"),
    [(("L['t'] == 0.25",), False), (("L['tt'] == 0.25", "L['t'] <= 7"), True), ((), False)],
)
def test_numbers_that_became_dynamic(guards, dynamic):
    assert varies_now(ChangeRow("value", "t", "L['t']", 0.5, 0.25), guards) == dynamic
    assert not varies_now(ChangeRow("value", "t", "L['t']", True, False), guards)


def test_what_the_compiled_function_assigns(tmp_path):
    file = source(
        tmp_path,
        """
        class Net:
            def __init__(self):
                self.cos = None

            def forward(self, x):
                if self.cos is None:
                    self.cos, self.n = x.cos(), 1
                    self.cos = x.cos()
                return self.cos
        """,
    )
    assert assigned_at(file, 7, "self.cos") == (9,) and assigned_at(file, 4, "self.cos") == ()
    assert "rebuilds it (line 9)" in hint_for(row(None, "a tensor", "self.cos", file=file, line=7))
    assert "rebuilds it (line 9)" in hint_for(row(4, 6, "self.cos", "size", file, 7))
    assert "assigns" not in hint_for(row(None, 3, "self.other", file=file, line=7))


def test_a_hint_of_the_guard_wins():
    assert hint_for(ChangeRow("size", "x", "L['x']", 1, 2, hint="say so")) == "say so"


def source(tmp_path, text):
    file = tmp_path / "model.py"
    file.write_text(textwrap.dedent(text))
    return str(file)


def test_a_counter_is_told_with_its_line(tmp_path):
    file = source(
        tmp_path,
        """
        class Net:
            def __init__(self):
                self.steps = 0

            def forward(self, x):
                self.steps += 1
                return x * self.steps
        """,
    )
    found = history_of([change(n, n + 1, file) for n in range(5)])
    assert found.values == ("0", "1", "2", "3", "4", "5")
    assert found.note == "only ever incremented at model.py:7"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("self.n = self.n + 1", (5,)),
        ("self.n = 5", ()),
        ("self.n -= 1", ()),
        ("self.m += 1", ()),
    ],
)
def test_what_counts_as_counting(tmp_path, body, lines):
    file = source(
        tmp_path,
        f"""
        n = 0
        class A:
            def step(self):
                {body}
        """,
    )
    assert counted_at(file, "n", True) == lines


def test_what_to_do_about_what_always_grows():
    grown = [Change("bag", "length", n, n + 1) for n in range(4)]
    assert history_of(grown).hint == "collect outside of the compiled function, or return what is collected"
    of_caller = [Change("n", "value", n, n + 1, hint="of its own") for n in range(4)]
    assert history_of(of_caller).hint == "" and history_of(of_caller).note == "only ever incremented"
    counts = [Change("state['n']", "value", n, n + 1) for n in range(4)]
    assert history_of(counts).hint == "count outside of the compiled function, or in a tensor"
    assert history_of([change(n, n + 1) for n in range(4)]).hint == ""


def test_that_a_size_is_dynamic_is_no_advice_where_it_is_pinned():
    sizes = [Change("x", "size", 2, 4), Change("x", "size", "x.size()[0] == 4", 6)]
    assert "the entry serves one size only" in history_of(sizes).hint
    assert history_of(sizes[:1]).hint == ""


def test_numbers_of_several_modules_are_not_counted():
    rows = [row(n, n + 1, trait="of another module") for n in range(4)]
    told = [Change(r.source, r.kind, r.then, r.now, hint=hint_for(r)) for r in rows]
    assert history_of(told).note == "differs from module to module"
    assert history_of([change(n, n + 1) for n in range(4)]).note == "only ever incremented"


def test_values_that_go_up_and_down_get_no_note():
    assert history_of([change(0, 1), change(1, 0)]).note == ""
    assert history_of([change(0.5, 0.6), change(0.6, 0.7)]).note == ""


def test_keys_that_the_compiled_function_adds(tmp_path):
    file = source(
        tmp_path,
        """
        def step(state, other):
            state["loss"] = other["a"]
            state["act"] = 1
        """,
    )
    longer = row(1, 3, "state", "length", file, 3, detail="dict")
    assert "adds keys to it (lines 3, 4)" in hint_for(longer)
    for other in (replace(longer, now=0), replace(longer, source="other"), replace(longer, line=0)):
        assert "give it the same keys" in hint_for(other)


def test_sizes_that_were_equal():
    """Whether the code asks for it, or sizes that are equal at first get one symbol."""
    taken = row("x.size()[1] == x.size()[0]", Named("x.size()[1] is 9"), "x", "expression")
    assert "use_duck_shape" in hint_for(taken)
    assert "the code at this line" in hint_for(replace(taken, function="f", line=3))


def test_a_size_of_an_entry_for_another_number_of_dimensions():
    changed = ChangeRow("size", "x", "L['x']", 4, 9, "size of dim 1")
    guards = (
        "check_tensor(L['x'], torch.float32, device=None, requires_grad=False, size=[None], stride=[1])",
    )
    assert not varies_now(changed, guards)
    assert "is dynamic after one recompile" in hint_for(changed, (changed,), guards)
