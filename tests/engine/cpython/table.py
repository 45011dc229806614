"""CPython's tests under the engine, as a table.

python tests/engine/cpython/table.py [MODULE | MODULE:Class.method]… [--verbose]
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import time
from typing import Any

from running import MODULES, Crashed, problems, run_module


def show(module: str, tests: list[dict[str, Any]], seconds: float, verbose: bool) -> None:
    ran = [t for t in tests if t["plain"] != "skipped"]
    bad = [t for t in ran if problems(t)]
    skips: collections.Counter[str] = collections.Counter()
    breaks: collections.Counter[str] = collections.Counter()
    for t in ran:
        skips.update(t.get("skips", {}))
        breaks.update(t.get("breaks", {}))
    whole = sum(1 for t in ran if t.get("entries") and not t.get("skips"))
    print(
        f"{module}: {len(ran)} tests, {len(bad)} with problems, {whole} without a skipped frame, {seconds:.0f} s",
        flush=True,
    )
    for t in bad:
        for problem in problems(t):
            print(f"    {t['test']}: {problem}")
        if verbose:
            print("\n".join(t.get("faults", ())), t.get("text", ""), *t.get("where", ()), sep="\n        ")
    if verbose:
        for text, count in breaks.most_common(25):
            print(f"    {count:4} {text}")
        print("   ", dict(skips), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    options = parser.parse_args()

    def one(name: str) -> None:
        module, _, only = name.partition(":")
        started = time.monotonic()
        try:
            tests = run_module(module, tuple(only.split(",")) if only else ())
        except Crashed as error:
            print(f"{module}: CRASHED\n{error}", flush=True)
            return
        show(module, tests, time.monotonic() - started, options.verbose)

    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        list(pool.map(one, options.modules or MODULES))


if __name__ == "__main__":
    main()
