"""Functions of numpy on arrays: whatever is in the graph, results have numpy's classes, dtypes and numbers."""

import warnings

import dynacheck
import pytest
import torch

np = pytest.importorskip("numpy")


def compiled(fn):
    return dynacheck.compile(fn, backend="eager")


def check(fn, *args):
    """Calls a function plainly and compiled on copies; results and arguments have to be the same afterwards."""
    mine, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    wanted, found = fn(*mine), compiled(fn)(*theirs)
    assert same(wanted, found), (wanted, found)
    assert same(mine, theirs), (mine, theirs)


def same(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, (np.ndarray, np.generic)):
        numbers = one.dtype.kind in "biufc"
        close = np.allclose(one, other, equal_nan=True) if numbers else np.array_equal(one, other)
        return one.dtype == other.dtype and one.shape == other.shape and close
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, torch.Tensor) or one == other


A = np.arange(1.0, 10.0).reshape(3, 3) + np.eye(3)
V = np.array([3.0, 1.0, 2.0])
INTEGERS = np.array([[2, 1], [0, 1]])


def test_an_array_that_came_in_goes_out_as_the_same_object(seen):
    array = A.copy()
    first, second, third = compiled(lambda a: (a, a + 1, [a]))(array)
    assert first is array and third[0] is array and type(second) is np.ndarray
    assert seen.graphs and not seen.graph_breaks, seen.graph_breaks


def test_reductions_of_everything_are_scalars(seen):
    check(lambda a: (a.sum(), np.mean(a), a[0, 0], a.argmax(), a.max() > 2, np.array(3.0), a.sum(0)), A)
    assert seen.graphs and not seen.graph_breaks, seen.graph_breaks


def test_integers_divided_by_zero_are_what_numpy_makes_of_them(seen):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda a: (a // a, a % a, np.mod(a, a)), INTEGERS)
    assert seen.graphs


def test_writing_to_what_is_read_only(seen):
    def write(a):
        b = a[1:]
        b += 1
        return b

    array = np.arange(4.0)
    assert same(compiled(write)(array.copy()), np.arange(4.0)[1:] + 1)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(write)(array)
    assert seen.graphs


def test_random_numbers_are_numpys(seen):
    def draw(a):
        np.random.seed(0)
        return a * 2 + np.random.rand(3)

    check(draw, V)
    assert seen.graphs


def test_a_dtype_decides(seen):
    with dynacheck.configured(split_more=True):  # torch gives the frame up
        check(lambda a: a * (2 if a.dtype == np.float64 else 3), A)
        check(lambda a: a * (2 if a.dtype == "float32" else 3), A)
    assert seen.graphs


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_a_tensor_and_its_array_share_memory(backend, seen):
    def f(x):
        array = x.numpy()
        array *= 2
        return torch.from_numpy(array) + x

    x = torch.ones(3)
    found = dynacheck.compile(f, backend=backend)(x)
    assert x.tolist() == [2, 2, 2] and found.tolist() == [4, 4, 4]
    assert seen.graphs and not seen.graph_breaks, seen.graph_breaks


def test_numpy_of_a_tensor_that_requires_a_gradient(seen):
    with pytest.raises(RuntimeError, match="requires grad"):
        compiled(lambda x: x.numpy())(torch.ones(2, requires_grad=True))


ARGUMENTS = [
    (A,), (A, A), (V,), (V, V), (INTEGERS,), (INTEGERS, INTEGERS), (A, 1), (A, 2, 0), ((2, 3),), (3,), ([A, A],),
    (A, 0, 1), (V, V, V), (A, A, A), (2.5,), ("ij,jk->ik", A, A), (V, 2), (A, [0, 2]), ((2, 2), 1.5), (1, 5), (0, 1, 5),
    (A > 2, A, -A), (A, (9,)), (np.float32(2),), (np.float64(3), V),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "linalg", "fft"])
def test_every_function(place, seen):
    module = getattr(np, place) if place else np
    ran = 0
    for name in sorted(
        set(dir(module)) - {"empty", "empty_like", "test", "info", "source", "lookfor", "who"}
    ):
        fn = getattr(module, name)
        if name[0] == "_" or not callable(fn) or (isinstance(fn, type) and not issubclass(fn, np.number)):
            continue
        for args in ARGUMENTS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    wanted = fn(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
                except Exception:  # arguments of another function
                    continue
                if not isinstance(wanted, (np.ndarray, np.generic, tuple, list, int, float, type(None))):
                    continue
                check(lambda *a, fn=fn: fn(*a), *args)
            dynacheck.reset()
            ran += 1
    assert len(seen.graphs) > ran / 4
