"""How a label is chosen by a posterior: by Thompson sampling, with draws that widen in doubt.

The kernels take a posterior whose scores `onebit.numerics.posterior.score_posterior` has filled.
"""

from __future__ import annotations

import math

from onebit.core.compiling import lean_kernel, no_alias
from onebit.core.offer import n_on_offer, nth_on_offer
from onebit.numerics.argmax import argmax
from onebit.numerics.exponential import exponential
from onebit.numerics.posterior import LEAST, N_ON_OFFER, shrinkage
from onebit.numerics.softmax import logistic
from onebit.numerics.winning import fill_winning


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
        likely += exponential(z[k])
    return 1.0 - 1.0 / likely


@lean_kernel
def widen(nu, openness, wrong, v, best, deviations):
    """Fill the deviations where `best` is wrong with the probability `wrong`."""
    no_alias()
    for k in range(v.size):
        open_to = wrong * (1.0 - v[best] / v[k]) if v[k] > v[best] else 0.0
        deviations[k] = (nu + (1.0 - nu) * open_to**openness) * math.sqrt(v[k])
