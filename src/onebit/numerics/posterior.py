"""A model of which labels are right, with a Gaussian posterior over its weights.

If labels are exclusive, exactly one is right, label k with probability softmax(W x)_k. Otherwise
each label is right on its own, with probability sigma(b + w_k . x), sigma the logistic function:
several labels may be right, or none. The level b is the same for all labels. Each bit updates the
posterior; to choose a label, the score of each one is drawn from it, and the highest wins (Thompson
sampling). `SoftmaxThompson` and `LogisticThompson` have the formulas in their notes; every model of
`OneBitClassifier` is one of these, on its own view of x.

Covariances are kept for each class on its own: their diagonals, or whole matrices. The kernels
below that take a posterior are compiled for the form that it has.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba.core.types import Array

from onebit.core.compiling import chosen_by_type, lean_kernel, no_alias
from onebit.core.example import INDEX
from onebit.core.offer import n_on_offer, nth_on_offer
from onebit.core.state import Amount, Field, Within
from onebit.numerics import tuning
from onebit.numerics.argmax import argmax
from onebit.numerics.linear import fill_unit, norm, products, with_values
from onebit.numerics.second_order import (
    Inverse,
    fill_times,
    inner,
    lean_class_inverse,
    new_inverses,
    subtract,
)
from onebit.numerics.softmax import logistic, softmax
from onebit.numerics.tuning import PosteriorConstants
from onebit.numerics.winning import ROOM, fill_winning

TOLD, NONE_RIGHT = 2, 3
"""Feedback from someone who knows: that the label is right, and that no label is.

