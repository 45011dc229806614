"""Options: command line, environment and ini, in this order, validated with where each came from."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_dynacheck._budgets import BOUNDS, Limit, nearest
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


_PREFIX = "PYTEST_DYNACHECK_"


class Option(NamedTuple):
    """One option; its ini name is `dynacheck_<name>`, its environment variable `PYTEST_DYNACHECK_<NAME>`.

    Without a metavar it is a switch: `--dynacheck-<name>` alone sets it.
    """

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
        return _PREFIX + self.name.upper()


OPTIONS = (
    Option("engine", _choice(*ENGINES), "ENGINE", "bundled",
           "what compiles and is watched: bundled (this plugin's own; default) or torch (the installed torch.compile)"),
    Option("backend", str, "NAME", "eager",
           "backend of compiles that name none or inductor (default: eager); as-written changes nothing"),
    Option("device", _device, "DEVICE", "auto",
           "device of dynacheck_device: auto (default: a GPU if there is one), cpu, cuda, cuda:n"),
    Option("dynamic", _dynamic, "BOOL", None, "dynamic= of compiles that don't say: true, false, auto (default)"),
    Option("fullgraph", _flag, "", False,
           "compile with fullgraph=True in tests under test, unless the marker allows graph breaks"),
    Option("compare", _flag, "", False,
           "in tests under test, run each compiled call eagerly as well, on copies; what differs fails the test"),
    Option("isolate", _choice(*ISOLATE), "WHICH", "marked",
           "tests that start clean and leave nothing: marked (default: those under test), all, off"),
    Option("strict", _flag, "", False,
           "fail on what is only noted otherwise: a recompile budget that proves nothing, a test the baseline lacks"),
    Option("max_graphs", _number, "N", None, "graphs allowed in a test that has no marker of its own"),
    Option("max_graph_breaks", _number, "N", None, "places with a graph break allowed in such a test"),
    Option("max_recompiles", _number, "N", None, "recompiles allowed in such a test"),
    Option("max_cache_entries", _number, "N", None, "cache entries of one function allowed in such a test"),
)  # fmt: skip
FILES = (
    Option("baseline", _file, "FILE", None,
           "compare with what tests compiled when FILE was written: more than that fails, and so does another cause"),
    Option("json", _file, "FILE", None, "write what tests compiled to FILE, as JSON"),
    Option("html", _file, "FILE", None, "write the same as a page that needs nothing else"),
)  # fmt: skip
"""What a run reads and writes: given on the command line or by the environment, not in the ini file."""
ACTIONS = {
    "--dynacheck": "print a table of what each test compiled with this engine; judges and redirects nothing by itself",
    "--dynacheck-update-baseline": "write what tests compile to the baseline's FILE instead of comparing with it",
}
"""What one run is asked to do: on the command line only."""
VERBOSITY = "verbosity_dynacheck"
VERBOSITY_HELP = "verbosity of dynacheck's reports: auto (default: that of pytest) or a whole number"


class Settings:
    """All options of a run, with where each came from."""

    def __init__(
        self,
        values: dict[str, tuple[Any, str]],
        *,
        observe: bool,
        update_baseline: bool,
        engines: Mapping[str, Make],
    ) -> None:
        self._values = values
        self.update_baseline = update_baseline
        self.engines = engines
        self.observe = observe
        self.fullgraph: bool = self["fullgraph"]
        self.compare: bool = self["compare"]
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
        return self.observe or any(origin != "default" for _, origin in self._values.values())


def add(parser: pytest.Parser) -> None:
    """Register the options, their ini twins and the verbosity."""
    group = parser.getgroup("dynacheck", "compile stability (pytest-dynacheck)")
    for flag, text in ACTIONS.items():
        dest = flag.removeprefix("--").replace("-", "_")
        group.addoption(flag, action="store_true", default=False, dest=dest, help=text)
    for option in (*OPTIONS, *FILES):
        form: dict[str, Any] = {"metavar": option.metavar} if option.metavar else _SWITCH
        group.addoption(option.flag, default=None, dest=option.dest, help=option.help, **form)
    for option in OPTIONS:
        text = f"{option.help} (environment: {option.variable})"
        _add_ini(parser, option.dest, text, _NATIVE.get(option.read), None)
    _add_ini(parser, VERBOSITY, VERBOSITY_HELP, int, "auto")


_NATIVE: dict[Callable[[str], Any], type] = {_number: int, _flag: bool, _dynamic: bool}
_SWITCH = {"action": "store_const", "const": "true"}


def _add_ini(parser: pytest.Parser, name: str, text: str, native: type | None, default: str | None) -> None:
    """Text, or a value of TOML's own where pytest (from 9.2 on) can be told so."""
    kind: Any = "string" if native is None or _PYTEST < (9, 2) else native | str
    parser.addini(name, text, kind, default=default)


_PYTEST = tuple(int(part) for part in pytest.__version__.split(".")[:2])


def read(config: pytest.Config) -> Settings:
    """The settings of this run.

    Raises:
        pytest.UsageError: a value that its option doesn't take, with where it came from.
    """
    found = engines(config)
    options = [o._replace(read=_choice(*found)) if o.name == "engine" else o for o in OPTIONS]
    _check_variables(config)
    settings = Settings(
        {option.name: _find(config, option) for option in (*options, *FILES)},
        observe=bool(config.getoption("dynacheck", False)),
        engines=found,
        update_baseline=bool(config.getoption("dynacheck_update_baseline", False)),
    )
    if settings.update_baseline and settings["baseline"] is None:
        raise pytest.UsageError("--dynacheck-update-baseline needs --dynacheck-baseline=FILE")
    return settings


