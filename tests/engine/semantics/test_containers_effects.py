"""What a compiled function leaves behind: mutated arguments, identity, aliases, new objects, tensors in containers."""

import collections

import dynacheck
import pytest
import torch
from engine.semantics.container_harness import check

PROGRAMS = {
    "append a tensor": ("a", "[]", "a.append(x * 2)\nresult = a"),
    "tensor from a list": ("a", "[torch.ones(2), torch.zeros(2)]", "result = a[0] + a[1] + x"),
    "sum of a list of tensors": ("a", "[torch.ones(2), torch.ones(2) * 3]", "result = sum(a)"),
    "nested write": ("a", "{'k': [1, {'z': 2}]}",
        "a['k'][1]['z'] = x\na['k'].append(a['k'][0])\nresult = len(a['k'])"),
    "argument returned is the argument": ("a", "[1]", "result = a\na.append(2)"),
    "two names": ("a", "[[1], [2]]", "b = a[0]\nb.append(5)\na.append(b)\nresult = a[0] is a[2], a[-1] is b"),
    "alias between arguments": (
        "a, b", "*([[1]] * 2)", "a.append(2)\nresult = (b, a is b, len(b))"),
    "swap": ("a", "[1, 2]", "a[0], a[1] = a[1], a[0]\nresult = None"),
    "slice assignment": ("a", "list(range(6))", "a[1:3] = [x, x + 1, 9]\nresult = a[::2]"),
    "del slice": ("a", "list(range(6))", "del a[::2]\nresult = a"),
    "sort in place": ("a", "['b', 'c', 'a']", "a.sort(key=lambda s: -ord(s))\nresult = a[0]"),
    "clear and refill": ("a", "[1, 2]", "a.clear()\na.extend(i for i in range(3))\nresult = a"),
    "list made in the frame twice in the result": ("", "", "l = [x]\nresult = (l, l, {'k': l})\nl.append(1)"),
    "list that holds itself": ("", "", "l = [1]\nl.append(l)\nresult = l"),
    "argument put into itself": ("a", "[1]", "a.append(a)\nresult = len(a)"),
    "dict that holds itself": ("", "", "d = {'x': 1}\nd['self'] = d\nresult = d"),
    "dict order after writes": (
        "d", "{'a': 1, 'b': 2}", "d['c'] = 3\nd['a'] = x\ndel d['b']\nd['b'] = 4\nresult = list(d)"),
    "dict write unread": ("d", "{'a': 1}", "d['n'] = x\nresult = None"),
    "dict pop": ("d", "{'a': 1, 'b': 2}", "result = d.pop('a'), d.pop('zz', None)"),
    "dict clear then write": ("d", "{'a': 1, 'b': 2}", "d.clear()\nd['z'] = x\nresult = None"),
    "dict update from itself and kwargs": ("d", "{'a': 1}", "d.update(d, b=x)\nresult = d"),
    "dict setdefault list": ("d", "{}",
        "for i in range(4):\n    d.setdefault(i % 2, []).append(x + i)\nresult = len(d)"),
    "dict popitem": ("d", "{'a': 1, 'b': 2}", "result = d.popitem()"),
    "dict of tensors": ("d", "{'w': torch.ones(2), 'b': torch.zeros(2)}",
        "result = {k: v + x for k, v in d.items()}"),
    "dict with tuple and enum keys": ("d", "{(1, 'a'): 2, None: 3, True: 4}",
        "d[(1, 'a')] += 1\nresult = d[None] + d[1]"),
    "in-place or": ("d", "{'a': 1}", "e = d\nd |= {'b': 2}\nresult = e is d"),
    "ordered dict": (
        "d", "collections.OrderedDict(a=1, b=2, c=3)",
        "d.move_to_end('a')\nd['z'] = x\nd.move_to_end('c', last=False)\nresult = list(d)"),
    "ordered dict popitem": ("d", "collections.OrderedDict(a=1, b=2)",
        "result = d.popitem(last=False), len(d)"),
    "defaultdict": ("d", "collections.defaultdict(list)",
        "d['k'].append(x)\nd['k'].append(1)\nresult = 'q' in d, len(d)"),
    "new defaultdict": ("", "",
        "d = collections.defaultdict(int)\nfor c in 'hello':\n    d[c] += 1\nresult = d"),
    "new ordered dict": ("", "", "d = collections.OrderedDict()\nd['b'] = x\nd['a'] = 1\nresult = d"),
    "set mutation": ("s", "{1, 2}", "s.add(5)\ns.discard(1)\nresult = 2 in s"),
    "set clear": ("s", "{1, 2}", "s.clear()\nresult = len(s)"),
    "frozenset result": ("s", "{1, 2}", "result = frozenset(s) | {3}"),
    "deque made in the frame": ("", "",
        "d = collections.deque(maxlen=2)\nfor i in range(3):\n    d.append(x + i)\nresult = d"),
    "deque that was empty": ("d", "collections.deque()", "d.append(x)\nd.appendleft(1)\nresult = len(d)"),
    "views escape": ("d", "{'a': 1}", "k = d.keys()\nd['b'] = 2\nresult = list(k), k"),
    "namedtuple": (
        "", "", "p = Point(x, 2)\nq = p._replace(b=5)\nresult = p, q, p.a, q[1], p._fields, p._asdict(), len(p)"),
    "namedtuple argument": ("p", "Point(1, torch.ones(2))",
        "a, b = p\nresult = p._replace(a=b + x), p.b * 2, p == p"),
    "slices": ("s", "slice(1, None)", "result = [1, 2, 3][s], s.start, s"),
    "range argument": ("r", "range(3)", "result = [x + i for i in r], r"),
    "partial": ("", "", "p = functools.partial(torch.add, x, alpha=2)\nresult = p(x)"),
    "partial argument": ("f", "functools.partial(max, 5)", "result = f(3), f.args, f.func is max"),
    "partial escapes": ("", "", "result = functools.partial(int, '11', base=2)()"),
    "iterator escapes": ("", "", "it = iter([1, 2, 3])\nnext(it)\nresult = list(it), next(it, None)"),
    "zip to dict": ("a", "['p', 'q']", "result = dict(zip(a, (x, x + 1)))"),
    "comprehensions": ("a", "[1, 2, 3]",
        "result = ([i for i in a if i % 2], {i: x * i for i in a}, {i % 2 for i in a})"),
    "unpacking": ("a", "[1, 2, 3]",
        "first, *rest = a\n(p, q), r = (first, x), [*a, *rest]\nresult = first, rest, p, q, r"),
    "call with stars": ("a, d", "[1, 2], {'z': 5}",
        "f = lambda *p, **k: (p, k)\nresult = f(0, *a, y=1, **d)"),
    "kwargs is a new dict": ("d", "{'z': 5}", "f = lambda **k: k\ne = f(**d)\ne['q'] = 1\nresult = e"),
    "max of tensors": ("", "", "result = [max(1, 2), min([3, x.shape[0]])]"),
    "sorted by tensors' sizes": ("a", "[torch.ones(3), torch.ones(1)]",
        "result = sorted(a, key=lambda t: t.shape[0])"),
    "shape arithmetic": ("", "",
        "s = x.shape\nresult = s, s[0] * 2, s + (1,), len(s), list(s), s.numel(), tuple(s), s == (2,)"),
    "stack of a list": ("", "", "result = torch.stack([x * i for i in range(3)]), torch.cat((x, x))"),
    "index by list": ("", "", "result = x[[0, 1]], x[0:1], x[..., None]"),
    "string building": ("n", "'layer'", "result = f'{n}.{x.dim()}' + '%s' % (n,) + ','.join([n] * 2)"),
    "isinstance of tensors and containers": (
        "a", "[1]", "result = isinstance(x, torch.Tensor), isinstance(a, (list, tuple)), isinstance(x, list), type(a) is list"),
    "copy": ("a", "[[1], {'k': [2]}]",
        "b = list(a)\nc = copy.deepcopy(a)\nc[0].append(9)\nb[0].append(5)\nresult = b, c, b[0] is a[0]"),
    "reduce": ("a", "[torch.ones(2), torch.ones(2)]", "result = functools.reduce(lambda p, q: p + q, a, x)"),
    "itertools with tensors": ("a", "[torch.ones(2), torch.zeros(2)]",
        "result = [p + q for p, q in itertools.product(a, [x])]"),
    "accumulate": ("a", "[torch.ones(2), torch.ones(2)]", "result = list(itertools.accumulate(a))"),
    "chain": ("a, b", "[1], (2,)", "result = list(itertools.chain(a, b, [x]))"),
    "enumerate with break": ("a", "[1, 2, 3]",
        "for i, v in enumerate(a):\n    if v == 2:\n        break\nresult = i, v"),
    "for else": ("a", "[1, 2, 3]",
        "for v in a:\n    if v == 9:\n        break\nelse:\n    v = 'none'\nresult = v"),
    "while pop": ("a", "[1, 2, 3]", "t = x\nwhile a:\n    t = t + a.pop()\nresult = t"),
    "error leaves the writes before it": ("a", "[1]", "a.append(2)\na.index('zz')\nresult = None"),
    "error in the middle of extend": ("a", "[1]",
        "a.extend(iter([2, 3]))\na.extend(1 / i for i in (1, 0))\nresult = None"),
    "star assignment": ("a", "(1, 2, 3, 4)", "p, *q, r = a\nresult = p, q, r"),
    "dict merge": ("d", "{'a': 1}", "result = {**d, 'b': x}, d | {'c': 2}, {'a': 0, **d}"),
    "match": ("d", "{'kind': 'a', 'v': [1, 2]}",
        "match d:\n    case {'kind': 'a', 'v': [p, *q]}:\n        result = p, q\n    case _:\n"
        "        result = None"),
}  # fmt: skip
Point = collections.namedtuple("Point", "a b")


