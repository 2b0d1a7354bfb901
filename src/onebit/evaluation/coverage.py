"""How much of a policy a log covers, and whether the log's probabilities are plausible.

The weights w = policy(label) / probability have mean one if each label that the policy may choose
could be chosen in the log. The shortfall from one is the part that the log does not cover; an
expectation above one is impossible, and shows that labels were not chosen with the logged
probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.evaluation.intervals import LowerBound, check_level
from onebit.evaluation.log import Log

RARE = 1e-3
"""Labels that may be less probable are not assumed covered: the weights must show that they are."""

NEGLIGIBLE = 0.01
"""Share of a policy that may be uncovered without a warning."""

UNKNOWN = 0.25
"""If the covered share is known only to within this, the policy counts as not covered.

This happens if a few rows have large weights, and the log has no least probability.
"""

STRIKING = 3.5
"""Standard deviations beyond which a difference is not attributed to chance."""


def weigh(log: Log, p: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each row, its weight, the largest it could have, and the covered probability.

    `p` are the probabilities of the judged policy, (n, n_classes); None judges what was chosen.
    """
    if p is None:
        one = np.ones(len(log))
        return one, one, one
    w = p[np.arange(len(log)), log.labels] / log.probabilities
    covered = covered_part(log, p)
    return w, np.maximum(largest_weight(log, covered), w), covered.sum(axis=1)


def largest_weight(log: Log, p: np.ndarray) -> np.ndarray:
    """Return the largest p(label) / probability that each row could have; infinite if unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if log.policy is None:
            return np.where(log.least > 0.0, p.max(axis=1) / log.least, np.inf)
        return np.where(p > 0.0, p / log.policy, 0.0).max(axis=1)


def covered_part(log: Log, p: np.ndarray) -> np.ndarray:
    """Return the policy `p` without the part that is known not to be covered."""
    if log.policy is not None:
        return np.where(log.policy > 0.0, p, 0.0)
    return p if log.among is None else np.where(log.among, p, 0.0)


class Coverage:
    """What the weights of the rows so far say about a log."""

    def __init__(self) -> None:
        self.n = 0
        self.sum = self.squares = self.largest = 0.0
        self._uncovered = 0.0
        self._sure = np.zeros(3)
        self._unsure = np.zeros(2)
        self._bound = LowerBound()

    def update(self, w: np.ndarray, most: np.ndarray, mass: np.ndarray) -> None:
        """Take rows: their weights, the largest they could have, and the covered probability."""
        self.n += w.size
        self.sum += float(w.sum())
        self.squares += float(w @ w)
        self.largest = max(self.largest, float(w.max(initial=0.0)))
        sure = most <= 1.0 / RARE
        self._uncovered += float((1.0 - mass[sure]).sum())
        self._sure += (w[sure].sum(), mass[sure].sum(), (most * mass)[sure].sum())
        short = 1.0 - w[~sure]
        self._unsure += (short.sum(), short @ short)
        self._bound.update(w)

    def __add__(self, other: Coverage) -> Coverage:
        """Return what the rows of both say."""
        both = Coverage()
        for name in ("n", "sum", "squares", "_uncovered", "_sure", "_unsure", "_bound"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        both.largest = max(self.largest, other.largest)
        return both

    @property
    def mean_weight(self) -> float:
        """Mean of the weights."""
        return self.sum / self.n if self.n else math.nan

    @property
    def effective_rows(self) -> float:
        """(sum w)^2 / sum w^2."""
        return self.sum**2 / self.squares if self.squares else 0.0

    @property
    def covered(self) -> float:
        """The estimated share of the policy that the log covers."""
        if not self.n:
            return math.nan
        return float(np.clip(1.0 - (self._uncovered + self._unsure[0]) / self.n, 0.0, 1.0))

    @property
    def is_short(self) -> bool:
        """Whether a substantial part of the policy is not covered, or may not be."""
        if not self.n:
            return True
        return (
            self._uncovered > NEGLIGIBLE * self.n
            or self._unsure[0] > max(NEGLIGIBLE * self.n, self._chance)
            or self.is_unknown
            or not self.sum
        )

    @property
    def is_unknown(self) -> bool:
        """Whether the covered share depends on a few rows with large weights."""
        return self._chance > UNKNOWN * self.n

    @property
    def _chance(self) -> float:
        """By how much the estimated uncovered part can be off by chance."""
        return 3.0 * math.sqrt(self._unsure[1])

    @property
    def is_impossible(self) -> bool:
        """Whether true probabilities would give such weights only by a rare chance."""
        found, expected, variance = self._sure
        strange = abs(found - expected) > STRIKING * math.sqrt(variance) + 1e-6 * self.n
        return bool(strange) or self._bound.refutes(1.0, 1e-4, anytime=True)


@dataclass(frozen=True)
class LabelCheck:
    """Whether a label was chosen as often as the log's probabilities say.

    Attributes
    ----------
    label
    shown : int
        How often it was chosen.
    mean_weight : float
        The mean over the rows where it was on offer of 1 / probability if it was chosen, else 0:
        near one, if the label is covered and the probabilities are right.
    passed : bool
        Whether the deviation can be chance.
    """

    label: Any
    shown: int
    mean_weight: float
    passed: bool


@dataclass(frozen=True)
class ProbabilityCheck:
    """Whether the probabilities of a log can be those that labels were chosen with."""

    labels: tuple[LabelCheck, ...]
    warnings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing strange was found."""
        return not self.warnings


