"""Which files are never traced as frames, and which functions are never inlined.

Frames of the standard library, of torch and of this package run as they are. Called from a traced frame, most
of the standard library and the parts of torch that are written as user code is (modules, optimizers,
distributions, ...) are interpreted as part of it. Everything else, site-packages included, is the user's.
"""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from os import path, sep
from types import CodeType, FunctionType
from typing import Any, Final

import torch

from dynacheck import config
from dynacheck.graph.subgraphs import INNER

TORCH: Final = path.dirname(path.abspath(torch.__file__)) + sep
ENGINE: Final = path.dirname(path.dirname(path.abspath(__file__))) + sep
STDLIB: Final = tuple(
    {path.abspath(p) + sep for p in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))}
)
SITE: Final = tuple(f"{sep}{name}{sep}" for name in ("site-packages", "dist-packages"))

TORCH_FRAMES: Final = (
    "optim/",
    "distributed/device_mesh",
    "distributed/tensor/parallel/style",
    "nn/attention/flex_attention",
    "utils/_typing_utils",
)
"""Parts of torch whose frames are translated like the user's."""

TORCH_INLINED: Final = (
        "_decomp", "_dynamo/_trace_wrapped_higher_order_op",
        "_functorch/autograd_function", "_functorch/eager_transforms",
        "_functorch/functional_call", "_functorch/pyfunctorch", "_functorch/vmap", "_functorch/apis", "_higher_order_ops",
        "_library/autograd", "_library/custom_ops", "_ops", "_prims", "_prims_common", "_refs", "_tensor",
        "amp/autocast_mode", "ao/nn", "autograd/function", "backends/cuda", "backends/mha", "cuda/amp/autocast_mode",
        "distributed", "distributions", "functional", "fx/_pytree", "fx/traceback", "linalg", "nn",
        "optim", "overrides", "random", "return_types", "sparse", "testing", "utils/_contextlib",
        "utils/_cxx_pytree", "utils/_device", "utils/_foreach_utils", "utils/_ordered_set",
        "utils/_python_dispatch", "utils/_pytree", "utils/_typing_utils", "utils/hooks",
        "_utils", "_jit_internal", "compiler", "masked", "special", "fft", "signal",
)  # fmt: skip
"""Parts of torch that are interpreted when called from a traced frame."""

_INLINED_FUNCTIONS: Final[frozenset[Any]] = frozenset(
    (torch.jit.annotate, torch.jit._script._unwrap_optional)
)
"""Functions of torch's other parts that are interpreted."""

TORCH_SKIPPED: Final = ("optim/lr_scheduler",)

STDLIB_NOT_INLINED: Final = frozenset(("abc", "copy", "importlib", "linecache", "logging", "random", "re"))
"""Modules of the standard library that are never interpreted, as with torch.compile; and logging, whose calls break."""

PACKAGES_SKIPPED: Final = frozenset(
    (
        "fx2trt_oss", "hypothesis", "networkx", "numpy", "onnx", "onnxruntime", "onnx_tf", "pandas",
        "sklearn", "tabulate", "tensorflow", "tensorrt", "torch2trt", "tqdm", "tree", "tvm", "xarray",
        "_distutils_hack", "_pytest", "pytest", "pluggy", "coverage", "dynacheck", "pytest_dynacheck",
    )
)  # fmt: skip
"""Packages that are neither traced as frames nor interpreted, as with torch.compile."""


def _site_package(filename: str) -> str:
    """The top-level package of a file in site-packages, or ""."""
    for marker in SITE:
        _, found, rest = filename.rpartition(marker)
        if found:
            return rest.split(sep, 1)[0].removesuffix(".py")
    return ""


@cache
def owner(filename: str) -> tuple[str, str]:
    """Whose a file is.

    Returns:
        ("stdlib" | "torch" | "engine" | "package" | "user", the path inside it or the package's name).
    """
    if filename.startswith("<frozen "):
        return "stdlib", filename[len("<frozen ") :].rstrip(">").replace(".", "/")
    if filename.startswith("<"):
        return ("stdlib", filename) if filename == "<__array_function__ internals>" else ("user", filename)
    where = path.abspath(filename)
    if where.startswith(TORCH):
        return "torch", where[len(TORCH) :].replace(sep, "/").removesuffix(".py")
    if where.startswith(ENGINE):
        return "engine", where[len(ENGINE) :]
    package = _site_package(where)
    if package:
        return "package", package
    for root in STDLIB:
        if where.startswith(root):
            return "stdlib", where[len(root) :].replace(sep, "/").removesuffix(".py")
    return "user", where


