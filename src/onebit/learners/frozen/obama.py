"""OBAMA: the aggregating forecaster with one bit of feedback."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import Kernels
from onebit.core.engine import PythonKernels
from onebit.core.ranges import PART, POSITIVE
from onebit.core.state import Generator
from onebit.learners.frozen.aggregating import Aggregating, Forecaster, score
from onebit.numerics.argmax import argmax
from onebit.numerics.sampler import Posterior, new_posterior, observe
from onebit.numerics.softmax import softmax
from onebit.theory import bounds
from onebit.theory.bounds.logistic import obama_mu


class State(NamedTuple):
    """P, the distribution P_t over the weights; mu, the smoothing; eta, the learning rate."""

    P: Posterior
    mu: float
    eta: float
    rng: Generator


def policy(state, x, scores, offer, p):
    """Draw from p_t itself, whose logarithms are the scores, conditional on the labels on offer."""
    softmax.py_func(scores, 1.0, p, offer)
    return int(argmax.py_func(scores, offer))


def learn(state, x, scores, label, probability, offer, correct):
    """Multiply P_t by exp(-eta l~_t(W)), l~_t = 1[yhat_t = y_t] / p_t(y_t) l_t."""
    return correct == 1 and observe(state.P, x, label, state.eta / probability, state.rng)


KERNELS = PythonKernels("obama", score, policy, learn)


class Obama(Forecaster):
    """OBAMA: `Aggregating`, drawing labels from its own prediction and learning from one bit.

    A label is drawn from the smoothed prediction, so every label has probability at least mu / K.
    If it is right, its loss counts, divided by its probability: in expectation over the draws,
    every round then counts in full. If it is wrong, nothing is learned.

    For small problems only, like `Aggregating`: all examples with a right label are kept, and
    resampling, which happens now and then, needs all of them.

    Parameters
    ----------
    B : float > 0, default=1.0
        Largest norm ||w_k|| of a row of the weights.
    mu : float in (0, 1] or "theory", default="theory"
        Each label is chosen with probability at least mu / K. "theory" is the value that the bound
        requires for `horizon` rounds.
    eta : float > 0 or "theory", default="theory"
        Learning rate. "theory" is mu / K: the loss of no round then counts more than once in P_t.
    R : float > 0, default=1.0
        Largest norm ||x|| of an example, for "theory".
    horizon : int >= 1, default=10_000
        T, the expected number of rounds, for "theory".
    n_samples : int >= 2, default=100
        Number of W that the mean is taken over.
    n_sweeps : int in [1, 1000], default=1
        On resampling, the number of moves of each sample in each of K d directions.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples and of the labels.

    Attributes
    ----------
    effective_sample_size_ : float
        As in `Aggregating`.

    Notes
    -----
    With l_t(W) = -ln sigma(W x_t)_{y_t} and smooth_mu(p) = (1 - mu) p + mu / K,

        p_t = smooth_mu(E sigma(W x_t)), W from P_t; yhat_t is drawn from p_t;
        l~_t = 1[yhat_t = y_t] / p_t(y_t) l_t;
        P_t is proportional to exp(-eta sum over s < t of l~_s(W)) where all ||w_k|| <= B.

    For eta = mu / K, eta / p_t(y) <= 1, and (E sigma_y)^a >= E sigma_y^a for a <= 1: so the loss of
    the mean is at most -1/eta ln E e^{-eta l~_t(W)}. From there the derivation in the notes of
    `Aggregating`, with eta l~ for l, shows that the expected number of mistakes, of which the sum
    of -ln p_t(y_t) is an upper bound, is at most the loss of any U with rows of norm at most B plus

        d K^2 / mu (1 + ln max{1, mu T (B R + ln K) / (d K^2)}) - T ln(1 - mu),

    `onebit.theory.bounds.obama`. With C = d K^2 (1 + ln max{1, T (B R + ln K) / (d K^2)}), "theory"
    is mu = min{1/2, sqrt(C / T)}, which makes this O(sqrt(C T)). The bound is for the exact mean;
    here it is taken over samples. The algorithm is reconstructed from later accounts, such as
    Gaptron's, and the bound and the constants were derived anew.

    The theory guards against the worst stream: on benign ones a smaller mu and an eta near 1, which
    is the rate of `Aggregating`, do much better, as below.

    References
    ----------
    D. Foster, S. Kale, H. Luo, M. Mohri and K. Sridharan. Logistic regression: the importance of
    being improper. COLT 2018; arXiv:1803.09349.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import normalize
    >>> from sklearn.utils import shuffle
    >>> from onebit import play
    >>> from onebit.learners import Obama
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> X = normalize(X)
    >>> play(Obama(B=20, horizon=150, random_state=0), X, y).n_mistakes
    77
    >>> play(Obama(B=20, mu=0.1, eta=1, random_state=0), X, y).n_mistakes
    56
    """

    feedback = "bandit"
    bound = bounds.OBAMA
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"mu": 0.1}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Aggregating._parameter_constraints,
        "mu": [PART, StrOptions({"theory"})],
        "eta": [POSITIVE, StrOptions({"theory"})],
        "R": [POSITIVE],
        "horizon": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        B: float = 1.0,
        mu: float | str = "theory",
        eta: float | str = "theory",
        R: float = 1.0,
        horizon: int = 10_000,
        n_samples: int = 100,
        n_sweeps: int = 1,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.B = B
        self.mu = mu
        self.eta = eta
        self.R = R
        self.horizon = horizon
        self.n_samples = n_samples
        self.n_sweeps = n_sweeps
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        B, R = float(self.B), float(self.R)
        if self.mu == "theory":
            mu = obama_mu(self.horizon, n_features, n_classes, B, R)
        else:
            mu = float(self.mu)
        eta = mu / n_classes if self.eta == "theory" else float(self.eta)
        P = new_posterior(self.n_samples, self.n_sweeps, n_features, n_classes, B, rng)
        return KERNELS, State(P, mu, eta, rng)
