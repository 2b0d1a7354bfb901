"""Whether a confidence of 80 % is right in 80 % of the rounds, on tables of the bake-off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import Learner, play
from onebit.lab.experiment import Experiment, Section, Sweep, mean_and_se, one_picture
from onebit.lab.experiments.bakeoff import data_folder, table_streams
from onebit.lab.measures import CollectedRounds, compile_for
from onebit.lab.significance import significance
from onebit.learners import OneBitClassifier

if TYPE_CHECKING:
    import pandas as pd

SEEDS = {"small": 1, "full": 5}

TABLE_ROWS = {"small": 1_500, "full": None}
"""At the small scale, tables with at most this many rows."""

N_BINS = 10

LEAST = 1e-4
"""Confidence is kept between this and one minus this: a single bit costs at most 9.2 nats."""

MIXTURE, LINE = "mixture", "line alone"


@dataclass(frozen=True)
class Calibration:
    """Log loss of `confidence` about the bits, and how often it was right at each level.

    Parameters
    ----------
    n_bins : int
        Levels of confidence, of equal width.
    """

    n_bins: int = N_BINS

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the totals, the log loss, and counts and sums for each level."""
        compile_for(learner, X, y)
        bits = CollectedRounds("confidence")
        history = play(learner, X, y, log=bits)
        q, right = bits.values, ~history.mistakes
        level = np.minimum((q * self.n_bins).astype(int), self.n_bins - 1)
        # The prediction of someone who knows only how often it was right so far.
        t = np.arange(right.size)
        share = (np.cumsum(right) - right + 0.5) / (t + 1.0)
        return {
            "rounds": history.rounds,
            "mistakes": history.n_mistakes,
            "explored": history.n_explored,
            "updated": history.n_updated,
            "error": history.error_rate,
            "log_loss": log_loss(q, right),
            "log_loss_of_rate": log_loss(share, right),
            "rounds_at": np.bincount(level, minlength=self.n_bins).tolist(),
            "confidence_at": np.bincount(level, q, self.n_bins).tolist(),
            "right_at": np.bincount(level, right, self.n_bins).tolist(),
        }


def log_loss(q: np.ndarray, right: np.ndarray) -> float:
    """Return the mean of minus the logarithm of the probability that was given to each bit."""
    q = np.clip(q, LEAST, 1.0 - LEAST)
    return float(-np.log(np.where(right, q, 1.0 - q)).mean())


def _sweeps(scale: str, *, tables: str = "") -> dict[str, Sweep]:
    folder = Path(tables) if tables else data_folder()
    if folder is None:
        return {}
    streams, _ = table_streams(folder, TABLE_ROWS[scale])
    ours = {MIXTURE: OneBitClassifier(), LINE: OneBitClassifier(views="line")}
    return {"calibration": Sweep(ours, {}, streams, list(range(SEEDS[scale])), Calibration())}


