"""A torch that can be imported and does nothing, for interpreters that no torch is installed for.

Opcode handlers are tested over constants, functions and user objects; torch is only imported beside them.
Every name of the stand-in is a class made when it is asked for.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
import typing
from typing import Any

NAMES = ("torch", "sympy")
BUILTINS = (int, float, complex, list, dict, set, bytes)
SLOTS = {name for cls in BUILTINS for name in dir(cls)} | {
    "__matmul__", "__rmatmul__", "__imatmul__", "__iadd__", "__isub__", "__imul__", "__itruediv__",
    "__ifloordiv__", "__imod__", "__ipow__", "__ilshift__", "__irshift__", "__iand__", "__ior__", "__ixor__",
    "__torch_function__", "__func__", "__long__", "__div__", "__rdiv__", "__idiv__",
}  # fmt: skip
"""Special methods that may be asked of a stand-in class."""


DECORATORS = ("once_differentiable",)


def _undecorated(fn: Any) -> Any:
    return fn


def _class(name: str) -> type:
    by_type = name.endswith("Tensor") and name != "Tensor"
    return (ByType if by_type else StandIn)(name, (), {"__module__": "torch"})


class StandIn(type):
    """The type of the stand-in classes."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name not in SLOTS:
            raise AttributeError(name)
        made = _class(name)
        setattr(cls, name, made)
        return made

    @property
    def __signature__(cls) -> Any:
        raise ValueError("as of a C function, which doesn't tell")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if any("__init__" in c.__dict__ for c in cls.__mro__[:-1]):
            return super().__call__(*args, **kwargs)
        return object.__new__(cls)

    def __iter__(cls) -> Any:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __or__(cls, other: Any) -> Any:
        return typing.Union[cls, other]  # noqa: UP007

    __ror__ = __or__


class ByType(StandIn):
    """The type of torch.LongTensor and its siblings, which is another one in torch, too."""


class StandInModule(types.ModuleType):
    """A module that has every name."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__future__":  # a module of torch
            raise AttributeError(name)
        made = _undecorated if name in DECORATORS else _class(name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch and its submodules."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in NAMES:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = StandInModule(spec.name)
        module.__file__ = f"<stand-in>/{spec.name.replace('.', '/')}/__init__.py"
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "torch":
            module.__version__ = "2.13.0"
        elif module.__name__ == "torch.autograd.function":
            apply = classmethod(lambda cls, *args: None)
            module.Function = StandIn("Function", (), {"__module__": "torch", "apply": apply})


def install() -> None:
    """Make `import torch` give the stand-in."""
    sys.meta_path.insert(0, Finder())
