"""Fork, exit, subinterpreters, what importing loads."""

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

from dynacheck import _C

ROOT = str(Path(_C.__file__).parents[1])


def run(source):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(source)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def assert_clean(source, out=""):
    process = run(source)
    assert (process.returncode, process.stderr.strip(), process.stdout.strip()) == (0, "", out)


def test_fork(native):
    ns = native.make("def f(a): return 0\ndef r(a): return ('r', a)\n")
    with native.rewriting({ns["f"]: ns["r"]}):
        ns["f"](1)
        pid = os.fork()
        if pid == 0:
            ok = ns["f"](2) == ("r", 2)
            _C.set_callback(None)
            os._exit(0 if ok and _C.hook_stats()["evaluator"] == "default" else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_fork_while_another_thread_is_on():
    assert_clean(
        """
        import os, threading
        from dynacheck import _C
        on, leave = threading.Event(), threading.Event()
        def work():
            _C.HookedCall(lambda: (on.set(), leave.wait()), False)()
        thread = threading.Thread(target=work)
        thread.start()
        on.wait()
        assert _C.hook_stats()["users"] == 1
        pid = os.fork()
        if pid == 0:
            (lambda: 1)()
            stats = _C.hook_stats()
            os._exit(0 if (stats["evaluator"], stats["users"]) == ("default", 0) else 1)
        assert os.waitpid(pid, 0)[1] == 0
        leave.set()
        thread.join()
        assert _C.hook_stats()["evaluator"] == "default"
        """
    )


def test_exit_while_on():
    assert_clean(
        """
        import atexit, threading
        from dynacheck import _C
        def f(a): return a
        def r(a):
            b = c = d = 1
            return 'r'
        _C.state(f.__code__).add(_C.Entry(None, r.__code__, None))
        _C.set_callback(lambda *_: None, _C.Region())
        _C.set_callback(False)
        assert f(1) == 'r'
        class K:
            def __del__(self): f(1)
        keep = K()
        call = _C.HookedCall(f, False)
        class L:
            def __del__(self): call(1)
        keep2 = L()
        atexit.register(f, 1)
        thread = threading.Thread(target=lambda: (_C.set_callback(False), f(1)), daemon=True)
        thread.start(); thread.join()
        forever = _C.HookedCall(lambda: threading.Event().wait(), False)
        never = threading.Thread(target=forever, daemon=True)
        never.start()
        """
    )


def test_subinterpreter_is_refused():
    process = run(
        """
        try:
            import _xxsubinterpreters as interpreters
            new = interpreters.create(isolated=False)
        except ImportError:
            import _interpreters as interpreters
            new = interpreters.create("legacy")
        from dynacheck import _C
        interpreters.run_string(new, '''if True:
            try:
                from dynacheck import _C
                _C.set_callback(False)
            except (ImportError, RuntimeError) as error:
                print("main interpreter only" in str(error))
            else:
                print("accepted")
        ''')
        interpreters.destroy(new)
        """
    )
    assert "True" in process.stdout and process.returncode == 0, (process.stdout, process.stderr)


def test_import_loads_neither_torch_nor_the_engine():
    assert_clean(
        """
        import sys
        import dynacheck, dynacheck._C
        loaded = {m for m in sys.modules if m.startswith(("dynacheck", "torch", "bytecode"))}
        print(sorted(loaded))
        """,
        "['dynacheck', 'dynacheck._C']",
    )


def test_second_import_is_the_same_module():
    assert_clean(
        """
        import sys
        from dynacheck import _C as first
        del sys.modules["dynacheck._C"], sys.modules["dynacheck"]
        from dynacheck import _C as second
        assert first.CodeState is second.CodeState and first.NULL is second.NULL
        def f(): return 1
        assert first.state(f.__code__) is second.state(f.__code__)
        """
    )


def test_built_for_this_version():
    assert sysconfig.get_python_version().replace(".", "") in Path(_C.__file__).name