A bit is an integer, 0 or 1. A grade, a fraction of right, is a float in (0, 1), for which kernels
are compiled when the first one comes. It counts as the mean over a bit that is right with this
probability, of all that is linear in the bit: logarithms of likelihoods, gradients and counts.
"""

LEVEL_VARIANCE = math.pi**2 / 3.0
"""The first variance of the level b: that of log-odds whose probability is uniform in [0, 1]."""

MEAN, VARIANCE = 0, 1
"""Places in `Posterior.level`."""

N_ON_OFFER, LEAST = 0, 1
"""Places in `Scratch.least`."""

MEAN_SQUARE, COUNTED = 0, 1
"""Places in `Posterior.lengths`."""

OLDEST = 1e100
"""Largest age."""


class PosteriorSettings(NamedTuple):
    """What parameters stand for.

    Attributes
    ----------
    explore
        nu, the width of the draws.
    widest
        1 / a, the first variance of a weight.
    widest_constant
        The first variance of the constant's weight.
    forgetting
        phi.
    exclusive
        Whether exactly one label is right; otherwise each is on its own.
    constants
        Those that were tuned for this model and this form of the covariance.
    """

    explore: float
    widest: float
    widest_constant: float
    forgetting: float
    exclusive: bool
    constants: PosteriorConstants


class Scratch(NamedTuple):
    """What is computed of one x, and memory to compute in.

    Attributes
    ----------
    x, squares
        Its values, normalised, and their squares.
    stretch
        The squared length of the normalised x; one if labels are exclusive.
    scores
        The mean of each class's score.
    v
        The variance x' S_k x of each score, capped at its first value, stretch / a.
    share
        The capped variance as a share of the variance.
    f
        The factor by which doubt shrinks each score; in a lesson, it becomes the information.
    p
        The probability that each label is right, by the shrunk scores.
    g
        The gradient.
    deviations
        The standard deviations of the draws.
    room
        Memory for the integrals of the draws.
    least
        LEAST: how many deviations below the best score a label is unlikely to be right, for
        N_ON_OFFER labels on offer.
    Sx
        With whole matrices S_k x, a row for each class.
    retired
        Which labels cannot be right, as they are retired.
    informed
        The classes whose variances change.
    """

    x: np.ndarray
    squares: np.ndarray
    stretch: np.ndarray
    scores: np.ndarray
    v: np.ndarray
    share: np.ndarray
    f: np.ndarray
    p: np.ndarray
    g: np.ndarray
    deviations: np.ndarray
    room: np.ndarray
    least: np.ndarray
    Sx: np.ndarray
    retired: np.ndarray
    informed: np.ndarray


class Posterior(NamedTuple):
    """The mean and the covariance of the weights, and the weights before the last change.

    Attributes
    ----------
    W
        Means of the weights.
    S
        The variances of the weights, or a covariance matrix for each class, divided by `age`.
    age
        By how much forgetting has widened the posterior.
    level
        MEAN and VARIANCE of b, the level of all scores; zero if labels are exclusive.
    lengths
        MEAN_SQUARE of the lengths of x, and how many were COUNTED; zero if labels are exclusive.
    former
        The weights that were forgotten when everything changed last.
    """

    W: Annotated[np.ndarray, Field("inputs", "classes")]
    S: (
        Annotated[np.ndarray, Field("inputs", "classes", least=0.0)]
        | Annotated[Inverse, Within(n="inputs", each="classes")]
    )
    age: Amount
    level: Annotated[np.ndarray, Field(2)]
    lengths: Annotated[np.ndarray, Field(2, least=0.0)]
    former: Annotated[np.ndarray, Field("inputs", "classes")]
    settings: PosteriorSettings
    scratch: Scratch

    def check(self) -> None:
        """Check that age is at least one, and that the variance of the level is in its range."""
        if self.age < 1.0:
            raise ValueError(f"age is {self.age}, and should be at least 1")
        if not 0.0 <= self.level[VARIANCE] <= LEVEL_VARIANCE:
            raise ValueError(f"the variance of level is {self.level[VARIANCE]}, out of its range")

    def begin_classes(self, first: int) -> None:
        """Give new classes, from `first` on, the initial variances, and what labels share."""
        new = self.S[:, first:] if isinstance(self.S, np.ndarray) else self.S.base[first:]
        if not self.settings.exclusive:
            self.W[:, first:] = self._shared_weights(first)[:, np.newaxis]
        new /= self.age

    def _shared_weights(self, n: int) -> np.ndarray:
        """Return the mean of u, where the weights of the first n classes are w_k = u + e_k.

        u and e_k are independent, with covariances rho P and (1 - rho) P, where P has the first
        variances. Then the mean of w_j' P^{-1} w_k, j != k, is rho times that of w_k' P^{-1} w_k,
        which estimates rho, and u has the mean rho / (1 + (n - 1) rho) sum_k w_k. Where labels have
        nothing in common, rho and u are about zero; where they are exclusive, u has no effect.
        """
        first = self.S[:, n] if isinstance(self.S, np.ndarray) else self.S.base[n].diagonal()
        total = self.W[:, :n].sum(axis=1)
        own = (self.W[:, :n] ** 2).sum(axis=1) @ (1.0 / first)
        if n < 2 or not own > 0.0:
            return np.zeros(first.size)
        rho = max(0.0, (total**2 @ (1.0 / first) / own - 1.0) / (n - 1.0))
        return rho / (1.0 + (n - 1.0) * rho) * total


def new_posterior(
    n_inputs: int,
    n_classes: int,
    *,
    full: bool,
    exclusive: bool = True,
    explore: float | None = None,
    a: float | None = None,
    forgetting: float | None = None,
    has_constant: bool = True,
) -> Posterior:
    """Return the posterior before the first round; the constant is the last input, if there is one.

    None stands for what the model and the form of the covariance have.
    """
    constants = tuning.posterior_constants(full=full, exclusive=exclusive)
    # To stand out among K exclusive labels, a score must exceed ln K.
    ln_K = max(1.0, math.log(n_classes)) if exclusive else 1.0
    a = constants.prior / ln_K**2 if a is None else float(a)
    settings = PosteriorSettings(
        explore=constants.explore * ln_K if explore is None else float(explore),
        widest=1.0 / a,
        widest_constant=(constants.constant if has_constant else 1.0) / a,
        forgetting=constants.forgetting if forgetting is None else float(forgetting),
        exclusive=exclusive,
        constants=constants,
    )
    variances = np.full(n_inputs, settings.widest)
    variances[-1:] = settings.widest_constant
    if full:
        S: Any = new_inverses(n_classes, n_inputs, 1.0 / variances.max())
        S.base[:, np.arange(n_inputs), np.arange(n_inputs)] = variances
    else:
        S = np.repeat(variances[:, np.newaxis], n_classes, axis=1)
    W, former = np.zeros((n_inputs, n_classes)), np.zeros((n_inputs, n_classes))
    x, squares = np.zeros((2, n_inputs))
    scores, v, share, f, p, g, deviations = np.zeros((7, n_classes))
    scratch = Scratch(
        x=x,
        squares=squares,
        stretch=np.ones(1),
        scores=scores,
        v=v,
        share=share,
        f=f,
        p=p,
        g=g,
        deviations=deviations,
        room=np.zeros((ROOM, n_classes)),
        least=np.zeros(2),
        Sx=np.zeros((n_classes if full else 0, n_inputs)),
        retired=np.zeros(n_classes, dtype=np.bool_),
        informed=np.zeros(n_classes, dtype=INDEX),
    )
    level = np.array([0.0, 0.0 if exclusive else LEVEL_VARIANCE])
    return Posterior(W, S, np.ones(()), level, np.zeros(2), former, settings, scratch)


# Scores


def score_posterior(posterior, x, scores):
    """Fill the mean of each class's score for x, normalised, and in the scratch its variance v."""
    if isinstance(posterior.S, np.ndarray):
        score_diagonal(posterior, x, scores)
    else:
        score_full(posterior, x, scores)


