"""`onebit evaluate`: how accurate a log's decisions are, or another policy would have been."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import onebit
from onebit.cli.app import AsJson, app
from onebit.cli.bars import runs_bar
from onebit.cli.parameters import parsed
from onebit.cli.pictures import INK, check_picture
from onebit.cli.stream import REPEATABLE
from onebit.cli.tables import plain_table

if TYPE_CHECKING:
    from onebit.evaluation import Estimate

SHOWN = 12
"""Labels in the table; JSON has all of them."""


@app.command()
def evaluate(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Read this log of decisions: a .parquet, .jsonl, .csv or .dsjson file, or a "
            "folder of such files, the parts of one log in the order of their names.",
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="Estimate how accurate this policy would have been: a model file, or label=NAME "
            "for always that label." + REPEATABLE,
        ),
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Let models choose their best label, and not explore.")
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="Estimate by this method: auto, ips, snips, clipped, direct, dr or sndr.",
        ),
    ] = "auto",
    level: Annotated[
        float,
        typer.Option(
            metavar="LEVEL", help="Make intervals that contain the accuracy with this probability."
        ),
    ] = 0.95,
    anytime: Annotated[
        bool,
        typer.Option(
            "--anytime", help="Make intervals that hold also if the log is watched as it grows."
        ),
    ] = False,
    least: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Assume that every label on offer had at least this probability, where the log "
            "does not say it.",
        ),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Show the accuracy of each label, too.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the accuracies in this file.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Read the parts of a folder on the workers of this Dask scheduler, where they "
            "have the same path.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how accurate the decisions of a log are.

    It also estimates how accurate other policies would have been on the same examples.
    """
    from onebit import evaluation

    check_picture(plot)
    if dask is not None and not log.is_dir():
        raise ValueError(f"--dask is for a folder of parts; got {log}")
    if labels and log.is_dir():
        raise ValueError(f"--labels reads all of a log into memory; {log} is a folder of parts")
    judged = {None: None} | {name: _policy(name) for name in policy or []}
    found = []
    with _reader(dask, hidden=as_json) as map_parts:
        for name, one in judged.items():
            # The log is read again for each policy, in batches, as it may be larger than memory.
            result = evaluation.estimate_parts(
                log,
                one,
                method,
                level,
                "anytime" if anytime else "fixed",
                greedy=greedy and hasattr(one, "policy"),
                least=least,
                map_parts=map_parts,
            )
            found.append((name or "what was chosen", result))
    in_memory = (labels or plot is not None) and not log.is_dir()
    whole = evaluation.Log.read(log, least=least) if in_memory else None
    rows = evaluation.by_label(whole, level) if labels and whole is not None else []
    if plot:
        _draw(plot, found, whole)
    if as_json:
        told: dict[str, Any] = {
            "log": str(log),
            "estimates": [result.to_dict() | {"policy": name} for name, result in found],
        }
        if labels:
            told["labels"] = [_plain(asdict(row)) for row in rows]
        print(json.dumps(told))
        return
    _print(log, found, level)
    if rows:
        _print_labels(rows)
    if plot:
        print(f"picture saved to {plot}")


@contextmanager
def _reader(dask: str | None, hidden: bool) -> Iterator[Any]:
    """Yield what applies a function to all parts: `map`, or that of a cluster."""
    if dask is None:
        yield map
        return
    from distributed import Client, as_completed

    with Client(dask) as client, runs_bar(hidden, "parts") as progress:
        client.wait_for_workers(1, timeout=60)

        def map_parts(function: Any, parts: list[Path]) -> list[Any]:
            # One task that all others depend on: a model is sent once, and if the worker that
            # has it is killed, again.
            sent = client.submit(_same, function, pure=False)
            files = [part.absolute() for part in parts]
            futures = client.map(_call, [sent] * len(files), files, pure=False)
            for done, _ in enumerate(as_completed(futures), start=1):
                progress(done, len(parts))
            return client.gather(futures)

        yield map_parts


def _same(function: Any) -> Any:
    return function


