"""Code objects to sweep over: those of the standard library, and of torch.nn where torch is installed."""

import importlib.util
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType


def sources() -> list[Path]:
    library = Path(sysconfig.get_paths()["stdlib"])
    found = [*library.glob("*.py"), *library.glob("asyncio/*.py"), *library.glob("importlib/*.py")]
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        found += Path(torch.origin).parent.glob("nn/modules/*.py")
    return sorted(found)


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from nested(value)


def code_objects(every: int = 1) -> Iterator[CodeType]:
    """All code objects of every n-th source file."""
    for path in sources()[::every]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from nested(compile(path.read_text("utf-8"), str(path), "exec"))
