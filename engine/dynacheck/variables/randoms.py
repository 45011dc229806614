"""Python's random numbers: drawn by the rewritten code, in the program's order, before it calls its graph."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch

from dynacheck.accessors import Accessor, Emitter, FrameView
from dynacheck.guards import TypeIs
from dynacheck.reasons import SKIPPED_CALL, UNKNOWN_CALL, UNKNOWN_OPERATION
from dynacheck.sources import ABSENT, DictAttr, Node, instance_dict, type_lookup
from dynacheck.variables.base import NotConstant, Rebuilder, Tracer, VariableTracker
from dynacheck.variables.functions import CallableVariable
from dynacheck.variables.results import fold, python_value, result
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import TensorVariable
from dynacheck.variables.wrap import wraps

DRAWN: Final = "___drawn"
"""The local of rewritten code that holds what was drawn: the states before, then a result for each call."""

DRAWS: Final = "draws"
"""Where the state of an attempt has its Draws."""

TAKEN: Final = "an int that was drawn is taken"
"""Set in the state of an attempt by an int that an operation takes."""

ELEMENTWISE: Final = frozenset(
    {
        getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "pow", "lt", "le", "eq", "ne", "ge", "gt")
    }
    | {torch.add, torch.sub, torch.mul, torch.div, torch.full, torch.full_like, torch.where, torch.clamp}
    | {
        "add",
        "add_",
        "sub",
        "sub_",
        "mul",
        "mul_",
        "div",
        "div_",
        "fill_",
        "masked_fill",
        "masked_fill_",
        "clamp",
    }
)
"""Operators and names of methods that take an int as a value; elsewhere it may be a size or an index."""

HIDDEN: Final[random.Random] = random._inst
NUMBERS: Final = ("randint", "randrange", "uniform")
OF_OBJECTS: Final = ("random", *NUMBERS, "seed", "getstate", "setstate")
"""What torch traces of generators other than the module's own."""


@dataclass(frozen=True, slots=True)
class Result:
    """Stands for what an earlier call gave, as an argument of `draw`."""

    number: int


def draw(*calls: Any) -> tuple[Any, ...]:
    """Call methods of generators (used by rewritten code).

    Args:
        *calls: generator (None: the module's own), method, arguments and keyword arguments, one after another.

    Returns:
        The generators with their states before, and what each call gave.
    """
    states: dict[int, tuple[random.Random, Any]] = {}
    results: list[Any] = []
    for owner, name, args, kwargs in zip(*[iter(calls)] * 4):
        generator = HIDDEN if owner is None else owner
        states.setdefault(id(generator), (generator, generator.getstate()))
        values = [results[a.number] if isinstance(a, Result) else a for a in args]
        results.append(getattr(generator, name)(*values, **kwargs))
    return tuple(states.values()), *results


def put_back(drawn: tuple[Any, ...]) -> None:
    """Have generators draw again what they have drawn (used by rewritten code): the frame is about to run again."""
    for generator, state in drawn[0]:
        generator.setstate(state)


def in_state(state: Any) -> random.Random:
    """A new generator in a state (used by rewritten code)."""
    made = random.Random()
    made.setstate(state)
    return made


@dataclass(frozen=True, slots=True)
class Drawn(Accessor):
    """What rewritten code drew by the call of that number."""

    index: int

    def fetch(self, base: Any, frame: FrameView) -> Any:
        return ABSENT

    def emit(self, to: Emitter, load_base: Callable[[], None]) -> None:
        to.load_local(DRAWN)
        to.load_item(self.index + 1)

    def path(self, base: str) -> str:
        return f"random_value[{self.index}]"


class Draws:
    """The calls of an attempt that draw, and generators in the states that they leave, for examples of what is drawn."""

    def __init__(self) -> None:
        self.calls: list[tuple[RandomVariable, str, tuple[Any, ...], dict[str, Any]]] = []
        self._examples: dict[int, random.Random] = {}
        self._results: list[Any] = []

    def call(self, tx: Tracer, owner: RandomVariable, name: str, args: Any, kwargs: Any) -> Any:
        """Note a call. What it gives now; what it raises is raised in the traced program."""
        generator = self._examples.get(id(owner.value))
        if generator is None:
            generator = self._examples[id(owner.value)] = in_state(owner.value.getstate())
        values = [self._results[a.number] if isinstance(a, Result) else a for a in args]
        try:
            found = getattr(generator, name)(*values, **kwargs)
        except (TypeError, ValueError) as error:
            tx.raise_(type(error), *error.args)
        self.calls.append((owner, name, args, kwargs))
        self._results.append(found)
        return found

    def emit(self, to: Rebuilder) -> None:
        """Push what `draw` returns."""
        loads: list[Callable[[], None]] = []
        for owner, name, args, kwargs in self.calls:
            loads.append(
                (lambda: to.load_const(None)) if owner.node is None else partial(owner.node.emit, to)
            )
            loads += [
                partial(to.load_const, name),
                partial(to.load_const, args),
                partial(_load_dict, to, kwargs),
            ]
        to.call_helper(draw, *loads)


def _load_dict(to: Rebuilder, values: dict[str, Any]) -> None:
    for key, value in values.items():
        to.load_const(key)
        to.load_const(value)
    to.build_map(len(values))


