"""What an entry assumed about a frame, as data: checked natively, explained in Python."""

from dynacheck.guards.base import KINDS, Change, Guard, Installed, Slots, install, relate
from dynacheck.guards.explain import EntryFailure, Failure, GuardMismatch, explain_miss, failures_of, mirror
from dynacheck.guards.held import Held, constant_key, describe, is_constant
from dynacheck.guards.objects import (
    ANY_KEY,
    Absent,
    CodeIs,
    EmptyCell,
    EnumIs,
    HasKey,
    Is,
    KeysAre,
    LengthIs,
    NoSubclass,
    NotAbsent,
    RangeIs,
    SetIs,
    TypeIs,
    ValueIs,
)
from dynacheck.guards.program import CompiledGuards, build_program
from dynacheck.guards.pycheck import PyCheck
from dynacheck.guards.relations import Distinct, Same, StorageOverlap
from dynacheck.guards.shapes import SizeExpression
from dynacheck.guards.state import AmbientState
from dynacheck.guards.tensors import ItemIs, MarksAre, NoMarks, TensorMatch

__all__ = [
    "ANY_KEY",
    "KINDS",
    "Absent",
    "AmbientState",
    "Change",
    "CodeIs",
    "CompiledGuards",
    "Distinct",
    "EmptyCell",
    "EntryFailure",
    "EnumIs",
    "Failure",
    "Guard",
    "GuardMismatch",
    "HasKey",
    "Held",
    "Installed",
    "Is",
    "ItemIs",
    "KeysAre",
    "LengthIs",
    "MarksAre",
    "NoMarks",
    "NoSubclass",
    "NotAbsent",
    "PyCheck",
    "RangeIs",
    "Same",
    "SetIs",
    "SizeExpression",
    "Slots",
    "StorageOverlap",
    "TensorMatch",
    "TypeIs",
    "ValueIs",
    "build_program",
    "constant_key",
    "describe",
    "explain_miss",
    "failures_of",
    "install",
    "is_constant",
    "mirror",
    "relate",
]