def _find(config: pytest.Config, option: Option) -> tuple[Any, str]:
    given = config.getoption(option.dest, None)
    if given is not None:
        return _read(option, str(given), f"{option.flag}={given}"), option.flag
    given = os.environ.get(option.variable)
    if given:
        return _read(option, given, f"environment variable {option.variable}={given}"), option.variable
    given = None if option in FILES else _ini(config, option.dest)
    if given is not None and given != "":
        return _read(option, str(given), f"ini option {option.dest} = {given}"), f"ini {option.dest}"
    return option.default, "default"


def _ini(config: pytest.Config, name: str) -> Any:
    try:
        return config.getini(name)
    except TypeError as error:  # pytest 9.0 and 9.1, whose own TOML files hold other types than text
        raise pytest.UsageError(f"{error}; write it in quotes") from None


def _read(option: Option, text: str, where: str) -> Any:
    try:
        return option.read(text)
    except ValueError as error:
        raise pytest.UsageError(f"{where}: {error}") from None


def _check_variables(config: pytest.Config) -> None:
    """Refuse what can't be meant, before anything is collected: the engine reads its variables too late for that."""
    text = str(_ini(config, VERBOSITY))
    if text != "auto" and not re.fullmatch(r"-?\d+", text):
        raise pytest.UsageError(f"ini option {VERBOSITY} = {text}: expected auto or a whole number")
    _check_ini(config)
    ours = {option.name: option.variable for option in (*OPTIONS, *FILES)}
    for variable in sorted(os.environ):
        if variable.startswith(_PREFIX) and variable not in ours.values():
            near = nearest(variable.removeprefix(_PREFIX).lower(), ours)
            hint = f"did you mean {ours[near[0]]}?" if near else f"there are {', '.join(ours.values())}"
            raise pytest.UsageError(f"environment variable {variable}: there is no such option; {hint}")
    for variable in ours.values():
        short = variable.removeprefix("PYTEST_")
        if short in os.environ:
            raise pytest.UsageError(
                f"environment variable {short}: there is no such option; did you mean {variable}?"
            )
    if not any(name.startswith("DYNACHECK_") for name in os.environ):
        return
    try:
        misspelt = importlib.import_module("dynacheck.artifacts").check_environment()
    except ValueError as error:
        raise pytest.UsageError(f"environment variable {error}") from None
    if not hasattr(config, "workerinput"):
        try:
            for sentence in misspelt:
                config.issue_config_time_warning(pytest.PytestConfigWarning(sentence), stacklevel=2)
        except pytest.PytestConfigWarning as error:  # where warnings are errors
            raise pytest.UsageError(str(error)) from None


def _check_ini(config: pytest.Config) -> None:
    """Refuse an ini option that nothing reads: pytest only warns of it, and a budget that isn't set holds nothing."""
    ours = [*(option.dest for option in OPTIONS), VERBOSITY]
    elsewhere = {option.dest: option.flag for option in FILES}
    elsewhere |= {flag.removeprefix("--").replace("-", "_"): flag for flag in ACTIONS}
    for name in sorted(_ini_names(config) - {*ours}):
        if not _LIKE_OURS.match(name) or _is_known(config, name):
            continue
        prefixed = name.startswith(("dynacheck_", "dynacheck-"))
        end, ends = name.replace("-", "_"), {known: known for known in (*ours, *elsewhere)}
        if prefixed:
            end, ends = end[10:], {known.removeprefix("dynacheck_"): known for known in ends}
        near = [ends[found] for found in nearest(end, ends, cutoff=0.6 if prefixed else 0.9)]
        if not (near or prefixed):
            continue  # of another plugin, which isn't loaded now
        hint = f"there are {', '.join(ours)}"
        if near:
            flag = elsewhere.get(near[0])
            hint = f"give {flag} on the command line" if flag else f"did you mean {near[0]}?"
        raise pytest.UsageError(f"ini option {name}: there is no such option; {hint}")


_LIKE_OURS = re.compile("(verbosity_)?dyna")


def _ini_names(config: pytest.Config) -> set[str]:
    """Names that the ini file or `-o` sets, known or not."""
    read = getattr(config, "_inicfg", None)  # pytest 9 has deprecated the public name and has no other
    overridden = (text.partition("=")[0] for text in config.getoption("override_ini", None) or ())
    return {*(config.inicfg if read is None else read), *overridden}


def _is_known(config: pytest.Config, name: str) -> bool:
    try:
        config.getini(name)
    except ValueError as error:
        return "unknown configuration" not in str(error)
    except TypeError:
        return True
    return True


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
    near = nearest(name, names, 3)
    some = f"there are {', '.join(_KNOWN_BACKENDS)}, and those of torch._dynamo.list_backends(None)"
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else some
    return f"no backend {name!r}; {hint}"


def check_device(settings: Settings) -> None:
    """Refuse a device that this machine hasn't.

    Raises:
        pytest.UsageError: there is no such device.
    """
    name = settings["device"]
    why = None if name == "cuda" else missing_device(name)  # without any GPU tests that use one are skipped
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