def reliability(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each level, confidence, share right, and share of rounds, all tables alike."""
    import pandas as pd

    def shares(column: str) -> np.ndarray:
        each = np.array(runs[column].tolist(), dtype=float) / runs.rounds.to_numpy()[:, np.newaxis]
        return each.mean(axis=0)

    rounds = shares("rounds_at")
    with np.errstate(invalid="ignore"):
        confidence, right = shares("confidence_at") / rounds, shares("right_at") / rounds
    return pd.DataFrame({"confidence": confidence, "right": right, "rounds": rounds})


def calibration_error(levels: pd.DataFrame) -> float:
    """Return the mean distance between confidence and the share that was right."""
    return float((levels.rounds * (levels.confidence - levels.right).abs()).sum())  # skips NaN


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    runs = tables["calibration"]
    losses = runs.pivot_table(index="stream", columns="learner", values="log_loss")
    rates = runs.pivot_table(index="stream", columns="learner", values="log_loss_of_rate")
    levels = {name: reliability(runs[runs.learner == name]) for name in (LINE, MIXTURE)}
    rows = [
        [
            name,
            f"{losses[name].mean():.3f}",
            f"{rates[name].mean():.3f}",
            f"{(losses[name] < rates[name]).sum()} of {len(losses)}",
            f"{100 * calibration_error(levels[name]):.1f}",
        ]
        for name in levels
    ]
    columns = ["", "log loss", "of the share right so far", "lower on", "calibration error, points"]
    less = losses[MIXTURE] - losses[LINE]
    at = [f"{i / N_BINS:.0%} to {(i + 1) / N_BINS:.0%}" for i in range(N_BINS)]
    by_level = pd.DataFrame({"confidence": at})
    for name, found in levels.items():
        by_level[f"{name}: said, %"] = [f"{100 * x:.1f}" for x in found.confidence]
        by_level["right, %" if name == LINE else "right, % "] = [
            f"{100 * x:.1f}" for x in found.right
        ]
        by_level["of rounds, %" if name == LINE else "of rounds, % "] = [
            f"{100 * x:.1f}" for x in found.rounds
        ]

    def draw(ax: Any) -> None:
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle=":")
        for (name, found), color in zip(levels.items(), ("0.5", "tab:blue"), strict=True):
            ax.plot(found.confidence, found.right, "o-", label=name, color=color)
        ax.set(xlabel="confidence", ylabel="share right", xlim=(0, 1), ylim=(0, 1))
        ax.set_aspect("equal")
        ax.legend(loc="upper left")

    return [
        Section(
            "Calibration of `confidence`",
            f"{len(losses)} tables of the bake-off, seeds {list(range(SEEDS[scale]))}, every round "
            "from the first on, all tables alike. Log loss, in nats, is that of the bit, right or "
            "wrong, by the confidence of the decision; beside it that of someone who knows only "
            "how often the learner was right so far, and on how many tables confidence is better. "
            "The calibration error is the mean distance between confidence and the share right at "
            "each of ten levels. The mixture's log loss less the line's is "
            f"{mean_and_se(less, 3)}, below zero on {(less < 0).sum()} of {len(less)} tables.",
            figures={"reliability": one_picture(draw)},
            tables={
                "log loss": pd.DataFrame(rows, columns=columns),
                "by level of confidence": by_level,
            },
        ),
        _errors(runs),
    ]


def _errors(runs: pd.DataFrame) -> Section:
    """Return on how many tables the mixture makes fewer mistakes than its line alone, and more."""
    import pandas as pd

    totals = runs.groupby(["learner", "stream"])[["mistakes", "rounds"]].sum()
    ours, line = totals.loc[MIXTURE], totals.loc[LINE]
    verdict = significance(ours.mistakes, line.mistakes, ours.rounds)
    ratios = np.log(np.maximum(ours.mistakes, 0.5) / np.maximum(line.mistakes, 0.5))
    lost = pd.DataFrame(
        {
            "table": ours.index,
            "mixture, error %": [f"{e:.2f}" for e in 100 * ours.mistakes / ours.rounds],
            "line, error %": [f"{e:.2f}" for e in 100 * line.mistakes / line.rounds],
            "log ratio": [f"{r:+.3f}" for r in ratios],
        }
    )
    return Section(
        "Mistakes of the mixture and of its line alone",
        f"The same {len(ours)} tables and seeds, all seeds together. The mixture makes "
        f"significantly fewer mistakes on {(verdict > 0).sum()} tables, more on "
        f"{(verdict < 0).sum()}; the mean logarithm of the ratio is {mean_and_se(ratios, 2)}. "
        "Tables with more mistakes of the mixture, by chance or not:",
        tables={"more mistakes": lost[(ratios > 0).to_numpy()]},
    )


EXPERIMENT = Experiment(
    "calibration",
    "Calibration of confidence",
    "No paper: docs/one_bit_measurements.md.",
    [
        "--tables FOLDER takes other tables than those of the bake-off.",
        f"At the small scale: tables of at most {TABLE_ROWS['small']:,} rows, one seed.",
    ],
    _sweeps,
    _sections,
)
