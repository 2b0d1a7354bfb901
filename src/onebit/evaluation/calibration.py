"""Calibration of a learner's confidence: of decisions at 80 %, 80 % should be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.evaluation.estimators import Bets
from onebit.evaluation.intervals import Interval, check_level
from onebit.evaluation.log import Log


@dataclass(frozen=True)
class Bin:
    """Decisions of similar confidence: how many, what was claimed, and what was right."""

    n: int
    confidence: float
    right: float
    interval: Interval


@dataclass(frozen=True)
class Calibration:
    """Confidence beside accuracy.

    Attributes
    ----------
    bins : tuple of Bin
        With about the same number of decisions each, the least confident first.
    error : float
        The mean distance between confidence and accuracy over the bins (the calibration error).
    confidence, right : float
        Over all decisions.
    interval : Interval
        Of `right`.
    level : float
        Of all intervals.
    """

    bins: tuple[Bin, ...]
    error: float
    confidence: float
    right: float
    interval: Interval
    level: float

    @property
    def verdict(self) -> str:
        """In words: honest as far as the log shows, overconfident, or underconfident."""
        if self.confidence > self.interval.high:
            return "too sure"
        if self.confidence < self.interval.low:
            return "too modest"
        wrong = [b for b in self.bins if not b.interval.low <= b.confidence <= b.interval.high]
        return (
            f"honest on average, not in {len(wrong)} of {len(self.bins)} bins"
            if wrong
            else ("honest, as far as can be told")
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw accuracy against confidence with matplotlib, and return the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(figsize=(5, 5), layout="constrained").add_subplot()
        x = np.array([100 * b.confidence for b in self.bins])
        y = np.array([100 * b.right for b in self.bins])
        ends = np.array([[100 * end for end in b.interval] for b in self.bins]).reshape(-1, 2)
        ax.plot([0, 100], [0, 100], color="0.6", linewidth=1, linestyle=(0, (4, 3)))
        ax.errorbar(
            *(x, y),
            yerr=np.maximum([y - ends[:, 0], ends[:, 1] - y], 0.0),
            fmt="o",
            color="#0072B2",
            capsize=3,
        )
        ax.set(
            xlabel="confidence of the learner, %",
            ylabel="right, % of these decisions",
            xlim=(-2, 102),
            ylim=(-2, 102),
            aspect="equal",
        )
        ax.text(58, 61, "honest", color="0.5", rotation=45, rotation_mode="anchor")
        ax.set_title(f"{self.verdict}\n{self.level:.0%} intervals", loc="left", fontsize=10)
        ax.grid(alpha=0.3)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return ax


def calibration(log: Log, bins: int = 10, level: float = 0.95) -> Calibration:
    """Compare the confidence of decisions with how many of them were right.

    Parameters
    ----------
    log : Log
        With `confidence`, which learners that are probability models provide.
    bins : int, default=10
        The largest number of bins, with about the same number of decisions each.
    level : float in (0, 1), default=0.95
        Of each interval.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> from onebit import OneBitClassifier, play, streams
    >>> from onebit.evaluation import Log, calibration
    >>> log = Log()
    >>> X, y = streams.synnonsep(20_000, seed=0)
    >>> _ = play(OneBitClassifier(random_state=0), X, y, log=log)
    >>> found = calibration(log)
    >>> f"{found.confidence:.3f} claimed, {found.right:.3f} right: {found.verdict}"
    '0.949 claimed, 0.946 right: honest on average, not in 8 of 10 bins'
    """
    check_level(level)
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"bins is a number of at least 1; got {bins!r}")
    known = log.has_feedback & ~np.isnan(log.confidence)
    if not known.any():
        raise ValueError("no decision of this log has both a confidence and a bit")
    claimed, right = log.confidence[known], log.correct[known]
    edges = np.unique(np.quantile(claimed, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    which = np.searchsorted(edges, claimed, side="left")
    found = [_bin(claimed[which == i], right[which == i], level) for i in np.unique(which)]
    whole = _bin(claimed, right, level)
    error = sum(b.n * abs(b.confidence - b.right) for b in found) / whole.n
    return Calibration(tuple(found), error, whole.confidence, whole.right, whole.interval, level)


def _bin(claimed: np.ndarray, right: np.ndarray, level: float) -> Bin:
    bets = Bets()
    bets.update(np.ones(right.size), right)
    interval = bets.interval(level, anytime=False)
    return Bin(right.size, float(claimed.mean()), float(right.mean()), interval)
