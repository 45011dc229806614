"""Functions of torch that are answered while translating: queries of state, context managers, annotations, breaks."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from functools import partial
from typing import Any, Final

import torch
import torch.fx.traceback

from dynacheck.handlers.registry import handles, refuses
from dynacheck.reasons import PYTHON_RESULT, TENSOR_KIND
from dynacheck.variables import abstract
from dynacheck.variables.base import Tracer, VariableTracker
from dynacheck.variables.contexts import (
    AttentionKernelsVariable,
    AutocastVariable,
    CatchWarningsVariable,
    GradModeVariable,
    InferenceModeVariable,
    NullContextVariable,
    set_grad_mode,
)
from dynacheck.variables.functions import CallableVariable
from dynacheck.variables.symbolic import SymNumberVariable
from dynacheck.variables.tensor import TensorVariable


def _constant(tx: Tracer, value: VariableTracker | None, default: Any = None) -> Any:
    return default if value is None else value.realize(tx).as_constant(tx)


# -- queries of ambient state, which the ambient guard covers
_QUERIES: Final = (
    torch.is_grad_enabled, torch.get_default_dtype, torch.is_autocast_enabled,
    torch.get_autocast_dtype, torch.is_autocast_cache_enabled, torch.are_deterministic_algorithms_enabled,
    torch._C._get_privateuse1_backend_name,
    torch.cuda.is_available, torch.cuda.is_initialized, torch.backends.mkldnn.is_available,
    torch.backends.cuda.is_built, torch._C._get_tracing_state, torch._jit_internal.is_scripting,
    torch.jit._trace.is_tracing, torch.fx._symbolic_trace.is_fx_tracing, torch.fx._symbolic_trace.is_fx_symbolic_tracing,
    torch.onnx.is_in_onnx_export, torch._C._are_functorch_transforms_active, torch.autograd._is_checkpoint_valid,
    torch._C._get_cublas_allow_tf32, torch._C._functorch.get_dynamic_layer_stack_depth,
    torch.accelerator.is_available, torch.accelerator.current_accelerator, torch.xpu.is_available,
    torch.xpu.is_initialized,
    torch.overrides.is_tensor_method_or_property, torch._C._is_any_autocast_enabled,
    torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.mem_efficient_sdp_enabled,
    torch.backends.cuda.math_sdp_enabled,
    torch._C._len_torch_dispatch_stack, torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype,
    torch.distributed.is_available,
    torch.is_warn_always_enabled, torch.__future__.get_swap_module_params_on_conversion,
    torch.__future__.get_overwrite_module_params_on_conversion,
)  # fmt: skip


def _query(fn: Any) -> None:
    @handles(fn)
    def answer(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        values = [a.as_constant(tx) for a in args]
        found = fn(*values, **{k: v.as_constant(tx) for k, v in kwargs.items()})
        return tx.constant(found)


for _fn in dict.fromkeys(_QUERIES):
    _query(_fn)


ASKED_WHETHER_COMPILED: Final = "asked whether it is compiled"
"""Key in `Tracer.state`: the program took a way that it wouldn't take uncompiled."""


@handles(
    torch.compiler.is_compiling,
    torch.compiler.is_dynamo_compiling,
    torch._utils.is_compiling,
    torch.nn.modules.activation._is_make_fx_tracing,  # as torch answers: no fast path that can't be differentiated
)
def is_compiling(tx: Tracer) -> VariableTracker:
    tx.state[ASKED_WHETHER_COMPILED] = True
    return tx.constant(True)


@handles(torch.compiler.is_exporting)
def is_exporting(tx: Tracer) -> VariableTracker:
    tx.state[ASKED_WHETHER_COMPILED] = True
    return tx.constant(False)


@handles(torch.is_tensor)
def is_tensor(tx: Tracer, obj: VariableTracker) -> VariableTracker:
    return tx.constant(isinstance(obj, TensorVariable))


