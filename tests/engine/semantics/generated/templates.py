"""What generated programs are made of.

Holes: `<i>` an expression of a kind, `<~i>` a variable, `<=i>` a variable to assign, `<+i>` one that was assigned before,
`<=i:a>` a variable that `<a>` repeats, `<#>` a name of its own. BODY stands for statements; a line that starts with `!` stays when the
statement around it is cut down. Kinds: t tensor, i int, f float, b bool, s str, l list, u tuple, d dict, e set,
o object, c function of a tensor, g iterator, v anything.
"""

from __future__ import annotations

EXPRESSIONS = {
    "t": """
        <t> + <t>; <t> * <t>; <t> - <i>; <t> * <f>; <t> / 2; -<t>; torch.relu(<t>); <t>.abs(); <t>.clone(); <t>.view(-1)
        <t> if <b> else <t>; <o>.call(<t>); <c>(<t>); <o> + <t>; (<t>, <t>)[<i> % 2]; <t>.flip(0); torch.ones(4) * <i>
        <t>.sin(); <t>.contiguous(); <t>.detach(); torch.cat([<t>, <t>])[:4]; torch.stack((<t>, <t>)).sum(0); <o>.tensor
        torch.where(<t> > 0, <t>, <t>); <t>.to(torch.float32); <t>[:]; <t>.add(<t>, alpha=<i>); torch.rand(4); <t>.mul_(2)
        sum([<t>, <t>], <t>); max([<t>], key=len); MODULE(<t>); <t>.t(); <d>.get('t', <t>); <t>.expand(4); <t> ** 2
        torch.nn.functional.dropout(<t>); <t>.sum() + <t>; <t>[1] * <t>; <t>.chunk(2)[0].repeat(2); <o>.method(<t>, <i>)
        <t>.requires_grad_(False); torch.add(<t>, <t>, out=torch.empty(0)); (<t> > <t>).float(); helper(<t>); <t>.float()
        helper(<t>, *<u>); helper(<t>, **<d>); helper(<t>, k=<i>); torch.tensor([1., 2., <f>, <i>]); <t>.new_zeros(4)
        <t>.softmax(0); torch.arange(4) + <t>; <t>.cumsum(0).clamp(max=<i>); (<=t> := <t>); <t>.unsqueeze(0).squeeze(0)
    """,
    "i": """
        <i> + <i>; <i> - <i>; <i> * 2; <i> // <i>; <i> % 3; -<i>; abs(<i>); len(<l>); len(<d>); len(<u>); <t>.shape[0]
        <t>.dim(); <i> if <b> else <i>; min(<i>, <i>); max(<u>, default=<i>); <b> + <i>; <l>[<i>]; <u>[<i>]; <d>['a']
        <d>.get('b', <i>); <o>.n; <o>.prop; <o>[<i>]; int(<f>); len(<o>); sum(<u>); (<=i> := <i>); next(<g>, <i>); ord(<s>[0])
        <i> & <i>; <i> | 1; <i> ^ <i>; divmod(<i>, 3)[1]; round(<f>); <l>.index(<i>); <l>.count(<i>); bool(<i>) + 1
        <l>.pop(); <d>.pop('c', <i>); <d>.setdefault('z', <i>); G_INT; <o>.bump(); <o>(<i>); Thing.total; len(<e>); G_LIST[0]
        <t>.numel(); sum(v for v in <u> if v != <i>); len({<i>, <i>}); (lambda v: v + <i>)(<i>); int(<t>.requires_grad)
        operator.add(<i>, <i>); functools.reduce(lambda a, b: a - b, <u>, <i>); getattr(<o>, 'n', <i>); len(<s>); <o>.slot
    """,
    "f": """
        <f> + <f>; <f> * 2; <i> / 2; float(<i>); <f> - <i>; math.sqrt(abs(<f>)); <f> // 1; -<f>; abs(<f>); min(<f>, <i>)
        <f> if <b> else <f>; round(<f>, 1); <o>.ratio; float('nan'); -0.0; random.random(); math.floor(<f>); <f> % 2
    """,
    "b": """
        <i> < <i>; <i> == <i>; <i> < <i> <= <i>; not <b>; <b> and <b>; <b> or <b>; <t> is <t>; <l> is <l>; <o> is <o>
        <i> in <l>; 'a' in <d>; <i> not in <u>; isinstance(<v>, int); isinstance(<v>, (list, str)); <f> > <i>; <s> == <s>
        <l> == <l>; <u> < <u>; any(<u>); all(v > 0 for v in <u>); hasattr(<o>, 'extra'); <o> == <o>; <o> < <o>; bool(<l>)
        <v> is None; <i> is True; <t>.requires_grad; <t>.is_contiguous(); callable(<v>); <e> <= <e>; bool(<o>); <i> == <f>
        <i> in <e>; torch.is_grad_enabled(); <s>.startswith('a'); <t>.shape == <t>.shape; <d> == <d>; <u> == <u>; <v> == <v>
        type(<i>) is int; <t> is <o>.tensor; <i> in <o>; <v> is <v>; isinstance(<o>, Base); issubclass(Thing, Base)
    """,
    "s": """
        f'{<~i>}'; f'{<~f>:.2f}|{<~i>:>3}'; f'{<~s>!r}{<~b>}'; <s> + <s>; <s>.upper(); <s> * 2; str(<i>); '%d-%s' % (<i>, <s>)
        ','.join([<s>, <s>]); <s> if <b> else <s>; '{}-{k}'.format(<i>, k=<f>); repr(<u>); type(<v>).__name__; <s>[::-1]
        <s>.replace('a', 'b'); <o>.name; str(<t>.dtype); f'{<~o>}'; repr(<f>); <o>.__class__.__name__; f'{<~l>}'[:9]
    """,
    "l": """
        [<i>, <i>]; [<i>, <t>]; [*<l>, <i>]; <l>[:]; <l>[<i>:]; <l>[::-1]; [v for v in <u>]; list(<u>); sorted(<u>); <l> + <l>
        [a + b for a in <u> for b in <u> if a != b]; list(zip(<u>, <l>)); list(map(lambda v: v + <i>, <u>)); list(<d>)
        list(<d>.items()); list(enumerate(<u>, <i>)); list(filter(None, <u>)); list(reversed(<l>)); <o>.items; [<l>] * 2
        list(range(<i> % 4)); [*<u>, *<l>]; list(itertools.islice(<g>, 2)); <l> if <b> else <l>; <l>.copy(); G_LIST
        [(lambda: v) for v in <u>]; [v := <i>, v]; sorted(<u>, key=lambda v: -v); copy.copy(<l>); sorted(<e>, key=str)
        [<c>, <t>]; [[v] for v in <u>]; list(itertools.chain(<u>, <l>)); list(<o>); list(gen(<t>, <i>)); vars(<o>)['items']
    """,
    "u": """
        (<i>, <i>); (<i>,); <u> + <u>; <u>[1:]; tuple(<l>); <u>[::-1]; (*<u>, <i>); tuple(v + 1 for v in <u>); <t>.shape
        divmod(<i>, 3); Point(<i>, <i>); Point(<i>, y=<i>)._replace(x=<i>); tuple(sorted(<u>)); <u> * 2; <u> if <b> else <u>
    """,
    "d": """
        {'a': <i>, 'b': <v>}; {**<d>, 'c': <i>}; dict(<d>); dict(a=<i>, k=<t>); {k: v for k, v in <d>.items()}; <d>.copy()
        <d> | {'q': <i>}; {v: <s> for v in <u>}; dict(zip(('a', 'b'), <u>)); <d> if <b> else <d>; <o>.__dict__
        collections.OrderedDict(a=<i>, b=<i>); collections.defaultdict(list, a=<i>); collections.Counter(<u>); locals_of(<t>)
    """,
    "e": "{<i>, <i>}; set(<u>); <e> | <e>; <e> & <e>; <e> - {<i>}; {v % 2 for v in <u>}; frozenset(<u>); {*<u>, <i>}; <e>.copy()",
    "o": """
        Thing(<i>); Thing(<i>, <t>); Base(<i>); Data(<i>, <l>); <o> if <b> else <o>; <o>.self(); Thing.made(<i>); copy.copy(<o>)
        Slotted(<i>); Data(<i>); types.SimpleNamespace(n=<i>, items=<l>, tensor=<t>); dataclasses.replace(Data(<i>), n=<i>)
    """,
    "c": """
        (lambda z: z + <t>); (lambda z, k=<i>: z * k); functools.partial(helper, k=<i>); <o>.call; torch.relu; maker(<t>, <i>)
        <c> if <b> else <c>; functools.partial(torch.add, <t>); (lambda z, *a, **k: z * (len(a) + <i>)); torch.Tensor.abs
    """,
    "g": """
        iter(<l>); iter(<u>); (v + <i> for v in <u>); map(lambda v: v * 2, <l>); zip(<u>, <u>); enumerate(<l>); gen(<t>, <i>)
        reversed(<l>); filter(lambda v: v, <u>); itertools.chain(<l>, <u>); itertools.count(<i>); iter(<d>); iter(<d>.items())
        itertools.islice(<g>, 3); iter(<o>); itertools.cycle(<u>); itertools.accumulate(<u>); gen2(<g>); range(<i>).__iter__()
    """,
    "v": "<i>; <t>; <l>; <d>; <s>; <f>; <b>; <o>; <u>; None; <e>; <c>; <i>; <t>; (<t>, <i>); (<v>, <v>); [<v>]; {'k': <v>}; ...",
}

