"""How confident a probability model is in a label."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from numba import float64, int64

from onebit.core.compiling import called_from_python, entry_point, lean_kernel


@lean_kernel
def share(scores, temper, label):
    """Return the probability of `label` in softmax(temper * scores)."""
    total = 0.0
    for k in range(scores.size):
        total += math.exp(min(temper * (scores[k] - scores[label]), 700.0))
    return 1.0 / total


@called_from_python
def share_of(scores, temper, label):
    """Return `share`, for Python."""
    return share(scores, temper, label)


@cache
def share_entry() -> Any:
    """Return `share_of` compiled to trust the types of its arguments."""
    return entry_point(share_of, (float64[::1], float64, int64))
