"""Accuracy by label, as far as bits determine it.

A bit says whether one label is right. That is enough for how often a label is right when it is
chosen (its precision). How often it is chosen when it is right (its recall), and what is right when
another label is chosen (the confusion), must be estimated from the rounds in which the right label
happened to be tried, by importance weights, and only as far as the log covers all labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.evaluation.estimators import Bets, estimate
from onebit.evaluation.intervals import Interval, LowerBound, check_level
from onebit.evaluation.log import Log
from onebit.evaluation.policies import probabilities_of


@dataclass(frozen=True)
class LabelResult:
    """What a log says about a label.

    Attributes
    ----------
    label
    shown : int
        Rounds with feedback in which it was chosen.
    right : float
        How many of these were right; the sum of their rewards, if the log has some.
    precision : float
        right / shown, with `precision_interval`.
    share : float
        The share of examples for which it is right, with `share_interval`; NaN if the log does not
        cover it, and the interval then has bounds only.
    recall : float
        The share of those for which it was chosen, with `recall_interval`; NaN in the same case.
    """

    label: Any
    shown: int
    right: float
    precision: float
    precision_interval: Interval
    share: float
    share_interval: Interval
    recall: float
    recall_interval: Interval


def by_label(log: Log, level: float = 0.95) -> list[LabelResult]:
    """Return what a log says about each label.

    Parameters
    ----------
    log : Log
    level : float in (0, 1), default=0.95
        Of each interval.

    Returns
    -------
    list of LabelResult

    Examples
    --------
    >>> from onebit import OneBitClassifier, play, streams
    >>> from onebit.evaluation import Log, by_label
    >>> log = Log()
    >>> X, y = streams.synnonsep(20_000, seed=0)
    >>> _ = play(OneBitClassifier(min_probability=0.01, random_state=0), X, y, log=log)
    >>> first = by_label(log)[0]
    >>> f"{first.recall:.2f}, {first.recall_interval.low:.2f} to {first.recall_interval.high:.2f}"
    '0.93, 0.58 to 1.00'
    >>> f"{((log.labels == 0) & (y == 0)).sum() / (y == 0).sum():.2f}"      # from the truth
    '0.88'
    """
    check_level(level)
    log, results = log[log.has_feedback], []
    graded = log.is_graded
    n, split = len(log), 0.5 * (1.0 + level)
    for k, label in enumerate(log.classes.tolist()):
        chosen = log.labels == k
        right = float(log.correct[chosen].sum()) if graded else int(log.correct[chosen].sum())
        precision, both = Bets(), Bets()
        precision.update(np.ones(chosen.sum()), log.correct[chosen])
        both.update(np.ones(n), chosen * log.correct)
        found = both.interval(split, anytime=False)
        share = estimate(log, label, "snips", level)
        wider = estimate(log, label, "snips", split) if n else share
        recall = right / (n * share.value) if n and share.value > 0.0 else math.nan
        low = found.low / wider.high if wider.high > 0.0 else 0.0
        high = found.high / wider.low if wider.low > 0.0 else 1.0
        results.append(
            LabelResult(
                label,
                int(chosen.sum()),
                right,
                right / int(chosen.sum()) if chosen.any() else math.nan,
                precision.interval(level, anytime=False),
                share.value,
                Interval(share.low, share.high),
                min(recall, 1.0),
                Interval(min(low, 1.0), min(high, 1.0)),
            )
        )
    return results


@dataclass(frozen=True)
class Confusion:
    """How often a policy chooses one label where another is right.

    Attributes
    ----------
    classes : ndarray
    chosen : ndarray of shape (n_classes,)
        How often the policy chooses each label.
    share : ndarray of shape (n_classes, n_classes)
        Row: the label that the policy chooses; column: the label that is right. NaN where the log
        does not determine it.
    low, high : ndarray of shape (n_classes, n_classes)
        The interval of each cell.
    """

    classes: np.ndarray
    chosen: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray


def confusion(log: Log, policy: Any, level: float = 0.95, *, greedy: bool = False) -> Confusion:
    """Estimate how often a policy chooses each label where each label is right.

    Each cell is the mean of policy(row) w c over rounds in which the column was chosen, where w is
    one over the probability of that choice. For the logged decisions themselves, bits alone give
    only the diagonal; the rest needs a policy, such as the learner that wrote the log.

    Parameters
    ----------
    log : Log
    policy : learner, function or label
        As `estimate` takes it.
    level : float in (0, 1), default=0.95
        Of each cell's interval.
    greedy : bool, default=False
        As in `estimate`.

    Returns
    -------
    Confusion
    """
    alpha, log = 0.5 * (1.0 - check_level(level)), log[log.has_feedback]
    n, K = len(log), log.classes.size
    if not n:
        raise ValueError("no decision of this log has a bit")
    p = probabilities_of(policy, greedy=greedy)(log)
    chosen, share = p.mean(axis=0), np.full((K, K), math.nan)
    low, high = np.zeros((K, K)), np.repeat(chosen[:, None], K, axis=1)
    for k in range(K):
        rows = log.labels == k
        w, c = 1.0 / log.probabilities[rows], log.correct[rows]
        for j in np.flatnonzero(chosen > 0.0) if rows.any() else ():
            share[j, k] = float((p[rows, j] * w) @ c) / n
            for bit, bound in ((c, low), (1.0 - c, high)):
                found = LowerBound()
                found.update(p[rows, j] * w * bit)
                found.n = n  # all other rows are zero
                least = found.bound(alpha, anytime=False)
                bound[j, k] = least if bound is low else max(chosen[j] - least, 0.0)
    return Confusion(log.classes, chosen, share, np.minimum(low, high), high)
