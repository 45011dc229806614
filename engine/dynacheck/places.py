"""Where something is, in the user's terms: short file names, whose file, which line of a stack."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Sequence

from dynacheck.events import StackLine

_SITE = ("site-packages", "dist-packages")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Folders whose code is never the user's: the standard library, this engine, and the plugin that calls for tests."""
    stdlib = sysconfig.get_paths()
    here = os.path.dirname(os.path.abspath(__file__))
    plugin = importlib.util.find_spec("pytest_dynacheck")
    ours = {here, *(plugin.submodule_search_locations or () if plugin else ())}
    return tuple(
        os.path.join(os.path.realpath(p), "") for p in {stdlib["stdlib"], stdlib["platstdlib"], *ours}
    )


@functools.lru_cache(maxsize=4096)
def is_library(file: str) -> bool:
    """True for files of torch, of the standard library and of this engine (and for code without a file).

    Args:
        file: absolute file name of a code object.
    """
    if file.startswith("<"):
        return not file.startswith(("<doctest", "<ipython", "<string", "<stdin"))
    path = os.path.realpath(file)
    parts = path.split(os.sep)
    for site in _SITE:
        if site in parts:
            return parts[parts.index(site) + 1].removesuffix(".py") in ("torch", "functorch", "torchgen")
    if f"{os.sep}torch{os.sep}" in path and _is_torch(path):
        return True
    return path.startswith(_library_folders())


@functools.cache
def _engine_folder() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def is_engine(file: str) -> bool:
    """True for files of this engine."""
    return file.startswith(_engine_folder())


def _is_torch(path: str) -> bool:
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return bool(torch) and path.startswith(os.path.join(os.path.dirname(os.path.realpath(torch or "")), ""))


@functools.lru_cache(maxsize=4096)
def display_name(file: str, root: str) -> str:
    """The file as reports and cause keys name it: relative to `root`, with `/`; of packages, from their name.

    Args:
        file: absolute file name.
        root: absolute folder, usually pytest's rootdir.
    """
    if file.startswith("<"):
        return file
    path = os.path.abspath(file)
    parts = path.split(os.sep)
    for site in _SITE:
        if site in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(site) :])
    for folder in _library_folders():
        if path.startswith(folder):
            return path[len(folder) :].replace(os.sep, "/")
    base = os.path.join(os.path.abspath(root), "")
    if path.startswith(base):
        return path[len(base) :].replace(os.sep, "/")
    found = [p for p in sys.path if p and path.startswith(os.path.join(os.path.abspath(p), ""))]
    if found:
        return os.path.relpath(path, max(found, key=len)).replace(os.sep, "/")
    return parts[-1]


@functools.lru_cache(maxsize=4096)
def package_of(file: str) -> str:
    """The dotted name of the module that the file is, as far as its folders are packages (`mypkg.blocks`).

    Args:
        file: absolute file name.
    """
    folder, name = os.path.split(os.path.abspath(file))
    names = [] if name == "__init__.py" else [name.removesuffix(".py")]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.append(name)
    return ".".join(reversed(names))


def belongs_to(file: str, owner: str) -> bool:
    """True if the file is part of the package (or module) `owner`."""
    name = package_of(file)
    if name == owner or name.startswith(owner + "."):
        return True
    parts = os.path.abspath(file).split(os.sep)[:-1]  # packages without __init__.py
    wanted = owner.split(".")
    return any(parts[i : i + len(wanted)] == wanted for i in range(len(parts)))


def user_line(stack: Sequence[StackLine]) -> StackLine | None:
    """The innermost line that is neither torch's nor the standard library's, else the innermost of all.

    Args:
        stack: outermost first.
    """
    for line in reversed(stack):
        if not is_library(line.file):
            return line
    return stack[-1] if stack else None
