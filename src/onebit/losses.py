"""The surrogate losses and their gradients, as the papers define them.

Each loss is a function of the scores s = Wx and the true label y that is at least the zero-one loss
1[argmax s != y], except `log_loss`, which is ln 2 times such a loss. All but `zero_one` and
`gaptron_hinge` are convex. `of` returns a loss by its name, for one example or many:

>>> from onebit import losses
>>> hinge = losses.of("hinge")
>>> hinge([[0.2, 0.9, 0.0], [1.0, 3.0, 0.5]], [1, 0])
array([0.3, 3. ])
>>> hinge.gradient([0.2, 0.9, 0.0], 1)
array([ 1., -1.,  0.])

For compiled code each loss has up to three kernels:

``loss(scores, y)``
    its value;
``loss_gradient(scores, y, g, offer=None) -> changed``
    fill g with a subgradient with respect to the scores, so that g (x) x is one with respect to the
    weights; return False if it is zero;
``loss_gap(scores, offer=None)``
    Gaptron's gap map a in [0, 1]: the probability with which the decision may be uniformly
    random at no cost, as the surrogate loss exceeds the probability of a mistake by enough.

With m_y = s_y - max over k != y of s_k, the margin of label y, the margin of the greedy label is
m* = max over k of m_k >= 0. A margin loss is phi(m_y), with phi convex and decreasing to zero.

Gradients and gap maps take the labels on offer, see `onebit.core.offer`: the loss is then that of a
problem with these labels only.
"""

from __future__ import annotations

import math
from functools import cache, cached_property
from typing import Any

import numpy as np

from onebit.core.compiling import compiled, lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.numerics.argmax import argmax, argmax_except
from onebit.numerics.softmax import softmax

LN2 = math.log(2.0)


@lean_kernel
def zero_one(scores, y):
    """Return 1 if another label has a score at least as high, else 0: a tie is a mistake."""
    return 1.0 if margin(scores, y) <= 0.0 else 0.0


@lean_kernel
def zero_one_gradient(scores, y, g):
    """Fill g with zeros: the loss is flat wherever it has a gradient."""
    g[:] = 0.0
    return False


@lean_kernel
def margin(scores, y, offer=None):
    """Return m_y, the lead of label `y` over the best other label; infinity if there is none."""
    best = argmax_except(scores, y, offer)
    return scores[y] - scores[best] if best >= 0 else math.inf


@lean_kernel
def log_loss(scores, y):
    """Return -ln sigma_y, where sigma is the softmax of the scores: `logistic`, but in nats."""
    y_star = argmax(scores)
    return scores[y_star] - scores[y] + math.log1p(_odds_against(scores, y_star))


@lean_kernel
def log_loss_gradient(scores, y, g, offer=None):
    """Fill g with sigma - e_y, the gradient of -ln sigma_y."""
    softmax(scores, 1.0, g, offer)
    # sigma_y - 1 would cancel where sigma_y is near one.
    others = 0.0
    for k in range(g.size):
        if k != y:
            others += g[k]
    g[y] = -others
    return others > 0.0


@lean_kernel
def logistic(scores, y):
    """Return -log2 sigma_y, where sigma is the softmax of the scores."""
    return log_loss(scores, y) / LN2


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


# The eta family of SOBA, from the hinge, eta = 0, to the squared hinge, eta = 1.


@lean_kernel
def eta_phi(m, eta):
    """Return 1 - 2 m / (2 - eta) + eta m^2 / (2 - eta) if m <= 1, else 0."""
    return (1.0 - m) * (1.0 - eta * m / (2.0 - eta)) if m < 1.0 else 0.0


@lean_kernel
def eta_slope(m, eta):
    """Return -phi'(m) for m <= 1; at 1 from the left."""
    return 2.0 * (1.0 - eta * m) / (2.0 - eta)


@lean_kernel
def eta_bend(m, eta):
    """Return -phi''(m) for m < 1."""
    return -2.0 * eta / (2.0 - eta)


@lean_kernel
def eta_loss(scores, y, eta):
    """Return phi(m_y), which is max{1 - m_y, 0} for eta = 0 and its square for eta = 1."""
    return eta_phi(margin(scores, y), eta)


@lean_kernel
def eta_loss_gradient(scores, y, eta, g):
    """Fill g with -phi'(m_y) (e_k - e_y), k the best label but y."""
    m = margin(scores, y)
    return fill_margin_gradient(scores, y, eta_slope(m, eta) if m < 1.0 else 0.0, g)


