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
COUNTS: Final = "counts the objects that are alive: the engine makes some of its own"
MODULE_CLASS: Final = "a module whose class is changed"
METACLASS: Final = "a metaclass with code of its own where classes keep the name of their module"
ENDED: Final = "the line that a frame stopped at, of a frame that is rewritten"
FRAMES: Final = (
    "compares frames across a graph break, after which the rest runs in another, as with torch.compile"
)
ALIASES: Final = "compares a union of typing's with a written one by sets of their parts"
CONTEXTS: Final = (
    "contexts of exceptions that an ExitStack rewrites come out otherwise: the frame runs as it is"
)
KEYS: Final = "a dict's keys compare by code of the user's, which looking for a key while translating runs"
BUILTINS: Final = "replaces builtins.len, which the engine itself calls"

EXPECTED: Final[dict[str, dict[str, str]]] = {
    "test_contextlib": {"TestExitStack.test_exit_exception_with_correct_context": CONTEXTS},
    "test_copy": {"TestCopy.test_*copy_weak*dict": LIFETIME},
    "test_descr": {
        "ClassPropertiesAndMethods.test_cycle_through_dict": LIFETIME,
        "ClassPropertiesAndMethods.test_object_class_assignment_between_*": MODULE_CLASS,
        "ClassPropertiesAndMethods.test_remove_subclass": LIFETIME,
        "ClassPropertiesAndMethods.test_slots": COUNTS,
        "ClassPropertiesAndMethods.test_vicious_descriptor_nonsense": KEYS,
        "MiscTests.test_type_lookup_mro_reference": KEYS,
        "SharedKeyTests.test_subclasses": SIZES,
    },
    "test_exceptions": {
        "PEP626Tests.test_lineno_after_other_except": ENDED,
        "PEP626Tests.test_lineno_in_try": ENDED,
    },
    "test_types": {
        "UnionTests.test_or_type_operator_with_bad_module": METACLASS,
        "UnionTests.test_union_parameter_substitution": ALIASES,
    },
    "test_yield_from": {"TestPEP380Operation.test_broken_getattr_handling": UNRAISABLE},
    "test_patma": {"TestTracing.*": LINES},
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
    "test_operator": {"*OperatorTestCase.test_is*": STRINGS},
    "test_raise": {"TestTracebackType.test_attrs": FRAMES},
}

TOO_LONG: Final[dict[str, tuple[str, ...]]] = {
    "test_builtin": ("BuiltinTest.test_filter_dealloc",),
    "test_complex": ("ComplexTest.test_truediv",),
    "test_itertools": (
        "TestBasicOps.test_compress",  # 60,000 rounds of iterators that are traced
        "RegressionTests.test_long_chain_of_empty_iterables",
        "TestBasicOps.test_tee_del_backward",
    ),
    "test_math": ("MathTests.testFactorial", "MathTests.testFsum", "MathTests.testRemainder"),
}
"""Tests that aren't run: their loops of many thousand rounds take too long when they are interpreted."""
