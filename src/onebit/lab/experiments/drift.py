"""OneBitClassifier against Vowpal Wabbit on streams that change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onebit.lab.experiment import Experiment, Section, Sweep
from onebit.lab.experiments.compare import (
    FEW_SEEDS,
    OURS,
    SMALL,
    WAYS,
    claim,
    errors_of,
    judged,
    measure_of,
    of_scale,
    seeds_of,
)
from onebit.lab.verdicts import mean_and_sd
from onebit.learners import named
from onebit.streams import CHANGES

if TYPE_CHECKING:
    import pandas as pd

ROWS = {
    "optdigits": 5_620,
    "satimage": 6_435,
    "letter": 20_000,
    "snips": 14_484,
    "20newsgroups": 18_828,
    "banking77": 13_083,
    "mnist": 20_000,
}
"""Streams that are changed, and how many rows are played."""

NATURAL_ROWS = {"reuters_r8": 7_674, "amazon4": 8_000, "kddcup99": 100_000, "covtype": 100_000}
"""Streams in their natural order: that of time, except for covtype, where it is by place."""

NATURAL = "natural order"
"""The name of streams in their natural order, where others name a change."""

SUDDEN = ("all permuted", "two swapped")

MUCH_BETTER = 0.7


def _sweeps(
    scale: str, *, learner: str = "OneBitClassifier", feedback: str = "", changes: str = ""
) -> dict[str, Sweep]:
    """Return a sweep for each change, or for those in `changes`, separated by commas."""
    tools, seeds = {OURS: named(learner)(), **WAYS}, seeds_of(scale)
    wanted = {
        change: Sweep(
            tools, {}, of_scale(ROWS, scale, change=change), seeds, measure_of(feedback, change)
        )
        for change in CHANGES
    }
    natural = of_scale(NATURAL_ROWS, scale, order="natural")
    wanted[NATURAL] = Sweep(tools, {}, natural, seeds, measure_of(feedback))
    chosen = [change.strip() for change in changes.split(",")] if changes else [*wanted]
    for change in chosen:
        if change not in wanted:
            raise ValueError(f"no change {change!r}: there are {', '.join(wanted)}")
    return {change: wanted[change] for change in chosen if wanted[change].streams}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    lines: dict[str, list[tuple[str, pd.DataFrame]]] = {}
    for change, table in tables.items():
        for stream, runs in table.groupby("stream", sort=False):
            lines.setdefault(str(stream), []).append((change, runs))
    rows, verdicts = [], []
    for stream, changed in lines.items():
        for change, runs in changed:
            errors = errors_of(runs)
            cells, best = judged(errors, WAYS)
            rows.append([stream, change, len(errors[OURS]), mean_and_sd(errors[OURS]), *cells])
            if best is not None:
                verdicts.append((f"{stream} {change}", best))
    sudden = [best for name, best in verdicts if name.endswith(SUDDEN)]
    much = sum(best.ratio <= MUCH_BETTER for best in sudden)
    columns = ["stream", "change", "n", OURS, "best VW", "which", "ratio", "mistakes"]
    return [
        Section(
            "After a change",
            "Error in percent, mean and standard deviation over n seeds, of the rounds from the "
            "change on; of streams in their natural order, of all rounds.",
            tables={"error %": pd.DataFrame(rows, columns=columns)},
            findings=claim(
                verdicts,
                "the best of Vowpal Wabbit",
                f"At most {MUCH_BETTER:g} times its error on {much} of {len(sudden)} where labels "
                f"are {' or '.join(SUDDEN)}.",
            ),
        )
    ]


EXPERIMENT = Experiment(
    "drift",
    "OneBitClassifier and Vowpal Wabbit after a change",
    "No paper: the comparison of docs/comparison.md.",
    [
        "Halfway, all labels are permuted, the two most frequent are swapped, all are permuted "
        "gradually, over a fifth of the rows, or the most frequent one appears for the first time. "
        "A-B-A: all are permuted after a third, and back after two.",
        "--changes chooses among these; --learner and --feedback are those of compare.",
        f"At the small scale: streams of at most {SMALL:,} rows, {FEW_SEEDS} seeds.",
    ],
    _sweeps,
    _sections,
)
