"""The recorder for torch.compile itself: hooks verified, log records matched, nothing left behind."""

import logging
import threading

import pytest
import torch
import torch._dynamo
from parity.engines import ENGINES
from parity.harness import run
from parity.programs import all_programs

from pytest_dynacheck.engines import stock

PROGRAMS = {program.name: program for program in all_programs()}
HOOKED = [
    ("convert_frame", "CatchErrorsWrapper", "__call__"),
    ("convert_frame", "ConvertFrameAssert", "__call__"),
    ("symbolic_convert", "InstructionTranslatorBase", "log_graph_break"),
    ("output_graph", "OutputGraph", "call_user_compiler"),
    ("eval_frame", "_callback_from_stance", None),
    ("eval_frame", "_maybe_set_eval_frame", None),
    ("convert_frame", "get_and_maybe_log_recompilation_reasons", None),
]


@pytest.fixture(autouse=True)
def clean():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def hooked():
    found = []
    for module, owner, name in HOOKED:
        holder = getattr(torch._dynamo, module)
        found.append(getattr(getattr(holder, owner), name) if name else getattr(holder, owner))
    return found


def through(graph_module, example_inputs):
    return graph_module.forward


def compiled(fn, **keywords):
    return torch.compile(fn, backend=through, **keywords)


def test_every_hook_answers():
    assert stock.silent_hooks() == frozenset()


def test_nothing_is_left_behind():
    before, counters = hooked(), dict(torch._dynamo.utils.counters["frames"])
    with stock.record(), stock.record():
        assert hooked() != before
    assert hooked() == before
    assert dict(torch._dynamo.utils.counters["frames"]) == counters
    assert torch._dynamo.eval_frame.set_guard_complete_hook(None) is None


@pytest.mark.parametrize(
    "name", ["blocks_in_loop_print", "three_calls_deep", "module_int_counter", "adam_step"]
)
def test_breaks_and_recompiles_are_those_of_torchs_logs(name):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    torch._logging.set_logs(graph_breaks=True, recompiles=True)
    names = [
        name for name in logging.root.manager.loggerDict if name.endswith(("__graph_breaks", "__recompiles"))
    ]
    for logger in map(logging.getLogger, names):
        logger.addHandler(handler)
    try:
        raw = run(PROGRAMS[name], ENGINES["torch"]).figures.raw
    finally:
        for logger in map(logging.getLogger, names):
            logger.removeHandler(handler)
        torch._logging.set_logs()
    texts = [record.getMessage() for record in records]
    assert raw["breaks"] == sum(text.startswith("Graph break") for text in texts)
    assert raw["recompiles"] == sum(text.startswith("Recompiling") for text in texts)


def changed_by(fn, *calls):
    with stock.record() as seen:
        target = compiled(fn)
        for arguments in calls:
            target(*arguments)
    return [change for found in seen.recompiles for change in found.failures[0].changes if change.decided]


def test_a_recompile_tells_then_and_now():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2

        def forward(self, x):
            return x * self.factor

    scale, x = Scale(), torch.ones(3)
    with stock.record() as seen:
        target = compiled(scale)
        target(x)
        scale.factor = 5
        target(x)
    (change,) = seen.recompiles[0].failures[0].changes
    assert (change.kind, change.then, change.now, change.decided) == ("value", 2, 5, True)
    assert "factor" in change.source
    assert change.file == __file__
    assert change.line is not None


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("size", [(torch.ones(3),), (torch.ones(4),)]),
        ("dtype", [(torch.ones(3),), (torch.ones(3, dtype=torch.float64),)]),
        ("stride", [(torch.ones(3, 4),), (torch.ones(4, 3).t(),)]),
        ("requires_grad", [(torch.ones(3),), (torch.ones(3, requires_grad=True),)]),
    ],
)
def test_tensor_changes_have_a_kind(kind, calls):
    assert kind in {change.kind for change in changed_by(lambda x: x * 2, *calls)}


