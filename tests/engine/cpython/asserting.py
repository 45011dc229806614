"""What CPython's tests assert with, as plain functions: `unittest`'s own read the call stack and keep state.

The names and arguments are `unittest.TestCase`'s. As functions of a user's file they are interpreted as part of the
tests that call them, so that what they compare is what the engine computed.
"""

from __future__ import annotations

import re
import unittest
from typing import Any

ASSERTIONS: dict[str, Any] = {}
"""By the name of the method of `unittest.TestCase` that a function stands for."""


def assertion(fn: Any) -> Any:
    ASSERTIONS[fn.__name__] = fn
    return fn


def failed(msg: Any, text: str) -> None:
    raise AssertionError(text if msg is None else msg)


@assertion
def assertEqual(self, first, second, msg=None):
    if not first == second:
        failed(msg, f"{first!r} != {second!r}")


@assertion
def assertNotEqual(self, first, second, msg=None):
    if not first != second:
        failed(msg, f"{first!r} == {second!r}")


@assertion
def assertTrue(self, expr, msg=None):
    if not expr:
        failed(msg, f"{expr!r} is not true")


@assertion
def assertFalse(self, expr, msg=None):
    if expr:
        failed(msg, f"{expr!r} is not false")


@assertion
def assertIs(self, expr1, expr2, msg=None):
    if expr1 is not expr2:
        failed(msg, f"{expr1!r} is not {expr2!r}")


@assertion
def assertIsNot(self, expr1, expr2, msg=None):
    if expr1 is expr2:
        failed(msg, f"{expr1!r} is {expr2!r}")


@assertion
def assertIsNone(self, obj, msg=None):
    if obj is not None:
        failed(msg, f"{obj!r} is not None")


@assertion
def assertIsNotNone(self, obj, msg=None):
    if obj is None:
        failed(msg, "unexpectedly None")


@assertion
def assertIn(self, member, container, msg=None):
    if member not in container:
        failed(msg, f"{member!r} not found in {container!r}")


@assertion
def assertNotIn(self, member, container, msg=None):
    if member in container:
        failed(msg, f"{member!r} found in {container!r}")


@assertion
def assertIsInstance(self, obj, cls, msg=None):
    if not isinstance(obj, cls):
        failed(msg, f"{obj!r} is not an instance of {cls!r}")


@assertion
def assertNotIsInstance(self, obj, cls, msg=None):
    if isinstance(obj, cls):
        failed(msg, f"{obj!r} is an instance of {cls!r}")


@assertion
def assertLess(self, a, b, msg=None):
    if not a < b:
        failed(msg, f"{a!r} not less than {b!r}")


@assertion
def assertLessEqual(self, a, b, msg=None):
    if not a <= b:
        failed(msg, f"{a!r} not less than or equal to {b!r}")


@assertion
def assertGreater(self, a, b, msg=None):
    if not a > b:
        failed(msg, f"{a!r} not greater than {b!r}")


@assertion
def assertGreaterEqual(self, a, b, msg=None):
    if not a >= b:
        failed(msg, f"{a!r} not greater than or equal to {b!r}")


@assertion
def assertAlmostEqual(self, first, second, places=None, msg=None, delta=None):
    if first == second:
        return
    diff = abs(first - second)
    if delta is not None:
        near = diff <= delta
    else:
        near = round(diff, 7 if places is None else places) == 0
    if not near:
        failed(msg, f"{first!r} != {second!r}")


@assertion
def assertListEqual(self, list1, list2, msg=None):
    if not (isinstance(list1, list) and isinstance(list2, list) and list1 == list2):
        failed(msg, f"{list1!r} != {list2!r}")


@assertion
def assertTupleEqual(self, tuple1, tuple2, msg=None):
    if not (isinstance(tuple1, tuple) and isinstance(tuple2, tuple) and tuple1 == tuple2):
        failed(msg, f"{tuple1!r} != {tuple2!r}")


@assertion
def assertDictEqual(self, d1, d2, msg=None):
    if not (isinstance(d1, dict) and isinstance(d2, dict) and d1 == d2):
        failed(msg, f"{d1!r} != {d2!r}")


@assertion
def assertSetEqual(self, set1, set2, msg=None):
    if set1.difference(set2) or set2.difference(set1):
        failed(msg, f"{set1!r} != {set2!r}")


@assertion
def assertSequenceEqual(self, seq1, seq2, msg=None, seq_type=None):
    if seq_type is not None and not (isinstance(seq1, seq_type) and isinstance(seq2, seq_type)):
        failed(msg, f"{seq1!r} or {seq2!r} is not a {seq_type!r}")
    if seq1 == seq2:
        return
    if len(seq1) != len(seq2):
        failed(msg, f"{seq1!r} != {seq2!r}")
    for a, b in zip(seq1, seq2):
        if a != b:
            failed(msg, f"{seq1!r} != {seq2!r}")


@assertion
def assertMultiLineEqual(self, first, second, msg=None):
    if not (isinstance(first, str) and isinstance(second, str) and first == second):
        failed(msg, f"{first!r} != {second!r}")


@assertion
def assertCountEqual(self, first, second, msg=None):
    rest = list(second)
    for item in list(first):
        if item not in rest:
            failed(msg, f"{item!r} is more often in the first")
        rest.remove(item)
    if rest:
        failed(msg, f"{rest!r} only in the second")


@assertion
def assertRegex(self, text, expected_regex, msg=None):
    if not re.search(expected_regex, text):
        failed(msg, f"{expected_regex!r} not found in {text!r}")


@assertion
def assertNotRegex(self, text, unexpected_regex, msg=None):
    if re.search(unexpected_regex, text):
        failed(msg, f"{unexpected_regex!r} found in {text!r}")


class Raising:
    """The context manager of `assertRaises` and `assertRaisesRegex`."""

    def __init__(self, expected, pattern=None, msg=None):
        self.expected = expected
        self.pattern = pattern
        self.msg = msg

    def __enter__(self):
        return self

    def __exit__(self, kind, error, tb):
        if kind is None:
            failed(self.msg, f"{self.expected!r} not raised")
        if not issubclass(kind, self.expected):
            return False
        self.exception = error.with_traceback(None)
        if self.pattern is not None and not re.search(self.pattern, str(error)):
            failed(self.msg, f"{self.pattern!r} does not match {str(error)!r}")
        return True


def call_raising(manager, args, kwargs):
    with manager:
        args[0](*args[1:], **kwargs)


@assertion
def assertRaises(self, expected_exception, *args, **kwargs):
    if not args:
        return Raising(expected_exception, None, kwargs.get("msg"))
    call_raising(Raising(expected_exception), args, kwargs)


@assertion
def assertRaisesRegex(self, expected_exception, expected_regex, *args, **kwargs):
    if not args:
        return Raising(expected_exception, expected_regex, kwargs.get("msg"))
    call_raising(Raising(expected_exception, expected_regex), args, kwargs)


class SubTest:
    """`subTest` without its report: a failure fails the test."""

    def __enter__(self):
        return None

    def __exit__(self, *exc_info):
        return False


@assertion
def subTest(self, msg=None, **params):
    return SubTest()


@assertion
def fail(self, msg=None):
    raise AssertionError(msg)


def install() -> None:
    """Put the functions in `unittest.TestCase`'s place."""
    for name, fn in ASSERTIONS.items():
        setattr(unittest.TestCase, name, fn)
