"""What labels mean: descriptions as the mean of the prior of their weights.

A description d_k says what label k means, in the form of an example: its name as a text, say, or
the embedding of that name. Then w_k = theta d_k + u_k, and the score of a label is

    s_k = u_k . x + theta sim_k(x),    sim_k(x) = d_k . x,    d_k and x of unit length.

There is one theta for all labels, the worth of descriptions, with a Gaussian posterior of its own.
Every bit, of whichever label, says something of it: good descriptions are used at once, and
misleading ones cost little, as theta soon is nearly zero. u_k is what `onebit.numerics.posterior`
learns of a label beyond its description.

With z_k = s_k f_k, where f_k is the shrinkage by doubt, p = softmax(z), q = p_l and
e = f_l sim_l - sum_{k != l} p_k f_k sim_k / (1 - q), the derivative of the log-likelihood of a bit
is (1 - q) e if label l was right, -q e if it was wrong, and its information q (1 - q) e^2. One step
of Newton's, or Kalman's, follows from each bit.

The first variance of u_k is 1 / a, with a = c / (ln K)^2: to stand out among K labels, a score must
exceed ln K. If descriptions narrow the choice to e^H labels, where H is the entropy of
softmax(theta sim(x)), averaged over the last rounds, a score needs to exceed H only: a becomes
c / H^2. With weights that are expected to be smaller, neither draws nor steps of the first rounds
undo what the descriptions say. When H changes, the prior changes in all of the posterior, and what
the bits say stays the same (`onebit.numerics.posterior.change_prior`); with covariance matrices, a
stays as it is.

A label without a description has sim_k = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import called_from_python, lean_kernel
from onebit.core.example import INDEX, LARGEST, Example
from onebit.core.state import ANY, Field
from onebit.numerics.linear import products
from onebit.numerics.posterior import NONE_RIGHT, change_prior, sum_of_others
from onebit.numerics.scales import FACTOR, LOCATION, SETTLED

WORTH, DOUBT = 2.0, 1.0
"""Mean and standard deviation of theta before the first round, in units of ln K / spread.

