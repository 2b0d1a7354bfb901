"""`onebit regret`: a run beside its comparator and its bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import onebit
from onebit.cli.app import AsJson, Seed, app
from onebit.cli.parameters import make_learner, parameters_of, shown
from onebit.cli.pictures import check_picture, check_writable
from onebit.cli.stream import Label, Name
from onebit.cli.tables import plain_table
from onebit.streams import Asked, in_memory


@app.command()
def regret(
    learner: Annotated[str, typer.Option(help="Name of the learner, in any case.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, name=value. Repeatable.")
    ] = None,
    stream: Name = "synsep",
    label: Label = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds to play; at most all.")
    ] = 10_000,
    radius: Annotated[
        float | None, typer.Option(help="Of the comparators' ball, where the theorem has none.")
    ] = None,
    normalise: Annotated[
        bool, typer.Option("--normalise", help="Divide each example by its length first.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Seeds to take the mean over.")] = 5,
    seed: Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw it, here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play a learner, find the best weights in hindsight, and show regret and bound over time."""
    check_writable(plot)
    if plot:
        check_picture(plot)
    players = [make_learner(learner, set_ or [], seed + run) for run in range(runs)]
    source = Asked(stream, rounds, label, unit=normalise).open(seed)
    X, y = in_memory(source.batches())
    histories = [onebit.play(player.set_params(classes=source.classes), X, y) for player in players]
    seen = onebit.theory.regret(histories, players[0], X, y, radius=radius)
    if plot:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        seen.plot(figure.add_subplot())
        figure.savefig(plot, dpi=150)
    best = seen.comparator
    if as_json:
        print(
            json.dumps(
                {
                    "learner": type(players[0]).__name__,
                    "parameters": parameters_of(players[0]),
                    "stream": source.name,
                    "runs": runs,
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
        f"on {source.name}, the mean of {runs} runs, against weights with "
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
