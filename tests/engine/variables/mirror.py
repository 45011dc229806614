"""Programs run twice: on Python objects, and on trackers through a stub tracer. Both must agree.

A `Mirror` wraps a tracker and answers Python's operators through `variables.abstract`, so that one plain
function is run on both. No translator, no graph: what is tested is the trackers and handlers alone.
"""

from __future__ import annotations

import builtins
import importlib
from collections import deque
from typing import Any

from dynacheck import handlers  # noqa: F401  (fills the registry)
from dynacheck.handlers import registry
from dynacheck.sources import ABSENT, FrameView, Local, Root
from dynacheck.variables import abstract
from dynacheck.variables.base import GraphBreak, LazyVariable, ObservedException, VariableTracker
from dynacheck.variables.constant import ConstantVariable, is_constant_value
from dynacheck.variables.functions import ObjectVariable
from dynacheck.variables.results import CONTAINERS
from dynacheck.variables.sequences import ListVariable, TupleVariable


class Raised(VariableTracker):
    """An exception instance of the stub."""

    def __init__(self, cls: type, args: tuple[Any, ...]) -> None:
        super().__init__()
        self.cls = cls
        self.args = args

    def get_type(self) -> type:
        return self.cls


class PythonFunction(VariableTracker):
    """A function of the test, run for real on mirrors."""

    python_type = type(lambda: None)

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def tp_call(self, tx, args, kwargs):
        return unmirror(
            tx, self.fn(*[Mirror(tx, a) for a in args], **{k: Mirror(tx, v) for k, v in kwargs.items()})
        )


class StubTracer:
    """As much of a Tracer as builtin objects need."""

    def __init__(self, *values: Any) -> None:
        self.root = Root(FrameView(lambda: None, values))
        self.changed: list[VariableTracker] = []
        self.guards: list[Any] = []

    def source(self, index: int) -> VariableTracker:
        return self.wrap(self.root.child(Local(f"a{index}", index)))

    def constant(self, value: Any) -> VariableTracker:
        if type(value) is tuple:
            return TupleVariable([self.constant(v) for v in value])
        assert is_constant_value(value), value
        return ConstantVariable(value)

    def object(self, value: Any) -> VariableTracker:
        return self.constant(value) if is_constant_value(value) else ObjectVariable(value)

    def known(self, value):
        return None

    def meet(self, value, tracker):
        pass

    def tuple_of(self, items):
        return TupleVariable(list(items))

    def class_variable(self, cls):
        return self.object(cls)

    def class_of(self, value):
        return ObjectVariable(value.realize(self).get_type())

    def wrap(self, node):
        if node.tracker is None:
            node.tracker = LazyVariable(node)
        return node.tracker

    def wrap_now(self, node):
        from dynacheck.variables.families import wrap_container, wrap_deque, wrap_set

        value = node.peek()
        assert value is not ABSENT
        if is_constant_value(value):
            return ConstantVariable(value, node)
        if isinstance(value, (set, frozenset)):
            return wrap_set(self, node, value)
        return wrap_deque(self, node, value) if type(value) is deque else wrap_container(self, node, value)

    def guard(self, node, guard):
        self.guards.append((node, guard))

    def guard_absent(self, node):
        self.guards.append((node, "absent"))

    def where(self):
        return None

    def mutated(self, value):
        if value not in self.changed:
            self.changed.append(value)

    def raise_(self, cls, *args):
        raise ObservedException(Raised(cls, args))

    def break_(self, reason, **fields):
        raise GraphBreak(reason, **fields)

    def sequence_iterator(self, value):
        from dynacheck.variables.iterators import SequenceProtocolIterator

        return SequenceProtocolIterator(value)

    def call(self, fn, args, kwargs=None):
        return fn.realize(self).tp_call(self, list(args), kwargs or {})

    def call_object(self, fn, args, kwargs):
        handler = registry.lookup(fn.value)
        if handler is not None:
            found = handler(self, *args, **kwargs)
            if found is not None:
                return found
        if hasattr(fn.value, "__objclass__"):
            return args[0].realize(self).call_method(self, fn.value.__name__, list(args[1:]), kwargs)
        raise AssertionError(f"no handler of {fn.value!r}")

    def object_attribute(self, owner, name):
        return self.object(getattr(owner.value, name))


