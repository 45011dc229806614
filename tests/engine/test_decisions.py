"""What the engine's architecture promises: for each decision a program that needs it, run from end to end.

`ELSEWHERE` says where decisions are tested besides; that those tests exist is tested here.
"""

from __future__ import annotations

import ast
import gc
import re
import threading
import types
import weakref
from pathlib import Path

import dynacheck
import pytest
import torch
from dynacheck import _C, events, guards
from dynacheck.graph import symbolic
from dynacheck.runtime.engine import engine as the_engine
from dynacheck.sources import FrameView
from dynacheck.translate import tracing, translate

pytestmark = pytest.mark.usefixtures("engine")

TESTS = Path(__file__).parent.parent

ELSEWHERE = {
    1: ("engine/graph/test_oracle.py::test_facts_aliasing_and_mutation_are_eagers",
        "engine/graph/test_oracle.py::test_ambient_state_is_part_of_the_key"),
    2: ("engine/graph/test_symbolic.py::test_static_results_go_back_to_the_memo",),
    3: ("engine/parity/test_counts.py::test_bundled_agrees",),
    4: ("engine/variables/test_polyfills.py",),
    6: ("engine/guards/test_objects.py::test_same_guard_is_installed_once",
        "engine/guards/test_explain.py::test_then_now_path_and_line"),
    7: ("engine/guards/test_relations.py::test_distinct",
        "engine/guards/test_explain.py::test_relations_name_every_path"),
    8: ("engine/guards/test_relations.py::test_a_predicate_that_raises_is_an_error",
        "engine/guards/test_explain.py::test_values_are_described_without_running_user_code"),
    9: ("engine/guards/test_shortcut.py::test_many_instances_share_a_program",),
    10: ("engine/graph/test_symbolic.py::test_guards_agree_with_torch_on_many_values",
         "engine/guards/test_shapes.py::test_random_programs"),
    11: ("engine/backends/test_torch.py::test_guards_that_lowering_added_hold",),
    12: ("engine/guards/test_tensors.py::test_native_reading_equals_python_attributes",
         "engine/guards/test_shortcut.py::test_after_a_mutation"),
    15: ("engine/runtime/test_regions.py::test_what_shares_a_region",
         "engine/runtime/test_skips.py::test_fullgraph_after_a_break_was_compiled"),
    16: ("engine/bytecode/test_resume.py::test_one_code_per_place_layout_and_parent",),
    17: ("engine/parity/test_counts.py::test_bundled_agrees", "engine/semantics/test_opcodes_breaks.py"),
    18: ("engine/native/test_graphs.py::test_a_graph_runs_with_the_hook_off",
         "engine/native/test_modes.py::test_threads_have_their_own_mode"),
    19: ("engine/guards/test_accessors.py::test_captured_objects_are_held_weakly",
         "engine/runtime/test_growth.py::test_models_that_their_backend_closes_over"),
    20: ("engine/backends/test_registry.py::test_what_a_callable_is_given",
         "engine/backends/test_registry.py::test_a_backend_that_reads_nothing_pays_for_nothing"),
    21: ("engine/runtime/test_faults.py::test_a_fault_of_the_engine_is_told_and_the_frame_runs_as_it_is",
         "engine/runtime/test_faults.py::test_a_fault_of_the_engine_raises_where_settings_say_so"),
    22: ("engine/report/test_report.py", "engine/report/test_logs.py"),
    23: ("engine/runtime/test_stance.py::test_as_a_function_it_holds_in_every_thread",
         "engine/runtime/test_stance.py::test_as_a_context_manager_it_holds_in_this_context_only"),
    24: ("engine/native/test_modes.py::test_entries_change_under_running_threads",
         "engine/runtime/test_faults.py::test_a_first_call_in_many_threads_compiles_once"),
    25: ("engine/runtime/test_state.py::test_what_a_first_call_leaves_is_what_plain_python_leaves",
         "engine/runtime/test_state.py::test_a_backend_may_change_anything_and_raise"),
    26: ("engine/parity/test_counts.py::test_torch_figures",),
}  # fmt: skip


def outcomes(report):
    return [call.outcome for call in report.calls]


