"""The run as one HTML page that needs nothing else: made from the JSON document, which it has inside.

Everything is there without its script, which only filters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import quote

from pytest_dynacheck._benchmark import sentence
from pytest_dynacheck._budgets import NOTHING_COMPILED
from pytest_dynacheck._results import VERDICTS
from pytest_dynacheck._words import ALLOWED, WORDS, given_up, one_line

_OPEN = 10  # faulty tests that are open from the start
_SHOWN_CALLS = 60
_COUNTS = {
    "graphs": "graphs",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "cache_entries": "cache entries",
    "skipped": "skipped frames",
    "eager_runs": "eager runs",
    "calls": "calls",
}


def page(document: Mapping[str, Any]) -> str:
    """The page's text.

    Args:
        document: what `_json.document` gives.
    """
    tests = sorted(document["tests"], key=lambda test: test["verdict"] in (None, "ok"))  # by name before
    faulty = sum(test["verdict"] not in (None, "ok") for test in tests)
    title = (
        f"dynacheck: {faulty} of {len(tests)} tests not ok" if faulty else f"dynacheck: {len(tests)} tests ok"
    )
    data = json.dumps(document, ensure_ascii=False, allow_nan=False)
    for mark in "<>&":  # a script's text ends at the first end tag, whatever it stands in
        data = data.replace(mark, f"\\u{ord(mark):04x}")
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{_asset('page.css')}</style>",
        "</head>",
        "<body>",
        *_header(document),
        "<main>",
        *_causes(tests),
        "<section>",
        '<h2 id="tests">Tests</h2>',
        *_filter(tests),
        *(line for test in tests for line in _test(test, opened=0 < faulty <= _OPEN)),
        *([] if tests else ["<p>No test was under test.</p>"]),
        "</section>",
        "</main>",
        f'<script type="application/json" id="data">{data}</script>',
        f"<script>\n{_asset('page.js')}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _asset(name: str) -> str:
    return resources.files("pytest_dynacheck").joinpath("page", name).read_text(encoding="utf-8")


def _anchor(text: str) -> str:
    """An id for a text; ids have no white space."""
    return quote(text, safe=":@/.,;=+*'()[]<>!$-_")


def _link(text: str, shown: str | None = None) -> str:
    return f'<a href="#{escape(_anchor(text))}"><code>{escape(text if shown is None else shown)}</code></a>'


def _code(text: Any) -> str:
    return f"<code>{escape(str(text))}</code>"


def _prose(text: str) -> str:
    """A sentence in which `code` is marked."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _place(record: Mapping[str, Any]) -> str:
    return _code(f"{record['file']}:{record['line']}")


def _at(place: Sequence[Any]) -> str:
    return ":".join(map(str, place))


def _met(nodeid: str, cause: str) -> str:
    """Where a test tells of a cause."""
    return f"{nodeid} {cause}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    def cell(i: int, html: str) -> str:
        return f'<td class="number">{html}</td>' if i in numbers else f"<td>{html}</td>"

    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join("<tr>" + "".join(cell(i, c) for i, c in enumerate(row)) + "</tr>\n" for row in rows)
    return f'<div class="scroll"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def _header(document: Mapping[str, Any]) -> Iterator[str]:
    yield "<header>"
    yield "<h1>Compile stability</h1>"
    facts = [f"{name} {document[name]}" for name in ("engine", "backend", "device", "torch")]
    facts.append(f"Python {document['python']}")
    facts.append(f"pytest-dynacheck {document['pytest_dynacheck']}")
    yield f'<p class="run">{escape(" · ".join(facts))}</p>'
    if document["problem"]:
        yield f"<p>Functions compiled before a test can't be redirected: {escape(document['problem'])}</p>"
    verdicts = document["verdicts"]
    yield '<ul class="tally">'
    for verdict in VERDICTS:
        if verdict in verdicts:
            yield f'<li class="{verdict}">{verdicts[verdict]} {escape(WORDS[verdict])}</li>'
    unjudged = len(document["tests"]) - sum(verdicts.values())
    if unjudged:
        yield f'<li class="none">{unjudged} not judged</li>'
    yield "</ul>"
    yield "</header>"


