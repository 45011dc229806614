"""`dynacheck_benchmark`: two results of pytest-benchmark, what they say, and when it fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

QUICK = ("--benchmark-max-time=0.02", "--benchmark-min-rounds=3", "--benchmark-warmup=off")
ONE = """
def test_one(dynacheck_benchmark):
    found = dynacheck_benchmark(clean, X)
    assert torch.equal(found, clean(X))
    print("MEASURED", dynacheck_benchmark.speedup > 0, dynacheck_benchmark.first_call > 0)
    print("EVEN", dynacheck_benchmark.break_even > 0, dynacheck_benchmark.first_call_cache)
"""
EAGER = "--dynacheck-backend=eager"


@pytest.fixture(autouse=True)
def _not_in_a_worker(monkeypatch):
    """pytest-benchmark measures nothing in a worker of xdist, which these tests may run in."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def told(result):
    return [line for line in result.outlines if line.startswith("dynacheck: test_it.py")]


def test_two_results_in_one_group(project):
    result = project.run(EAGER, *QUICK, "-s", "--benchmark-json=b.json", text=ONE)
    result.assert_outcomes(passed=1)
    assert "MEASURED True True" in result.stdout.str()
    found = json.loads((project.pytester.path / "b.json").read_text())["benchmarks"]
    assert [b["name"] for b in found] == ["test_one (eager)", "test_one (compiled)"]
    assert [b["group"] for b in found] == ["test_one", "test_one"]
    assert found[0]["extra_info"] == {}
    told_here = found[1]["extra_info"]["dynacheck"]
    assert (told_here["engine"], told_here["backend"]) == ("bundled", "eager")
    assert told_here["speedup"] == pytest.approx(found[0]["stats"]["min"] / found[1]["stats"]["min"])


def test_it_is_told_and_in_the_json(project):
    result = project.run(EAGER, *QUICK, "--dynacheck-json=d.json", "--dynacheck-html=d.html", text=ONE)
    [line] = told(result)
    assert "test_one: speed-up " in line
    assert ", first call " in line and "pays" in line
    [test] = json.loads((project.pytester.path / "d.json").read_text())["tests"]
    assert test["benchmark"]["speedup"] == pytest.approx(
        test["benchmark"]["eager"] / test["benchmark"]["compiled"]
    )
    assert test["counts"]["graphs"] == 1
    assert "Benchmark: speed-up" in (project.pytester.path / "d.html").read_text()


def test_the_backend_is_the_one_written(project):
    body = """
    def test_backend(dynacheck_benchmark, monkeypatch):
        monkeypatch.setattr(torch, "compile", None)
        seen = []

        def backend(graph, inputs):
            seen.append(1)
            return graph

        import dynacheck
        compiled = dynacheck.compile(clean, backend=backend)
        dynacheck_benchmark(compiled, X)
        assert seen == [1]
    """
    result = project.run(*QUICK, text=body)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dynacheck: 1 test (engine bundled, backend as-written)"])


def test_the_markers_and_options_backend_win(project):
    marked = "@pytest.mark.dynacheck(backend='eager')" + ONE.replace("\ndef", "def", 1).replace(
        "def", "\ndef", 1
    )
    result = project.run(*QUICK, text=marked)
    result.stdout.fnmatch_lines(["dynacheck: 1 test (engine bundled, backend eager)"])


SLOW = """
import time

class Slow(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def backend(graph, inputs):
    def run(*args):
        {delay}
        return graph(*args)
    return run

@pytest.mark.dynacheck(min_speedup={wanted}, backend=backend)
def test_one(dynacheck_benchmark):
    dynacheck_benchmark(Slow(), X)
"""


def test_a_speed_up_that_is_missed(project):
    body = SLOW.format(delay="time.sleep(0.002)", wanted=1.5)
    result = project.run(*QUICK, text=body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["speed-up 0.*, min_speedup(1.5): eager *, compiled * (shortest; engine bundled, backend backend)"]
    )


def test_a_speed_up_that_is_met(project):
    project.run(*QUICK, text=SLOW.format(delay="pass", wanted=0.001)).assert_outcomes(passed=1)


@pytest.mark.parametrize("wanted", ["0", "True", "'fast'"])
def test_a_speed_up_that_is_no_number(project, wanted):
    result = project.run(text=SLOW.format(delay="pass", wanted=wanted))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.dynacheck: min_speedup takes a number above 0, not *"])


def test_a_speed_up_without_the_fixture(project):
    result = project.run(text="@pytest.mark.dynacheck(min_speedup=2)\ndef test_one():\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*min_speedup is about what dynacheck_benchmark measures; use that fixture"])


@pytest.mark.parametrize("how", ["--benchmark-disable", "-n1"])
def test_disabled_is_not_measured(project, how):
    project.write(SLOW.format(delay="time.sleep(0.002)", wanted=1.5))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", how]
    run = subprocess.run(command, cwd=project.pytester.path, capture_output=True, text=True, check=False)
    assert "1 passed" in run.stdout
    assert "test_one: min_speedup(1.5) is not measured: benchmarks are disabled" in run.stdout
    assert "test_one: speed-up not measured, first call " in run.stdout