@chosen_by_type(score_posterior)
def _score_posterior(posterior, x, scores):
    if isinstance(posterior.types[posterior.fields.index("S")], Array):
        return lambda posterior, x, scores: score_diagonal(posterior, x, scores)
    return lambda posterior, x, scores: score_full(posterior, x, scores)


@lean_kernel
def score_diagonal(posterior, x, scores):
    """`score_posterior` with variances."""
    scratch, age = posterior.scratch, posterior.age[()]
    v = scratch.v
    normalise(posterior, x)
    products(posterior.W, with_values(x, scratch.x), scores)
    products(posterior.S, with_values(x, scratch.squares), v)
    for k in range(v.size):
        v[k] *= age
    end_score(posterior.scratch, posterior.settings.widest, scores)


@lean_kernel
def score_full(posterior, x, scores):
    """`score_posterior` with covariance matrices."""
    scratch = posterior.scratch
    normalise(posterior, x)
    unit = with_values(x, scratch.x)
    products(posterior.W, unit, scores)
    for k in range(scores.size):
        fill_times(lean_class_inverse(posterior.S, k), unit, scratch.Sx[k])
        # It is non-negative up to rounding.
        scratch.v[k] = max(0.0, posterior.age[()] * inner(unit, scratch.Sx[k]))
    end_score(scratch, posterior.settings.widest, scores)


@lean_kernel
def normalise(posterior, x):
    """Fill the values of x / ||x|| if labels are exclusive, else of x / L.

    L^2 is the mean of ||x||^2 over all rounds, this one included. Where each label is right on its
    own, log-odds are linear in x, so that predictions for a longer x are surer. A softmax is sure
    enough without.
    """
    scratch, lengths = posterior.scratch, posterior.lengths
    fill_unit(x, scratch.x, scratch.squares)
    if posterior.settings.exclusive:
        return
    square = norm(x) ** 2
    n = lengths[COUNTED]
    mean = (n * lengths[MEAN_SQUARE] + square) / (n + 1.0)
    stretch = square / mean if mean > 1e-300 else 1.0
    scratch.stretch[0] = stretch
    for i in range(x.values.size):
        scratch.x[i] *= math.sqrt(stretch)
        scratch.squares[i] *= stretch


