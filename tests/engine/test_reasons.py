"""The table of reasons is complete: each is given by a program, and whoever adds one adds a row here."""

from __future__ import annotations

import contextlib
import dis
import logging
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import dynacheck
import pytest
import torch
from dynacheck import config, events, reasons
from dynacheck.translate import translate
from torch._higher_order_ops import while_loop
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

ROWS: dict[str, Callable[[], Any]] = {}
"""By reason: what gives it, run while observed."""
X = torch.arange(4.0)
LOCK = threading.Lock()
LSTM = torch.nn.LSTM(4, 4)


def gives(reason: reasons.Reason) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(row: Callable[[], Any]) -> Callable[[], Any]:
        ROWS[reason.id] = row
        return row

    return add


def run(fn: Any, *args: Any, **options: Any) -> Any:
    return dynacheck.compile(fn, backend="eager", **options)(*args)


@gives(reasons.DATA_DEPENDENT_BRANCH)
def data_dependent_branch():
    run(lambda x: x + 1 if x.sum() > 0 else x - 1, X)


@gives(reasons.SCALAR_OUTPUT)
def scalar_output():
    run(lambda x: x * x.sum().item(), X)


@gives(reasons.PRINT)
def prints():
    run(lambda x: [x + 1, print(end="")], X)


@gives(reasons.EXPLICIT_BREAK)
def explicit_break():
    run(lambda x: [x + 1, dynacheck.graph_break()], X)


@dynacheck.disable
def disabled(x):
    return x * 2


@gives(reasons.DISABLED_CALL)
def disabled_call():
    run(lambda x: disabled(x + 1), X)


@gives(reasons.SKIPPED_CALL)
def skipped_call():
    run(lambda x: [x + 1, sys.getsizeof(1)], X)


@gives(reasons.UNKNOWN_CALL)
def unknown_call():
    run(lambda x: [x + 1, type("Made", (), {})], X)


class Slotted:
    pass


@gives(reasons.UNKNOWN_ATTRIBUTE)
def unknown_attribute():
    run(lambda x: [x + 1, Slotted.__dict__], X)


@gives(reasons.UNKNOWN_OPERATION)
def unknown_operation():
    run(lambda x, box: [x + 1, repr(box)], X, Slotted())


def with_instruction(fn: Any, before: tuple[str, int], after: tuple[str, int]) -> Any:
    """The function with one instruction replaced by another of the same effect on the stack."""
    units = [bytes((dis.opmap[name], argument)) for name, argument in (before, after)]
    code = fn.__code__
    at = next(i for i in range(0, len(code.co_code), 2) if code.co_code[i : i + 2] == units[0])
    text = code.co_code[:at] + units[1] + code.co_code[at + 2 :]
    return types.FunctionType(code.replace(co_code=text), fn.__globals__)


@gives(reasons.UNKNOWN_OPCODE)
def unknown_opcode():
    """What the interactive interpreter does with a value: no function that is written has it."""

    def fn(x):
        None.__doc__
        +x
        return x + 1

    if sys.version_info >= (3, 12):
        fn = with_instruction(fn, ("CALL_INTRINSIC_1", 5), ("CALL_INTRINSIC_1", 1))
    else:
        fn = with_instruction(fn, ("POP_TOP", 0), ("PRINT_EXPR", 0))
    run(fn, X)


@gives(reasons.UNKNOWN_VALUE)
def unknown_value():
    box = Slotted()
    run(lambda x, proxy: [x + 1, proxy.__class__], X, weakref.proxy(box))


@gives(reasons.DYNAMIC_SHAPE_OPERATOR)
def dynamic_shape_operator():
    run(lambda x: x.nonzero() + 1, X)


@gives(reasons.DATA_DEPENDENT_OPERATOR)
def data_dependent_operator():
    run(lambda x: [x + 1, torch.equal(x, x)], X)


@gives(reasons.OPERATOR_FAILED)
def operator_failed():
    run(lambda x: x.to_sparse(), X)


@gives(reasons.RNN)
def rnn():
    run(lambda x: LSTM(x[None, None])[0], X)


@gives(reasons.CONTEXT_MANAGER)
def context_manager():
    def fn(x):
        with LOCK:
            return x + 1

    run(fn, X)


@gives(reasons.LOGGING_CALL)
def logging_call():
    run(lambda x: [x + 1, logging.getLogger("dynacheck.none").debug("x")], X)


@gives(reasons.BACKWARD_CALL)
def backward_call():
    run(lambda x: (x * 2).sum().backward(), X.clone().requires_grad_())


@gives(reasons.FRAME_INSPECTION)
def frame_inspection():
    run(lambda x: [x + 1, locals()], X)


@gives(reasons.GENERATOR_BREAK)
def generator_break():
    def numbers(x):
        print(end="")
        yield x + 1

    run(lambda x: [y * 2 for y in numbers(x)], X)


@gives(reasons.RAISE_IN_TRY)
def raise_in_try():
    def fn(x, index):
        x.add_(1)
        try:
            return x[index]
        except IndexError:
            return x

    run(fn, X.clone(), torch.tensor([9]))