@lean_kernel
def fill_margin_gradient(scores, y, slope, g, offer=None):
    """Fill g with slope (e_k - e_y), k the best label but y."""
    g[:] = 0.0
    if slope == 0.0:
        return False
    g[argmax_except(scores, y, offer)] = slope
    g[y] = -slope
    return True


@lean_kernel
def hinge(scores, y):
    """Return max{1 - m_y, 0}, the multiclass hinge loss of Crammer and Singer."""
    return eta_loss(scores, y, 0.0)


@lean_kernel
def hinge_counts(scores, y, offer=None):
    """Return whether a round has a hinge loss in Gaptron, by the learner's scores in that round.

    By (2) of the Gaptron paper the loss of round t is `hinge` for all weights, or zero for all
    weights if y*_t = y_t and m*_t > beta, both of W_t, with beta = 1/K. As a label with a positive
    margin is the greedy one, that is m_y > beta.
    """
    return margin(scores, y, offer) <= 1.0 / n_on_offer(offer, scores.size)


@lean_kernel
def gaptron_hinge(scores, y):
    """Return Gaptron's variant of the hinge, with the case distinction at the same weights."""
    return hinge(scores, y) if hinge_counts(scores, y) else 0.0


@lean_kernel
def hinge_gradient(scores, y, g, offer=None):
    """Fill g with e_k - e_y, k the best label but y; with zero where the hinge does not count."""
    slope = 1.0 if hinge_counts(scores, y, offer) else 0.0
    return fill_margin_gradient(scores, y, slope, g, offer)


@lean_kernel
def hinge_gap(scores, offer=None):
    """Return 1 - m* if m* <= beta = 1/K, else 0."""
    m_star = margin(scores, argmax(scores, offer), offer)
    return 1.0 - m_star if m_star <= 1.0 / n_on_offer(offer, scores.size) else 0.0


@lean_kernel
def smooth_hinge_phi(m):
    """Return 1 - 2 m if m <= 0, else (max{1 - m, 0})^2."""
    return 1.0 - 2.0 * m if m <= 0.0 else max(1.0 - m, 0.0) ** 2


@lean_kernel
def smooth_hinge_slope(m):
    """Return -phi'(m) = 2 min{1, max{1 - m, 0}}."""
    return 2.0 * min(1.0, max(1.0 - m, 0.0))


@lean_kernel
def smooth_hinge_bend(m):
    """Return -phi''(m) for m < 1."""
    return -2.0 if m > 0.0 else 0.0


@lean_kernel
def smooth_hinge(scores, y):
    """Return phi(m_y) of the smooth hinge."""
    return smooth_hinge_phi(margin(scores, y))


@lean_kernel
def smooth_hinge_gradient(scores, y, g, offer=None):
    """Fill g with -phi'(m_y) (e_k - e_y), k the best label but y."""
    slope = smooth_hinge_slope(margin(scores, y, offer))
    return fill_margin_gradient(scores, y, slope, g, offer)


@lean_kernel
def smooth_hinge_gap(scores, offer=None):
    """Return (1 - min{1, m*})^2."""
    return (1.0 - min(1.0, margin(scores, argmax(scores, offer), offer))) ** 2


# The public interface


class Loss:
    """A loss by name: its value and its gradient, for one example or many.

    Attributes
    ----------
    name : str
    eta : float or None
        Which of SOBA's family it is: 0 for the hinge, 1 for the squared hinge; None for others.
    alpha : float
        Scores are multiplied by it; one except for the alpha-logistic loss.
    """

    def __init__(self, name: str, eta: float | None = None, alpha: float = 1.0) -> None:
        self.name, self.eta, self.alpha = name, eta, alpha

    def __call__(self, scores: Any, y: Any) -> Any:
        """Return the loss of label y: a number, or one for each row of the scores.

        Parameters
        ----------
        scores : array-like of shape (n_classes,) or (n, n_classes)
        y : int or array-like of shape (n,)
            Positions of the true labels.
        """
        many, labels, one = _checked(scores, y)
        out = np.empty(len(many))
        self._loops[0](self.alpha * many, labels, self.eta or 0.0, out)
        return float(out[0]) if one else out

    def gradient(self, scores: Any, y: Any) -> np.ndarray:
        """Return a subgradient g in the scores, of their shape; g (x) x is one in the weights."""
        many, labels, one = _checked(scores, y)
        out = np.empty_like(many)
        self._loops[1](self.alpha * many, labels, self.eta or 0.0, out)
        out *= self.alpha
        return out[0] if one else out

    @cached_property
    def _loops(self) -> tuple[Any, Any]:
        return _compiled_loops("eta" if self.eta is not None else self.name)

    def __repr__(self) -> str:
        return f"Loss({self})"

    def __str__(self) -> str:
        if self.alpha != 1.0:
            return f"{self.name}, alpha={self.alpha:g}"
        return f"eta={self.eta:g}" if self.name == "eta" else self.name