@lean_kernel
def count_length(posterior, x):
    """Count the length of x, if labels are not exclusive."""
    if not posterior.settings.exclusive:
        lengths = posterior.lengths
        lengths[COUNTED] += 1.0
        lengths[MEAN_SQUARE] += (norm(x) ** 2 - lengths[MEAN_SQUARE]) / lengths[COUNTED]


@lean_kernel
def end_score(scratch, widest, scores):
    """Cap variances at the prior; mask retired labels."""
    v, share, widest = scratch.v, scratch.share, widest * scratch.stretch[0]
    for k in range(scores.size):
        share[k] = 1.0
        if v[k] > widest:
            share[k] = widest / v[k]
            v[k] = widest
        if scratch.retired[k]:
            scores[k] = -math.inf


@lean_kernel
def predict(posterior, scores):
    """Fill p with the probability that each label is right, its score shrunk by its doubt."""
    scratch, doubt = posterior.scratch, posterior.settings.constants.doubt
    f, g, v = scratch.f, scratch.g, scratch.v
    level, variance = posterior.level[MEAN], posterior.level[VARIANCE]
    for k in range(scores.size):
        f[k] = 1.0 / math.sqrt(1.0 + doubt * (v[k] + variance))
        g[k] = f[k] * (scores[k] + level)
    fill_right(posterior.settings.exclusive, g, scratch.p)


@lean_kernel
def fill_right(exclusive, scores, p):
    """Fill the probability that each label is right, by its log-odds or those of the softmax."""
    if exclusive:
        softmax(scores, 1.0, p)
    else:
        for k in range(p.size):
            p[k] = logistic(scores[k])


@lean_kernel
def fill_scores(posterior, scores):
    """Fill the public scores: the means, or the log-odds that each label is right on its own."""
    means = posterior.scratch.scores
    for k in range(scores.size):
        scores[k] = means[k]
        if not posterior.settings.exclusive:
            scores[k] = (means[k] + posterior.level[MEAN]) * shrinkage(posterior, k)


@lean_kernel
def shrinkage(posterior, k):
    """Return the factor by which the doubt about a score shrinks log-odds."""
    variance = posterior.scratch.v[k] + posterior.level[VARIANCE]
    return 1.0 / math.sqrt(1.0 + posterior.settings.constants.doubt * variance)


# The policy


@lean_kernel
def fill_policy(posterior, scores, offer, p):
    """Fill the probability that each class's draw is the largest; return the greedy label.

    `scores` are what `fill_scores` made of the means.
    """
    scratch, settings = posterior.scratch, posterior.settings
    best, means = argmax(scores, offer), scratch.scores
    if settings.explore == 0.0:
        for k in range(p.size):
            p[k] = 0.0
        p[best] = 1.0
        return best
    fill_deviations(posterior, means, best, offer)
    if not settings.exclusive:
        for k in range(p.size):
            p[k] = logistic(scores[k])
        means = scratch.g
        fill_optimistic(settings.constants.optimism, scratch.deviations, best, p, means)
    fill_winning(means, scratch.deviations, best, p, scratch.room, offer)
    return best


@lean_kernel
def fill_optimistic(optimism, deviations, best, p, means):
    """Fill p_k / (p_b (1 - p_b)), plus `optimism` deviations: the means of draws of probabilities.

    They are in log-odds at the best label, b. Whether another label is better than the best shows
    at the probability of the best; there, a probability changes by p_b (1 - p_b) for each unit of
    log-odds.
    """
    slope = max(p[best] * (1.0 - p[best]), 1e-9)
    for k in range(p.size):
        means[k] = p[k] / slope + optimism * deviations[k]


