"""Classes derived from builtin containers, with and without methods of their own: every operation gives what plain Python
gives (type, contents, identity, what the class's own methods were asked), for objects made in the frame and before it."""

from __future__ import annotations

import collections
import copy  # noqa: F401 (the rows use it)
from typing import Any

import dynacheck
import pytest
import torch

LOG: list[Any] = []


class L(list):
    pass


class S(set):
    pass


class Q(collections.deque):
    pass


class P(dict):
    pass


class O(collections.OrderedDict):  # noqa: E742
    pass


class C(collections.Counter):
    pass


class D(collections.defaultdict):
    pass


class T(tuple):
    pass


class F(frozenset):
    pass


class HookedList(list):
    def __getitem__(self, i):
        LOG.append(("get", i))
        return super().__getitem__(i)

    def __setitem__(self, i, v):
        LOG.append(("set", i))
        super().__setitem__(i, v)

    def append(self, v):
        LOG.append("append")
        super().append(v)

    def __iter__(self):
        LOG.append("iter")
        return super().__iter__()

    def __contains__(self, v):
        LOG.append("in")
        return super().__contains__(v)


class HookedDict(dict):
    def __getitem__(self, i):
        LOG.append(("get", i))
        return super().__getitem__(i)

    def __setitem__(self, i, v):
        LOG.append(("set", i))
        super().__setitem__(i, v)

    def __contains__(self, v):
        LOG.append("in")
        return super().__contains__(v)

    def __missing__(self, k):
        LOG.append("missing")
        return 7

    def __delitem__(self, k):
        LOG.append("del")
        super().__delitem__(k)


class Walking(dict):
    def __iter__(self):
        LOG.append("iter")
        return super().__iter__()

    def keys(self):
        LOG.append("keys")
        return super().keys()

    def __getitem__(self, k):
        LOG.append(("get", k))
        return super().__getitem__(k)


class HookedSet(set):
    def add(self, v):
        LOG.append("add")
        super().add(v)

    def __contains__(self, v):
        LOG.append("in")
        return super().__contains__(v)

    def __iter__(self):
        LOG.append("iter")
        return super().__iter__()


def f(*a):
    return a


def fk(**k):
    return k


def a_(v):
    v.attr = 3
    return v.attr, vars(v)


def slice_(v):
    v[1:2] = [7, 8]
    return v


def del_(v):
    del v[0]
    return v


def set_(v):
    v[0] = 5
    return v


def unpack_(v):
    a, b, c = v
    return a, b, c


def star_(v):
    a, *b = v
    return a, b


def match_(v):
    match v:
        case [a, *r]:
            return ("seq", a, r)
        case {"a": w, **r}:
            return ("map", w, r)
    return "none"


def miss_(v):
    return v["zz"]


def dset_(v):
    v["z"] = 1
    v["a"] = 5
    return list(v)


def ddel_(v):
    del v["a"]
    return list(v)


LISTS = """
v[0]
v[0:2]
v[::-1]
v[-1:]
v.copy()
v + [9]
[9] + v
v * 2
2 * v
v == [1, 2, 3]
[1, 2, 3] == v
v != v
v < [2]
v.append(4)
v.extend([4])
v.insert(0, 9)
v.pop()
v.remove(1)
v.reverse()
v.sort()
v.clear()
v.count(1)
v.index(2)
len(v)
bool(v)
1 in v
list(v)
tuple(v)
sorted(v)
reversed(v)
list(reversed(v))
sum(v)
max(v)
v.__setitem__(0, 5)
v.__delitem__(0)
v.__getitem__(0)
v.__len__()
next(iter(v))
repr(v)
str(v)
type(v)(v)
copy.copy(v)
copy.deepcopy(v)
isinstance(v, list)
type(v) is list
[*v]
(*v,)
{*v}
f(*v)
v.__class__.__name__
a_(v)
list(zip(v, v))
list(map(str, v))
list(enumerate(v))
any(v)
all(v)
min(v)
[i for i in v]
v.__eq__([1,2,3])
v is v
hash(v)
dict.fromkeys(v)
set(v)
torch.Size(v)
torch.tensor(v)
''.join(map(str, v))
slice_(v)
del_(v)
set_(v)
unpack_(v)
star_(v)
match_(v)
""".strip().splitlines()