@pytest.fixture(autouse=True)
def _fresh():
    dynacheck.reset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    args, values, body = PROGRAMS[name]
    check(args, values, body, {"Point": Point})


def compiled(fn):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    return dynacheck.compile(fn, backend=backend, fullgraph=True), graphs


def test_identity_of_arguments_and_new_objects():
    def fn(x, a, b):
        new = [a]
        return x + 1, a, [a, b, new, new], new

    run, graphs = compiled(fn)
    a, b = [1], {"k": [2]}
    _, first, held, new = run(torch.ones(2), a, b)
    assert (
        first is a and held[0] is a and held[1] is b and held[2] is held[3] and held[2] is new and new[0] is a
    )
    assert len(graphs) == 1


def test_keys_read_are_guarded_not_keys_present():
    def fn(x, d):
        return x * d["scale"]

    run, graphs = compiled(fn)
    x = torch.ones(2)
    assert run(x, {"scale": 2}).tolist() == [2, 2]
    assert run(x, {"other": 1, "scale": 2}).tolist() == [2, 2]
    assert run(x, {"scale": 2, "more": 1}).tolist() == [2, 2]
    assert len(graphs) == 1
    assert run(x, {"scale": 3}).tolist() == [3, 3]
    assert len(graphs) == 2


def test_missing_key_is_guarded():
    def fn(x, d):
        return x + 1 if d.get("flag") is None else x - 1

    run, graphs = compiled(fn)
    x = torch.ones(2)
    assert run(x, {}).tolist() == [2, 2]
    assert run(x, {"z": 5}).tolist() == [2, 2]
    assert len(graphs) == 1
    assert run(x, {"flag": True}).tolist() == [0, 0]
    assert run(x, {}).tolist() == [2, 2]
    assert len(graphs) == 2


