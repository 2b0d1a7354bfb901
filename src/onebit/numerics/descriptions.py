"""What labels mean: descriptions as the mean of the prior of their weights.

A description d_k says what label k means, in the form of an example: its name as a text, say, or
the embedding of that name. Then w_k = theta d_k + u_k, and the score of a label is

    s_k = u_k . x + theta sim_k(x),    sim_k(x) = d_k . x,    d_k and x of unit length.

There is one theta for all labels, the worth of descriptions, with a Gaussian posterior of its own.
Every bit, whichever label it is about, is evidence of it: good descriptions are used at once, and
misleading ones cost little, as theta is soon nearly zero. u_k is what `onebit.numerics.posterior`
learns of a label beyond its description.

With z_k = s_k f_k, where f_k is the shrinkage by doubt, p = softmax(z), q = p_l and
e = f_l sim_l - sum_{k != l} p_k f_k sim_k / (1 - q), the derivative of the log-likelihood of a bit
is (1 - q) e if label l was right, -q e if it was wrong, and its information q (1 - q) e^2. One step
of Newton's, or Kalman's, follows from each bit.

The first variance of u_k is 1 / a, with a = c / (ln K)^2: to stand out among K labels, a score must
exceed ln K. If descriptions narrow the choice to e^H labels, where H is the entropy of
softmax(theta sim(x)), averaged over the last rounds, a score needs to exceed H only: a becomes
c / H^2. With weights that are expected to be smaller, neither draws nor steps of the first rounds
undo what the descriptions say. When H changes, the prior changes in all of the posterior, and the
evidence of the bits stays the same (`onebit.numerics.posterior_changes.change_prior`); with
covariance matrices, a stays as it is.

Some labels may have no description. If g_1 is the density of sim_k(x) where k is right, and g_0
where it is not, the similarities of an x speak for a described label k with the factor
g_1(sim_k) / g_0(sim_k), and for any other label with the factor 1, as then no described one is
right. The softmax has exp(theta sim_k - b) for this ratio, and as densities integrate to one,

    b = ln E[exp(theta sim_k(x)) | k is not right].

So labels without a description have b, the baseline, in place of theta sim_k: they are as likely as
a described label that matches no better than wrong ones do. With p = softmax of these scores, a
pair of x and k counts with the probability 1 - p_k that k is not right, and b follows from the
pairs of the last rounds; at first, it is theta times the mean similarity of two descriptions. The
derivative of b with respect to theta is the mean of sim_k, weighted as in b. The prior of such
labels keeps a = c / (ln K)^2.

A label that gets its first description when others have been described for long may start with more
than theta d_k: what was learned of labels with similar descriptions. With one linear map M for all
labels, u_k = u + M d_k + e_k, where the entries of M and of e_k are independent, and those of e_k
have the variance of M's times c. If e_k were the only noise in what was learned, then the mean of
u_k, given the other labels' u_j, would be the ridge regression of these on the d_j, both less their
means over j, with the factor g = 1:

    m_k = g sum_j alpha_j u_j,    alpha = (D' D + c I)^{-1} D' d_k,

and the mean of the prior of u_k becomes m_k. g is larger than one, because what was learned of the
u_j is drawn towards zero, their own prior mean. Where labels are exclusive, u has no effect. When H
changes, m_k counts as evidence; when the description is taken back, the weights stay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import called_from_python, lean_kernel, rarely_called
from onebit.core.example import INDEX, LARGEST, Example
from onebit.core.state import ANY, Field
from onebit.numerics import tuning
from onebit.numerics.linear import products
from onebit.numerics.posterior import NONE_RIGHT, Posterior
from onebit.numerics.posterior_changes import change_prior, share_of_prior_mean
from onebit.numerics.posterior_lessons import n_others, share_of_right, sum_of_others
from onebit.numerics.scales import FACTOR, LOCATION, SETTLED, Scales
from onebit.numerics.tuning import DescriptionConstants

MEAN, VARIANCE, FIRST_VARIANCE, ENTROPY, COUNTED, NARROWING, RENEWED = range(7)
BASELINE, BASELINE_SLOPE, BASELINE_WEIGHT, N_NUMBERS = range(7, 11)
"""Places in `Descriptions.numbers`, and how many there are."""


class Scratch(NamedTuple):
    """Memory for one x.

    Attributes
    ----------
    rows, values
        The features of x that descriptions have: their rows in D, and their values.
    similarities
        sim_k(x).
    worth, slopes
        theta sim_k(x), or b, and its derivative with respect to theta.
    p
        softmax of the worth.
    """

    rows: np.ndarray
    values: np.ndarray
    similarities: np.ndarray
    worth: np.ndarray
    slopes: np.ndarray
    p: np.ndarray


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
    is_described
        Which labels have a description, other than zero: 1, others 0.
    numbers
        MEAN and VARIANCE of theta, and its FIRST_VARIANCE; ENTROPY, the average of H,
        and how many rounds COUNTED; NARROWING, a as a multiple of what it is without
        descriptions; RENEWED, the rounds when the scales in D were settled; BASELINE, b, with its
        BASELINE_SLOPE, and BASELINE_WEIGHT, the pairs of x and label that it is the mean of.
    settings
        The tuned constants.
    """

    place: Annotated[np.ndarray, Field(ANY, dtype=np.int64, least=0)]
    given: Annotated[np.ndarray, Field(ANY, "classes", least=-LARGEST, most=LARGEST)]
    D: Annotated[np.ndarray, Field(ANY, "classes", least=-1.0 - 1e-9, most=1.0 + 1e-9)]
    is_described: Annotated[np.ndarray, Field("classes", dtype=np.int64, least=0, most=1)]
    numbers: Annotated[np.ndarray, Field(N_NUMBERS)]
    settings: DescriptionConstants
    scratch: Scratch

    def check(self) -> None:
        """Check that every row belongs to one feature, and the ranges of the numbers."""
        if self.place.size not in (0, self.scratch.rows.size):
            raise ValueError(f"place has {self.place.size} of {self.scratch.rows.size} features")
        used = np.sort(self.place[self.place > 0])
        if used.tolist() != list(range(1, len(self.given) + 1)) or self.D.shape != self.given.shape:
            raise ValueError(
                f"place has {used.size} features, given {len(self.given)} rows and D "
                f"{len(self.D)}, which should be the same"
            )
        if np.any(self.is_described != self.given.any(axis=0)):
            raise ValueError("is_described differs from the labels that have a description")
        amounts = self.numbers[[*range(VARIANCE, RENEWED + 1), BASELINE_WEIGHT]]
        if not (amounts >= 0.0).all() or self.numbers[NARROWING] < 1.0:
            raise ValueError("numbers has one that is below its range")


