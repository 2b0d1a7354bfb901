"""A model of which labels are right, with a Gaussian posterior over its weights.

If labels are exclusive, exactly one is right, label k with probability softmax(W x)_k. Otherwise
each label is right on its own, with probability sigma(b + w_k . x), sigma the logistic function:
several labels may be right, or none. The level b is the same for all labels. Each bit updates the
posterior; to choose a label, the score of each one is drawn from it, and the highest wins (Thompson
sampling). `SoftmaxThompson` and `LogisticThompson` have the formulas in their notes; every model of
`OneBitClassifier` is one of these, on its own view of x.

Covariances are kept for each class on its own: their diagonals, or whole matrices. The kernels
that take a posterior are compiled for the form that it has. Those that score and predict are here;
`posterior_policy` chooses labels, `posterior_lessons` learns, `posterior_changes` forgets.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba.core.types import Array

from onebit.core.compiling import chosen_by_type, lean_kernel
from onebit.core.example import INDEX
from onebit.core.state import Amount, Field, Within
from onebit.numerics import tuning
from onebit.numerics.linear import fill_unit, norm, products, with_values
from onebit.numerics.second_order import (
    Inverse,
    fill_times,
    inner,
    lean_class_inverse,
    new_inverses,
)
from onebit.numerics.softmax import logistic, softmax
from onebit.numerics.tuning import PosteriorConstants
from onebit.numerics.winning import ROOM

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
    variances = first_variances(settings, n_inputs)
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


def first_variances(settings: PosteriorSettings, n_inputs: int) -> np.ndarray:
    """Return the variance of each weight of a class before the first round."""
    variances = np.full(n_inputs, settings.widest)
    variances[-1:] = settings.widest_constant
    return variances


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
    scratch = posterior.scratch
    normalise(posterior, x)
    products(posterior.W, with_values(x, scratch.x), scores)
    products(posterior.S, with_values(x, scratch.squares), scratch.v)
    end_score(scratch, posterior.age[()], posterior.settings.widest, scores)


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
        scratch.v[k] = max(0.0, inner(unit, scratch.Sx[k]))
    end_score(scratch, posterior.age[()], posterior.settings.widest, scores)


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
def end_score(scratch, age, widest, scores):
    """Widen variances by the age, up to those of the prior; mask retired labels."""
    v, share, widest = scratch.v, scratch.share, widest * scratch.stretch[0]
    for k in range(scores.size):
        wide = age * v[k]
        share[k] = widest / wide if wide > widest else 1.0
        v[k] = min(wide, widest)
    for k in range(scores.size):
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
