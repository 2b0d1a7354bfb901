"""Sweeps in several processes: results are the same, and no process is waited for in vain."""

import os
import signal
import subprocess
import sys
import time

import pytest

from processes import run_python

# A script as people write them: without a guard, and with a class of its own.
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from onebit import lab
from onebit.lab.processes import may_copy
from onebit.streams import StreamSpec

assert may_copy()
folder = Path(sys.argv[1])

class Watched:
    def __call__(self, learner, X, y, epochs):
        (folder / str(os.getpid())).touch()
        if sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[2] == "slow":
            time.sleep(60)
        return {**lab.sweeps.ONLINE(learner, X, y, epochs), "seconds": 0.0}

def table(jobs):
    return lab.sweep(["banditron"], {"gamma": [0.1, 0.2]}, {"a": StreamSpec("synsep", 300)}, 2,
                     Watched(), jobs=jobs, folder=folder / str(jobs))
two = table(2)
assert len(list(folder.glob("[0-9][0-9]*"))) == 2
assert two.equals(table(1))
assert may_copy()
"""


def started(tmp_path, mode):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    (tmp_path / "out").mkdir()
    command = [sys.executable, path, tmp_path / "out", mode]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def pids(tmp_path):
    return [int(path.name) for path in (tmp_path / "out").glob("[0-9][0-9]*")]


def is_there(pid):
    """Return whether a process is there and has not ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")


def test_copies_give_the_table_of_one_process(tmp_path):
    assert run_python(SCRIPT, tmp_path, "whole") == (0, "", "")


def test_a_killed_process_is_told_and_not_waited_for(tmp_path):
    ended = run_python(SCRIPT, tmp_path, "killed")
    assert "ChildProcessError: a process that played was killed" in ended.stderr
    assert ended.returncode == 1


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_processes_end_with_the_one_that_started_them(tmp_path, number):
    process = started(tmp_path, "slow")
    wait_until(lambda: len(pids(tmp_path)) == 2)
    if number == signal.SIGINT:  # as a terminal sends it: to all of them
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    errors = process.communicate(timeout=30)[1]
    assert errors.count("Traceback") == (number == signal.SIGINT)
    wait_until(lambda: not any(map(is_there, pids(tmp_path))))
