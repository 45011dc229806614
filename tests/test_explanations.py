"""The examples of the explanations do what the pages say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import dynacheck
import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs" / "explanation").glob("*.md"))
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(page: Path) -> doctest.DocTest:
    """The examples of a page, at their lines, as one test."""
    text = page.read_text()
    kept = [""] * len(text.splitlines())
    for block in BLOCK.finditer(text):
        first = text[: block.start(1)].count("\n")
        for i, line in enumerate(block.group(1).splitlines()):
            kept[first + i] = line
    return doctest.DocTestParser().get_doctest("\n".join(kept), {}, page.name, str(page), 0)


def test_there_are_examples():
    assert sum(len(examples(page).examples) for page in PAGES) > 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page, capsys):
    test = examples(page)
    if not test.examples:
        return
    said: list[str] = []
    dynacheck.reset()
    try:
        with dynacheck.configured(raise_internal_errors=True):
            result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    finally:
        dynacheck.reset()
    assert result.failed == 0, "".join(said)
