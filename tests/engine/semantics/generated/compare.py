"""A program run plain and compiled: everything that can be seen of it must be the same."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import random
import re
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from typing import Any

import dynacheck
import torch

CALLS = 3
ADDRESS = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_numbers = itertools.count()


class Describer:
    """Values as comparable data. An object gets a number when it is first met, so that the numbers tell which are the same."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.numbers: dict[Any, int] = {}
        self.kept: list[Any] = []
        self.shown: set[int] = set()

    def number(self, key: Any, value: Any) -> int:
        self.kept.append(value)
        return self.numbers.setdefault(key, len(self.numbers))

    def start(self) -> None:
        """A new moment: contents are shown again."""
        self.shown = set()

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, str, bytes, type, torch.dtype, torch.Size)):
            return (type(value).__name__, ADDRESS.sub("0x", str(value)))
        if isinstance(value, (float, complex, range, slice)):
            return (type(value).__name__, repr(value))
        if type(value) is tuple:
            return ("tuple", *map(self, value))
        number = self.number(id(value), value)
        if number in self.shown:
            return ("same", number)
        self.shown.add(number)
        return (number, type(value).__name__, *self.contents(value))

    def contents(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, dict):
            return (*[(self(k), self(v)) for k, v in value.items()], *self.attributes(value))
        if isinstance(value, (set, frozenset)):
            return sorted(repr(self(v)) for v in value)
        if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
            return (*map(self, value), *self.attributes(value))
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.MethodType):
            return (self(value.__func__), self(value.__self__))
        if isinstance(value, BaseException):
            return self.exception(value)
        return self.attributes(value)

    def attributes(self, value: Any) -> Any:
        if isinstance(value, torch.nn.Module):
            state = [*value.named_parameters(), *value.named_buffers()]
            own = {k: v for k, v in vars(value).items() if not k.startswith("_")}
            return (*[(k, self(v)) for k, v in state], *[(k, self(v)) for k, v in own.items()])
        found = dict(getattr(value, "__dict__", {}))
        for name in getattr(type(value), "__slots__", ()):
            if hasattr(value, name):
                found[name] = getattr(value, name)
        return [(name, self(v)) for name, v in found.items()]

    def tensor(self, value: torch.Tensor) -> Any:
        storage = value.untyped_storage()._cdata
        with torch.no_grad():
            numbers = str(value.detach().tolist())
        grad = None if not value.is_leaf else value.grad
        facts = (str(value.dtype), tuple(value.shape), value.stride(), value.storage_offset())
        flags = (value.requires_grad, value.is_leaf, self.number(("storage", storage), value))
        return (numbers, *facts, *flags, self(grad))

    def function(self, value: types.FunctionType) -> Any:
        if value.__code__.co_filename != self.file:
            return ()
        cells = []
        for cell in value.__closure__ or ():
            number = self.number(id(cell), cell)
            try:
                inner = self(cell.cell_contents)
            except ValueError:
                inner = "empty"
            cells.append((number, inner))
        names = (value.__name__, value.__qualname__)
        return (*names, cells, self(value.__defaults__), self(value.__kwdefaults__), self.attributes(value))

    def exception(self, value: BaseException) -> Any:
        text = ADDRESS.sub("0x", str(value))
        context = None if value.__suppress_context__ else self(value.__context__)
        return (text, [self(a) for a in value.args if not isinstance(a, str)], self(value.__cause__), context)

    def lines(self, error: BaseException) -> list[int | None]:
        """The lines of the program in an exception's traceback."""
        return [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self.file]


def gradients(value: Any, args: Any) -> list[torch.Tensor]:
    """Run backward on what a result's tensors add up to."""
    found: list[torch.Tensor] = []
    todo, seen = [value], set()
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor) and item.requires_grad and item.is_floating_point():
            found.append(item)
        elif isinstance(item, (list, tuple)):
            todo.extend(item)
        elif isinstance(item, dict):
            todo.extend(item.values())
    if found:
        try:
            sum(t.sum() for t in found).backward()
        except RuntimeError as error:  # written in place after use, freed
            return [str(error).partition(" [")[0]]
    return [a.grad for a in args if isinstance(a, torch.Tensor) and a.is_leaf]


@dataclasses.dataclass
class Outcome:
    """What a program did, by call, and whether anything of it was translated."""

    moments: list[Any]
    translated: bool = True


class TooLong(BaseException):
    """A program that takes too long to be of use."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop what runs in the block after that much processor time."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def module_of(text: str, name: str) -> Any:
    """The program as a module that can be found under its name."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


