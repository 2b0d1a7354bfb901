"""`onebit demo`: the fast learners, whose round costs O(nnz K), on one noisy stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from onebit.cli.app import Seed, app
from onebit.cli.bars import compiling_bar, rounds_bar
from onebit.cli.parameters import learner_classes
from onebit.cli.pictures import NOISE, check_picture, draw_demo
from onebit.cli.playing import Result, play_timed
from onebit.cli.run import microseconds, percent
from onebit.cli.tables import plain_table
from onebit.core.workers import can_start
from onebit.streams import StreamSpec
from onebit.streams.synthetic import N_FEATURES
from onebit.warming import compile_elsewhere

if TYPE_CHECKING:
    from onebit import Learner


@app.command()
def demo(
    rounds: Annotated[
        int, typer.Option(metavar="N", min=100, help="Let each learner play this many rounds.")
    ] = 100_000,
    seed: Seed = 0,
    plot: Annotated[
        Path, typer.Option(metavar="FILE", help="Draw error against rounds in this file.")
    ] = Path("demo.png"),
    out: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Play all fast learners over one noisy stream, and draw them.

    The stream is SynNonSep; the learners are those whose round costs O(nnz K).
    """
    plot = plot if out is None else out  # its name before
    check_picture(plot)
    with compiling_bar(hidden=False) as show:
        stream = StreamSpec("synnonsep", rounds).open(seed)
        learners = {
            name: cls(classes=stream.classes, random_state=seed)
            for name, cls in learner_classes().items()
            if cls.cost.is_linear
        }
        if can_start():
            # The flagship's code for examples of this size is another than for small ones.
            n_classes = len(stream.classes)
            sized = [learner._at_size(N_FEATURES, n_classes) for learner in learners.values()]
            compile_elsewhere(sized, ("play",), progress=show)
    results: dict[str, tuple[Learner, Result]] = {}
    with rounds_bar(hidden=False) as bar:
        for name, learner in learners.items():
            results[name] = learner, play_timed(learner, stream, bar)
    ranked = dict(sorted(results.items(), key=lambda item: item[1][1].history.error_rate))

    table = plain_table(
        f"SynNonSep with {100 * NOISE:g} % of wrong labels, {rounds:,} rounds, seed {seed}"
    )
    table.add_column("learner")
    table.add_column("feedback")
    for heading in ("error %", "explored %", "microseconds a round"):
        table.add_column(heading, justify="right")
    for name, (learner, result) in ranked.items():
        history = result.history
        table.add_row(
            f"[bold]{name}[/]",
            learner.feedback,
            percent(history.n_mistakes, history),
            percent(history.n_explored, history),
            f"{microseconds(result):.2f}",
        )
    Console().print(table)
    draw_demo(plot, ranked)
    print(f"picture saved to {plot}")