def decisions():
    """Numbers of the decisions that tests of this file name."""
    tree = ast.parse(Path(__file__).read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {
        int(name.split("_")[1]) for name in names if name.startswith("test_") and name.split("_")[1].isdigit()
    }


def test_every_decision_has_a_test():
    assert decisions() | set(ELSEWHERE) == set(range(1, 27))


@pytest.mark.parametrize("test", [test for tests in ELSEWHERE.values() for test in tests])
def test_the_tests_elsewhere_exist(test):
    file, _, name = test.partition("::")
    functions = [n for n in ast.parse((TESTS / file).read_text()).body if isinstance(n, ast.FunctionDef)]
    names = {function.name for function in functions}
    assert name in names if name else any(n.startswith("test_") for n in names)


def attempts(monkeypatch):
    """Whether each attempt at a translation from now on had a symbolic environment, and weak references to them."""
    symbolic_ones, refs = [], []

    class Counted(tracing.Attempt):
        def __init__(self, *args):
            super().__init__(*args)
            symbolic_ones.append(self.env is not None)
            refs.append(weakref.ref(self))

    monkeypatch.setattr(translate, "Attempt", Counted)
    return symbolic_ones, refs


# -- values and metadata


def test_1_an_operator_is_looked_up_once_for_all_frames_and_resets(backend):
    oracle = the_engine.oracle
    x = torch.ones(2, 3, 5, 7)

    def one(x):
        return torch.softmax(x, 1) * 2

    def other(y):
        return torch.softmax(y, 1) * 2

    dynacheck.compile(one, backend=backend)(x)
    misses, hits = oracle.misses, oracle.hits
    dynacheck.reset()
    dynacheck.compile(other, backend=backend)(x)
    assert oracle.misses == misses
    assert oracle.hits >= hits + 2
    assert len(backend.graphs) == 2


def test_2_symbols_come_with_a_restart_and_only_where_one_is_met(monkeypatch, seen, backend):
    made, _ = attempts(monkeypatch)
    compiled = dynacheck.compile(lambda x: x + x.shape[0], backend=backend)
    compiled(torch.ones(4))
    assert made == [False]
    compiled(torch.ones(5))
    assert made == [False, False, True]
    assert outcomes(seen) == ["miss", "miss"]


def test_2_a_static_frame_makes_no_environment(monkeypatch, backend):
    def refuse(*args, **kwargs):
        raise AssertionError("a static frame has an environment")

    monkeypatch.setattr(symbolic.SymbolicEnv, "__init__", refuse)
    dynacheck.compile(lambda x: x.view(2, 2) @ x.view(2, 2), backend=backend)(torch.ones(4))
    assert len(backend.graphs) == 1


def test_3_what_is_not_read_is_not_guarded(seen, backend):
    def fn(x, n, options, name):
        unused = [name, options]
        return x + 1, n, [x, name, options]

    compiled = dynacheck.compile(fn, backend=backend)
    for n in (1, 2, "three", None):
        found, passed, (_, name, options) = compiled(torch.ones(2), n, {"n": n}, f"name {n}")
        assert (passed, name, options) == (n, f"name {n}", {"n": n})
    assert outcomes(seen) == ["miss", "hit", "hit", "hit"]


def test_3_what_torch_reads_where_a_frame_ends_is_read(seen, backend):
    """The items of a container that has to be built, up to the first that is no constant."""

    def fn(x, name, batch):
        batch["y"] = x + 1
        return {"name": name, "y": batch["y"]}

    compiled = dynacheck.compile(fn, backend=backend)
    for name, id_ in (("a", 1), ("a", 1), ("b", 1), ("b", "two")):
        batch = {"id": id_}
        assert compiled(torch.ones(2), name, batch)["name"] == name
        assert list(batch) == ["id", "y"]
    assert outcomes(seen) == ["miss", "hit", "miss", "miss"]
    assert [r.cause.split("@")[0] for r in seen.recompiles] == [
        "recompile:value:name",
        "recompile:value:batch['id']",
    ]


def test_3_a_break_reads_nothing_either(seen, backend):
    def fn(x, n):
        x = x + 1
        print(end="")
        return x, n

    compiled = dynacheck.compile(fn, backend=backend)
    for n in (1, 2.5, "three"):
        assert compiled(torch.ones(2), n)[1] == n
    assert outcomes(seen) == ["miss", "hit", "hit"]


class Sized:
    """Behaves as CPython's slots say: `len` and truth by `__len__`, iteration by `__getitem__`."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def __contains__(self, item):
        return item in self.items


def test_4_protocols_are_cpythons(seen, backend):
    def fn(x, sized):
        for item in sized:
            x = x + item
        if not sized:
            return x - 10
        return x * len(sized) if 2 in sized else x / 7

    compiled = dynacheck.compile(fn, backend=backend, fullgraph=True)
    for items in ([1, 2, 3], [], [4]):
        torch.testing.assert_close(compiled(torch.ones(2), Sized(items)), fn(torch.ones(2), Sized(items)))
    assert [backend.operators(i) for i in range(3)] == [
        ["add", "add", "add", "mul"],
        ["sub"],
        ["add", "truediv"],
    ]


class Watched:
    """Counts what user code runs, in the object's own dict."""

    def __init__(self):
        self.__dict__["ran"] = []

    def __setattr__(self, name, value):
        self.ran.append(("set", name))
        self.__dict__[name] = value

    @property
    def twice(self):
        self.ran.append("twice")
        return 2


GLOBAL = 0


def test_5_the_translator_runs_no_user_code_for_effect(monkeypatch):
    """A translation that fails at its end leaves nothing behind."""

    def fails(gm, example_inputs):
        raise RuntimeError("no")

    def fn(x, watched, items, table):
        global GLOBAL
        GLOBAL = 1
        items.append(watched.twice)
        table["a"] = x
        watched.n = 3
        return x + 1

    watched, items, table = Watched(), [], {}
    with pytest.raises(dynacheck.errors.BackendError):
        dynacheck.compile(fn, backend=fails)(torch.ones(2), watched, items, table)
    assert (watched.ran, items, table, GLOBAL) == ([], [], {}, 0)


def test_5_effects_happen_once_and_in_order_whatever_was_restarted(monkeypatch, backend, capsys):
    made, _ = attempts(monkeypatch)
    log = []

    def inner(x, log):
        log.append("before")
        print("printed", log)
        log.append("after")
        return x

    def fn(x, log):
        log.append("first")
        return inner(x + 1, log) * 2

    dynacheck.compile(fn, backend=backend)(torch.ones(2), log)
    assert len(made) > 2
    assert log == ["first", "before", "after"]
    log.clear()
    dynacheck.compile(lambda x, log: (log.append("whole"), x + 1)[1], backend=backend)(torch.ones(2), log)
    assert log == ["whole"]
    assert capsys.readouterr().out == "printed ['first', 'before']\n"


# -- guards


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight + self.weight.sum() - self.weight


def test_6_a_value_read_often_is_one_input_with_one_guard(backend):
    model = Scaled()
    dynacheck.compile(model, backend=backend)(torch.ones(2))
    (entry,) = dynacheck.cache_entries(model)
    assert len(set(entry.guards)) == len(entry.guards)
    assert sum("check_tensor(L['self']._parameters['weight']" in g for g in entry.guards) == 1
    assert len(backend.inputs[0]) == 2


def test_7_relations_name_every_path(seen, backend):
    def fn(a, b):
        return a + b if a is not b else a * 2

    compiled = dynacheck.compile(fn, backend=backend)
    a, b = torch.ones(2), torch.ones(2)
    for pair in ((a, b), (a, a), (b, a), (b, b)):
        torch.testing.assert_close(compiled(*pair), fn(*pair))
    assert outcomes(seen) == ["miss", "miss", "hit", "hit"]
    texts = [" ".join(entry.guards) for entry in sorted(dynacheck.cache_entries(fn), key=lambda e: e.index)]
    assert "check_no_aliasing(L['a'], L['b'])" in texts[0]
    assert "L['a'] is L['b']" in texts[1]
    assert seen.recompiles[0].changes[0].kind == "aliasing"


def test_7_inputs_are_assumed_to_be_different_tensors(seen, backend):
    def fn(a, b):
        a.add_(1)
        return a * b

    compiled = dynacheck.compile(fn, backend=backend)
    for shared in (False, True, False):
        a, b = torch.ones(2), torch.ones(2)
        b = a if shared else b
        torch.testing.assert_close(compiled(a, b), torch.full((2,), 4.0 if shared else 2.0))
    assert outcomes(seen) == ["miss", "miss", "hit"]
    changes = seen.recompiles[0].changes
    assert [(change.kind, change.path) for change in changes] == [("aliasing", "L['a'], L['b']")]


class Hostile:
    """Nothing of it may run while guards are checked."""

    armed = False

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        raise AssertionError("guards ran __eq__")

    __hash__ = None

    def __getattribute__(self, name):
        if Hostile.armed:
            raise AssertionError(f"guards ran __getattribute__({name!r})")
        return object.__getattribute__(self, name)


class Plain:
    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        raise AssertionError("guards ran __eq__")

    __hash__ = None


class Equal:
    """Takes itself for everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


def test_8_guards_run_no_user_code_and_both_forms_agree(seen, backend, monkeypatch):
    def fn(x, o, items, d):
        return x * o.factor + len(items) + d["k"]

    compiled = dynacheck.compile(fn, backend=backend)
    frames = [
        (torch.ones(2), Plain(2), [1], {"k": 3}),
        (torch.ones(3), Plain(2), [1], {"k": 3}),
        (torch.ones(2), Plain(5), [1], {"k": 3}),
        (torch.ones(2), Plain(2), [1, 2], {"k": 3}),
        (torch.ones(2), Plain(2), [1], {"k": "3"}),
        (torch.ones(2), Plain(2), [1], {}),
        (torch.ones(2), None, [1], {"k": 3}),
        (torch.ones(2), Plain(2), (1,), {"k": 3}),
        (torch.ones(2), Plain(2.0), [1], {"k": 3}),
        (torch.ones(2), Plain(2), [1], {"k": 3.0}),
        (torch.ones(2), Plain(2), [1], {"k": Equal()}),
        (torch.ones(2), Hostile(2), [1], {"k": 3}),
    ]
    compiled(*frames[0])
    compiled(*frames[1])
    compiled(*frames[2])
    monkeypatch.setattr(Hostile, "armed", True)
    found = []
    for entry in sorted(_C.state(fn.__code__).entries, key=lambda entry: entry.owner.index):
        verdicts = [guards.mirror(entry.owner.guards, FrameView(fn, args)) for args in frames]
        found.append([i for i, passed in enumerate(verdicts) if passed])
    assert found == [[0], [0, 1], [0, 1, 2]]  # the last has the factor as a symbol
    assert outcomes(seen) == ["miss"] * 3


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        x = x @ self.weight
        print(end="")
        return x.relu()


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(12))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def test_9_one_entry_serves_equal_blocks(seen, backend):
    model = Stack()
    compiled = dynacheck.compile(model, backend=backend)
    x = torch.randn(2, 3, requires_grad=True)  # as what blocks return
    torch.testing.assert_close(compiled(x), model(x))
    assert len(backend.graphs) == 2
    whole, rest = sorted(dynacheck.cache_entries(Block), key=lambda e: e.resume_line or 0)
    assert (whole.hits, rest.hits) == (11, 11)
    assert seen.counts["recompiles"] == 0


def test_10_size_guards_are_what_the_program_decided(seen, backend):
    def fn(x, y):
        return x + 1 if x.shape[0] * 2 < y.shape[1] + 3 else x - 1

    compiled = dynacheck.compile(fn, backend=backend, dynamic=True)
    cases = [(n, m) for n in range(2, 9) for m in range(2, 12)]
    for n, m in cases:
        x, y = torch.ones(n, 3), torch.ones(3, m)
        torch.testing.assert_close(compiled(x, y), fn(x, y))
    for entry in _C.state(fn.__code__).entries:
        for n, m in cases:
            guards.mirror(entry.owner.guards, FrameView(fn, (torch.ones(n, 3), torch.ones(3, m))))
    assert outcomes(seen).count("hit") > len(cases) // 2


def test_11_what_a_backend_decides_about_a_size_is_guarded(seen):
    def specialising(gm, example_inputs):
        for value in example_inputs:
            if isinstance(value, torch.SymInt):
                assert int(value) > 0  # from now on the size is this one
        return gm.forward

    def fn(x):
        return x + 1

    compiled = dynacheck.compile(fn, backend=specialising, dynamic=True)
    for rows in (4, 5, 4):
        compiled(torch.ones(rows))
    assert outcomes(seen) == ["miss", "miss", "hit"]


def test_12_a_hit_runs_no_python_but_the_rewritten_code(backend):
    import sys

    model = Scaled()
    compiled = dynacheck.compile(model, backend=lambda gm, inputs: lambda *args: (args[0],))
    x = torch.ones(2)
    compiled(x)
    compiled(x)
    ran = []

    def note(frame, event, arg):
        name = frame.f_code.co_qualname
        if event == "call" and name != "probe":  # by which the hook looks whether it is below another's
            ran.append(name)

    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        compiled(x)
    finally:
        sys.setprofile(None)
        gc.enable()
    graph = "test_12_a_hit_runs_no_python_but_the_rewritten_code.<locals>.<lambda>.<locals>.<lambda>"
    at = ran.index("Scaled.forward")  # guards would run before it, and what loads inputs behind it
    assert ran[at - 1 : at + 2] == ["Module._call_impl", "Scaled.forward", graph]
    assert dynacheck.cache_entries(model)[0].hits == 2


# -- frames, entries, breaks


def breaks_deep(x):
    x = x + 1
    print(end="")
    return x * 2


def test_13_an_attempt_leaves_nothing(monkeypatch, backend):
    made, refs = attempts(monkeypatch)
    told = []
    observer = told.append
    events.observers.add(observer)
    try:
        dynacheck.compile(lambda x: breaks_deep(x - 1) + 3, backend=backend)(torch.ones(2))
    finally:
        events.observers.remove(observer)
    gc.collect()
    assert len(made) > 4
    assert [ref() for ref in refs if ref() is not None] == []
    graphs = [e for e in told if isinstance(e, events.GraphCaptured)]
    assert len(graphs) == len(backend.graphs) == 4


def test_14_a_break_in_an_inlined_call_splits_the_caller_by_a_restart(monkeypatch, backend):
    made, _ = attempts(monkeypatch)

    def fn(x):
        return breaks_deep(x - 1) + 3

    torch.testing.assert_close(dynacheck.compile(fn, backend=backend)(torch.ones(2)), torch.full((2,), 5.0))
    # fn and breaks_deep twice each, what remains of them once each
    assert len(made) == 6
    assert [backend.operators(i) for i in range(4)] == [["sub"], ["add"], ["mul"], ["add"]]


def test_15_entries_belong_to_a_region(seen):
    graphs = {"one": [], "other": []}

    def one(gm, example_inputs):
        graphs["one"].append(gm)
        return gm.forward

    def other(gm, example_inputs):
        graphs["other"].append(gm)
        return gm.forward

    def fn(x):
        return x + 1

    for backend in (one, other, one, other):
        dynacheck.compile(fn, backend=backend)(torch.ones(2))
    assert {name: len(found) for name, found in graphs.items()} == {"one": 1, "other": 1}
    assert outcomes(seen) == ["miss", "miss", "hit", "hit"]
    assert seen.recompiles[0].cause.startswith("recompile:region:")


def test_16_one_resume_code_serves_all_entries_of_its_function(seen, backend):
    def fn(x, name):
        x = x * len(name)
        print(end="")
        return x + 1

    compiled = dynacheck.compile(fn, backend=backend)
    for name in ("a", "bb", "ccc", "a"):
        torch.testing.assert_close(compiled(torch.ones(2), name), fn(torch.ones(2), name))
    entries = dynacheck.cache_entries(fn)
    assert [e.resume_line is None for e in entries].count(True) == 3
    (rest,) = [e for e in entries if e.resume_line is not None]
    assert rest.hits == 3


def test_16_resume_functions_over_cells_share_their_code(seen, backend):
    def fn(x):
        y = x + 1

        def add():
            return y + 1

        print(end="")
        return add() * y

    compiled = dynacheck.compile(fn, backend=backend)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 6.0))
    assert outcomes(seen) == ["miss", "hit", "hit"]


def test_17_frames_are_given_up_where_torch_gives_them_up(seen, backend):
    def helper(x):
        return x * 2

    def fn(x):
        for _ in range(2):
            x = helper(x)
            print(end="")
        return x

    torch.testing.assert_close(dynacheck.compile(fn, backend=backend)(torch.ones(2)), torch.full((2,), 4.0))
    (skipped,) = [s for s in seen.skipped if s.caused_by_break]
    assert (skipped.function.rpartition(".")[2], skipped.reason) == ("fn", "DC202")
    assert len(backend.graphs) == 1  # what it calls is a frame of its own, with one entry
    assert dynacheck.cache_entries(helper)[0].hits == 1


def helps_the_backend(x):
    return x + 1


def test_18_the_hook_is_off_in_graphs_and_on_behind_them(seen):
    def running(gm, example_inputs):
        def run(*args):
            helps_the_backend(args[0])
            return gm(*args)

        return run

    def later(x):
        return x * 3

    def fn(x):
        x = x + 1
        print(end="")
        return later(x)

    compiled = dynacheck.compile(fn, backend=running)
    compiled(torch.ones(2))
    compiled(torch.ones(2))
    assert not dynacheck.cache_entries(helps_the_backend)
    assert len(dynacheck.cache_entries(fn)) == 2


def test_18_backward_runs_with_the_hook_off(seen, backend):
    def hook(grad):
        return helps_the_backend(grad)

    def fn(x):
        return (x * 2).sum()

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)

    def step(x):
        fn(x).backward()
        return x.grad

    torch.testing.assert_close(dynacheck.compile(step, backend=backend)(x), torch.full((2,), 3.0))
    assert backend.graphs
    assert not dynacheck.cache_entries(helps_the_backend)


def constants_of(code):
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from constants_of(value)
        else:
            yield value


def test_19_rewritten_code_holds_constants_and_engine_objects_only(backend):
    class Local:
        pass

    def fn(x, local):
        local.y = x + 1
        print(end="")
        return [type(local)(), x * 2]

    compiled = dynacheck.compile(fn, backend=backend)
    compiled(torch.ones(2), Local())
    plain = (int, float, complex, bool, str, bytes, tuple, frozenset, types.NoneType, types.EllipsisType)
    found = []
    for state in _C.states():
        for entry in state.entries:
            found += constants_of(entry.code)
    assert found
    for value in found:
        ours = (type(value).__module__ + getattr(value, "__module__", "")).startswith(
            ("dynacheck", "functiondynacheck")
        )
        builtin = isinstance(value, (types.BuiltinFunctionType, type)) and value.__module__ in (
            "builtins",
            "torch",
            "_operator",
        )
        ours = ours or getattr(value, "__module__", "").startswith("dynacheck")
        assert type(value) in plain or ours or builtin, value


def of_any_class(x, local):
    return type(local)(), x + 1


def test_19_an_entry_dies_with_the_class_it_holds(backend):
    compiled = dynacheck.compile(of_any_class, backend=backend)

    def use():
        class Local:
            pass

        made, _ = compiled(torch.ones(2), Local())
        assert type(made) is Local
        assert len(dynacheck.cache_entries(of_any_class)) == 1
        return weakref.ref(Local)

    ref = use()
    gc.collect()
    assert ref() is None
    assert dynacheck.cache_entries(of_any_class) == ()


def test_20_backends_get_what_torch_gives_them():
    seen = []

    def looking(gm, example_inputs):
        seen.append((gm, example_inputs))
        return gm.forward

    model = torch.nn.Linear(3, 3)

    def fn(x, y):
        return model(x) + y + x

    compiled = dynacheck.compile(fn, backend=looking)
    for rows in (2, 4):
        compiled(torch.ones(rows, 3), torch.ones(rows, 3))
    gm, inputs = seen[0]
    assert all(isinstance(value, torch.Tensor) for value in inputs)
    assert sorted(type(value).__name__ for value in inputs) == ["Parameter", "Parameter", "Tensor", "Tensor"]
    names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    assert {"l_x_", "l_y_"} <= set(names) and len(names) == len(set(names)) == 4
    assert isinstance(gm(*inputs), tuple)
    _, inputs = seen[1]
    kinds = [type(value).__name__ for value in inputs]
    assert kinds.index("SymInt") < kinds.index("Tensor")
    call = next(node for node in gm.graph.nodes if node.op == "call_function")
    assert {"example_value", "stack_trace", "source_fn_stack"} <= set(call.meta)


# -- state


def test_21_translated_skipped_or_an_error(backend, monkeypatch):
    def fn(x):
        return x + 1

    monkeypatch.setattr(translate.Frame, "run_root", lambda self: 1 / 0)
    with pytest.raises(dynacheck.InternalError, match="ZeroDivisionError"):
        dynacheck.compile(fn, backend=backend)(torch.ones(2))
    with dynacheck.configured(raise_internal_errors=False):
        with dynacheck.observe() as report:
            torch.testing.assert_close(
                dynacheck.compile(fn, backend=backend)(torch.ones(2)), torch.full((2,), 2.0)
            )
    assert len(report.failures) == 1
    assert [run.why for run in report.eager_runs] == ["fault"]


def given_up(x):
    for _ in range(2):
        x = x + 1
        print(end="")
    return x


def test_22_events_tell_everything_a_report_has(backend):
    told = []
    observer = told.append
    events.observers.add(observer)
    try:
        with dynacheck.observe() as report:
            compiled = dynacheck.compile(lambda x: breaks_deep(x), backend=backend)
            compiled(torch.ones(2))
            compiled(torch.ones(3))
            dynacheck.compile(given_up, backend=backend)(torch.ones(2))
    finally:
        events.observers.remove(observer)
    assert (report.counts["graph_breaks"], report.counts["skipped"], report.counts["recompiles"]) == (2, 2, 3)
    kinds = {type(event) for event in told}
    assert {events.GraphCaptured, events.EntryAdded, events.GraphBroke, events.FrameSkipped} <= kinds
    assert all(isinstance(event, events.Event) for event in told)
    again = type(report)(tuple(told))
    assert dict(again.counts) == dict(report.counts)
    assert again.causes == report.causes


def test_23_reset_forgets_history(seen, backend):
    def fn(x):
        return x + 1

    compiled = dynacheck.compile(fn, backend=backend)
    for rows in (2, 3):
        compiled(torch.ones(rows))
    dynacheck.reset()
    for rows in (3, 4, 5):
        compiled(torch.ones(rows))
    assert outcomes(seen) == ["miss", "miss", "miss", "miss", "hit"]


def test_23_history_is_kept_by_place_and_source(seen, backend):
    compiled = [dynacheck.compile(fn, backend=backend) for fn in [lambda x: x + i for i in range(2)]]
    for fn, rows in zip((*compiled, *compiled), (2, 3, 4, 5)):
        fn(torch.ones(rows))
    assert outcomes(seen)[2:] == ["hit", "hit"]


def test_24_six_threads_share_one_entry(seen, backend):
    def fn(x):
        return (x + 1).relu()

    compiled = dynacheck.compile(fn, backend=backend)
    ready = threading.Barrier(6)
    results = []

    def call():
        ready.wait()
        results.append(compiled(torch.ones(2)))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert len(backend.graphs) == len(dynacheck.cache_entries(fn)) == 1
    assert sorted(outcomes(seen)) == ["hit"] * 5 + ["miss"]


def ambient():
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(), torch.get_default_device(), torch.are_deterministic_algorithms_enabled(),
        torch.get_rng_state().tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("how", ["success", "break", "error", "backend"])
def test_25_ambient_state_is_as_it_was(how, backend):
    def fn(x):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            y = x @ x
            if how == "break":
                print(end="")
            if how == "error":
                raise KeyError(how)
        return y + 1

    def disturbing(gm, example_inputs):
        torch.rand(3)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        if how == "backend":
            raise KeyError(how)
        return gm.forward

    before = ambient()
    try:
        dynacheck.compile(fn, backend=disturbing)(torch.ones(2, 2))
    except (KeyError, dynacheck.errors.BackendError):
        assert how in ("error", "backend")
    assert ambient() == before


def test_26_versions_are_asked_for_in_one_place():
    asking = {}
    for file in (Path(dynacheck.__file__).parent).rglob("*.py"):
        names = set(
            re.findall(
                r"sys\.version_info|sys\.hexversion|torch\.__version__|torch\.version\b", file.read_text()
            )
        )
        if names:
            asking[file.name] = names
    assert asking == {"versions.py": {"sys.version_info", "torch.__version__"}}
