"""What labels are worth among bits: a tenth of the rounds told, or a few examples taught first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import Learner, play
from onebit.lab.experiment import Experiment, Section, Sweep, is_there, mean_and_se
from onebit.lab.experiments.compare import ROWS
from onebit.lab.measures import ONLINE, result_of_labels
from onebit.learners import OneBitClassifier
from onebit.streams import StreamSpec

if TYPE_CHECKING:
    import pandas as pd

MANY_LABELS = (
    *("vowel", "optdigits", "letter", "poker", "banking77", "20newsgroups", "fdu_mtl"),
    *("clinc150", "mnist", "kddcup99"),
)
"""All named streams with ten labels or more."""

TAUGHT = ("clinc150", "banking77", "20newsgroups", "letter", "mnist")
EXAMPLES = (0, 1, 3, 5)
SHARE = 0.1

MOST_ROWS = {"small": 5_000, "full": None}
SEEDS = {"small": 2, "full": 5}


@dataclass(frozen=True)
class Taught:
    """Mistakes after some labelled examples of each label, drawn at random.

    The rounds are all but the most examples, so that they do not depend on their number. Examples
    are not the first ones of each label: a stream without these would begin with the labels that
    happen to be frequent in its first rows.

    Parameters
    ----------
    n : int
        Examples of each label.
    most : int
        The most examples of any run.
    """

    n: int
    most: int = max(EXAMPLES)

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what `Online` does of the rounds that follow."""
        y = np.asarray(y)
        rng = np.random.default_rng(learner.random_state)
        known = [rng.permutation(np.flatnonzero(y == k))[: self.most] for k in learner.classes]
        rest = np.setdiff1d(np.arange(y.size), np.concatenate(known))
        if self.n:
            examples = np.sort(np.concatenate([of_label[: self.n] for of_label in known]))
            learner.teach(X[examples], y[examples])
        history = play(learner, X[rest], y[rest])
        wrong = np.where(history.mistakes, y[rest] + 1, y[rest])
        return result_of_labels(wrong, y[rest], 0, float("nan"))


@dataclass(frozen=True)
class WithTruths:
    """Mistakes if someone names the label instead of a bit in a share of the rounds."""

    share: float

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the mistakes of all rounds."""
        told = np.flatnonzero(
            np.random.default_rng(learner.random_state).random(y.size) < self.share
        )
        mistakes, at = 0, 0
        for i in [*told.tolist(), y.size]:
            if i > at:
                mistakes += play(learner, X[at:i], y[at:i], record=False).n_mistakes
            if i < y.size:
                (decision,) = learner.decide_many(X[i : i + 1])
                mistakes += int(decision.label != y[i])
                learner.learn(decision, truth=y[i].item())
            at = i + 1
        return {"rounds": y.size, "mistakes": mistakes, "error": mistakes / y.size}


def _sweeps(scale: str) -> dict[str, Sweep]:
    ours, seeds = {"OneBitClassifier": OneBitClassifier()}, list(range(SEEDS[scale]))
    most = MOST_ROWS[scale] or max(ROWS.values())

    def streams(names: tuple[str, ...]) -> dict[str, StreamSpec]:
        return {name: StreamSpec(name, min(ROWS[name], most)) for name in names if is_there(name)}

    some, many = streams(TAUGHT), streams(MANY_LABELS)
    wanted = {f"{n} of each": Sweep(ours, {}, some, seeds, Taught(n)) for n in EXAMPLES}
    wanted["bits alone"] = Sweep(ours, {}, many, seeds, ONLINE)
    wanted[f"{SHARE:.0%} truths"] = Sweep(ours, {}, many, seeds, WithTruths(SHARE))
    return {part: sweep for part, sweep in wanted.items() if sweep.streams}


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    taught = {part: table for part, table in tables.items() if part.endswith("of each")}
    told = {part: table for part, table in tables.items() if part not in taught}
    return [
        Section(title, TEXT, tables={"error %": steps(some)})
        for title, some in (("Labelled examples first", taught), ("Labels among the bits", told))
        if some
    ]


TEXT = (
    "Mean error in percent; in brackets the step from the column before, with its standard error, "
    "seed by seed."
)


def steps(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each stream, with the error of each table and the steps between them."""
    import pandas as pd

    rows = []
    for stream in dict.fromkeys(next(iter(tables.values())).stream):
        errors = [
            100 * table[table.stream == stream].sort_values("seed").error.to_numpy()
            for table in tables.values()
        ]
        cells = [f"{errors[0].mean():.2f}"]
        for before, after in pairwise(errors):
            cells.append(f"{after.mean():.2f} ({mean_and_se(after - before)})")
        rows.append([stream, *cells])
    return pd.DataFrame(rows, columns=["stream", *tables])


EXPERIMENT = Experiment(
    "labels",
    "What labels are worth among bits",
    "No paper: docs/one_bit_measurements.md.",
    [f"At the small scale: the first {MOST_ROWS['small']:,} rows, {SEEDS['small']} seeds."],
    _sweeps,
    _sections,
)
