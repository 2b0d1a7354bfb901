"""Progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    """Show how many functions are compiled: a bar on a terminal, else a line for each.

    It gives the function that `onebit.warm_up` calls.
    """
    console = Console(stderr=True)
    if hidden:
        progress.hide()
    if hidden or not console.is_terminal:
        yield lambda done, n, what: None if hidden else _print_compiled(done, n, what)
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


def _print_compiled(done: int, n: int, what: str) -> None:
    text = f"{done} of {n} compiled: {what}"
    if done == 0:
        text = f"compiling {n} functions, once for this machine"
    print(f"onebit: {text}", file=sys.stderr)
