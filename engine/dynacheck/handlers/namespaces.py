"""Builtins that give namespaces: `vars()`, `locals()`, `dir()`."""

from __future__ import annotations

from types import ModuleType

from dynacheck.handlers.registry import handles
from dynacheck.reasons import FRAME_INSPECTION, UNKNOWN_CALL
from dynacheck.sources import instance_dict, type_lookup
from dynacheck.variables import abstract
from dynacheck.variables.base import NotConstant, Tracer, VariableTracker
from dynacheck.variables.classes import PythonModuleVariable
from dynacheck.variables.mappings import DictVariable
from dynacheck.variables.namespaces import LOCALS, class_namespace
from dynacheck.variables.results import fold, python_value
from dynacheck.variables.wrap import is_user_class
from dynacheck.versions import PY313


@handles(locals)
def local_variables(tx: Tracer) -> VariableTracker:
    """The frame's variables: a dict of the frame's own, brought up to date, and since 3.13 (PEP 667) a new one."""
    made: dict[object, DictVariable] = tx.state.setdefault(LOCALS, {})
    found = DictVariable({}) if PY313 else made.setdefault(tx, DictVariable({}))
    for name, value in tx.variables():
        key = tx.constant(name)
        if value is not None:
            found.store(tx, key, value)
        elif found.lookup(tx, key) is not None:
            found.delete(tx, key)
    return found


@handles(vars)
def attributes(tx: Tracer, *objects: VariableTracker) -> VariableTracker:
    if not objects:
        return local_variables(tx)
    if len(objects) > 1:
        return fold(tx, vars, *[None] * len(objects))
    missing = tx.constant(None)
    found = abstract.getattr_default(tx, objects[0], "__dict__", missing)
    return fold(tx, vars, None) if found is missing else found


@handles(dir, lazy=True)
def names(tx: Tracer, *objects: VariableTracker) -> VariableTracker:
    if not objects:
        return tx.break_(FRAME_INSPECTION, call="dir()")
    if len(objects) > 1:
        return fold(tx, dir, *[None] * len(objects))
    real = objects[0].realize(tx)
    if isinstance(real, PythonModuleVariable):
        return _names_of_module(tx, real)
    cls = abstract.python_class(real)
    if cls is not None and type_lookup(type(cls), "__dir__") is type_lookup(type, "__dir__"):
        for kind in filter(is_user_class, cls.__mro__):
            class_namespace(tx, kind).content(tx)  # its names are guarded
        return fold(tx, dir, cls)
    try:
        return fold(tx, dir, python_value(tx, real))
    except NotConstant:
        return tx.break_(UNKNOWN_CALL, what="dir()")


def _names_of_module(tx: Tracer, module: PythonModuleVariable) -> VariableTracker:
    value = module.value
    kept = all(type_lookup(type(value), n) is type_lookup(ModuleType, n) for n in ("__dir__", "__dict__"))
    if not kept or "__dir__" in (instance_dict(value) or ()):
        tx.break_(UNKNOWN_CALL, what="dir()")
    namespace = abstract.getattr_(tx, module, "__dict__").realize(tx)
    assert isinstance(namespace, DictVariable)
    namespace.content(tx)  # its names are guarded
    return fold(tx, dir, value)
