"""CPython's tests that don't do compiled what they do plain, with the reason; strict.

A name may have wildcards, for tests that several classes inherit; one of those that it stands for must fail.
"""

from __future__ import annotations

from typing import Final

LIFETIME: Final = (
    "looks at when an object dies: what a frame has at a graph break lives until its resume function returns, "
    "as with torch.compile"
)
LINES: Final = "traces lines with sys.settrace: those of a rewritten frame are others"
SIZES: Final = "sizes of objects: one that is rebuilt may be of another size"
SLOW: Final = "loops so long that interpreting them takes too long"
STRINGS: Final = "identity of equal strings, which is CPython's affair"
UNRAISABLE: Final = "an error that CPython can only print"

EXPECTED: Final[dict[str, dict[str, str]]] = {
    "test_yield_from": {"TestPEP380Operation.test_broken_getattr_handling": UNRAISABLE},
    "test_patma": {"TestTracing.*": LINES},
    "test_scope": {"ScopeTests.testCellLeak": LIFETIME, "ScopeTests.testLeaks": LIFETIME},
    "test_slice": {"SliceTest.test_cycle": LIFETIME},
}
