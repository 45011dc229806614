"""A program for each reason, named after it in `dynacheck.reasons`. The page of reasons shows them as they stand here.

Each may use what stands in the next lines, and is run while it is observed.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import io
import logging
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import dynacheck
import torch
from dynacheck import reasons
from dynacheck.translate import translate
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

compiled = functools.partial(dynacheck.compile, backend="eager")
x = torch.arange(4.0)
PROGRAMS: dict[str, Callable[[], Any]] = {}
"""By the id of the reason."""


def _gives(reason: reasons.Reason) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(program: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[reason.id] = program
        return program

    return add


@_gives(reasons.DATA_DEPENDENT_BRANCH)
def data_dependent_branch():
    @compiled
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    f(x)


@_gives(reasons.SCALAR_OUTPUT)
def scalar_output():
    @compiled
    def f(x):
        return x / x.max().item()

    f(x)


@_gives(reasons.SYMBOLIC_NUMBER)
def symbolic_number():
    @functools.partial(compiled, dynamic=True)
    def f(x):
        name = str(x.shape[0])
        return x * len(name)

    f(x)


@_gives(reasons.BACKWARD_HOOKS)
def backward_hooks():
    layer = torch.nn.Linear(4, 4)
    layer.register_full_backward_hook(lambda module, gradients, given: None)

    @compiled
    def f(x):
        return layer(x).relu()

    f(x.clone().requires_grad_())


@_gives(reasons.IMPORT)
def imported():
    @compiled
    def f(x):
        with contextlib.suppress(ImportError):
            import no_such_module  # type: ignore[import-not-found]  # noqa: F401
        return x + 1

    f(x)


@_gives(reasons.FINALIZER)
def finalizer_raises():
    class Handle:
        def __del__(self):
            raise ValueError("closed twice")

    @compiled
    def f(x):
        handle = Handle()
        y = x + 1
        del handle
        return y

    with contextlib.redirect_stderr(io.StringIO()):  # where Python prints what the finalizer raises
        f(x)


@_gives(reasons.PRINT)
def prints():
    @compiled
    def f(x):
        y = x + 1
        print("shape", y.shape)
        return y * 2

    f(x)


@_gives(reasons.EXPLICIT_BREAK)
def explicit_break():
    @compiled
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    f(x)


@_gives(reasons.DISABLED_CALL)
def disabled_call():
    @torch.compiler.disable
    def as_it_is(x):
        return x * 2

    @compiled
    def f(x):
        return as_it_is(x + 1)

    f(x)


@_gives(reasons.SKIPPED_CALL)
def skipped_call():
    @compiled
    def f(x):
        return x + sys.getsizeof(1)

    f(x)


@_gives(reasons.UNKNOWN_CALL)
def unknown_call():
    @compiled
    def f(x):
        made = type("Made", (), {"weight": x})
        return x + 1, made

    f(x)


@_gives(reasons.UNKNOWN_ATTRIBUTE)
def unknown_attribute():
    class Config:
        scale = 2

    @compiled
    def f(x):
        return x * Config.__basicsize__

    f(x)


@_gives(reasons.UNKNOWN_OPERATION)
def unknown_operation():
    @compiled
    def f(x, items):
        return x + next(items)

    f(x, iter([1, 2, 3]))


@_gives(reasons.UNKNOWN_OPCODE)
def unknown_opcode():
    # No function has an instruction of the interactive interpreter; this one gets it.
    def f(x):
        None.__doc__  # noqa: B018
        +x  # noqa: B018
        return x + 1

    old, new = (("POP_TOP", 0), ("PRINT_EXPR", 0))
    if sys.version_info >= (3, 12):
        old, new = (("CALL_INTRINSIC_1", 5), ("CALL_INTRINSIC_1", 1))
    units = [bytes((dis.opmap[name], argument)) for name, argument in (old, new)]
    text = f.__code__.co_code
    at = next(i for i in range(0, len(text), 2) if text[i : i + 2] == units[0])
    code = f.__code__.replace(co_code=text[:at] + units[1] + text[at + 2 :])
    compiled(types.FunctionType(code, {}))(x)


@_gives(reasons.UNKNOWN_VALUE)
def unknown_value():
    class Config:
        scale = 2

    config = Config()

    @compiled
    def f(x, config):
        return x * config.scale

    f(x, weakref.proxy(config))


@_gives(reasons.DYNAMIC_SHAPE_OPERATOR)
def dynamic_shape_operator():
    @compiled
    def f(x):
        return x[x > 0] * 2

    f(x)


@_gives(reasons.DATA_DEPENDENT_OPERATOR)
def data_dependent_operator():
    @compiled
    def f(x):
        return x + 1 if torch.equal(x, x * x) else x - 1

    f(x)


@_gives(reasons.OPERATOR_FAILED)
def operator_failed():
    @compiled
    def f(x):
        return x.to_sparse() * 2

    f(x)


@_gives(reasons.RNN)
def recurrent_module():
    recurrent = torch.nn.GRU(4, 4)

    @compiled
    def f(x):
        return recurrent(x[None, None])[0] + 1

    f(x)


@_gives(reasons.CONTEXT_MANAGER)
def context_manager():
    lock = threading.Lock()

    @compiled
    def f(x):
        with lock:
            return x + 1

    f(x)


@_gives(reasons.LOGGING_CALL)
def logging_call():
    @compiled
    def f(x):
        logging.getLogger("model").debug("shape %s", x.shape)
        return x + 1

    f(x)


@_gives(reasons.BACKWARD_CALL)
def backward_call():
    weight = torch.ones(4, requires_grad=True)

    @compiled
    def f(x):
        (x * weight).sum().backward()

    f(x)


@_gives(reasons.FRAME_INSPECTION)
def frame_inspection():
    @compiled
    def f(x):
        return x + len(dir())

    f(x)


@_gives(reasons.GENERATOR_BREAK)
def generator_break():
    def pieces(x):
        print("first")
        yield x + 1

    @compiled
    def f(x):
        return sum(pieces(x))

    f(x)


@_gives(reasons.RAISE_IN_TRY)
def raise_in_try():
    @compiled
    def f(x, index):
        x.add_(1)
        try:
            return x[index]
        except IndexError:
            return x

    f(x.clone(), torch.tensor([9]))


@_gives(reasons.TENSOR_KIND)
def tensor_kind():
    @compiled
    def f(x):
        return x * 2

    f(x.to_sparse())


@_gives(reasons.FUNCTION_SIDE_EFFECT)
def function_side_effect():
    @compiled
    def f(x):
        kept = []

        def block(v):
            kept.append(v * 2)
            return v.sin()

        return checkpoint(block, x, use_reentrant=False), kept

    f(x)


@_gives(reasons.ESCAPED_VALUE)
def escaped_value():
    class Carries(Exception):
        pass

    def block(v):
        raise Carries(v * 2)

    @compiled
    def f(x):
        try:
            checkpoint(block, x, use_reentrant=False)
        except Carries as error:
            return error.args[0] + 1

    f(x)


@_gives(reasons.FUNCTION_FORM)
def function_form():
    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(context, v):
            context.mark_dirty(v)
            return v.mul_(2)

        @staticmethod
        def backward(context, grad):
            return grad * 2

    @compiled
    def f(x):
        return Doubles.apply(x + 1)

    f(x.clone().requires_grad_())


@_gives(reasons.PYTHON_RESULT)
def python_result():
    @compiled
    def f(x):
        return x + 1 if torch.is_same_size(x, x) else x - 1

    f(x)


@_gives(reasons.CREATES_LEAF)
def creates_leaf():
    @compiled
    def f(x):
        return x + torch.ones(4, requires_grad=True)

    f(x)


@_gives(reasons.RESIZE)
def resize():
    @compiled
    def f(x):
        return (x + 1).resize_(2, 2)

    f(x)


@_gives(reasons.UNCAUGHT_RAISE)
def uncaught_raise():
    @compiled
    def f(x):
        if x.shape[0] < 8:
            raise ValueError(f"too small: {x.shape[0]}")
        return x + 1

    with contextlib.suppress(ValueError):
        f(x)


@_gives(reasons.BREAK_IN_LOOP)
def break_in_loop():
    @compiled
    def f(x):
        for step in range(2):
            print("step", step)
            x = x + 1
        return x

    f(x)


@_gives(reasons.BREAK_IN_TRY)
def break_in_try():
    @compiled
    def f(x):
        try:
            print("shape", x.shape)
        except OSError:
            pass
        return x + 1

    f(x)


@_gives(reasons.BREAK_IN_WITH)
def break_in_with():
    @contextlib.contextmanager
    def timed():
        yield

    @compiled
    def f(x):
        with timed():
            print("shape", x.shape)
        return x + 1

    f(x)


@_gives(reasons.BREAK_NOT_RESUMABLE)
def break_not_resumable():
    def numbers():
        yield 1
        yield 2

    @compiled
    def f(x):
        made = numbers()
        y = x + next(made)
        print("between")
        return y + next(made)

    f(x)


@_gives(reasons.INTERNAL)
def internal():
    # A fault of ours; here one is put in.
    fault = mock.patch.object(translate, "computes", side_effect=AssertionError("a fault"))
    f = compiled(lambda x: x + 1)
    with fault, dynacheck.configured(raise_internal_errors=False):
        f(x)
    f(x)


@_gives(reasons.TOO_DEEP)
def too_deep():
    def deeper(x, depth):
        return x if depth == 0 else deeper(x + 1, depth - 1)

    compiled(deeper)(x, sys.getrecursionlimit() // 3)


@_gives(reasons.LIMIT)
def limit():
    @compiled(recompile_limit=1)
    def f(x, text):
        return x + len(text)

    f(x, "a")
    f(x, "bb")


@_gives(reasons.STANCE)
def stance():
    @compiled
    def f(x):
        return x + 1

    with dynacheck.set_stance("force_eager"):
        f(x)


@_gives(reasons.SKIP_FILE)
def skip_file():
    @compiled
    def f(x):
        numbers = [1, 2]
        random.shuffle(numbers)
        return x + numbers[0]

    f(x)


@_gives(reasons.NO_TENSOR_OPERATIONS)
def no_tensor_operations():
    @compiled
    def f(x):
        return x.shape[0]

    f(x)


@_gives(reasons.DISABLED)
def disabled():
    @torch.compiler.disable
    def as_it_is(x):
        return x * 2

    @compiled
    def f(x):
        return as_it_is(x + 1)

    f(x)


@_gives(reasons.AMBIENT_STATE)
def ambient_state():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @compiled
    def f(x):
        return x + 1

    with Mode():
        f(x)


@_gives(reasons.GRAPH_RAISED)
def graph_raised():
    @compiled
    def f(x, index):
        try:
            return x[index]
        except IndexError:
            return x

    f(x, torch.tensor([9]))
