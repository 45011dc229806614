"""Reports from events: every counting rule of the documentation, with events made by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from dynacheck import events as ev
from dynacheck.counting import title_of
from dynacheck.report import Report, observe

ROOT = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(ROOT, "model.py")
TEST = os.path.join(ROOT, "test_model.py")


def forward(self, x):
    return x


CODE = ev.CodeRef(MODEL, 41, "forward", "Encoder.forward", code=forward.__code__)
REST = ev.CodeRef(MODEL, 41, "forward", "Encoder.forward", resume_line=45, code=forward.__code__)
HERE = ev.StackLine(TEST, 17, "test_scale", "model(x)")


def graph(frame=0, attempt=0, call=1, code=CODE):
    return ev.GraphCaptured(
        ev.CompileId(frame, attempt), code, "eager", 3, ("x",), lambda: "def forward(self, x): ...", call=call
    )


def scale(then, now, line=44, source="self.scale", kind="value"):
    return ev.ChangeRow(
        kind, source, f"L['self'].{source[5:]}", then, now, file=MODEL, line=line, text="x = x * self.scale"
    )


def entry(frame=0, attempt=0, misses=(), call=1, code=CODE, recompile=None):
    return ev.EntryAdded(
        ev.CompileId(frame, attempt),
        code,
        attempt,
        True,
        bool(misses) if recompile is None else recompile,
        tuple(misses),
        HERE,
        seconds=0.184,
        call=call,
    )


def broke(*stack, frame=0, attempt=0, skipped=False, reason="DC103", code=CODE):
    return ev.GraphBroke(
        ev.CompileId(frame, attempt), code, reason, "`print` ...", "remove it", stack, skipped
    )


def report(*events):
    return Report(events, root=ROOT)


USER = ev.StackLine(MODEL, 56, "Encoder.forward", "print(x)")


def test_the_first_entry_is_no_recompile():
    seen = report(graph(), entry())
    assert seen.counts["graphs"] == 1
    assert seen.counts["recompiles"] == 0
    assert seen.counts["cache_entries"] == 1
    assert not seen.graphs[0].recompile


def test_a_recompile_has_a_cause_and_changes():
    miss = ev.EntryMiss(0, (scale(0.5, 0.6), scale(1, 2, source="self.steps")))
    seen = report(graph(), entry(), graph(0, 1, 2), entry(0, 1, [miss], 2))
    [again] = seen.recompiles
    assert again.cause == "recompile:value:self.scale@model.py:Encoder.forward"
    assert [(c.source, c.then, c.now, c.decided) for c in again.changes] == [
        ("self.scale", 0.5, 0.6, True),
        ("self.steps", 1, 2, False),
    ]
    assert (again.changes[0].file, again.changes[0].line) == ("model.py", 44)
    assert "make it a buffer" in again.changes[0].hint
    assert seen.graphs[1].recompile
    assert seen.causes == {again.cause: 1}


def test_another_region_is_a_recompile_of_kind_region():
    seen = report(entry(), entry(0, 1, [ev.EntryMiss(0, (), region_differs=True)]))
    assert seen.recompiles[0].cause == "recompile:region:compile@model.py:Encoder.forward"


def test_isolated_regions_are_no_recompile():
    seen = report(entry(), entry(0, 1, [ev.EntryMiss(0, (), region_differs=True)], recompile=False))
    assert seen.counts["recompiles"] == 0
    assert seen.counts["cache_entries"] == 2


def test_cache_entries_are_the_most_of_one_code_object():
    seen = report(entry(0, 0), entry(0, 1, [ev.EntryMiss(0, (scale(1, 2),))]), entry(1, 0, code=REST))
    assert seen.counts["cache_entries"] == 2
    assert len(seen.cache_entries) == 3


def test_a_reset_empties_caches_but_keeps_what_was_counted():
    seen = report(graph(), entry(), ev.WasReset(), graph(), entry())
    assert seen.counts["cache_entries"] == 1
    assert seen.counts["graphs"] == 2


def test_breaks_are_counted_by_place():
    seen = report(broke(USER), broke(USER, attempt=1), broke(ev.StackLine(MODEL, 57, "Encoder.forward")))
    assert seen.counts["graph_breaks"] == 2
    assert [b.times for b in seen.graph_breaks] == [2, 1]
    assert seen.causes == {"break:DC103@model.py:Encoder.forward": 2}


def test_one_place_with_two_reasons_is_two_breaks():
    assert report(broke(USER), broke(USER, reason="DC102")).counts["graph_breaks"] == 2


def test_breaks_in_the_library_are_shown_at_the_users_call():
    inside = ev.StackLine(os.__file__.replace("os.py", "copy.py"), 153, "deepcopy")
    [found] = report(broke(USER, inside)).graph_breaks
    assert (found.file, found.line, found.function) == ("model.py", 56, "Encoder.forward")
    assert len(found.stack) == 2


def test_a_break_without_a_user_line_keeps_the_innermost():
    inside = ev.StackLine(os.__file__.replace("os.py", "copy.py"), 153, "deepcopy")
    assert report(broke(inside)).graph_breaks[0].file == "copy.py"


def test_owner():
    import pytest as package

    inner = ev.StackLine(package.__file__, 3, "f")
    [found] = report(broke(USER, inner)).graph_breaks
    assert found.owner == "pytest"
    assert found.file == "pytest/__init__.py"
    assert found.owned_by("pytest")
    assert not found.owned_by("torch")


def test_a_break_that_gives_the_frame_up_has_both_keys():
    eager = ev.RanEagerly(CODE, "skip", "DC202", call=1)
    seen = report(broke(USER, skipped=True), ev.FrameSkipped(CODE, "DC202", "...", (), True, call=1), eager)
    assert seen.graph_breaks[0].eager_cause == "eager:skip@model.py:Encoder.forward"
    assert seen.eager_runs[0].cause == "eager:skip@model.py:Encoder.forward"
    assert seen.skipped[0].caused_by_break


def test_eager_runs_count_once_per_code_cause_and_call():
    seen = report(
        *[ev.RanEagerly(CODE, "limit", call=n) for n in (1, 1, 2)], ev.RanEagerly(CODE, "skip", call=2)
    )
    assert [(r.why, r.call) for r in seen.eager_runs] == [("limit", 1), ("limit", 2), ("skip", 2)]


def test_calls_have_outcomes_and_list_their_eager_runs():
    seen = report(
        ev.CallStarted(CODE, HERE, call=1),
        entry(),
        ev.CallFinished(CODE, "miss", 0, False, call=1),
        ev.CallStarted(CODE, HERE, call=2),
        ev.RanEagerly(REST, "limit", call=2),
        ev.CallFinished(CODE, "hit", 1, True, call=2),
        ev.CallStarted(CODE, HERE, call=3),
    )
    assert [(c.outcome, c.raised) for c in seen.calls] == [("miss", False), ("hit", True), ("running", False)]
    assert seen.calls[1].eager == ("eager:limit@model.py:Encoder.forward",)


def test_a_fault_of_the_engine_is_an_eager_run():
    seen = report(ev.InternalFault(CODE, "KeyError", "...", call=1))
    assert seen.eager_runs[0].why == "fault"
    assert seen.failures


def test_of_takes_calls_of_the_function_and_its_code():
    other = ev.CodeRef(MODEL, 90, "g", "g", code=test_owner.__code__)
    seen = report(
        ev.CallStarted(CODE, HERE, call=1),
        graph(1, 0, 1, other),
        ev.CallStarted(other, HERE, call=2),
        graph(2, 0, 2, other),
    )
    assert seen.of(forward).counts["graphs"] == 1
    assert seen.of(test_owner).counts["graphs"] == 2
    assert seen.of(report).counts["graphs"] == 0


def test_the_json_form_is_plain():
    miss = ev.EntryMiss(0, (scale(0.5, object),))
    seen = report(ev.CallStarted(CODE, HERE, call=1), graph(), entry(0, 1, [miss]), broke(USER))
    data = json.loads(json.dumps(seen.to_json()))
    assert data["counts"]["graphs"] == 1
    assert data["recompiles"][0]["changes"][0]["then"] == "0.5"
    assert data["recompiles"][0]["triggered_at"] == ["test_model.py", 17]
    assert data["graph_breaks"][0]["stack"] == [["model.py", 56, "Encoder.forward"]]
    assert list(data["causes"]) == sorted(data["causes"])


def test_a_frozen_report_stays():
    with observe(ROOT) as seen:
        ev.observers.emit(graph())
        before = seen.frozen()
        ev.observers.emit(graph(1))
    ev.observers.emit(graph(2))
    assert before.counts["graphs"] == 1
    assert seen.counts["graphs"] == 2
    assert seen.since(1).counts["graphs"] == 1


def test_observers_see_other_threads():
    import threading

    with observe(ROOT) as seen:
        thread = threading.Thread(target=ev.observers.emit, args=(graph(),))
        thread.start()
        thread.join()
    assert seen.counts["graphs"] == 1


@pytest.mark.parametrize(
    ("reason", "title"), [("DC103", "call that writes output"), ("torch:Strange", "torch:Strange")]
)
def test_titles(reason, title):
    assert title_of(reason) == title


def test_observing_before_the_engine_is_loaded():
    code = (
        "import torch, dynacheck\n"
        "with dynacheck.observe() as seen:\n"
        "    compiled = dynacheck.compile(lambda x: x + 1, backend='eager')\n"
        "    for _ in range(3):\n"
        "        compiled(torch.ones(2))\n"
        "print(*[call.outcome for call in seen.calls])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["miss", "hit", "hit"]
