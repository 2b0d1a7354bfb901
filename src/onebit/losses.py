"""The surrogate losses and their gradients, as the papers define them.

Each loss is a convex function of the scores s = Wx and the true label y that is never below the
mistake 1[argmax s != y]. It has up to three kernels:

``loss(scores, y)``
    its value;
``loss_gradient(scores, y, g, offer=None) -> changed``
    fill g with a subgradient by the scores, so that g (x) x is one by the weights; the answer is
    False if it is zero;
``loss_gap(scores, offer=None)``
    Gaptron's gap map a in [0, 1]: how much of the decision may be left to chance at no cost, as
    the surrogate loss is so much larger than the chance of a mistake.

With m_y = s_y - max over k != y of s_k, the margin of label y, the margin of the greedy label is
m* = max over k of m_k >= 0.

Gradients and gap maps take the labels on offer, see `onebit.core.offer`: the loss is then that of a
problem with these labels alone.
"""

from __future__ import annotations

import math

from onebit.core.compiling import lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.numerics.argmax import argmax, argmax_except
from onebit.numerics.softmax import softmax

LN2 = math.log(2.0)


@lean_kernel
def margin(scores, y, offer=None):
    """Return m_y, the lead of label `y` over the best other label; infinity, if there is none."""
    best = argmax_except(scores, y, offer)
    return scores[y] - scores[best] if best >= 0 else math.inf


@lean_kernel
def log_loss_gradient(scores, y, g, offer=None):
    """Fill g with sigma - e_y, the gradient of -ln sigma_y: `logistic`, but in natural units."""
    softmax(scores, 1.0, g, offer)
    # sigma_y - 1 would lose all its digits where sigma_y is near one.
    others = 0.0
    for k in range(g.size):
        if k != y:
            others += g[k]
    g[y] = -others
    return others > 0.0


def log_loss_exp_concavity(n_classes: int, radius: float, max_norm: float) -> float:
    """Return an alpha > 0 for which exp(alpha ln sigma_y) is concave in W, with sigma that of Wx.

    It holds for ||W||_F <= radius and ||x|| <= max_norm. With S = diag(sigma) - sigma sigma' the
    gradient of -ln sigma_y is (sigma - e_y) (x) x and the Hessian S (x) xx', so that alpha has to
    satisfy alpha (sigma - e_y)(sigma - e_y)' <= S. As S e_y / sigma_y = e_y - sigma, that is
    alpha (1 / sigma_y - 1) <= 1; and 1 / sigma_y - 1, the sum of exp(s_k - s_y) over k != y, is at
    most (K - 1) exp(sqrt(2) radius max_norm), since ||s|| <= radius max_norm.
    """
    return math.exp(-math.sqrt(2.0) * radius * max_norm) / (n_classes - 1)


@lean_kernel
def logistic(scores, y):
    """Return -log2 sigma_y, where sigma is the softmax of the scores."""
    y_star = argmax(scores)
    return (scores[y_star] - scores[y] + math.log1p(_odds_against(scores, y_star))) / LN2


@lean_kernel
def logistic_gradient(scores, y, g, offer=None):
    """Fill g with (sigma - e_y) / ln 2."""
    changed = log_loss_gradient(scores, y, g, offer)
    for k in range(g.size):
        g[k] /= LN2
    return changed


@lean_kernel
def logistic_gap(scores, offer=None):
    """Return 1 - p* if p* >= 1/2, else 1, where p* = max over k of sigma_k."""
    odds = _odds_against(scores, argmax(scores, offer), offer)
    return odds / (1.0 + odds) if odds <= 1.0 else 1.0


@lean_kernel
def _odds_against(scores, y_star, offer=None):
    """Return (1 - sigma_y) / sigma_y for the label with the largest score."""
    odds = 0.0
    for k in on_offer(offer, scores.size):
        if k != y_star:
            odds += math.exp(scores[k] - scores[y_star])
    return odds


@lean_kernel
def hinge(scores, y):
    """Return max{1 - m_y, 0}, the multiclass hinge loss of Crammer and Singer."""
    return max(1.0 - margin(scores, y), 0.0)


@lean_kernel
def hinge_counts(scores, y, offer=None):
    """Tell whether a round has a hinge loss in Gaptron, from the scores the learner had in it.

    By (2) of the Gaptron paper the loss of round t is `hinge` for all weights, or zero for all
    weights if y*_t = y_t and m*_t > beta, both of W_t, with beta = 1/K. As a label with a positive
    margin is the greedy one, that is m_y > beta.
    """
    return margin(scores, y, offer) <= 1.0 / n_on_offer(offer, scores.size)


@lean_kernel
def hinge_gradient(scores, y, g, offer=None):
    """Fill g with e_k - e_y, k the best label but y; with zero where the hinge does not count."""
    g[:] = 0.0
    if not hinge_counts(scores, y, offer):
        return False
    g[argmax_except(scores, y, offer)] = 1.0
    g[y] = -1.0
    return True


@lean_kernel
def hinge_gap(scores, offer=None):
    """Return 1 - m* if m* <= beta = 1/K, else 0."""
    m_star = margin(scores, argmax(scores, offer), offer)
    return 1.0 - m_star if m_star <= 1.0 / n_on_offer(offer, scores.size) else 0.0


@lean_kernel
def smooth_hinge(scores, y):
    """Return 1 - 2 m_y if m_y <= 0, else (max{1 - m_y, 0})^2."""
    m = margin(scores, y)
    return 1.0 - 2.0 * m if m <= 0.0 else max(1.0 - m, 0.0) ** 2


@lean_kernel
def smooth_hinge_gradient(scores, y, g, offer=None):
    """Fill g with 2 (e_k - e_y) min{1, max{1 - m_y, 0}}, k the best label but y."""
    g[:] = 0.0
    k = argmax_except(scores, y, offer)
    if k < 0:
        return False
    slope = 2.0 * min(1.0, max(1.0 - (scores[y] - scores[k]), 0.0))
    g[k] = slope
    g[y] = -slope
    return slope > 0.0


@lean_kernel
def smooth_hinge_gap(scores, offer=None):
    """Return (1 - min{1, m*})^2."""
    return (1.0 - min(1.0, margin(scores, argmax(scores, offer), offer))) ** 2
