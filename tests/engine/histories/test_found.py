"""What long runs over random histories found, one small history for each kind."""

import pytest
from histories.compared import otherwise, run, run_torch, wrong
from histories.generate import Call, History
from parity.engines import ENGINES
from parity.harness import Raised


def x(rows, columns, *marks, **more):
    options = {name: more.pop(name) for name in ("transposed", "owning", "mode") if name in more}
    return Call({"x": (rows, columns), **more}, list(marks), **options)


UNBACKED = ("mark_unbacked", 1)
DOUBLE = "def f(x):\n    return x * 2\n"
BOTH = "def f(x, y):\n    return x.sum() + y.sum()\n"
EARLY = "def f(x):\n    if x.shape[0] > 3: return x\n    return x + 1\n"
VIEWS = {
    "the size of a view's base is a symbol": (DOUBLE, True, [x(2, 4), x(4, 8), x(3, 5), x(0, 2), x(2, 3)]),
    "a tensor that is no view isn't served as one": (
        DOUBLE, True, [x(2, 4), x(2, 4, owning=True), x(3, 5), x(3, 5, owning=True)],
    ),
    "the base's size equals another's": (
        BOTH, True, [x(2, 4, y=(3, 8)), x(2, 4, y=(3, 8)), x(2, 3, y=(4, 8)), x(2, 5, y=(4, 10))],
    ),
    "the base under a size that isn't known": (
        DOUBLE, True, [x(3, 1, UNBACKED), x(3, 2, UNBACKED), x(3, 2, UNBACKED, transposed=True), x(4, 1, UNBACKED)],
    ),
    "bases by their history": (DOUBLE, None, [x(2, 4), x(2, 6), x(4, 3), x(0, 5), x(2, 8, owning=True), x(7, 7)]),
    "bases of nothing dynamic": (DOUBLE, False, [x(2, 4), x(2, 4, owning=True), x(2, 4)]),
}  # fmt: skip
WITHOUT_TENSOR_OPERATIONS = {
    "a branch that returns early": (EARLY, True, [x(4, 4), x(5, 5), x(2, 3), x(2, 5), x(7, 5)]),
    "early, and no symbols": (EARLY, None, [x(4, 4), x(5, 5), x(2, 3), x(2, 5)]),
    "a size that nothing asks for": (
        "def f(x):\n    x.shape\n    return x\n", True, [x(4, 4), x(5, 5), x(2, 3), x(1, 3)],
    ),
    "a stride": ("def f(x):\n    return x, x.stride(0) > 3\n", True, [x(4, 4), x(5, 5), x(2, 3)]),
    "no size, only numbers": (
        "def f(x, n):\n    return x, n + 1\n", True, [x(4, 4, n=n) for n in (3, 4, 1)],
    ),
    "a number that is an index": (
        "def f(x, n):\n    return (x, x, x, x)[n]\n", True, [x(4, 4, n=n) for n in (3, 2, 1)],
    ),
    "a float": ("def f(x, r):\n    return x if r > 2.0 else -r\n", True, [x(4, 4, r=r) for r in (2.5, 3.5, 1.5)]),
    "numbers passed on": ("def f(x, n, r):\n    return x, n, r\n", True, [x(4, 4, n=n, r=n / 2) for n in (3, 4)]),
}  # fmt: skip
INPUTS = {
    "a product with nothing": (
        "def f(x, y):\n    return x + y.shape[0] * x.shape[1]\n", True, [x(1, 0, y=(3, 2)), x(2, 4, y=(3, 2))],
    ),
    "two sizes that became one": (
        "def f(x, y):\n    x = torch.nn.functional.pad(x, (0, x.shape[0]))\n"
        "    return x * 2 if x.shape[0] == y.shape[0] else x\n", True, [x(3, 4, y=(3, 3)), x(3, 4, y=(5, 5))],
    ),
    "a stride that became a size": (
        "def f(x):\n    return x + torch.zeros(x.shape)\n", None,
        [x(2, 7, ("maybe_mark_dynamic", 1), transposed=i == 1) for i in range(3)],
    ),
}  # fmt: skip
BOUNDED = ("mark_dynamic", 1, {"min": 2, "max": 64})
BOUNDS = {
    "within its bounds, any size": (DOUBLE, None, [x(3, 4, BOUNDED), x(3, 64), x(3, 9, BOUNDED)]),
    "a size that is never a symbol": (DOUBLE, None, [x(3, 1, BOUNDED)]),
    "a size that is never a symbol, and no bounds": (DOUBLE, None, [x(3, 1, BOUNDED[:2]), x(3, 4), x(3, 1)]),
    "a condition on a size with bounds": (
        "def f(x):\n    return x * 2 if x.shape[1] % 3 == 0 else x\n", None, [x(3, 4, BOUNDED)],
    ),
    "a condition that an operator needs": (
        "def f(x):\n    return x.reshape(x.shape[1], x.shape[0])\n", None, [x(4, 7, BOUNDED)],
    ),
    "a condition that the bounds decide": (
        "def f(x):\n    return x * 2 if x.shape[1] > 1 else x\n", None, [x(3, 4, BOUNDED), x(3, 5)],
    ),
}  # fmt: skip
NARROW = "def f(x):\n    return x * 2 if 3 < x.shape[0] < 5 else x * 3\n"
MAYBE = ("maybe_mark_dynamic", 0)
ONE_SIZE_ONLY = {
    "a dynamic size that one number fits": (NARROW, None, [x(n, 3) for n in (2, 4, 6, 4, 7)]),
    "a mark that one number fits": (NARROW, None, [x(n, 3, MAYBE) for n in (4, 6, 4, 7)]),
    "a mark that ends up pinned": (NARROW, None, [x(4, 3, ("mark_dynamic", 0))]),
}  # fmt: skip
MODES = {
    "a float that changes in inference mode": (
        "def f(x, r):\n    return x * (r + 1)\n", None, [x(4, 1, r=r, mode="inference_mode") for r in (2.5, 0.0, 1.5)],
    ),
}  # fmt: skip
LEFT_ALONE = ("early, and no symbols", "a number that is an index", "numbers passed on")
ALL = VIEWS | BOUNDS | ONE_SIZE_ONLY | MODES | WITHOUT_TENSOR_OPERATIONS | INPUTS


IN_DETAIL = {
    *INPUTS,
    *LEFT_ALONE,
    "bases of nothing dynamic",
    "a stride",
    "a condition that the bounds decide",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in IN_DETAIL else []) for name in ALL]
)
def test_calls_are_served_as_torch_serves_them(name):
    source, dynamic, calls = ALL[name]
    made = History(f"of {name}", source, {"dynamic": dynamic}, calls)
    plain, ours, theirs = run(made), run(made, ENGINES["bundled"]), run_torch(made)
    assert not wrong(plain, ours, theirs) + otherwise(plain, ours, theirs)
    assert "miss" in ours.outcomes or isinstance(ours.results[0], Raised) or name in LEFT_ALONE
