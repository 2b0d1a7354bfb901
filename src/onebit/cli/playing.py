"""A run with its time and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import onebit
from onebit.cli.parameters import parameters_of, shown
from onebit.core import progress
from onebit.streams import Opened

if TYPE_CHECKING:
    from onebit import History, Learner


class Result(NamedTuple):
    """A run and its times in seconds: compiling, getting batches from the stream, playing."""

    history: History
    compiling: float
    reading: float
    playing: float


def play_timed(learner: Learner, stream: Opened, bar: Progress) -> Result:
    """Play, and show progress; compiling and reading are timed separately."""
    from sklearn.base import clone

    name = type(learner).__name__
    task = bar.add_task(name, total=stream.n_rounds, speed="compiling", error="")
    start = perf_counter()
    X, y = next(stream.batches())
    waited = perf_counter() - start
    try:
        onebit.play(clone(learner), [(X[:2], y[:2])])
    except TypeError as error:
        raise ValueError(f"{name} does not take {shown(parameters_of(learner))}: {error}") from None
    compiling = perf_counter() - start - waited

    reading = 0.0

    def batches() -> Iterator[tuple[Any, Any]]:
        nonlocal reading
        source = stream.batches()
        while True:
            before = perf_counter()
            batch = next(source, None)
            reading += perf_counter() - before
            if batch is None:
                return
            yield batch

    def show(history: History) -> None:
        seconds = max(perf_counter() - start - reading, 1e-9)
        bar.update(
            task,
            completed=history.rounds,
            speed=f"{history.rounds / seconds:,.0f} rounds/s",
            error=f"error {100 * history.error_rate:.2f} %",
        )

    start = perf_counter()
    history = onebit.play(learner, batches(), record=False, progress=show)
    return Result(history, compiling, reading, perf_counter() - start - reading)


def progress_bar(hidden: bool) -> Progress:
    """Return a bar on stderr, so that stdout can be piped; none unless stderr is a terminal."""
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
        task = None

        def show(done: int, n: int, what: str) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task(what, total=n)
            bar.update(task, completed=done, description=what)

        yield show


def _print_compiled(done: int, n: int, what: str) -> None:
    text = f"{done} of {n} compiled: {what}"
    if done == 0:
        text = f"compiling {n} functions, once for this machine"
    print(f"onebit: {text}", file=sys.stderr)
