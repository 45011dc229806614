"""More of the standard library and of classes over containers in compiled functions."""

import abc
import collections
import enum
import functools
import typing

import dynacheck
import pytest
from engine.semantics.container_harness import check
from engine.semantics.test_builtins import EXTRA


class Cached:
    @functools.cached_property
    def v(self):
        return [1]


@functools.total_ordering
class Tot:
    def __init__(self, n):
        self.n = n

    def __eq__(self, o):
        return self.n == o.n

    def __lt__(self, o):
        return self.n < o.n


class PM:
    def add(self, a, b):
        return a + b

    two = functools.partialmethod(add, 2)


class Store:
    data = {}


class Prop:
    def __init__(self):
        self._v = 1

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, q):
        self._v = q * 2


T_ = typing.TypeVar("T_")


class Typed(typing.TypedDict):
    a: int


class Gen(typing.Generic[T_]):
    def __init__(self, v):
        self.v = v

    def get(self):
        return self.v


class Base(abc.ABC):
    @abc.abstractmethod
    def go(self): ...


class Impl(Base):
    def go(self):
        return "gone"


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class StrSub(str):
    def shout(self):
        return self.upper() + "!"


class Numbered(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, (value, len(self)))


class Listing(collections.defaultdict):
    def __setitem__(self, key, value):
        super().__setitem__(key, (value, len(self)))


class IntSub(int):
    def twice(self):
        return self * 2


class Words(typing.TypedDict):
    a: int


class Switch(enum.Flag):
    A = 1
    B = 2


def seven():
    return 7


NAMES = (
    "Cached",
    "Tot",
    "PM",
    "Store",
    "Prop",
    "Gen",
    "Impl",
    "Typed",
    "Base",
    "Slots",
    "Switch",
    "Words",
    "Numbered",
    "Listing",
    "seven",
)
SCOPE = {**EXTRA, **{name: globals()[name] for name in NAMES}}