def new_descriptions(n_features: int, n_classes: int) -> Descriptions:
    """Return the state before any label is described."""
    numbers = np.zeros(N_NUMBERS)
    numbers[NARROWING] = 1.0
    similarities, worth, slopes, p = np.zeros((4, n_classes))
    return Descriptions(
        place=np.zeros(0, dtype=np.int64),
        given=np.zeros((0, n_classes)),
        D=np.zeros((0, n_classes)),
        is_described=np.zeros(n_classes, dtype=np.int64),
        numbers=numbers,
        settings=tuning.TUNING.descriptions,
        scratch=Scratch(
            rows=np.zeros(n_features, dtype=INDEX),
            values=np.zeros(n_features),
            similarities=similarities,
            worth=worth,
            slopes=slopes,
            p=p,
        ),
    )


def described(
    before: Descriptions,
    examples: Mapping[int, Example],
    scales: Scales | None,
    posterior: Posterior,
) -> Descriptions:
    """Return descriptions with those of some labels replaced, by the positions of the labels.

    In the posterior, the prior of labels that had no description is narrowed.
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
    is_described = np.asarray(given.any(axis=0), dtype=np.int64)
    numbers = before.numbers.copy()
    if not before.is_described.any():
        constants, likeness = before.settings, similarity_of_two(given)
        spread = max(1.0 - likeness, constants.least_spread)
        unit = max(1.0, math.log(given.shape[1])) / spread
        numbers[MEAN] = constants.worth * unit
        numbers[VARIANCE] = numbers[FIRST_VARIANCE] = (constants.doubt * unit) ** 2
        numbers[BASELINE], numbers[BASELINE_SLOPE] = numbers[MEAN] * likeness, likeness
        numbers[BASELINE_WEIGHT] = is_described.sum()
    D = np.zeros_like(given)
    new = before._replace(place=place, given=given, D=D, is_described=is_described, numbers=numbers)
    gone = is_described < before.is_described
    weights = posterior.W[:, gone]
    begin_descriptions(new, scales, posterior, before.is_described)
    posterior.W[:, gone] = weights
    move_prior_means(new, posterior, before.is_described)
    return new


def move_prior_means(
    descriptions: Descriptions, posterior: Posterior, was_described: np.ndarray
) -> None:
    """Move the prior means of labels described for the first time to what similar ones learned.

    The evidence of the bits stays the same.
    """
    is_described, D = descriptions.is_described, descriptions.D
    known = np.flatnonzero(is_described & was_described)
    new = np.flatnonzero(is_described > was_described)
    if known.size == 0 or new.size == 0:
        return
    constants, weights = descriptions.settings, posterior.W[:, known]
    learned = weights - weights.mean(axis=1, keepdims=True)
    middle = D[:, known].mean(axis=1, keepdims=True)
    alpha = ridge(D[:, known] - middle, D[:, new] - middle, constants.own)
    means = constants.unshrunk * learned @ alpha
    narrow = descriptions.numbers[NARROWING]
    for k, mean in zip(new, means.T, strict=True):
        posterior.W[:, k] += share_of_prior_mean(posterior, int(k), mean, narrow)


def ridge(A: np.ndarray, B: np.ndarray, c: float) -> np.ndarray:
    """Return (A' A + c I)^{-1} A' B."""
    rows, columns = A.shape
    if columns <= rows:
        return np.linalg.solve(A.T @ A + c * np.eye(columns), A.T @ B)
    return A.T @ np.linalg.solve(A @ A.T + c * np.eye(rows), B)


def similarity_of_two(given: np.ndarray) -> float:
    """Return how similar two descriptions are on average; zero, if there are not two."""
    lengths = np.linalg.norm(given, axis=0)
    units = given[:, lengths > 0.0] / lengths[lengths > 0.0]
    n = units.shape[1]
    return 0.0 if n < 2 else float((np.sum(units.sum(axis=1) ** 2) - n) / (n * (n - 1)))


def worth_of_descriptions(descriptions: Descriptions) -> tuple[float, float]:
    """Return the mean and the standard deviation of theta; zero without descriptions."""
    numbers = descriptions.numbers
    return float(numbers[MEAN]), math.sqrt(numbers[VARIANCE])


def add_prior_means(descriptions: Descriptions, weights: np.ndarray) -> None:
    """Add theta d_k to the weights of each label, of shape (classes, inputs)."""
    features = np.flatnonzero(descriptions.place)
    rows = descriptions.D[descriptions.place[features] - 1]
    weights[:, features] += descriptions.numbers[MEAN] * rows.T


# Of the functions that take None for descriptions or scales, Numba compiles only what is left.


@lean_kernel
def renew(descriptions, scales):
    """Fill D: the descriptions, scaled as examples are, and of unit length.

    A feature that a description lacks is not known to be zero, and stays zero.
    """
    rarely_called()
    given, D = descriptions.given, descriptions.D
    if scales is not None:
        descriptions.numbers[RENEWED] = scales.totals[SETTLED]
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
def begin_descriptions(descriptions, scales, posterior, was_described):
    """Fill D; make the prior of described labels narrow, and that of others wide."""
    renew(descriptions, scales)
    narrow = descriptions.numbers[NARROWING]
    for k in range(was_described.size):
        if descriptions.is_described[k] > was_described[k]:
            change_prior(posterior, k, k + 1, descriptions.is_described, 1.0, narrow)
        elif descriptions.is_described[k] < was_described[k]:
            change_prior(posterior, k, k + 1, was_described, narrow, 1.0)


@lean_kernel
def scale_of(scales, j):
    """Return what is subtracted from feature `j`, and the factor of the difference."""
    if scales is None:
        return 0.0, 1.0
    return scales.features[j, LOCATION], scales.features[j, FACTOR]


@lean_kernel
def renew_if_settled(descriptions, scales):
    """Fill D again if scales were settled since it was filled."""
    if scales is None:
        return
    if descriptions.D.shape[0] > 0 and descriptions.numbers[RENEWED] != scales.totals[SETTLED]:
        renew(descriptions, scales)


@lean_kernel
def add_similarities(descriptions, x, values, stretch, scores):
    """Fill the similarities of x and the descriptions, and add their worth to the scores.

    `values` are those of x, normalised, and `stretch` is the square of its length then.
    """
    if descriptions is None:
        return
    D, scratch = descriptions.D, descriptions.scratch
    if D.shape[0] > 0:
        n = fill_rows(descriptions.place, x.indices, values, scratch.rows, scratch.values)
        described = Example(scratch.rows[:n], scratch.values[:n], D.shape[0])
        products(D, described, scratch.similarities)
        if stretch != 1.0:
            for k in range(scratch.similarities.size):
                scratch.similarities[k] /= math.sqrt(max(stretch, 1e-300))
        fill_worth(descriptions)
        add_worth(descriptions, scores)


@lean_kernel
def fill_worth(descriptions):
    """Fill theta sim_k(x), or b, and its derivative with respect to theta."""
    numbers, scratch = descriptions.numbers, descriptions.scratch
    for k in range(scratch.worth.size):
        if descriptions.is_described[k]:
            scratch.slopes[k] = scratch.similarities[k]
            scratch.worth[k] = numbers[MEAN] * scratch.similarities[k]
        else:
            scratch.slopes[k] = numbers[BASELINE_SLOPE]
            scratch.worth[k] = numbers[BASELINE]


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
    """Add the worth of descriptions for the last x to the scores."""
    if descriptions is None:
        return
    if descriptions.D.shape[0] > 0:
        for k in range(scores.size):
            scores[k] += descriptions.scratch.worth[k]


@lean_kernel
def learn_worth(descriptions, posterior, label, correct):
    """Count the last x in H and b; take a step in the posterior of theta.

    `predict` has filled p and f of the other posterior.

    Where each label is right on its own, other similarities do not matter: e = f_l sim_l.
    """
    if descriptions is None:
        return
    if descriptions.D.shape[0] == 0:
        return
    count_entropy(descriptions, posterior.scratch.retired)
    count_baseline(descriptions, posterior.scratch.retired)
    numbers, gradient, information = descriptions.numbers, 0.0, 0.0
    for k in range(posterior.scratch.p.size):
        if k == label or correct == NONE_RIGHT:
            q, others, e = derivative(posterior, descriptions.scratch.slopes, k)
            right = share_of_right(correct)
            gradient += (right * others - (1.0 - right) * q) * e
            information += q * others * e * e
    variance = numbers[VARIANCE] / (1.0 + information * numbers[VARIANCE])
    # No bit moves theta by more than a standard deviation: a label that is told may have had
    # almost no probability.
    most = math.sqrt(variance)
    step = min(max(gradient * variance, -most), most)
    numbers[MEAN] += step
    numbers[BASELINE] += step * numbers[BASELINE_SLOPE]
    numbers[VARIANCE] = variance


@lean_kernel
def derivative(posterior, slopes, label):
    """Return the probabilities that the label is right, and wrong, and e."""
    p, f = posterior.scratch.p, posterior.scratch.f
    e = f[label] * slopes[label]
    if not posterior.settings.exclusive:
        return p[label], 1.0 - p[label], e
    others = max(sum_of_others(p, label), 1e-9)
    for k in range(p.size):
        if k != label:
            e -= p[k] / others * f[k] * slopes[k]
    return p[label], others, e


@lean_kernel
def count_entropy(descriptions, retired):
    """Count the entropy H of softmax(worth) for the last x, and fill the softmax."""
    worth, p, numbers = descriptions.scratch.worth, descriptions.scratch.p, descriptions.numbers
    largest = -math.inf
    for k in range(p.size):
        if not retired[k]:
            largest = max(largest, worth[k])
    total, moment = 0.0, 0.0
    for k in range(p.size):
        p[k] = 0.0 if retired[k] else math.exp(worth[k] - largest)
        total += p[k]
        moment += p[k] * (worth[k] - largest)
    for k in range(p.size):
        p[k] /= total
    H, memory = math.log(total) - moment / total, descriptions.settings.memory
    numbers[ENTROPY] += (H - numbers[ENTROPY]) / min(numbers[COUNTED] + 1.0, memory)
    numbers[COUNTED] = min(numbers[COUNTED] + 1.0, memory)


@lean_kernel
def count_baseline(descriptions, retired):
    """Count the last x in b, for each described label with the probability that it is not right.

    e^b is the mean of exp(theta sim_k), over about `memory` rounds; here, all are relative to it.
    """
    scratch, numbers = descriptions.scratch, descriptions.numbers
    n, weight, total, moment = 0, 0.0, 0.0, 0.0
    for k in range(scratch.p.size):
        if descriptions.is_described[k] and not retired[k]:
            not_right = 1.0 - scratch.p[k]
            value = not_right * math.exp(min(scratch.worth[k] - numbers[BASELINE], 700.0))
            n += 1
            weight += not_right
            total += value
            moment += value * scratch.similarities[k]
    if weight > 1e-9:
        most = n * descriptions.settings.memory
        numbers[BASELINE_WEIGHT] = min(numbers[BASELINE_WEIGHT] + weight, most)
        share = weight / numbers[BASELINE_WEIGHT]
        mean = 1.0 - share + share * (total / weight)
        slope = (1.0 - share) * numbers[BASELINE_SLOPE] + share * (moment / weight)
        numbers[BASELINE_SLOPE] = slope / mean
        numbers[BASELINE] += math.log(mean)


@lean_kernel
def narrow_prior(descriptions, posterior):
    """Change the prior of described labels if a should change by more than `tolerance`."""
    if descriptions is None:
        return
    if descriptions.D.shape[0] == 0 or not posterior.settings.exclusive:
        return
    numbers, tolerance = descriptions.numbers, descriptions.settings.tolerance
    # K is the number of labels that are not retired; as in a, ln K counts as at least 1.
    K = n_others(posterior.scratch.retired) + 1
    before, now = numbers[NARROWING], max(1.0, math.log(K)) / max(1.0, numbers[ENTROPY])
    now = max(1.0, now * now)
    if not before / tolerance < now < before * tolerance:
        described = descriptions.is_described
        change_prior(posterior, 0, described.size, described, before, now)
        numbers[NARROWING] = now


@lean_kernel
def narrow_class(descriptions, posterior, k):
    """Narrow the prior of a class that was forgotten, if it is described."""
    if descriptions is None:
        return
    narrow = descriptions.numbers[NARROWING]
    change_prior(posterior, k, k + 1, descriptions.is_described, 1.0, narrow)


@lean_kernel
def doubt_again(descriptions):
    """Make the posterior of theta as wide as at first, as everything has changed."""
    if descriptions is None:
        return
    descriptions.numbers[VARIANCE] = descriptions.numbers[FIRST_VARIANCE]
