"""Van der Hoeven (2020): Figure 1, and the comparison that was left to future work."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from onebit.lab.papers import soba
from onebit.lab.papers.paper import (
    Finding,
    Paper,
    Section,
    Sweep,
    best_settings,
    by_stream,
    percent,
)
from onebit.lab.pictures import draw_curves, draw_with_legend
from onebit.lab.results import summary
from onebit.learners import (
    AROW,
    SOBA,
    Banditron,
    Confidit,
    Gaptron,
    Newtron,
    Perceptron,
    SecondOrderPerceptron,
)
from onebit.theory.pictures import surrogate_gap

if TYPE_CHECKING:
    import pandas as pd

LOSSES = {"hinge": "hinge", "smooth_hinge": "smooth hinge", "logistic": "logistic"}

TOLD = {
    **{f"Gaptron, {words}": Gaptron(loss, "full") for loss, words in LOSSES.items()},
    "Perceptron": Perceptron(),
    "second-order Perceptron": SecondOrderPerceptron(),
    "AROW": AROW(),
}
"""With full information."""

GAMMAS = [2.0**k for k in (-9, -7, -5, -3)]

ONE_BIT = {
    **{f"Gaptron, {words}": [Gaptron(loss, gamma=g) for g in GAMMAS]
       for loss, words in LOSSES.items()},
    "Banditron": [Banditron(g) for g in GAMMAS],
    "PNewtron": [Newtron(g) for g in GAMMAS],
    "SOBAdiag": [SOBA(g) for g in GAMMAS],
    "Confidit": [Confidit(eta) for eta in (0.01, 0.1, 1.0, 10.0)],
}  # fmt: skip
"""With one bit, each with the same number of settings, of which the best is shown."""


def _sweeps(scale: str) -> dict[str, Sweep]:
    (wanted,) = soba.PAPER.sweeps(scale).values()
    # Gaptron's defaults are for examples of unit length.
    streams = {name: replace(asked, unit=True) for name, asked in wanted.streams.items()}
    return {
        "told": Sweep(TOLD, {}, streams, wanted.seeds),
        "one_bit": Sweep(ONE_BIT, {}, streams, wanted.seeds),
    }


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    from matplotlib.figure import Figure

    first = Figure(figsize=(5.5, 4), layout="constrained")
    surrogate_gap(first.add_subplot())
    sections = [
        Section(
            "Figure 1: the surrogate gap",
            "Of the smooth hinge loss, with two labels.",
            figures={"gap": first},
        )
    ]
    for part, title in (("told", "With full information"), ("one_bit", "With one bit")):
        streams = by_stream(tables[part])
        sections.append(
            Section(
                title,
                "Where a learner has several settings, that which is best on the stream in "
                "hindsight.",
                figures={
                    name: draw_with_legend(partial(draw_curves, table=some), name)
                    for name, some in streams.items()
                },
                tables={"best": best_settings(tables[part])},
                findings=[_first_of(some, name) for name, some in streams.items()],
            )
        )
    return sections


def _first_of(table: pd.DataFrame, stream: str) -> Finding:
    ranked = summary(table).drop_duplicates("learner")
    seen = ", ".join(f"{row.learner} {percent(row.error)}" for row in ranked.itertuples())
    return Finding(
        f"On {stream}, Gaptron with one of its losses makes the fewest mistakes (not a claim of "
        "the paper, which has no experiments).",
        bool(ranked.learner.iloc[0].startswith("Gaptron")),
        seen,
    )


PAPER = Paper(
    "gaptron",
    "Exploiting the surrogate gap in online multiclass classification",
    "D. van der Hoeven. NeurIPS 2020; arXiv:2007.12618.",
    [
        "The paper leaves experiments to future work: streams and settings are ours, those of the "
        "SOBA paper with examples of unit length.",
        "Gaptron plays with its practical step, which the paper does not have. OnlineNewton and "
        "Folklore are not compared here: their rounds cost more than these streams allow.",
    ],
    _sweeps,
    _sections,
)
