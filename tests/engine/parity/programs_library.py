"""Calls of builtins and of the standard library (row 41): where they are traced, and where they break as with torch."""

import dataclasses
import enum
import functools
import typing
import weakref

import torch
from parity.harness import registry

PROGRAMS, program = registry()


@dataclasses.dataclass
class Point:
    a: int
    b: int = 2


class Letter(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    A = 1


class Stand:
    """Stands in for another object."""

    def __init__(self, other):
        self.__other = other

    def __getattribute__(self, name):
        if name.startswith("_Stand__"):
            return object.__getattribute__(self, name)
        return getattr(self.__other, name)


STAND, POINT = Stand(Point(1)), Point(1)
IDS = {id(POINT): "kept"}


class Kept:
    """Its objects are hashed by identity."""

    n: int = 0

    def method(self):
        return self.n


class Level(int):
    """A kind of int."""


class OwnLevel(int):
    def __add__(self, other):
        return 7

    def __repr__(self):
        return "own"


class Word(str):
    """A kind of str."""


class Ratio(float):
    """A kind of float."""


LEVEL, WORD, RATIO = Level(3), Word("ab"), Ratio(1.5)


class Typed(typing.TypedDict):
    a: int


class Switch(enum.Flag):
    A = 1
    B = 2


KEPT, LOWER = Kept(), str.lower


class Items(dict):
    """Its items are its attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Own(dict):
    """Its attributes are its items."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


ITEMS, OWN = Items(a=1), Own(n=2)


def joined(a, b=1, *c, d=2):
    return a, b, c, d


def called(fn, *args):
    try:
        return fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def given():
    return 1


class Somebody:
    def greets(self):
        return 1


SOMEBODY = Somebody()
SOMEBODY.weight = torch.nn.Parameter(torch.ones(1))


@functools.singledispatch
def kind(value):
    return "object"


@kind.register(list)
def _(value):
    return "list"


@kind.register(Kept)
def _(value):
    return "kept"


SCOPE = {**globals(), "WEAK": weakref.WeakSet([KEPT]), "REFERENCE": weakref.ref(KEPT)}
exec("import bisect, collections, copy, functools, heapq, inspect, itertools", SCOPE)
exec("import fnmatch, operator, os, pathlib, re, statistics, sys, types, urllib.parse, uuid", SCOPE)

# name, expression, how often torch breaks there, entries
ROWS = (
    ("class_of_a_function", "given.__class__.__name__", 0, 1),
    (
        "name_of_parameter_compared",
        "(torch.nn.Parameter.__name__ == 'a', type(SOMEBODY.weight).__module__ in ('a', 'b'))",
        0,
        1,
    ),
    ("name_of_parameter_formatted", "f'{torch.nn.Parameter.__name__}'", 0, 1),
    ("name_of_parameter_looked_into", "type(SOMEBODY.weight).__module__.startswith('torchao.')", 1, 1),
    ("length_of_name_of_parameter", "len(torch.nn.Buffer.__qualname__)", 1, 0),
    ("character_in_name_of_parameter", "'a' in torch.nn.Parameter.__name__", 1, 0),
    ("class_of_a_super", "super(Somebody, SOMEBODY).__class__.__name__", 0, 1),
    (
        "class_of_a_tensors_method",
        "(x.add.__class__.__name__, x.add.__qualname__)",
        0,
        1,
    ),
    ("class_of_a_lists_method", "[].append.__class__.__name__", 0, 1),
    ("eval_of_a_literal", "eval('1 + 2')", 0, 1),
    ("dir_of_a_list", "len(dir([]))", 0, 1),
    ("length_hint", "operator.length_hint([1])", 0, 1),
    ("count_of", "operator.countOf([1, 1], 1)", 0, 1),
    ("index_of", "operator.indexOf([1, 2], 2)", 1, 1),
    ("operator_call", "operator.call(max, 1, 2)", 1, 1),
    ("bytes_of_numbers", "bytes([1, 2])", 1, 1),
    ("interned", "sys.intern('a')", 0, 1),
    ("combinations_repeated", "list(itertools.combinations_with_replacement([1, 2], 2))", 2, 2),
    ("groups_by_keyword", "[k for k, g in itertools.groupby([1, 2], key=lambda v: v)]", 0, 1),
    ("compared_keys", "sorted([2, 1], key=functools.cmp_to_key(lambda a, b: a - b))", 2, 2),
    ("heapified", "heapq.nlargest(2, [1, 4, 3])", 1, 1),
    ("bisected", "bisect.bisect_left([1, 3, 5], 3)", 1, 1),
    ("mean_of_numbers", "statistics.mean([1, 2, 3])", 1, 1),
    ("median_of_numbers", "statistics.median([1, 2, 3])", 0, 1),
    ("rotated", "collections.deque([1, 2]).rotate(1)", 1, 1),
    ("reversed_deque", "collections.deque([1, 2]).reverse()", 0, 1),
    ("copied_list", "copy.copy([1])", 1, 1),
    ("copied_dict", "copy.copy({1: 2})", 1, 1),
    ("copied_tuple", "copy.copy((1, 2))", 0, 1),
    ("copied_object", "copy.copy(Point(1)).b", 0, 1),
    ("deeply_copied", "copy.deepcopy([1, [2], {3: 4}])", 0, 1),
    ("deeply_copied_deque", "copy.deepcopy(collections.deque([1]))", 1, 1),
    ("fields_of_a_class", "len(dataclasses.fields(Point))", 1, 1),
    ("fields_of_an_object", "len(dataclasses.fields(Point(1)))", 0, 1),
    ("repr_of_a_dataclass", "repr(Point(1))", 1, 1),
    ("method_of_a_text_enum", "Letter.A.upper()", 1, 1),
    ("full_argument_list", "inspect.getfullargspec(joined).args", 0, 1),
    ("signature_shown", "str(inspect.signature(joined))", 0, 1),
    ("signature_bound", "inspect.signature(joined).bind(1, d=3).args", 0, 1),
    ("bound_wrongly", "called(joined)", 1, 1),
    ("path_parts", "len((pathlib.PurePosixPath('a') / 'b').parts)", 0, 1),
    ("path_joined", "os.path.join('a', 'b')", 0, 1),
    ("uuid_number", "uuid.UUID(int=5).int", 0, 1),
    ("types_written", "list[int] == dict[str, int]", 0, 1),
    ("unions_written", "(int | str) == (str | int)", 0, 1),
    ("stand_in", "isinstance(STAND, Point)", 0, 1),
    ("identity_as_a_key", "(IDS.get(id(POINT)), id(POINT) in IDS)", 0, 1),
    ("mapping_proxy", "types.MappingProxyType({'a': 1})['a']", 0, 1),
    ("members_of_an_enum", "Letter.__members__['A'].name", 0, 1),
    ("own_dict_read", "OWN.n", 0, 1),
    ("items_as_attributes", "Items(a=1)['a']", 0, 1),
    ("cast_possible", "torch.can_cast(torch.int, torch.float)", 1, 1),
    ("bytes_shown", 'b"ab".hex()', 1, 1),
    ("bytes_split", 'b"a,b".split(b",")', 1, 1),
    ("bytes_joined", 'b"".join([b"a"])', 1, 1),
    ("bytes_read", 'b"ab".decode()', 0, 1),
    ("bytes_of_text", 'bytes.fromhex("ff")', 1, 1),
    ("number_of_bytes", '(5).to_bytes(2, "big")', 1, 1),
    ("length_in_bits", "(5).bit_length()", 0, 1),
    ("table_of_letters", 'str.maketrans("a", "b")', 1, 1),
    ("method_of_bytes", 'bytes.decode(b"a")', 1, 1),
    ("method_of_int", "int.bit_length(3)", 1, 1),
    ("method_of_list", "list.append([], 1)", 1, 1),
    ("method_of_dict", "dict.get({1: 2}, 1)", 0, 1),
    ("method_of_str", 'str.upper("a")', 0, 1),
    ("method_kept", 'LOWER("A")', 1, 1),
    ("substituted", 're.sub("a", lambda m: m[0] + "b", "aa")', 0, 1),
    ("substituted_and_counted", 're.compile("a").subn(lambda m: "b", "aa", count=1)', 0, 1),
    ("quoted", 'urllib.parse.quote("a")', 1, 1),
    ("new_object", "object() is None", 1, 1),
    ("item_set", "operator.setitem([1], 0, 2)", 1, 1),
    ("item_deleted", "operator.delitem({1: 2}, 1)", 1, 1),
    ("matched_names", 'fnmatch.fnmatch("a", "a")', 1, 1),
    ("optional", "typing.Optional[int] is None", 0, 1),
    ("mapping_written", "typing.Dict[str, int] is None", 0, 1),
    ("callable_written", "typing.Callable[[int], int] is None", 0, 1),
    ("literal_written", 'typing.Literal["a"] is None', 0, 1),
    ("instance_of_typing", "isinstance([], typing.Sequence)", 0, 1),
    ("instance_of_optional", "isinstance(1, typing.Optional[int])", 0, 1),
    ("annotations_of_a_class", 'Kept.__annotations__["n"]', 0, 1),
    ("hints_of_a_class", 'typing.get_type_hints(Kept)["n"]', 1, 1),
    ("closure_of_a_function", "Kept.method.__closure__ is None", 0, 1),
    ("hash_of_an_object", "hash(KEPT) == hash(KEPT)", 0, 1),
    ("hash_of_a_class", "hash(Kept) == hash(Kept)", 0, 1),
    ("hash_of_a_method", "hash(KEPT.method) == hash(KEPT.method)", 0, 1),
    ("hash_of_objects", "hash((KEPT, Kept, 1)) == hash((KEPT, Kept, 1))", 0, 1),
    ("typed_dict", "Typed(a=1)", 0, 1),
    ("typed_dict_of_a_dict", 'Typed({"a": 1})["a"]', 0, 1),
    ("flags_listed", "[flag.name for flag in Switch(3)]", 0, 1),
    ("identity_of_none", "id(None) == id(None)", 0, 1),
    ("level_made", "(Level(3) + 1, 2 - Level(3), Level(3) == 3, f'{Level(3):02d}')", 0, 1),
    ("level_given", "(LEVEL * 2, LEVEL < 4, str(LEVEL), {3: 'c'}[LEVEL], x * LEVEL)", 0, 1),
    ("level_held", "([Level(2)] == [2], type(Level(1)).__name__, type(LEVEL) is Level)", 0, 1),
    (
        "level_with_own_operators",
        "(OwnLevel(3) + 1, 1 + OwnLevel(3), OwnLevel(3) * 2, repr(OwnLevel(3)))",
        0,
        1,
    ),
    ("word_made", "(Word('ab') + 'c', 'c' + Word('ab'), len(Word('ab')), Word('ab').upper())", 0, 1),
    ("word_given", "(WORD == 'ab', {'ab': 1}[WORD], f'{WORD}!', ','.join([WORD, 'c']))", 0, 1),
    ("ratio_given", "(RATIO / 2, x * RATIO, RATIO == 1.5, round(RATIO))", 0, 1),
    ("ratio_made", "Ratio(1.5) * 2", 1, 1),
    ("level_shape", "(x[: Level(2)], torch.zeros(LEVEL))", 0, 1),
    ("parts_of_members", "(Number.A.real, Number.A + 1)", 0, 1),
    ("in_a_weak_set", "(KEPT in WEAK, SOMEBODY in WEAK, len(WEAK), bool(WEAK))", 0, 1),
    ("weak_set_iterated", "[v is KEPT for v in WEAK]", 0, 1),
    ("weak_set_made", "(KEPT in weakref.WeakSet([KEPT]))", 0, 1),
    ("weak_reference_with_a_callback", "weakref.ref(KEPT, given)() is KEPT", 0, 1),
    ("hash_of_a_weak_reference", "hash(REFERENCE) == hash(KEPT)", 0, 1),
    ("enum_made", "[e.name for e in enum.Enum('E', 'A B')]", 0, 1),
    ("enum_made_with_values", "enum.Enum('E', {'A': 5}).A.value", 0, 1),
    ("int_enum_made", "enum.IntEnum('E', ['A', 'B']).B + 1", 0, 1),
    ("flags_made", "len(enum.Flag('F', 'A B C'))", 0, 1),
    ("class_attributes_of_a_tensor", "(x.__module__, x.__doc__, x.__array_priority__)", 0, 1),
    ("module_of_a_parameter", "SOMEBODY.weight.__doc__ is None", 0, 1),
    ("dict_of_a_function", "(len(given.__dict__), 'a' in given.__dict__)", 0, 1),
    ("function_compared_by_name", "(given.__eq__(given), given.__eq__(joined))", 0, 1),
    ("function_shown", "(repr(given)[:15], f'{given}'[:15])", 0, 1),
    ("types_promoted", "torch.promote_types(torch.int, torch.float)", 0, 1),
)


def _add(name, text, breaks, entries):
    @program(name, 41, graphs=min(entries, 1), breaks=breaks, entries=entries)
    def _():
        source = f"def f(x):\n    y = x + 1\n    found = {text}\n    return y, found"
        scope = {name: held for name, held in SCOPE.items() if name[:2] == "__" or name in source}
        exec(
            compile(source, __file__, "exec"), scope
        )  # what torch makes of a frame depends on all of its globals
        return scope["f"], [(torch.ones(3),), (torch.ones(3),)]


for _row in ROWS:
    _add(*_row)


@program("attribute_by_c_code", 41, graphs=0, breaks=1, entries=0)
def _():
    def f(x):
        y = x + 1
        return y + ITEMS.a

    return f, [(torch.ones(3),), (torch.ones(3),)]


@program("attribute_set_by_c_code", 41, graphs=1, breaks=1, entries=1)
def _():
    items = Items(q=1)

    def f(x):
        y = x + 1
        items.q = 4
        return y

    return f, [(torch.ones(3),), (torch.ones(3),)]


def hands_on():
    class Hands(torch.nn.Module):
        """Hands on what it doesn't have."""

        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name == "inner":
                    raise
                return getattr(self.inner, name)

        def __setattr__(self, name, value):
            if name == "refused":
                raise AttributeError(name)
            super().__setattr__(name, value)

    return Hands()


@program("attribute_asked_by_a_frame_given_up", 41, graphs=0, breaks=1, entries=0)
def _():
    hands = hands_on()

    def f(x):
        for _ in range(2):
            print(end="")
            found = hasattr(hands, "nothing")
        return x + 1, found

    return f, [(torch.ones(3),), (torch.ones(3),)]


@program("attribute_set_by_a_frame_given_up", 41, graphs=0, breaks=1, entries=0)
def _():
    hands = hands_on()

    def f(x):
        for i in range(2):
            print(end="")
            try:
                hands.refused = i
            except AttributeError:
                hands.kept = i
        return x + 1

    return f, [(torch.ones(3),), (torch.ones(3),)]


@program("dispatched_by_a_list", 41, graphs=2, recompiles=1, entries=2)
def _():
    def f(x):
        return x + 1, kind([1]), kind([])

    return f, [(torch.ones(3),), (torch.ones(3),)]


@program("dispatched_by_a_class", 41, graphs=2, recompiles=1, entries=2)
def _():
    def f(x):
        return x + 1, kind(KEPT), kind(POINT)

    return f, [(torch.ones(3),), (torch.ones(3),)]
