"""Random functions and histories of calls: results are plain Python's; what is made and served is torch.compile's."""

import pytest
from histories.compared import otherwise, run, run_torch, wrong
from histories.generate import FIRST, history
from parity.engines import ENGINES

ALL = 2400
PARTS = 48


def faults(numbers):
    found, translated = [], 0
    for number in numbers:
        made = history(number)
        plain, ours, theirs = run(made), run(made, ENGINES["bundled"]), run_torch(made)
        translated += any(ours.graphs)
        differences = wrong(plain, ours, theirs) + otherwise(plain, ours, theirs)
        if differences:
            found.append(f"{made}\n" + "\n".join(differences))
    assert translated > len(numbers) * 0.8
    return found


@pytest.mark.parametrize("first", [0, 10, 20, FIRST])
def test_some_histories(first):
    assert not (found := faults(range(first, first + 10))), "\n\n".join(found)


def test_a_history_is_the_same_every_time():
    assert str(history(7)) == str(history(7)) != str(history(8))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_histories(part):
    size = ALL // PARTS
    assert not (found := faults(range(size * part, size * (part + 1)))), "\n\n".join(found)
