"""The bake-off of the laboratory at full scale, and its section of docs/comparison.md.

Run it with ``make bakeoff``; ``onebit.streams.load`` says where the data are looked for. Only our
learners are played: results of other tools come with the package. After a new version of a tool,
``--ship`` keeps what was played in their place.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onebit.lab import Folder, Run, runs_of
from onebit.lab.experiment import Section
from onebit.lab.experiments import EXPERIMENTS
from onebit.lab.reports import run_experiment, sections_of
from onebit.lab.shipped import ship, shipped

DOCS = Path(__file__).parent.parent / "docs"

BEGIN, END = "<!-- Written by `make bakeoff`. -->\n", "<!-- End of what `make bakeoff` wrote. -->\n"

PICTURES = {
    "scatter": "Error of OneBitClassifier against that of six tools, a point for each table",
    "matrix": "Significant wins minus losses of all tools against each other",
    "ratios": "Error of OneBitClassifier over that of the best way of Vowpal Wabbit, by size",
}

SHOWN = ("table", "rows", "columns", "K", "constant", "onebit", "best VW, linear",
         "against VW, linear", "best VW -q ::", "against VW -q ::", "contextualbandits trees",
         "boosted trees, told")  # fmt: skip
"""Columns of the table of every data set that the page has; the report has all."""

REASONS = {
    "GAMETES_Epistasis_2_Way_20atts_0.4H_EDM_1_1": "simulated genes: a pair of columns decides, "
    "and neither of them alone tells anything",
    "GAMETES_Epistasis_3_Way_20atts_0.2H_EDM_1_1": "the same with three columns",
    "GAMETES_Heterogeneity_20atts_1600_Het_0.4_0.2_50_EDM_2_001": "the same with a pair for half "
    "of the rows, and another pair for the other half",
    "Hill_Valley_without_noise": "100 points of a curve, all of nearly the same height: what "
    "counts are small differences of neighbours, directions of tiny variance",
    "adult": "products of columns tell a little more than the columns",
    "allhypo": "a diagnosis follows from hormones above or below limits",
    "car_evaluation": "a rule of and/or over categories",
    "clean1": "not known",
    "magic": "a curved boundary",
    "monk1": "the label is 1 if two columns are equal, or a third is 1",
    "monk2": "the label is 1 if exactly two of six columns are 1",
    "nursery": "a rule of and/or over categories that are coded as integers",
    "parity5+5": "the parity of five of ten bits, which only trees can see; the others guess",
    "phoneme": "a curved boundary",
    "ring": "two Gaussians of different variance: the label depends on squares",
    "splice": "letters that are coded as integers, as if they had an order",
    "wine_quality_red": "not known",
}
"""What decides the label in a table, where it is known."""


def main() -> None:
    """Play what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("lab"), help="folder of results")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--fresh", action="store_true", help="play other tools, too")
    parser.add_argument("--ship", action="store_true", help="keep results of other tools")
    options = parser.parse_args()
    place = run_experiment("bakeoff", "full", options.out, fresh=options.fresh, jobs=options.jobs)
    if options.ship:
        print(f"{ship(results_in(place))} results of other tools are kept")
    write_page(sections_of("bakeoff", "full", options.out))
    print(f"the bake-off is in {DOCS / 'comparison.md'}")


def results_in(place: Path) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Yield all runs with their results, played or shipped."""
    with TemporaryDirectory() as data:
        for part, wanted in EXPERIMENTS["bakeoff"].sweeps("full").items():
            folder = Folder(place / part)
            for run in runs_of(*wanted, Path(data)):
                found = folder.read(run.key) or shipped(run)
                if found is not None:
                    yield run, found


def write_page(sections: list[Section]) -> None:
    """Write tables and pictures where the page has those of before."""
    path = DOCS / "comparison.md"
    head, begin, rest = path.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no place for the bake-off")
    path.write_text(head + begin + "\n".join(_page(sections)) + "\n" + end + tail)


def _page(sections: list[Section]) -> Iterator[str]:
    tables = {name: table for section in sections for name, table in section.tables.items()}
    figures = {name: figure for section in sections for name, figure in section.figures.items()}
    yield from _markdown(tables["tools"])
    yield ""
    for section in sections:
        for finding in section.findings:
            yield f"- {finding.claim} It {finding.verdict}: {finding.seen}."
    for name, title in PICTURES.items():
        (DOCS / "pictures").mkdir(exist_ok=True)
        figures[name].savefig(DOCS / "pictures" / f"bakeoff-{name}.png", dpi=100)
        yield f"\n![{title}](pictures/bakeoff-{name}.png)"
    yield "\n### Losses of the bake-off, one by one\n"
    yield from _losses(tables["losses"])
    yield "\n### Every table of the bake-off\n"
    yield "Error in percent; of Vowpal Wabbit, the best way on each table, in hindsight.\n"
    table = tables["error %"]
    yield from _markdown(table[[name for name in SHOWN if name in table]])


def _losses(table: Any) -> Iterator[str]:
    """Yield a line for each table, with the tools that were better and the reason."""
    for name, some in table.groupby("table", sort=True):
        tools = ", ".join(
            f"{tool} {error}" for tool, error in zip(some.tool, some["tool %"], strict=True)
        )
        reason = f"; {REASONS[name]}" if name in REASONS else ""
        yield f"- **{name}**: {some['onebit %'].iloc[0]} %; {tools}{reason}."


def _markdown(table: Any) -> Iterator[str]:
    """Yield the lines of a table; all columns but the first are right-aligned."""
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    yield f"| {' | '.join(map(str, table.columns))} |"
    yield f"| --- |{' ---: |' * (len(table.columns) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
