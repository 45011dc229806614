"""Classes made in the frame, namespaces of classes, modules and frames, random numbers, warnings (row 42)."""

import collections
import functools
import math
import random
import warnings

import torch
from parity.harness import registry

PROGRAMS, program = registry()
COUNT = 3


class Base:
    """A class."""

    q = 5

    def m(self):
        return self.q + 1


class Derived(Base):
    r = 6


class Meta(type):
    pass


Pair = collections.namedtuple("Pair", "a b")


class Sub(Pair):
    __slots__ = ()


def pair(a, b):
    return collections.namedtuple("P", "a b")(a, b)


def taking(d, e, f=2):
    return locals()


def lately(x, y, a):
    return x + y + a


def ignoring(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x + 1


SCOPE = {**globals(), "math": math, "random": random, "warnings": warnings, "GENERATOR": random.Random(7)}


def row(name, *lines, graphs=1, breaks=0, recompiles=0, entries=1):
    """Adds a program of these lines, which give `found`; the figures are torch's own."""

    @program(name, 42, graphs=graphs, breaks=breaks, recompiles=recompiles, entries=entries)
    def _():
        text = "\n    ".join(("def f(x):", "y = x + 1", *lines, "return y, found"))
        exec(compile(text, __file__, "exec"), SCOPE)
        return SCOPE["f"], [(torch.ones(3),), (torch.ones(3),)]


row(
    "namedtuple_made",
    "P = collections.namedtuple('P', 'a b', defaults=[2])",
    "found = P(1), P(x, b=2)._replace(a=3), P._fields",
)
row(
    "namedtuple_renamed",
    "P = collections.namedtuple('P', ['a', 'def'], rename=True)",
    "found = P(1, x)._1, P._make([1, 2])._asdict(), P.__name__",
)
row(
    "namedtuple_of_two_calls",
    "p, q = pair(x, 1), pair(x, 1)",
    "found = p == q, type(p) is type(q), isinstance(p, tuple), p",
)
row(
    "namedtuple_as_a_key",
    "P = collections.namedtuple('P', 'a b')",
    "found = {P(1, 2): 3}[P(1, 2)], hash(P(1, 2)) == hash((1, 2))",
)
row(
    "namedtuple_matched",
    "P = collections.namedtuple('P', 'a b')",
    "match P(x, 2):",
    "    case P(a=a, b=2):",
    "        found = a + 1",
)
row(
    "namedtuple_in_a_loop",
    "found = x",
    "for name in ('a', 'b'):",
    "    P = collections.namedtuple('P', name)",
    "    found = found + getattr(P(3), name)",
)
row(
    "namedtuple_mapped",
    "P = collections.namedtuple('P', 'a b')",
    "found = torch.utils._pytree.tree_map(lambda t: t + 1, P(x, 2))",
)
row("named_tuple_written", "found = repr(Pair(1, [2])), repr(Sub(1, 2))")
row(
    "class_by_type",
    "C = type('C', (Base,), {'k': 3})",
    "found = x * C.k, C.q, C.__name__, issubclass(C, Base), C.__mro__[1]",
)
row("class_by_type_returned", "C = type('C', (), {'k': 3})", "found = x, C")
row("class_by_type_with_a_function", "C = type('C', (), {'k': lambda y: y + 1})", "found = C.k(x)")
row(
    "exception_by_type",
    "E = type('E', (ValueError,), {})",
    "try:",
    "    raise E('a')",
    "except E as e:",
    "    found = e.args, isinstance(e, ValueError)",
)
row("class_by_type_of_a_tensor", "C = type('C', (), {'k': x})", "found = C.k", breaks=1)
row("class_by_a_metaclass", "C = Meta('C', (), {})", "found = C.__name__", breaks=1)
row(
    "namespace_of_a_class",
    "found = Base.__dict__['q'], 'r' in Base.__dict__, vars(Derived).get('q', 4), list(Base.__dict__)",
)
row(
    "method_of_a_namespace",
    "found = Base.__dict__['m'](Base()), [v for k, v in vars(Base).items() if k[0] != '_' and not callable(v)]",
)
row(
    "namespace_returned",
    "found = x, vars(Base) == Base.__dict__, type(vars(Base)).__name__, isinstance(vars(Base), dict)",
)
row("namespace_of_a_module", "found = vars(math)['pi'] + math.__dict__['e'], 'tau' in vars(math)")
row("names_of_a_class", "found = dir(Derived)[-3:]")
row("names_of_a_module", "found = 'pi' in dir(math)")
row("names_of_an_object", "found = dir(Base())[-1]", breaks=1)
row(
    "local_variables", "b = 4", "a = x + 1", "names = locals()", "found = list(names), names['b'], names['a']"
)
row("local_variables_of_a_callee", "names = taking(x, 1)", "found = names['d'] + 1, list(names)")
row("local_variables_in_a_loop", "found = 0", "for i in range(2):", "    found = found + locals()['i']")
row("local_variables_by_vars", "a = 3", "found = vars()['a'], '%(a)s'")
row("local_variables_as_keywords", "a = 3", "found = lately(**locals())")
row("local_variables_written", "a = 3", "locals()['a'] = 5", "found = a")
row("globals_read", "found = globals()['COUNT']", breaks=1)
row("drawn_int", "found = x * random.randint(1, 9), x + random.randrange(5)")
row("drawn_float", "found = x * random.uniform(a=1, b=9) - random.uniform(0, 1)")
row("drawn_and_returned", "r = random.randint(1, 9)", "found = r, [r, x * r], r is r")
row("drawn_and_compared", "found = random.uniform(0, 1) < 0.5, x > random.uniform(0, 2)")
row("drawn_in_a_list", "r = [random.randint(0, 4) for _ in range(3)]", "found = x * r[1], r")
row(
    "drawn_between_breaks",
    "a = random.randint(1, 5)",
    "print('a')",
    "found = x * a + random.uniform(0, 2)",
    graphs=3,
    breaks=1,
    recompiles=1,
    entries=3,
)
row("drawn_before_a_branch", "found = x", "if random.randint(0, 1):", "    found = x - 1", breaks=1)
row("drawn_as_an_index", "found = [1, 2, 3][random.randint(0, 2)]", breaks=1)
row("drawn_as_a_size", "found = torch.zeros(random.randint(2, 3))", breaks=1)
row("drawn_as_a_probability", "found = torch.nn.functional.dropout(x, random.uniform(0, 1))", breaks=1)
row("drawn_by_choice", "found = x * random.choice([1, 2])", graphs=2, breaks=1, entries=2)
row("drawn_by_random", "found = x * random.random()", graphs=3, breaks=1, recompiles=1, entries=3)
row("drawn_by_gauss", "found = x * random.gauss(0, 1)", graphs=3, breaks=1, recompiles=1, entries=3)
row("shuffled", "order = [1, 2, 3]", "random.shuffle(order)", "found = order", breaks=1)
row("seeded", "random.seed(4)", "found = x * random.randint(1, 9)", graphs=2, breaks=1, entries=2)
row(
    "drawn_by_a_new_generator",
    "r = random.Random(5)",
    "found = x * r.random(), r.randint(1, 9), r.getstate()[1][0]",
)
row(
    "drawn_by_a_seeded_generator",
    "GENERATOR.seed(3)",
    "found = x * GENERATOR.random(), GENERATOR.uniform(0, 3)",
)
row(
    "generator_set_back",
    "s = GENERATOR.getstate()",
    "found = x * GENERATOR.random()",
    "GENERATOR.setstate(s)",
)
row("chosen_by_a_generator", "found = GENERATOR.choice([1, 2])", breaks=1)
row("bytes_changed", "b = bytearray(b'ab')", "b.append(99)", "found = b[0], b", breaks=3, entries=3)
row("bytes_viewed", "v = memoryview(b'ab')", "found = v[0]", breaks=2, entries=2)
row("warnings_caught", "with warnings.catch_warnings():", "    found = x + 2")
row(
    "warnings_caught_and_ignored",
    "with warnings.catch_warnings():",
    "    warnings.simplefilter('ignore')",
    "    found = x + 2",
    graphs=0,
    breaks=2,
    entries=0,
)
row(
    "warning_in_a_block",
    "with warnings.catch_warnings():",
    "    warnings.warn('a')",
    "    found = x + 2",
    graphs=0,
    breaks=2,
    entries=0,
)
row("warnings_ignored_in_a_callee", "found = ignoring(x) * 2", graphs=2, breaks=3, entries=2)
row(
    "warnings_recorded",
    "with warnings.catch_warnings(record=True) as w:",
    "    found = x + 2",
    "found = found, len(w)",
)


class WithPartial:
    def scaled(self, x, by):
        return x * by

    doubled = functools.partialmethod(scaled, by=2)


def taken_for_an_exception(name, compute):
    """What torch takes for an exception of the program, and gives the frame up for."""

    @program(name, 42, graphs=0, breaks=1, entries=0)
    def _():
        def f(x):
            return x + 1, compute()

        return f, [(torch.ones(3),), (torch.ones(3),)]


taken_for_an_exception("method_of_int_through_its_class", lambda: int.__mul__(2, 3))
taken_for_an_exception("method_of_bytes_through_its_class", lambda: bytes.__getitem__(b"ab", 1))
taken_for_an_exception("object_equality_through_its_class", lambda: object.__eq__(Base, Base))
taken_for_an_exception("partialmethod_called", lambda: WithPartial().doubled(3))
