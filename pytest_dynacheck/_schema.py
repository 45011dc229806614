"""What is in the JSON document: a JSON Schema, from which the reference page is made too."""

from __future__ import annotations

from typing import Any

from pytest_dynacheck._results import VERDICTS

SCHEMA = "pytest-dynacheck/1"


def _is(kind: str | list[str], description: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "description": description, **more}


def _text(description: str) -> dict[str, Any]:
    return _is("string", description)


def _number(description: str) -> dict[str, Any]:
    return _is("integer", description, minimum=0)


def _seconds(description: str) -> dict[str, Any]:
    return _is("number", description, minimum=0)


def _flag(description: str) -> dict[str, Any]:
    return _is("boolean", description)


def _list(of: dict[str, Any], description: str) -> dict[str, Any]:
    return _is("array", description, items=of)


def _texts(description: str) -> dict[str, Any]:
    return _list({"type": "string"}, description)


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _record(description: str, optional: tuple[str, ...] = (), **fields: dict[str, Any]) -> dict[str, Any]:
    required = [name for name in fields if name not in optional]
    return _is("object", description, properties=fields, required=required)


_FILE = _text("Relative to pytest's rootdir, with `/`; for installed packages from the package's name.")
_LINE = _number("Line number, from 1; 0 if unknown.")
_FUNCTION = _text("Qualified name of the function.")
_PLACE = _is(
    ["array", "null"], "File and line of the user's call, or null.", items={"type": ["string", "integer"]}
)
_CAUSE = _text("The cause's key, as `allow` and baselines take it.")
_COUNT = {"type": ["integer", "null"], "minimum": 0}
_VERDICT = {"enum": [*VERDICTS, None]}
_BOUND_NAMES = "`graphs`, `graph_breaks`, `recompiles`, `cache_entries`, or one of these with `max_`."

COUNTS = _record(
    "What was counted. `null` is a number that the engine can't know; it is never 0.",
    graphs={**_COUNT, "description": "Graphs handed to the backend and kept."},
    graph_breaks={**_COUNT, "description": "Distinct places that break the graph."},
    recompiles={**_COUNT, "description": "Entries added to a code object that had one."},
    cache_entries={**_COUNT, "description": "The most entries of any one code object."},
    skipped={**_COUNT, "description": "Frames looked at and not translated."},
    eager_runs={**_COUNT, "description": "Frames that ran eagerly because they were refused or given up."},
    calls={**_COUNT, "description": "Outermost calls of compiled callables."},
)

BUDGET = _record(
    "One row of the budget table.",
    name=_text(_BOUND_NAMES),
    limit=_number("The number given."),
    counted=_is(["integer", "null"], "What was counted, without what was allowed; null if unknown."),
    allowed=_number("How many more were allowed by cause."),
    ok=_flag("The budget was kept."),
)  # fmt: skip

BUDGET["properties"]["from"] = _text(
    "Where the number comes from: `marker`, an option, an environment variable, the ini file, `baseline`."
)
BUDGET["required"].append("from")

GRAPH = _record(
    "A graph that was handed to the backend and kept.",
    optional=("code",),
    function=_FUNCTION,
    file=_FILE,
    line=_LINE,
    nodes=_number("Operations in it."),
    inputs=_texts("The user's spelling of each input."),
    backend=_text("The backend that got it."),
    recompile=_flag("It was made by a recompile."),
    seconds=_seconds("What making it took, backend included."),
    code=_text("Its Python source; cut after some thousand lines."),
)

BREAK = _record(
    "A place where a graph broke.",
    cause=_CAUSE,
    eager_cause=_text("Key of the eager run, if the frame was given up there; else empty."),
    reason=_text("What it was, in a few words."),
    message=_text("The reason in a sentence."),
    file=_FILE,
    line=_LINE,
    text=_text("That line's text."),
    function=_FUNCTION,
    owner=_text("The package whose line it is."),
    times=_number("In how many compiles it was met."),
    skipped=_flag("The frame couldn't go on after it and ran eagerly as a whole."),
    hint=_text("What to do; may be empty."),
    stack=_list(
        _is("array", "File, line and function.", items={"type": ["string", "integer"]}),
        "The user's lines that led there, outermost first.",
    ),
)

CHANGE = _record(
    "A value that differed from what the compiled code assumed.",
    source=_text("The value, as the user spells it."),
    kind=_text("What about it: value, size, type, training, …; the reference lists them."),
    subject=_text("Both in words: `x (size of dim 0)`."),
    then=_text("What was assumed, as text, cut at 200 characters."),
    now=_text("What came."),
    detail=_text("Which part of it; may be empty."),
    file=_FILE,
    line=_LINE,
    text=_text("The line that needed it."),
    hint=_text("What to do; may be empty."),
    decided=_flag("This guard decided the cause; the others only differ."),
)

RECOMPILE = _record(
    "A function was compiled again.",
    cause=_CAUSE,
    code=_FUNCTION,
    file=_FILE,
    line=_LINE,
    entry=_number("How many entries there were before."),
    resume_line={
        "type": ["integer", "null"],
        "description": "Where it goes on, for the rest of a function after a break.",
    },
    branch={
        "type": ["boolean", "null"],
        "description": "Whether the condition at resume_line was true, for what is behind a branch on a tensor.",
    },
    seconds=_seconds("What it took, backend included."),
    triggered_at=_PLACE,
    changes=_list(_ref("change"), "Differences from the nearest entry, the deciding one first."),
)

EAGER_RUN = _record(
    "A frame that ran as it is, once per code, cause and call.",
    cause=_CAUSE,
    why=_text("`limit`, `skip`, `stance`, `raised` or `fault`."),
    function=_FUNCTION,
    file=_FILE,
    line=_LINE,
    message=_text("Why, in a sentence; may be empty."),
    changes=_list(_ref("change"), "At the recompile limit: what would have been compiled again for."),
    call=_number("Number of the compiled call."),
)

