"""While code is compiled, stderr says so: once, only if it takes long, and never elsewhere."""

import io
import json
import sys
import threading
import time

import pytest

from onebit.core import compiling as compiler
from onebit.core import progress
from onebit.core.compiling import compiled
from processes import run_python

SOON = 0.05
LINE = "onebit: compiling Thing, once for this machine: up to a minute (ONEBIT_PROGRESS=0 hides"


@pytest.fixture(autouse=True)
def of_a_new_process(monkeypatch):
    """Show progress, soon, as in a process that has compiled nothing yet."""
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    monkeypatch.setattr(progress, "SECONDS", SOON)
    monkeypatch.setattr(progress, "_announced", bytearray(1))


class Terminal(io.StringIO):
    """What was written to it, and its last line as people see it."""

    def isatty(self):
        return True

    @property
    def shown(self):
        text = ""
        for written in self.getvalue().rpartition("\n")[2].split("\r"):
            text = written + text[len(written) :]
        return text


def compile_for(seconds, what="Thing"):
    with progress.compiling(what, lambda: "folder"):
        time.sleep(seconds)


def test_one_line_says_what_is_compiled(capsys):
    threads = threading.active_count()
    compile_for(3 * SOON)
    compile_for(3 * SOON, "Other")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(LINE)
    assert err.count("\n") == 1
    assert "Other" not in err
    assert threading.active_count() == threads


def test_what_takes_no_time_is_not_mentioned(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 60.0)
    start = time.perf_counter()
    compile_for(0)
    assert time.perf_counter() - start < 10
    assert capsys.readouterr().err == ""


def test_a_terminal_counts_seconds_and_erases_them(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    compile_for(4 * SOON)
    assert "\ronebit: compiling Thing, 0 s" in terminal.getvalue()
    compile_for(4 * SOON, "O" * 200)
    assert terminal.getvalue().count("once for this machine") == 1
    last = terminal.getvalue().rpartition("\n")[2]
    assert "compiling OOO" in last
    assert max(map(len, last.split("\r"))) < 80
    assert terminal.shown.strip() == ""


def test_the_variable_hides_all(capsys, monkeypatch):
    monkeypatch.setenv("ONEBIT_PROGRESS", "0")
    monkeypatch.setattr(progress, "Thread", None)  # none is started
    compile_for(3 * SOON)
    assert capsys.readouterr().err == ""


def test_without_a_place_for_code_the_line_says_so(capsys):
    with progress.compiling("Thing", lambda: None):
        time.sleep(3 * SOON)
    assert "compiling Thing, in each process, as no folder" in capsys.readouterr().err


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_without_stderr_nothing_is_shown(stderr, monkeypatch):
    if stderr:
        stderr = Terminal()
        stderr.close()
    monkeypatch.setattr(sys, "stderr", stderr)
    threads = threading.active_count()
    compile_for(3 * SOON)
    assert threading.active_count() == threads


def test_an_interrupt_ends_it(capsys):
    threads = threading.active_count()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), progress.compiling("Thing", lambda: "folder"):
            raise KeyboardInterrupt
    assert threading.active_count() == threads
    compile_for(3 * SOON)
    assert capsys.readouterr().err.startswith(LINE)


def template(x):
    return x + 1


@pytest.mark.skipif(not compiler.COMPILES, reason="nothing is compiled")
def test_code_found_on_disk_is_not_mentioned(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compiler, "_cache_roots", lambda: [tmp_path])
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    assert compiled("onebit.learners.banditron.some.decide", template, nogil=False)(1) == 2
    assert "compiling Banditron, once" in capsys.readouterr().err
    monkeypatch.setattr(progress, "_announced", bytearray(1))
    assert compiled("onebit.core.example.some", template, nogil=False)(1) == 2
    assert "compiling onebit, once" in capsys.readouterr().err
    monkeypatch.setattr(progress, "compiling", None)  # not even asked
    assert compiled("onebit.learners.banditron.some.decide", template, nogil=False)(1) == 2
    assert capsys.readouterr().err == ""


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
        time.sleep(0.05)
"""


def test_the_service_logs_one_line_of_json():
    [line] = run_python(SERVICE, check=True).stderr.splitlines()
    assert json.loads(line)["message"].startswith("compiling Thing, once for this machine")