def test_skipping_and_only(project):
    project.write(ONE + "\ndef test_other():\n    pass\n")
    project.run(EAGER, *QUICK, "--benchmark-skip").assert_outcomes(passed=1, skipped=1)
    project.run(EAGER, *QUICK, "--benchmark-only").assert_outcomes(passed=1, skipped=1)


def test_without_pytest_benchmark(project):
    result = project.run("-p", "no:benchmark", "-rs", text=ONE)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*dynacheck_benchmark needs pytest-benchmark: pip install pytest-benchmark"])


def test_compiling_at_each_call_fails(project):
    result = project.run(
        EAGER,
        *QUICK,
        text="""
        def test_one(dynacheck_benchmark):
            dynacheck_benchmark(Counting(), X)
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["not steady after 4 calls: recompile:value:self.steps@programs.py:Counting.forward"]
    )


ROUNDS = "--benchmark-min-rounds=100"  # however slow the machine is, the 60th call is among them
ONCE = """
calls = []

class Switching(Scaled):
    def forward(self, x):
        return torch.relu(x) * self.scale

def test_one(dynacheck_benchmark):
    model = Switching()
    compiled = dynacheck_benchmark._run.compiling.compile(model)

    def call(x):
        calls.append(1)
        if len(calls) == 60:
            model.scale = 2.5
        return compiled(x)

    call._torchdynamo_orig_callable = model
    dynacheck_benchmark(call, X)
"""


def test_compiling_while_it_is_timed_fails(project):
    result = project.run(EAGER, *QUICK, ROUNDS, text=ONCE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["something was compiled while it was timed"])


TORCH = "--dynacheck-engine=torch"


def test_the_installed_torch_compile_is_measured(project):
    result = project.run(
        TORCH,
        EAGER,
        *QUICK,
        "-s",
        text=ONE
        + """
    compiled = dynacheck_benchmark._run.report_since(0)
    assert (compiled.counts["graphs"], len(compiled.calls) < 6) == (1, True)
""",
    )
    result.assert_outcomes(passed=1)
    assert "MEASURED True True" in result.stdout.str()
    result.stdout.fnmatch_lines(["dynacheck: 1 test (engine torch, backend eager)"])


def test_the_installed_torch_compile_compiling_again_is_seen(project):
    result = project.run(TORCH, EAGER, *QUICK, ROUNDS, text=ONCE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["something was compiled while it was timed"])


def test_running_eagerly_fails(project):
    result = project.run(
        EAGER, *QUICK, text="def test_one(dynacheck_benchmark):\n    dynacheck_benchmark(looping, X)\n"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["not steady after 4 calls: eager:skip@programs.py:looping"])


def test_timed_calls_are_not_watched(project):
    """Watching costs microseconds a call, and memory."""
    result = project.run(
        EAGER,
        *QUICK,
        "--dynacheck-json=d.json",
        text="""
        def test_one(dynacheck_benchmark, dynacheck):
            dynacheck_benchmark(clean, X)
            assert len(dynacheck.report.calls) < 6
        """,
    )
    result.assert_outcomes(passed=1)


def test_the_device_is_waited_for(project, monkeypatch):
    from pytest_dynacheck import _benchmark

    waited = []
    monkeypatch.setattr(_benchmark, "devices", lambda value: {"some gpu"})
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    project.run(EAGER, *QUICK, text=ONE).assert_outcomes(passed=1)
    assert set(waited) == {"some gpu"}
    assert len(waited) > 6


def test_devices_are_those_of_arguments_and_modules():
    from pytest_dynacheck._benchmark import devices

    class Tensor(torch.Tensor):
        device = torch.device("cuda:1")

    gpu = torch.ones(2).as_subclass(Tensor)
    assert devices(((torch.ones(2), torch.ones(2, device="meta")), {})) == set()
    assert devices(([{"a": (gpu,)}], {})) == {torch.device("cuda:1")}
    model = torch.nn.Linear(2, 2)
    model.register_buffer("extra", torch.ones(2))
    model._buffers["extra"] = gpu
    assert devices(model) == devices(model.forward) == {torch.device("cuda:1")}


def test_words():
    from pytest_dynacheck._benchmark import seconds, sentence

    assert [seconds(t) for t in (2.5, 0.0123, 1.5e-6, 3e-9)] == ["2.5 s", "12.3 ms", "1.5 µs", "3 ns"]
    data = {"eager": 2e-3, "compiled": 1e-3, "speedup": 2.0, "first_call": 1.0, "first_call_cache": "warm"}
    assert sentence({**data, "break_even": 1000}) == (
        "speed-up 2.00 (eager 2 ms, compiled 1 ms), first call 1 s (disk cache warm), pays after 1000 calls"
    )
    assert sentence({**data, "break_even": None, "first_call_cache": "none"}).endswith(
        "first call 1 s, never pays"
    )
