"""Running scales: features of any size and offset on one scale, and a constant beside them.

What becomes of a feature depends on the values seen of it, zeros included, and not on how they are
stored:

- A measurement is a feature with values beyond 1 or -1 that is non-zero in more than half of the
  rounds, or any feature that is hardly ever zero. It becomes the number of standard deviations
  that it is from its mean. With values beyond 1 or -1, both are robust and a value that is not
  credible becomes zero: `onebit.numerics.columns`. Other values cannot be far from each other.
- All others have no offset. Those with values beyond 1 or -1 are divided by their size, the root
  mean square of max(1, |x_j|) over their non-zero values, where one beyond `SIZE_BOUND` geometric
  means counts as that many. Words, their weights and indicators stay as they are.

An embedding stays as it is, too: columns that are hardly ever zero and have values between -1 and
1, at least `LEAST_VECTOR` of them, whose squares add up to one in almost every round. Its length is
that of all other features, which it would drown, or be drowned by, otherwise; alone, one. Where
texts and embeddings are hashed, words share columns with the embedding, so a few values beyond 1 or
-1 do not exclude a column.

Measurements and sizes are multiplied by the root mean square of the features that stay as they are,
the unit, so that they do not drown words. The constant is one unit too; less, where there is no
measurement. No feature is further than `FARTHEST` from zero.

Values of all rounds are counted, after the first thousand those of every fourth round on average,
with weight four. Scales are settled each time the number of rounds has grown by a tenth, and when a
column has begun anew. Linear weights then change with the scales, such that scores stay the same,
if chance explains the change: then an estimate became better. If it does not, the column itself
has moved, and a weight keeps its meaning in deviations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, no_alias, rarely_called
from onebit.core.example import INDEX, LARGEST, Example
from onebit.core.state import MOST_ROUNDS, Field
from onebit.numerics.columns import (
    AGE,
    MEAN,
    SAMPLE,
    SQUARES,
    STORED,
    WEIGHT,
    WIDTH,
    check_columns,
    count_in_column,
    credible_distance,
    deviation_of,
    is_monotone,
    new_columns,
    renew_bounds,
    watch,
)

SHARE_TO_BECOME, SHARE_TO_STAY = 0.5, 0.25
"""Shares of non-zero values: a feature becomes a measurement, and remains one."""

BOUNDED_SHARE_TO_BECOME, BOUNDED_SHARE_TO_STAY = 0.95, 0.85
"""The same for a feature whose values are all from -1 to 1."""

LEAST_COUNT, BOUNDED_LEAST_COUNT = 5, 10
"""Non-zero values of a feature before which it is no measurement; the second for -1 to 1."""

TRACKED_COUNT, BOUNDED_TRACKED_COUNT = 2, 5
"""Non-zero values of a feature before its column is tracked, for the same two kinds."""

MOST_TRACKED = 4096
"""At most this many columns are tracked, so that memory for words stays small: 2.7 MB."""

SIZE_BOUND = 32.0
"""Of a feature without an offset, values beyond this many geometric means count as that many."""

LEAST_VECTOR = 32
"""An embedding has at least this many columns."""

UNIT_TOLERANCE, UNIT_SHARE = 0.05, 0.95
"""The squares of an embedding add up to one within UNIT_TOLERANCE, in a share UNIT_SHARE of rounds.

Embeddings are often stored with two or three digits, and hashing lets a few columns collide."""

FARTHEST = 4.0
"""No scaled feature is further from zero."""

CONSTANT_OF_WORDS = 0.3
"""The constant, in units, where there is no measurement."""

ALL_COUNTED, ONE_IN = 1000, 4
"""The first rounds are all counted; of later ones one in `ONE_IN`, with that weight.

Locations and deviations hardly differ, and to count all values takes an eighth of the time of
rounds with dense x."""

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""The golden ratio minus one: its multiples, modulo one, are spread evenly.

So no period of a stream is met at one place only."""

PAUSE = 0.1
"""Scales are settled again after this many more rounds, as a share of those so far."""

SETTLED_EACH = 4
"""The same for a column that was restarted: after this many more values in its sample."""

CHANCE = 3.0
"""A location that moved by more than this many standard errors did not do so by chance."""

