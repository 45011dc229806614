"""Baselines: what each test compiled, in a TOML file that is kept with the code.

Rows have counts and cause keys, neither line numbers nor times, and hold for any engine.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_dynacheck._budgets import COUNTS, Limit
from pytest_dynacheck._options import Settings
from pytest_dynacheck._verdict import OK, OVER, UNKNOWN, Row, Verdict, counted

VERSION = 1
NEW, SAME, IMPROVED, WORSE = "new", "same", "improved", "worse"
_HEAD = """\
# What each test compiles, checked by pytest --dynacheck-baseline=FILE.
# Written by pytest --dynacheck-baseline=FILE --dynacheck-update-baseline.
"""
_SHOWN = 5


class Unreadable(Exception):
    """The file can't be used, in one line."""


class Entry(NamedTuple):
    """One test's row: numbers by name, without those that the engine couldn't know, and cause keys."""

    counts: dict[str, int]
    causes: tuple[str, ...]


class Comparison(NamedTuple):
    """A test against its row.

    Attributes:
        status: new, same, improved or worse.
        worse: what is more than in the row, one fact each.
        better: what is less.
        over: rows of the budget table for numbers above, and for those that this engine can't know.
    """

    status: str
    worse: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    over: tuple[Row, ...] = ()

    def plain(self) -> dict[str, Any]:
        return {"status": self.status, "worse": list(self.worse), "better": list(self.better)}


class Baseline:
    """A file's content.

    Args:
        entries: rows by test.
        written_with: torch, engine and backend that the numbers come from.
    """

    def __init__(self, entries: Mapping[str, Entry], written_with: Mapping[str, str]) -> None:
        self.entries = dict(entries)
        self.written_with = dict(written_with)

    def has(self, nodeid: str) -> bool:
        """True if there is a row for the test."""
        return _name(nodeid) in self.entries

    def compare(
        self, nodeid: str, counts: Mapping[str, int | None], causes: Iterable[str], engine: str
    ) -> Comparison:
        """What is more and what is less than in the test's row.

        Args:
            nodeid: the test.
            counts: what was counted.
            causes: keys that were met.
            engine: the engine that counted.
        """
        entry = self.entries.get(_name(nodeid))
        if entry is None:
            return Comparison(NEW)
        worse, better, over = [], [], []
        for name, number in entry.counts.items():
            now = counts[name]
            if now is None or now > number:
                over.append(Row(Limit(name, number, False, "baseline"), now, 0))
                worse.append(
                    f"{counted(now, name)}, baseline {number}"
                    if now is not None
                    else f"baseline {name}={number}: this engine can't count them on this version of torch"
                )
            elif now < number:
                better.append(f"{counted(now, name)}, baseline {number}")
        met = set(causes)
        if engine != self.written_with.get("engine", engine):
            met, known = _comparable(met, set(entry.causes))
        else:
            known = set(entry.causes)
        worse += [f"not in the baseline: {cause}" for cause in sorted(met - known)]
        better += [f"gone: {cause}" for cause in sorted(known - met)]
        status = WORSE if worse else IMPROVED if better else SAME
        return Comparison(status, tuple(_some(worse)), tuple(_some(better)), tuple(over))

    def differences(self, old: Baseline) -> tuple[int, int, int]:
        """How many rows are new, have changed and are gone."""
        both = self.entries.keys() & old.entries.keys()
        changed = sum(self.entries[name] != old.entries[name] for name in both)
        return len(self.entries) - len(both), changed, len(old.entries) - len(both)

    def text(self) -> str:
        """The file's text: rows by name, causes by key, one a line."""
        lines = [_HEAD, f"version = {VERSION}", "", "[written-with]"]
        lines += [f"{name} = {_quoted(value)}" for name, value in self.written_with.items()]
        for name, entry in sorted(self.entries.items()):
            lines += ["", f"[{_quoted(name)}]"]
            lines += [f"{count} = {entry.counts[count]}" for count in COUNTS if count in entry.counts]
            causes = sorted(entry.causes)
            lines += ["causes = [", *(f"    {_quoted(cause)}," for cause in causes), "]"] if causes else []
        return "\n".join(lines) + "\n"