def test_list_length_is_told():
    found = changed_by(lambda xs: xs[0] * len(xs), ([torch.ones(3)],), ([torch.ones(3)] * 2,))
    assert ("length", 1, 2) in {(change.kind, change.then, change.now) for change in found}


def test_calls_are_misses_hits_or_eager():
    def f(x):
        return x * 2

    with stock.record() as seen:
        target = compiled(f)
        target(torch.ones(3))
        target(torch.ones(3))
        with torch.compiler.set_stance("force_eager"):
            target(torch.ones(3))
    assert seen.outcomes == ("miss", "hit", "eager")


def test_the_limit_is_one_refusal_and_then_eager_calls():
    outcome = run(PROGRAMS["module_int_counter"], ENGINES["torch"])
    assert outcome.figures.limit_hits == 1
    assert [calls[0] for calls in outcome.outcomes] == ["miss"] * 8 + ["eager"] * 4


def test_a_break_under_fullgraph_is_an_error_and_no_break():
    def f(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x

    with stock.record() as seen:
        with pytest.raises(torch._dynamo.exc.Unsupported):
            compiled(f, fullgraph=True)(torch.ones(3))
    assert seen.counts["graph_breaks"] == seen.raw["breaks"] == 0


def test_breaks_in_libraries_are_shown_at_the_users_line():
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight])

    def step():
        optimizer.step()

    with stock.record() as seen:
        compiled(step)()
    assert {found.user[:2] for found in seen.breaks} == {(__file__, step.__code__.co_firstlineno + 1)}


def test_all_threads_are_seen():
    def f(x):
        return x * 2

    with stock.record() as seen:
        target = compiled(f)
        thread = threading.Thread(target=target, args=(torch.ones(3),))
        thread.start()
        thread.join()
    assert seen.counts == {"graphs": 1, "graph_breaks": 0, "recompiles": 0, "cache_entries": 1}
    assert seen.outcomes == ("miss",)


def test_recordings_may_nest():
    def f(x):
        return x * 2

    with stock.record() as outer:
        target = compiled(f)
        target(torch.ones(3))
        with stock.record() as inner:
            target(torch.ones(3, dtype=torch.float64))
    assert (len(outer.graphs), len(inner.graphs)) == (2, 1)
    assert (len(outer.recompiles), len(inner.recompiles)) == (1, 1)


def gone():
    raise AttributeError("no such hook on this torch")


@pytest.mark.parametrize(
    ("hook", "count"),
    [
        ("graphs", "graphs"),
        ("breaks", "graph_breaks"),
        ("recompiles", "recompiles"),
        ("frames", "cache_entries"),
    ],
)
def test_a_hook_that_is_gone_makes_its_counts_unknown(monkeypatch, hook, count):
    monkeypatch.setitem(stock._HOOKS, hook, gone)
    monkeypatch.setattr(stock, "_silent", None)
    with stock.record() as seen:
        compiled(lambda x: x * 2)(torch.ones(3))
    assert hook in seen.silent
    assert seen.counts[count] is None


def test_a_hook_that_stopped_answering_makes_its_counts_unknown(monkeypatch):
    monkeypatch.setitem(stock._HOOKS, "breaks", lambda: None)
    monkeypatch.setattr(stock, "_silent", None)
    with stock.record() as seen:
        compiled(lambda x: x * 2)(torch.ones(3))
    assert seen.silent == {"breaks"}
    assert seen.counts == {"graphs": 1, "graph_breaks": None, "recompiles": 0, "cache_entries": 1}


def test_an_entry_that_went_with_its_object():
    taken = []

    def f(x):
        y = x + 1
        taken.append(print(end=""))
        return y * 2

    compiled = torch.compile(f, backend="eager")
    with stock.record() as seen:
        for _ in range(3):
            assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
    assert any("deallocated" in found.guards[0] for found in seen.recompiles if found.guards)