def run(text: str, compiled: bool, name: str, dynamic: bool | None = None) -> Outcome:
    """Run a program: `make(call)` gives the arguments of `program`, for each of the calls."""
    describe = Describer(f"<{name}>")
    moments: list[Any] = []
    random.seed(7)
    torch.manual_seed(7)
    try:
        module = module_of(text, name)
        fn = program = module.program
        if compiled:
            fn = dynacheck.compile(program, backend="eager", dynamic=dynamic)
        results = []
        with dynacheck.observe() as report:
            for call in range(CALLS):
                moments += moment(module, fn, call, describe, results)
        moments.append(("drained", [drained(r, describe) for r in results]))
        translated = not compiled or bool(report.graphs or report.cache_entries)
        return Outcome(moments, translated)
    finally:
        sys.modules.pop(name, None)


def moment(module: Any, fn: Any, call: int, describe: Describer, results: list[Any]) -> list[Any]:
    """What can be seen after one call."""
    try:
        args = module.make(call)
    except Exception as error:  # the program spoiled what arguments are made of
        return [("no arguments", str(error))]
    grad = torch.is_grad_enabled()
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = fn(*args)
            kind = "returned"
        except Exception as error:
            if isinstance(error, dynacheck.errors.DynacheckError):
                raise
            kind, result = "raised", error
    describe.start()
    scope = {k: v for k, v in vars(module).items() if k.startswith(("G", "C_"))}
    seen = [
        (f"call {call} {kind}", describe(result)),
        ("lines", describe.lines(result) if kind == "raised" else None),
        ("arguments", [describe(a) for a in args]),
        ("globals", [(k, describe(v)) for k, v in scope.items()]),
        ("classes", [class_state(v, describe) for v in vars(module).values() if isinstance(v, type)]),
        ("printed", ADDRESS.sub("0x", printed.getvalue())),
        ("warnings", [str(w.message) for w in warned]),
        ("random", random.random(), torch.rand(1).item()),
        ("modes", grad == torch.is_grad_enabled(), torch.is_inference_mode_enabled(), sys.exc_info()[1]),
    ]
    if kind == "returned":
        seen.append(("gradients", describe(gradients(result, args))))
        results.append(result)
    return seen


def class_state(cls: type, describe: Describer) -> Any:
    """The data attributes of a program's class."""
    if cls.__module__ not in sys.modules or not cls.__module__.startswith("generated_"):
        return None
    return [
        (k, describe(v))
        for k, v in vars(cls).items()
        if not k.startswith("__") and not callable(v) and isinstance(v, (int, list, dict, torch.Tensor))
    ]


def drained(result: Any, describe: Describer) -> Any:
    """What the iterators and functions in a result give."""
    found = []
    todo = list(result) if isinstance(result, (list, tuple)) else [result]
    for item in todo:
        try:
            if isinstance(item, types.GeneratorType) or hasattr(item, "__next__"):
                found.append(describe(list(itertools.islice(item, 5))))
            elif isinstance(item, types.FunctionType):
                found.append(describe(item(torch.ones(4))))
        except Exception as error:
            found.append((type(error).__name__, ADDRESS.sub("0x", str(error))))
    return found


@dataclasses.dataclass
class Comparison:
    """A program compiled against the same program plain.

    Args:
        kind: in what they differ; empty when they don't.
        detail: both sides.
        translated: whether anything of the program was.
        raised: how many of the plain calls raised.
    """

    kind: str
    detail: str
    translated: bool
    raised: int


def compare(text: str, dynamic: bool | None = None) -> Comparison:
    """Run a program both ways.

    Raises:
        SyntaxError: the text is no program.
    """
    name = f"generated_{next(_numbers)}"
    plain = run(text, False, name)
    raised = sum(m[0].endswith("raised") for m in plain.moments)
    dynacheck.reset()
    try:
        ours = run(text, True, name, dynamic)
    except Exception as error:
        cause = error.__cause__ or error
        where = traceback.extract_tb(cause.__traceback__)[-1]
        kind = f"{type(error).__name__} {type(cause).__name__} {where.name}"
        return Comparison(kind, "".join(traceback.format_exception(error)), True, raised)
    for want, have in zip(plain.moments, ours.moments):
        if want != have:
            kind = f"{have[0]} for {want[0]}" if want[0] != have[0] else want[0]
            return Comparison(kind, f"plain: {want}\nours:  {have}", ours.translated, raised)
    return Comparison("", "", ours.translated, raised)
