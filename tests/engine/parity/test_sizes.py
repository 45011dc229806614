"""Every operator, builtin, function of math, factory and way of indexing on numbers that vary between calls: what plain
Python gives, by the graphs, hits, symbols and breaks of torch.compile."""

import math
import operator
import warnings

import pytest
import torch
import torch._dynamo
from histories.compared import inputs
from parity.engines import ENGINES
from parity.sizes import EXPRESSIONS, OTHERWISE, QUICK

ITEMS, FOUND = {"capture_scalar_outputs": True}, {"capture_dynamic_output_shape_ops": True}
SETTINGS = {"item": ITEMS, "found": FOUND, "both": ITEMS | FOUND}
PARAMETERS = {"size": "x", "pair": "x, y", "int": "x, n", "float": "x, n", **dict.fromkeys(SETTINGS, "t, x")}
FIRST = {"size": "n = x.shape[0]", "pair": "n, m = x.shape[0], y.shape[0]", "int": "pass", "float": "pass"}
FIRST |= dict.fromkeys(SETTINGS, "pass")


def rows(n):
    return torch.arange(4.0 * n).reshape(n, 4) + 1


CALLS = {
    "size": lambda: [(rows(n),) for n in (4, 6, 7, 9)],
    "pair": lambda: [(rows(n), rows(m)) for n, m in ((4, 3), (6, 8), (7, 5), (9, 9))],
    "int": lambda: [(rows(9), n) for n in (4, 6, 7, 9)],
    "float": lambda: [(rows(9), n) for n in (1.5, 2.5, 0.75, 3.25)],
}


CALLS |= dict.fromkeys(SETTINGS, lambda: [(torch.tensor([n, 2, 3]), rows(9)) for n in (2, 3, 4)])


def program(row):
    kind, _, expression = row.partition(" ")
    scope = {"torch": torch, "math": math, "operator": operator}
    exec(f"def program({PARAMETERS[kind]}):\n    {FIRST[kind]}\n    return x + 1, {expression}\n", scope)
    return scope["program"], CALLS[kind]()


def plain(value):
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return [plain(item) for pair in value.items() for item in pair]
    return type(value).__name__, repr(value)


def attempt(fn, args):
    try:
        return plain(fn(*args))
    except Exception as error:  # torch's own may be of any type
        return type(error).__name__


def used(gm):
    """The inputs of a graph, without those that float arguments leave where the graph knows them."""
    text, kept = inputs(gm), torch.fx.Graph()
    kept.graph_copy(gm.graph, {})
    kept.eliminate_dead_code()
    for node in kept.find_nodes(op="placeholder"):
        example = node.meta["example_value"]
        if isinstance(example, torch.Tensor) and example.shape == () and not node.users:
            text = text.replace("(), ", "", 1).replace(": ()", ":", 1)
    return text


def history(engine, row):
    """Per call its result, how it was served and the inputs of the graphs it made; the number of places that break."""
    fn, calls = program(row)
    served, made = [], []

    def backend(gm, example_inputs):
        made.append(used(gm))
        return gm.forward

    engine.reset()
    settings = torch._dynamo.config.patch(**SETTINGS.get(row.partition(" ")[0], {}))
    with warnings.catch_warnings(), settings, engine.record() as seen:
        warnings.simplefilter("ignore")
        compiled = engine.compile(fn, backend=backend)
        for args in calls:
            before, number = len(made), seen.calls_so_far()
            result = attempt(compiled, args)
            served.append((result, seen.outcomes_since(number), made[before:]))
        figures = seen.finish()
    engine.reset()
    assert not figures.faults, figures.faults
    return [result for result, *_ in served], [how for _, *how in served], len(figures.places)


def check(row):
    fn, calls = program(row)
    wanted = [attempt(fn, args) for args in calls]
    results, *ours = history(ENGINES["bundled"], row)
    assert results == wanted
    assert any(made for _, made in ours[0]), "nothing was translated"
    others, *theirs = history(ENGINES["torch"], row)
    if row in OTHERWISE:
        assert ours != theirs or others != wanted, "it is as in torch"
    else:
        assert ours == theirs


@pytest.mark.parametrize("row", QUICK)
def test_a_number_that_varies(row):
    assert row in EXPRESSIONS
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in EXPRESSIONS if row not in QUICK])
def test_every_use_of_a_number_that_varies(row):
    check(row)
