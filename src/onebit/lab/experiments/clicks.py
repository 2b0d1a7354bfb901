"""Clicks: what to tell a learner of visitors who click nothing.

A shop shows each visitor one of 20 articles. x has ten numbers. About half of the visitors would
click none of the articles, and some would click several. A click is ``correct=True``. What is told
of a visitor who did not click: ``correct=False``, or ``truth=NONE_OF_THESE``, which is for someone
who looked at all labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import NONE_OF_THESE
from onebit.lab.experiment import Experiment, Section, Sweep
from onebit.lab.trials import Trial
from onebit.learners import OneBitClassifier

if TYPE_CHECKING:
    import pandas as pd

ARTICLES, FEATURES = 20, 10
BIAS, STRENGTH = -5.5, 0.7
"""Log-odds of a click on an average article, and how much they depend on the visitor."""

VISITORS = {"small": 3_000, "full": 20_000}
SEEDS = {"small": 1, "full": 3}

UNCLICKED: dict[str, dict[str, Any]] = {
    "correct=False": {"correct": False},
    "truth=NONE_OF_THESE": {"truth": NONE_OF_THESE},
}


class Shop(Trial):
    """Visitors of a shop, and how many click what a learner shows.

    Parameters
    ----------
    visitors : int
    told : str
        What the learner is told of those who do not click, one of `UNCLICKED`.
    """

    def __init__(self, visitors: int = 20_000, told: str = "correct=False") -> None:
        self.visitors = visitors
        self.told = told

    def result(self, seed: int) -> dict[str, Any]:
        """Return the clicks of a learner, of a random article and of the best."""
        X, would = self.shop(seed)
        learner, clicks = OneBitClassifier(classes=range(ARTICLES), random_state=seed), 0
        for x, liked in zip(X, would, strict=True):
            decision = learner.decide(x)
            clicked = bool(liked[decision.label])
            learner.learn(decision, **({"correct": True} if clicked else UNCLICKED[self.told]))
            clicks += clicked
        number = would.sum(axis=1)
        return {
            "clicks": clicks,
            "none": float(np.mean(number == 0)),
            "several": float(np.mean(number > 1)),
            "random": float(would.mean(axis=0).mean() * self.visitors),
            "best": int(would.sum(axis=0).max()),
        }

    def shop(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the visitors, and which articles each would click."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(self.visitors, FEATURES))
        bias = BIAS + rng.normal(size=ARTICLES)
        scores = bias + STRENGTH * X @ rng.normal(size=(FEATURES, ARTICLES))
        return X, rng.random(scores.shape) < 1.0 / (1.0 + np.exp(-scores))


def _sweeps(scale: str) -> dict[str, Sweep]:
    trials = {f"clicks, {told}": Shop(VISITORS[scale], told) for told in UNCLICKED}
    return {"clicks": Sweep(trials, {}, {}, list(range(SEEDS[scale])))}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    runs = tables["clicks"]
    shops = runs.drop_duplicates("seed").set_index("seed")
    rows = {
        "would click none, %": 100 * shops.none,
        "would click several, %": 100 * shops.several,
        "clicks of a random article": shops.random,
        "clicks of the best article": shops.best,
        **{name: some.set_index("seed").clicks for name, some in runs.groupby("learner")},
    }
    shown = [
        [name, *(f"{values[seed]:,.0f}" for seed in shops.index)] for name, values in rows.items()
    ]
    columns = ["", *(f"seed {seed}" for seed in shops.index)]
    return [
        Section(
            "A shop",
            f"{VISITORS[scale]:,} visitors, {ARTICLES} articles.",
            tables={"clicks": pd.DataFrame(shown, columns=columns)},
        )
    ]


EXPERIMENT = Experiment(
    "clicks",
    "What to tell of visitors who click nothing",
    "No paper: docs/decisions.md.",
    [f"At the small scale: {VISITORS['small']:,} visitors, one seed."],
    _sweeps,
    _sections,
)
