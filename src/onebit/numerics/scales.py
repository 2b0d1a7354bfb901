"""Running scales: features of any size and offset made alike, and a constant beside them.

What becomes of a feature depends on the values seen of it, zeros included, and not on how they are
stored:

- A measurement is a feature with values beyond 1 or -1 that is not zero in more than half of the
  rounds, or any feature that hardly ever is zero. It becomes the number of standard deviations
  that it is from its mean.
- All others have no offset. Those with values beyond 1 or -1 are divided by their root mean
  square if that is more than one. Words, their weights and indicators stay as they are.

So that the others do not drown words, they are multiplied by the root mean square of these, the
unit. The constant is one unit too; less, where there is no measurement. No feature is further than
four from zero.

Means and deviations are counted in every round, but what is made of them is settled anew only as
often as the number of rounds has grown by a tenth. Linear weights then change with the scales, such
that scores stay what they are.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numba.core import types

from onebit.core.compiling import chosen_by_type, lean_kernel
from onebit.core.example import INDEX, Example
from onebit.core.state import MOST_ROUNDS, Amount, Count, Field

MOSTLY, SELDOM = 0.5, 0.25
"""Shares of values that are not zero: a feature becomes a measurement, and is one no longer."""

NEARLY_ALWAYS, LESS_OFTEN = 0.95, 0.85
"""The same for a feature whose values are all from -1 to 1."""

FEW, MORE = 5, 10
"""Values, not zero, before which a feature is no measurement; MORE if all are from -1 to 1."""

FAR = 4.0
"""A feature is no further from zero."""

CONSTANT_OF_WORDS = 0.3
"""The constant, in units, where there is no measurement."""

PAUSE = 0.1
"""Scales are settled again after so many more rounds, as a share of those so far."""

_ROUNDING = 1e-9
"""A deviation that is smaller, relative to the mean, is none: the feature is constant."""


class Scratch(NamedTuple):
    """The measurements, and the last x.

    measurements: their indices, increasing; n_measurements: how many, or -1 if not known; place:
    of each feature among them, or -1; indices, values: of the last x, scaled; size: how many these
    are.
    """

    measurements: np.ndarray
    n_measurements: np.ndarray
    place: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    size: np.ndarray


Flags = Annotated[np.ndarray, Field("features", dtype=np.int64, least=0, most=1)]


class Scales(NamedTuple):
    """What was seen of each feature in so many `rounds`, and what is made of it.

    Of its values that are not zero: counts; means; squares, of their differences from the mean,
    summed. exceeds: whether one was beyond 1 or -1; is_measurement. A feature x_j becomes
    factors[j] (x_j - locations[j]). constant: what is added to each example. Of all features that
    stay as they are: typical, the sum of the squares of their values; n_typical, how many these
    were. settled: the rounds when scales were last settled.

    In place of scales there may be None: then examples stay as they are.
    """

    counts: Annotated[np.ndarray, Field("features", dtype=np.int64, least=0, most=MOST_ROUNDS)]
    means: Annotated[np.ndarray, Field("features", least=-1e30, most=1e30)]
    squares: Annotated[np.ndarray, Field("features", least=0.0)]
    exceeds: Flags
    is_measurement: Flags
    locations: Annotated[np.ndarray, Field("features", least=-1e30, most=1e30)]
    factors: Annotated[np.ndarray, Field("features", least=0.0)]
    constant: Annotated[np.ndarray, Field(least=1e-100, most=FAR)]
    typical: Amount
    n_typical: Count
    rounds: Count
    settled: Count
    scratch: Scratch

    def check(self) -> None:
        """Check that no feature was seen more often than there were rounds."""
        if self.counts.max(initial=0) > self.rounds:
            raise ValueError(f"counts has {self.counts.max()}, of {self.rounds} rounds")


def new_scales(n: int) -> Scales:
    """Return scales of n features before the first round; the constant will be feature n."""
    integers = np.zeros((3, n), dtype=np.int64)
    return Scales(
        counts=integers[0].copy(),
        means=np.zeros(n),
        squares=np.zeros(n),
        exceeds=integers[1].copy(),
        is_measurement=integers[2].copy(),
        locations=np.zeros(n),
        factors=np.ones(n),
        constant=np.full((), CONSTANT_OF_WORDS),
        typical=np.zeros(()),
        n_typical=np.zeros((), dtype=np.int64),
        rounds=np.zeros((), dtype=np.int64),
        settled=np.zeros((), dtype=np.int64),
        scratch=Scratch(
            measurements=np.zeros(n, dtype=INDEX),
            n_measurements=np.full((), -1),
            place=np.full(n, -1),
            indices=np.zeros(n + 1, dtype=INDEX),
            values=np.zeros(n + 1),
            size=np.zeros((), dtype=np.int64),
        ),
    )


def inputs_of(scales, x):
    """Return x with its features made alike and a constant, in memory that the next x takes too."""
    if scales is None:
        return x
    fill_scaled(scales, x)
    return last_inputs(scales, x)


@chosen_by_type(inputs_of)
def _inputs_of(scales, x):
    if isinstance(scales, types.NoneType):
        return lambda scales, x: x

    def fill_and_return(scales, x):
        n = fill_scaled(scales, x)
        return Example(scales.scratch.indices[:n], scales.scratch.values[:n], x.n_features + 1)

    return fill_and_return


def last_inputs(scales, x):
    """Return what `inputs_of` returned for this x, if it was the last one."""
    if scales is None:
        return x
    n = scales.scratch.size[()]
    return Example(scales.scratch.indices[:n], scales.scratch.values[:n], x.n_features + 1)


@chosen_by_type(last_inputs)
def _last_inputs(scales, x):
    if isinstance(scales, types.NoneType):
        return lambda scales, x: x

    def view(scales, x):
        n = scales.scratch.size[()]
        return Example(scales.scratch.indices[:n], scales.scratch.values[:n], x.n_features + 1)

    return view


@lean_kernel
def fill_scaled(scales, x):
    """Fill the scratch with x, its features made alike, and a constant; return its size.

    Measurements come first, also those that are zero in x; all other zeros are left out.
    """
    scratch = scales.scratch
    if scratch.n_measurements[()] < 0:
        find_measurements(scales)
    indices, values, place = scratch.indices, scratch.values, scratch.place
    n = scratch.n_measurements[()]
    for i in range(n):
        indices[i] = scratch.measurements[i]
        values[i] = scaled(scales, indices[i], 0.0)
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        if place[j] >= 0:
            values[place[j]] = scaled(scales, j, x_j)
        elif x_j != 0.0:
            indices[n] = j
            values[n] = scaled(scales, j, x_j)
            n += 1
    indices[n] = x.n_features
    values[n] = scales.constant[()] if scales.settled[()] > 0 else first_constant(values, n)
    scratch.size[()] = n + 1
    return n + 1


@lean_kernel
def first_constant(values, n):
    """Return the constant for the first example, whose scale is all that is known."""
    total = 0.0
    for i in range(n):
        total += values[i] * values[i]
    return CONSTANT_OF_WORDS * max(math.sqrt(total / n), 1e-30) if n > 0 else CONSTANT_OF_WORDS


@lean_kernel
def scaled(scales, j, x_j):
    """Return a value of feature `j`, made like all others."""
    return min(max(scales.factors[j] * (x_j - scales.locations[j]), -FAR), FAR)


@lean_kernel
def find_measurements(scales):
    """List the measurements."""
    scratch, n = scales.scratch, 0
    for j in range(scales.counts.size):
        scratch.place[j] = -1
        if scales.is_measurement[j]:
            scratch.measurements[n] = j
            scratch.place[j] = n
            n += 1
    scratch.n_measurements[()] = n


def observe(scales, x, W):
    """Count the values of x, which was the last one scaled; W are weights of what it became."""
    if scales is not None:
        count_values(scales, x, W)


@chosen_by_type(observe)
def _observe(scales, x, W):
    if isinstance(scales, types.NoneType):
        return lambda scales, x, W: None
    return lambda scales, x, W: count_values(scales, x, W)


@lean_kernel
def count_values(scales, x, W):
    """Do what `observe` says."""
    if scales.settled[()] == 0:
        scales.constant[()] = scales.scratch.values[scales.scratch.size[()] - 1]
    scales.rounds[()] += 1
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        if x_j != 0.0:
            count_value(scales, j, x_j)
            if not scales.exceeds[j] and not scales.is_measurement[j]:
                scales.typical[()] += x_j * x_j
                scales.n_typical[()] += 1
    if scales.rounds[()] > (1.0 + PAUSE) * scales.settled[()]:
        settle(scales, W)


@lean_kernel
def count_value(scales, j, x_j):
    """Move the mean and the sum of squares of a feature, as Welford does."""
    scales.counts[j] += 1
    difference = x_j - scales.means[j]
    scales.means[j] += difference / scales.counts[j]
    scales.squares[j] += difference * (x_j - scales.means[j])
    if abs(x_j) > 1.0:
        scales.exceeds[j] = 1


@lean_kernel
def settle(scales, W):
    """Make scales of what was counted, and weights that give the same scores with them."""
    scales.settled[()] = scales.rounds[()]
    for j in range(scales.counts.size):
        if scales.counts[j] > 0:
            scales.is_measurement[j] = is_measurement(scales, j)
    find_measurements(scales)
    unit = unit_of(scales)
    constant = unit if scales.scratch.n_measurements[()] > 0 else CONSTANT_OF_WORDS * unit
    last = W.shape[0] - 1
    for k in range(W.shape[1]):
        W[last, k] *= scales.constant[()] / constant
    scales.constant[()] = constant
    for j in range(scales.counts.size):
        location, factor = scale_of(scales, j, unit)
        if location != scales.locations[j] or factor != scales.factors[j]:
            move_weights(scales, W, j, location, factor)
            scales.locations[j] = location
            scales.factors[j] = factor


@lean_kernel
def move_weights(scales, W, j, location, factor):
    """Change the weights of feature `j`, and of the constant, such that scores stay as they are.

    Those for values as they were, where these were beyond what counts, say nothing. Later, such
    values may have changed the scales by much; then the weights stay.
    """
    before, last = scales.factors[j], W.shape[0] - 1
    offset = before * (location - scales.locations[j])
    as_it_was = before == 1.0 and scales.locations[j] == 0.0
    if as_it_was and (abs(offset) > FAR or before > FAR * factor > 0.0):
        for k in range(W.shape[1]):
            W[j, k] = 0.0
        return
    if abs(offset) > 1.0 or before > 2.0 * factor:
        return
    for k in range(W.shape[1]):
        W[last, k] += W[j, k] * offset / scales.constant[()]
        W[j, k] *= before / factor if factor > 0.0 else 1.0


@lean_kernel
def is_measurement(scales, j):
    """Tell whether feature `j` is a measurement from now on."""
    exceeds, count = scales.exceeds[j], scales.counts[j]
    if scales.is_measurement[j]:
        return count >= (SELDOM if exceeds else LESS_OFTEN) * scales.rounds[()]
    if count < (FEW if exceeds else MORE):
        return False
    return count > (MOSTLY if exceeds else NEARLY_ALWAYS) * scales.rounds[()]


@lean_kernel
def unit_of(scales):
    """Return the root mean square of words and the like; one, if there are none."""
    if scales.n_typical[()] == 0:
        return 1.0
    return max(math.sqrt(scales.typical[()] / scales.n_typical[()]), 1e-30)


@lean_kernel
def scale_of(scales, j, unit):
    """Return the location and the factor of feature `j`."""
    if not (scales.is_measurement[j] or scales.exceeds[j]):
        return 0.0, 1.0
    mean, square = scales.means[j], scales.squares[j] / scales.counts[j]
    if not scales.is_measurement[j]:
        return 0.0, unit / math.sqrt(max(square + mean * mean, 1.0))
    # The variance of all values, of which the share that is not zero has this mean.
    share = scales.counts[j] / scales.rounds[()]
    deviation = math.sqrt(share * (square + (1.0 - share) * mean * mean))
    if deviation <= max(_ROUNDING * abs(mean), 1e-30):
        return share * mean, 0.0
    return share * mean, unit / deviation
