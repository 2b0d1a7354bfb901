"""`onebit run`: one learner on one stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import onebit
from onebit.cli.app import AsJson, Seed, app
from onebit.cli.bars import rounds_bar
from onebit.cli.parameters import make_learner, parameters_of, parsed_list, shown
from onebit.cli.pictures import check_picture, check_writable, draw_run
from onebit.cli.playing import Result, play_timed
from onebit.cli.stream import (
    Epochs,
    Label,
    LearnerName,
    Name,
    Noise,
    ParameterOption,
    Rounds,
    Shuffle,
    Unit,
)
from onebit.cli.tables import plain_table
from onebit.streams import OpenedStream, StreamSpec

if TYPE_CHECKING:
    from onebit import History, Learner


@app.command()
def run(
    learner: LearnerName,
    set_: ParameterOption = None,
    stream: Name = "synsep",
    label: Label = None,
    rounds: Rounds = None,
    unit: Unit = False,
    noise: Noise = 0.0,
    shuffle: Shuffle = False,
    epochs: Epochs = 1,
    seed: Seed = 0,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Let the learner choose among these labels, as in a,b,c; by default those of the "
            "stream.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw error against rounds in this file.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the learner in this file, as safetensors."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a learner over a stream, and print how often it errs."""
    player = make_learner(learner, set_ or [], seed)
    check_picture(plot)
    check_writable(save)

    source = StreamSpec(stream, rounds, label, unit, noise, shuffle, epochs).open(seed)
    player.set_params(classes=source.classes if classes is None else parsed_list(classes))
    with rounds_bar(hidden=as_json) as bar:
        result = play_timed(player, source, bar)
    if plot:
        draw_run(plot, player, source.name, result.history)
    if save:
        player.save(save)

    if as_json:
        print(json.dumps(run_as_json(player, source, seed, result)))
        return
    print_run(player, source, seed, result)
    for what, path in (("picture", plot), ("learner", save)):
        if path:
            print(f"{what} saved to {path}")


def print_run(learner: Learner, stream: OpenedStream, seed: int, result: Result) -> None:
    """Print what happened in a run."""
    history = result.history
    table = plain_table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("learner", f"[bold]{type(learner).__name__}[/]")
    table.add_row("parameters", escape(shown(parameters_of(learner))))
    table.add_row("stream", escape(stream.name))
    table.add_row("seed", str(seed))
    table.add_row("rounds", f"{history.rounds:,}")
    table.add_row("error %", f"[bold]{percent(history.n_mistakes, history)}[/]")
    table.add_row("explored %", percent(history.n_explored, history))
    table.add_row("updated %", percent(history.n_updated, history))
    if history.changes:
        table.add_row("changes noticed", escape(shown_changes(history)))
    table.add_row("seconds", f"{result.playing:.3f}")
    table.add_row("microseconds a round", f"{microseconds(result):.3f}")
    console = Console()
    console.print(table)
    console.print(
        f"Not in these seconds: compiling {result.compiling:.2f} s, "
        f"the stream {stream.seconds + result.reading:.2f} s.",
        highlight=False,
    )


def run_as_json(
    learner: Learner, stream: OpenedStream, seed: int, result: Result
) -> dict[str, Any]:
    """Return what happened in a run."""
    history = result.history
    return {
        "learner": type(learner).__name__,
        "parameters": parameters_of(learner),
        "stream": stream.name,
        "seed": seed,
        "rounds": history.rounds,
        "mistakes": history.n_mistakes,
        "explored": history.n_explored,
        "updated": history.n_updated,
        "changes": [change._asdict() for change in history.changes],
        "error_rate": history.error_rate,
        "seconds": result.playing,
        "microseconds_a_round": microseconds(result),
        "compile_seconds": result.compiling,
        "stream_seconds": stream.seconds + result.reading,
        "onebit": onebit.__version__,
    }


def shown_changes(history: History, most: int = 6) -> str:
    """Return the last changes noticed, as ``everything in round 5,003; 'b' in round 6,120``."""
    last = history.changes[-most:]
    named = (f"{_what_changed(change)} in round {change.round:,}" for change in last)
    earlier = len(history.changes) - len(last)
    return "; ".join([*([f"{earlier} earlier"] if earlier else []), *named])


def _what_changed(change: Any) -> str:
    if change.label is not None:
        return repr(change.label)
    return "everything back" if change.returned else "everything"


def percent(n: int, history: History) -> str:
    """Return a number of rounds as a share of all of them."""
    return f"{100 * n / history.rounds:.2f}"


def microseconds(result: Result) -> float:
    """Return the time of a round."""
    return 1e6 * result.playing / result.history.rounds