def test_iterated_dict_is_guarded_by_its_keys_in_order():
    def fn(x, d):
        for k in d:
            x = x * 2 + len(k)
        return x

    run, graphs = compiled(fn)
    x = torch.ones(1)
    assert run(x, {"a": 1, "bb": 2}).tolist() == [8]
    assert run(x, {"a": 5, "bb": 6}).tolist() == [8]
    assert len(graphs) == 1
    assert run(x, {"bb": 1, "a": 2}).tolist() == [9]
    assert run(x, {"bb": 1}).tolist() == [4]
    assert len(graphs) == 3


def test_lists_are_guarded_by_length():
    def fn(x, a):
        return x + a[0]

    run, graphs = compiled(fn)
    x = torch.ones(1)
    assert run(x, [torch.ones(1), torch.zeros(1)]).tolist() == [2]
    assert run(x, [torch.ones(1), torch.zeros(1)]).tolist() == [2]
    assert len(graphs) == 1
    assert run(x, [torch.ones(1)]).tolist() == [2]
    assert len(graphs) == 2


@pytest.mark.parametrize(("returned", "expected"), [(False, 1), (True, 3)])
def test_unread_containers_are_guarded_when_they_are_returned(returned, expected):
    def fn(x, a, d):
        kept = a, d
        return (x + 1, kept) if returned else (x + 1, None)

    run, graphs = compiled(fn)
    for a, d in (([1], {}), ((), {"k": 1}), (None, 5)):
        _, kept = run(torch.ones(1), a, d)
        assert not returned or (kept[0] is a and kept[1] is d)
    assert len(graphs) == expected