SKIPPED = _record(
    "A frame that was looked at and not translated.",
    function=_FUNCTION,
    file=_FILE,
    line=_LINE,
    reason=_text("Id of the reason."),
    message=_text("The reason in a sentence."),
)

CALL = _record(
    "An outermost call of a compiled callable.",
    function=_FUNCTION,
    outcome={"enum": ["hit", "miss", "eager", "running"], "description": "`miss` if it compiled anything."},
    eager=_texts("Keys of its eager runs."),
    raised=_flag("It raised."),
    at=_PLACE,
)

LEAK = _record(
    "A setting that the test changed and didn't put back; the plugin did.",
    name=_text("Which setting."),
    old=_text("What it was, as text."),
    new=_text("What the test left."),
)

BASELINE = _is(
    ["object", "null"],
    "The test against its row in the baseline; null without one to compare with.",
    properties={
        "status": {"enum": ["new", "same", "improved", "worse"], "description": "`new`: there is no row."},
        "worse": _texts("What is more than in the row, one fact each."),
        "better": _texts("What is less."),
    },
    required=["status", "worse", "better"],
)

_TIME = ["number", "null"]
BENCHMARK = _is(
    ["object", "null"],
    "What `dynacheck_benchmark` measured, in seconds; null in a test without it.",
    properties={
        "eager": _is(_TIME, "The shortest eager call; null if benchmarks are disabled."),
        "compiled": _is(_TIME, "The shortest compiled call."),
        "speedup": _is(_TIME, "The first over the second."),
        "first_call": _is(_TIME, "The first compiled call, compiling included."),
        "first_call_cache": {
            "enum": ["warm", "cold", "none"],
            "description": "Whether compiled code came from a disk cache; `none` if none was asked.",
        },
        "break_even": _is(_TIME, "How many calls make up for the first; null if none do."),
        "min_speedup": _is(_TIME, "The speed-up asked for, if any."),
    },
    required=["eager", "compiled", "speedup", "first_call", "first_call_cache", "break_even", "min_speedup"],
)

TEST = _record(
    "One test: each one under test, and each other one that was watched and compiled something.",
    nodeid=_text("pytest's name of the test."),
    outcome={
        "enum": ["passed", "failed", "skipped", "error", "xfailed", "xpassed"],
        "description": "What pytest made of it.",
    },
    seconds=_seconds("What its call phase took."),
    engine=_text("The engine that compiled."),
    backend=_text("The configured backend."),
    under_test=_flag("It was judged, not only watched."),
    verdict={**_VERDICT, "description": "The judgement; null if there was none (its setup or it itself failed)."},
    messages=_texts("What is wrong, one fact each; the failure's message."),
    notes=_texts("What is worth knowing and no fault."),
    budgets=_list(_ref("budget"), "Budgets, with where each number comes from."),
    allowed=_texts("Causes that were met and allowed."),
    unused=_texts("Globs of `allow` that matched nothing."),
    baseline=_ref("baseline"),
    benchmark=_ref("benchmark"),
    hints=_is(
        "object", "Lines of other plugins, by cause.",
        additionalProperties={"type": "array", "items": {"type": "string"}},
    ),
    rows=_is("object", "Rows of other plugins, by name.", additionalProperties={"type": "string"}),
    counts=_ref("counts"),
    graphs=_list(_ref("graph"), "Graphs, in the order they were made."),
    graph_breaks=_list(_ref("graph_break"), "Places, in the order they were met."),
    recompiles=_list(_ref("recompile"), "Recompiles, in order."),
    eager_runs=_list(_ref("eager_run"), "Eager runs, in order."),
    skipped=_list(_ref("skipped"), "Skipped frames, in order."),
    calls=_list(_ref("call"), "Compiled calls, in order."),
    causes=_is("object", "How often each cause was met, by key.", additionalProperties={"type": "integer"}),
    compared=_is(
        ["object", "null"],
        "Calls compared with eager: how many, and how many were not, by why; null if none were to be.",
    ),
    setup=_is(
        "object", "What had been counted before the test's call phase; not judged.",
        additionalProperties=_COUNT,
    ),
    state_leaks=_list(_ref("state_leak"), "Settings it didn't put back."),
)  # fmt: skip

DEFINITIONS = {
    "test": TEST,
    "counts": COUNTS,
    "baseline": BASELINE,
    "benchmark": BENCHMARK,
    "budget": BUDGET,
    "graph": GRAPH,
    "graph_break": BREAK,
    "recompile": RECOMPILE,
    "change": CHANGE,
    "eager_run": EAGER_RUN,
    "skipped": SKIPPED,
    "call": CALL,
    "state_leak": LEAK,
}

DOCUMENT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": SCHEMA,
    "title": "A run of pytest with pytest-dynacheck",
    **_record(
        "One run.",
        schema={"const": SCHEMA, "description": "Name and version of this format."},
        pytest_dynacheck=_text("Version of the plugin."),
        pytest=_text("Version of pytest."),
        torch=_text("Version of torch."),
        python=_text("Version of Python."),
        platform=_text("System and processor."),
        engine=_text("The configured engine; a test's own may differ."),
        backend=_text("The configured backend; a test's own may differ."),
        device=_text("The configured device."),
        problem=_is(
            ["string", "null"], "Why functions compiled before a test couldn't be redirected, or null."
        ),
        verdicts=_is(
            "object",
            "How many tests got each verdict; those that none got are left out.",
            additionalProperties={"type": "integer"},
        ),
        tests=_list(_ref("test"), "Tests, by name."),
    ),
    "$defs": DEFINITIONS,
}
