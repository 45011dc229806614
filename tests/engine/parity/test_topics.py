"""Programs by topic, with a break of every kind at every place: see `topics_of_breaks`."""

import sys

import pytest
from parity.compare import Comparison, compare
from parity.engines import ENGINES
from parity.expected_failures import TORCH
from parity.expected_topics import DIFFERENT
from parity.harness import differences
from parity.topics_of_breaks import TOPICS, variants

MEASURED = (2, 13), (3, 11)
BODIES = [(topic, body) for topic in TOPICS for body in dict.fromkeys(v.body for v in variants(topic))]
WIDE = 100
"""How many programs a topic has at least."""


def wrong(found: Comparison) -> list[str]:
    """Where the bundled engine's behaviour differs from plain Python's, or, where torch's doesn't, its figures from
    torch's."""
    if differences(found.plain, found.torch, tracebacks=False):
        return found.wrong()
    return found.disagreements()


def check(topic: str, body: str, chosen: list, folder) -> None:
    if TORCH != MEASURED[0] or sys.version_info[:2] != MEASURED[1]:
        pytest.skip("what differs was measured with torch 2.13 and Python 3.11")
    if reason := ENGINES["bundled"].unavailable():
        pytest.skip(reason)
    found = {variant.name: compare(variant.program(folder)) for variant in chosen}
    plainly = {name: problems for name, c in found.items() if (problems := c.wrong())}
    assert not plainly
    counted = {name: problems for name, c in found.items() if (problems := wrong(c))}
    if (topic, body) in DIFFERENT:
        assert counted, "they agree: remove the line from expected_topics"
    else:
        assert not counted


@pytest.mark.slow
@pytest.mark.parametrize(("topic", "body"), BODIES)
def test_topic(topic, body, tmp_path):
    check(topic, body, [v for v in variants(topic) if v.body == body], tmp_path)


@pytest.mark.parametrize("topic", TOPICS)
def test_one_of_each_topic(topic, tmp_path):
    body = next(body for t, body in BODIES if t == topic and (t, body) not in DIFFERENT)
    check(topic, body, [next(v for v in variants(topic) if v.body == body)], tmp_path)


@pytest.mark.parametrize("topic", TOPICS)
def test_topics_are_wide(topic):
    assert len([*variants(topic)]) >= WIDE


def test_what_differs_is_there():
    assert set(DIFFERENT) <= set(BODIES)
