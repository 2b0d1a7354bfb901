"""`onebit compare`: learners, parameters, streams and seeds in all combinations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import onebit
from onebit.cli.app import AsJson, app
from onebit.cli.bars import runs_bar
from onebit.cli.parameters import parameters_of, parsed
from onebit.cli.pictures import check_picture
from onebit.cli.stream import (
    REPEATABLE,
    Epochs,
    Label,
    LearnerNames,
    Names,
    Noise,
    Rounds,
    Shuffle,
    Unit,
)
from onebit.cli.tables import plain_table

if TYPE_CHECKING:
    import pandas as pd

    from onebit.streams import StreamSpec

Jobs = Annotated[
    int,
    typer.Option(metavar="N", help="Play in this many processes at a time; -1 is one a core."),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Play on the workers of this Dask scheduler instead."),
]


@app.command()
def compare(
    learner: LearnerNames,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUES",
            help="Play with each of these values of a parameter, as in gamma=0.01,0.1, in place "
            "of each learner's own default." + REPEATABLE,
        ),
    ] = None,
    stream: Names = None,
    label: Label = None,
    rounds: Rounds = None,
    unit: Unit = False,
    noise: Noise = 0.0,
    shuffle: Shuffle = False,
    epochs: Epochs = 1,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Play with this many seeds, from 0 on.")
    ] = 10,
    jobs: Jobs = -1,
    dask: Dask = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Keep results in this folder; runs that are there are not played again.",
        ),
    ] = Path("comparison"),
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw error against rounds in this file: the mean over the seeds, and as a band "
            "one standard deviation to either side.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare learners over streams, parameters and seeds."""
    from onebit import lab
    from onebit.streams import StreamSpec

    check_picture(plot)
    specs = [
        StreamSpec(name, rounds, label, unit, noise, shuffle, epochs)
        for name in stream or ["synsep"]
    ]
    for some in specs:
        if some.is_file:
            some.open()  # report errors in a file now
    grid = grid_of(set_ or [])
    with runs_bar(hidden=as_json) as progress:
        table = lab.sweep(
            learner,
            grid,
            specs,
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
    notes = [*notes_on_parameters(learner, grid), *notes_on_orders(specs, seeds)]
    if plot and seeds > 1:
        notes.append(
            f"In the picture, a line is the mean over {seeds} seeds, and its band one standard "
            "deviation to either side."
        )
    if as_json:
        print(json.dumps(summary_as_json(means) | {"notes": notes}))
        return
    print_summary(means, seeds)
    console = Console(highlight=False)
    for note in notes:
        console.print(escape(note))
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


def notes_on_parameters(learners: list[str], grid: dict[str, list[Any]]) -> Iterator[str]:
    """Yield which defaults of learners the values of a grid replaced."""
    defaults = {cls.__name__: parameters_of(cls()) for cls in map(onebit.learners.named, learners)}
    for name in grid:
        own = [f"{which} {had[name]}" for which, had in defaults.items() if name in had]
        yield f"--set {name} replaced the default of each learner that has it: {', '.join(own)}."


def notes_on_orders(streams: list[StreamSpec], seeds: int) -> Iterator[str]:
    """Yield which streams had the same order with all seeds."""
    for some in streams:
        if some.is_file and not some.shuffle and seeds > 1:
            yield (
                f"{some.name} was played in the order of the file with all {seeds} seeds: they "
                "differ only in what is drawn at random. --shuffle gives each seed an order of its "
                "own."
            )


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
