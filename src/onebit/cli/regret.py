"""`onebit regret`: a run beside its comparator and its bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import onebit
from onebit.cli.app import AsJson, app
from onebit.cli.parameters import make_learner, parameters_of, shown
from onebit.cli.pictures import check_picture, save_plot
from onebit.cli.stream import Label, LearnerName, Name, ParameterOption, Unit
from onebit.cli.tables import plain_table
from onebit.streams import StreamSpec, in_memory


@app.command()
def regret(
    learner: LearnerName,
    set_: ParameterOption = None,
    stream: Name = "synsep",
    label: Label = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Play at most this many rounds.")
    ] = 10_000,
    unit: Unit = False,
    radius: Annotated[
        float | None,
        typer.Option(
            metavar="RADIUS",
            help="Compare with weights in a ball of this radius, where the theorem has none.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Use this seed for the stream, and from it on for the runs."
        ),
    ] = 0,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Take the mean over runs with this many seeds.")
    ] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw regret and bound against rounds in this file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a learner's regret and its bound over time.

    The regret is measured against the best weights in hindsight.
    """
    check_picture(plot)
    players = [make_learner(learner, set_ or [], seed + run) for run in range(seeds)]
    source = StreamSpec(stream, rounds, label, unit=unit).open(seed)
    X, y = in_memory(source.batches())
    histories = [onebit.play(player.set_params(classes=source.classes), X, y) for player in players]
    seen = onebit.theory.regret(histories, players[0], X, y, radius=radius)
    if plot:
        save_plot(plot, seen.plot)
    best = seen.comparator
    if as_json:
        print(
            json.dumps(
                {
                    "learner": type(players[0]).__name__,
                    "parameters": parameters_of(players[0]),
                    "stream": source.name,
                    "seeds": seeds,
                    "loss": str(best.of),
                    "radius": best.radius,
                    "norm": best.norm,
                    "gap": best.gap,
                    "over_time": seen.rows(),
                }
            )
        )
        return
    console = Console()
    console.print(f"[bold]{type(players[0]).__name__}[/] with {shown(parameters_of(players[0]))}")
    console.print(
        f"on {source.name}, the mean of {seeds} seeds, against weights with "
        f"{'||W||_F' if best.norm == 'frobenius' else 'all ||w_k||'} <= {best.radius:g}; their "
        f"{best.of} is within {best.gap:.2g} of the least",
        highlight=False,
    )
    table = plain_table()
    lines = seen.rows()
    for name in lines[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for line in lines:
        table.add_row(*(f"{value:,.0f}" if value == value else "" for value in line.values()))
    console.print(table)
    if plot:
        print(f"picture saved to {plot}")