@lean_kernel
def fill_deviations(posterior, scores, best, offer):
    """Fill the deviation of each class's draw: nu_k sqrt(v_k), with nu_k at least nu.

    Where `best`, the label on offer with the highest score, is not likely to be right, labels that
    are known less well have draws up to as wide as the model says. If labels are not exclusive,
    deviations are those of log-odds: nu times the shrinkage.
    """
    scratch, settings = posterior.scratch, posterior.settings
    v, deviations = scratch.v, scratch.deviations
    constants = settings.constants
    fill_first_deviations(settings.explore, v, deviations)
    if not settings.exclusive:
        for k in range(v.size):
            deviations[k] *= shrinkage(posterior, k)
    if not (settings.exclusive and 0.0 < settings.explore < 1.0):
        return
    least = least_of_unlikely(scratch.least, n_on_offer(offer, scores.size), constants.unlikely)
    # `best` is one of those near. In most rounds there is no other, on offer or not, which a loop
    # over all labels finds out faster than one over those on offer.
    if (
        n_near(constants.doubt, least, scores, v, best, None) > 1
        and n_near(constants.doubt, least, scores, v, best, offer) > 1
    ):
        wrong = doubt_of_best(constants.doubt, scores, v, best, offer, scratch.g)
        widen(settings.explore, constants.openness, wrong, v, best, deviations)


@lean_kernel
def least_of_unlikely(last, n, unlikely):
    """Return ln(n / unlikely), computed anew only where n is not the last one."""
    if last[N_ON_OFFER] != n:
        last[N_ON_OFFER], last[LEAST] = n, math.log(n / unlikely)
    return last[LEAST]


@lean_kernel
def fill_first_deviations(nu, v, deviations):
    """Fill nu sqrt(v_k) for all labels, which is faster than for those on offer."""
    no_alias()
    for k in range(v.size):
        deviations[k] = nu * math.sqrt(v[k])


@lean_kernel
def n_near(doubt, least, scores, v, best, offer):
    """Return how many scores are less than `least` deviations from that of `best`, it included."""
    n = 0
    for i in range(n_on_offer(offer, scores.size)):
        k = nth_on_offer(offer, i, scores.size)
        gap = scores[best] - scores[k]
        n += gap * gap <= least * least * (1.0 + doubt * (v[best] + v[k]))
    return n


@lean_kernel
def doubt_of_best(doubt, scores, v, best, offer, z):
    """Return the probability that another label than `best` is the right one; z is scratch."""
    no_alias()
    for k in range(v.size):
        z[k] = (scores[k] - scores[best]) / math.sqrt(1.0 + doubt * (v[best] + v[k]))
    likely = 0.0
    for i in range(n_on_offer(offer, scores.size)):
        k = nth_on_offer(offer, i, scores.size)
        likely += math.exp(z[k])
    return 1.0 - 1.0 / likely


@lean_kernel
def widen(nu, openness, wrong, v, best, deviations):
    """Fill the deviations where `best` is wrong with the probability `wrong`."""
    no_alias()
    for k in range(v.size):
        open_to = wrong * (1.0 - v[best] / v[k]) if v[k] > v[best] else 0.0
        deviations[k] = (nu + (1.0 - nu) * open_to**openness) * math.sqrt(v[k])


# Lessons


@lean_kernel
def lesson(posterior, scores, rounds, label, correct):
    """Fill the gradient g and the information f of each class's score; return whether to update.

    `predict` has filled p.
    """
    if posterior.settings.exclusive:
        constants = posterior.settings.constants
        return exclusive_lesson(posterior.scratch, constants, scores, rounds, label, correct)
    return independent_lesson(posterior, scores, label, correct)


@lean_kernel
def share_of_right(correct):
    """Return the part of feedback that says right: 1 or 0 for a bit, a grade itself."""
    if 0 < correct < 1:
        return correct
    return 1.0 if 0 < correct < NONE_RIGHT else 0.0


