"""Stances, limits and their errors: each call is served, run eagerly or refused as under torch.compile."""

import contextlib
import inspect
import itertools
import types
import warnings

import dynacheck
import pytest
import torch
import torch._dynamo
from parity.engines import ENGINES

PLACES = itertools.count(1000)
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")
SETTERS = {"bundled": dynacheck.set_stance, "torch": torch.compiler.set_stance}


def called(set_stance, stance, body):
    set_stance(stance)
    try:
        body()
    finally:
        set_stance("default")


def entered(set_stance, stance, body):
    with set_stance(stance):
        body()


def decorated(set_stance, stance, body):
    set_stance(stance)(body)()


WAYS = {"called": called, "entered": entered, "decorated": decorated}


class Calls:
    """Calls of one compiled function, and how each was served."""

    def __init__(self, engine, fn, **options):
        # a place of its own: torch remembers what code at a line was called with under eager_then_compile
        code = fn.__code__.replace(co_firstlineno=next(PLACES))
        self.fn = types.FunctionType(code, fn.__globals__)
        self.engine, self.options = engine, options
        self.found = []

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.engine.reset()
        self.stack.callback(self.engine.reset)
        self.stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        self.seen = self.stack.enter_context(self.engine.record())
        self.compiled = self.engine.compile(self.fn, backend="eager", **self.options)
        return self

    def __exit__(self, *error):
        self.stack.close()

    def __call__(self, *args):
        number, wanted = self.seen.calls_so_far(), self.fn(*args)
        try:
            found = self.compiled(*args)
        except Exception:  # of different types, which tests of each engine's are about
            self.found.append("raises")
            return
        assert torch.equal(found, wanted)
        self.found.append(",".join(self.seen.outcomes_since(number)))


def scaled(x, n):
    return x * n


def under(name, outer, way, inner, nested):
    set_stance, x = SETTERS[name], torch.ones(3)
    with Calls(ENGINES[name], scaled) as call:

        def within():
            call(x, 2.5)
            call(torch.ones(4), 2.5)

        def block():
            call(x, 2.5)
            call(x.double(), 2.5)
            if inner is not None:
                WAYS[nested](set_stance, inner, within)
                call(x, 2.5)
                call(x.half(), 2.5)

        call(x, 2.5)
        try:
            WAYS[way](set_stance, outer, block)
        finally:
            set_stance("default")
        call(x, 2.5)
        call(torch.ones(5), 2.5)
        return call.found


def same(*arguments):
    ours = under("bundled", *arguments)
    assert ours == under("torch", *arguments)
    assert "miss" in ours


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stance", STANCES)
def test_a_stance(stance, way):
    same(stance, way, None, way)


@pytest.mark.parametrize(
    ("way", "nested"), [("entered", "called"), ("called", "entered"), ("decorated", "called")]
)
@pytest.mark.parametrize(
    ("outer", "inner"), [("fail_on_recompile", "default"), ("eager_then_compile", "fail_on_recompile")]
)
def test_some_stances_in_others(outer, way, inner, nested):
    same(outer, way, inner, nested)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "nested"), itertools.product(WAYS, WAYS))
@pytest.mark.parametrize(("outer", "inner"), itertools.product(STANCES, STANCES))
def test_a_stance_in_another(outer, way, inner, nested):
    same(outer, way, inner, nested)


SHAPES = [torch.ones(*(1,) * rank, 2) for rank in range(5)]  # each rank is an entry of its own
LIMITED = {
    "as argument": ({}, {"recompile_limit": 2}),
    "as setting": ({"recompile_limit": 2}, {}),
    "by its other name": ({"cache_size_limit": 2}, {}),
    "argument over setting": ({"recompile_limit": 1}, {"recompile_limit": 3}),
    "accumulated": ({"accumulated_recompile_limit": 2}, {}),
    "accumulated, by its other name": ({"accumulated_cache_size_limit": 2}, {}),
    "an error at the limit": ({"recompile_limit": 2, "fail_on_recompile_limit_hit": True}, {}),
    "an error at each recompile": ({"error_on_recompile": True}, {}),
    "isolated": ({"recompile_limit": 2}, {"isolate_recompiles": True}),
    "fullgraph": ({"recompile_limit": 2}, {"fullgraph": True}),
}


def limited(name, settings, options):
    patch = dynacheck.configured if name == "bundled" else torch._dynamo.config.patch
    with patch(**settings), Calls(ENGINES[name], lambda x: x + 1, **options) as call:
        for x in (*SHAPES, SHAPES[0], SHAPES[1], SHAPES[4]):
            call(x)
        return call.found


@pytest.mark.parametrize("how", LIMITED)
def test_a_limit(how):
    settings, options = LIMITED[how]
    if not set(options) <= set(inspect.signature(torch.compile).parameters):
        pytest.skip("this torch.compile hasn't the option")
    ours = limited("bundled", settings, options)
    assert ours == limited("torch", settings, options)
    assert len(set(ours)) > 1


@pytest.mark.parametrize("isolated", [False, True])
def test_compiles_of_one_function_share_a_limit_unless_isolated(isolated):
    if "isolate_recompiles" not in inspect.signature(torch.compile).parameters:
        pytest.skip("this torch.compile hasn't the option")

    def found(name):
        patch = dynacheck.configured if name == "bundled" else torch._dynamo.config.patch
        outcomes = []
        with patch(recompile_limit=2), Calls(ENGINES[name], scaled, isolate_recompiles=isolated) as call:
            for _ in range(3):
                call.compiled = call.engine.compile(call.fn, backend="eager", isolate_recompiles=isolated)
                for x in SHAPES[:2]:
                    call(x, 2.5)
            outcomes += call.found
        return outcomes

    ours = found("bundled")
    assert ours == found("torch")
    assert ("hit" in ours) is not isolated
