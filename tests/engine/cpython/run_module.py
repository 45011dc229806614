"""Run one of CPython's test modules, plain and then with the body of each test compiled, and tell the outcomes.

    python run_module.py test_list FOLDER [--only NAME…] [--skip NAME…]

One line of JSON per test on the standard output: `{"start": name}` before it runs, then its outcomes. The modules are
run from copies, since frames of the standard library are never translated.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import shutil
import signal
import traceback
import types
import unittest
from pathlib import Path
from typing import Any

import asserting
import dynacheck
import test as cpython
import torch
from dynacheck import events, reasons
from dynacheck.runtime import callback
from dynacheck.translate import translate

HELPERS = ("list_tests", "seq_tests", "mapping_tests", "string_tests", "lock_tests")
SECONDS = 20
"""How much processor time one test may take."""


class TooLong(BaseException):
    """A test that takes too long."""


def stop(*_: object) -> None:
    raise TooLong


def copied(name: str, folder: Path) -> Any:
    """The test module, imported from a copy."""
    source = Path(cpython.__path__[0])
    for part in (name, *HELPERS):
        path = source / f"{part}.py"
        if path.exists():
            shutil.copy(path, folder / path.name)
        elif (source / part).is_dir():
            shutil.copytree(source / part, folder / part, dirs_exist_ok=True)
    cpython.__path__.insert(0, str(folder))
    return importlib.import_module(f"test.{name}")


def tests_of(module: Any) -> list[unittest.TestCase]:
    """The test cases of a module, in order, one of each name."""
    loader = unittest.TestLoader()
    found = []
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, unittest.TestCase)
            and value.__module__ == module.__name__
        ):
            found += list(loader.loadTestsFromTestCase(value))
    return found


def name_of(test: unittest.TestCase) -> str:
    return f"{type(test).__name__}.{test._testMethodName}"


class Outcome(unittest.TestResult):
    """What became of one test."""

    def __init__(self) -> None:
        super().__init__()
        self.found = "passed"
        self.text = ""

    def took(self, kind: str, err: Any) -> None:
        self.found = f"{kind} {err[0].__name__}"
        self.text = "".join(traceback.format_exception(*err))[-3000:]

    def addError(self, test: Any, err: Any) -> None:
        self.took("error", err)

    def addFailure(self, test: Any, err: Any) -> None:
        self.took("failure", err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.took("failure", err)

    def addSkip(self, test: Any, reason: str) -> None:
        self.found = "skipped"

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.found = "expected failure"

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.found = "unexpected success"


def outcome(test: unittest.TestCase) -> Outcome:
    """Run one test under the time limit."""
    result = Outcome()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        unittest.TestSuite([test]).run(result)
    except TooLong:
        result.found = "too long"
        result.text = traceback.format_exc()[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return result


def lines(stack: tuple[events.StackLine, ...]) -> str:
    """A stack in one line."""
    return " < ".join(f"{Path(s.file).stem}:{s.line} {s.text}" for s in reversed(stack))


def compiled(test: unittest.TestCase) -> dict[str, Any]:
    """Run a test with its body compiled: its outcome and what the engine did."""
    name = test._testMethodName
    fn = getattr(type(test), name)
    dynacheck.reset()
    again = type(test)(name)
    again.__dict__[name] = types.MethodType(dynacheck.compile(fn, backend="eager"), again)
    seen: list[events.Event] = []
    events.observers.add(seen.append)
    try:
        result = outcome(again)
    finally:
        events.observers.remove(seen.append)
    bodies = (fn.__code__, getattr(fn, "__wrapped__", fn).__code__)
    skips = [e for e in seen if isinstance(e, events.FrameSkipped)]
    raised = [e.message for e in skips if e.reason == reasons.UNCAUGHT_RAISE.id and e.code.code in bodies]
    broke = [e for e in seen if isinstance(e, events.GraphBroke)]
    return {
        "ours": result.found,
        "text": result.text,
        "entries": sum(isinstance(e, events.EntryAdded) for e in seen),
        "skips": collections.Counter(e.reason for e in skips),
        "raised": raised,
        "breaks": collections.Counter(f"{b.reason} {b.message}" for b in broke),
        "faults": [e.error + "\n" + e.traceback[-1500:] for e in seen if isinstance(e, events.InternalFault)],
        "where": [f"{b.reason} {b.message} at {lines(b.stack)}" for b in broke],
    }


def translate_everything() -> None:
    """Have frames without tensors and tensor operations translated like others."""
    callback.concerns_tensors = lambda func, args: True
    translate.computes = lambda attempt, was_plain: True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("module")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--skip", nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    signal.signal(signal.SIGPROF, stop)
    module = copied(options.module, options.folder)
    asserting.install()
    translate_everything()
    for test in tests_of(module):
        name = name_of(test)
        if (options.only and name not in options.only) or name in options.skip:
            continue
        print(json.dumps({"start": name}), flush=True)
        plain = outcome(test)
        found = {"test": name, "plain": plain.found}
        if plain.found != "skipped":
            found.update(compiled(test))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
