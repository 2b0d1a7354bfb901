"""While code is compiled, stderr says so: once, only if it takes long, and never elsewhere."""

import io
import json
import threading
import time
from types import SimpleNamespace

import pytest

from onebit.core import compiling as compiler
from onebit.core import progress
from onebit.core.compiling import compiled
from processes import run_python

SOON = 0.02
LINE = "onebit: compiling Thing, once for this machine: up to a minute (ONEBIT_PROGRESS=0 hides"


@pytest.fixture(autouse=True)
def of_a_new_process(monkeypatch):
    """Show progress, soon, as in a process that has compiled nothing yet."""
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.setattr(progress, "SECONDS", SOON)
    monkeypatch.setattr(progress, "_announced", bytearray(1))


class Stderr(io.StringIO):
    """What was written to it, and its last line as people see it."""

    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal

    @property
    def shown(self):
        text = ""
        for written in self.getvalue().rpartition("\n")[2].split("\r"):
            text = written + text[len(written) :]
        return text


@pytest.fixture
def stderr(monkeypatch, request):
    """In place of stderr, a file, or the terminal that a test asks for."""
    stderr = Stderr(getattr(request, "param", False))
    # Between fixtures and tests, pytest sets that of the process.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stderr))
    return stderr


def compile_until(shown, what="Thing", where="folder", seconds=10.0):
    """Compile until something is shown, on a busy machine too, or for some seconds."""
    with progress.compiling(what, lambda: where):
        end = time.monotonic() + seconds
        while not shown() and time.monotonic() < end:
            time.sleep(SOON)


def compile_for(seconds, what="Thing"):
    compile_until(lambda: False, what, seconds=seconds)


def test_one_line_says_what_is_compiled(stderr, capsys):
    threads = threading.active_count()
    compile_until(stderr.getvalue)
    compile_for(5 * SOON, "Other")
    assert stderr.getvalue().startswith(LINE)
    assert stderr.getvalue().count("\n") == 1
    assert "Other" not in stderr.getvalue()
    assert capsys.readouterr().out == ""
    assert threading.active_count() == threads


def test_what_takes_no_time_is_not_mentioned(stderr, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 60.0)
    start = time.perf_counter()
    compile_for(0)
    assert time.perf_counter() - start < 10
    assert stderr.getvalue() == ""


@pytest.mark.parametrize("stderr", [True], indirect=True)
def test_a_terminal_counts_seconds_and_erases_them(stderr):
    compile_until(lambda: "\ronebit: compiling Thing, 0 s" in stderr.getvalue())
    assert "\ronebit: compiling Thing, 0 s" in stderr.getvalue()
    compile_until(lambda: "OOO" in stderr.getvalue(), "O" * 200)
    assert stderr.getvalue().count("once for this machine") == 1
    last = stderr.getvalue().rpartition("\n")[2]
    assert "compiling OOO" in last
    assert max(map(len, last.split("\r"))) < 80
    assert stderr.shown.strip() == ""


def test_the_variable_hides_all(stderr, monkeypatch):
    monkeypatch.setenv("ONEBIT_PROGRESS", "0")
    monkeypatch.setattr(progress, "Thread", None)  # none is started
    compile_for(3 * SOON)
    assert stderr.getvalue() == ""


def test_without_a_place_for_code_the_line_says_so(stderr):
    compile_until(stderr.getvalue, where=None)
    assert "compiling Thing, in each process, as no folder" in stderr.getvalue()


@pytest.mark.parametrize("there", [False, True])
def test_without_stderr_nothing_is_shown(there, stderr, monkeypatch):
    if there:
        stderr.close()
    else:
        monkeypatch.setattr(progress.sys, "stderr", None)
    threads = threading.active_count()
    compile_for(3 * SOON)
    assert threading.active_count() == threads


def test_an_interrupt_ends_the_progress(stderr):
    threads = threading.active_count()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), progress.compiling("Thing", lambda: "folder"):
            raise KeyboardInterrupt
    assert threading.active_count() == threads
    compile_until(stderr.getvalue)
    assert stderr.getvalue().startswith(LINE)


def template(x):
    return x + 1


@pytest.mark.skipif(not compiler.COMPILES, reason="nothing is compiled")
def test_code_found_on_disk_is_not_mentioned(tmp_path, stderr, monkeypatch):
    monkeypatch.setattr("onebit.core.code_cache.roots", lambda: [tmp_path])
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    assert compiled("onebit.learners.banditron.some.decide", template, nogil=False)(1) == 2
    assert "compiling Banditron, once" in stderr.getvalue()
    monkeypatch.setattr(progress, "_announced", bytearray(1))
    assert compiled("onebit.core.example.some", template, nogil=False)(1) == 2
    assert "compiling onebit, once" in stderr.getvalue()
    stderr.truncate(0)
    monkeypatch.setattr(progress, "compiling", None)  # not even asked
    assert compiled("onebit.learners.banditron.some.decide", template, nogil=False)(1) == 2
    assert stderr.getvalue() == ""


FORKS = """
import os, sys, time
from threading import Thread
from onebit.core import progress

progress.SECONDS = 0.01

class Slow:
    def write(self, text):
        time.sleep(0.02)
        os.write(2, text.encode())
    def flush(self): pass
    def isatty(self): return True

def compile_for(seconds):
    with progress.compiling("Thing", lambda: "folder"):
        time.sleep(seconds)

sys.stderr = Slow()
thread = Thread(target=compile_for, args=(0.5,))
thread.start()
for _ in range(10):  # while the other thread writes
    child = os.fork()
    if not child:
        free = progress._WRITING.acquire(timeout=2)
        if free:
            progress._WRITING.release()
            compile_for(0.05)
            os.write(1, b"ended\\n")
        os._exit(0)
    os.waitpid(child, 0)
thread.join()
"""


def test_forked_processes_announce_once_and_never_wait():
    ended = run_python(FORKS)
    assert ended.returncode == 0
    assert ended.stderr.count("once for this machine") == 1
    assert ended.stdout.count("ended") == 10


SERVICE = """
import time
from onebit.core import progress
from onebit.serve.running import log_as_json

progress.SECONDS = 0.01
log_as_json()
for _ in range(2):
    with progress.compiling("Thing", lambda: "folder"):
        time.sleep(0.3)
"""


def test_the_service_logs_one_line_of_json():
    [line] = run_python(SERVICE, check=True).stderr.splitlines()
    assert json.loads(line)["message"].startswith("compiling Thing, once for this machine")