@lean_kernel
def likelihood(q, correct):
    """Return the likelihood of feedback about a label that is right with probability q."""
    if 0 < correct < 1:
        return q**correct * (1.0 - q) ** (1.0 - correct)
    return q if 0 < correct < NONE_RIGHT else 1.0 - q


@lean_kernel
def independent_lesson(posterior, scores, label, correct):
    """`lesson` where each label is right on its own: a bit teaches nothing about other labels.

    q = sigma(z) approximates the mean of sigma over the posterior of the score: the probability of
    the bit. The derivatives of its logarithm by the score, g = (q - bit) c and h = q (1 - q) c^2,
    give the mean and the variance after the bit, s - v g and v - v^2 h (assumed density filtering),
    of the label's own part and of the level. The same variance follows from the information
    h / (1 - v h).
    """
    scratch, level = posterior.scratch, posterior.level
    v, g, f, doubt = scratch.v, scratch.g, scratch.f, posterior.settings.constants.doubt
    bit = share_of_right(correct)
    for k in range(g.size):
        g[k] = f[k] = 0.0
        if (k == label or correct == NONE_RIGHT) and not scratch.retired[k]:
            c = 1.0 / math.sqrt(1.0 + doubt * (v[k] + level[VARIANCE]))
            q = logistic(c * (scores[k] + level[MEAN]))
            slope, curvature = (q - bit) * c, q * (1.0 - q) * c * c
            g[k] = slope * scratch.share[k]
            f[k] = curvature / (1.0 - curvature * v[k])
            level[MEAN] -= slope * level[VARIANCE]
            level[VARIANCE] -= curvature * level[VARIANCE] * level[VARIANCE]
    return True


@lean_kernel
def exclusive_lesson(scratch, constants, scores, rounds, label, correct):
    """`lesson` where exactly one label is right.

    A bit has the likelihood q = p[label] if the label is right, 1 - q if not: then another one is
    right, on offer or not. The surer the model was, the likelier it did not foresee which. A grade
    is the mean over a bit that is right with this probability: the gradient is linear in the bit,
    and the information does not depend on it. A right label that was foreseen teaches nothing.
    """
    v, g, f, p = scratch.v, scratch.g, scratch.f, scratch.p
    others, q = sum_of_others(p, label), p[label]
    right = share_of_right(correct)
    wrong = 1.0 - right
    if others < constants.sure:
        if wrong == 0.0:
            return False
        right = 0.0
    others = max(others, 1e-9)
    if correct == TOLD:
        right = implicit_share(q, others, v[label] / (1.0 + constants.doubt * v[label]))
    t = rounds + 1.0
    weight = constants.information_weight * t / (t + constants.settling)
    unforeseen = constants.unforeseen / (constants.unforeseen + others)
    foreseen, any_other = (1.0 - unforeseen) / others, unforeseen / n_others(scratch.retired)
    falls = 0.0
    if wrong > 0.0:
        alone = 1.0 / (1.0 + math.exp(-f[label] * scores[label]))
        falls = wrong * max(q, constants.least_lesson * alone)
    # - d log likelihood / d score_k, and the information of one bit, (dq)^2 / (q (1 - q)).
    of_label = f[label]
    for k in range(p.size):
        rises = 0.0 if scratch.retired[k] else foreseen * p[k] + any_other
        g[k] = (right * p[k] - wrong * q * rises) * f[k] * scratch.share[k]
        f[k] = q * p[k] * p[k] / others * (weight * f[k] * f[k])
    g[label] = (falls - right * others) * of_label * scratch.share[label]
    f[label] = q * others * (weight * of_label * of_label)
    return True


@lean_kernel
def sum_of_others(p, label):
    """Return the probability of all labels but one, exact also where it is small."""
    others = 0.0
    for k in range(p.size):
        if k != label:
            others += p[k]
    return others


