"""What calling a known function does. Importing this package fills the registry."""

from dynacheck.handlers import (
    builtins,
    collections_,
    constructors,
    copy_,
    dataclasses_,
    functools_,
    heaps,
    itertools_,
    math_,
    operators,
    outside,
    signatures,
    stdlib,
    supers,
    torch_autograd,
    torch_distributions,
    torch_functions,
)
from dynacheck.variables import literals, views

__all__ = [
    "builtins",
    "collections_",
    "constructors",
    "copy_",
    "dataclasses_",
    "functools_",
    "heaps",
    "itertools_",
    "literals",
    "math_",
    "operators",
    "outside",
    "signatures",
    "stdlib",
    "supers",
    "torch_autograd",
    "torch_distributions",
    "torch_functions",
    "views",
]
