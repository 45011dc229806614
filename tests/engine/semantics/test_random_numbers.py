"""Python's random numbers: those of plain Python in every call, whose generators are left as plain Python leaves them."""

import random
import types

import dynacheck
import pytest
import torch

BODIES = {
    "of the module": "return x * random.randint(1, 9) + random.uniform(0, 1), random.randrange(2, 9, 3)",
    "of a generator": "return x * r.random() - r.randint(0, 5), r.uniform(1, 2)",
    "of two at once": "return x * r.random() + q.random() + r.randint(0, 5)",
    "of an attribute": "return x * o.r.randint(0, 5)",
    "both kinds": "a = random.randint(0, 9)\nb = r.randint(0, 9)\nreturn x + a, random.uniform(0, 1), b",
    "promoted as numbers are": "return (x > 0).long() * random.uniform(0, 4), x.bfloat16() * random.randint(1, 3)",
    "stored": "o.n = random.randint(1, 5)\nreturn x + 1",
    "unused": "random.randint(1, 5)\nr.random()\nreturn x + 1",
    "branch": "if random.uniform(0, 1) < 0.5:\n    return x + 1\nreturn x - 1",
    "branch in a loop": "for i in range(3):\n    if r.random() < 0.5:\n        x = x + 1\nreturn x",
    "whole number": "return x * int(random.uniform(1, 5)), [1, 2, 3][random.randint(0, 2)]",
    "size": "return torch.zeros(random.randint(2, 3)), x[random.randint(0, 1)], x[r.randint(0, 2):]",
    "calculated with": "n = random.randint(1, 5)\nreturn x * (n + 1), -n, n / 3",
    "text": "return x + 1, f'{random.randint(1, 5)}', str(r.random())",
    "key": "return x + 1, {random.randint(1, 5): 1}, random.randint(1, 2) in (1, 2)",
    "break between": "a = r.random()\nprint(a)\nreturn x * a + r.random()",
    "empty range": "try:\n    random.randint(5, 1)\nexcept ValueError as e:\n    return x + random.randint(1, 9), str(e)",
    "empty range that leaves": "r.random()\nreturn x + random.randrange(0)",
    "raised before": "r.random()\nif x.shape[0] == 3:\n    raise ValueError(1)\nreturn x",
    "the graph raises": "a = r.randint(0, 4)\nreturn x[torch.tensor(7)] * a + random.randint(0, 4)",
    "the graph raises and is caught": "a = r.random()\ntry:\n    return x[torch.tensor(7)] * a\nexcept IndexError:\n    return x * a",
    "seeded": "r.seed(3)\nreturn x * r.random()",
    "set back": "s = r.getstate()\na = r.random()\nr.setstate(s)\nreturn x * a, r.random(), s[1][0]",
    "made": "n = random.Random(5)\nreturn x * n.random(), n",
    "made without a seed": "n = random.Random()\nn.seed(1)\nreturn x * n.random()",
    "others": "random.shuffle(l := [1, 2, 3])\nreturn x + r.choice(l), random.sample(l, 2), r.gauss(0, 1), l",
    "wide": "return x + 1, random.randint(2**70, 2**71)",
    "overridden": "return x * odd.random()",
    "derived class": "return x * special.random(), special.randint(1, 5)",
    "the same by two names": "q = r\nreturn x * r.random(), q.random()",
}


class Special(random.Random):
    def random(self):
        return super().random() / 2


def outcome(body, backend):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    odd = random.Random(4)
    odd.random = lambda: 0.25
    made = {"r": random.Random(1), "q": random.Random(2), "odd": odd, "special": Special(5)}
    scope = {"torch": torch, "random": random, **made}
    exec(f"def program(x, o):\n{lines}", scope)
    fn = dynacheck.compile(scope["program"], backend=backend) if backend else scope["program"]
    random.seed(0)
    torch.manual_seed(0)
    found = []
    for size in (3, 3, 3, 2):
        o = types.SimpleNamespace(r=random.Random(3), n=0)
        try:
            result = fn(torch.ones(size), o)
        except Exception as error:
            if isinstance(error, dynacheck.errors.DynacheckError):
                raise
            result = type(error), str(error)
        if isinstance(result, tuple) and isinstance(result[-1], random.Random):
            result = (*result[:-1], result[-1].getstate())
        states = [hash(generator.getstate()) for generator in (*made.values(), o.r)]
        found.append((repr(result), o.n, states, hash(random.getstate())))
    return found


@pytest.mark.parametrize("name", BODIES)
def test_body(name, engine, seen, capsys):
    assert outcome(BODIES[name], "eager") == outcome(BODIES[name], None)
    assert seen.graphs or seen.skipped
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(printed) // 2] == printed[len(printed) // 2 :]


def test_an_example_draws_nothing(engine):
    inner = random.Random(1)
    seen = []

    def backend(gm, example_inputs):
        seen.append((hash(inner.getstate()), [type(value) for value in example_inputs]))
        return gm.forward

    def program(x):
        return x * inner.randint(1, 9) + inner.random()

    state = hash(inner.getstate())
    expected = random.Random(1)
    value = dynacheck.compile(program, backend=backend)(torch.ones(2))
    assert seen == [(state, [torch.Tensor] * 3)]
    assert torch.equal(value, torch.ones(2) * expected.randint(1, 9) + expected.random())


@pytest.mark.parametrize("backend", ["aot_eager", "check"])
def test_backends_take_them(engine, backend):
    def program(x):
        return x * random.randint(1, 9) + random.uniform(0, 1)

    compiled = dynacheck.compile(program, backend=backend)
    for seed in range(3):
        random.seed(seed)
        expected = program(torch.ones(2))
        random.seed(seed)
        torch.testing.assert_close(compiled(torch.ones(2)), expected)
