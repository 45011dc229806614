"""Runs a test module of the standard library with the frame hook on and every function's code rewritten.

Usage: run_rewritten.py MODE MODULE. MODE is `rebuilt` (the same code again), `copied` (body copied, other
slots, bigger frame) or `split` (every function split at some instruction, the rest in a resume function).
"""

import signal
import sys
import unittest
from importlib import import_module

from dynacheck import _C
from dynacheck.bytecode.assemble import assemble, continues
from dynacheck.bytecode.build import Builder
from dynacheck.bytecode.copying import Copier, rebuild
from dynacheck.bytecode.decode import decode
from splitting import layout_at, split

COUNTS = {"rewritten": 0, "left": 0}
SEES_FRAMES = ("locals", "vars", "exec", "eval", "dir", "_getframe", "stack", "currentframe", "settrace")
# how deep these may recurse is counted in C frames, and with a hook every Python call takes one
DEEP = ("test_super_deep", "test_lru_recursion", "test_recursion_in_except_handler")

# the caller of a resume function keeps its arguments alive (before 3.14 what dies there is no argument)
LIFETIMES = ("test_unraisable",)


class Loader(unittest.TestLoader):
    def getTestCaseNames(self, case):
        return [name for name in super().getTestCaseNames(case) if name not in DEEP + LIFETIMES]


def copied(code):
    builder = Builder(code)
    copier = Copier(builder, decode(code))
    copier.copy_range(decode(code).start, len(decode(code)))
    return assemble(builder, extra_locals=["___captured", *(f"___more{i}" for i in range(40))])


def split_somewhere(code):
    if continues(code) or set(SEES_FRAMES).intersection(code.co_names):
        return None
    decoded = decode(code)
    for index in range(decoded.start + len(decoded) // 3, len(decoded)):
        layout = layout_at(code, index, lifetimes=True)
        if not isinstance(layout, str) and layout.locals:
            return split(code, index, layout)
    return None


MODES = {"rebuilt": rebuild, "copied": copied, "split": split_somewhere}


def callback_for(rewrite):
    def callback(function, args, state):
        code = rewrite(function.__code__)
        if code is None:
            state.skip = True
            COUNTS["left"] += 1
            return None
        COUNTS["rewritten"] += 1
        return _C.Entry(None, code, None)

    return callback


def main(mode, module):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    suite = Loader().loadTestsFromModule(import_module(module))
    runner = unittest.TextTestRunner(verbosity=0)
    result = _C.HookedCall(runner.run, callback_for(MODES[mode]))(suite)
    print(f"{module} {mode}: {result.testsRun} tests, {COUNTS}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
