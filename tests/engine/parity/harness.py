"""Runs a small program plainly and under an engine, and tells where the two differ.

A program is a function or module with a list of calls, and what may happen around them. It lives in a real
file, which is executed anew for every run, so no run meets the code objects, globals or classes of another.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import io
import linecache
import random
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

__all__ = ["Outcome", "Program", "differences", "fresh", "load", "registry", "run"]


# Frames of the standard library (logging, copy, importlib) that torch also looks at: they depend on what ran.
LIBRARY_FRAMES = {"15_logger_info", "53_deepcopy_cache", "100_import_in_forward"}


@dataclass(frozen=True)
class Program:
    """One program.

    ``make()`` returns ``(fn or module, calls)``, a call being a tuple of arguments; ``raw`` holds torch's own
    figures; ``build(fn, tc)`` returns what is called (default ``tc(fn)``); ``before(i, fn)`` runs before call
    i on the original; ``around(i)`` is a context manager for call i; ``state(fn)`` is compared with the plain
    run's beside arguments, parameters, buffers and plain attributes.
    """

    name: str
    make: Callable[[], tuple[Any, list[tuple]]]
    row: int = 0
    raw: dict[str, int] = field(default_factory=dict)
    compile: dict[str, Any] = field(default_factory=dict)
    build: Callable[[Any, Callable], Callable] | None = None
    kwargs: Callable[[int], dict] | None = None
    before: Callable[[int, Any], None] | None = None
    around: Callable[[int], Any] | None = None
    state: Callable[[Any], Any] | None = None
    setup: Callable[[], None] | None = None
    teardown: Callable[[], None] | None = None
    torch_differs: str = ""  # why torch's own result isn't plain Python's
    runs: int = 1  # how often torch may try: its figures may depend on how threads are scheduled
    file: str = ""


def registry() -> tuple[list[Program], Callable]:
    """Returns a list of programs and the decorator that adds ``make`` functions to it."""
    programs: list[Program] = []

    def program(name, row, *, graphs, breaks=0, recompiles=0, frames=None, entries=None, **options):
        raw = {"graphs": graphs, "breaks": breaks, "recompiles": recompiles}
        if frames is not None:
            raw.update(tried=frames[0], translated=frames[1])
        if entries is not None:
            raw["entries"] = entries

        def add(make):
            programs.append(Program(name, make, row, raw, file=make.__code__.co_filename, **options))
            return make

        return add

    return programs, program


def load(path: str | Path) -> types.ModuleType:
    """Returns the module in ``path``, executed anew."""
    path = str(path)
    module = types.ModuleType("parity_" + Path(path).stem.replace("-", "_"))
    module.__file__ = path
    sys.modules[module.__name__] = module
    linecache.checkcache(path)
    exec(compile(Path(path).read_text(), path, "exec"), module.__dict__)
    return module


def from_case(module: types.ModuleType) -> Program:
    """Returns the program of a case file (``make`` and optional hooks by name)."""
    known = {name: getattr(module, name, None) for name in ("kwargs", "before", "state", "setup", "teardown")}
    expected = {key: module.EXPECT[key] for key in ("graphs", "recompiles")}
    expected.update(breaks=module.EXPECT["break_events"], entries=module.EXPECT["cache_entries"])
    name = Path(module.__file__).stem
    if name not in LIBRARY_FRAMES:
        expected.update(tried=module.EXPECT["frames"][1], translated=module.EXPECT["frames"][0])
    return Program(
        name,
        module.make,
        raw=expected,
        compile=getattr(module, "COMPILE", {}),
        build=getattr(module, "compile", None),
        around=getattr(module, "context", None),
        torch_differs="" if module.EXPECT["correct"] else "torch's result differs from eager's",
        file=module.__file__,
        **known,
    )


def fresh(program: Program) -> Program:
    """Returns the same program from a new execution of its file."""
    module = load(program.file)
    if hasattr(module, "PROGRAMS"):
        return next(found for found in module.PROGRAMS if found.name == program.name)
    return from_case(module)


@dataclass
class Outcome:
    """What a run did, in values that later calls can't change."""

    results: list[Any] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    printed: str = ""
    warned: list[str] = field(default_factory=list)
    state: Any = None
    random: Any = None
    tracebacks: list[list[int]] = field(default_factory=list)
    outcomes: list[tuple[str, ...] | None] = field(default_factory=list)
    backend_calls: int = 0
    figures: Any = None


