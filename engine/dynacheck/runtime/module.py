"""The compiled form of a module: a module around it, through which its attributes are read and written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import MethodType
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

from dynacheck import interop
from dynacheck.handlers import skip
from dynacheck.handlers.decorating import call_compiled_module
from dynacheck.handlers.registry import replaces
from dynacheck.runtime import tracebacks
from dynacheck.runtime.compiled import Compile, Options
from dynacheck.runtime.job import inline_call
from dynacheck.variables.modules import is_lazy

_OWN = frozenset({"_orig_mod", "forward", "_dynacheck_compile", "_torchdynamo_orig_callable", "__dict__"})

_GLOBAL_HOOKS = (
    torch_module._global_forward_hooks,
    torch_module._global_forward_pre_hooks,
    torch_module._global_backward_hooks,
    torch_module._global_backward_pre_hooks,
)


class CompiledModule(nn.Module):
    """A module around the compiled one, which is its only child `_orig_mod`: names of its state begin with
    that.

    It has no mode and no attributes of its own: they are those of the wrapped module. Hooks registered on it
        run around the compiled call.

    Args:
        module: the module.
        options: the keywords of `compile`.
    """

    def __init__(self, module: nn.Module, options: Options) -> None:
        self.__dict__["_modules"] = {"_orig_mod": module}  # read while nn.Module sets itself up
        super().__init__()
        self._modules["_orig_mod"] = module
        self._prepare(options)

    def _prepare(self, options: Options) -> None:
        module = self._modules["_orig_mod"]
        assert module is not None
        run = Compile(entered(module), options, module)
        own = self.__dict__
        own["_dynacheck_compile"] = run
        own["_torchdynamo_orig_callable"] = module.forward
        own["forward"] = _runner(module, run)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if (
            own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
            or own["_backward_pre_hooks"] or any(_GLOBAL_HOOKS)
        ):  # fmt: skip
            return super().__call__(*args, **kwargs)
        try:
            return own["forward"](*args, **kwargs)
        except BaseException as error:
            tracebacks.tidy(error)
            raise

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """torch's class of compiled modules where that is loaded, for `isinstance`."""
        found = interop.optimized_module()
        return CompiledModule if found is None else found

    @property
    def training(self) -> bool:
        """The wrapped module's mode."""
        return bool(self._modules["_orig_mod"].training)  # type: ignore[union-attr]

    @training.setter
    def training(self, mode: bool) -> None:
        if "_dynacheck_compile" in self.__dict__:  # not what nn.Module sets when it is made
            self._modules["_orig_mod"].training = mode  # type: ignore[union-attr]

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"]["_orig_mod"]
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or hasattr(CompiledModule, name) or "_dynacheck_compile" not in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN or hasattr(CompiledModule, name):
            super().__delattr__(name)
        else:
            delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]

    def __iter__(self) -> Any:
        wrapped: Any = self._modules["_orig_mod"]
        return iter(wrapped)

    def __getitem__(self, key: Any) -> Any:
        return self._modules["_orig_mod"][key]  # type: ignore[index]

    def __contains__(self, item: Any) -> bool:
        return item in self._modules["_orig_mod"]  # type: ignore[operator]

    def __bool__(self) -> bool:
        return bool(self._modules["_orig_mod"])

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(self._modules["_orig_mod"])})

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copied and pickled as the wrapped module and the keywords of `compile`."""
        own = {k: v for k, v in self.__dict__.items() if k not in _OWN and k != "_modules"}
        run: Compile = self.__dict__["_dynacheck_compile"]
        options = {f.name: getattr(run.options, f.name) for f in dataclasses.fields(Options)}
        return _rebuilt, (self._modules["_orig_mod"], options), own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


replaces(CompiledModule.__call__)(call_compiled_module)  # compiled inside compiled


def _rebuilt(module: nn.Module, options: dict[str, Any]) -> CompiledModule:
    return CompiledModule(module, Options(**options))


def entered(module: nn.Module) -> Callable[..., Any]:
    """What is called to run a module: a frame of ours around those of torch's own classes."""
    forward = module.forward
    if isinstance(forward, MethodType) and skip.why_frame_skipped(forward.__func__.__code__) is not None:
        return inline_call(module)
    return module.__call__


def _runner(module: nn.Module, run: Compile) -> Callable[..., Any]:
    """The compiled `forward`."""
    forward = run.dispatcher()
    if not any(map(is_lazy, module.modules())):
        return forward

    def lazy_forward(*args: Any, **kwargs: Any) -> Any:
        infer = getattr(module, "_infer_parameters", None)
        if is_lazy(module) and callable(infer):
            infer(module, args, kwargs)  # a lazy module's parameters exist before anything is traced
        if any(map(is_lazy, module.modules())):  # those of the modules in it only once they have been called
            return module.forward(*args, **kwargs)
        return forward(*args, **kwargs)

    return lazy_forward
