"""Context managers that were made before the frame, and what contextlib makes of them (row 41)."""

import contextlib
import threading
import types

import torch
from parity.harness import registry

PROGRAMS, program = registry()


class Scope:
    def __enter__(self):
        return 1

    def __exit__(self, *exc):
        return None


class Closed:
    def close(self):
        self.closed = True

    def number(self):
        return 2


class Decorating(contextlib.ContextDecorator, Scope):
    pass


class Module(torch.nn.Module):
    def __init__(self, manager):
        super().__init__()
        self.manager = manager

    def forward(self, x):
        with self.manager:
            return x + 1


@contextlib.contextmanager
def scope():
    yield 1


EXISTING = {
    "scope": Scope, "no_grad": torch.no_grad, "enable_grad": torch.enable_grad, "autocast": lambda: torch.autocast("cpu"),
    "inference_mode": torch.inference_mode, "set_grad_enabled": lambda: torch.set_grad_enabled(True),
    "nullcontext": contextlib.nullcontext, "nullcontext_of_one": lambda: contextlib.nullcontext(1),
    "record_function": lambda: torch.profiler.record_function("a"), "suppress": lambda: contextlib.suppress(KeyError),
    "exit_stack": contextlib.ExitStack, "closing": lambda: contextlib.closing(Closed()),
    "decorating": Decorating, "lock": threading.Lock, "device": lambda: torch.device("cpu"),
}  # fmt: skip
ENTERED = {"autocast", "nullcontext", "record_function"}  # torch enters these


def _add(name, make, entered):
    figures = (
        {"graphs": 1, "breaks": 0, "entries": 1} if entered else {"graphs": 0, "breaks": 1, "entries": 0}
    )

    @program(f"existing_{name}", 41, **figures)
    def _():
        manager = make()

        def f(x):
            with manager:
                y = x + 1
            return y

        return f, [(torch.ones(3),), (torch.ones(3),)]

    @program(f"existing_{name}_of_a_module", 41, **figures)
    def _():
        return Module(make()), [(torch.ones(3),), (torch.ones(3),)]


for _name, _make in EXISTING.items():
    _add(_name, _make, _name in ENTERED)

BODIES = {
    "exit_stack_of_new_managers": (
        "with contextlib.ExitStack() as s:\n    y = x + s.enter_context(scope()) + s.enter_context(Scope())", 1, 0, 1),
    "exit_stack_of_an_existing_manager": (
        "with contextlib.ExitStack() as s:\n    y = x + s.enter_context(KEPT)", 0, 1, 0),
    "exit_stack_pushed": ("with contextlib.ExitStack() as s:\n    s.push(KEPT)\n    y = x + 1", 0, 1, 0),
    "exit_stack_of_no_grad": (
        "with contextlib.ExitStack() as s:\n    s.enter_context(torch.no_grad())\n    y = x + 1", 0, 1, 0),
    "exit_stack_with_a_callback": ("with contextlib.ExitStack() as s:\n    s.callback(len, [])\n    y = x + 1", 1, 0, 1),
    "existing_exit_stack_used": ("STACK.enter_context(Scope())\ny = x + 1\nSTACK.close()", 1, 0, 1),
    "entered_by_hand": ("y = x + KEPT.__enter__()\nKEPT.__exit__(None, None, None)", 1, 0, 1),
    "new_and_local": ("c = Scope()\nwith c as n:\n    y = x + n", 1, 0, 1),
    "made_before_a_break": ("c = Scope()\ntorch._dynamo.graph_break()\nwith c:\n    y = x + 1", 0, 2, 1),
    "autocast_made_before_a_break": (
        "c = torch.autocast('cpu')\ntorch._dynamo.graph_break()\nwith c:\n    y = x + 1", 1, 1, 2),
    "closing_in_the_frame": ("with contextlib.closing(Closed()) as c:\n    y = x + 1", 0, 2, 1),
    "redirected_in_the_frame": ("with contextlib.redirect_stdout(None):\n    y = x + 1", 0, 2, 1),
    "method_made_by_hand": ("y = x + types.MethodType(Closed.number, Closed())()", 1, 1, 2),
    "suppressing": ("with contextlib.suppress(KeyError):\n    y = x + 1\n    {}[1]", 1, 0, 1),
}  # fmt: skip


def _add_body(name, body, graphs, breaks, entries, recompiles=0):
    @program(name, 41, graphs=graphs, breaks=breaks, entries=entries, recompiles=recompiles)
    def _():
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        scope_ = {**globals(), "types": types, "KEPT": Scope(), "STACK": contextlib.ExitStack(), "seen": []}
        exec(compile(f"def f(x):\n{lines}    return y", __file__, "exec"), scope_)
        return scope_["f"], [(torch.ones(3),), (torch.ones(3),)]


for _name, _row in BODIES.items():
    _add_body(_name, *_row)


@torch.set_grad_enabled(False)
def grad_set(x):
    return x * 2


torch.set_grad_enabled(True)


@torch.no_grad()
def without_grad(x):
    return x * 2


@program("decorated_by_no_grad", 41, graphs=1, breaks=0, entries=1)
def _():
    def f(x):
        return without_grad(x) + 1

    return f, [(torch.ones(3),), (torch.ones(3),)]


@program("decorated_by_set_grad_enabled", 41, graphs=3, breaks=1, entries=3)
def _():
    def f(x):
        y = x + 1
        return grad_set(y) + 1

    return f, [(torch.ones(3),), (torch.ones(3),)]


@program(
    "grad_mode_set_by_decorating",
    41,
    graphs=2,
    recompiles=1,
    torch_differs="torch leaves the grad mode changed behind the frame",
)
def _():
    def f(x):
        with torch.no_grad():
            sine = torch.set_grad_enabled(True)(lambda v: v.sin())
            modes = [torch.is_grad_enabled()]
        y = sine(x)
        modes.append(torch.is_grad_enabled())
        return y, modes

    return f, [(torch.ones(3, requires_grad=True),), (torch.ones(3, requires_grad=True),)]


@program(
    "inference_mode_decorates_without_a_call", 41, graphs=0, torch_differs="torch raises an AssertionError"
)
def _():
    def f(x):
        @torch.inference_mode
        def plus(v):
            return v + 1

        return plus(x), x * 2

    return f, [(torch.ones(3),), (torch.ones(3),)]