@dataclass(frozen=True)
class Raised:
    """An exception that left a call."""

    type: str
    message: str


def frozen(value: Any, depth: int = 0) -> Any:
    """Returns a copy of ``value`` that later calls don't change: tensors cloned, objects as structures."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_nested or value.is_quantized:
            return (type(value).__name__, str(value.layout), str(value))
        if type(value) is not torch.Tensor and not isinstance(value, torch.nn.Parameter):
            parts = value.__tensor_flatten__()[0] if hasattr(value, "__tensor_flatten__") else ()
            made_of = [frozen(getattr(value, part), depth + 1) for part in parts]
            return (type(value).__name__, tuple(value.shape), str(value.dtype), made_of)
        copied = value.detach().clone()
        return copied.requires_grad_(value.requires_grad) if value.is_floating_point() else copied
    if isinstance(value, torch.nn.Module):
        return module_state(value)
    if depth > 6:
        return type(value).__name__
    if isinstance(value, dict):
        items = [(repr(key), frozen(found, depth + 1)) for key, found in value.items()]
        extra = ()
        if dataclasses.is_dataclass(value):
            extra = frozen(
                {found.name: getattr(value, found.name) for found in dataclasses.fields(value)}, depth + 1
            )
        return (type(value).__name__, items, extra)
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(frozen(found, depth + 1) for found in value)]
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, sorted(map(repr, value)))
    if isinstance(value, enum.Enum):
        return (type(value).__name__, value.name)
    if isinstance(value, (int, float, complex, str, bytes, type(None), torch.dtype, torch.device)):
        return value
    if type(value).__name__ == "ndarray" and value.dtype.kind in "biufc":
        return (str(value.dtype), torch.from_numpy(value.copy()))
    if type(value).__module__ == "numpy":
        return (type(value).__name__, value.tolist() if hasattr(value, "tolist") else repr(value))
    if isinstance(value, types.SimpleNamespace) or type(value).__module__.startswith("parity_"):
        if not isinstance(value, (type, types.FunctionType)) and hasattr(value, "__dict__"):
            return (type(value).__name__, frozen(vars(value), depth + 1))
    return type(value).__name__


def module_state(module: torch.nn.Module) -> dict[str, Any]:
    """Returns parameters, buffers and plain attributes of a module, by dotted name."""
    state: dict[str, Any] = {}
    for name, found in [*module.named_parameters(), *module.named_buffers()]:
        state[name] = (found.detach().clone(), None if found.grad is None else found.grad.clone())
    for prefix, part in module.named_modules():
        for name, found in vars(part).items():
            if name[0] != "_" and isinstance(
                found, (int, float, str, list, tuple, dict, type(None), torch.Tensor)
            ):
                state[f"{prefix}.{name}"] = frozen(found)
    return state


def same(one: Any, other: Any, where: str) -> str:
    """Returns where two frozen values differ, or an empty string."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        for name in ("dtype", "shape", "requires_grad", "device"):
            if getattr(one, name) != getattr(other, name):
                return f"{where}: {name} {getattr(other, name)} instead of {getattr(one, name)}"
        if one.layout == torch.strided and one.stride() != other.stride():
            return f"{where}: stride {other.stride()} instead of {one.stride()}"
        if one.is_meta or torch.allclose(
            one.detach().cpu(), other.detach().cpu(), 1e-5, 1e-6, equal_nan=True
        ):
            return ""
        return f"{where}: {other.flatten()[:4].tolist()} instead of {one.flatten()[:4].tolist()}"
    if type(one) is not type(other):
        return f"{where}: {type(other).__name__} {other!r:.60} instead of {type(one).__name__} {one!r:.60}"
    if isinstance(one, dict):
        if list(one) != list(other):
            return f"{where}: keys {list(other)} instead of {list(one)}"
        return next((found for key in one if (found := same(one[key], other[key], f"{where}.{key}"))), "")
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return f"{where}: {len(other)} items instead of {len(one)}"
        pairs = enumerate(zip(one, other))
        return next((found for i, (a, b) in pairs if (found := same(a, b, f"{where}[{i}]"))), "")
    equal = one == other or (one != one and other != other)
    return "" if equal else f"{where}: {other!r:.100} instead of {one!r:.100}"


