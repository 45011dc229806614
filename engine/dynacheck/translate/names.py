"""Names that a frame has no local for: globals, its own and those of inlined functions, and builtins."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from dynacheck.guards import Absent, Is, NotAbsent
from dynacheck.handlers import skip
from dynacheck.sources import CAttr, Node
from dynacheck.translate.calls import Calls
from dynacheck.variables import exceptions
from dynacheck.variables.base import CantRebuild, VariableTracker
from dynacheck.variables.functions import UserFunctionVariable

_GUARDED = (type, types.BuiltinFunctionType, types.FunctionType)


class Names(Calls):
    """Lookup of globals and builtins."""

    function: UserFunctionVariable | None

    def globals_node(self, name: str) -> Node | None:
        """The node of a global of this frame's function, or None if its function has no source."""
        root = self.attempt.root
        if self.globals is self.attempt.frame.func.__globals__:
            return root.global_(name)
        module = sys.modules.get(self.globals.get("__name__", ""))
        if module is not None and module.__dict__ is self.globals:
            return root.module(module.__name__).attr(name)
        if self.function is not None and self.function.node is not None:
            return self.function.node.child(CAttr("__globals__")).key(name)
        return None

    def load_global(self, name: str) -> VariableTracker:
        effects = self.attempt.effects
        if effects:
            stored, value = effects.global_value(self.globals, name)
            if stored:
                return value if value is not None else self._load_builtin(name)
        if name in self.globals:
            node = self.globals_node(name)
            return self.object(self.globals[name]) if node is None else self.wrap(node)
        if not skip.is_library_file(self.code.co_filename):
            node = self.globals_node(name)
            if node is not None:
                self.guard_absent(node)
        return self._load_builtin(name)

    def _load_builtin(self, name: str) -> VariableTracker:
        source = self.globals.get("__builtins__", builtins)
        table = source.__dict__ if isinstance(source, types.ModuleType) else source
        if name not in table:
            exceptions.raise_name_error(self, name, f"name {name!r} is not defined")
        value = table[name]
        if isinstance(value, _GUARDED) and not skip.is_library_file(self.code.co_filename):
            node = self._builtin_node(table, name)
            if node is not None:
                self.guard(node, Is(value))
        return self.object(value)

    def _builtin_node(self, table: dict[str, Any], name: str) -> Node | None:
        """The node of a builtin, or None if this frame's function has no source."""
        own: Any = self.attempt.frame.func
        if table is own.__builtins__:
            return self.attempt.root.builtin(name)
        if self.function is not None and self.function.node is not None:
            return self.function.node.child(CAttr("__builtins__")).key(name)
        return None

    def store_global(self, name: str, value: VariableTracker | None) -> None:
        if value is None:
            self._expect_global(name)
        globals_ = self.globals
        self.attempt.effects.store_global(globals_, lambda to: to.load_globals(globals_), name, value)

    def _expect_global(self, name: str) -> None:
        """A global has to be there to be deleted."""
        stored, found = self.attempt.effects.global_value(self.globals, name)
        there = found is not None if stored else name in self.globals
        node = None if stored else self.globals_node(name)
        if node is not None:
            self.guard(node, NotAbsent() if there else Absent())
        if not there:
            exceptions.raise_name_error(self, name, f"name {name!r} is not defined")

    def load_globals_of(self, to: Any, globals_: dict[str, Any]) -> None:
        """Push a globals dict in rewritten code."""
        if globals_ is self.attempt.frame.func.__globals__:
            to.call_helper(globals)
            return
        name = globals_.get("__name__", "")
        module = sys.modules.get(name)
        if module is None or module.__dict__ is not globals_:
            raise CantRebuild(f"the globals of {name}")
        self.attempt.root.module(name).emit(to)
        to.load_attr("__dict__")
