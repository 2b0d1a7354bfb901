"""Accuracies with anytime-valid intervals, from the feedback in a log.

`onebit.evaluation` is imported at the first use, so that the service starts faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onebit.serve.api import Interval

LEAST_WINDOW = 30
"""Least feedback on each side of a change."""


@lru_cache(maxsize=20_000)
def accuracy(right: int, wrong: int) -> Interval | None:
    """Return the accuracy, from the numbers of right and wrong decisions; None if both are zero."""
    n = right + wrong
    if not n:
        return None
    from onebit.evaluation.intervals import BETS

    # Equal bits add equal terms, so the sum needs only their numbers.
    each = np.log1p(BETS)
    state = {
        "level": 0.95,
        "n": n,
        "sums": [right, n],
        "right": (right * each).tolist(),
        "wrong": (wrong * each).tolist(),
    }
    return interval_of(state)


def interval_of(state: dict[str, Any]) -> Interval | None:
    """Return the interval of a `ConfidenceSequence` in the form of its `to_dict`."""
    from onebit.evaluation import ConfidenceSequence

    found = ConfidenceSequence.from_dict(state)
    if not found.n:
        return None
    low, high = found.interval
    return Interval(min(max(found.mean, 0.0), 1.0), low, high)


def watched(state: dict[str, Any] | None, bits: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return a sequence, in the form of `to_dict`, updated with more weighted bits."""
    from onebit.evaluation import ConfidenceSequence

    sequence = ConfidenceSequence() if state is None else ConfidenceSequence.from_dict(state)
    if bits:
        correct, weights = zip(*bits, strict=True)
        sequence.update(np.array(correct), np.array(weights))
    return sequence.to_dict()


def falls(sums: Sequence[tuple[int, int]]) -> list[int]:
    """Return where an accuracy fell.

    Parameters
    ----------
    sums : sequence of (right, wrong)
        Sums up to each point.

    Returns
    -------
    list of int
        Points from which the accuracy is lower than it was since the previous one of these, or the
        first point: the intervals do not overlap.
    """
    found: list[int] = []
    start, i = (0, 0), 0
    while i < len(sums):
        # Windows of the last 2, 4, 8, ... points, as a small fall takes longer to detect.
        width = 2
        while width <= i:
            middle, end = sums[i - width], sums[i]
            before, after = _between(start, middle), _between(middle, end)
            if min(sum(before), sum(after)) >= LEAST_WINDOW:
                was, now = accuracy(*before), accuracy(*after)
                if was is not None and now is not None and now.high < was.low:
                    found.append(i - width)
                    start = middle
                    break
            width *= 2
        i += 1
    return found


def _between(start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int]:
    return end[0] - start[0], end[1] - start[1]