@lean_kernel
def n_others(retired):
    """Return how many other labels there are that are not retired; at least one."""
    n = 0
    for k in range(retired.size):
        n += not retired[k]
    return max(1, n - 1)


@lean_kernel
def implicit_share(q, others, v):
    """Return r / (1 - q), where r is the 1 - q that holds after the score has moved by r v.

    The root of r = others / (others + q e^{r v}) in [0, 1], by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(30):
        r = 0.5 * (low + high)
        if r * (1.0 + q / others * math.exp(min(r * v, 700.0))) < 1.0:
            low = r
        else:
            high = r
    return min(1.0, low / others)


def learn_posterior(posterior, x, scores, rounds, label, correct):
    """Take one step of an online Bayes rule, kept normal; return whether anything was updated.

    x is the last one that `score_posterior` was given, and `predict` was called after that.
    """
    if isinstance(posterior.S, np.ndarray):
        return learn_diagonal(posterior, x, scores, rounds, label, correct)
    return learn_full(posterior, x, scores, rounds, label, correct)


@chosen_by_type(learn_posterior)
def _learn_posterior(posterior, x, scores, rounds, label, correct):
    if isinstance(posterior.types[posterior.fields.index("S")], Array):
        return lambda posterior, x, scores, rounds, label, correct: learn_diagonal(
            posterior, x, scores, rounds, label, correct
        )
    return lambda posterior, x, scores, rounds, label, correct: learn_full(
        posterior, x, scores, rounds, label, correct
    )


@lean_kernel
def learn_diagonal(posterior, x, scores, rounds, label, correct):
    """`learn_posterior` with variances: features count as independent."""
    scratch, age = posterior.scratch, posterior.age[()]
    constants = posterior.settings.constants
    count_length(posterior, x)
    if not lesson(posterior, scores, rounds, label, correct):
        return False
    informed, n = scratch.informed, 0
    for k in range(scores.size):
        if scratch.f[k] * scratch.v[k] > constants.negligible * scratch.share[k]:
            informed[n] = k
            n += 1
    update_diagonal(
        posterior.W, posterior.S, age, x.indices, scratch.x, scratch.g, scratch.f, informed, n
    )
    return True


@lean_kernel
def update_diagonal(W, S, age, indices, x, g, f, informed, n):
    """Do w_k -= g_k S_k x, and S_k^{-1} += f_k x x' for those informed, with only the diagonals."""
    no_alias()
    for i in range(indices.size):
        j, step, square = indices[i], age * x[i], age * (x[i] * x[i])
        for k in range(g.size):
            W[j, k] -= step * g[k] * S[j, k]
        for m in range(n):
            k = informed[m]
            S[j, k] /= 1.0 + square * f[k] * S[j, k]


@lean_kernel
def learn_full(posterior, x, scores, rounds, label, correct):
    """`learn_posterior` with covariance matrices."""
    scratch, age = posterior.scratch, posterior.age[()]
    constants = posterior.settings.constants
    count_length(posterior, x)
    if not lesson(posterior, scores, rounds, label, correct):
        return False
    for k in range(scores.size):
        Sx, f = scratch.Sx[k], scratch.f[k]
        step = age * scratch.g[k]
        for j in range(Sx.size):
            posterior.W[j, k] -= step * Sx[j]
        v = scratch.v[k] / scratch.share[k]
        if f * v > constants.negligible:
            subtract(lean_class_inverse(posterior.S, k), Sx, age * f / (1.0 + f * v))
    return True


@lean_kernel
def grow_older(posterior, since):
    """Widen the posterior after a round, `since` rounds after the last change of everything."""
    forgetting, young = posterior.settings.forgetting, posterior.settings.constants.young
    if forgetting > 0.0:
        older = (since + young) / (since - 1 + young)
        posterior.age[()] = min(posterior.age[()] * older**forgetting, OLDEST)
        variance = posterior.level[VARIANCE] * older**forgetting
        posterior.level[VARIANCE] = min(variance, LEVEL_VARIANCE)


