"""`compare=True`: every compiled call also runs eagerly, on copies of all that it starts from.

The copies are made before the call, so that what the test changed in between (a hook, a setting, a closure's
variable) is the same on both sides. What can't be copied isn't compared, and is counted.
"""

from __future__ import annotations

import contextlib
import functools
import io
import random
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from pytest_dynacheck._check import Outcome, same_run
from pytest_dynacheck._sides import Difference, Same, clone, same_state, state_of, with_state
from pytest_dynacheck._words import name_of
from pytest_dynacheck._world import World

_CUT = 100


class Comparison:
    """The compiled calls of one test, held against eager ones.

    Attributes:
        compared: how many calls were.
        left_out: how many were not, by why.
        difference: what differed first, with the call; None if nothing did.
    """

    def __init__(self) -> None:
        self.compared = 0
        self.left_out: Counter[str] = Counter()
        self.difference: str | None = None
        self._here = threading.local()

    def lines(self) -> list[str]:
        """What there is to tell: how many calls were compared, what differed first, why others weren't."""
        said = [f"compared with eager: {_calls(self.compared)}"]
        said += [] if self.difference is None else [self.difference]
        return said + [f"not compared: {_calls(number)}: {why}" for why, number in self.left_out.items()]

    def around(self, fn: Any, compiled: Any) -> Any:
        """The compiled form, which from now on compares its calls.

        Args:
            fn: what was compiled.
            compiled: its compiled form; a module stays the object that it is.
        """
        import torch

        if isinstance(compiled, torch.nn.Module):
            inner = compiled.__dict__["forward"]
            compiled.__dict__["forward"] = self._wrapper(fn, inner)
            return compiled
        return self._wrapper(fn, compiled)

    def _wrapper(self, fn: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compiled)
        def compared(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if getattr(self._here, "busy", False):  # a compiled call inside of one that is compared
                return fn(*args, **kwargs) if self._here.eager else compiled(*args, **kwargs)
            self._here.busy, self._here.eager = True, False
            try:
                return self._both(fn, compiled, args, kwargs)
            finally:
                self._here.busy = False

        return compared

    def _both(self, fn: Any, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        try:
            eager = Copy(fn, args, kwargs)
            at_first = eager.shared.now()
        except Exception as error:
            self.left_out[f"{type(error).__name__}: {error}"[:_CUT]] += 1
            return compiled(*args, **kwargs)
        before = _Randomness()
        try:
            result, raised = compiled(*args, **kwargs), None
        except Exception as error:
            result, raised = None, error
        after, at_last = _Randomness(), eager.shared.now()
        before.put()
        eager.shared.put(at_first)
        self._here.eager = True
        expected = eager.run()
        self._here.eager = False
        after.put()
        eager.shared.put(at_last)
        self.compared += 1
        self._judge(eager, expected, (result, raised), (fn, args, kwargs))
        if raised is not None:
            raise raised
        return result

    def _judge(self, eager: Copy, expected: Outcome, found: Outcome, real: tuple[Any, Any, Any]) -> None:
        if self.difference is not None:
            return
        fn, args, kwargs = real
        try:
            same = Same(gradients=False)  # the test's backward comes after the call
            same_run(same, expected, found)
            same.values(eager.args, args, "arguments")
            same.values(eager.kwargs, kwargs, "keyword arguments")
            eager.same_state(same, fn)
        except Difference as difference:
            number = self.compared + self.left_out.total()
            self.difference = f"call {number} of {name_of(fn)} differs from eager: {difference}"


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"


class Copy:
    """A call of a function on copies of its arguments and of the state that it has.

    Args:
        fn: function, method or module.
        args: positional arguments.
        kwargs: keyword arguments.

    Attributes:
        shared: what both the function and its copy may change: what hooks and other functions write.

    Raises:
        Exception: what a value that can't be copied raises.
    """

    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        copied: dict[int, Any] = {}
        own, self.args, self.kwargs = clone((state_of(fn), args, kwargs), copied)
        self.shared = World((fn, args, kwargs), copied)
        self.fn = with_state(fn, own)

    def run(self) -> Outcome:
        """Run it eagerly; what it prints and warns of was told by the compiled call."""
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.fn(*self.args, **self.kwargs), None
            except Exception as error:
                return None, error

    def same_state(self, same: Same, fn: Any) -> None:
        """Compare what the call left in the function's own state.

        Raises:
            Difference: it differs.
        """
        same_state(same, self.fn, fn)


class _Randomness:
    """The state of the random number generators in use."""

    def __init__(self) -> None:
        torch: Any = sys.modules["torch"]
        numpy = sys.modules.get("numpy")
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        self._states = torch.get_rng_state(), random.getstate()
        self._numpy = None if numpy is None else numpy.random.get_state()

    def put(self) -> None:
        torch: Any = sys.modules["torch"]
        torch.set_rng_state(self._states[0])
        random.setstate(self._states[1])
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