LOCATION, FACTOR, CREDIBLE_Z, LOGS, EXCESS, POWER = range(6)
"""Columns of `Scales.features`."""

COUNT, EXCEEDS, IS_MEASUREMENT, SLOT = 0, 1, 2, 3
"""Columns of `Scales.kinds`."""

ROUNDS, SETTLED, CONSTANT, N_TRACKED, N_UNIT, N_WHOLE, HAS_VECTOR, N_TOTALS = range(8)
"""Places in `Scales.totals`, and how many there are."""

N_MEASUREMENTS, N_VALUES, N_SCALED, IS_INCREDIBLE = 0, 1, 2, 3
"""Places in `Scratch.sizes`."""


class Scratch(NamedTuple):
    """The measurements, and the last x.

    Attributes
    ----------
    place
        The place of each feature among the measurements, or -1.
    others
        The features that are no measurements, increasing.
    indices, values
        Of the last x, scaled: first those of the measurements, increasing.
    tracked
        The values of tracked columns in the x that is counted, by slot; else zero.
    tracked_features
        The feature in each slot.
    sorted
        Memory in which a sample is sorted.
    sizes
        How many measurements there are, or -1 if not known; how many values the last x has; how
        many features do not stay as they are; whether the last x has a value that is not credible.
    """

    place: np.ndarray
    others: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    tracked: np.ndarray
    tracked_features: np.ndarray
    sorted: np.ndarray
    sizes: np.ndarray


class Scales(NamedTuple):
    """What was seen of each feature, and what is made of it.

    There are few arrays, with constants for their columns, as each array of a state takes time to
    compile and to pass on. In place of scales there may be None: then examples stay as they are.

    Attributes
    ----------
    features
        x_j becomes z = FACTOR (x_j - LOCATION), and zero if |z| > CREDIBLE_Z. With m = max(1,
        |x_j|), LOGS is the sum of log m, and EXCESS that of m^2 - 1, m limited by `SIZE_BOUND`.
        POWER is the sum of x_j^2 before the first value beyond 1 or -1.
    kinds
        COUNT of non-zero values; EXCEEDS, how many were beyond 1 or -1; IS_MEASUREMENT; SLOT, one
        more than the row in `columns`, zero if the feature is not tracked.
    totals
        ROUNDS; SETTLED, the rounds when scales were last settled; CONSTANT, what is added to each
        example; N_TRACKED, the columns tracked; N_UNIT, the rounds in which squares of values below
        one add up to one; N_WHOLE, the number of values of at least one; HAS_VECTOR, whether there
        is an embedding.
    columns
        Robust moments of the tracked columns (`onebit.numerics.columns`).
    """

    features: Annotated[np.ndarray, Field("features", 6)]
    kinds: Annotated[np.ndarray, Field("features", 4, dtype=np.int64, least=0, most=MOST_ROUNDS)]
    totals: Annotated[np.ndarray, Field(N_TOTALS, least=0.0)]
    columns: Annotated[np.ndarray, Field("tracked", WIDTH)]
    scratch: Scratch

    def check(self) -> None:
        """Check ranges within arrays, and that no feature was seen more often than in all rounds.

        Ranges of whole arrays are declared.
        """
        check_range("features", self.features[:, LOCATION], -LARGEST, LARGEST)
        amounts = (FACTOR, CREDIBLE_Z, LOGS, EXCESS, POWER)
        check_range("features", self.features[:, amounts], 0.0, math.inf)
        check_range("kinds", self.kinds[:, IS_MEASUREMENT], 0, 1)
        if np.any(self.kinds[:, EXCEEDS] > self.kinds[:, COUNT]):
            raise ValueError("kinds has more values beyond 1 or -1 than values")
        rounds = self.totals[ROUNDS]
        check_range("kinds", self.kinds[:, COUNT], 0, rounds)
        check_range("totals", self.totals[[ROUNDS, SETTLED]], 0, MOST_ROUNDS)
        check_range("totals", self.totals[[SETTLED, N_UNIT]], 0, rounds)
        check_range("totals", self.totals[HAS_VECTOR], 0, 1)
        check_range("totals", self.totals[CONSTANT], 1e-100, FARTHEST)
        check_range("totals", self.totals[N_TRACKED], 0, len(self.columns))
        slots = self.kinds[:, SLOT]
        used = np.sort(slots[slots > 0])
        if used.tolist() != list(range(1, int(self.totals[N_TRACKED]) + 1)):
            raise ValueError(f"kinds has {used.size} slots, which should be 1, 2, ... once each")
        if len(self.columns) != min(len(self.kinds), MOST_TRACKED) or used.size > len(self.columns):
            raise ValueError(f"columns has {len(self.columns)} rows for {len(self.kinds)} features")
        measured = slots[self.kinds[:, IS_MEASUREMENT] == 1]
        if np.any(measured == 0) or np.any(self.columns[measured - 1, WEIGHT] == 0.0):
            raise ValueError("kinds has a measurement without a value")
        check_columns(self.columns)