PROGRAMS = {
    "chainmap": ("", "", "c=collections.ChainMap({'a':1},{'b':2})\nresult=c['b'],list(c),len(c)"),
    "userdict": ("", "", "c=collections.UserDict(a=1)\nc['b']=x\nresult=c['a'],len(c),list(c)"),
    "string const": ("", "", "import string\nresult=string.ascii_lowercase[:3]"),
    "textwrap": ("", "", "import textwrap\nresult=textwrap.dedent('  a')"),
    "contextmanager": (
        "",
        "",
        "@contextlib.contextmanager\ndef cm(v):\n    yield v+1\nwith cm(1) as q:\n    result=q",
    ),
    "cached_property": ("", "", "class_=Cached()\nresult=class_.v, class_.v is class_.v"),
    "total ordering": ("", "", "result=Tot(1)<Tot(2),Tot(1)>=Tot(2),max(Tot(1),Tot(3)).n"),
    "tensor in dict key": ("", "", "d={x:1}\nresult=d[x], x in d"),
    "slice assign self": ("a", "[1,2,3]", "a[:]=a[::-1]\nresult=a"),
    "dict views set ops": (
        "d",
        "{'a':1,'b':2}",
        "result=sorted(d.keys()|{'z'}), sorted(d.keys()-{'a'}), d.items()=={('a',1),('b',2)}",
    ),
    "sorted dict items": (
        "d",
        "{'b':1,'a':2}",
        "result=sorted(d.items()), sorted(d,key=d.get), max(d,key=d.get), dict(sorted(d.items()))",
    ),
    "zip star": ("", "", "result=list(zip(*[(1,2),(3,4)])), [list(r) for r in zip(*[[1,2],[3,4]])]"),
    "nested comp": (
        "",
        "",
        "result=[(i,j) for i in range(3) for j in range(i)], {k:v for k,v in zip('ab',range(2))}",
    ),
    "iter sentinel": ("", "", "l=[1,2,3,0,4]\nresult=list(iter(lambda: l.pop(0),0))"),
    "del in dict loop over list": (
        "d",
        "{'a':1,'b':None}",
        "for k in list(d):\n    if d[k] is None:\n        del d[k]\nresult=d",
    ),
    "enumerate start": ("", "", "result={i:v for i,v in enumerate('ab',start=1)}"),
    "str methods": (
        "s",
        "'a_b_c'",
        "result=s.split('_'), s.rsplit('_',1), s.title(), s.startswith('a'), '_'.join(reversed(s.split('_'))), s.count('_'), s[-1]",
    ),
    "format tensors": (
        "",
        "",
        "result=f'{x.shape} {x.dtype} {tuple(x.shape)}', str(x.shape), repr(x.dtype), '{}'.format(x.device)",
    ),
    "kwargs pop": (
        "d",
        "{'a':1,'b':2}",
        "def f(**kw):\n    a=kw.pop('a',0)\n    return a,kw\nresult=f(**d), d",
    ),
    "setdefault nested": ("d", "{}", "d.setdefault('a',{}).setdefault('b',[]).append(x)\nresult=d"),
    "any isinstance": (
        "a",
        "[1,'a',None]",
        "result=any(isinstance(v,str) for v in a), [type(v).__name__ for v in a], all(v is not None for v in a)",
    ),
    "walrus": ("a", "[1,2,3]", "result=[y for v in a if (y:=v*2)>2], (n:=len(a))"),
    "sum nested lists": ("", "", "result=sum([[1],[2]],[]), sum((1,2),x), sum([x,x])"),
    "min max tensors key": (
        "a",
        "[torch.ones(3),torch.ones(1)]",
        "result=min(a,key=len), max(a,key=lambda t: t.numel())",
    ),
    "map none exhaust": ("", "", "m=map(str,[1,2,3])\nnext(m)\nresult=list(m),list(m)"),
    "groupby": ("", "", "result={k:list(g) for k,g in itertools.groupby(sorted('abcab'))}"),
    "islice escape": ("", "", "result=itertools.islice([1,2,3],2)\nresult=list(result)"),
    "deque from the left": (
        "",
        "",
        "d=collections.deque([1,2,3])\nd.extendleft([0])\nresult=d, d[0], d[-1], len(d), 2 in d",
    ),
    "list of lists copy": ("a", "[[1],[2]]", "b=[r[:] for r in a]\nb[0].append(x)\nresult=b,a"),
    "tuple keys": ("", "", "d={}\nd[1,2]=x\nd[(1,)]=2\nresult=d[(1,2)],list(d)"),
    "none default": ("d", "{'a':None}", "result=d.get('a') is None, d.get('b') is None, d.get('b',5)"),
    "frozenset keys": ("", "", "d={frozenset('ab'):1}\nresult=d[frozenset('ba')]"),
    "bool ops": ("a", "[]", "result=a or 'empty', a and 1, not a, None or 0 or [] or 'x'"),
    "chained cmp": ("", "", "n=x.shape[0]\nresult=1<n<5, 1<n<2, n==2==2"),
    "iter over dict while adding value": ("d", "{'a':1}", "for k,v in d.items():\n    d[k]=v+1\nresult=d"),
    "recursion": ("", "", "def fact(n): return 1 if n<2 else n*fact(n-1)\nresult=fact(5)"),
    "closure counter": (
        "",
        "",
        "n=0\ndef inc():\n    nonlocal n\n    n+=1\n    return n\nresult=inc(),inc(),n",
    ),
    "class attr dict": ("", "", "Store.data['k']=x\nresult=len(Store.data)\nStore.data.clear()"),
    "property set": ("", "", "p=Prop()\np.v=3\nresult=p.v"),
    "dataclass default list": (
        "",
        "",
        "a,b=Config(1),Config(2)\na.items.append(1)\nresult=a.items,b.items,a,b",
    ),
    "dataclass eq": (
        "",
        "",
        "result=Config(1)==Config(1),Config(1)!=Config(2),Frozen(1)<Frozen(2)",
    ),
    "enum arith": (
        "",
        "",
        "result=[m for m in Color if m.value!=1], Color(1) is Color.RED, {m.name:m.value for m in Color}, list(map(str,Color))",
    ),
    "counter ops": (
        "",
        "",
        "a=collections.Counter('aab')\nb=collections.Counter('ab')\nresult=a-b, a+b, a&b, a|b, a.total(), sorted(a.elements()), a==b",
    ),
    "counter subtract": (
        "",
        "",
        "a=collections.Counter(a=3)\na.subtract(a=1)\na.update('ab')\nresult=a, a.most_common()",
    ),
    "namedtuple defaults": (
        "",
        "",
        "P=NamedPoint\nresult=P(1,2.5),P(b=1,a=2),P._fields,P._field_defaults, P(1).__class__.__name__",
    ),
    "typing generic": ("", "", "result=Gen(5).get()"),
    "typed dict": ("", "", "d=Typed(a=x)\nd['b']=1\nresult=d['a'],type(d) is dict,list(d)"),
    "abc": ("", "", "result=Impl().go(), isinstance(Impl(), Base)"),
    "slots": ("", "", "s=Slots(1)\ns.a=2\nresult=s.a, hasattr(s,'b')"),
    "inherit list": ("a", "MyList([1,2])", "a.append(3)\nresult=a, a.second(), a[0], sum(a)"),
    "inherit dict arg": ("d", "MyDict(a=1)", "d['k']=x\nresult=d['zz'], d['a'], len(d)"),
    "defaultdict arg lambda": ("d", "collections.defaultdict(seven)", "result=d['q'], dict(d), d.get('r')"),
    "ordereddict arg": (
        "d",
        "collections.OrderedDict(b=1,a=2)",
        "d['c']=x\nd.move_to_end('b')\nresult=list(d)",
    ),
    "hooks of ordered dicts": (
        "",
        "",
        "o=Numbered([(1,2)],z=4)\no.update({5:x},r=3)\no.update([(7,8)])\n"
        "result=list(o.items()),o.setdefault(1,5),o.setdefault('q',5),list(o.copy().items()),type(o.copy()) is Numbered",
    ),
    "hooks of default dicts": (
        "d",
        "Listing(list,a=1)",
        "d['b']\nd.update(c=3)\nd.setdefault('q',x)\nresult=list(d.items()),d['new'],d.get('no')",
    ),
    "counter arg": (
        "c",
        "collections.Counter('ab')",
        "c['a']+=1\nc.update('z')\nresult=c['a'],c['nope'],len(c)",
    ),
    "substituting functions": (
        "",
        "",
        "import re\np=re.compile('(a)|b*')\nresult=re.sub('a', lambda m: m[0]+str(m.start()), 'aba', count=1), "
        "p.subn(lambda m: str(m.lastindex), 'abba'), re.subn('x', seven, 'a'), re.sub('a', lambda m: None, 'aba')",
    ),
    "a function that gives no text": ("", "", "import re\nresult=re.sub('a', lambda m: 3, 'a')"),
    "types written": (
        "",
        "",
        "a=typing.Optional[int]\nresult=a==typing.Union[int,None], a.__args__, typing.get_args(typing.Dict[str,int]), "
        "typing.Tuple[int,...].__args__, typing.Callable[[int],str].__args__, typing.Literal['a'].__args__",
    ),
    "instances of types written": (
        "a",
        "[1]",
        "result=isinstance(a,typing.List), isinstance(a,typing.Hashable), isinstance(a,typing.Union[int,list]), "
        "isinstance(a,typing.Optional[int]), isinstance(None,typing.Optional[int]), isinstance((),typing.Sequence)",
    ),
    "hints": ("", "", "result=typing.get_type_hints(Words), Words.__annotations__, seven.__closure__"),
    "hashes by identity": (
        "",
        "",
        "result=hash(Gen)==hash(Gen), hash(seven), hash(len), hash((Gen,seven,1)), {hash(Gen):1}[hash(Gen)]",
    ),
    "flags": ("", "", "result=list(Switch.A|Switch.B), [f.name for f in Switch(2)], len(list(Switch(0)))"),
    "output arg": (
        "o",
        "Output(a=torch.ones(2))",
        "result=o.a+x, o['a'], list(o.keys()), list(o.values())[0]",
    ),
}


@pytest.fixture(autouse=True)
def _fresh():
    dynacheck.reset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    args, values, body = PROGRAMS[name]
    check(args, values, body, SCOPE)