LITERALS = {
    "t": ["x", "y", "G_TENSOR", "(x + 1)"],
    "i": ["0", "1", "2", "3", "-1", "n", "n", "True"],
    "f": ["0.5", "2.0", "r", "-1.5"],
    "b": ["True", "False", "flag", "(n > 2)"],
    "s": ["'a'", "''", "'abc'", "s"],
    "l": ["[]", "[1, 2]", "items", "items", "G_LIST"],
    "u": ["(1, 2)", "()", "(3, 1, 2)", "pair"],
    "d": ["{}", "{'a': 1}", "table", "table"],
    "e": ["{1, 2}", "set()"],
    "o": ["thing", "thing", "other", "G_THING"],
    "c": ["abs", "helper", "torch.sin"],
    "g": ["iter((1, 2, 3))", "iter(items)"],
    "v": ["None", "x", "n", "items", "thing"],
}

STATEMENTS = {
    "assign": (
        8,
        "<=t> = <t>;;<=i> = <i>;;<=f> = <f>;;<=b> = <b>;;<=s> = <s>;;<=l> = <l>;;<=u> = <u>;;<=d> = <d>;;<=o> = <o>"
        ";;<=c> = <c>;;<=g> = <g>;;<=v> = <v>;;<=e> = <e>;;<=t> = <t>;;<=t> = <=t> = <t>;;<=i>: int = <i>",
    ),
    "out": (
        6,
        "out.append(<v>);;out.append(<t>);;out += [<i>, <l>];;out.append((<v>, <v>));;out.append(<g>);;out.append(<c>)",
    ),
    "augmented": (
        4,
        "<+i> += <i>;;<+t> += <t>;;<+t> *= <i>;;<+l> += <u>;;<+l> *= 2;;<+d> |= <d>;;<+e> |= <e>;;<+i> -= <i>;;<+s> += <s>"
        ";;<+f> /= 2;;<+o> += <i>;;<+u> += <u>;;<+i> //= <i>;;<+t> -= <t>;;<+i> <<= 1",
    ),
    "unpack": (
        2,
        "<=i>, <=i> = <i>, <i>;;<=v>, *<=l> = <l>;;<=t>, <=t> = <t>, <t>;;(<=i>, <=v>), <=s> = (<u>), <s>;;<=i>, <=i> = <u>"
        ";;*<=l>, <=i> = <u>;;<=t>, <=v> = <t>.max(0);;[<=i>, <=v>] = <l>;;<~o>.n, <~l>[0] = <l>[0], <o>.n",
    ),
    "tensors": (
        3,
        "<~t>.add_(<i>);;<~t>[0] = <i>;;<~t>[1:3] = <f>;;<~t>[:2].mul_(2);;<~t>.zero_();;<~t>.copy_(<t>);;<~t>[1] += 1"
        ";;<=t> = <t>[:2]\n<~t>.mul_(2);;<~t>.data.add_(1);;<=t:a> = <t>.view(2, 2)\n<~a>.add_(1)\n<~a> = <a>.view(4)"
        ";;torch.add(<t>, <t>, out=<t>.clone());;<=t> = <t>.detach().requires_grad_();;<~t>.resize_(4);;<~t>.extra = <i>"
        ";;<=t> = torch.nn.functional.relu_(<t>);;<~t>.requires_grad_();;<~t>.t_();;<~t>.unsqueeze_(0).squeeze_(0)"
        ";;<=t> = torch.randn(4);;<~t>.uniform_();;<~o>.tensor.add_(<t>);;<=t> = <o>.tensor = <t> + 1;;<~t>.grad = None",
    ),
    "attributes": (
        3,
        "<~o>.n = <i>;;<~o>.extra = <v>;;<~o>.n += <i>;;<~o>.prop = <i>;;del <~o>.extra;;<~o>.items.append(<v>);;<~o>.tensor = <t>"
        ";;setattr(<o>, 'extra', <v>);;Thing.total += 1;;<~o>.items = <l>;;<~o>.items += <u>;;<~o>.other = <o>;;delattr(<o>, 'n')"
        ";;<~o>.__dict__['d'] = <i>;;<~o>.__dict__.update(n=<i>);;Base.shared = <v>;;<~o>.slot = <v>;;<~o>[<i>] = <v>;;del <~o>[<i>]"
        ";;<~o>.tensor += 1;;<~o>.ratio *= 2;;del Thing.total;;Thing.total = <i>;;helper.calls = <i>;;MODULE.count += 1",
    ),
    "containers": (
        4,
        "<~l>.append(<v>);;<~l>[0] = <v>;;<~l>[<i>] = <i>;;<~l>.pop();;<~l>.insert(0, <i>);;<~l>.extend(<u>);;<~l>[1:] = <l>;;del <~l>[0]"
        ";;<~l>.reverse();;<~l>.clear();;<~d>['a'] = <v>;;<~d>['c'] = <i>;;<~d>.update(a=<i>);;<~d>.update(<d>);;<~d>.pop('a');;del <~d>['b']"
        ";;<~d>.setdefault('w', []).append(<i>);;<~e>.add(<i>);;<~e>.discard(<i>);;<~l>.remove(<i>);;<~l>.sort(key=str);;<~d>.popitem()"
        ";;<~l>.append(<l>);;<~d>['self'] = <d>;;<~l>[::2] = <u>;;del <~l>[<i>:];;<~d>.clear();;<~l>[:0] = [<v>];;<~e>.update(<u>)"
        ";;<~d>['t'] = <t>;;<~d>[<i>] = <v>;;<~l>.extend(itertools.islice(<g>, 3));;<~d>['a'] += <i>;;<~l>[0] += <i>;;<~l> += <l>",
    ),
    "globals": (
        2,
        "G_LIST.append(<v>);;G_DICT['k'] = <v>;;globals()['G_NEW'] = <i>;;bump_global(<i>);;G_THING.n = <i>;;G_TENSOR.add_(1)",
    ),
    "delete": (1, "<=v:a> = <v>\ndel <~a>;;<=i:a> = <i>\ndel <~a>\n<~a> = <i>;;<=t:a> = <t>\ndel <~a>"),
    "iterators": (
        2,
        "<=i> = next(<g>);;<=v> = next(<g>, None);;<=l> = list(itertools.islice(<g>, 2));;<=g:a> = <g>\n<=v> = next(<a>, 0)\nout.append(<a>)"
        ";;<=g:a> = gen(<t>, <i>)\n<=v> = next(<a>)\n<=v> = <a>.send(<i>);;<=g:a> = gen(<t>, <i>)\nnext(<a>)\n<~a>.close()"
        ";;<=g:a> = gen(<t>, 3)\nnext(<a>)\n<=v> = <a>.throw(ValueError('in'));;<=v>, *<=l> = gen(<t>, <i> % 4)",
    ),
    "break": (
        3,
        "print(<s>);;<=i> = int(<t>.sum().item());;torch._dynamo.graph_break();;<=i> = <i> + (print('p') or 1)"
        ";;<=t> = helper(<t>, k=print('k') or 2);;out.append([<t>, print(<i>), <v>]);;<=l> = [<t>, noisy(<i>), <t>];;noisy(<l>)"
        ";;<=i> = noisy(<i>) if <b> else 1;;<=t> = <t> * noisy(<i>) + <t>;;<~o>.n = noisy(<i>);;<~l>[0] = noisy(<i>)"
        ";;<=t> = noisy_helper(<t>, <o>);;<=f> = <t>.sum().item();;<=b> = bool((<t> > 0).all());;<=s> = f'{noisy(<~i>)}{<~i>}'"
        ";;<~o>.noisy(<i>);;<=t> = <t> + <o>.loud;;<~d>['a'] = (<v>, noisy(<i>));;<=u> = (<t>.tolist(), <i>);;dynacheck.graph_break()",
    ),
    "calls": (
        3,
        "<=t> = helper(<t>, <i>);;<=v> = varied(<v>, *<l>, k=<i>, **<d>);;<=v> = varied(*<u>, *<l>);;<=i> = <o>.bump()"
        ";;<=l> = remember(<i>);;<=v> = factorial(<i> % 5);;<=c:a> = counter(<i>)\nout.append((<a>(), <a>()))"
        ";;<=t> = no_grad_helper(<t>);;<=v> = raiser(<i>);;<=v> = decorated(<v>);;<=v> = <o>.static(<i>);;<=v> = Thing.klass(<i>)"
        ";;<=v> = swap(<o>, <o>);;<=i> = mutate(<l>, <d>, <o>);;<=v> = cached(<i>);;<=v> = type(<o>)(<i>)",
    ),
    "raise": (
        1,
        "raise ValueError(<s>);;raise KeyError(<i>) from ValueError('cause');;assert <b>, <s>;;raise Custom(<i>, <s>);;assert <b>"
        ";;raise TypeError;;1 // 0;;raise LookupError(<v>) from None;;raise raiser(0)",
    ),
    "return": (1, "return out;;return <t>;;return <v>, out"),
    "if": (
        5,
        "if <b>:\n    BODY;;if <b>:\n    BODY\nelse:\n    BODY;;if <i>:\n    BODY\nelif <b>:\n    BODY\nelse:\n    BODY",
    ),
    "data if": (
        1,
        "if <t>.sum() > <i>:\n    BODY\nelse:\n    BODY;;if (<t> > 0).any():\n    BODY;;if <t>.sum() > 0:\n    return <t>",
    ),
    "for": (
        3,
        "for <=i> in range(<i> % 4):\n    BODY;;for <=v> in <u>:\n    BODY;;for <=i>, <=v> in enumerate(<u>):\n    BODY"
        ";;for <=v> in itertools.islice(<l>, 4):\n    BODY\nelse:\n    BODY;;for <=s>, <=v> in list(<d>.items()):\n    BODY"
        ";;for <=v> in <d>:\n    BODY;;for <=i> in itertools.islice(<g>, 3):\n    BODY;;for <=v> in gen(<t>, <i> % 3):\n    BODY"
        ";;for <=v> in itertools.islice(<o>, 3):\n    BODY;;for <=t> in <t>[:2]:\n    BODY;;for <=i> in <u>:\n    BODY",
    ),
    "while": (
        2,
        "<#:a> = 0\nwhile <a> < <i>:\n    !<a> += 1\n    !if <a> > 3: break\n    BODY\nelse:\n    BODY",
    ),
    "jump": (1, "if <b>:\n    break;;if <b>:\n    continue;;if <i>: continue"),
    "try": (
        4,
        "try:\n    BODY\nexcept Exception as <#:a>:\n    BODY\n    out.append(<a>);;try:\n    BODY\nexcept (ValueError, KeyError):\n    BODY"
        "\nelse:\n    BODY;;try:\n    BODY\nfinally:\n    BODY;;try:\n    BODY\nexcept IndexError as <#:a>:\n    raise Custom(1, 'again') from <a>"
        "\nexcept Exception:\n    BODY\nfinally:\n    BODY;;try:\n    BODY\nexcept ZeroDivisionError:\n    BODY\n    raise"
        ";;try:\n    BODY\nfinally:\n    out.append(<v>);;try:\n    BODY\nexcept Exception as <#:a>:\n    out.append(<a>.args)\nfinally:\n    BODY",
    ),
    "with": (
        3,
        "with Manager(out, <i>) as <=o>:\n    BODY;;with torch.no_grad():\n    BODY;;with managed(out) as <=i>:\n    BODY"
        ";;with contextlib.suppress(ValueError, ZeroDivisionError):\n    BODY;;with torch.no_grad(), Manager(out, <i>):\n    BODY"
        ";;with contextlib.nullcontext(<i>) as <=i>:\n    BODY;;with torch.enable_grad():\n    BODY"
        ";;with torch.autocast('cpu', enabled=False):\n    BODY;;with torch.set_grad_enabled(<b>):\n    BODY",
    ),
    "match": (
        2,
        "match <v>:\n    case int(<#:a>) if <b>:\n        BODY\n    case [<#:b>, *<#:c>]:\n        BODY\n    case {'a': <#:d>, **<#:e>}:\n        BODY"
        "\n    case _:\n        BODY;;match <o>:\n    case Thing(n=<#:a>):\n        BODY\n    case Data(<#:b>, <#:c>):\n        BODY"
        ";;match <i>:\n    case 0 | 1:\n        BODY\n    case <#:a>:\n        BODY",
    ),
}

