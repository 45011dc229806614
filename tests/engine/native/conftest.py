"""Helpers of the tests of the native module: only test_dynamo.py here needs torch."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import pytest
from dynacheck import _C

# 60 locals and a deep stack: bigger than the frame of any original below.
BIG_BODY = (
    "".join(f"    v{i} = {i}\n" for i in range(60)) + "    z = [v0, [v1, [v2, [v3, [v4, (v5, v6, v7)]]]]]\n"
)


class Rewriter:
    """A frame callback that runs `table[code]` instead of `code` and marks every other code skip."""

    def __init__(self, table: dict[CodeType, CodeType]) -> None:
        self.table = table
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    def __call__(self, func: FunctionType, args: tuple[Any, ...], state: _C.CodeState) -> _C.Entry | None:
        self.seen.append((func.__code__.co_name, args))
        code = self.table.get(func.__code__)
        if code is None:
            state.skip = True
            return None
        return _C.Entry(None, code, None)

    def names(self) -> set[str]:
        return {name for name, _ in self.seen}


class Native:
    """What most tests need, under one name."""

    Rewriter = Rewriter

    @staticmethod
    def make(source: str, **names: Any) -> dict[str, Any]:
        """The namespace after running `source`: fresh code objects, with no state, on every call."""
        namespace = {"__name__": "made", "_C": _C, "sys": sys, "gc": gc, **names}
        exec(compile(source, "<made>", "exec"), namespace)
        return namespace

    @classmethod
    def big(cls, signature: str, result: str, **names: Any) -> CodeType:
        """Code `def r(<signature>)` with a big frame, in file <rewritten>."""
        namespace = dict(names)
        exec(
            compile(f"def r({signature}):\n{BIG_BODY}    return {result}\n", "<rewritten>", "exec"), namespace
        )
        code: CodeType = namespace["r"].__code__
        return code

    @staticmethod
    @contextmanager
    def on(callback: Any, region: _C.Region | None = None) -> Iterator[Any]:
        previous = _C.set_callback(callback, region)
        try:
            yield callback
        finally:
            _C.set_callback(*previous)

    @classmethod
    def rewriting(cls, table: dict[Any, Any]) -> Any:
        """The hook on with a Rewriter; functions stand for their code."""
        codes = {getattr(k, "__code__", k): getattr(v, "__code__", v) for k, v in table.items()}
        return cls.on(Rewriter(codes))

    @staticmethod
    def serve(func: FunctionType, code: Any, region: _C.Region | None = None) -> _C.Entry:
        """Give `func` an entry that always passes."""
        entry = _C.Entry(None, getattr(code, "__code__", code), region)
        _C.state(func.__code__).add(entry)
        return entry

    @staticmethod
    def run_in_thread(fn: Callable[[], Any], stack_size: int = 0) -> Any:
        results: list[Any] = []
        threading.stack_size(stack_size)
        try:
            thread = threading.Thread(target=lambda: results.append(fn()))
            thread.start()
        finally:
            threading.stack_size(0)
        thread.join()
        return results[0]


@pytest.fixture
def native() -> type[Native]:
    return Native


@pytest.fixture(params=["in place", "fallback"])
def how(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test with frames rewritten in place and with the fallback forced."""
    _C.force("fallback", int(request.param == "fallback"))
    yield request.param
    _C.force("fallback", 0)


@pytest.fixture(autouse=True, scope="module")
def quick_collections() -> Iterator[None]:
    """The collections that tests ask for need not go through all of torch."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def back_to_default() -> Iterator[None]:
    """Every test leaves the thread's mode off and CPython's own evaluator in place."""
    _C.set_callback(None)
    assert _C.hook_stats()["evaluator"] == "default"
    yield
    was_on = _C.hook_active()
    _C.set_callback(None)
    _C.set_hot_list(None)
    sys.settrace(None)
    sys.setprofile(None)
    stats = _C.hook_stats()
    assert not was_on, "the test left the hook on"
    assert (stats["evaluator"], stats["users"], stats["installed"]) == ("default", 0, False), stats