def _metadata(fn: Any, name: str) -> None:
    @handles(fn)
    def answer(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
        tensor = args[0] if args else kwargs.pop("input", None)
        if not isinstance(tensor, TensorVariable):
            return None
        return tensor.call_method(tx, name, list(args[1:]), kwargs)


for _fn, _name in (
    (torch.is_floating_point, "is_floating_point"),
    (torch.is_complex, "is_complex"),
    (torch.numel, "numel"),
):
    _metadata(_fn, _name)


# -- constants of torch
def _constant_constructor(fn: Any) -> None:
    @handles(fn)
    def make(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
        if not all(a.is_constant() for a in (*args, *kwargs.values())):
            return None
        try:
            found = fn(
                *[a.as_constant(tx) for a in args], **{k: v.as_constant(tx) for k, v in kwargs.items()}
            )
        except (RuntimeError, TypeError, ValueError) as error:
            tx.raise_(type(error), *error.args)
        return tx.constant(found)


for _constructor in (torch.device, torch.promote_types, torch._C._nn._parse_to):
    _constant_constructor(_constructor)


class InfoVariable(CallableVariable):
    """`torch.finfo` or `torch.iinfo`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def get_type(self) -> type:
        return type(self.value)

    def tp_getattro(self, tx: Tracer, name: str) -> VariableTracker:
        return tx.constant(getattr(self.value, name))

    def reconstruct(self, to: Any) -> None:
        to.call_helper(type(self.value), lambda: to.load_const(getattr(torch, self.value.dtype)))


@handles(torch.finfo)
def finfo(
    tx: Tracer, dtype: VariableTracker | None = None, type: VariableTracker | None = None
) -> VariableTracker:
    given = dtype if dtype is not None else type
    return InfoVariable(torch.finfo() if given is None else torch.finfo(given.as_constant(tx)))


@handles(torch.iinfo)
def iinfo(
    tx: Tracer, dtype: VariableTracker | None = None, type: VariableTracker | None = None
) -> VariableTracker:
    given = dtype if dtype is not None else type
    assert given is not None
    return InfoVariable(torch.iinfo(given.as_constant(tx)))


# -- settings, which hold in the trace, in the graph behind their call, and after the frame
def _setting(setter: Any) -> None:
    @handles(setter)
    def change(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
        values = [a.as_constant(tx) for a in args]
        named = {name: a.as_constant(tx) for name, a in kwargs.items()}
        try:
            setter(*values, **named)
        except (RuntimeError, TypeError) as error:
            tx.raise_(type(error), *error.args)
        apply = partial(setter, **named) if named else setter
        tx.graph.call("call_function", setter, values, named)
        tx.effects.defer(apply, *args)
        return tx.constant(None)


for _fn in (torch.set_default_dtype, torch.set_default_device, torch.use_deterministic_algorithms):
    _setting(_fn)


# -- context managers
@handles(torch.no_grad)
def no_grad(tx: Tracer, orig_func: VariableTracker | None = None) -> VariableTracker | None:
    return GradModeVariable(torch.no_grad, False, False) if orig_func is None else None


@handles(torch.enable_grad)
def enable_grad(tx: Tracer, orig_func: VariableTracker | None = None) -> VariableTracker | None:
    return GradModeVariable(torch.enable_grad, True, None) if orig_func is None else None


@handles(torch.set_grad_enabled)
def set_grad_enabled(tx: Tracer, mode: VariableTracker) -> VariableTracker:
    found = GradModeVariable(torch.set_grad_enabled, bool(mode.as_constant(tx)), torch.is_grad_enabled())
    set_grad_mode(tx, found.mode)  # constructing it takes effect
    return found


@handles(torch._C._set_grad_enabled)
def c_set_grad_enabled(tx: Tracer, mode: VariableTracker) -> VariableTracker:
    set_grad_mode(tx, bool(mode.as_constant(tx)))
    return tx.constant(None)


@handles(torch.inference_mode)
def inference_mode(tx: Tracer, mode: VariableTracker | None = None) -> VariableTracker:
    if mode is not None and not mode.is_constant():  # a function: it decorates
        return InferenceModeVariable(torch.inference_mode, True).tp_call(tx, [mode], {})
    return InferenceModeVariable(torch.inference_mode, _constant(tx, mode, True))


@handles(torch.autocast)
def autocast(
    tx: Tracer,
    device_type: VariableTracker,
    dtype: VariableTracker | None = None,
    enabled: VariableTracker | None = None,
    cache_enabled: VariableTracker | None = None,
) -> VariableTracker:
    arguments = (
        _constant(tx, device_type),
        _constant(tx, dtype),
        _constant(tx, enabled, True),
        _constant(tx, cache_enabled),
    )
    return AutocastVariable(torch.autocast, arguments)


def _device_autocast(cls: Any, device: str, default: torch.dtype) -> None:
    @handles(cls)
    def make(
        tx: Tracer,
        enabled: VariableTracker | None = None,
        dtype: VariableTracker | None = None,
        cache_enabled: VariableTracker | None = None,
    ) -> VariableTracker:
        arguments = (
            device,
            _constant(tx, dtype, default),
            _constant(tx, enabled, True),
            _constant(tx, cache_enabled, True),
        )
        return AutocastVariable(cls, arguments)


_device_autocast(torch.cuda.amp.autocast, "cuda", torch.float16)
_device_autocast(torch.cpu.amp.autocast_mode.autocast, "cpu", torch.bfloat16)


refuses("it changes a tensor's size in place", torch.resize_as_)


@handles(warnings.catch_warnings, lazy=True)
def catch_warnings(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker | None:
    return None if args or kwargs else CatchWarningsVariable(warnings.catch_warnings)


@handles(contextlib.nullcontext, lazy=True)
def nullcontext(tx: Tracer, enter_result: VariableTracker | None = None) -> VariableTracker:
    return NullContextVariable(contextlib.nullcontext, enter_result)


@handles(torch.profiler.record_function, torch.autograd.profiler.profile, torch.profiler.profile)
def record_function(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    return NullContextVariable(contextlib.nullcontext, scope=True)


@handles(torch.fx.traceback.annotate)
def annotate(tx: Tracer, annotation_dict: VariableTracker) -> VariableTracker:
    return NullContextVariable(contextlib.nullcontext)


@handles(torch.nn.attention.sdpa_kernel)
def sdpa_kernel(
    tx: Tracer, backends: VariableTracker, set_priority: VariableTracker | None = None
) -> VariableTracker:
    single = backends.get_type() is torch.nn.attention.SDPBackend
    chosen = [backends] if single else abstract.iterate(tx, backends)
    kernels = tuple(int(abstract.python_object(kernel.realize(tx))) for kernel in chosen)
    return AttentionKernelsVariable(kernels, bool(_constant(tx, set_priority, False)))


_KERNELS: Final = inspect.unwrap(torch.nn.attention.sdpa_kernel)


@handles(contextlib._GeneratorContextManager)
def generator_manager(
    tx: Tracer, func: VariableTracker, args: VariableTracker, kwds: VariableTracker
) -> VariableTracker | None:
    """What a decorator makes anew for each call: known by its function."""
    if getattr(func, "value", None) is not _KERNELS:
        return None
    return sdpa_kernel(tx, *abstract.iterate(tx, args), **tx.string_items(kwds))


# -- quantized tensors, which metadata propagation takes for plain ones
@handles(
    torch.quantize_per_tensor,
    torch.quantize_per_channel,
    torch.quantize_per_tensor_dynamic,
    torch._empty_affine_quantized,
    torch._empty_per_channel_affine_quantized,
    torch._make_per_tensor_quantized_tensor,
    torch._make_per_channel_quantized_tensor,
    lazy=True,
)
def quantize(tx: Tracer, *args: VariableTracker, **kwargs: VariableTracker) -> VariableTracker:
    tx.break_(TENSOR_KIND, what="A quantized tensor")


@handles(torch._has_compatible_shallow_copy_type)
def has_compatible_type(tx: Tracer, input: VariableTracker, other: VariableTracker) -> VariableTracker | None:
    return tx.constant(True) if input is other else None


@handles(torch.nn.parameter.is_lazy)
def is_lazy(tx: Tracer, param: VariableTracker) -> VariableTracker:
    """As torch: a function of torch that returns no tensor."""
    tx.break_(PYTHON_RESULT, call="torch.nn.parameter.is_lazy", what="bool")


# -- checks and notices
_CHECKS: Final = {
    torch._check: RuntimeError,
    torch._check_index: IndexError,
    torch._check_value: ValueError,
    torch._check_type: TypeError,
    torch._check_not_implemented: NotImplementedError,
}


def _check(
    raises: type[Exception], tx: Tracer, cond: VariableTracker, message: VariableTracker | None = None
) -> VariableTracker:
    """A condition that the frame may rely on. One about numbers that only the graph knows is held there, and what it
    says of them is known from now on."""
    held = cond.realize(tx)
    if isinstance(held, SymNumberVariable) and held.is_unbacked():
        tx.graph_call(torch._check, [held.as_proxy(tx)])  # as long as it isn't known to be true
        return tx.record("call_function", torch._check, [held])
    if not abstract.is_true(tx, cond):
        text = (
            "Expected cond to be True, but got False. (Could this error message be improved? "
            "If so, please report an enhancement request to PyTorch.)"
        )
        if message is not None:
            text = abstract.str_(tx, tx.call(message, [])).realize(tx).as_constant(tx)
        tx.raise_(raises, text)
    return tx.constant(None)


@handles(torch._assert, lazy=True)
def assert_(tx: Tracer, condition: VariableTracker, message: VariableTracker) -> VariableTracker:
    if not abstract.is_true(tx, condition):
        tx.raise_(AssertionError, message)
    return tx.constant(None)


for _function, _raises in _CHECKS.items():
    handles(_function, lazy=True)(partial(_check, _raises))


@handles(torch._check_is_size, lazy=True)
def check_is_size(
    tx: Tracer,
    i: VariableTracker,
    message: VariableTracker | None = None,
    *,
    max: VariableTracker | None = None,
) -> VariableTracker:
    _check(RuntimeError, tx, abstract.richcompare(tx, ">=", i, tx.constant(0)), message)
    return (
        tx.constant(None)
        if max is None
        else _check(RuntimeError, tx, abstract.richcompare(tx, "<=", i, max), message)
    )


def _of_symbols(function: Any, tx: Tracer, *args: VariableTracker) -> VariableTracker:
    """A function of torch's on numbers: computed, or another expression."""
    symbol = next((a for a in args if isinstance(a, SymNumberVariable)), None)
    if symbol is not None:
        if function is torch.sym_ite and args[1].get_type() is args[2].get_type():
            if isinstance(args[1], SymNumberVariable) is not isinstance(args[2], SymNumberVariable):
                symbol.needs_plain(tx, "torch.sym_ite()")  # which takes two symbols or two numbers
        return symbol.call_math(tx, function, list(args))
    return tx.constant(function(*[a.as_constant(tx) for a in args]))


for _name in ("max", "min", "int", "float", "not", "ite", "sqrt"):
    _number = getattr(torch, f"sym_{_name}", None)
    if _number is not None:
        handles(_number)(partial(_of_symbols, _number))


@handles(torch._C._log_api_usage_once)
def log_api_usage(tx: Tracer, event: VariableTracker) -> VariableTracker:
    """What a module that is made says: an operation to torch."""
    tx.graph_call(torch._C._log_api_usage_once, [event.as_constant(tx)])
    return tx.constant(None)