# Changes


@lean_kernel
def score_by_former(posterior, x, scores):
    """Fill the scores by the former weights; x is what `score_posterior` was given last."""
    products(posterior.former, with_values(x, posterior.scratch.x), scores)


@lean_kernel
def predict_by_former(posterior, scores):
    """Fill p with the probability that each label is right, by scores of `score_by_former`."""
    scratch = posterior.scratch
    for k in range(scores.size):
        scores[k] = -math.inf if scratch.retired[k] else scores[k] + posterior.level[MEAN]
    fill_right(posterior.settings.exclusive, scores, scratch.p)


@lean_kernel
def exchange_former(posterior):
    """Exchange the weights with those from before the last change of everything."""
    W, former = posterior.W, posterior.former
    for j in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[j, k], former[j, k] = former[j, k], W[j, k]


@lean_kernel
def doubt_level(posterior):
    """Make the posterior of the level as wide as at first, as everything has changed."""
    if not posterior.settings.exclusive:
        posterior.level[VARIANCE] = LEVEL_VARIANCE


def forget_class(posterior, k):
    """Forget class k: its weights and variances are as before the first round."""
    if isinstance(posterior.S, np.ndarray):
        forget_diagonal(posterior, k)
    else:
        forget_full(posterior, k)


@chosen_by_type(forget_class)
def _forget_class(posterior, k):
    if isinstance(posterior.types[posterior.fields.index("S")], Array):
        return lambda posterior, k: forget_diagonal(posterior, k)
    return lambda posterior, k: forget_full(posterior, k)


@lean_kernel
def forget_diagonal(posterior, k):
    """`forget_class` with variances."""
    last = posterior.W.shape[0] - 1
    for j in range(last + 1):
        posterior.W[j, k] = 0.0
        posterior.S[j, k] = first_variance(posterior, j, last)


@lean_kernel
def forget_full(posterior, k):
    """`forget_class` with covariance matrices."""
    S = posterior.S.base[k]
    last = S.shape[0] - 1
    for i in range(last + 1):
        posterior.W[i, k] = 0.0
        for j in range(last + 1):
            S[i, j] = first_variance(posterior, i, last) if i == j else 0.0
    posterior.S.n_pending[k, 0] = 0


@lean_kernel
def first_variance(posterior, j, last):
    """Return what S has for weight j before the first round, at the present age."""
    settings = posterior.settings
    return (settings.widest_constant if j == last else settings.widest) / posterior.age[()]


# Another prior


def change_prior(posterior, first, end, which, before, now):
    """Change the prior's precision from `before` * a to `now` * a, for some classes.

    These are the classes from `first` to `end` - 1 that `which` marks.

    The evidence of the bits stays the same: for each weight, its precision minus that of the prior,
    and the product of its precision and its mean. With covariance matrices the prior stays.
    """
    if isinstance(posterior.S, np.ndarray):
        change_prior_diagonal(posterior, first, end, which, before, now)


@chosen_by_type(change_prior)
def _change_prior(posterior, first, end, which, before, now):
    if isinstance(posterior.types[posterior.fields.index("S")], Array):
        return lambda posterior, first, end, which, before, now: change_prior_diagonal(
            posterior, first, end, which, before, now
        )
    return lambda posterior, first, end, which, before, now: None


@lean_kernel
def change_prior_diagonal(posterior, first, end, which, before, now):
    """`change_prior` with variances."""
    W, S, last = posterior.W, posterior.S, posterior.W.shape[0] - 1
    for j in range(last + 1):
        widest = first_variance(posterior, j, last)
        for k in range(first, end):
            if which[k]:
                # Forgetting may have widened it.
                variance = min(S[j, k], widest / before)
                S[j, k] = variance / (1.0 + (now - before) * variance / widest)
                W[j, k] *= S[j, k] / variance
