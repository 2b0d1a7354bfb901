"""`onebit compare`: learners, parameters, streams and seeds in all combinations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

import onebit
from onebit.cli.app import AsJson, app
from onebit.cli.parameters import parsed
from onebit.cli.pictures import check_picture, check_writable
from onebit.cli.stream import STREAMS, Epochs, Label, Noise, Shuffle, Unit
from onebit.cli.tables import plain_table

if TYPE_CHECKING:
    import pandas as pd

Jobs = Annotated[int, typer.Option(help="Processes at a time; -1 for one a core.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler that plays instead.")]


@app.command()
def compare(
    learner: Annotated[list[str], typer.Option(help="Name of a learner. Repeatable.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Values of a parameter, name=a,b,c. Repeatable."),
    ] = None,
    stream: Annotated[list[str] | None, typer.Option(help=STREAMS + " Repeatable.")] = None,
    label: Label = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds to play; at most all.")] = None,
    unit: Unit = False,
    noise: Noise = 0.0,
    shuffle: Shuffle = False,
    epochs: Epochs = 1,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on.")] = 10,
    jobs: Jobs = -1,
    dask: Dask = None,
    out: Annotated[
        Path, typer.Option(help="Folder of results; what is there is not played again.")
    ] = Path("comparison"),
    plot: Annotated[Path | None, typer.Option(help="Draw error with bands, here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play learners over streams with several seeds and parameters, and compare them."""
    from onebit import lab
    from onebit.streams import Asked

    check_writable(plot)
    if plot:
        check_picture(plot)
    asked = [
        Asked(name, rounds, label, unit, noise, shuffle, epochs) for name in stream or ["synsep"]
    ]
    for some in asked:
        if some.is_file:
            some.open()  # report errors in a file now
    with progress_to(hidden=as_json) as progress:
        table = lab.sweep(
            learner,
            grid_of(set_ or []),
            asked,
            seeds,
            jobs=jobs,
            dask=dask,
            folder=out,
            progress=progress,
        )
    means = lab.summary(table)
    if plot:
        from onebit.lab.pictures import draw_sweep

        draw_sweep(table).savefig(plot, dpi=150)
    if as_json:
        print(json.dumps(summary_as_json(means)))
        return
    print_summary(means, len(set(table.seed)))
    print(f"results are in {out / 'results.parquet'}")
    if plot:
        print(f"picture saved to {plot}")


def grid_of(settings: list[str]) -> dict[str, list[Any]]:
    """Return the values of each parameter."""
    grid: dict[str, list[Any]] = {}
    for name, values in map(values_of, settings):
        if name in grid:
            raise ValueError(f"--set {name} is given twice; it takes all values at once, a,b,c")
        grid[name] = values
    return grid


def values_of(setting: str) -> tuple[str, list[Any]]:
    """Return the parameter and the values in "gamma=0.01,0.02"."""
    name, equals, text = setting.partition("=")
    if not equals or not text:
        raise ValueError(f"--set takes name=value or name=a,b,c; got {setting!r}")
    whole = parsed(text)
    # A JSON object or list is one value, though it has commas.
    if not isinstance(whole, str):
        return name, [whole]
    return name, [parsed(value.strip()) for value in text.split(",")]


@contextmanager
def progress_to(hidden: bool) -> Iterator[Callable[[int, int], None]]:
    """Show how many runs are done and how much time is left, on stderr if it is a terminal.

    The process that plays shows it, not another thread, as `lab.processes` requires.
    """
    console = Console(stderr=True)
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
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total, refresh=True)


def print_summary(means: pd.DataFrame, n_seeds: int) -> None:
    """Print mean and spread of all settings, a table for each stream."""
    from onebit.lab.results import grid_columns

    parameters = grid_columns(means)
    console = Console()
    for stream, some in means.groupby("stream", sort=False):
        table = plain_table(f"{escape(str(stream))}: error %, mean and sd of {n_seeds} seeds")
        table.add_column("learner", no_wrap=True)
        for heading in (*parameters, "error %", "sd", "explored %", "us a round"):
            table.add_column(heading, justify="right")
        for row in some.to_dict("records"):
            table.add_row(
                f"[bold]{escape(row['learner'])}[/]",
                *(shown_value(row[name]) for name in parameters),
                f"{100 * row['error']:.2f}",
                "" if row["error_sd"] != row["error_sd"] else f"{100 * row['error_sd']:.2f}",
                f"{100 * row['explored']:.2f}",
                f"{row['microseconds']:.2f}",
            )
        console.print(table)


def shown_value(value: Any) -> str:
    """Return the value of a parameter, or nothing for a learner that has no such parameter."""
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def summary_as_json(means: pd.DataFrame) -> dict[str, Any]:
    """Return the contents of the tables."""
    rows = json.loads(means.to_json(orient="records"))
    for row in rows:
        row["parameters"] = json.loads(row["parameters"])
    return {"onebit": onebit.__version__, "settings": rows}
