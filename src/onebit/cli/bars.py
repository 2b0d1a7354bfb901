"""Progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from onebit.core import progress


def rounds_bar(hidden: bool) -> Progress:
    """Return a bar of rounds on stderr, so that stdout can be piped; none without a terminal."""
    console = Console(stderr=True)
    if hidden or console.is_terminal:  # the bar says that a learner is compiled
        progress.hide()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[error]}"),
        console=console,
        transient=True,
        refresh_per_second=4,
        disable=hidden or not console.is_terminal,
    )


@contextmanager
def compiling_bar(hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show how many functions are compiled: a bar on a terminal, else a line every two seconds.

    It gives the function that `onebit.warm_up` calls.
    """
    console = Console(stderr=True)
    if hidden:
        progress.hide()
    if hidden:
        yield lambda done, n, what: None
        return
    if not console.is_terminal:
        with _Lines() as lines:
            yield lines.show
        return
    bar = Progress(
        TextColumn("compiling {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        refresh_per_second=4,
    )
    with bar:
        task = bar.add_task("", total=None)

        def show(done: int, n: int, what: str) -> None:
            bar.update(task, completed=done, total=n, description=what)

        yield show


@contextmanager
def runs_bar(hidden: bool, what: str = "runs") -> Iterator[Callable[[int, int], None]]:
    """Show how many runs are done and how much time is left, on stderr if it is a terminal.

    The process that plays shows it, not another thread, as `lab.processes` requires.
    """
    console = Console(stderr=True)
    if hidden or console.is_terminal:  # the bar says that learners are compiled
        progress.hide()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
        disable=hidden or not console.is_terminal,
    ) as bar:
        task = bar.add_task("compiling", total=None)
        yield lambda done, total: bar.update(
            task, completed=done, total=total, description=what, refresh=True
        )


class _Lines:
    """Lines on stderr that say how many functions are compiled, and that it goes on."""

    _SECONDS = 2.0
    """The longest time without a line."""

    def __init__(self) -> None:
        self._text = ""
        self._printed, self._ended = Event(), Event()
        self._thread = Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._printed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def show(self, done: int, n: int, what: str) -> None:
        """Print that this many functions are compiled, of how many, and the learner of the last."""
        self._text = f"{done} of {n} functions compiled"
        if done == 0:
            self._print(f"compiling {n} functions, once for this machine")
            self._start = monotonic()
            self._thread.start()
        else:
            self._print(f"{self._text}: {what}")
            self._printed.set()

    def _repeat(self) -> None:
        while not self._ended.is_set():
            self._printed.clear()
            if not self._printed.wait(self._SECONDS):
                self._print(f"{self._text}, {monotonic() - self._start:.0f} s")

    def _print(self, text: str) -> None:
        print(f"onebit: {text}", file=sys.stderr, flush=True)
