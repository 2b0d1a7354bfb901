"""Robust location and deviation of columns, one value at a time.

A column keeps a sample of `SAMPLE` of its values, spread over the last two thirds of its history.
Distances are those from its median, of the values that differ from it, as a column may have one
value most of the time. Bounds are the median, plus and minus `REACH` times the distance that a
tenth of the sample exceeds. The tails of most distributions lie within them; typos, rare codes
for missing values and readings of a broken sensor do not, and are not credible.

Mean and deviation are those of all values, where one outside of the bounds counts as the nearest
bound. So they are as precise as moments, but a few values cannot move them far. Moments that values
within the bounds cannot have come from values counted before there were bounds: they begin anew
from the sample. When incredible values outnumber the others by `RUN_TO_RESTART`, the column has
moved: everything about it begins anew.
"""

from __future__ import annotations

import math

import numpy as np

from onebit.core.compiling import lean_kernel, rarely_called
from onebit.core.example import LARGEST
from onebit.core.state import MOST_ROUNDS

SAMPLE = 64
"""Values in a sample."""

ENOUGH_VALUES = 8
"""Values in a sample before it says anything."""

REACH, LEFT_OUT = 3.0, 10
"""The bounds are `REACH` times as far from the median as the sample reaches, of which one value in
`LEFT_OUT`, and at least one, is left out: those furthest away."""

RUN_TO_RESTART = ENOUGH_VALUES
"""How many more incredible values than others restart a column."""

GROWTH = 1.0 / SAMPLE
"""A full sample takes another value each time the column has grown by this share."""

_ROUNDING = 1e-9
"""A deviation that is smaller, relative to the mean, counts as zero: the column is constant."""

MEAN, SQUARES, WEIGHT, LOW, HIGH, RUN, STORED, AGE, NEXT, FIRST = range(10)
"""Places in the row of a column: moments and their weight, bounds, the run of incredible values,
how many values were stored, the weight of all values, that at which the next is stored, and the
first value of the sample."""

PENDING = FIRST + SAMPLE
"""Place of the first value of a run of incredible ones."""

WIDTH = PENDING + RUN_TO_RESTART


def new_columns(n: int) -> np.ndarray:
    """Return n columns before their first value."""
    columns = np.zeros((n, WIDTH))
    columns[:, LOW], columns[:, HIGH] = -LARGEST, LARGEST
    return columns


def check_columns(columns: np.ndarray) -> None:
    """Raise ValueError if columns have values that counting cannot lead to."""
    amounts = columns[:, (SQUARES, WEIGHT, STORED, AGE, NEXT)]
    values = columns[:, [MEAN, *range(FIRST, WIDTH)]]
    runs, stored, bounds = columns[:, RUN], columns[:, STORED], columns[:, (LOW, HIGH)]
    if amounts.min(initial=0.0) < 0.0 or np.abs(values).max(initial=0.0) > LARGEST:
        raise ValueError("columns has a negative amount, or a value that is too large")
    if stored.max(initial=0.0) > MOST_ROUNDS:
        raise ValueError(f"columns has {stored.max():g} stored values, more than {MOST_ROUNDS}")
    if np.any((runs < 0.0) | (runs >= RUN_TO_RESTART)):
        raise ValueError(f"columns has a run that is not from 0 to {RUN_TO_RESTART}")
    if np.any(bounds[:, 0] > bounds[:, 1]):
        raise ValueError("columns has a lower bound above the upper one")


@lean_kernel
def watch(column, value, credible, weight):
    """Follow the run of incredible values, in a round of this weight; return whether it is over.

    Then the column has moved, and begins anew with the values of the run.
    """
    if credible:
        column[RUN] = max(0.0, column[RUN] - weight)
        return False
    column[PENDING + int(column[RUN])] = value
    column[RUN] += 1.0
    if column[RUN] < RUN_TO_RESTART:
        return False
    for i in range(FIRST):
        column[i] = 0.0
    column[LOW], column[HIGH] = -LARGEST, LARGEST
    for i in range(RUN_TO_RESTART):
        count_in_column(column, column[PENDING + i], 1)
    return True


@lean_kernel
def count_in_column(column, value, weight):
    """Count a value `weight` times; return whether it is stored in the sample."""
    count_moments(column, value, weight)
    column[AGE] += weight
    if column[AGE] < column[NEXT]:
        return False
    column[FIRST + int(column[STORED]) % SAMPLE] = value
    column[STORED] += 1.0
    if column[STORED] >= SAMPLE:
        column[NEXT] = (1.0 + GROWTH) * column[AGE]
    return True


@lean_kernel
def count_moments(column, value, weight):
    """Count a value, moved to the nearest bound, as Welford does for `weight` equal values."""
    within = min(max(value, column[LOW]), column[HIGH])
    column[WEIGHT] += weight
    difference = within - column[MEAN]
    if difference != 0.0:
        column[MEAN] += weight * difference / column[WEIGHT]
        column[SQUARES] += weight * difference * (within - column[MEAN])


@lean_kernel
def renew_bounds(column, room):
    """Set the bounds from the sample; return whether the moments had to begin anew from it."""
    rarely_called()
    column[LOW], column[HIGH] = -LARGEST, LARGEST
    n = min(int(column[STORED]), SAMPLE)
    if n < ENOUGH_VALUES:
        return False
    for i in range(n):
        room[i] = column[FIRST + i]
    sort(room, n)
    median, n_others = room[(n - 1) // 2], 0
    for i in range(n):
        if column[FIRST + i] != median:
            room[n_others] = abs(column[FIRST + i] - median)
            n_others += 1
    if n_others < 2:
        return False
    sort(room, n_others)
    reach = REACH * room[n_others - 1 - max(1, n_others // LEFT_OUT)]
    column[LOW], column[HIGH] = median - reach, median + reach
    outside = column[MEAN] < column[LOW] or column[MEAN] > column[HIGH]
    if not outside and column[SQUARES] <= column[WEIGHT] * reach * reach:
        return False
    column[MEAN] = column[SQUARES] = column[WEIGHT] = 0.0
    for i in range(n):
        count_moments(column, column[FIRST + i], 1)
    return True


@lean_kernel
def sort(values, n):
    """Sort the first n values, of which there are few."""
    for i in range(1, n):
        value, k = values[i], i
        while k > 0 and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value


@lean_kernel
def credible_distance(column):
    """Return how far from the mean values are credible."""
    return max(column[HIGH] - column[MEAN], column[MEAN] - column[LOW])


@lean_kernel
def is_monotone(column):
    """Return whether all values of a column only rise or only fall, if all are still stored."""
    n, rises, falls = int(column[STORED]), 0, 0
    if n > SAMPLE:
        return False
    for i in range(1, n):
        rises += column[FIRST + i] > column[FIRST + i - 1]
        falls += column[FIRST + i] < column[FIRST + i - 1]
    return rises == 0 or falls == 0


@lean_kernel
def deviation_of(column):
    """Return the standard deviation of a column, zero if it is constant up to rounding."""
    deviation = math.sqrt(column[SQUARES] / column[WEIGHT])
    return deviation if deviation > max(_ROUNDING * abs(column[MEAN]), 1e-30) else 0.0
