"""Whether the exit of a `with` block, or the clauses of a `try`, may end an exception that an operator raises."""

from __future__ import annotations

import contextlib
from types import CodeType
from typing import Any, Final

from dynacheck.bytecode.by_code import ByCode
from dynacheck.bytecode.decode import DecodedCode, decode
from dynacheck.bytecode.flow import caught_globals
from dynacheck.bytecode.instruction import Handler
from dynacheck.opcodes.table import Machine
from dynacheck.variables import abstract
from dynacheck.variables.base import ObservedException, Tracer, VariableTracker
from dynacheck.variables.contexts import ExitVariable
from dynacheck.variables.functions import BoundMethodVariable, UserFunctionVariable
from dynacheck.variables.generators import GeneratorVariable
from dynacheck.variables.objects import UserObjectVariable

_OF_GENERATORS: Final = contextlib._GeneratorContextManager.__exit__.__code__
_known: ByCode[bool] = ByCode()
_NEVER_FOR_VALUES: Final = (NotImplementedError, AttributeError, ImportError)
"""What says that something isn't there, whatever the values are."""


def may_swallow(tx: Tracer, leave: VariableTracker) -> bool:
    """Whether an exit may end an exception.

    Args:
        tx: the tracer.
        leave: what `with` keeps on the stack: the bound `__exit__`.

    Returns:
        False for managers that the engine models, for an `__exit__` that returns nothing, and for a generator whose
        `yield` is in no `try` with handlers.
    """
    real = leave.realize(tx)
    if isinstance(real, ExitVariable):
        return False
    if not isinstance(real, BoundMethodVariable):
        return True
    function = real.function.realize(tx)
    if not isinstance(function, UserFunctionVariable):
        return True
    if function.code is _OF_GENERATORS:
        owner = real.owner.realize(tx)
        generator = owner.attrs.get("gen") if isinstance(owner, UserObjectVariable) else None
        frame: Any = generator.frame if isinstance(generator, GeneratorVariable) else None
        return frame is None or bool(frame.catches())
    found = _known.get(function.code)
    if found is None:
        found = not returns_nothing(function.code)
        _known.set(function.code, found)
    return found


def may_catch(tx: Machine, decoded: DecodedCode, handler: Handler, anything: bool) -> bool:
    """Whether the clauses of a `try` may catch what an operator raises because of its tensors' values.

    Args:
        tx: the frame.
        decoded: its code.
        handler: that of the `try`.
        anything: the operator isn't torch's: also what else says that something isn't there.
    """
    names = caught_globals(decoded, handler)
    if names is None:
        return True
    try:
        caught = [abstract.python_object(tx.load_global(name).realize(tx)) for name in names]
    except ObservedException:  # a name that isn't there matters only once something is raised
        return True
    return anything or not all(isinstance(cls, type) and issubclass(cls, _NEVER_FOR_VALUES) for cls in caught)


def returns_nothing(code: CodeType) -> bool:
    """Whether a function returns nothing but None or False.

    >>> returns_nothing((lambda: None).__code__), returns_nothing((lambda x: x).__code__)
    (True, False)
    """
    instructions = decode(code).instructions
    targets = {i.target for i in instructions}
    for i in instructions:
        if i.opname == "RETURN_CONST":
            values = [i.argval]
        elif i.opname == "RETURN_VALUE":
            before = instructions[i.index - 1]
            if before.opname != "LOAD_CONST" or i.index in targets:
                return False
            values = [before.argval]
        else:
            continue
        if any(value is not None and value is not False for value in values):
            return False
    return True
