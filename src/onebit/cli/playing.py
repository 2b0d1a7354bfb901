"""A run with its time."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.progress import Progress

import onebit
from onebit.cli.parameters import parameters_of, shown
from onebit.streams import OpenedStream

if TYPE_CHECKING:
    from onebit import History, Learner


class Result(NamedTuple):
    """A run and its times in seconds: compiling, getting batches from the stream, playing."""

    history: History
    compiling: float
    reading: float
    playing: float


def play_timed(learner: Learner, stream: OpenedStream, bar: Progress) -> Result:
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
