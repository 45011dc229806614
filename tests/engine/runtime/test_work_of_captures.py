"""What a capture takes over from earlier ones, and from the equal modules before it: counted, not timed."""

import gc
import threading
from collections import Counter

import dynacheck
import pytest
import torch
from dynacheck.bytecode import decode, liveness
from dynacheck.bytecode.by_code import ByCode
from dynacheck.runtime.engine import engine
from dynacheck.translate import frame
from torch import nn

TABLES = {"decoded": decode._decoded, "liveness": liveness._solved, "handlers": frame._rows[0]}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        return x + scaled(torch.relu(self.inner(self.norm(x))))


def scaled(x):
    return x * x.shape[-1] ** -0.5


class Net(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(number))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def split(x):
    y = scaled(x.sin())
    print(end="")
    return y + x


@pytest.fixture
def worked(monkeypatch):
    """How often each table got a row for each code object."""
    seen = Counter()
    names = {id(table): name for name, table in TABLES.items()}
    plain = ByCode.set

    def set_(table, code, value):
        if id(table) in names:
            seen[names[id(table)], code] += 1
        plain(table, code, value)

    monkeypatch.setattr(ByCode, "set", set_)
    return seen


def from_nothing():
    engine.oracle.clear()
    for table in TABLES.values():
        table.clear()


def capture(fn, x):
    """Translate in a process that has forgotten all entries; how many operators ran on fake tensors, how many calls
    there are in the graphs."""
    dynacheck.reset()
    misses, calls = engine.oracle.misses, []

    def backend(gm, example_inputs):
        calls.extend(n.target for n in gm.graph.nodes if n.op.startswith("call"))
        return gm.forward

    with torch.no_grad():
        dynacheck.compile(fn, backend=backend)(x)
    return engine.oracle.misses - misses, len(calls)


def test_equal_modules_take_no_more_than_one(worked):
    done = {}
    for number in (1, 12):
        from_nothing()
        worked.clear()
        misses, calls = capture(Net(number), torch.ones(2, 8))
        done[number] = misses, dict(worked)
        assert calls == 5 * number
        assert Block.forward.__code__ in {code for _, code in worked}
    assert done[1] == done[12]
    assert done[1][0] == 5


def test_the_memo_is_shared_by_all_captures():
    from_nothing()
    x = torch.ones(2, 8)
    first, calls = capture(Net(2), x)
    assert first == 5 and calls == 10
    others = [
        lambda x: Block()(x) if x is None else NET(x),
        lambda x: torch.relu(NET.blocks[0].inner(x)),
        NET,
    ]
    for other in others:  # other functions, modules and parameters, after a reset
        assert capture(other, x)[0] == 0
    seen = []
    thread = threading.Thread(target=lambda: seen.append(capture(Net(3), x)))
    thread.start()
    thread.join()
    assert seen == [(0, 15)]


NET = Net(1)


def test_each_code_object_is_read_once(worked):
    from_nothing()
    for size in (2, 3, 2):
        capture(split, torch.ones(size))
    own = {key: times for key, times in worked.items() if key[1].co_filename == __file__}
    assert set(own.values()) == {1}
    for name in TABLES:
        assert (name, split.__code__) in own
    assert ("handlers", scaled.__code__) in own


def test_the_collector_is_as_it_was():
    """It is on while a backend works, if it was, but doesn't look at once at all that the translation has made."""
    before, seen = gc.get_threshold(), []

    def backend(gm, example_inputs):
        seen.append((gc.isenabled(), gc.get_threshold()[1:]))
        return gm.forward

    def choosing(gm, example_inputs):
        gc.set_threshold(900, 9, 9)
        return gm.forward

    try:
        for number, chosen in enumerate((backend, backend, choosing)):
            if number == 1:
                gc.disable()
            dynacheck.reset()
            dynacheck.compile(lambda x: x + 1, backend=chosen)(torch.ones(2))
            assert gc.isenabled() == (number != 1)
            assert gc.get_threshold() == ((900, 9, 9) if chosen is choosing else before)
            gc.enable()
    finally:
        gc.enable()
        gc.set_threshold(*before)
    assert seen == [(True, before[1:]), (False, before[1:])]
