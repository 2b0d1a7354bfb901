"""`onebit lab list`, `run`, `show` and `report`: experiments."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from onebit.cli.app import app
from onebit.cli.bars import runs_bar
from onebit.cli.compare import Dask, Jobs, shown_value

lab_app = typer.Typer(rich_markup_mode=None, help="Run experiments: the papers' and ours.")
app.add_typer(lab_app, name="lab")

Out = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Use this folder of results and reports.")
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Choose an experiment by its name in `onebit lab list`."),
]


@lab_app.command("list")
def list_experiments() -> None:
    """List the experiments that can be run, and their options."""
    from onebit.lab.experiments import EXPERIMENTS

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("name", "runs, small", "full"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    table.add_column("experiment")
    for name, experiment in EXPERIMENTS.items():
        counts = [f"{n_runs(name, scale):,}" for scale in ("small", "full")]
        options = "".join(f" --{option}" for option in experiment.options)
        table.add_row(f"[bold]{name}[/]", *counts, f"{experiment.title}. {experiment.reference}")
        if options:
            table.add_row("", "", "", f"[dim]options:{options}[/]")
    Console().print(table)


def n_runs(name: str, scale: str) -> int:
    """Return how many runs an experiment has."""
    from onebit.lab import runs_of
    from onebit.lab.experiments import EXPERIMENTS

    sweeps = EXPERIMENTS[name].sweeps(scale).values()
    with TemporaryDirectory() as folder:
        return sum(len(runs_of(*wanted, Path(folder))) for wanted in sweeps)


@lab_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    name: Name,
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="Run at this scale: small, for minutes, or full.")
    ] = "small",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Play with at most this many seeds; by default all."),
    ] = None,
    streams: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Play only these streams, separated by commas."),
    ] = "",
    fresh: Annotated[
        bool,
        typer.Option(help="Play other tools too where the package has their results."),
    ] = False,
    ship: Annotated[
        bool,
        typer.Option(help="Keep the results of other tools that were played in the package."),
    ] = False,
    jobs: Jobs = -1,
    dask: Dask = None,
    out: Out = Path("lab"),
) -> None:
    """Run an experiment, or what is missing of it.

    An experiment may have options of its own, such as --tables FOLDER of bakeoff, which
    `onebit lab list` names.
    """
    from onebit.lab.reports import run_experiment

    with runs_bar(hidden=False) as progress:
        place = run_experiment(
            name.lower(),
            scale,
            out,
            options=_own_options(context.args),
            seeds=seeds,
            streams=[stream.strip() for stream in streams.split(",")] if streams else [],
            fresh=fresh,
            ship=ship,
            jobs=jobs,
            dask=dask,
            progress=lambda _, done, total: progress(done, total),
        )
    print(f"results are in {place}")


def _own_options(arguments: list[str]) -> dict[str, str]:
    """Return options that only the experiment knows, as --name value or --name=value."""
    found, rest = {}, iter(arguments)
    for argument in rest:
        name, given, value = argument.partition("=")
        if not name.startswith("--"):
            raise ValueError(f"an option begins with --; got {argument!r}")
        if not given and (value := next(rest, "")) == "":
            raise ValueError(f"{name} has no value")
        found[name[2:].replace("-", "_")] = value
    return found


@lab_app.command()
def show(
    name: Name,
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="Show what was run at this scale: small or full.")
    ] = "small",
    write_page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write them into this page of the documentation."),
    ] = None,
    out: Out = Path("lab"),
) -> None:
    """Print tables and findings of an experiment that was run."""
    from onebit.lab.reports import sections_of, write_on_page
    from onebit.lab.verdicts import table

    if write_page is not None:
        write_on_page(name.lower(), scale, out, write_page)
        print(f"written into {write_page}")
        return

    console, unlimited = Console(highlight=False), Console(highlight=False, width=1_000)
    for section in sections_of(name.lower(), scale, out):
        for title, rows in section.tables.items():
            shown = table(f"{section.title}: {title}", ["learner"], *map(str, rows.columns))
            for column in shown.columns:
                column.no_wrap = False
            for row in rows.itertuples(index=False):
                shown.add_row(*map(shown_value, row))
            # A wide table would be nothing but broken words in a narrow terminal.
            (unlimited if section.wide else console).print(shown)
            console.print()
        for finding in section.findings:
            console.print(f"[bold]{finding.verdict}[/] {escape(finding.claim)}")
            console.print(escape(finding.seen), style="dim")
            console.print()


@lab_app.command()
def report(out: Out = Path("lab")) -> None:
    """Write one page of all results, with pictures and tables beside it."""
    from onebit.lab.reports import write_report

    print(f"report written to {write_report(out)}")