The spread is the similarity of a description to itself less that to others, on average."""

LEAST_SPREAD = 0.05
"""No spread is smaller."""

MEMORY = 100.0
"""H is averaged over about so many rounds."""

TOLERANCE = 1.2
"""The prior is changed when a would change by this factor."""

MEAN, VARIANCE, FIRST_VARIANCE, ENTROPY, COUNTED, NARROWING, RENEWED = 0, 1, 2, 3, 4, 5, 6
"""Places in `Descriptions.numbers`."""


class Scratch(NamedTuple):
    """Memory for one x.

    Attributes
    ----------
    rows, values
        The features of x that descriptions have: their rows in D, and their values.
    similarities
        sim_k(x).
    """

    rows: np.ndarray
    values: np.ndarray
    similarities: np.ndarray


class Descriptions(NamedTuple):
    """Descriptions of labels, and how much they are worth.

    Before there are any, the arrays for them are empty.

    Attributes
    ----------
    place
        For each feature, one more than its row in the arrays below; 0 if no description has it.
    given
        The descriptions, a column for each label; zero where a description lacks a feature.
    D
        The same, scaled and of unit length.
    numbers
        MEAN and VARIANCE of theta, and its FIRST_VARIANCE; ENTROPY, the average of H,
        and how many rounds COUNTED; NARROWING, a as a multiple of what it is without
        descriptions; RENEWED, the rounds when the scales in D were settled.
    """

    place: Annotated[np.ndarray, Field(ANY, dtype=np.int64, least=0)]
    given: Annotated[np.ndarray, Field(ANY, "classes", least=-LARGEST, most=LARGEST)]
    D: Annotated[np.ndarray, Field(ANY, "classes", least=-1.0 - 1e-9, most=1.0 + 1e-9)]
    numbers: Annotated[np.ndarray, Field(7)]
    scratch: Scratch

    def check(self) -> None:
        """Check that every row belongs to one feature, and the ranges of the numbers."""
        used = np.sort(self.place[self.place > 0])
        if used.tolist() != list(range(1, len(self.given) + 1)) or self.D.shape != self.given.shape:
            raise ValueError(
                f"place has {used.size} features, given {len(self.given)} rows and D "
                f"{len(self.D)}, which should be the same"
            )
        if not (self.numbers[VARIANCE:] >= 0.0).all() or self.numbers[NARROWING] < 1.0:
            raise ValueError("numbers has one that is below its range")


def new_descriptions(n_features: int, n_classes: int) -> Descriptions:
    """Return the state before any label is described."""
    numbers = np.zeros(7)
    numbers[NARROWING] = 1.0
    return Descriptions(
        place=np.zeros(0, dtype=np.int64),
        given=np.zeros((0, n_classes)),
        D=np.zeros((0, n_classes)),
        numbers=numbers,
        scratch=Scratch(
            rows=np.zeros(n_features, dtype=INDEX),
            values=np.zeros(n_features),
            similarities=np.zeros(n_classes),
        ),
    )


def described(before: Descriptions, examples: Mapping[int, Example]) -> Descriptions:
    """Return descriptions with those of some labels replaced, by the positions of the labels.

    `renew` has yet to be called.
    """
    n_features = next(iter(examples.values())).n_features
    kept = np.flatnonzero(before.place)
    columns = [example.indices[example.values != 0.0] for example in examples.values()]
    features = np.unique(np.concatenate([kept, *columns]))
    place = np.zeros(n_features, dtype=np.int64)
    place[features] = np.arange(1, features.size + 1)
    given = np.zeros((features.size, before.given.shape[1]))
    given[place[kept] - 1] = before.given[before.place[kept] - 1]
    for k, example in examples.items():
        given[:, k] = 0.0
        is_given = example.values != 0.0
        given[place[example.indices[is_given]] - 1, k] = example.values[is_given]
    numbers = before.numbers.copy()
    if not before.given.any():
        unit = max(1.0, math.log(given.shape[1])) / spread(given)
        numbers[MEAN] = WORTH * unit
        numbers[VARIANCE] = numbers[FIRST_VARIANCE] = (DOUBT * unit) ** 2
    return before._replace(place=place, given=given, D=np.zeros_like(given), numbers=numbers)


def spread(given: np.ndarray) -> float:
    """Return the similarity of a description to itself less that to others, on average."""
    lengths = np.linalg.norm(given, axis=0)
    units = given[:, lengths > 0.0] / lengths[lengths > 0.0]
    n = units.shape[1]
    if n < 2:
        return 1.0
    others = (np.sum(units.sum(axis=1) ** 2) - n) / (n * (n - 1))
    return max(1.0 - float(others), LEAST_SPREAD)


# Of the functions that take None for descriptions or scales, Numba compiles only what is left.


@lean_kernel
def renew(descriptions, scales):
    """Fill D: the descriptions, scaled as examples are, and of unit length.

    A feature that a description lacks is not known to be zero, and stays zero.
    """
    given, D = descriptions.given, descriptions.D
    for j in range(descriptions.place.size):
        r = descriptions.place[j] - 1
        if r >= 0:
            location, factor = scale_of(scales, j)
            for k in range(D.shape[1]):
                D[r, k] = factor * (given[r, k] - location) if given[r, k] != 0.0 else 0.0
    for k in range(D.shape[1]):
        square = 0.0
        for r in range(D.shape[0]):
            square += D[r, k] * D[r, k]
        if square > 1e-300:
            for r in range(D.shape[0]):
                D[r, k] /= math.sqrt(square)


@called_from_python
def renew_now(descriptions, scales):
    """`renew`, for Python."""
    renew(descriptions, scales)


@lean_kernel
def scale_of(scales, j):
    """Return what is subtracted from feature `j`, and by what it is multiplied then."""
    if scales is None:
        return 0.0, 1.0
    return scales.features[j, LOCATION], scales.features[j, FACTOR]


@lean_kernel
def renew_if_settled(descriptions, scales):
    """Fill D anew if scales were settled since it was filled."""
    if scales is None:
        return
    if descriptions.D.shape[0] > 0 and descriptions.numbers[RENEWED] != scales.totals[SETTLED]:
        descriptions.numbers[RENEWED] = scales.totals[SETTLED]
        renew(descriptions, scales)


@lean_kernel
def add_similarities(descriptions, x, unit, scores):
    """Fill sim_k(x) and add theta times it to the scores; `unit` are the values of x / |x|."""
    if descriptions is None:
        return
    D, scratch = descriptions.D, descriptions.scratch
    if D.shape[0] > 0:
        n = fill_rows(descriptions.place, x.indices, unit, scratch.rows, scratch.values)
        described = Example(scratch.rows[:n], scratch.values[:n], D.shape[0])
        products(D, described, scratch.similarities)
        add_worth(descriptions, scores)


@lean_kernel
def fill_rows(place, indices, values, rows, found):
    """Fill the rows of the features that descriptions have, and their values; return how many.

    The constant, if there is one, comes after all features, and no description has it.
    """
    n = 0
    for i in range(indices.size):
        j = indices[i]
        if j < place.size and place[j] > 0:
            rows[n], found[n] = place[j] - 1, values[i]
            n += 1
    return n


@lean_kernel
def add_worth(descriptions, scores):
    """Add theta sim_k(x) to the scores, for the last x."""
    if descriptions is None:
        return
    if descriptions.D.shape[0] > 0:
        theta, similarities = descriptions.numbers[MEAN], descriptions.scratch.similarities
        for k in range(scores.size):
            scores[k] += theta * similarities[k]


@lean_kernel
def learn_worth(descriptions, posterior, label, correct):
    """Take a step in the posterior of theta; `predict` has filled p and f of the other posterior.

    Where each label is right on its own, the similarities of others say nothing: e = f_l sim_l.
    """
    if descriptions is None:
        return
    if descriptions.D.shape[0] == 0:
        return
    numbers, gradient, information = descriptions.numbers, 0.0, 0.0
    for k in range(posterior.scratch.p.size):
        if k == label or correct == NONE_RIGHT:
            q, others, e = derivative(posterior, descriptions.scratch.similarities, k)
            gradient += (others if 0 < correct < NONE_RIGHT else -q) * e
            information += q * others * e * e
    variance = numbers[VARIANCE] / (1.0 + information * numbers[VARIANCE])
    # No bit moves theta by more than a standard deviation: a label that is told may have had
    # almost no probability.
    most = math.sqrt(variance)
    numbers[MEAN] += min(max(gradient * variance, -most), most)
    numbers[VARIANCE] = variance


@lean_kernel
def derivative(posterior, sim, label):
    """Return the probabilities that the label is right, and wrong, and e."""
    p, f = posterior.scratch.p, posterior.scratch.f
    e = f[label] * sim[label]
    if not posterior.settings.exclusive:
        return p[label], 1.0 - p[label], e
    others = max(sum_of_others(p, label), 1e-9)
    for k in range(p.size):
        if k != label:
            e -= p[k] / others * f[k] * sim[k]
    return p[label], others, e


@lean_kernel
def narrow_prior(descriptions, posterior):
    """Count H for the last x; change the prior if a should change by more than `TOLERANCE`."""
    if descriptions is None:
        return
    if descriptions.D.shape[0] == 0 or not posterior.settings.exclusive:
        return
    numbers, scratch = descriptions.numbers, posterior.scratch
    H, K = entropy(numbers[MEAN], descriptions.scratch.similarities, scratch.retired)
    numbers[ENTROPY] += (H - numbers[ENTROPY]) / min(numbers[COUNTED] + 1.0, MEMORY)
    numbers[COUNTED] = min(numbers[COUNTED] + 1.0, MEMORY)
    # As K, the number of labels that are left counts as at least e.
    before, now = numbers[NARROWING], max(1.0, math.log(K)) / max(1.0, numbers[ENTROPY])
    now = max(1.0, now * now)
    if not before / TOLERANCE < now < before * TOLERANCE:
        change_prior(posterior, 0, scratch.retired.size, before, now)
        numbers[NARROWING] = now


@lean_kernel
def entropy(theta, similarities, retired):
    """Return the entropy of softmax(theta sim), and the number of labels that are not retired."""
    n, largest = 0, -math.inf
    for k in range(retired.size):
        if not retired[k]:
            n += 1
            largest = max(largest, theta * similarities[k])
    total, moment = 0.0, 0.0
    for k in range(retired.size):
        if not retired[k]:
            z = theta * similarities[k] - largest
            weight = math.exp(z)
            total += weight
            moment += weight * z
    return math.log(total) - moment / total, n


@lean_kernel
def narrow_class(descriptions, posterior, k):
    """Narrow the prior of a class that was forgotten."""
    if descriptions is None:
        return
    change_prior(posterior, k, k + 1, 1.0, descriptions.numbers[NARROWING])


@lean_kernel
def doubt_again(descriptions):
    """Make the posterior of theta as wide as at first, as everything has changed."""
    if descriptions is None:
        return
    descriptions.numbers[VARIANCE] = descriptions.numbers[FIRST_VARIANCE]
