"""Builds the native module; everything else is in pyproject.toml.

`python setup.py build_ext --inplace` rebuilds it in place; DYNACHECK_SANITIZE=1 adds ASan and UBSan.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError

SUPPORTED = ((3, 11), (3, 14))
SANITIZERS = "-fsanitize=address,undefined"
SANITIZE = [SANITIZERS, "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"]


def why_not() -> str | None:
    """What about this interpreter rules the native module out, with what to do; None when nothing does."""
    version = sysconfig.get_python_version()
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has no frame hook: use CPython 3.11 to 3.14."
    if not SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
        return f"Python {version} isn't supported: use CPython 3.11 to 3.14."
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"free-threaded Python {version} isn't supported: use a build with the GIL."
    headers = os.path.join(sysconfig.get_path("include"), "internal")
    if not os.path.isdir(headers):
        return f"Python {version}'s headers are missing ({headers}): install its development package."
    return None


class BuildExt(build_ext):
    """Says in one line what is missing instead of showing a compiler's or distutils' traceback."""

    def run(self) -> None:
        problem = why_not()
        if problem is not None:
            raise SystemExit(f"pytest-dynacheck: can't build its C module: {problem}")
        super().run()

    def build_extension(self, ext: Extension) -> None:
        if os.environ.get("DYNACHECK_SANITIZE"):
            ext.extra_compile_args += SANITIZE
            ext.extra_link_args.append(SANITIZERS)
        try:
            super().build_extension(ext)
        except (CCompilerError, CompileError, ExecError, LinkError, PlatformError) as error:
            compiler = " ".join(getattr(self.compiler, "compiler_so", None) or ["cc"]).split()[0]
            why = re.sub(r"(?s)^command '.*' ", "the compiler ", str(error).rstrip("."), flags=re.IGNORECASE)
            raise SystemExit(
                f"pytest-dynacheck: can't build its C module: {why}; it needs a working C compiler "
                f"(tried {compiler}; install gcc or clang, or name one in CC)."
            ) from None


setup(cmdclass={"build_ext": BuildExt})