def test_sets_are_guarded_by_their_elements():
    def fn(x, s):
        return x + 1 if "a" in s else x - 1

    run, graphs = compiled(fn)
    x = torch.ones(1)
    assert run(x, {"a", "b"}).tolist() == [2]
    assert run(x, {"b", "a"}).tolist() == [2]
    assert len(graphs) == 1
    assert run(x, {"b"}).tolist() == [0]
    assert run(x, {"a"}).tolist() == [2]


def test_a_deque_of_the_caller():
    def fn(x, queue):
        queue.append(x)
        queue.appendleft(queue.pop())
        return x + len(queue), queue.popleft(), queue[0]

    run, graphs = compiled(fn)
    for items, limit in (([1, 2], None), ([1, 2], None), ([1, 2], 2), ([1, 2, 3], None)):
        one, other = (collections.deque(items, limit) for _ in range(2))
        x = torch.ones(1)
        assert [str(v) for v in fn(x, one)] == [str(v) for v in run(x, other)]
        assert one.maxlen == other.maxlen and list(map(str, one)) == list(map(str, other))
    assert len(graphs) >= 3


def test_a_deque_item_that_changes_is_noticed():
    def fn(x, queue):
        return x * queue[1]

    run, graphs = compiled(fn)
    queue = collections.deque([2, 3])
    x = torch.ones(1)
    assert run(x, queue).tolist() == [3]
    queue[1] = "a"
    queue[1] = 4
    assert run(x, queue).tolist() == [4]
    queue[0] = 7
    assert run(x, queue).tolist() == [4]
    assert len(graphs) == 2


def test_an_ordered_dict_whose_order_was_changed():
    def fn(x, table):
        for key, value in table.items():
            x = x * 2 + value
        return x, list(table), table

    run, graphs = compiled(fn)
    table = collections.OrderedDict(a=1, b=2, c=3)
    for key, last in (("a", True), ("c", False), ("b", True), (None, True)):
        if key is not None:
            table.move_to_end(key, last=last)
        found, keys, same = run(torch.ones(1), table)
        wanted = fn(torch.ones(1), table)
        assert found.equal(wanted[0]) and keys == wanted[1] and same is table
    assert len(graphs) == 3