def unmirror(tx: StubTracer, value: Any) -> VariableTracker:
    """The tracker behind a value of a program."""
    if isinstance(value, Mirror):
        return value.tracker
    if isinstance(value, VariableTracker):
        return value
    if type(value) in CONTAINERS and not is_constant_value(value):
        if type(value) is list:
            return ListVariable([unmirror(tx, v) for v in value])
        if type(value) is tuple:
            return TupleVariable([unmirror(tx, v) for v in value])
        if type(value) is slice:
            return tx.call(
                ObjectVariable(slice), [unmirror(tx, v) for v in (value.start, value.stop, value.step)]
            )
        if type(value) is dict:
            pairs = [TupleVariable([unmirror(tx, k), unmirror(tx, v)]) for k, v in value.items()]
            return tx.call(ObjectVariable(dict), [ListVariable(pairs)])
        if type(value) in (set, frozenset):
            return tx.call(ObjectVariable(type(value)), [ListVariable([unmirror(tx, v) for v in value])])
        return CONTAINERS[type(value)](tx, value)
    if type(value).__name__ == "function":
        return PythonFunction(value)
    return tx.object(value)


def plain(tx: StubTracer, tracker: VariableTracker) -> Any:
    """A tracker as Python data: (type, contents)."""
    tracker = tracker.realize(tx)
    if tracker.is_constant() and isinstance(tracker, ConstantVariable):
        return tracker.value
    if tracker.is_constant() and type(tracker).__name__ == "RangeVariable":
        return tracker.as_constant(tx)
    kind = tracker.get_type()
    if isinstance(tracker, ObjectVariable):
        return tracker.value
    if dict in kind.__mro__:
        return (kind, [(plain(tx, k), plain(tx, v)) for k, v in tracker.content(tx).values()])
    return (kind, [plain(tx, i) for i in abstract.iterate(tx, tracker)])


def plain_real(value: Any) -> Any:
    """A Python value as `plain` gives it."""
    if is_constant_value(value) or isinstance(value, (range, type)) or callable(value):
        return value
    if isinstance(value, dict):
        return (type(value), [(plain_real(k), plain_real(v)) for k, v in value.items()])
    return (type(value), [plain_real(i) for i in value])


class Mirror:
    """A tracker that looks like a Python value to a plain function."""

    def __init__(self, tx: StubTracer, tracker: VariableTracker) -> None:
        object.__setattr__(self, "tx", tx)
        object.__setattr__(self, "tracker", tracker)

    def __getattr__(self, name):
        return Mirror(self.tx, abstract.getattr_(self.tx, self.tracker, name))

    def __setattr__(self, name, value):
        abstract.setattr_(self.tx, self.tracker, name, unmirror(self.tx, value))

    def __call__(self, *args, **kwargs):
        tx = self.tx
        named = {k: unmirror(tx, v) for k, v in kwargs.items()}
        return Mirror(tx, tx.call(self.tracker, [unmirror(tx, a) for a in args], named))

    def __getitem__(self, key):
        return Mirror(self.tx, abstract.getitem(self.tx, self.tracker, unmirror(self.tx, key)))

    def __setitem__(self, key, value):
        abstract.setitem(self.tx, self.tracker, unmirror(self.tx, key), unmirror(self.tx, value))

    def __delitem__(self, key):
        abstract.delitem(self.tx, self.tracker, unmirror(self.tx, key))

    def __iter__(self):
        iterator = abstract.get_iter(self.tx, self.tracker)
        while (item := abstract.iternext(self.tx, iterator)) is not None:
            yield Mirror(self.tx, item)

    def __contains__(self, item):
        return abstract.contains(self.tx, self.tracker, unmirror(self.tx, item)).as_constant(self.tx)

    def __bool__(self):
        return abstract.is_true(self.tx, self.tracker)

    def __hash__(self):
        return id(self.tracker)


