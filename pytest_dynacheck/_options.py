"""Options: command line, environment and ini, in this order, validated with where each came from."""

from __future__ import annotations

import difflib
import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_dynacheck._budgets import BOUNDS, Limit
from pytest_dynacheck._hooks import engines
from pytest_dynacheck.engines import ENGINES, Make

if TYPE_CHECKING:
    import torch

ISOLATE = ("marked", "all", "off")
_KNOWN_BACKENDS = ("eager", "inspect", "check", "inductor", "aot_eager", "as-written")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def _choice(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return text

    return read


def _flag(text: str) -> bool:
    low = text.strip().lower()
    if low in _TRUE:
        return True
    if low in _FALSE:
        return False
    raise ValueError("expected true or false")


def _dynamic(text: str) -> bool | None:
    return None if text.strip().lower() == "auto" else _flag(text)


def _file(text: str) -> Path:
    if not text:
        raise ValueError("expected a file's name, nothing was given")
    path = Path(text).absolute()
    if path.is_dir():
        raise ValueError("expected a file, this is a folder")
    return path


DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


def _device(text: str) -> str:
    if not DEVICE.fullmatch(text):
        raise ValueError("expected auto, cpu, cuda or cuda:n")
    return text


def _number(text: str) -> int:
    if not text.strip().isdigit():
        raise ValueError("expected a whole number from 0 on")
    return int(text)


class Option(NamedTuple):
    """One option; its ini name is `dynacheck_<name>`, its environment variable `PYTEST_DYNACHECK_<NAME>`."""

    name: str
    read: Callable[[str], Any]
    metavar: str
    default: Any
    help: str

    @property
    def flag(self) -> str:
        return f"--dynacheck-{self.name.replace('_', '-')}"

    @property
    def dest(self) -> str:
        return f"dynacheck_{self.name}"

    @property
    def variable(self) -> str:
        return f"PYTEST_DYNACHECK_{self.name.upper()}"


OPTIONS = (
    Option("engine", _choice(*ENGINES), "ENGINE", "bundled",
           "what compiles and is watched: bundled (this plugin's own), torch (the installed torch.compile)"),
    Option("backend", str, "NAME", "eager",
           "backend for tests that name none or inductor; as-written changes nothing (default: eager)"),
    Option("device", _device, "DEVICE", "auto", "device of dynacheck_device: auto, cpu, cuda, cuda:n"),
    Option("dynamic", _dynamic, "BOOL", None, "dynamic= for compiles that say nothing: true, false, auto"),
    Option("isolate", _choice(*ISOLATE), "WHICH", "marked",
           "tests that start clean and leave nothing: marked (those under test), all, off"),
    Option("max_graphs", _number, "N", None, "graphs allowed in tests without a marker of their own"),
    Option("max_graph_breaks", _number, "N", None, "places with a graph break allowed in such tests"),
    Option("max_recompiles", _number, "N", None, "recompiles allowed in such tests"),
    Option("max_cache_entries", _number, "N", None, "cache entries of one function allowed in such tests"),
)  # fmt: skip
STRICT = Option(
    "strict", _flag, "BOOL", False, "notes (a recompile budget that proves nothing) fail the test"
)


FILES = (
    Option("baseline", _file, "FILE", None,
           "what tests compiled when FILE was written; more than that fails, and so does another cause"),
    Option("json", _file, "FILE", None, "write what tests compiled to FILE, as JSON"),
    Option("html", _file, "FILE", None, "write the same as a page that needs nothing else"),
)  # fmt: skip
"""What a run reads and writes: given on the command line or by the environment, not in the ini file."""


class Settings:
    """All options of a run, with where each came from."""

    def __init__(
        self,
        values: dict[str, tuple[Any, str]],
        *,
        observe: bool,
        fullgraph: bool,
        compare: bool,
        update_baseline: bool,
        engines: Mapping[str, Make],
    ) -> None:
        self._values = values
        self.update_baseline = update_baseline
        self.engines = engines
        self.observe = observe
        self.fullgraph = fullgraph
        self.compare = compare
        self.defaults = {
            name.removeprefix("max_"): Limit(name.removeprefix("max_"), value, False, origin)
            for name in BOUNDS
            for value, origin in [values[name]]
            if value is not None
        }

    def __getitem__(self, name: str) -> Any:
        return self._values[name][0]

    def origin(self, name: str) -> str:
        return self._values[name][1]

    @property
    def judges_all(self) -> bool:
        """True if tests are under test that ask for nothing themselves."""
        return bool(self.defaults) or self["baseline"] is not None

    @property
    def given(self) -> bool:
        """True if anything was set."""
        return (
            self.observe
            or self.fullgraph
            or self.compare
            or any(o != "default" for _, o in self._values.values())
        )


def add(parser: pytest.Parser) -> None:
    """Register the options, their ini twins and the verbosity."""
    group = parser.getgroup("dynacheck", "compile stability (pytest-dynacheck)")
    group.addoption(
        "--dynacheck", action="store_true", default=False, dest="dynacheck",
        help="print a table of what each test compiled with this engine; judges and redirects nothing by itself",
    )  # fmt: skip
    group.addoption(
        "--dynacheck-fullgraph", action="store_true", default=False, dest="dynacheck_fullgraph",
        help="compile with fullgraph=True in tests under test, unless the marker allows graph breaks",
    )  # fmt: skip
    group.addoption(
        "--dynacheck-compare", action="store_true", default=False, dest="dynacheck_compare",
        help="in tests under test, run each compiled call eagerly as well, on copies; what differs fails the test",
    )  # fmt: skip
    group.addoption(
        "--dynacheck-update-baseline", action="store_true", default=False, dest="dynacheck_update_baseline",
        help="write what tests compile to the baseline's FILE instead of comparing with it",
    )  # fmt: skip
    for option in (*OPTIONS, *FILES):
        group.addoption(option.flag, default=None, dest=option.dest, metavar=option.metavar, help=option.help)
    for option in (*OPTIONS, STRICT):
        parser.addini(option.dest, f"{option.help} (environment: {option.variable})", default=None)
    parser.addini(
        "verbosity_dynacheck", "verbosity of dynacheck's reports (default: that of pytest)", default="auto"
    )


def read(config: pytest.Config) -> Settings:
    """The settings of this run.

    Raises:
        pytest.UsageError: a value that its option doesn't take, with where it came from.
    """
    found = engines(config)
    options = [o._replace(read=_choice(*found)) if o.name == "engine" else o for o in OPTIONS]
    values = {option.name: _find(config, option) for option in (*options, STRICT, *FILES)}
    settings = Settings(
        values,
        observe=bool(config.getoption("dynacheck", False)),
        fullgraph=bool(config.getoption("dynacheck_fullgraph", False)),
        compare=bool(config.getoption("dynacheck_compare", False)),
        engines=found,
        update_baseline=bool(config.getoption("dynacheck_update_baseline", False)),
    )
    if settings.update_baseline and settings["baseline"] is None:
        raise pytest.UsageError("--dynacheck-update-baseline needs --dynacheck-baseline=FILE")
    _check_verbosity(config)
    _check_engine_variables()
    return settings


def _find(config: pytest.Config, option: Option) -> tuple[Any, str]:
    given = config.getoption(option.dest, None)
    if given is not None:
        return _read(option, str(given), f"{option.flag}={given}"), option.flag
    given = os.environ.get(option.variable)
    if given:
        return _read(option, given, f"environment variable {option.variable}={given}"), option.variable
    given = None if option in FILES else config.getini(option.dest)
    if given is not None and given != "":
        return _read(option, str(given), f"ini option {option.dest} = {given}"), f"ini {option.dest}"
    return option.default, "default"


def _read(option: Option, text: str, where: str) -> Any:
    try:
        return option.read(text)
    except ValueError as error:
        raise pytest.UsageError(f"{where}: {error}") from None


def _check_verbosity(config: pytest.Config) -> None:
    text = str(config.getini("verbosity_dynacheck"))
    if text != "auto" and not re.fullmatch(r"-?\d+", text):
        raise pytest.UsageError(f"ini option verbosity_dynacheck = {text}: expected auto or a whole number")


def _check_engine_variables() -> None:
    """The engine reads its variables at its first compile, which is too late to stop a run."""
    if not any(name.startswith("DYNACHECK_") for name in os.environ):
        return
    try:
        importlib.import_module("dynacheck.artifacts").check_environment()
    except ValueError as error:
        raise pytest.UsageError(f"environment variable {error}") from None


def check_backend(settings: Settings, backends: Callable[[], Iterable[str]]) -> None:
    """Refuse an unknown default backend.

    Raises:
        pytest.UsageError: there is no such backend.
    """
    why = unknown_backend(settings["backend"], backends)
    if why is not None:
        raise pytest.UsageError(f"{settings.origin('backend')}: {why}")


def unknown_backend(name: object, backends: Callable[[], Iterable[str]]) -> str | None:
    """What to say about a name that no backend has; asks the engine only about names that aren't well known."""
    if not isinstance(name, str) or name in _KNOWN_BACKENDS:
        return None
    names = sorted({*_KNOWN_BACKENDS, *backends()})
    if name in names:
        return None
    near = difflib.get_close_matches(name, names, 3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names)}"
    return f"no backend {name!r}; {hint}"


