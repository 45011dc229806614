"""Exceptions caught in a translated frame that leave it carry the traceback, cause and context of plain Python."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback

import dynacheck
import pytest
import torch

KEPT = []
OLD = ValueError("old")


def deep(n):
    if n == 0:
        raise ValueError("deep", n)
    return deep(n - 1)


def kept(x):
    try:
        deep(2)
    except ValueError as error:
        KEPT.append(error)
    return x + 1


def returned(x):
    try:
        deep(1)
    except ValueError as error:
        found = error
    return x + 1, found


def from_a_slot(x):
    try:
        return {}["key"]
    except KeyError as error:
        return x + 1, error


def from_an_attribute(x):
    try:
        return (
            x.shape,
            x.nothing,
        )
    except AttributeError as error:
        return x + 1, error


def with_cause(x):
    try:
        try:
            deep(1)
        except ValueError as error:
            raise KeyError("later") from error
    except KeyError as error:
        return x + 1, error


def with_context(x):
    try:
        try:
            deep(1)
        except ValueError:
            {}["key"]
    except KeyError as error:
        return x + 1, error


def raised_again(x):
    try:
        try:
            deep(1)
        except ValueError:
            raise
    except ValueError as error:
        return x + 1, error


def raised_twice(x):
    try:
        deep(1)
    except ValueError as error:
        keep = error
    try:
        raise keep
    except ValueError as error:
        return x + 1, error


def cleared(x):
    try:
        try:
            deep(1)
        except ValueError as error:
            raise error.with_traceback(None) from None
    except ValueError as error:
        return x + 1, error


def through_finally(x):
    try:
        try:
            deep(1)
        finally:
            x = x + 1
    except ValueError as error:
        return x, error


def through_with(x):
    try:
        with contextlib.nullcontext():
            deep(1)
    except ValueError as error:
        return x + 1, error


def through_generator(x):
    def each():
        yield 1
        deep(0)

    try:
        for _ in each():
            pass
    except ValueError as error:
        return x + 1, error


def thrown_into_generator(x):
    def each():
        try:
            yield 1
        except KeyError as error:
            raise ValueError("mine") from error

    running = each()
    next(running)
    try:
        running.throw(KeyError("theirs"))
    except ValueError as error:
        return x + 1, error


def group(x):
    try:
        raise ExceptionGroup("several", [ValueError(1), KeyError(2)])
    except* KeyError as error:
        KEPT.append(error)
    except* ValueError as error:
        KEPT.append(error)
    return x + 1


def old_one(x):
    try:
        raise OLD
    except ValueError as error:
        return x + 1, error


def across_a_break(x):
    try:
        deep(1)
    except ValueError as error:
        found = error
    print("here")
    return x + 1, found


def lines_of(where):
    found = []
    while where is not None:
        found.append(where.tb_lineno)
        where = where.tb_next
    return found


def traceback_across_a_break(x):
    try:
        deep(1)
    except ValueError as error:
        where = error.__traceback__
    print("here")
    return x + 1, lines_of(where)


def behind_a_break(x):
    x = x + 1
    print("here")
    try:
        deep(1)
    except ValueError as error:
        found = error
    return x + 1, found


def with_note(x):
    try:
        deep(1)
    except ValueError as error:
        error.add_note("noted")
        return x + 1, error


def never_raised(x):
    return x + 1, ValueError("new")


# These look at it in the frame: they run as they are.


def formatted(x):
    try:
        deep(2)
    except ValueError:
        return x + 1, traceback.format_exc()


def printed(x):
    try:
        deep(1)
    except ValueError:
        traceback.print_exc(file=sys.stdout)
    return x + 1


def information(x):
    try:
        deep(1)
    except ValueError:
        kind, error, where = sys.exc_info()
        return x + 1, kind, where is error.__traceback__, traceback.format_tb(where)


def walked(x):
    found = []
    try:
        deep(1)
    except ValueError as error:
        entry = error.__traceback__
        while entry is not None:
            found.append(entry.tb_lineno)
            entry = entry.tb_next
    return x + 1, found


TRANSLATED = [
    kept, returned, from_a_slot, from_an_attribute, with_cause, with_context, raised_again, raised_twice, cleared,
    through_finally, through_with, through_generator, thrown_into_generator, old_one, across_a_break,
    traceback_across_a_break, behind_a_break, never_raised,
]  # fmt: skip
LEFT_ALONE = [formatted, printed, information, walked]
TRANSLATED_BY_MORE = [group, with_note]  # torch breaks at them


def shown(value):
    if isinstance(value, BaseException):
        return "".join(traceback.format_exception(value))
    if isinstance(value, tuple):
        return [shown(v) for v in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


def seen(fn):
    KEPT.clear()
    OLD.__traceback__ = None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        found = [shown(fn(torch.ones(2))) for _ in range(3)]
    return found, [shown(error) for error in KEPT], out.getvalue()


@pytest.mark.parametrize("fn", TRANSLATED + LEFT_ALONE + TRANSLATED_BY_MORE, ids=lambda fn: fn.__name__)
def test_as_plain_python(fn, engine):
    with dynacheck.configured(split_more=fn in TRANSLATED_BY_MORE), dynacheck.observe() as report:
        assert seen(dynacheck.compile(fn, backend="eager")) == seen(fn)
    assert bool(report.graphs) is (fn not in LEFT_ALONE)
    assert {b.reason for b in report.graph_breaks} <= {"DC103", "DC106", "DC108", "DC109"}


def test_entries_hold_no_objects_of_the_program(engine):
    """The frames of a rebuilt traceback are stand-ins: keeping the exception keeps nothing of the call."""
    found = dynacheck.compile(returned, backend="eager")(torch.ones(2))[1]
    entry, names = found.__traceback__, []
    while entry is not None:
        names.append(entry.tb_frame.f_code.co_name)
        assert not entry.tb_frame.f_locals
        entry = entry.tb_next
    assert names == ["returned", "deep", "deep"]
