"""The probability that a label is right, by a model of probabilities."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import float64, int64

from onebit.core.compiling import called_from_python, entry_point, lean_kernel


@lean_kernel
def softmax_probability(scores, inverse_temperature, label):
    """Return the probability of `label` in softmax(inverse_temperature * scores)."""
    total = 0.0
    for k in range(scores.size):
        total += math.exp(min(inverse_temperature * (scores[k] - scores[label]), 700.0))
    return 1.0 / total


@called_from_python
def _softmax_probability_for_python(scores, inverse_temperature, label):
    return softmax_probability(scores, inverse_temperature, label)


@cache
def softmax_probability_entry() -> Any:
    """Return `softmax_probability` for Python, compiled to trust the types of its arguments."""
    return entry_point(_softmax_probability_for_python, (float64[::1], float64, int64))