def check_device(settings: Settings) -> None:
    """Refuse a device that this machine hasn't.

    Raises:
        pytest.UsageError: there is no such device.
    """
    why = missing_device(settings["device"])
    if why is not None:
        raise pytest.UsageError(f"{settings.origin('device')}: {why}")


def missing_device(name: str | None) -> str | None:
    """What to say about a GPU that this machine hasn't."""
    if name is None or not name.startswith("cuda"):
        return None
    count = _gpus()
    if int(name.partition(":")[2] or 0) < count:
        return None
    return f"no device {name!r}; there are {count} CUDA devices"


def _gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device(settings: Settings, wanted: str | None) -> torch.device:
    """The marker's device, else the run's; GPUs are spread over the workers of xdist."""
    import torch

    name = wanted or settings["device"]
    why = missing_device(name)
    if why is not None:
        pytest.skip(why)
    count = 0 if name == "cpu" else _gpus()
    if name == "auto":
        name = "cuda" if count else "cpu"
    if name == "cuda":
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        name = f"cuda:{int(worker) % count if worker.isdigit() else 0}"
    return torch.device(name)


SETTINGS = pytest.StashKey[Settings]()


def verbosity(config: pytest.Config) -> int:
    """How much reports show: 0, 1 (`-v`) or 2 (`-vv`)."""
    return config.get_verbosity("dynacheck")
