"""`onebit lab list`, `run` and `report`: the papers' experiments."""

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
from onebit.cli.compare import Dask, Jobs, progress_to, shown_value

lab_app = typer.Typer(rich_markup_mode=None, help="Repeat the papers' experiments.")
app.add_typer(lab_app, name="lab")

Out = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Use this folder of results and reports.")
]
Paper = Annotated[
    str, typer.Argument(metavar="NAME", help="Choose a paper by its name in `onebit lab list`.")
]


@lab_app.command("list")
def list_papers() -> None:
    """List the papers whose experiments can be run."""
    from onebit.lab.papers import PAPERS

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("name", "runs, small", "full"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    table.add_column("paper")
    for name, paper in PAPERS.items():
        counts = [f"{n_runs(name, scale):,}" for scale in ("small", "full")]
        table.add_row(f"[bold]{name}[/]", *counts, paper.reference)
    Console().print(table)


def n_runs(name: str, scale: str) -> int:
    """Return how many runs a paper's experiments have."""
    from onebit.lab import runs_of
    from onebit.lab.papers import PAPERS

    sweeps = PAPERS[name].sweeps(scale).values()
    with TemporaryDirectory() as folder:
        return sum(len(runs_of(*wanted, Path(folder))) for wanted in sweeps)


@lab_app.command()
def run(
    name: Paper,
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="Run at this scale: small, for minutes, or full.")
    ] = "small",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Play with at most this many seeds; by default all."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Play the tables in this folder, files as --stream of onebit run takes them; for "
            "bakeoff.",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(help="Play other tools too where the package has their results."),
    ] = False,
    jobs: Jobs = -1,
    dask: Dask = None,
    out: Out = Path("lab"),
) -> None:
    """Run a paper's experiments, or what is missing of them."""
    from onebit.lab.reports import run_paper

    with progress_to(hidden=False) as progress:
        place = run_paper(
            name.lower(),
            scale,
            out,
            seeds=seeds,
            tables=tables,
            fresh=fresh,
            jobs=jobs,
            dask=dask,
            progress=lambda _, done, total: progress(done, total),
        )
    print(f"results are in {place}")


@lab_app.command()
def show(
    name: Paper,
    scale: Annotated[
        str, typer.Option(metavar="SCALE", help="Show what was run at this scale: small or full.")
    ] = "small",
    out: Out = Path("lab"),
) -> None:
    """Print the tables of a paper that was run, and what was found."""
    from onebit.lab.reports import sections_of
    from onebit.lab.verdicts import table

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
