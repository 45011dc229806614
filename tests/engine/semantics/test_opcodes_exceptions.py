"""Exceptions that outlive the frame or existed before it: as results, attributes, arguments."""

from __future__ import annotations

from typing import Any

import dynacheck
import pytest
import torch


def shown(value: Any) -> Any:
    """An exception as plain data, with what it is chained to."""
    if isinstance(value, BaseException):
        fields = {k: shown(v) for k, v in vars(value).items()}
        extra = [
            shown(getattr(value, n))
            for n in ("value", "code", "errno", "strerror", "filename", "name")
            if hasattr(value, n)
        ]
        items = [shown(e) for e in getattr(value, "exceptions", ())]
        links = (shown(value.__cause__), shown(value.__context__), value.__suppress_context__)
        return type(value), shown(value.args), str(value), repr(value), fields, extra, items, links
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [shown(v) for v in value]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return value


class Custom(Exception):
    def __init__(self, code: int, note: str = "n") -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.note = note


class Bare(ValueError):
    def __init__(self, a: Any) -> None:
        self.a = a


def new_ones(x):
    y = x + 1
    return (
        y,
        ValueError("a", 1),
        KeyError("k"),
        StopIteration(3),
        SystemExit(2),
        OSError(2, "gone", "f"),
        Custom(5),
        Bare(1),
    )


def with_tensor(x):
    y = x + 1
    return ValueError("t", y), StopIteration(y), Custom(7)


def changed(x):
    y = x + 1
    e = ValueError("a")
    e.args = ("b", y)
    e.extra = [1]
    e.add_note("note")
    o = OSError(1, "a")
    o.errno = 9
    return y, e, o


def chained(x):
    y = x + 1
    try:
        try:
            raise KeyError("inner")
        except KeyError as k:
            raise ValueError("outer") from k
    except ValueError as e:
        return y, e


def context(x):
    y = x + 1
    try:
        try:
            {}["k"]
        except KeyError:
            [][1]
    except IndexError as e:
        return y, e


def group(x):
    y = x + 1
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as e:
        found = e
    except* KeyError as e:
        other = e
    return y, found, other


def generator_error(x):
    y = x + 1

    def gen():
        raise StopIteration("x")
        yield

    try:
        next(gen())
    except RuntimeError as e:
        return y, e


def in_a_container(x):
    y = x + 1
    errors = []
    for bad in ("1", "a", "2", "b"):
        try:
            errors.append(int(bad))
        except ValueError as e:
            errors.append(e)
    return y, errors


@pytest.mark.parametrize(
    "fn",
    [new_ones, with_tensor, changed, chained, context, group, generator_error, in_a_container],
    ids=lambda f: f.__name__,
)
def test_made_in_the_frame(fn: Any) -> None:
    x = torch.ones(2)
    expected = shown(fn(x))
    with dynacheck.configured(split_more=True), dynacheck.observe() as report:
        compiled = dynacheck.compile(fn, backend="eager", fullgraph=True)
        for _ in range(2):
            assert shown(compiled(x)) == expected
    assert len(report.graphs) == len(report.cache_entries) == 1
    assert not report.skipped and not report.eager_runs


def reads(x, e):
    return x + len(e.args), e.args, str(e), type(e).__name__, e.__cause__, isinstance(e, ValueError)


def test_argument_is_read() -> None:
    x = torch.ones(2)
    compiled = dynacheck.compile(reads, backend="eager", fullgraph=True)
    for e in (ValueError("a", 2), ValueError("a", 2), KeyError("k"), Custom(3), ValueError("b")):
        assert shown(compiled(x, e)) == shown(reads(x, e))


def raises(x, e):
    y = x + 1
    try:
        raise e
    except ValueError as caught:
        return y, caught is e, caught
    except KeyError:
        return y * 2, "key", None


def test_argument_is_raised() -> None:
    x = torch.ones(2)
    compiled = dynacheck.compile(raises, backend="eager", fullgraph=True)
    for e in (ValueError("a"), KeyError("k"), Bare(1)):
        found = compiled(x, e)
        assert shown(found) == shown(raises(x, e))
        assert found[2] is None or found[2] is e


def writes(x, e):
    e.args = ("new", 2)
    e.extra = "x"
    e.__cause__ = KeyError("c")
    return x + 1


def test_argument_is_written() -> None:
    x = torch.ones(2)
    one, other = ValueError("a"), ValueError("a")
    compiled = dynacheck.compile(writes, backend="eager", fullgraph=True)
    for _ in range(2):
        writes(x, one)
        compiled(x, other)
        assert shown(one) == shown(other)


class Holder:
    error: Any = None


def stores(x, holder):
    try:
        raise ValueError("stored")
    except ValueError as e:
        holder.error = e
    return x + 1


def test_stored_in_an_attribute() -> None:
    holder = Holder()
    dynacheck.compile(stores, backend="eager", fullgraph=True)(torch.ones(2), holder)
    assert repr(holder.error) == "ValueError('stored')"


def uncaught(x):
    y = x + 1
    raise ValueError("out", y.shape[0])


def test_uncaught_one_leaves_the_frame_eager() -> None:
    compiled = dynacheck.compile(uncaught, backend="eager")
    with dynacheck.observe() as report:
        for _ in range(2):
            with pytest.raises(ValueError, match="out"):
                compiled(torch.ones(2))
    assert not report.graphs
    assert report.skipped or report.graph_breaks
