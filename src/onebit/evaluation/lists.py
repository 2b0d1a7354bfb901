"""How often lists have a right label, from a log whose rows are the places of lists.

A list is right if one of its labels is. People look from the first place on until a label is right:
whether a list is right depends on the places up to that one, or on all if there is none. So with
w_i = policy(label) / probability at place i, given the places before it, a list has the weight
w_1 ... w_t, where t is the first right place or the last one, and

    mean of w_1 ... w_t [one is right]

is unbiased for every policy that chooses one place after the other among the labels that are
left, as `decide(x, top=...)` does. Weights of whole lists would have a larger variance; weights of
single places would be biased.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onebit.evaluation.coverage import weigh
from onebit.evaluation.estimators import Estimate, Sums, check_interval
from onebit.evaluation.log import Log
from onebit.evaluation.policies import has_learned_from, probabilities_of


def estimate_lists(
    log: Log,
    policy: Any = None,
    level: float = 0.95,
    interval: str = "fixed",
    *,
    greedy: bool = False,
) -> Estimate:
    """Estimate how often one of the labels of a list is right, or would be by another policy.

    Parameters
    ----------
    log : Log
        A row for each place, in order: ``Log.from_decisions(place for one in lists for place in
        one)``. Its ids tell the lists apart; a bit is missing where a place was not seen.
    policy : learner, function or label, optional
        As in `estimate`; it makes lists of the same lengths. By default the logged lists are
        judged.
    level : float in (0, 1), default=0.95
        The interval contains the share with at least this probability.
    interval : {"fixed", "anytime"}, default="fixed"
        As in `estimate`.
    greedy : bool, default=False
        Judge a learner as if it did not explore: its lists are those of `rank`.

    Returns
    -------
    Estimate
        Of lists, not of places, by importance weights ("ips").

    Examples
    --------
    >>> from onebit import OneBitClassifier, streams
    >>> from onebit.evaluation import Log, estimate_lists
    >>> X, y = streams.synnonsep(300, seed=0)
    >>> learner = OneBitClassifier(classes=range(9), min_probability=0.02, random_state=0)
    >>> places, bits = [], []
    >>> for x, truth in zip(X, y):
    ...     chosen = learner.decide(x, top=2)
    ...     correct = [label == truth for label in chosen.labels]
    ...     learner.learn(chosen, correct=correct)
    ...     places, bits = [*places, *chosen], [*bits, *correct]
    >>> log = Log.from_decisions(places, correct=bits)
    >>> print(estimate_lists(log))
    what was chosen: 0.8467, 0.7732 to 0.9059 at 95%
    """
    check_interval(level, interval)
    if log.is_graded:
        raise ValueError("a list is right or wrong, and some places of this log have a reward")
    starts = starts_of_lists(log)
    p = None if policy is None else probabilities_of(policy, greedy=greedy)(log)
    w, most, mass = weigh(log, p)
    sums = Sums(policy, "ips", greedy=greedy)
    sums.taught = has_learned_from(policy, log)
    right = np.full(starts.size, np.nan)
    weights, largest = np.ones(starts.size), np.ones(starts.size)
    for i, (lo, hi) in enumerate(zip(starts, [*starts[1:], len(log)], strict=True)):
        bits = log.correct[lo:hi]
        n_seen = int(np.argmax(bits == 1.0)) + 1 if (bits == 1.0).any() else bits.size
        if not np.isnan(bits[:n_seen]).any():
            right[i] = bits[n_seen - 1]
        weights[i] = w[lo : lo + n_seen].prod()
        is_covered = (mass[lo:hi] >= 1.0 - 1e-9).all()
        largest[i] = np.maximum(most[lo:hi], 1.0).prod() if is_covered else np.inf
    sums.count(weights, right, np.maximum(largest, weights), np.ones(starts.size))
    return sums.estimate(level, anytime=interval == "anytime")


def starts_of_lists(log: Log) -> np.ndarray:
    """Return the rows of the first places; raise unless the rows are the places of lists."""
    starts: list[int] = []
    name = None
    for i, given in enumerate(log.ids or [None] * len(log)):
        before, _, place = given.rpartition("#") if isinstance(given, str) else ("", "", "")
        expected = i - starts[-1] + 1 if starts and before == name else 1
        if place != str(expected) or not before:
            raise ValueError(
                f"row {i}: the id of place {expected} of a list ends in #{expected}, and its rows "
                f"follow one another; got {given!r:.80}"
            )
        if expected == 1:
            starts.append(i)
        elif log.among is None or log.among[i, log.labels[starts[-1] : i]].any():
            raise ValueError(
                f"row {i}: a place of a list is among the labels that the places before it left"
            )
        name = before
    return np.array(starts, dtype=np.int64)