def _causes(tests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every cause with the tests that met it: the page's index."""
    met: dict[str, list[tuple[str, int]]] = {}
    for test in tests:
        for cause, times in test["causes"].items():
            met.setdefault(cause, []).append((test["nodeid"], times))
    if not met:
        return
    rows = [
        (
            _code(cause),
            str(sum(times for _, times in where)),
            "<br>".join(_link(_met(name, cause), name) for name, _ in where[:5])
            + (f"<br>and {len(where) - 5} more" if len(where) > 5 else ""),
        )
        for cause, where in sorted(met.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    yield "<section>"
    yield '<h2 id="causes">Causes</h2>'
    yield _table(("cause", "times", "met in"), rows, frozenset({1}))
    yield "</section>"


def _kinds(test: Mapping[str, Any]) -> list[str]:
    """What a test is filtered by: its verdict, and whether something was allowed."""
    kinds = [test["verdict"] or "none"]
    return kinds + ([ALLOWED] if test["allowed"] else [])


def _filter(tests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    there = {kind for test in tests for kind in _kinds(test)}
    words = {"all": "all", **WORDS, ALLOWED: "allowed", "none": "not judged"}
    yield '<form id="filter" hidden>'
    yield '<label>Find <input type="search" name="text" placeholder="test, file or cause"></label>'
    yield '<button type="button" id="open">Open all</button>'
    yield '<button type="button" id="close">Close all</button>'
    yield '<button type="button" id="save">Save the data</button>'
    yield '<output id="shown"></output>'
    yield "<fieldset><legend>Show</legend>"
    for kind, word in words.items():
        if kind == "all" or kind in there:
            checked = " checked" if kind == "all" else ""
            yield f'<label><input type="radio" name="kind" value="{kind}"{checked}> {escape(word)}</label>'
    yield "</fieldset>"
    yield "</form>"


def _test(test: Mapping[str, Any], *, opened: bool) -> Iterator[str]:
    verdict = test["verdict"] or "none"
    is_open = " open" if opened and verdict not in ("ok", "none") else ""
    words = " ".join([test["nodeid"], *test["causes"]]).lower()
    kinds = " ".join(_kinds(test))
    yield (
        f'<details class="test" id="{escape(_anchor(test["nodeid"]))}" data-kinds="{kinds}" '
        f'data-text="{escape(words)}"{is_open}>'
    )
    word = WORDS.get(verdict, "not judged")
    allowed = f'<span class="badge {ALLOWED}">allowed</span>' if test["allowed"] else ""
    yield (
        f'<summary><span class="badge {verdict}">{escape(word)}</span>{allowed}'
        f'<span class="name">{_code(test["nodeid"])}</span>'
        f'<span class="soft">{escape(one_line(test["counts"]) if _known(test) else "")}</span></summary>'
    )
    yield "<div>"
    yield from _facts(test)
    yield from _breaks(test)
    yield from _recompiles(test)
    yield from _eager_runs(test)
    yield from _graphs(test)
    yield "</div>"
    yield "</details>"


def _facts(test: Mapping[str, Any]) -> Iterator[str]:
    if test["messages"]:
        lines = "".join(f"<li>{_prose(line)}</li>" for line in test["messages"])
        yield f'<ul class="messages {test["verdict"]}">{lines}</ul>'
    if NOTHING_COMPILED in test["causes"]:
        yield _row(test, NOTHING_COMPILED, set())
        yield from _cause(test, NOTHING_COMPILED)
        yield "</div>"
    about = (
        f"{test['outcome']} in {test['seconds']:.2f} s · engine {test['engine']} · backend {test['backend']}"
    )
    yield f'<p class="soft">{escape(about)}</p>'
    for note in test["notes"]:
        yield f"<p>Note: {_prose(note)}</p>"
    if test["budgets"]:
        rows = [
            (
                "kept" if row["ok"] else "<strong>over</strong>",
                _code(row["name"]),
                str(row["limit"]),
                "?" if row["counted"] is None else str(row["counted"]),
                str(row["allowed"] or ""),
                escape(row["from"]),
            )
            for row in test["budgets"]
        ]
        yield "<h3>Budgets</h3>"
        yield _table(("", "budget", "limit", "counted", "allowed", "from"), rows, frozenset({2, 3, 4}))
    if _known(test):
        yield "<h3>Counts</h3>"
        yield f"<p>{escape(_numbers(test['counts']))}</p>"
    else:
        yield "<p>Nothing is known about what it compiled.</p>"
    if any(test["setup"].values()):
        yield f"<p>Compiled in setup, not counted: {escape(_numbers(test['setup']))}</p>"
    baseline = test["baseline"]
    if baseline and (baseline["worse"] or baseline["better"]):
        yield f"<p>Against the baseline: {escape('; '.join([*baseline['worse'], *baseline['better']]))}</p>"
    if test["benchmark"]:
        yield f"<p>Benchmark: {escape(sentence(test['benchmark']))}</p>"
    for name, value in test["rows"].items():
        yield f"<p>{escape(name)}: {escape(value)}</p>"
    if test["unused"]:
        yield f"<p>Allowed and not met: {', '.join(map(_code, test['unused']))}</p>"
    if test["state_leaks"]:
        leaks = [
            (_code(leak["name"]), _code(leak["old"]), _code(leak["new"])) for leak in test["state_leaks"]
        ]
        yield "<h3>Left behind, restored</h3>"
        yield _table(("setting", "before", "after"), leaks)


def _known(test: Mapping[str, Any]) -> bool:
    return any(number is not None for number in test["counts"].values())


def _numbers(counts: Mapping[str, int | None]) -> str:
    return ", ".join(
        f"{word} {'?' if counts[name] is None else counts[name]}"
        for name, word in _COUNTS.items()
        if name in counts
    )


def _cause(test: Mapping[str, Any], *keys: str) -> Iterator[str]:
    """The end of a row: the keys that allow it."""
    for key in keys:
        for line in test["hints"].get(key, ()):
            yield f"<p><strong>What to do:</strong> {_prose(line)}</p>"
    for key in filter(None, keys):
        done = "Allowed as" if key in test["allowed"] else "Allow with"
        yield f'<p class="soft">{done} {_code(key)}</p>'


def _row(test: Mapping[str, Any], cause: str, done: set[str]) -> str:
    """The start of a row; the first one of a cause is where the index leads."""
    anchor = "" if cause in done else f' id="{escape(_anchor(_met(test["nodeid"], cause)))}"'
    done.add(cause)
    return f'<div class="cause"{anchor}>'


def _breaks(test: Mapping[str, Any]) -> Iterator[str]:
    done: set[str] = set()
    eager = {run["cause"]: (run["function"], run["message"]) for run in reversed(test["eager_runs"])}
    if test["graph_breaks"]:
        yield "<h3>Graph breaks</h3>"
    for record in test["graph_breaks"]:
        yield _row(test, record["cause"], done)
        times = f", met {record['times']} times" if record["times"] > 1 else ""
        yield (
            f"<p>{_place(record)} in {_code(record['function'])}: "
            f"<strong>{escape(record['reason'])}</strong>{times}</p>"
        )
        if record["text"].strip():
            yield f"<pre>{escape(record['text'].strip())}</pre>"
        yield f"<p>{_prose(record['message'])}</p>"
        if record["skipped"]:
            yield f"<p>{escape(given_up(eager.get(record['eager_cause'])))}</p>"
        if record["hint"]:
            yield f"<p><strong>What to do:</strong> {_prose(record['hint'])}</p>"
        stack = [frame for frame in record["stack"] if frame[1:] != [record["line"], record["function"]]]
        if stack:
            lines = "\n".join(f"{file}:{line} in {function}" for file, line, function in reversed(stack))
            yield f'<details class="graph"><summary>called at</summary><pre>{escape(lines)}</pre></details>'
        yield from _cause(test, record["cause"], record["eager_cause"])
        yield "</div>"


def _recompiles(test: Mapping[str, Any]) -> Iterator[str]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in test["recompiles"]:
        groups.setdefault(record["cause"], []).append(record)
    if groups:
        yield "<h3>Recompiles</h3>"
    for cause, records in groups.items():
        first, last = records[0], records[-1]
        yield _row(test, cause, set())
        times = f"{len(records)} times" if len(records) > 1 else f"(entry {first['entry']})"
        took = sum(record["seconds"] for record in records) * 1e3
        at = f", triggered at {_code(_at(last['triggered_at']))}" if last["triggered_at"] else ""
        rest = f" after line {first['resume_line']}" if first["resume_line"] else ""
        rest += "" if first["branch"] is None else f", {str(first['branch']).lower()}"
        yield f"<p>{_code(first['code'])} ({_place(first)}){rest} compiled again {times}, {took:.0f} ms{at}</p>"
        if len(records) > 1:
            yield from _history([record["changes"][0] for record in records if record["changes"]])
        else:
            for change in first["changes"]:
                yield from _change(change)
        yield from _cause(test, cause)
        yield "</div>"


def _assumed(change: Mapping[str, Any]) -> str:
    if not change["line"]:
        return ""
    return f", assumed at {_place(change)} {_code(change['text'].strip())}"


def _history(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The values that one cause went through."""
    if not changes:
        return
    values = [changes[0]["then"], *(change["now"] for change in changes)]
    kept = [value for i, value in enumerate(values) if i == 0 or value != values[i - 1]]
    shown = ", ".join(kept[:12]) + (", …" if len(kept) > 12 else "")
    yield f"<p>{_code(changes[0]['subject'])}: {_code(shown)}{_assumed(changes[0])}</p>"
    for hint in dict.fromkeys(change["hint"] for change in changes if change["hint"]):
        yield f"<p><strong>What to do:</strong> {_prose(hint)}</p>"


def _change(change: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p>{_code(change['subject'])}{_assumed(change)}</p>"
    then, now = escape(change["then"]), escape(change["now"])
    yield f'<div class="diff"><del>- {then}</del><ins>+ {now}</ins></div>'
    if change["hint"] and change["decided"]:
        yield f"<p><strong>What to do:</strong> {_prose(change['hint'])}</p>"


def _eager_runs(test: Mapping[str, Any]) -> Iterator[str]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in test["eager_runs"]:
        groups.setdefault(record["cause"], []).append(record)
    if groups:
        yield "<h3>Eager runs</h3>"
    for cause, records in groups.items():
        first = records[0]
        yield _row(test, cause, set())
        calls = f"{len(records)} calls" if len(records) > 1 else "1 call"
        yield (
            f"<p>{_code(first['function'])} ({_place(first)}) ran eagerly in {calls}: "
            f"{_prose(first['message'] or first['why'])}</p>"
        )
        for change in first["changes"][:1]:
            yield from _change(change)
        yield from _cause(test, cause)
        yield "</div>"


def _graphs(test: Mapping[str, Any]) -> Iterator[str]:
    if test["calls"]:
        yield "<h3>Calls</h3>"
        yield '<ul class="calls">'
        style = {"hit": "ok", "miss": "allowed", "eager": "eager", "running": "none"}
        for call in test["calls"][:_SHOWN_CALLS]:
            at = _at(call["at"]) if call["at"] else call["function"]
            yield f'<li class="badge {style[call["outcome"]]}" title="{escape(at)}">{call["outcome"]}</li>'
        yield "</ul>"
        if len(test["calls"]) > _SHOWN_CALLS:
            yield f"<p>and {len(test['calls']) - _SHOWN_CALLS} more</p>"
    if test["graphs"]:
        yield "<h3>Graphs</h3>"
    for number, graph in enumerate(test["graphs"], 1):
        nodes = f"{graph['nodes']} operations" if graph["nodes"] != 1 else "1 operation"
        again = ", by recompile" if graph["recompile"] else ""
        yield (
            f'<details class="graph"><summary>{number}: {_code(graph["function"])} '
            f"({_place(graph)}), {nodes}{again}</summary>"
        )
        yield f"<pre>{escape(graph.get('code') or 'its source was not kept')}</pre>"
        yield "</details>"
