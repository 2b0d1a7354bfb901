"""What a posterior learns from feedback about one label: a step of an online Bayes rule.

The kernels take a posterior whose scores `onebit.numerics.posterior.score_posterior` has filled,
and its probabilities `predict`.
"""

from __future__ import annotations

import math

import numpy as np
from numba.core.types import Array

from onebit.core.compiling import chosen_by_type, lean_kernel, no_alias
from onebit.numerics.posterior import (
    LEVEL_VARIANCE,
    MEAN,
    NONE_RIGHT,
    TOLD,
    VARIANCE,
    count_length,
)
from onebit.numerics.second_order import lean_class_inverse, subtract
from onebit.numerics.softmax import logistic

OLDEST = 1e100
"""Largest age."""


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