def _within(inside: str, parts: tuple[str, ...]) -> bool:
    return any(inside == p.rstrip("/") or inside.startswith(p.rstrip("/") + "/") for p in parts)


def is_library_file(filename: str) -> bool:
    """Whether lines of a file are never shown as the user's: standard library, torch, the engine."""
    return owner(filename)[0] in ("stdlib", "torch", "engine")


@cache
def why_file_skipped(filename: str) -> str | None:
    """Why frames of a file are never translated, or None."""
    kind, inside = owner(filename)
    if kind == "stdlib":
        return "the standard library"
    if kind == "engine":
        return "the engine"
    if kind == "torch":
        traced = _within(inside, TORCH_FRAMES) and not _within(inside, TORCH_SKIPPED)
        return None if traced else "torch"
    if kind == "package" and inside in PACKAGES_SKIPPED:
        return f"the package {inside}"
    return None


@cache
def _listed(names: str, filename: str) -> str | None:
    where = path.abspath(filename)
    for name in filter(None, map(str.strip, names.split(","))):
        module = sys.modules.get(name)
        folders = getattr(module, "__path__", None)
        file = getattr(module, "__file__", None)
        roots = [path.abspath(folder) + sep for folder in folders or ()]
        if where.startswith(tuple(roots)) or (not roots and file is not None and path.abspath(file) == where):
            return f"the module {name}, which skip_modules lists"
    return None


def why_file_listed(filename: str) -> str | None:
    """Whether the user's setting `skip_modules` names the module that a file is of, or a package around it."""
    names = str(config.get("skip_modules"))
    return _listed(names, filename) if names else None


def why_frame_skipped(code: CodeType, args: tuple[Any, ...] = ()) -> str | None:
    """Why a frame of this code is not translated, or None.

    Args:
        code: the frame's code.
        args: the values of its argument slots.
    """
    why = why_file_listed(code.co_filename)
    if why is not None:
        return why
    if code.co_filename.startswith("<eval_with_key>") and args and INNER in getattr(args[0], "meta", ()):
        return "a graph of the engine"
    why = why_file_skipped(code.co_filename)
    if why is not None and code.co_name == "forward" and args and _has_forward_hooks(args[0]):
        return None
    return why


def _has_forward_hooks(module: Any) -> bool:
    """Whether a module of torch's own has hooks around its forward: they may break the call around them, after which
    the forward is all that is left to capture."""
    if not isinstance(module, torch.nn.Module):
        return False
    own = module.__dict__
    hooks = own.get("_forward_hooks") or own.get("_forward_pre_hooks")
    return bool(hooks) and type(module).__module__.startswith(("torch.nn.", "torch.ao."))


def why_file_not_inlined(filename: str) -> str | None:
    """Why functions of a file are never interpreted as part of a traced frame, or None."""
    listed = why_file_listed(filename)
    return _why_file_not_inlined(filename) if listed is None else f"it is part of {listed}"


@cache
def _why_file_not_inlined(filename: str) -> str | None:
    kind, inside = owner(filename)
    if kind == "engine":
        polyfill = inside.startswith("handlers" + sep)
        return None if polyfill else "it belongs to the engine"
    if kind == "stdlib":
        name = inside.split("/", 1)[0]
        return f"it is part of the module {name}" if name in STDLIB_NOT_INLINED else None
    if kind == "torch":
        allowed = _within(inside, TORCH_INLINED) and not _within(inside, TORCH_SKIPPED)
        return None if allowed else "it is internal to torch"
    if kind == "package" and inside in PACKAGES_SKIPPED:
        return f"it is part of the package {inside}"
    return None


def why_not_inlined(function: FunctionType) -> str | None:
    """Why a Python function is never interpreted as part of a traced frame, or None.

    >>> why_not_inlined(lambda: None) is None
    True
    """
    # what torch.jit.script_if_tracing returns calls the function that it decorates
    if function in _INLINED_FUNCTIONS or getattr(function, "__script_if_tracing_wrapper", False):
        return None
    return why_file_not_inlined(function.__code__.co_filename)


def why_skipped(value: Any) -> str | None:
    """Why a callable can't be looked into, or None when it is a Python function that can."""
    if isinstance(value, FunctionType):
        return why_not_inlined(value)
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        filename = getattr(module, "__file__", None)
        of_c = not value.__flags__ & (1 << 9)
        return None if filename is None or of_c else why_file_not_inlined(filename)
    module_name = getattr(value, "__module__", None) or "builtins"
    return f"C code of {module_name}"