def check_probabilities(log: Log, alarms: float = 0.001) -> ProbabilityCheck:
    """Check that each label was chosen as often as the probabilities say.

    The check does not know the true probabilities: wrong ones that leave all sums as they should be
    pass it. A label that was chosen too rarely can be found only where the log says that it was
    covered, by `policy` or `least`.

    Parameters
    ----------
    log : Log
    alarms : float in (0, 1), default=0.001
        The largest probability of a false alarm on a log whose probabilities are right.

    Returns
    -------
    ProbabilityCheck

    Examples
    --------
    >>> import numpy as np
    >>> from onebit.evaluation import Log, check_probabilities
    >>> labels = np.random.default_rng(0).choice(["a", "b"], size=1000, p=[0.8, 0.2])
    >>> check_probabilities(Log(labels, np.where(labels == "a", 0.8, 0.2), least=0.2)).passed
    True
    >>> for words in check_probabilities(Log(labels, np.full(1000, 0.5), least=0.5)).warnings:
    ...     print(words)
    'a' was chosen 788 times, too often for its probabilities: its mean weight is 1.58, not 1
    'b' was chosen 212 times, too rarely for its probabilities: its mean weight is 0.424, not 1
    """
    checks, warnings = [], []
    alpha = 0.5 * check_level(alarms, "alarms") / max(1, log.classes.size)
    for k, label in enumerate(log.classes.tolist()):
        rows = log.on_offer[:, k]
        chosen = log.labels[rows] == k
        w = np.where(chosen, 1.0 / log.probabilities[rows], 0.0)
        least = (log.least if log.policy is None else log.policy[:, k])[rows]
        mean, words = float(w.mean()) if w.size else math.nan, ""
        if _exceeds(w, 1.0, alpha):
            words = "often"
        elif (least > 0.0).all() and _exceeds(1.0 - w * least, 1.0 - least.mean(), alpha):
            words = "rarely"
        checks.append(LabelCheck(label, int(chosen.sum()), mean, not words))
        if words:
            warnings.append(
                f"{label!r} was chosen {chosen.sum()} times, too {words} for its probabilities: "
                f"its mean weight is {mean:.3g}, not 1"
            )
    if len(log) and (log.probabilities == 1.0).all() and np.unique(log.labels).size > 1:
        warnings.append("all probabilities are 1, as of a log whose writer did not know them")
    return ProbabilityCheck(tuple(checks), tuple(warnings))


def _exceeds(values: np.ndarray, mean: float, alpha: float) -> bool:
    """Return whether non-negative values have a mean above this, with error probability alpha."""
    if not values.size:
        return False
    bound = LowerBound()
    bound.update(np.maximum(values, 0.0))  # rounding may leave them below zero
    return bound.refutes(float(mean), alpha, anytime=False)
