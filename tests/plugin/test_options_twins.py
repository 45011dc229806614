"""Every option's command line, environment and ini: which wins, and a value that none of them takes."""

from __future__ import annotations

import pytest

from pytest_dynacheck import _options

VALUES = {  # two values of each, and one that it doesn't take
    "engine": ("torch", "bundled", "other"),
    "backend": ("aot_eager", "inspect", "nonsense"),
    "device": ("cpu", "auto", "tpu"),
    "dynamic": ("true", "false", "maybe"),
    "fullgraph": ("true", "false", "maybe"),
    "compare": ("true", "false", "maybe"),
    "isolate": ("all", "off", "some"),
    "strict": ("true", "false", "maybe"),
    "max_graphs": ("2", "3", "few"),
    "max_graph_breaks": ("2", "3", "-1"),
    "max_recompiles": ("2", "3", "1.5"),
    "max_cache_entries": ("2", "3", "0x1"),
    "baseline": ("one.toml", "two.toml", "."),
    "json": ("one.json", "two.json", "."),
    "html": ("one.html", "two.html", "."),
}
OPTIONS = {option.name: option for option in (*_options.OPTIONS, *_options.FILES)}


def test_the_table_has_every_option():
    assert set(VALUES) == set(OPTIONS)


class Given:
    """A configuration that has what a test gives it, and nothing else."""

    def __init__(self, line: dict[str, str], ini: dict[str, object]) -> None:
        self.line, self.ini = line, ini
        self.hook = self
        self.inicfg = ini

    def pytest_dynacheck_engines(self, config: object) -> list[object]:
        return []

    def getoption(self, name: str, default: object = None) -> object:
        return self.line.get(name, default)

    def getini(self, name: str) -> object:
        return self.ini.get(name, "auto" if name == _options.VERBOSITY else None)


@pytest.mark.parametrize("name", VALUES)
def test_the_line_wins_over_the_environment_over_ini_over_the_default(name, monkeypatch):
    option = OPTIONS[name]
    one, two, _ = VALUES[name]
    has_ini = option in _options.OPTIONS

    def found(line: dict[str, str], ini: dict[str, object]) -> tuple[object, str]:
        settings = _options.read(Given(line, ini))
        return settings[name], settings.origin(name)

    assert found({}, {}) == (option.default, "default")
    assert found({}, {option.dest: one}) == (
        (option.read(one), f"ini {option.dest}") if has_ini else (option.default, "default")
    )
    monkeypatch.setenv(option.variable, two)
    assert found({}, {option.dest: one}) == (option.read(two), option.variable)
    assert found({option.dest: one}, {option.dest: two}) == (option.read(one), option.flag)
    monkeypatch.setenv(option.variable, "")  # as if it weren't there
    assert found({}, {})[1] == "default"


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["plain", "xdist"])
@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_value_is_one_line_wherever_it_comes_from(project, monkeypatch, name, workers):
    option, wrong = OPTIONS[name], VALUES[name][2]
    project.write("def test_one():\n    pass\n")

    def refused(where: str, *args: str) -> None:
        result = project.run(*args, *workers)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        errors = [line for line in result.errlines if line]
        assert len(errors) == 1 and errors[0].startswith(f"ERROR: {where}"), errors
        assert "INTERNALERROR" not in result.stdout.str() and "collected" not in result.stdout.str()

    if option.metavar:
        refused(option.flag, f"{option.flag}={wrong}")
    if option in _options.OPTIONS:
        refused(f"ini {'' if name == 'backend' else 'option '}{option.dest}", "-o", f"{option.dest}={wrong}")
    monkeypatch.setenv(option.variable, wrong)
    refused(option.variable if name == "backend" else f"environment variable {option.variable}={wrong}: ")


def test_a_file_of_pytest_s_own_may_hold_numbers_and_booleans(project):
    text = "[pytest]\ndynacheck_max_graphs = 3\ndynacheck_compare = true\ndynacheck_dynamic = false\n"
    project.pytester.path.joinpath("pytest.toml").write_text(text + "verbosity_dynacheck = 2\n")
    result = project.run(text="def test_one():\n    torch.compile(clean)(X)\n")
    if tuple(map(int, pytest.__version__.split(".")[:2])) >= (9, 2):
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["dynacheck: * max_graphs(3), compare)"])
    elif pytest.__version__ >= "9":
        result.stderr.fnmatch_lines(["ERROR: *dynacheck_*; write it in quotes"])


MISSPELT = {
    "dynacheck_max_recompile": "did you mean dynacheck_max_recompiles?",
    "dynacheck-engine": "did you mean dynacheck_engine?",
    "dynachek_strict": "did you mean dynacheck_strict?",
    "verbosity_dynachek": "did you mean verbosity_dynacheck?",
    "dynacheck_json": "give --dynacheck-json on the command line",
    "dynacheck_update_baselines": "give --dynacheck-update-baseline on the command line",
    "dynacheck_qqq": "there are dynacheck_engine, dynacheck_backend, *, verbosity_dynacheck",
}
FILES = {
    "pytest.ini": "[pytest]\n{} = 1\n",
    "tox.ini": "[pytest]\n{} = 1\n",
    "setup.cfg": "[tool:pytest]\n{} = 1\n",
    "pyproject.toml": "[tool.pytest.ini_options]\n{} = 1\n",
    "-o": "",
}
if pytest.version_tuple >= (9, 0):
    FILES |= {"pyproject.toml ": "[tool.pytest]\n{} = '1'\n", "pytest.toml": "[pytest]\n{} = '1'\n"}