def check_range(name: str, values: np.ndarray, least: float, most: float) -> None:
    """Raise ValueError if a value is outside of a range."""
    outside = values[(values < least) | (values > most)]
    if outside.size:
        raise ValueError(f"{name} has {outside[0]}, which should be from {least:g} to {most:g}")


def new_scales(n: int) -> Scales:
    """Return scales of n features before the first round; the constant will be feature n."""
    features, totals = np.zeros((n, 6)), np.zeros(N_TOTALS)
    features[:, FACTOR], features[:, CREDIBLE_Z] = 1.0, LARGEST
    totals[CONSTANT] = CONSTANT_OF_WORDS
    n_tracked = min(n, MOST_TRACKED)
    return Scales(
        features=features,
        kinds=np.zeros((n, 4), dtype=np.int64),
        totals=totals,
        columns=new_columns(n_tracked),
        scratch=Scratch(
            place=np.full(n, -1),
            others=np.zeros(n, dtype=INDEX),
            indices=np.zeros(n + 1, dtype=INDEX),
            values=np.zeros(n + 1),
            tracked=np.zeros(n_tracked),
            tracked_features=np.zeros(n_tracked, dtype=np.int64),
            sorted=np.zeros(SAMPLE),
            sizes=np.array([-1, 0, 0, 0]),
        ),
    )