_FORMS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


def _binary(op):
    def forward(self, other):
        return Mirror(self.tx, abstract.binary(self.tx, op, self.tracker, unmirror(self.tx, other)))

    def backward(self, other):
        return Mirror(self.tx, abstract.binary(self.tx, op, unmirror(self.tx, other), self.tracker))

    def inplace(self, other):
        return Mirror(self.tx, abstract.inplace(self.tx, op, self.tracker, unmirror(self.tx, other)))

    return forward, backward, inplace


for _name, _op in _FORMS.items():
    for _prefix, _method in zip(("", "r", "i"), _binary(_op)):
        setattr(Mirror, f"__{_prefix}{_name}__", _method)
for _name, _op in {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}.items():
    setattr(
        Mirror,
        f"__{_name}__",
        lambda self, other, op=_op: Mirror(
            self.tx, abstract.richcompare(self.tx, op, self.tracker, unmirror(self.tx, other))
        ),
    )
for _name, _op in {"neg": "-", "pos": "+", "invert": "~", "abs": "abs"}.items():
    setattr(
        Mirror,
        f"__{_name}__",
        lambda self, op=_op: Mirror(self.tx, abstract.unary(self.tx, op, self.tracker)),
    )


MODULES = ("collections", "copy", "functools", "itertools", "math", "numbers", "operator")


class Module:
    """A module as a program sees it."""

    def __init__(self, tx: StubTracer, target: Any) -> None:
        self._tx = tx
        self._target = target

    def __getattr__(self, name):
        found = getattr(self._target, name)
        if type(found).__name__ == "module":
            return Module(self._tx, found)
        return Mirror(self._tx, self._tx.object(found))


def _real_names() -> dict[str, Any]:
    return {name: importlib.import_module(name) for name in MODULES}


def _traced_names(tx: StubTracer) -> dict[str, Any]:
    names: dict[str, Any] = {
        n: Mirror(tx, tx.object(v)) for n, v in vars(builtins).items() if not n.startswith("_")
    }
    names.update({name: Module(tx, importlib.import_module(name)) for name in MODULES})
    return names


def _guarded(run: Any, show: Any, args: Any) -> Any:
    try:
        result = run()
    except Exception as error:
        if isinstance(error, ObservedException):
            cls, values = error.exception.cls, error.exception.args
        else:
            cls, values = type(error), error.args
        return "raised", cls, [show(v) for v in values], [show(a) for a in args]
    return "returned", show(result), [show(a) for a in args]


def check(make: Any, args: str, values: str) -> None:
    """Run a program on fresh arguments: really, on new trackers, on sourced trackers; all must agree."""

    def fresh() -> list[Any]:
        return [eval(values, _real_names())] if args else []

    real = fresh()
    expected = _guarded(lambda: make(_real_names())(*real), plain_real, real)
    for sourced in (False, True):
        given = fresh()
        if sourced and given and type(given[0]) is deque:
            continue  # a deque's items have no node
        tx = StubTracer(*given)
        if sourced:
            trackers = [tx.source(i) for i in range(len(given))]
        else:
            trackers = [unmirror(tx, a) for a in given]

        def show(value: Any, tx: Any = tx) -> Any:
            return plain(tx, unmirror(tx, value))

        def run(tx: Any = tx, trackers: Any = trackers) -> Any:
            return make(_traced_names(tx))(*[Mirror(tx, t) for t in trackers])

        found = _guarded(run, show, trackers)
        assert found == expected, ("sourced" if sourced else "new", found, expected)


def check_expression(text: str, args: str, values: str) -> None:
    """Check an expression."""
    check(lambda names: eval(f"lambda {args}: {text}", names), args, values)


def check_statements(args: str, values: str, body: str) -> None:
    """Check statements that leave `result`."""

    def make(names: dict[str, Any]) -> Any:
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        exec(f"def program({args}):\n{lines}    return result\n", names)
        return names["program"]

    check(make, args, values)