class RandomNumberVariable(SymNumberVariable):
    """A number drawn. As in torch it may be handed on, compared and taken by operators on tensors; no more."""

    __slots__ = ("number",)

    def __init__(self, sym: Any, number: Node) -> None:
        super().__init__(sym)
        self.number = number

    def describe(self) -> str:
        return "a random number"

    def as_meta(self, tx: Tracer) -> Any:
        if isinstance(self.sym, torch.SymInt):
            tx.state[TAKEN] = True
        return super().as_meta(tx)

    def nb_binary(
        self, tx: Tracer, op: str, left: VariableTracker, right: VariableTracker
    ) -> VariableTracker | object:
        other = right if left is self else left
        if not isinstance(other, TensorVariable) and issubclass(other.get_type(), (int, float, complex)):
            self.unmodelled(tx, op)
        return super().nb_binary(tx, op, left, right)

    def nb_unary(self, tx: Tracer, op: str) -> VariableTracker:
        self.unmodelled(tx, op)

    def reconstruct(self, to: Rebuilder) -> None:
        self.number.emit(to)


class RandomVariable(CallableVariable):
    """A `random.Random`. Invariant: a sourced one's exact type is guarded; a new one has drawn while translating."""

    __slots__ = ("value",)
    python_type = random.Random

    def __init__(self, value: random.Random, node: Node | None = None) -> None:
        super().__init__(node)
        self.value = value

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        if not callable(type_lookup(random.Random, name)) or name in (instance_dict(self.value) or ()):
            return super().tp_getattro(tx, name)
        if self.node is not None:
            tx.guard_absent(self.node.child(DictAttr(name)))
        return RandomMethodVariable(self, name)

    def hash_key(self, tx: Tracer) -> Any:
        return self.value

    def reconstruct(self, to: Rebuilder) -> None:
        to.call_helper(in_state, lambda: to.load_const(self.value.getstate()))
        to.remember(self)


class RandomMethodVariable(CallableVariable):
    """A method of a generator."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: RandomVariable, name: str) -> None:
        super().__init__()
        self.owner = owner
        self.name = name

    def get_type(self) -> type:
        return type(getattr(HIDDEN, self.name))

    def tp_call(
        self, tx: Tracer, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return call_generator(tx, self.owner, self.name, args, kwargs)

    def children(self) -> Sequence[VariableTracker]:
        return (self.owner,)

    def reconstruct(self, to: Rebuilder) -> None:
        to.load(self.owner)
        to.load_attr(self.name)


def call_generator(
    tx: Tracer,
    owner: RandomVariable,
    name: str,
    args: Sequence[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker:
    """Call a method of a generator: one drawn before the graph, or, where torch breaks, a break."""
    values = (
        _constants(tx, args, kwargs) if name in (NUMBERS if owner.value is HIDDEN else OF_OBJECTS) else None
    )
    if values is None and owner.value is not HIDDEN:
        tx.break_(UNKNOWN_CALL, what=f"the method {name!r} of {owner.describe()}")
    if values is None:
        tx.break_(SKIPPED_CALL, call=f"random.{name}()", why="what it returns is different in every call")
    if owner.node is None and owner.value is not HIDDEN:
        return fold(tx, getattr(owner.value, name), *values[0], **values[1])
    if tx.effects.closed is not None:
        tx.effects.closed("random numbers")
    draws: Draws = tx.state.setdefault(DRAWS, Draws())
    if tx.env is None and name in ("random", *NUMBERS):
        tx.need_symbols()
    example = draws.call(tx, owner, name, *values)
    number = len(draws.calls) - 1
    if name in ("seed", "setstate", "getstate"):
        return result(tx, example) if example is None else DrawnStateVariable(number)
    if type(example) is int and not -(2**63) <= example < 2**63:
        tx.break_(UNKNOWN_OPERATION, operation="drawing", what="a number that takes more than 64 bits")
    node = Node(tx.root, None, Drawn(number))
    return RandomNumberVariable(tx.env.drawn(node, example), node)


def _constants(
    tx: Tracer, args: Sequence[VariableTracker], kwargs: dict[str, VariableTracker]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments, if they are known."""
    if any(isinstance(v.realize(tx), SymNumberVariable) for v in (*args, *kwargs.values())):
        return None
    try:
        known = [Result(s.number) if (s := _state(tx, a)) else python_value(tx, a) for a in args]
        return tuple(known), {k: python_value(tx, v) for k, v in kwargs.items()}
    except NotConstant:
        return None


def _state(tx: Tracer, value: VariableTracker) -> DrawnStateVariable | None:
    """What an earlier `getstate()` gave."""
    real = value.realize(tx)
    return real if isinstance(real, DrawnStateVariable) else None


class DrawnStateVariable(VariableTracker):
    """What `getstate()` gave when the rewritten code ran: nothing looks into it."""

    __slots__ = ("number",)
    python_type = tuple

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def reconstruct(self, to: Rebuilder) -> None:
        Drawn(self.number).emit(to, lambda: None)


@wraps(random.Random)
def wrap_random(tx: Tracer, node: Node, value: Any) -> VariableTracker:
    tx.guard(node, TypeIs(random.Random))
    return RandomVariable(value, node)
