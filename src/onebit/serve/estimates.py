"""Accuracies with anytime-valid intervals, from the feedback in a log.

`onebit.evaluation` is imported at the first use, so that the service starts faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.serve.api import Interval
from onebit.serve.statistics import STEPS_PER_OCTAVE, LabelCounts

if TYPE_CHECKING:
    from onebit.evaluation import ConfidenceSequence, DifferenceSequence

LEVEL = 0.95
"""Of all intervals that the service shows."""

LEAST_WINDOW = 30
"""Minimum number of bits on each side of a change."""


@lru_cache(maxsize=20_000)
def accuracy(right: int, wrong: int, level: float = LEVEL) -> Interval | None:
    """Return the accuracy, from the numbers of right and wrong decisions; None if both are zero."""
    n = right + wrong
    if not n:
        return None
    low, high = (_bound(n, {"0": part}, 0.5 * (1.0 - level)) for part in (right, wrong))
    return Interval(right / n, min(low, 1.0 - high), max(low, 1.0 - high))


def constant_accuracy(
    name: str, labels: Mapping[str, LabelCounts], n: int, level: float = LEVEL
) -> Interval:
    """Return the accuracy that a constant label would have had, by importance weights.

    One label is right for each record: where another one was, this one would have been wrong. So
    the wrong share has two estimates, of which the higher lower bound counts.

    Parameters
    ----------
    name : str
        The label.
    labels : dict of LabelCounts
        By the label.
    n : int
        Number of bits.
    level : float
        Of the interval.
    """
    own, alpha = labels[name], 0.5 * (1.0 - level)
    others = LabelCounts()
    for other, counts in labels.items():
        if other != name:
            others.add(counts)
    low = _bound(n, own.right_steps, alpha)
    wrong = max(_bound(n, steps, alpha / 2) for steps in (own.wrong_steps, others.right_steps))
    high = max(1.0 - wrong, low)
    return Interval(min(max(own.right_weight / n, low), high), low, high)


def _bound(n: int, steps: Mapping[str, int], alpha: float) -> float:
    """Return a lower bound for the mean of n values, given by their logarithms; others are zero."""
    from onebit.evaluation.intervals import BETS, LowerBound

    bound = LowerBound()
    bound.n = n
    for step, count in steps.items():  # equal values add equal terms
        bound.log_capital += count * np.log1p(BETS * 2.0 ** (int(step) / STEPS_PER_OCTAVE))
    return min(bound.bound(alpha, anytime=True), 1.0)


def interval_of(state: dict[str, Any]) -> Interval | None:
    """Return the interval of a `ConfidenceSequence` in the form of its `to_dict`."""
    from onebit.evaluation import ConfidenceSequence

    found = ConfidenceSequence.from_dict(state)
    if not found.n:
        return None
    low, high = found.interval
    return Interval(min(max(found.mean, 0.0), 1.0), low, high)


def difference_of(state: dict[str, Any] | None) -> Interval | None:
    """Return the interval of a `DifferenceSequence` in the form of its `to_dict`."""
    from onebit.evaluation import DifferenceSequence

    if state is None or not state["n"]:
        return None
    found = DifferenceSequence.from_dict(state)
    low, high = found.interval
    return Interval(min(max(found.mean, -1.0), 1.0), low, high)


def watched(state: dict[str, Any] | None, bits: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return a `ConfidenceSequence`, in the form of `to_dict`, after more weighted bits."""
    from onebit.evaluation import ConfidenceSequence

    return _updated(ConfidenceSequence, state, bits)


def compared(state: dict[str, Any] | None, bits: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return a `DifferenceSequence` to who decided, in the form of `to_dict`, after more bits."""
    from onebit.evaluation import DifferenceSequence

    return _updated(DifferenceSequence, state, bits)


def _updated(
    kind: type[ConfidenceSequence] | type[DifferenceSequence],
    state: dict[str, Any] | None,
    bits: Sequence[tuple[float, float]],
) -> dict[str, Any]:
    sequence = kind() if state is None else kind.from_dict(state)
    if bits:
        correct, weights = zip(*bits, strict=True)
        sequence.update(np.array(correct), np.array(weights))
    return sequence.to_dict()


def changes(bits: Sequence[tuple[int, int]]) -> list[int]:
    """Return where an accuracy changed, by binary segmentation.

    Parameters
    ----------
    bits : sequence of (right, wrong)
        Numbers of right and wrong decisions in segments of time.

    Returns
    -------
    list of int
        First segments after each change. At the split that is most likely, the intervals before
        and after do not overlap, at a level for all splits together.
    """
    if len(bits) < 2:
        return []
    sums = np.zeros((len(bits) + 1, 2))
    np.cumsum(np.asarray(bits, dtype=np.float64), axis=0, out=sums[1:])
    level = 1.0 - (1.0 - LEVEL) / (len(bits) - 1)
    return sorted(_splits(sums, 0, len(bits), level))


def _splits(sums: np.ndarray, start: int, end: int, level: float) -> list[int]:
    before, after = sums[start + 1 : end] - sums[start], sums[end] - sums[start + 1 : end]
    possible = np.minimum(before.sum(axis=1), after.sum(axis=1)) >= LEAST_WINDOW
    if not possible.any():
        return []
    gain = np.where(possible, _log_likelihood(before) + _log_likelihood(after), -np.inf)
    best = int(gain.argmax())
    was, now = (accuracy(int(a), int(b), level) for a, b in (before[best], after[best]))
    if was is None or now is None or (was.low <= now.high and now.low <= was.high):
        return []
    at = start + 1 + best
    return [at, *_splits(sums, start, at, level), *_splits(sums, at, end, level)]


def _log_likelihood(counts: np.ndarray) -> np.ndarray:
    """Return the greatest log-likelihood of right and wrong bits, for each row."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return (counts * np.log(np.where(counts > 0.0, shares, 1.0))).sum(axis=1)


def fall(
    bits: Sequence[tuple[int, int]], places: Sequence[int]
) -> tuple[int, Interval, Interval] | None:
    """Return the fall of an accuracy that lasts until now, if there is one.

    Parameters
    ----------
    bits : sequence of (right, wrong)
    places : sequence of int
        Where it changed, as `changes` returns it.

    Returns
    -------
    (int, Interval, Interval) or None
        The first segment after the fall, and the accuracies before it and now. There may have been
        further changes since then, but none back to where it was.
    """
    edges = [0, *places, len(bits)]
    spans = [bits[a:b] for a, b in pairwise(edges)]
    found = [accuracy(sum(r for r, _ in one), sum(w for _, w in one)) for one in spans]
    now = found[-1]
    for i in range(len(found) - 2, -1, -1):
        was = found[i]
        if was is not None and now is not None and was.low > now.high:
            return edges[i + 1], was, now
    return None