def with_power(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a learner in which those of scales have POWER.

    In earlier versions `totals` had, after its first three numbers, the sum of squares of all
    features that stayed as they are and the number of these; the oldest had nothing about
    embeddings.
    """
    names = ("features", "kinds", "totals")
    features, kinds, totals = (arrays.get(f"scales.{name}") for name in names)
    if features is None or kinds is None or totals is None:
        return dict(arrays)  # of a learner without scales, or of a file that is not sound
    shapes = features.shape[1:], kinds.shape[1:], features.shape[:1]
    if shapes != ((POWER,), (4,), kinds.shape[:1]) or totals.shape not in [(6,), (9,)]:
        return dict(arrays)
    mean_square = totals[3] / totals[4] if totals[4] > 0.0 else 1.0
    power = mean_square * kinds[:, COUNT]
    totals = np.delete(totals, [3, 4])
    return dict(arrays) | {
        "scales.features": np.column_stack([features, power]),
        "scales.totals": np.append(totals, np.zeros(N_TOTALS - totals.size)),
    }


def robust_scales(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of scales from those of format 2, whose moments were not robust.

    There, `features` had the mean of non-zero values, the sum of their squared distances from it,
    LOCATION and FACTOR; `kinds` COUNT, EXCEEDS and IS_MEASUREMENT; `totals` what `with_power`
    takes, up to the two sums.
    """
    before = [arrays["scales." + name] for name in ("features", "kinds", "totals")]
    n = len(before[0])
    if [array.shape for array in before] != [(n, 4), (n, 3), (5,)]:
        raise ValueError("scales have other shapes than in format 2")
    (mean, squares, location, factor), kinds, totals = before[0].T, before[1], before[2]
    new = new_scales(n)
    count, rounds = np.maximum(kinds[:, COUNT], 1), max(totals[ROUNDS], 1.0)
    square = squares / count + mean * mean
    features = new.features[:, :POWER]
    features[:, (LOCATION, FACTOR)] = np.stack([location, factor], axis=1)
    features[:, LOGS] = count * 0.5 * np.log(np.maximum(square, 1.0))
    features[:, EXCESS] = count * np.maximum(square - 1.0, 0.0)
    new.kinds[:, :SLOT] = kinds
    tracked = np.flatnonzero(kinds[:, IS_MEASUREMENT])
    new.kinds[tracked[MOST_TRACKED:], IS_MEASUREMENT] = 0
    tracked = tracked[:MOST_TRACKED]
    new.kinds[tracked, SLOT] = np.arange(1, tracked.size + 1)
    columns, share = new.columns[: tracked.size], kinds[tracked, COUNT] / rounds
    columns[:, MEAN] = share * mean[tracked]
    variance = share * square[tracked] - columns[:, MEAN] ** 2
    columns[:, SQUARES] = rounds * np.maximum(variance, 0.0)
    columns[:, (WEIGHT, AGE)] = rounds
    return {
        "scales.features": features,
        "scales.kinds": new.kinds,
        "scales.totals": np.append(totals, tracked.size),
        "scales.columns": new.columns,
    }


# Of the functions that take None for scales, Numba compiles only what is left for them.


@lean_kernel
def inputs_of(scales, x):
    """Return x scaled, with the constant, in memory that the next x takes too.

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
    n = scales.scratch.sizes[N_VALUES]
    return Example(scales.scratch.indices[:n], scales.scratch.values[:n], x.n_features + 1)


@lean_kernel
def fill_scaled(features, kinds, totals, scratch, x):
    """Fill the scratch with x, scaled, and the constant.

    Measurements come first, also those that are zero in x; all other zeros are left out.
    """
    no_alias()
    indices, values, place = scratch.indices, scratch.values, scratch.place
    if scratch.sizes[N_MEASUREMENTS] < 0:
        find_measurements(features, kinds, scratch)
    n, filled, incredible = scratch.sizes[N_MEASUREMENTS], 0, False
    if scratch.sizes[N_SCALED] == 0:
        for i in range(x.indices.size):
            if x.values[i] != 0.0:
                indices[n], values[n] = x.indices[i], limited(x.values[i])
                n += 1
    elif x.indices.size == x.n_features:  # all features are listed: value j is that of feature j
        for i in range(n):
            j = indices[i]
            values[i] = scaled(features, j, x.values[j])
            incredible |= not is_credible(features, j, x.values[j])
        for i in range(x.n_features - n):
            j = scratch.others[i]
            if x.values[j] != 0.0:
                indices[n], values[n] = j, scaled(features, j, x.values[j])
                n += 1
    else:
        for i in range(x.indices.size):
            j, x_j = x.indices[i], x.values[i]
            if place[j] >= 0:
                incredible |= fill_zeros(features, indices, values, filled, place[j])
                values[place[j]] = scaled(features, j, x_j)
                incredible |= not is_credible(features, j, x_j)
                filled = place[j] + 1
            elif x_j != 0.0:
                indices[n], values[n] = j, scaled(features, j, x_j)
                n += 1
        incredible |= fill_zeros(features, indices, values, filled, scratch.sizes[N_MEASUREMENTS])
    scratch.sizes[IS_INCREDIBLE] = incredible
    indices[n] = x.n_features
    values[n] = totals[CONSTANT] if totals[SETTLED] > 0.0 else first_constant(values, n)
    scratch.sizes[N_VALUES] = n + 1


@lean_kernel
def fill_zeros(features, indices, values, first, end):
    """Fill measurements that are zero in x, from the first to one before the end.

    Return whether zero is not credible for one of them.
    """
    incredible = False
    for i in range(first, end):
        values[i] = scaled(features, indices[i], 0.0)
        incredible |= not is_credible(features, indices[i], 0.0)
    return incredible


@lean_kernel
def first_constant(values, n):
    """Return the constant for the first example, whose scale is all that is known."""
    total = 0.0
    for i in range(n):
        total += values[i] * values[i]
    return CONSTANT_OF_WORDS * max(math.sqrt(total / n), 1e-30) if n > 0 else CONSTANT_OF_WORDS


@lean_kernel
def scaled(features, j, x_j):
    """Return a value of feature `j`, scaled; zero, its location, if it is not credible."""
    z = features[j, FACTOR] * (x_j - features[j, LOCATION])
    return limited(z) if abs(z) <= features[j, CREDIBLE_Z] else 0.0


@lean_kernel
def is_credible(features, j, x_j):
    """Return whether a value of feature `j` is credible: not too far from its location."""
    return abs(features[j, FACTOR] * (x_j - features[j, LOCATION])) <= features[j, CREDIBLE_Z]


@lean_kernel
def limited(x_j):
    """Return the number clipped to [-FARTHEST, FARTHEST]."""
    return min(max(x_j, -FARTHEST), FARTHEST)


@lean_kernel
def find_measurements(features, kinds, scratch):
    """List the measurements and the others; count the features that do not stay as they are."""
    rarely_called()
    n = n_scaled = 0
    for j in range(kinds.shape[0]):
        scratch.place[j] = -1
        if kinds[j, SLOT] > 0:
            scratch.tracked_features[kinds[j, SLOT] - 1] = j
        if kinds[j, IS_MEASUREMENT]:
            scratch.indices[n] = j
            scratch.place[j] = n
            n += 1
        else:
            scratch.others[j - n] = j
        stays = features[j, FACTOR] == 1.0 and features[j, LOCATION] == 0.0
        n_scaled += kinds[j, IS_MEASUREMENT] or not stays
    scratch.sizes[N_MEASUREMENTS], scratch.sizes[N_SCALED] = n, n_scaled


@lean_kernel
def observe_values(scales, rounds, x, weights):
    """Count the values of x, which was the last one scaled, after `rounds` earlier rounds.

    `weights` are arrays of weights of what x became.
    """
    if scales is not None:
        weight = weight_of(rounds)
        if weight > 0 or scales.scratch.sizes[IS_INCREDIBLE]:
            count_values(scales, x, weight, weights)
            if scales.totals[ROUNDS] > (1.0 + PAUSE) * scales.totals[SETTLED]:
                settle(scales, weights, weight)


@lean_kernel
def weight_of(rounds):
    """Return the weight of the round that follows `rounds` others."""
    if rounds < ALL_COUNTED:
        return 1
    place = GOLDEN * rounds
    return ONE_IN if ONE_IN * (place - math.floor(place)) < 1.0 else 0


@lean_kernel
def count_values(scales, x, weight, weights):
    """Count the values of x; settle the scales of columns that began anew a short while ago.

    In a round of weight zero, only incredible values matter.
    """
    features, kinds, totals, scratch = scales.features, scales.kinds, scales.totals, scales.scratch
    if totals[SETTLED] == 0.0:
        totals[CONSTANT] = scratch.values[scratch.sizes[N_VALUES] - 1]
    totals[ROUNDS] += weight
    count_non_zero(features, kinds, totals, scratch.tracked, x, weight)
    young = PAUSE * totals[ROUNDS]
    for slot in range(int(totals[N_TRACKED])):
        value, j = scratch.tracked[slot], scratch.tracked_features[slot]
        column, is_time = scales.columns[slot], False
        if weight > 0 and count_in_column(column, value, weight) and column[AGE] < young:
            is_time = column[STORED] % SETTLED_EACH == 0.0
        if watch(column, value, is_credible(features, j, value), weight) or is_time:
            settle_feature(scales, weights, j, totals[CONSTANT], 0.0)
        scratch.tracked[slot] = 0.0


@lean_kernel
def count_non_zero(features, kinds, totals, tracked, x, weight):
    """Count the non-zero values of x; fill those of tracked columns, by slot."""
    no_alias()
    n_below, n_whole = 0, 0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        if x_j != 0.0:
            kinds[j, COUNT] += weight
            if kinds[j, SLOT] > 0:
                tracked[kinds[j, SLOT] - 1] = x_j
            if weight == 0:
                continue
            if abs(x_j) < 1.0:
                n_below += 1
            else:
                n_whole += 1
            if abs(x_j) > 1.0:
                kinds[j, EXCEEDS] += weight
                if not kinds[j, IS_MEASUREMENT]:
                    count_size(features, kinds, j, abs(x_j), weight)
            elif kinds[j, EXCEEDS] == 0:
                features[j, POWER] += weight * (x_j * x_j)
    totals[N_WHOLE] += weight * n_whole
    if n_below >= LEAST_VECTOR and abs(squares_below_one(x) - 1.0) <= UNIT_TOLERANCE:
        totals[N_UNIT] += weight


@lean_kernel
def squares_below_one(x):
    """Return the sum of the squares of the values of x below one."""
    total = 0.0
    for i in range(x.values.size):
        if abs(x.values[i]) < 1.0:
            total += x.values[i] * x.values[i]
    return total


@lean_kernel
def settle(scales, weights, weight):
    """Make scales from what was counted; change weights so that they keep their meaning."""
    rarely_called()
    kinds, totals, scratch = scales.kinds, scales.totals, scales.scratch
    rounds, n, power, n_typical = totals[ROUNDS], 0, 0.0, 0
    totals[HAS_VECTOR] = has_vector(kinds, totals)
    for j in range(kinds.shape[0]):
        if kinds[j, COUNT] > 0:
            if totals[HAS_VECTOR] == 0.0 or often_exceeds(kinds, totals, j):
                track(kinds, totals, scales.columns, j)
                kinds[j, IS_MEASUREMENT] = is_measurement(kinds, scales.columns, j, rounds)
            else:
                kinds[j, IS_MEASUREMENT] = 0
            if kinds[j, IS_MEASUREMENT]:
                n += 1
            elif kinds[j, EXCEEDS] == 0:
                power += scales.features[j, POWER]
                n_typical += kinds[j, COUNT]
    unit = unit_of(power, n_typical, totals)
    constant = unit if n > 0 else CONSTANT_OF_WORDS * unit
    for W in weights:
        for k in range(W.shape[1]):
            W[W.shape[0] - 1, k] *= totals[CONSTANT] / constant
    by_chance = CHANCE * math.sqrt(weight * (rounds - totals[SETTLED])) * unit
    totals[CONSTANT], totals[SETTLED] = constant, rounds
    for j in range(kinds.shape[0]):
        settle_feature(scales, weights, j, unit, by_chance)
    scratch.sizes[N_MEASUREMENTS] = -1  # to be found anew


@lean_kernel
def settle_feature(scales, weights, j, unit, by_chance):
    """Make the scale of feature `j` from what was counted.

    A location that moves by more than `by_chance`, divided by the weight of what was counted, does
    not do so by chance. Nor does any move of a column that has begun anew or has fewer than half of
    all rounds, or of a column that only rises or falls, such as a counter: over a few values, its
    trend would look like chance.
    """
    rarely_called()
    features, kinds, totals = scales.features, scales.kinds, scales.totals
    if kinds[j, IS_MEASUREMENT]:
        column = scales.columns[kinds[j, SLOT] - 1]
        began_anew = kinds[j, EXCEEDS] and renew_bounds(column, scales.scratch.sorted)
        location, deviation = column[MEAN], deviation_of(column)
        factor = unit / deviation if deviation > 0.0 else 0.0
        features[j, CREDIBLE_Z] = factor * credible_distance(column)
        is_old = not began_anew and 2.0 * column[AGE] > totals[ROUNDS]
        most = by_chance / column[WEIGHT] if is_old and not is_monotone(column) else 0.0
    else:
        location, factor, most = 0.0, factor_of(features, kinds, totals, j, unit), 0.0
        features[j, CREDIBLE_Z] = LARGEST
    before, factor_before = features[j, LOCATION], features[j, FACTOR]
    if location != before or factor != factor_before:
        for W in weights:
            move_weights(W, j, before, factor_before, location, factor, most, totals[CONSTANT])
        features[j, LOCATION], features[j, FACTOR] = location, factor


@lean_kernel
def move_weights(W, j, location_before, before, location, factor, most, constant):
    """Change the weights of feature `j`, and of the constant, such that scores stay the same.

    Weights learned while the feature was not yet scaled, and was clipped, carry no information:
    they are reset. If the location of a scaled feature moved by more than `most`, they stay.
    """
    last = W.shape[0] - 1
    offset = before * (location - location_before)
    unscaled = before == 1.0 and location_before == 0.0
    if unscaled and (abs(offset) > FARTHEST or before > FARTHEST * factor > 0.0):
        for k in range(W.shape[1]):
            W[j, k] = 0.0
        return
    if abs(offset) > (1.0 if unscaled else most) or before > 2.0 * factor:
        return
    for k in range(W.shape[1]):
        W[last, k] += W[j, k] * offset / constant
        W[j, k] *= before / factor if factor > 0.0 else 1.0


@lean_kernel
def track(kinds, totals, columns, j):
    """Give feature `j` a slot if it may become a measurement, and one is free."""
    exceeds, count, n = kinds[j, EXCEEDS], kinds[j, COUNT], int(totals[N_TRACKED])
    if kinds[j, SLOT] > 0 or n == columns.shape[0]:
        return
    least = TRACKED_COUNT if exceeds else BOUNDED_TRACKED_COUNT
    share = SHARE_TO_BECOME if exceeds else BOUNDED_SHARE_TO_BECOME
    if count >= max(least, share * totals[ROUNDS]):
        kinds[j, SLOT] = n + 1
        totals[N_TRACKED] = n + 1


@lean_kernel
def is_measurement(kinds, columns, j, rounds):
    """Return whether feature `j` is a measurement from now on."""
    exceeds, count, slot = kinds[j, EXCEEDS], kinds[j, COUNT], kinds[j, SLOT]
    if kinds[j, IS_MEASUREMENT]:
        return count >= (SHARE_TO_STAY if exceeds else BOUNDED_SHARE_TO_STAY) * rounds
    if count < (LEAST_COUNT if exceeds else BOUNDED_LEAST_COUNT):
        return False
    if slot == 0 or columns[slot - 1, WEIGHT] == 0.0:
        return False
    return count > (SHARE_TO_BECOME if exceeds else BOUNDED_SHARE_TO_BECOME) * rounds


@lean_kernel
def has_vector(kinds, totals):
    """Return whether there is an embedding: many dense columns below one, of unit length."""
    rounds, n = totals[ROUNDS], 0
    if totals[N_UNIT] < UNIT_SHARE * rounds:
        return False
    for j in range(kinds.shape[0]):
        n += is_in_vector(kinds, totals, j)
    return n >= LEAST_VECTOR


@lean_kernel
def is_in_vector(kinds, totals, j):
    """Return whether feature `j` is in an embedding, if there is one."""
    is_dense = kinds[j, COUNT] > BOUNDED_SHARE_TO_BECOME * totals[ROUNDS]
    return is_dense and not often_exceeds(kinds, totals, j)


@lean_kernel
def often_exceeds(kinds, totals, j):
    """Return whether values of feature `j` are beyond 1 or -1 more often than those of a vector."""
    return kinds[j, EXCEEDS] > max(1.0, (1.0 - UNIT_SHARE) * totals[ROUNDS])


@lean_kernel
def unit_of(power, n, totals):
    """Return the root mean square of the n values that stay as they are; one, if there are none.

    With an embedding it is one, as words are one.
    """
    if n == 0 or totals[HAS_VECTOR] == 1.0:
        return 1.0
    return max(math.sqrt(power / n), 1e-30)


@lean_kernel
def count_size(features, kinds, j, size, weight):
    """Count the absolute value of a feature that is no measurement, if it is more than one."""
    features[j, LOGS] += weight * math.log(size)
    size = min(size, largest_size(features, kinds, j))
    features[j, EXCESS] += weight * (size * size - 1.0)


@lean_kernel
def largest_size(features, kinds, j):
    """Return the largest size of feature `j` that counts: a multiple of its geometric mean."""
    return SIZE_BOUND * math.exp(features[j, LOGS] / kinds[j, COUNT])


@lean_kernel
def factor_of(features, kinds, totals, j, unit):
    """Return the factor of feature `j`, which is no measurement."""
    if totals[HAS_VECTOR] == 1.0 and is_in_vector(kinds, totals, j):
        return math.sqrt(max(1.0, totals[N_WHOLE] / totals[ROUNDS]))
    if not kinds[j, EXCEEDS]:
        return 1.0
    square = 1.0 + features[j, EXCESS] / kinds[j, COUNT]
    largest = largest_size(features, kinds, j)
    if square > largest * largest:
        square = largest * largest
        features[j, EXCESS] = (square - 1.0) * kinds[j, COUNT]
    return unit / math.sqrt(square)