PRELUDE = """
import collections, contextlib, copy, dataclasses, functools, itertools, math, operator, random, types
import dynacheck
import torch
G_INT = 1
G_LIST = [1, 2]
G_DICT = {'k': 1}
G_TENSOR = torch.ones(4)
Point = collections.namedtuple('Point', 'x y')
class Custom(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code
class Base:
    shared = 0
    def __init__(self, n=0):
        self.n = n
        self.items = [n]
        self.tensor = torch.ones(4)
    def method(self, t, k=1):
        self.n = k
        return t * k
    def call(self, t):
        return t + self.n
    def self(self):
        return self
    def __len__(self):
        return len(self.items)
    def __iter__(self):
        for item in self.items:
            yield item
class Thing(Base):
    total = 0
    ratio = 1.5
    def __init__(self, n=0, tensor=None):
        super().__init__(n)
        if tensor is not None:
            self.tensor = tensor
        Thing.total += 1
    @property
    def prop(self):
        return self.n * 2
    @prop.setter
    def prop(self, value):
        self.n = value + 1
    @property
    def name(self):
        return type(self).__name__ + str(self.n)
    @classmethod
    def made(cls, n):
        return cls(n)
    @classmethod
    def klass(cls, n):
        cls.shared = n
        return cls.total + n
    @staticmethod
    def static(n):
        return n * 3
    def method(self, t, k=2):
        self.items.append(k)
        return super().method(t, k=k) + 1
    def bump(self):
        self.n += 1
        return self.n
    def noisy(self, n):
        self.n = n
        print('noisy', self.n)
        self.n += 1
    @property
    def loud(self):
        print('loud')
        return self.n
    def __add__(self, other):
        return other + self.n
    def __iadd__(self, other):
        self.n += other
        return self
    def __eq__(self, other):
        return isinstance(other, Thing) and self.n == other.n
    __hash__ = None
    def __lt__(self, other):
        return self.n < other.n if isinstance(other, Base) else NotImplemented
    def __getitem__(self, index):
        return self.items[index]
    def __setitem__(self, index, value):
        self.items[index] = value
    def __delitem__(self, index):
        del self.items[index]
    def __contains__(self, item):
        return item in self.items
    def __call__(self, n):
        self.items.append(n)
        return n + self.n
    def __getattr__(self, name):
        if name == 'slot':
            return 5
        raise AttributeError(name)
    def __str__(self):
        return f'Thing({self.n})'
class Slotted:
    __slots__ = ('n', 'slot', 'items')
    def __init__(self, n):
        self.n = n
        self.items = []
    def __bool__(self):
        return self.n > 1
@dataclasses.dataclass
class Data:
    n: int
    items: list = dataclasses.field(default_factory=list)
    tensor: object = None
    def call(self, t):
        return t * self.n
class Manager:
    def __init__(self, log, n):
        self.log, self.n, self.items = log, n, []
    def __enter__(self):
        self.log.append(('enter', self.n))
        return self
    def __exit__(self, kind, value, tb):
        self.log.append(('exit', kind and kind.__name__))
        return self.n == 1
@contextlib.contextmanager
def managed(log):
    log.append('begin')
    try:
        yield 3
    finally:
        log.append('end')
class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer('seen', torch.zeros(4))
        self.count = 0
    def forward(self, t):
        self.count += 1
        self.seen += 1
        return self.linear(t) + self.seen
MODULE = Module()
G_MODULE = MODULE
def helper(t, *rest, k=1, **more):
    t = t * k
    if rest:
        t = t + len(rest)
    return t - len(more)
def noisy(v):
    print('noisy', type(v).__name__)
    return v
def noisy_helper(t, o):
    o.n = 7
    t = t + 1
    print('helper', o.n)
    o.n += 1
    return t * o.n
def gen(t, n):
    for i in range(n):
        try:
            got = yield i
            if got:
                yield t * got
        except ValueError as error:
            yield str(error)
    return n
def gen2(inner):
    got = yield from itertools.islice(inner, 2)
    yield got
def maker(t, n):
    def inner(z):
        nonlocal n
        n += 1
        return z * t + n
    return inner
def counter(n):
    def inner():
        nonlocal n
        n += 1
        return n
    return inner
def varied(first=0, *rest, k=2, **named):
    return first, rest, k, named
def remember(n, seen=[]):
    seen.append(n)
    return seen
def bump_global(n):
    global G_INT
    G_INT += n
    return G_INT
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)
@torch.no_grad()
def no_grad_helper(t):
    return t * 2
def raiser(n):
    if n > 1:
        raise ValueError(f'raised {n}')
    return IndexError(n)
def decorate(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        G_LIST.append(len(args))
        return fn(*args, **kwargs)
    return wrapper
@decorate
def decorated(v):
    return [v]
def swap(a, b):
    a.n, b.n = b.n, a.n
    return a is b
def mutate(l, d, o):
    l.append(len(d))
    d['m'] = l
    o.items = l
    return len(l)
@functools.lru_cache
def cached(n):
    return (n, n + 1)
def locals_of(t):
    a = 1
    return dict(a=a, t=t)
G_THING = Thing(2)
"""
