"""Processes that compile on other cores, and what happens if they cannot."""

import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas
import pytest

import onebit
from copies import copy_package
from onebit.core import workers
from onebit.core.compiling import HOOKS
from onebit.core.hooks import Hook
from onebit.core.workers import Task, Worker, WorkerError, run_all
from processes import run_python


def environment(tmp_path, **own):
    return os.environ | {
        "PYTHONPATH": str(Path(onebit.__file__).parents[1]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
        "ONEBIT_PROCESSES": "2",
        **own,
    }


FIRST = """
from onebit import Banditron
from onebit.core import workers
from onebit.core.compiling import counts
BEFORE
learner = Banditron(classes=["a", "b"], random_state=0)
decision = learner.decide([1.0, 2.0])
started = learner._run.kernels._worker is not None
after_decide = counts()
learner.learn(decision, correct=True)
compiled, loaded = (b - a for a, b in zip(after_decide, counts()))
print(started, after_decide.compiled, compiled, loaded, abs(learner.coef_).sum())
"""


def first(tmp_path, before="", **own):
    code = FIRST.replace("BEFORE", before)
    own = {"PYTHONPATH": str(tmp_path), **own}
    ended = run_python(code, environment=environment(tmp_path, **own), check=True)
    started, *numbers = ended.stdout.split()
    return started == "True", [float(number) for number in numbers]


@pytest.fixture
def tmp_path(tmp_path):
    """A folder with a copy of onebit of its own, without compiled code."""
    copy_package(tmp_path)
    return tmp_path


@pytest.mark.skipif(Hook.CACHE not in HOOKS, reason="what is on disk is not known")
class TestFirstDecision:
    """`learn` is compiled by another process while this one compiles `decide`."""

    def test_learn_is_compiled_elsewhere(self, tmp_path):
        started, (decide, compiled, loaded, weights) = first(tmp_path)
        assert started
        assert decide >= 1
        assert (compiled, loaded) == (0, 1)
        assert weights > 0
        # Another process finds both.
        assert first(tmp_path) == (False, [0, 0, 1, weights])

    def test_on_one_core_nothing_is_started(self, tmp_path):
        started, (_, compiled, loaded, _) = first(tmp_path, ONEBIT_PROCESSES="1")
        assert not started
        assert (compiled, loaded) == (1, 0)

    def test_without_a_place_for_code_nothing_is_started(self, tmp_path):
        (tmp_path / "file").touch()
        bytecode = tmp_path / "onebit" / "core" / "__pycache__"
        shutil.rmtree(bytecode)
        bytecode.touch()
        nowhere = dict.fromkeys(
            ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"), str(tmp_path / "file" / "within")
        )
        started, (_, compiled, *_) = first(tmp_path, **nowhere)
        assert not started
        assert compiled == 1

    @pytest.mark.parametrize(
        "before",
        [
            "workers._START = 'import os; os.kill(os.getpid(), 9)'",
            *(
                pytest.param(before, marks=pytest.mark.slow)
                for before in (
                    "workers._START = 'raise SystemExit'",
                    "import sys; sys.executable = '/nowhere/python'",
                )
            ),
        ],
    )
    def test_if_the_process_fails_learn_is_compiled_here(self, before, tmp_path):
        _, (_, compiled, _, weights) = first(tmp_path, before)
        assert compiled == 1
        assert weights > 0


def test_results_and_errors_of_tasks(monkeypatch):
    tasks = [Task(math.sqrt, (4.0,)), Task(float, ("x",)), Task(math.sqrt, (9.0,))]
    seen = []
    results = run_all(tasks, 2, done=lambda i, result: seen.append(i))
    assert results[0] == 2.0
    assert isinstance(results[1], WorkerError)
    assert "could not convert string to float: 'x'" in str(results[1])
    assert results[2] == 3.0
    assert sorted(seen) == [0, 1, 2]


class Unreadable:
    def __reduce__(self):
        return int, ("no number",)


def test_a_task_that_cannot_be_read_ends_the_worker():
    with pytest.raises(WorkerError, match="has ended"):
        Worker().run(Task(print, (Unreadable(),)))


def test_a_task_may_use_pandas():
    assert Worker().run(Task(pandas.isna, (None,))) is True


def test_what_a_task_prints_is_no_result():
    worker = Worker()
    assert worker.run(Task(print, ("anything",))) is None
    assert worker.run(Task(math.sqrt, (4.0,))) == 2.0
    worker.close()
    with pytest.raises(WorkerError):
        worker.run(Task(math.sqrt, (4.0,)))


def test_a_worker_ends_with_the_process_that_started_it(tmp_path):
    code = """
import os, time
from onebit.core.workers import Task, Worker
worker = Worker()
print(worker.run(Task(os.getpid, ())), flush=True)
worker.start(Task(time.sleep, (60,)))
time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(process.stdout.readline())
    os.kill(pid, 0)
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.1)
    assert not is_running(pid)


def is_running(pid):
    try:
        os.kill(pid, 0)
        if sys.platform != "linux":
            return True
        # In a container, nobody may ask how it ended.
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(("given", "expected"), [("3", 3), ("1", 1)])
def test_the_number_of_processes_can_be_set(given, expected, monkeypatch):
    monkeypatch.setenv(workers.VARIABLE, given)
    assert workers.n_processes() == expected


@pytest.mark.parametrize("given", ["", "0", "many", "-2"])
def test_other_numbers_are_those_of_the_cores(given, monkeypatch):
    monkeypatch.setenv(workers.VARIABLE, given)
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    assert workers.n_processes() == cores