def rows_of_misspelt():
    return [(name, "pyproject.toml", ()) for name in MISSPELT] + [
        ("dynacheck_max_recompile", file, workers) for file in FILES for workers in ((), ("-n1",))
    ]


@pytest.mark.parametrize(("name", "file", "workers"), rows_of_misspelt())
def test_a_misspelt_ini_option_stops_the_run(project, name, file, workers):
    args = ("-o", f"{name}=1") if file == "-o" else ()
    if not args:
        project.pytester.path.joinpath(file.strip()).write_text(FILES[file].format(name))
    result = project.run(*args, *workers, text="def test_one():\n    pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: ini option {name}: there is no such option; {MISSPELT[name]}"])
    assert "collected" not in result.stdout.str()


def test_ini_options_of_other_plugins_are_theirs(project):
    """Those of a plugin of ours that is loaded, and those that only look a little like ours."""
    project.pytester.makeconftest("""
        def pytest_addoption(parser):
            parser.addini("dynacheck_cloud", "another engine's")
    """)
    project.pytester.makeini("[pytest]\ndynacheck_cloud = here\ndynamodb_strict = 1\n")
    project.run(text="def test_one():\n    pass\n").assert_outcomes(passed=1)


def test_a_misspelt_variable_of_the_plugin_stops_the_run(project, monkeypatch):
    monkeypatch.setenv("PYTEST_DYNACHECK_MAX_RECOMPILE", "1")
    result = project.run(text="def test_one():\n    pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: environment variable PYTEST_DYNACHECK_MAX_RECOMPILE: there is no such option; "
            "did you mean PYTEST_DYNACHECK_MAX_RECOMPILES?"
        ]
    )
    monkeypatch.delenv("PYTEST_DYNACHECK_MAX_RECOMPILE")
    monkeypatch.setenv("PYTEST_DYNACHECK_XYZ", "1")
    project.run().stderr.fnmatch_lines(["*PYTEST_DYNACHECK_XYZ: there is no such option; there are PYTEST_*"])
    monkeypatch.delenv("PYTEST_DYNACHECK_XYZ")
    monkeypatch.setenv("DYNACHECK_MAX_GRAPHS", "1")
    project.run().stderr.fnmatch_lines(
        [
            "ERROR: environment variable DYNACHECK_MAX_GRAPHS: there is no such option; "
            "did you mean PYTEST_DYNACHECK_MAX_GRAPHS?"
        ]
    )


def test_no_variable_of_the_engine_has_the_name_of_one_of_the_plugin_less_its_prefix():
    from dynacheck import config

    short = {option.variable.removeprefix("PYTEST_") for option in OPTIONS.values()}
    assert short.isdisjoint(f"DYNACHECK_{name.upper()}" for name in config._FIELDS)


def test_a_misspelt_variable_of_the_engine_is_warned_of_and_another_tools_is_not(project, monkeypatch):
    from dynacheck import artifacts

    monkeypatch.setattr(artifacts._switchboard, "told", False)
    monkeypatch.setenv("DYNACHECK_RECOMPLE_LIMIT", "3")
    monkeypatch.setenv("DYNACHECK_ROOT", "/opt")
    text = "environment variable DYNACHECK_RECOMPLE_LIMIT is ignored; did you mean DYNACHECK_RECOMPILE_LIMIT?"
    result = project.run(text="def test_one():\n    torch.compile(clean)(X)\n")
    assert result.parseoutcomes()["passed"] == 1
    result.stdout.fnmatch_lines([f"*PytestConfigWarning: {text}"])
    assert "DYNACHECK_ROOT" not in result.stdout.str()
    monkeypatch.setattr(artifacts._switchboard, "told", False)
    result = project.run("-Werror", "-p", "no:asyncio")  # which warns by itself
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {text}"])


def test_a_marker_wins_over_the_command_line(project):
    result = project.run(
        "--dynacheck-engine=torch", "--dynacheck-backend=nonsense", "--dynacheck-dynamic=true",
        "--dynacheck-isolate=off", "--dynacheck-max-graphs=0", "--dynacheck-fullgraph", "--dynacheck-compare",
        "--dynacheck-backend=inspect", "--dynacheck-device=auto",
        text="""
        @pytest.mark.dynacheck(
            engine="bundled", backend="aot_eager", dynamic=False, isolate=True, max_graphs=2, fullgraph=False,
            compare=False, device="cpu"
        )
        def test_one(request, dynacheck, dynacheck_device):
            run = dynacheck._run
            assert run.engine.name == "bundled" and run.isolated and run.compiling.comparison is None
            torch.compile(printing)(X)
            assert {graph.backend for graph in dynacheck.report.graphs} == {"aot_eager"}
            assert run.compiling.keywords({}) == {"backend": "aot_eager", "fullgraph": False, "dynamic": False}
            assert dynacheck_device.type == "cpu"
        """,
    )  # fmt: skip
    result.assert_outcomes(passed=1)