_KERNELS: dict[str, tuple[Any, Any]] = {
    "zero_one": (zero_one, zero_one_gradient),
    "gaptron_hinge": (gaptron_hinge, hinge_gradient),
    "smooth_hinge": (smooth_hinge, smooth_hinge_gradient),
    "log_loss": (log_loss, log_loss_gradient),
    "logistic": (logistic, logistic_gradient),
    "eta": (eta_loss, eta_loss_gradient),
}

_FIXED_ETA = {"hinge": 0.0, "squared_hinge": 1.0}

NAMES = (*_FIXED_ETA, *_KERNELS)
"""The names that `of` takes. "log_loss" is the logistic loss in nats, "logistic" in bits."""


def of(name: str | Loss, eta: float | None = None, alpha: float | None = None) -> Loss:
    """Return a loss by its name.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    eta : float in [0, 1], optional
        Which of the family, for "eta": 0 is the hinge, 1 the squared hinge.
    alpha : float > 0, optional
        For "logistic": the alpha-logistic loss of Newtron, log2(1 + sum over j != y of
        exp(alpha (s_j - s_y))), as SOBA's Theorem 6 defines it. None is 1.

    Returns
    -------
    Loss

    Examples
    --------
    >>> from onebit import losses
    >>> losses.of("logistic")([0.0, 0.0], 1)
    1.0
    >>> losses.of("eta", 0.5)([0.0, -2.0, 0.5], 0)
    1.75
    >>> round(losses.of("logistic", alpha=2.0)([0.0, -1.0], 0), 3)
    0.183
    """
    if isinstance(name, Loss):
        return name
    if name not in NAMES:
        raise ValueError(f"no loss {name!r}: there are {', '.join(NAMES)}")
    if (name == "eta") != (eta is not None):
        raise ValueError(f"eta goes with the loss 'eta', and must be given then; got {eta}")
    if eta is not None and not 0.0 <= eta <= 1.0:
        raise ValueError(f"eta is in [0, 1]; got {eta}")
    if alpha is not None and (name != "logistic" or not 0.0 < alpha < np.inf):
        raise ValueError(f"alpha goes with the loss 'logistic', and is positive; got {alpha}")
    return Loss(name, float(eta) if eta is not None else _FIXED_ETA.get(name), float(alpha or 1.0))


def _checked(scores: Any, y: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return scores of shape (n, n_classes), labels of shape (n,), and whether it is one row."""
    s, labels = np.asarray(scores, dtype=np.float64), np.asarray(y)
    if s.ndim not in (1, 2) or labels.ndim != s.ndim - 1 or s.shape[-1] < 2:
        raise ValueError(
            "scores have shape (n_classes,) with one y, or (n, n_classes) with n of them, and at "
            f"least two classes; got {s.shape} and {labels.shape}"
        )
    many, labels = np.ascontiguousarray(np.atleast_2d(s)), np.atleast_1d(labels)
    if len(labels) != len(many):
        raise ValueError(f"{len(many)} rows of scores need as many labels; got {len(labels)}")
    if labels.dtype.kind not in "iu" or (
        labels.size and not 0 <= labels.min() <= labels.max() < many.shape[1]
    ):
        raise ValueError(f"y are positions of labels, 0 to {many.shape[1] - 1}; got {y!r}")
    return many, labels.astype(np.int64), s.ndim == 1


# In the functions below, `compiled` binds these names to the kernels of a loss.
value: Any = None
gradient: Any = None


def _values(scores, y, eta, out):
    for i in range(y.size):
        out[i] = value(scores[i], y[i])


def _gradients(scores, y, eta, out):
    for i in range(y.size):
        gradient(scores[i], y[i], out[i])


def _eta_values(scores, y, eta, out):
    for i in range(y.size):
        out[i] = value(scores[i], y[i], eta)


def _eta_gradients(scores, y, eta, out):
    for i in range(y.size):
        gradient(scores[i], y[i], eta, out[i])


@cache
def _compiled_loops(name: str) -> tuple[Any, Any]:
    templates = (_eta_values, _eta_gradients) if name == "eta" else (_values, _gradients)
    kernels = dict(zip(("value", "gradient"), _KERNELS[name], strict=True))
    return tuple(
        compiled(f"onebit.losses.{name}.{what}", template, nogil=True, **{what: kernels[what]})
        for what, template in zip(kernels, templates, strict=True)
    )
