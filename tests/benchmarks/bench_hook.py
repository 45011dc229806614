"""What the frame hook costs: nanoseconds per call of `f(x, y)`, best of several interleaved rounds.

python tests/benchmarks/bench_hook.py [rounds]
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from dynacheck import _C

CALLS = 20_000
SOURCE = """
def f(x, y): return x
def bigger(x, y):
    v0 = x
    v1 = y
    v2 = x
    if y == 77: print([x, [x, [x, [x, [x, [x]]]]]])
    return x
"""


def made() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(SOURCE, "<bench>", "exec"), names)
    return names


def call(fn: Callable[..., Any]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        fn(1, 2)
    return time.perf_counter() - start


def nothing() -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        pass
    return time.perf_counter() - start


@contextmanager
def mode(callback: Any):
    previous = _C.set_callback(callback)
    try:
        yield
    finally:
        _C.set_callback(*previous)


def hooked(fn: Callable[..., Any], callback: Any = False) -> Callable[[], float]:
    def run() -> float:
        with mode(callback):
            return call(fn)

    return run


def serving(code: Any, force: str | None = None) -> Callable[[], float]:
    f = made()["f"]
    _C.state(f.__code__).add(_C.Entry(None, code, None))

    def run() -> float:
        if force:
            _C.force(force, 1)
        try:
            return hooked(f)()
        finally:
            if force:
                _C.force(force, 0)

    return run


def skipped() -> Callable[[], float]:
    f = made()["f"]
    _C.state(f.__code__).skip = True
    return hooked(f)


def other_thread_on() -> float:
    ready, stop = threading.Event(), threading.Event()

    def hold() -> None:
        with mode(False):
            ready.set()
            stop.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    try:
        return call(PLAIN["f"])
    finally:
        stop.set()
        thread.join()


def entries_before(count: int) -> Callable[[], float]:
    """A hit behind `count` entries of another region."""
    names = made()
    f, other = names["f"], _C.Region()
    state = _C.state(f.__code__)
    state.add(_C.Entry(None, names["bigger"].__code__, None))
    for _ in range(count):
        state.add(_C.Entry(None, names["bigger"].__code__, other))
    run = hooked(f)

    def keep() -> float:
        assert other is not None
        return run()

    return keep


def wrapper(make: Callable[[Any], Any], inside: bool) -> Callable[[], float]:
    names = made()
    _C.state(names["f"].__code__).add(_C.Entry(None, names["bigger"].__code__, None))
    wrapped = make(names["f"])
    return hooked(wrapped) if inside else lambda: call(wrapped)


PLAIN = made()
ROWS: dict[str, Callable[[], float]] = {
    "no hook": lambda: call(PLAIN["f"]),
    "no hook, the bigger code": lambda: call(PLAIN["bigger"]),
    "another thread has it on": other_thread_on,
    "on, code without a state": hooked(made()["f"]),
    "on, skipped": skipped(),
    "hit, same size": serving(PLAIN["f"].__code__.replace(co_name="same")),
    "hit, bigger code": serving(PLAIN["bigger"].__code__),
    "hit, behind 7 entries of another region": entries_before(7),
    "hit by the fallback": serving(PLAIN["bigger"].__code__, "fallback"),
    "HookedCall, hit inside": wrapper(lambda f: _C.HookedCall(f, False), False),
    "HookOff where the hook is on": wrapper(_C.HookOff, True),
    "HookOff where it is off": wrapper(_C.HookOff, False),
}


def main(rounds: int) -> None:
    best = dict.fromkeys(ROWS, float("inf"))
    empty = float("inf")
    for _ in range(rounds):
        empty = min(empty, nothing())
        for name, row in ROWS.items():
            best[name] = min(best[name], row())
    result = {name: round((seconds - empty) / CALLS * 1e9, 1) for name, seconds in best.items()}
    for name, cost in result.items():
        print(f"{cost:7.1f}  {name}")
    print(json.dumps({"python": sys.version.split()[0], "ns": result}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
