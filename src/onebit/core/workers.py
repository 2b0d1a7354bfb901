"""Processes that compile on other cores; compiled code is exchanged on disk.

A worker is a new Python process, which imports onebit and runs one task after the other. It does
not use `multiprocessing`, which would run a user's script again. It ends when its parent process
does.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from onebit.core import code_cache, progress

VARIABLE = "ONEBIT_PROCESSES"
"""The environment variable with the number of processes that compile; by default all cores."""

_START = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
sys.modules["pandas"] = None
from onebit.core.workers import serve
del sys.modules["pandas"]
serve()
"""
"""What a worker runs. scikit-learn imports pandas where it can, which is a sixth of the time of a
start; here it finds none."""


class WorkerError(RuntimeError):
    """A worker ended before its task did, or the task raised."""


class Task(NamedTuple):
    """A function of a module, by its name, and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def n_processes() -> int:
    """Return how many processes may compile at the same time, this one included."""
    given = os.environ.get(VARIABLE, "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def can_start() -> bool:
    """Return whether there is another core, a Python executable, and a writable cache."""
    runs = bool(sys.executable) and not getattr(sys, "frozen", False)
    return runs and n_processes() > 1 and code_cache.writable_root() is not None


class Worker:
    """A process that runs tasks, one at a time."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        own = {VARIABLE: "1", progress.VARIABLE: "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {}), **own},
        )
        # Runs also when the worker is garbage-collected, and when this process ends.
        self.close = weakref.finalize(self, _end, self._process)
        self._send(sys.path)

    def start(self, task: Task) -> None:
        """Begin a task."""
        self._send(task)

    def result(self) -> Any:
        """Wait for the task to end, and return what it returned."""
        try:
            error, value = pickle.load(self._process.stdout)  # type: ignore[arg-type]
        except (EOFError, OSError, pickle.UnpicklingError) as ended:
            raise WorkerError("a process that compiles has ended") from ended
        if error is not None:
            raise WorkerError(error)
        return value

    def run(self, task: Task) -> Any:
        """Run a task, and return what it returned."""
        self.start(task)
        return self.result()

    def _send(self, value: Any) -> None:
        pipe: Any = self._process.stdin
        try:
            pipe.write(pickle.dumps(value))
            pipe.flush()
        except (OSError, ValueError) as ended:  # ValueError: it was closed
            raise WorkerError("a process that compiles has ended") from ended


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe.close()  # type: ignore[union-attr]
    process.kill()
    process.wait()


def run_all(
    tasks: Iterable[Task],
    n: int,
    environment: Mapping[str, str] | None = None,
    done: Callable[[int, Any], None] = lambda i, result: None,
) -> list[Any]:
    """Run tasks in `n` workers, and return their results; `done` is called after each.

    The result of a task that failed is a `WorkerError`.
    """
    waiting: SimpleQueue[tuple[int, Task] | None] = SimpleQueue()
    ended: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    tasks = list(tasks)
    for item in enumerate(tasks):
        waiting.put(item)
    n = min(n, len(tasks))
    for _ in range(n):
        waiting.put(None)

    def work() -> None:
        worker = None
        while (item := waiting.get()) is not None:
            i, task = item
            try:
                worker = Worker(environment) if worker is None else worker
                ended.put((i, worker.run(task)))
            except Exception as error:
                if worker is not None:
                    worker.close()
                worker = None
                ended.put((i, error if isinstance(error, WorkerError) else WorkerError(str(error))))
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    results: list[Any] = [None] * len(tasks)
    for _ in tasks:
        i, result = ended.get()
        results[i] = result
        done(i, result)
    for thread in threads:
        thread.join()
    return results


def serve() -> None:
    """Run tasks from stdin, and write their results to stdout, until stdin ends."""
    # Output of a task must not be mistaken for a result.
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks: SimpleQueue[Task] = SimpleQueue()

    def read() -> None:
        try:
            while True:
                tasks.put(pickle.load(sys.stdin.buffer))
        finally:  # the parent process has ended, or what it sent cannot be read
            os._exit(0)  # even during a task

    threading.Thread(target=read, daemon=True).start()
    while True:
        function, arguments = tasks.get()
        try:
            answer: tuple[str | None, Any] = None, function(*arguments)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}", None
        results.write(pickle.dumps(answer))
        results.flush()