DICTS = """
v['a']
v.get('a')
v.get('z', 1)
v.setdefault('z', 2)
v.setdefault('a', 2)
v.pop('a')
v.pop('z', 3)
v.popitem()
v.update(z=1)
v.update({'z': 1})
v.update([('z', 1)])
v.clear()
v.copy()
list(v)
list(v.keys())
list(v.values())
list(v.items())
len(v)
bool(v)
'a' in v
'z' in v
v == {'a': 1, 'b': 2}
{'a': 1, 'b': 2} == v
v != {}
dict(v)
{**v}
fk(**v)
type(v)(v)
copy.copy(v)
copy.deepcopy(v)
repr(v)
str(v)
v.__getitem__('a')
v.__setitem__('z', 1)
v.__delitem__('a')
v.__contains__('a')
v | {'z': 1}
{'z': 1} | v
list(reversed(v))
v.fromkeys('xy', 1)
type(v).fromkeys('xy')
sorted(v)
max(v)
next(iter(v))
isinstance(v, dict)
v.keys() & {'a'}
v.items() == {'a': 1, 'b': 2}.items()
a_(v)
miss_(v)
dset_(v)
ddel_(v)
match_(v)
list(map(str, v))
v.__class__.__name__
any(v)
[k for k in v]
{k: w for k, w in v.items()}
hash(v)
v.__len__()
v.__iter__()
list(zip(v, v.values()))
""".strip().splitlines()

SETS = """
v.add(9)
v.discard(1)
v.remove(1)
v.pop()
v.clear()
v.copy()
v.update({9})
v | {9}
{9} | v
v & {1}
{1} & v
v - {1}
{1, 9} - v
v ^ {1, 9}
v.union([9])
v.intersection([1])
v.difference([1])
v.symmetric_difference([1])
v.issubset({1, 2, 3, 4})
v.issuperset({1})
v.isdisjoint({9})
v == {1, 2, 3}
{1, 2, 3} == v
v <= {1, 2, 3}
v < {1, 2, 3, 4}
len(v)
bool(v)
1 in v
sorted(v)
list(v)
type(v)(v)
copy.copy(v)
set(v)
frozenset(v)
repr(v)
v.intersection_update({1})
v.difference_update({1})
isinstance(v, set)
max(v)
sum(v)
a_(v)
hash(v)
[i for i in v]
""".strip().splitlines()

CLASSES = {
    "L": ("[1, 2, 3]", LISTS), "HookedList": ("[1, 2, 3]", LISTS), "Q": ("[1, 2, 3]", LISTS), "T": ("(1, 2, 3)", LISTS),
    "P": ("[('a', 1), ('b', 2)]", DICTS), "O": ("[('a', 1), ('b', 2)]", DICTS), "C": ("{'a': 1, 'b': 2}", DICTS),
    "D": ("int, [('a', 1), ('b', 2)]", DICTS), "HookedDict": ("[('a', 1), ('b', 2)]", DICTS),
    "Walking": ("[('a', 1), ('b', 2)]", DICTS),
    "S": ("{1, 2, 3}", SETS), "HookedSet": ("{1, 2, 3}", SETS), "F": ("{1, 2, 3}", SETS),
}  # fmt: skip
NOT_MADE = ("Q",)
"""Making one in the frame breaks."""


def shown(value: Any) -> Any:
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        return kind, value.tolist()
    if isinstance(value, dict):
        return kind, [(k, shown(v)) for k, v in dict.items(value)], getattr(value, "default_factory", None)
    if isinstance(value, list):
        return kind, [shown(v) for v in list.__iter__(value)]
    if isinstance(value, (tuple, collections.deque)):
        return kind, [shown(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return kind, sorted(map(str, set.__iter__(value) if isinstance(value, set) else value))
    if "iterator" in kind:
        return kind, [shown(v) for v in value]
    return kind, getattr(value, "__name__", None) or (repr(value) if "0x" not in repr(value) else "")


def ran(fn: Any, make: Any) -> list[Any]:
    found = []
    for _ in range(2):
        given = make()
        LOG.clear()
        try:
            _, result, value, same = fn(torch.ones(1), *given)
            found.append(([*LOG], shown(result), shown(value), same))
        except Exception as error:
            found.append((type(error).__name__, str(error), list(LOG)))
    return found


def check(name: str, new: bool) -> tuple[list[Any], int]:
    wrong, graphs = [], 0
    init, expressions = CLASSES[name]
    for expression in expressions:
        body = f"    v = {name}({init})\n" if new else ""
        source = f"def p(x{'' if new else ', v'}):\n{body}    y = x + 1\n    r = {expression}\n    return y, r, v, r is v\n"

        def make() -> list[Any]:
            return [] if new else [eval(f"{name}({init})", globals())]  # noqa: B023

        results = []
        for engine in (False, True):
            scope = dict(globals())
            exec(source, scope)
            with dynacheck.observe() as report:
                results.append(
                    ran(dynacheck.compile(scope["p"], backend="eager") if engine else scope["p"], make)
                )
        graphs += bool(report.graphs)
        if results[0] != results[1]:
            wrong.append((expression, *results))
    return wrong, graphs


@pytest.mark.parametrize("name", CLASSES)
def test_came_into_the_frame(name: str) -> None:
    wrong, graphs = check(name, False)
    assert not wrong and graphs > 10


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in NOT_MADE])
def test_made_in_the_frame(name: str) -> None:
    wrong, graphs = check(name, True)
    assert not wrong and graphs > 10
