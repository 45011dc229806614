"""What calling a known function does. Importing this package fills the registry."""

from dynacheck.handlers import builtins, constructors
from dynacheck.variables import literals, views

__all__ = ["builtins", "constructors", "literals", "views"]
