"""The harness finds what a faulty engine would get wrong, and nothing else."""

import contextlib
import functools
import random
import re
from pathlib import Path

import pytest
import torch
from parity.engines import Figures
from parity.harness import Program, differences, run
from parity.programs import all_cases, all_programs

EVERYTHING = Program("everything", lambda: None, file=str(Path(__file__).with_name("faulty.py")))


class Seen:
    def calls_so_far(self):
        return 0

    def outcomes_since(self, number):
        return ()

    def finish(self):
        return Figures()


class Faulty:
    """An engine that runs plain Python and then does what ``fault(result, arguments)`` says."""

    def __init__(self, fault):
        self.fault = fault

    def compile(self, fn, **keywords):
        @functools.wraps(fn)
        def compiled(*arguments):
            return self.fault(fn, arguments)

        return compiled

    def reset(self):
        pass

    def patched(self):
        return contextlib.nullcontext()

    def record(self):
        return contextlib.nullcontext(Seen())


def once(fn, arguments):
    return fn(*arguments)


def found(fault):
    return differences(run(EVERYTHING), run(EVERYTHING, Faulty(fault)))


def test_plain_python_equals_itself():
    assert found(once) == []


def other_result(fn, arguments):
    return {**fn(*arguments), "sum": torch.zeros(())}


def other_type(fn, arguments):
    return {**fn(*arguments), "sum": 1.0}


def other_keys(fn, arguments):
    result = fn(*arguments)
    return {"items": result["items"], "sum": result["sum"]}


def argument_lost(fn, arguments):
    fn(arguments[0], [])
    return {"sum": arguments[0].sum(), "items": [torch.full((3,), 2.0)]}


def argument_kept(fn, arguments):
    return fn(arguments[0].clone(), arguments[1])


def printed_more(fn, arguments):
    print("extra")
    return fn(*arguments)


def global_changed(fn, arguments):
    try:
        return fn(*arguments)
    finally:
        fn.__globals__["COUNT"] += 0.0


def random_used(fn, arguments):
    try:
        return fn(*arguments)
    finally:
        random.random()


def error_replaced(fn, arguments):
    try:
        return fn(*arguments)
    except ValueError as error:
        raise RuntimeError(*error.args) from None


def error_reworded(fn, arguments):
    try:
        return fn(*arguments)
    except ValueError:
        raise ValueError("2nd") from None


def error_from_elsewhere(fn, arguments):
    try:
        return fn(*arguments)
    except ValueError as error:
        raise error.with_traceback(None) from None


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (other_result, "call 0"),
        (other_type, "call 0"),
        (other_keys, "call 0"),
        (argument_lost, "arguments of call 0"),
        (argument_kept, "arguments of call 0"),
        (printed_more, "printed"),
        (global_changed, "state"),
        (random_used, "random state"),
        (error_replaced, "call 1"),
        (error_reworded, "call 1"),
        (error_from_elsewhere, "traceback lines"),
    ],
)
def test_a_fault_is_found(fault, text):
    assert any(text in problem for problem in found(fault)), found(fault)


def test_rows_that_are_named_as_proofs_exist():
    pages = (Path(__file__).parents[2] / "proofs").glob("*.md")
    named = {row for page in pages for row in re.findall(r"`parity:(\w+)`", page.read_text())}
    assert named - {program.name for program in [*all_programs(), *all_cases()]} == set()