@gives(reasons.TENSOR_KIND)
def tensor_kind():
    run(lambda x: x * 2, X.to_sparse())


@gives(reasons.FUNCTION_SIDE_EFFECT)
def function_side_effect():
    def fn(x):
        kept = []
        return checkpoint(lambda v: kept.append(v * 2) or v.sin(), x, use_reentrant=False), kept

    run(fn, X)


class Carries(Exception):
    pass


@gives(reasons.ESCAPED_VALUE)
def escaped_value():
    def inner(x):
        raise Carries(x * 2)

    def fn(x):
        try:
            checkpoint(inner, x, use_reentrant=False)
        except Carries as error:
            return error.args[0] + 1

    run(fn, X)


@gives(reasons.FUNCTION_FORM)
def function_form():
    run(lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (0, x)), X)


@gives(reasons.PYTHON_RESULT)
def python_result():
    run(lambda x: [x + 1, torch.is_same_size(x, x)], X)


@gives(reasons.CREATES_LEAF)
def creates_leaf():
    run(lambda x: x + torch.ones(4, requires_grad=True), X)


@gives(reasons.RESIZE)
def resize():
    run(lambda x: (x + 1).resize_(2), X)


@gives(reasons.UNCAUGHT_RAISE)
def uncaught_raise():
    def fn(x):
        raise ValueError(str(x.shape))

    with contextlib.suppress(ValueError):
        run(fn, X)


@gives(reasons.BREAK_IN_LOOP)
def break_in_loop():
    def fn(x):
        for _ in range(2):
            print(end="")
        return x + 1

    run(fn, X)


@gives(reasons.BREAK_IN_TRY)
def break_in_try():
    def fn(x):
        try:
            print(end="")
        except ValueError:
            pass
        return x + 1

    run(fn, X)


@contextlib.contextmanager
def manager():
    yield


@gives(reasons.BREAK_IN_WITH)
def break_in_with():
    def fn(x):
        with manager():
            print(end="")
        return x + 1

    run(fn, X)


@gives(reasons.BREAK_NOT_RESUMABLE)
def break_not_resumable():
    def numbers():
        yield 1
        yield 2

    def fn(x):
        made = numbers()
        y = x + next(made)
        print(end="")
        return y + next(made)

    run(fn, X)


def recursive(x, depth):
    return x if depth == 0 else recursive(x + 1, depth - 1)


@gives(reasons.TOO_DEEP)
def too_deep():
    run(recursive, X, sys.getrecursionlimit() // 3)


@gives(reasons.INTERNAL)
def internal():
    def fail(attempt):
        raise AssertionError("a fault")

    fn = dynacheck.compile(lambda x: x + 1, backend="eager")
    with pytest.MonkeyPatch.context() as patch, dynacheck.configured(raise_internal_errors=False):
        patch.setattr(translate, "computes", fail)
        fn(X)
        fn(X)


@gives(reasons.LIMIT)
def limit():
    fn = dynacheck.compile(lambda x, text: x + len(text), backend="eager", recompile_limit=1)
    for text in ("a", "bb"):
        fn(X, text)


@gives(reasons.STANCE)
def stance():
    with dynacheck.set_stance("force_eager"):
        run(lambda x: x + 1, X)


@gives(reasons.SKIP_FILE)
def skip_file():
    """A break runs a function of the standard library as it is."""
    run(lambda x: [x + 1, random.shuffle([])], X)


@gives(reasons.DISABLED)
def disabled_frame():
    torch_disabled = torch.compiler.disable(lambda x: x * 2)
    run(lambda x: torch_disabled(x + 1), X)


@gives(reasons.NO_TENSOR_OPERATIONS)
def no_tensor_operations():
    run(lambda x: x, X)


@gives(reasons.GRAPH_RAISED)
def graph_raised():
    def fn(x, index):
        try:
            return x[index]
        except IndexError:
            return x

    run(fn, X, torch.tensor([9]))


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@gives(reasons.AMBIENT_STATE)
def ambient_state():
    with Mode():
        run(lambda x: x + 1, X)


def test_every_reason_has_a_program():
    assert set(ROWS) == {reason.id for reason in reasons.all_reasons()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reason", reasons.all_reasons(), ids=lambda reason: reason.id)
def test_reason(reason, engine):
    seen: list[events.Event] = []
    config.set_base(raise_internal_errors=False)
    events.observers.add(seen.append)
    try:
        ROWS[reason.id]()
    finally:
        events.observers.remove(seen.append)
    assert reason.id in {getattr(event, "reason", None) for event in seen}, seen
    told = [e for e in seen if getattr(e, "reason", None) == reason.id and getattr(e, "message", None)]
    assert all("{" not in e.message for e in told)


def test_left_alone_is_reported(engine):
    for _ in range(2):  # told again to whom observes later
        with dynacheck.observe() as report:
            skip_file()
        found = [s for s in report.left_alone if s.reason == "DC303"]
        assert [s.function for s in found] == ["Random.shuffle"]
        assert "random.py belongs to the standard library" in found[0].message