def _call(function: Any, part: Path) -> Any:
    return function(part)


def _policy(name: str) -> Any:
    """Return a model, or a label."""
    if name.startswith("label="):
        return parsed(name.removeprefix("label="))
    if not Path(name).is_file():
        raise ValueError(f"no policy {name!r}: it is neither a model file nor label=NAME")
    return onebit.load(name)


def _print(log: Path, found: list[tuple[str, Estimate]], level: float) -> None:
    first = found[0][1]
    console = Console(highlight=False)
    missing = first.rows - first.feedback
    console.print(
        f"{escape(str(log))}: {first.rows:,} decisions, {missing:,} without feedback",
        soft_wrap=True,
    )
    table = plain_table()
    table.add_column("policy", overflow="fold")
    for heading in ("right %", f"{level:.0%} interval", "covered %", "effective", "by"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, one in found:
        table.add_row(
            escape(name),
            f"[bold]{100 * one.value:.2f}[/]" if one.is_covered else "unknown",
            f"{100 * one.low:.2f} to {100 * one.high:.2f}",
            f"{100 * one.covered:.1f}",
            f"{one.effective_rows:,.0f} rows",
            one.method,
        )
    console.print(table)
    for name, one in found:
        for words in one.warnings:
            console.print(f"{escape(name)}: {escape(words)}.")


def _print_labels(rows: list[Any]) -> None:
    table = plain_table()
    table.add_column("label", overflow="fold")
    for heading in ("shown", "right %", "interval", "is the truth %", "found %", "interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    most = sorted(rows, key=lambda row: -row.shown)[:SHOWN]
    for row in most:
        table.add_row(
            escape(str(row.label)),
            f"{row.shown:,}",
            _percent(row.precision),
            _ends(row.precision_interval),
            _percent(row.share),
            _percent(row.recall),
            _ends(row.recall_interval),
        )
    console = Console(highlight=False)
    console.print(table)
    if len(rows) > SHOWN:
        console.print(f"{len(rows) - SHOWN} more labels, shown less often: --json has them.")


def _percent(share: float) -> str:
    return "unknown" if math.isnan(share) else f"{100 * share:.1f}"


def _ends(interval: Any) -> str:
    return f"{100 * interval.low:.0f} to {100 * interval.high:.0f}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _draw(path: Path, found: list[tuple[str, Estimate]], log: Any) -> None:
    """Draw the accuracies with their intervals and, where there is confidence, its calibration."""
    import numpy as np
    from matplotlib.figure import Figure

    from onebit.evaluation import calibration

    confident = log is not None and not np.isnan(log.confidence).all() and log.has_feedback.any()
    height = max(2.0 + 0.5 * len(found), 4.0 if confident else 0.0)
    figure = Figure(figsize=(11 if confident else 7, height), layout="constrained")
    axes = figure.subplots(
        1, 2 if confident else 1, squeeze=False, width_ratios=[3, 2][: 1 + confident]
    )[0]
    ax = axes[0]
    for i, (_, one) in enumerate(found):
        ink = INK[i % len(INK)]
        style = {"color": ink, "linewidth": 3, "solid_capstyle": "butt"}
        ax.plot(
            [100 * one.low, 100 * one.high], [i, i], alpha=1.0 if one.is_covered else 0.4, **style
        )
        if one.is_covered:
            ax.plot(100 * one.value, i, "o", color=ink, markersize=9)
        words = f"{100 * one.value:.1f}" if one.is_covered else "not covered: bounds"
        at = one.value if one.is_covered else 0.5 * (one.low + one.high)
        ax.annotate(
            words, (100 * at, i), (0, 8), textcoords="offset points", ha="center", color=ink
        )
    ax.set_yticks(range(len(found)), [name for name, _ in found])
    ax.set(
        ylim=(len(found) - 0.4, -0.6),
        xlabel=f"right, % of decisions; {found[0][1].level:.0%} intervals",
    )
    ax.grid(alpha=0.3, axis="x")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    if confident:
        calibration(log).plot(axes[1])
    figure.savefig(path, dpi=150)
