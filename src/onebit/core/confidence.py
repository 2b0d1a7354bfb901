"""The probability that a label is right, by a model of probabilities."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import boolean, float64, int64

from onebit.core.compiling import called_from_python, entry_point, lean_kernel


@lean_kernel
def right_probability(scores, inverse_temperature, exclusive, label):
    """Return the probability that `label` is right, from scores times the inverse temperature.

    If labels are exclusive, it is the softmax of these products at the label, otherwise the
    logistic function of its own.
    """
    if not exclusive:
        return 1.0 / (1.0 + math.exp(min(-inverse_temperature * scores[label], 700.0)))
    total = 0.0
    for k in range(scores.size):
        total += math.exp(min(inverse_temperature * (scores[k] - scores[label]), 700.0))
    return 1.0 / total


@called_from_python
def _right_probability_for_python(scores, inverse_temperature, exclusive, label):
    return right_probability(scores, inverse_temperature, exclusive, label)


@cache
def right_probability_entry() -> Any:
    """Return `right_probability` for Python, compiled to trust the types of its arguments."""
    return entry_point(_right_probability_for_python, (float64[::1], float64, boolean, int64))
