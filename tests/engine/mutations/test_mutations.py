"""One thing is changed at a time: results are plain Python's, and entries serve whom torch.compile's would."""

import zlib

import pytest
from mutations.loop import BEFORE, WORLDS, Run, run, world, wrong
from mutations.on_purpose import reason
from mutations.places import Mutation, mutations
from parity.engines import ENGINES
from parity.harness import Raised

EVERYTHING = {name: mutations(world(name)) for name in WORLDS}
CHUNKS = 16
KINDS = [  # what is changed (how its place ends), and how
    ("_modules['", "new attribute"), ("_parameters['", "data double"), ("_parameters['", "requires_grad_"),
    ("_parameters['", "resize_"), ("_parameters['", "set_"), ("_parameters['", "new, half"), ("Base.shared", "float"),
    ("_buffers['", "in place"), ("TABLE", "new key"), ("TABLE", "moved to the end"), ("ITEMS", "append"),
    ("_forward_hooks", "a hook"), ("_modules['", "forward hook"), ("globals.SCALE", "float"), ("<cell 0>", "float"),
    ("__defaults__[0]", "int plus one"), ("__kwdefaults__['", "float"), ("globals.CHILD", "subclass"),
    ("globals.shift", "__code__"), ("globals.CHILD", "shadowed methods"), ("_modules['", "forward of its own"),
    ("_modules['", "flip training"), ("globals.Base", "bases"), ("globals.Base", "__getattribute__"),
]  # fmt: skip


def number(mutation: Mutation) -> int:
    """The same in every process, and spread evenly."""
    return zlib.crc32(str(mutation).encode())


def sample(name: str, parts: int, part: int = 0) -> list[Mutation]:
    return [m for m in EVERYTHING[name] if number(m) % parts == part]


def otherwise_than_torch(plain: Run, ours: Run, theirs: Run, mutation: Mutation) -> str:
    """How calls were served otherwise, where that must not be."""
    if plain.refused or wrong(plain, theirs) or reason(str(mutation)):
        return ""
    calls = zip(plain.results, ours.outcomes, theirs.outcomes, strict=True)
    found = [
        f"call {i}: {a} instead of {b}"
        for i, (r, a, b) in enumerate(calls)
        if a != b and type(r) is not Raised
    ]
    return ", ".join(found)


def faults(name: str, chosen: list[Mutation], compare: bool) -> list[str]:
    found = []
    for mutation in chosen:
        plain, ours = run(name, [mutation]), run(name, [mutation], ENGINES["bundled"])
        assert len(ours.outcomes) >= BEFORE and "miss" in ours.outcomes, "nothing was translated"
        texts = [wrong(plain, ours), *ours.faults]
        if compare:
            texts.append(otherwise_than_torch(plain, ours, run(name, [mutation], ENGINES["torch"]), mutation))
        found += [f"{mutation}: {text}" for text in texts if text]
    return found


@pytest.mark.parametrize(("place", "how"), KINDS)
def test_the_loop_makes_every_kind_of_change(place, how):
    assert [m for found in EVERYTHING.values() for m in found if m.name == how and place in str(m)]


@pytest.mark.parametrize("name", WORLDS)
def test_what_changes_is_noticed(name):
    assert not faults(name, sample(name, len(EVERYTHING[name]) // 12), compare=False)


@pytest.mark.parametrize("name", WORLDS)
def test_entries_serve_whom_torch_would_serve(name):
    assert not faults(name, sample(name, len(EVERYTHING[name]) // 4, 1), compare=True)


@pytest.mark.parametrize("name", WORLDS)
def test_changes_one_after_another(name):
    chosen = sorted(EVERYTHING[name], key=number)
    for first, second, third in zip(chosen[:6], chosen[6:12], chosen[12:18]):
        plain = run(name, [first, second, third])
        ours = run(name, [first, second, third], ENGINES["bundled"])
        assert not wrong(plain, ours), (first, second, third)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_translated_as_torch_translates_it(name):
    figures = []
    for engine in ("torch", "bundled"):
        seen = run(name, [], ENGINES[engine])
        figures.append(seen.outcomes)
    assert figures[0] == figures[1] == ["miss", "hit"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(CHUNKS))
@pytest.mark.parametrize("name", WORLDS)
def test_every_change(name, part):
    assert not faults(name, sample(name, CHUNKS, part), compare=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("name", WORLDS)
def test_many_changes_one_after_another(name, part):
    chosen = sorted(EVERYTHING[name], key=lambda m: zlib.crc32(f"{m}{part}".encode()))
    for i in range(0, min(len(chosen) - 3, 120), 3):
        plain, ours = run(name, chosen[i : i + 3]), run(name, chosen[i : i + 3], ENGINES["bundled"])
        assert not wrong(plain, ours), list(map(str, chosen[i : i + 3]))
