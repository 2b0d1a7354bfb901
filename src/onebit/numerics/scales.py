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

Means and deviations are of all rounds, but after the first thousand only one in four is looked at,
and counts for four. What is made of them is settled anew only as often as the number of rounds has
grown by a tenth. Linear weights then change with the scales, such that scores stay what they are.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, no_alias
from onebit.core.example import INDEX, LARGEST, Example
from onebit.core.state import MOST_ROUNDS, Field

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

ALL_COUNTED, ONE_IN = 1000, 4
"""Rounds that are all looked at; of later ones, one in so many, which counts for all of these.

Means and deviations hardly differ, and to count all values takes an eighth of the time of rounds
with dense x."""

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Its multiples, modulo one, are spread evenly: no period of a stream is met at one place only."""

PAUSE = 0.1
"""Scales are settled again after so many more rounds, as a share of those so far."""

_ROUNDING = 1e-9
"""A deviation that is smaller, relative to the mean, is none: the feature is constant."""


MEAN, SQUARES, LOCATION, FACTOR = 0, 1, 2, 3
"""Columns of `Scales.features`."""

COUNT, EXCEEDS, IS_MEASUREMENT = 0, 1, 2
"""Columns of `Scales.kinds`."""

ROUNDS, SETTLED, CONSTANT, TYPICAL, N_TYPICAL = 0, 1, 2, 3, 4
"""Places in `Scales.totals`."""


class Scratch(NamedTuple):
    """The measurements, and the last x.

    place: of each feature among the measurements, or -1; others: the features that are none,
    increasing; indices, values: of the last x, scaled, first those of the measurements, increasing;
    sizes: how many measurements there are, or -1 if not known, how many values the last x has, and
    how many features do not stay as they are.
    """

    place: np.ndarray
    others: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    sizes: np.ndarray


class Scales(NamedTuple):
    """What was seen of each feature in so many rounds, and what is made of it.

    There are few arrays, with constants for their columns, as each array of a state takes time to
    compile and to pass on.

    features: of the values of a feature that are not zero, MEAN, and SQUARES of their differences
    from it, summed; x_j becomes FACTOR (x_j - LOCATION). kinds: COUNT, of such values; EXCEEDS,
    whether one was beyond 1 or -1; IS_MEASUREMENT. totals: ROUNDS; SETTLED, the rounds when scales
    were last settled; CONSTANT, what is added to each example; of all features that stay as they
    are, TYPICAL, the sum of the squares of their values, and N_TYPICAL, how many these were.

    In place of scales there may be None: then examples stay as they are.
    """

    features: Annotated[np.ndarray, Field("features", 4)]
    kinds: Annotated[np.ndarray, Field("features", 3, dtype=np.int64, least=0, most=MOST_ROUNDS)]
    totals: Annotated[np.ndarray, Field(5, least=0.0)]
    scratch: Scratch

    def check(self) -> None:
        """Check the ranges of columns, and that no feature was seen more often than in all rounds.

        Those of all columns of an array are declared.
        """
        _check_range("features", self.features[:, (MEAN, LOCATION)], -LARGEST, LARGEST)
        _check_range("features", self.features[:, (SQUARES, FACTOR)], 0.0, math.inf)
        _check_range("kinds", self.kinds[:, (EXCEEDS, IS_MEASUREMENT)], 0, 1)
        rounds = self.totals[ROUNDS]
        _check_range("kinds", self.kinds[:, COUNT], 0, rounds)
        _check_range("totals", self.totals[[ROUNDS, SETTLED, N_TYPICAL]], 0, MOST_ROUNDS)
        _check_range("totals", self.totals[SETTLED], 0, rounds)
        _check_range("totals", self.totals[CONSTANT], 1e-100, FAR)


def _check_range(name: str, values: np.ndarray, least: float, most: float) -> None:
    outside = values[(values < least) | (values > most)]
    if outside.size:
        raise ValueError(f"{name} has {outside[0]}, which should be from {least:g} to {most:g}")


def new_scales(n: int) -> Scales:
    """Return scales of n features before the first round; the constant will be feature n."""
    features, totals = np.zeros((n, 4)), np.zeros(5)
    features[:, FACTOR] = 1.0
    totals[CONSTANT] = CONSTANT_OF_WORDS
    return Scales(
        features=features,
        kinds=np.zeros((n, 3), dtype=np.int64),
        totals=totals,
        scratch=Scratch(
            place=np.full(n, -1),
            others=np.zeros(n, dtype=INDEX),
            indices=np.zeros(n + 1, dtype=INDEX),
            values=np.zeros(n + 1),
            sizes=np.array([-1, 0, 0]),
        ),
    )


# Of the functions that take None for scales, Numba compiles only what is left for them.


@lean_kernel
def inputs_of(scales, x):
    """Return x with its features made alike and a constant, in memory that the next x takes too.

    For lean kernels, as is `last_inputs`.
    """
    if scales is None:
        return x
    fill_scaled(scales.features, scales.kinds, scales.totals, scales.scratch, x)
    return last_inputs(scales, x)


@lean_kernel
def last_inputs(scales, x):
    """Return what `inputs_of` returned for this x, if it was the last one."""
    if scales is None:
        return x
    n = scales.scratch.sizes[1]
    return Example(scales.scratch.indices[:n], scales.scratch.values[:n], x.n_features + 1)


@lean_kernel
def fill_scaled(features, kinds, totals, scratch, x):
    """Fill the scratch with x, its features made alike, and a constant.

    Measurements come first, also those that are zero in x; all other zeros are left out.
    """
    no_alias()
    indices, values, place = scratch.indices, scratch.values, scratch.place
    if scratch.sizes[0] < 0:
        find_measurements(features, kinds, scratch)
    n, filled = scratch.sizes[0], 0
    if scratch.sizes[2] == 0:
        for i in range(x.indices.size):
            if x.values[i] != 0.0:
                indices[n], values[n] = x.indices[i], limited(x.values[i])
                n += 1
    elif x.indices.size == x.n_features:  # all features are listed: value j is that of feature j
        for i in range(n):
            values[i] = scaled(features, indices[i], x.values[indices[i]])
        for i in range(x.n_features - n):
            j = scratch.others[i]
            if x.values[j] != 0.0:
                indices[n], values[n] = j, scaled(features, j, x.values[j])
                n += 1
    else:
        for i in range(x.indices.size):
            j, x_j = x.indices[i], x.values[i]
            if place[j] >= 0:
                fill_zeros(features, indices, values, filled, place[j])
                values[place[j]] = scaled(features, j, x_j)
                filled = place[j] + 1
            elif x_j != 0.0:
                indices[n], values[n] = j, scaled(features, j, x_j)
                n += 1
        fill_zeros(features, indices, values, filled, scratch.sizes[0])
    indices[n] = x.n_features
    values[n] = totals[CONSTANT] if totals[SETTLED] > 0.0 else first_constant(values, n)
    scratch.sizes[1] = n + 1


@lean_kernel
def fill_zeros(features, indices, values, first, end):
    """Fill the values of measurements, from the first to one before the end, that are zero in x."""
    for i in range(first, end):
        values[i] = scaled(features, indices[i], 0.0)


@lean_kernel
def first_constant(values, n):
    """Return the constant for the first example, whose scale is all that is known."""
    total = 0.0
    for i in range(n):
        total += values[i] * values[i]
    return CONSTANT_OF_WORDS * max(math.sqrt(total / n), 1e-30) if n > 0 else CONSTANT_OF_WORDS


@lean_kernel
def scaled(features, j, x_j):
    """Return a value of feature `j`, made like all others."""
    return limited(features[j, FACTOR] * (x_j - features[j, LOCATION]))


@lean_kernel
def limited(x_j):
    """Return the nearest number that is not too far from zero."""
    return min(max(x_j, -FAR), FAR)


@lean_kernel
def find_measurements(features, kinds, scratch):
    """List the measurements and the others; count the features that do not stay as they are."""
    n = n_scaled = 0
    for j in range(kinds.shape[0]):
        scratch.place[j] = -1
        if kinds[j, IS_MEASUREMENT]:
            scratch.indices[n] = j
            scratch.place[j] = n
            n += 1
        else:
            scratch.others[j - n] = j
        stays = features[j, FACTOR] == 1.0 and features[j, LOCATION] == 0.0
        n_scaled += kinds[j, IS_MEASUREMENT] or not stays
    scratch.sizes[0], scratch.sizes[2] = n, n_scaled


@lean_kernel
def observe(scales, rounds, x, weights):
    """Count the values of x, which was the last one scaled, in the round after so many rounds.

    `weights` are arrays of weights of what x became.
    """
    if scales is not None:
        weight = weight_of(rounds)
        if weight > 0:
            count_values(
                scales.features, scales.kinds, scales.totals, scales.scratch, x, weights, weight
            )


@lean_kernel
def count_values(features, kinds, totals, scratch, x, weights, weight):
    """Count the values of x so many times, and settle the scales if it is time to."""
    no_alias()
    if totals[SETTLED] == 0.0:
        totals[CONSTANT] = scratch.values[scratch.sizes[1] - 1]
    totals[ROUNDS] += weight
    typical, n_typical = totals[TYPICAL], totals[N_TYPICAL]
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        if x_j != 0.0:
            count_value(features, kinds, j, x_j, weight)
            # Once a feature exceeds, it always does: a branch on that is foreseen by processors.
            if not kinds[j, EXCEEDS]:
                if abs(x_j) > 1.0:
                    kinds[j, EXCEEDS] = 1
                elif not kinds[j, IS_MEASUREMENT]:
                    typical += weight * (x_j * x_j)
                    n_typical += weight
    totals[TYPICAL], totals[N_TYPICAL] = typical, n_typical
    if totals[ROUNDS] > (1.0 + PAUSE) * totals[SETTLED]:
        settle(features, kinds, totals, scratch, weights)


@lean_kernel
def weight_of(rounds):
    """Return for how many rounds the one after so many rounds counts."""
    if rounds < ALL_COUNTED:
        return 1
    place = GOLDEN * rounds
    return ONE_IN if ONE_IN * (place - math.floor(place)) < 1.0 else 0


@lean_kernel
def count_value(features, kinds, j, x_j, weight):
    """Move the mean and the sum of squares of a feature, as Welford does for `weight` values."""
    kinds[j, COUNT] += weight
    difference = x_j - features[j, MEAN]
    if difference != 0.0:  # words, which are one or zero, need no division
        difference *= weight
        features[j, MEAN] += difference / kinds[j, COUNT]
        features[j, SQUARES] += difference * (x_j - features[j, MEAN])


@lean_kernel
def settle(features, kinds, totals, scratch, weights):
    """Make scales of what was counted, and weights that give the same scores with them."""
    rounds = totals[ROUNDS]
    for j in range(kinds.shape[0]):
        if kinds[j, COUNT] > 0:
            kinds[j, IS_MEASUREMENT] = is_measurement(kinds, j, rounds)
    n = 0
    for j in range(kinds.shape[0]):
        n += kinds[j, IS_MEASUREMENT]
    unit = unit_of(totals)
    constant = unit if n > 0 else CONSTANT_OF_WORDS * unit
    for W in weights:
        for k in range(W.shape[1]):
            W[W.shape[0] - 1, k] *= totals[CONSTANT] / constant
    totals[CONSTANT], totals[SETTLED] = constant, rounds
    for j in range(kinds.shape[0]):
        location, factor = scale_of(features, kinds, j, rounds, unit)
        if location != features[j, LOCATION] or factor != features[j, FACTOR]:
            before, factor_before = features[j, LOCATION], features[j, FACTOR]
            for W in weights:
                move_weights(W, j, before, factor_before, location, factor, constant)
            features[j, LOCATION], features[j, FACTOR] = location, factor
    scratch.sizes[0] = -1  # to be found anew


@lean_kernel
def move_weights(W, j, location_before, before, location, factor, constant):
    """Change the weights of feature `j`, and of the constant, such that scores stay as they are.

    Those for values as they were, where these were beyond what counts, say nothing. Later, such
    values may have changed the scales by much; then the weights stay.
    """
    last = W.shape[0] - 1
    offset = before * (location - location_before)
    as_it_was = before == 1.0 and location_before == 0.0
    if as_it_was and (abs(offset) > FAR or before > FAR * factor > 0.0):
        for k in range(W.shape[1]):
            W[j, k] = 0.0
        return
    if abs(offset) > 1.0 or before > 2.0 * factor:
        return
    for k in range(W.shape[1]):
        W[last, k] += W[j, k] * offset / constant
        W[j, k] *= before / factor if factor > 0.0 else 1.0


@lean_kernel
def is_measurement(kinds, j, rounds):
    """Tell whether feature `j` is a measurement from now on."""
    exceeds, count = kinds[j, EXCEEDS], kinds[j, COUNT]
    if kinds[j, IS_MEASUREMENT]:
        return count >= (SELDOM if exceeds else LESS_OFTEN) * rounds
    if count < (FEW if exceeds else MORE):
        return False
    return count > (MOSTLY if exceeds else NEARLY_ALWAYS) * rounds


@lean_kernel
def unit_of(totals):
    """Return the root mean square of words and the like; one, if there are none."""
    if totals[N_TYPICAL] == 0.0:
        return 1.0
    return max(math.sqrt(totals[TYPICAL] / totals[N_TYPICAL]), 1e-30)


@lean_kernel
def scale_of(features, kinds, j, rounds, unit):
    """Return the location and the factor of feature `j`."""
    if not (kinds[j, IS_MEASUREMENT] or kinds[j, EXCEEDS]):
        return 0.0, 1.0
    mean, square = features[j, MEAN], features[j, SQUARES] / kinds[j, COUNT]
    if not kinds[j, IS_MEASUREMENT]:
        return 0.0, unit / math.sqrt(max(square + mean * mean, 1.0))
    # The variance of all values, of which the share that is not zero has this mean.
    share = kinds[j, COUNT] / rounds
    deviation = math.sqrt(share * (square + (1.0 - share) * mean * mean))
    if deviation <= max(_ROUNDING * abs(mean), 1e-30):
        return share * mean, 0.0
    return share * mean, unit / deviation