def judged(comparison: Comparison, verdict: Verdict, *, strict: bool) -> Verdict:
    """The verdict with what the baseline says."""
    lines = list(comparison.worse)
    notes = list(verdict.notes)
    if comparison.status == NEW:
        (lines if strict else notes).append("no row in the baseline")
    kind = verdict.kind
    if lines and kind == OK:
        unknown = any(row.counted is None for row in comparison.over)
        kind = UNKNOWN if unknown else OVER
    return verdict._replace(
        baseline=comparison.plain(),
        kind=kind,
        lines=verdict.lines + tuple(lines),
        rows=verdict.rows + comparison.over,
        notes=tuple(notes),
    )


def entry_of(data: Mapping[str, Any]) -> Entry:
    """The row of a test, from what its report carried."""
    counts = {name: data["counts"][name] for name in COUNTS if data["counts"][name] is not None}
    return Entry(counts, tuple(sorted(data["causes"])))


def updated(
    old: Baseline, found: Mapping[str, Entry], gone: Iterable[str], written_with: Mapping[str, str]
) -> Baseline:
    """A baseline with the rows of tests that ran put in and those of tests that are gone left out."""
    dropped = set(gone)
    entries = {name: entry for name, entry in old.entries.items() if name not in dropped}
    entries |= {_name(nodeid): entry for nodeid, entry in found.items()}
    return Baseline(entries, written_with)


def load(settings: Settings) -> Baseline:
    """The baseline of a run; an empty one if it is to be written for the first time.

    Raises:
        pytest.UsageError: there is none, or it can't be used.
    """
    path = settings["baseline"]
    if settings.update_baseline and not path.exists():
        return Baseline({}, {})
    try:
        return read(path)
    except Unreadable as error:
        raise pytest.UsageError(f"{settings.origin('baseline')}={path}: {error}") from None


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises:
        Unreadable: it isn't there, isn't TOML, or isn't a baseline.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Unreadable("there is no such file; --dynacheck-update-baseline writes it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"it can't be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"it isn't valid TOML: {error}") from None
    version = data.pop("version", None)
    if version != VERSION:
        raise Unreadable(
            "it isn't a baseline: it has no version"
            if version is None
            else f"it has version {version!r}; this pytest-dynacheck reads version {VERSION}"
        )
    written_with = data.pop("written-with", {})
    if not isinstance(written_with, dict) or not all(isinstance(v, str) for v in written_with.values()):
        raise Unreadable("[written-with] takes texts only")
    return Baseline({name: _entry(name, row) for name, row in data.items()}, written_with)


def _entry(name: str, row: Any) -> Entry:
    where = f"[{_quoted(name)}]"
    if not isinstance(row, dict):
        raise Unreadable(f"{where} isn't a table")
    causes = row.get("causes", [])
    if not isinstance(causes, list) or not all(isinstance(cause, str) for cause in causes):
        raise Unreadable(f"{where}: causes takes a list of texts")
    for count, number in row.items():
        if count == "causes":
            continue
        if count not in COUNTS:
            raise Unreadable(f"{where}: there is no count {count!r}")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise Unreadable(f"{where}: {count} takes a whole number from 0 on, not {number!r}")
    return Entry({count: row[count] for count in COUNTS if count in row}, tuple(causes))


def _comparable(met: set[str], known: set[str]) -> tuple[set[str], set[str]]:
    """Causes that both engines can name.

    A break that has no id of ours is `break:torch:...`; the other engine's break in the same function is
    left out with it.
    """
    foreign = {cause.partition("@")[2] for cause in met | known if cause.startswith("break:torch:")}

    def kept(causes: set[str]) -> set[str]:
        return {c for c in causes if not (c.startswith("break:") and c.partition("@")[2] in foreign)}

    return kept(met), kept(known)


def _some(lines: list[str]) -> list[str]:
    return lines[:_SHOWN] + ([f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])


def _name(nodeid: str) -> str:
    """A test's name as the file can hold it: TOML has no lone surrogates."""
    return nodeid.encode("utf-8", "replace").decode("utf-8")


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(_name(text), ensure_ascii=False).replace("\x7f", "\\u007f")
