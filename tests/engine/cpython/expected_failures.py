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
STRINGS: Final = "identity of equal strings, which is CPython's affair"
UNRAISABLE: Final = "an error that CPython can only print"
KEYS: Final = "a dict's keys compare by code of the user's, which looking for a key while translating runs"
BUILTINS: Final = "replaces builtins.len, which the engine itself calls"

EXPECTED: Final[dict[str, dict[str, str]]] = {
    "test_yield_from": {"TestPEP380Operation.test_broken_getattr_handling": UNRAISABLE},
    "test_patma": {"TestTracing.*": LINES},
    "test_scope": {"ScopeTests.testCellLeak": LIFETIME, "ScopeTests.testLeaks": LIFETIME},
    "test_slice": {"SliceTest.test_cycle": LIFETIME},
    "test_dict": {
        "DictTest.test_dict_contain_use_after_free": KEYS,
        "DictTest.test_oob_indexing_dictiter_iternextitem": LIFETIME,
        "DictTest.test_splittable_popitem": SIZES,
    },
    "test_functools": {
        "TestPartial*.test_weakref": LIFETIME,
        "TestLRU*.test_lru_cache_weakrefable": LIFETIME,
        "TestLRU*.test_lru_reentrancy_with_len": BUILTINS,
    },
    "test_operator": {"COperatorTestCase.test_is*": STRINGS},
}
