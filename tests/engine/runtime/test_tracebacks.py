"""Tracebacks of what leaves compiled functions name the lines that plain Python's do, once each."""

import traceback

import dynacheck
import pytest
import torch


def one_break(x):
    y = x + 1
    print("p")
    raise ValueError(y.shape)


def two_breaks(x):
    y = x + 1
    print("p")
    y = y * 2
    print("q")
    return y.nothing


def inner(x):
    print("in")
    y = x * 2
    return y[7]


def nested(x):
    y = x + 1
    print("p")
    z = inner(y)
    return z


def recursive(x, n=2):
    y = x + 1
    print("p")
    if n:
        return recursive(y, n - 1)
    raise KeyError("end")


def chained(x):
    print("p")
    try:
        inner(x)
    except IndexError as error:
        raise ValueError("outer") from error


def caught_below(x):
    for _ in range(1):  # runs as it is: the traceback is looked at before it leaves the compiled call
        try:
            nested(x)
        except IndexError as error:
            found = error
        print("q")
    raise found


def caught_and_told(x):
    for _ in range(1):
        try:
            recursive(x)
        except KeyError:
            text = traceback.format_exc()
        print("q")
    raise ValueError(text)


def data_dependent(x):
    if x.sum() > 0:
        return inner(x)
    return x


def lines(fn):
    with pytest.raises(Exception) as caught:
        fn(torch.ones(2))
    found = []
    error = caught.value
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        found.append([(f.lineno, f.line) for f in frames if f.filename == __file__ and f.name != "lines"])
        found.append(str(error))
        error = error.__cause__
    return found


class Model(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        print("p")
        return inner(y)


@pytest.mark.parametrize(
    "fn",
    [
        one_break,
        two_breaks,
        nested,
        recursive,
        chained,
        data_dependent,
        caught_below,
        caught_and_told,
        Model(),
    ],
    ids=lambda f: getattr(f, "__name__", "model"),
)
def test_lines(fn):
    dynacheck.reset()
    compiled = dynacheck.compile(fn, backend="eager")
    for _ in range(2):
        assert lines(compiled) == lines(fn)


def files_of(call, *args):
    with pytest.raises(RuntimeError) as raised:
        call(*args)
    return [entry.filename for entry in traceback.extract_tb(raised.value.__traceback__)], str(raised.value)


def branch(x):
    return x if x.sum() > 0 else -x


def broken(x):
    raise RuntimeError("ours")


def test_frames_of_the_engine_are_left_out(backend):
    compiled = dynacheck.compile(branch, backend=backend, fullgraph=True)
    files, text = files_of(compiled, torch.ones(3))
    assert set(files) == {__file__}
    assert text.endswith(
        f"line {branch.__code__.co_firstlineno + 1}, in branch\n    return x if x.sum() > 0 else -x"
    )
    with dynacheck.configured(verbose=True):
        files, _ = files_of(compiled, torch.ones(3))
    assert any("translate" in file for file in files)


def test_frames_of_the_engine_are_left_out_of_the_programs_own_exceptions(backend):
    files, _ = files_of(dynacheck.compile(broken, backend=backend), torch.ones(3))
    assert set(files) == {__file__} and len(files) == 2


def test_frames_of_a_backend_stay():
    def backend(gm, example_inputs):
        raise RuntimeError("no code for this")

    compiled = dynacheck.compile(lambda x: x + 1, backend=backend)
    with pytest.raises(RuntimeError) as raised:
        compiled(torch.ones(3))
    cause = traceback.extract_tb(raised.value.__cause__.__traceback__)
    assert [entry.name for entry in cause][-1] == "backend"