def differences(
    plain: Outcome, compiled: Outcome, *, tracebacks: bool = True, messages: bool = True
) -> list[str]:
    """Returns every way in which a run differs from another's (plain Python's); empty when it doesn't."""
    found = [
        same(a, b, f"call {i}")
        for i, (a, b) in enumerate(zip(plain.results, compiled.results, strict=True))
        if messages or not (isinstance(a, Raised) and isinstance(b, Raised))
    ]
    found += [
        same(a, b, f"arguments of call {i}")
        for i, (a, b) in enumerate(zip(plain.arguments, compiled.arguments, strict=True))
    ]
    found.append(same(plain.printed, compiled.printed, "printed"))
    found.append(same(plain.warned, compiled.warned, "warned"))
    found.append(same(plain.state, compiled.state, "state"))
    found.append(same(plain.random, compiled.random, "random state"))
    if tracebacks:
        found.append(same(plain.tracebacks, compiled.tracebacks, "traceback lines"))
    return [text for text in found if text]


def seed(number: int) -> None:
    """Seeds torch's, Python's and NumPy's generators."""
    torch.manual_seed(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)


def call_all(
    program: Program, fn: Any, calls: list, target: Callable, outcome: Outcome, figures: Any
) -> None:
    """Makes the calls of a program, freezing what each returned, raised and changed."""
    for i, arguments in enumerate(calls):
        if program.before:
            program.before(i, fn)
        keywords = program.kwargs(i) if program.kwargs else {}
        seen = figures.calls_so_far() if figures is not None else 0
        with program.around(i) if program.around else contextlib.nullcontext():
            try:
                result = target(*arguments, **keywords)
            except Exception as error:
                result = Raised(type(error).__name__, str(error)[:300])
                passed = traceback.extract_tb(error.__traceback__)
                outcome.tracebacks.append([f.lineno or 0 for f in passed if f.filename == program.file])
        if figures is not None:
            outcome.outcomes.append(figures.outcomes_since(seen))
        outcome.results.append(result if isinstance(result, Raised) else frozen(result))
        outcome.arguments.append(frozen([arguments, keywords]))


def run(program: Program, engine: Any = None) -> Outcome:
    """Runs a program from a fresh execution of its file, plainly or under an engine.

    Args:
        program: which one; only its name and file are used.
        engine: from ``parity.engines``; None runs plain Python.
    """
    program = fresh(program)
    outcome = Outcome()

    def backend(gm: torch.fx.GraphModule, example_inputs: list) -> Callable:
        outcome.backend_calls += 1
        return gm.forward

    def compiled(fn: Any, **keywords: Any) -> Any:
        return (
            fn
            if engine is None
            else engine.compile(fn, **{"backend": backend, **program.compile, **keywords})
        )

    printed = io.StringIO()
    stack = contextlib.ExitStack()
    with stack:
        if engine is not None:
            engine.reset()
            stack.callback(engine.reset)
            stack.enter_context(engine.patched())
        stack.enter_context(contextlib.redirect_stdout(printed))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        if program.setup:
            program.setup()
        if program.teardown:
            stack.callback(program.teardown)
        seed(0)
        fn, calls = program.make()
        seed(1)
        figures = stack.enter_context(engine.record()) if engine is not None else None
        target = program.build(fn, compiled) if program.build else compiled(fn)
        call_all(program, fn, calls, target, outcome, figures)
        states = torch.get_rng_state(), random.getstate()
        outcome.random = [states[0], hash(states[1])]
        outcome.state = [frozen(fn), program.state(fn) if program.state else None]
        if figures is not None:
            outcome.figures = figures.finish()
    outcome.printed = printed.getvalue()
    outcome.warned = [str(found.message) for found in caught if found.filename == program.file]
    return outcome
