"""Vovk's aggregating forecaster for multiclass logistic regression, by sampling."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from onebit.core import Cost, Example, Kernels, ProbabilityLearner
from onebit.core.engine import PythonKernels
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator
from onebit.numerics.exploration import greedy
from onebit.numerics.sampler import (
    Posterior,
    effective_sample_size,
    new_posterior,
    observe,
    predict,
)
from onebit.theory import bounds


class State(NamedTuple):
    """P, the distribution P_t over the weights, and mu, the smoothing."""

    P: Posterior
    mu: float
    rng: Generator


def score(state: State, x: Example, scores: np.ndarray) -> None:
    """Fill z_t = ln smooth_mu(E sigma(W x_t)), W from P_t."""
    predict(state.P, x, state.mu, scores)


def learn(state, x, scores, label, probability, offer, truth):
    """Multiply P_t by exp(-l_t(W))."""
    return observe(state.P, x, truth, 1.0, state.rng)


KERNELS = PythonKernels("aggregating", score, greedy.py_func, learn)


class Forecaster(ProbabilityLearner):
    """What the forecasters that average over samples have in common."""

    reference = "Foster, Kale, Luo, Mohri, Sridharan 2018"
    cost = Cost("n (K d)^2 for each sample, in some rounds n")
    exempt: ClassVar[dict[str, str]] = {
        "check_state_stays_the_same_size": "it renews its samples from all past examples"
    }

    @property
    def effective_sample_size_(self) -> float:
        """Number of equally weighted samples that the current ones are worth."""
        if not self._started:
            raise AttributeError(f"this {type(self).__name__} has not started: it has no samples")
        return effective_sample_size(self._run.state.P)


class Aggregating(Forecaster):
    """Vovk's aggregating forecaster: the mean prediction of all weights, weighted by past losses.

    The prior is uniform over all W whose rows have norm at most `B`; the loss l of a round
    multiplies the weight of W by e^{-l}. The prediction for x is the weighted mean over all W of
    sigma(W x), the softmax. In general no single W gives it: the forecaster is improper, and its
    regret grows only with ln(B), where learners that choose one W need e^B.

    For small problems only: the mean is taken over samples of W, and resampling needs all past
    examples, which are kept. Resampling after n rounds costs n (K d)^2 for each sample. It becomes
    rare, some K d ln(n) / 3 times in all, so the time grows with n and not with its square: 1,000
    rounds of 5 features and 3 classes take a second or two. `Folklore` and `GaussianAggregating`
    keep no examples.

    Parameters
    ----------
    B : float > 0, default=1.0
        Largest norm ||w_k|| of a row of the weights.
    mu : float in [0, 1), default=0.0
        The prediction is (1 - mu) p + mu / K, where p is the mean. This costs at most -ln(1 - mu)
        in a round, and limits the loss of a round to ln(K / mu), even with few samples. For T
        rounds, mu = 1 / T is a good choice.
    n_samples : int >= 2, default=100
        Number of W that the mean is taken over.
    n_sweeps : int in [1, 1000], default=1
        On resampling, the number of moves of each sample in each of K d directions.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples. The forecaster does not explore.

    Attributes
    ----------
    effective_sample_size_ : float
        1 / sum of w_i^2, where w_i are the weights of the samples: the number of equally weighted
        samples that they are worth, between `n_samples` / 2 and `n_samples`. The standard error of
        a probability is about the standard deviation of sigma(W x) over the square root of this
        number. It ignores the correlation of samples that were copies of one another and have not
        moved apart enough: in trials with 5 features and 3 classes, the errors over many seeds were
        those of two thirds to four fifths as many samples.

    Notes
    -----
    With l_t(W) = -ln sigma(W x_t)_{y_t}, the distribution over the weights is

        P_t proportional to exp(-sum over s < t of l_s(W)) where all ||w_k|| <= B,

    and the logits of the prediction are z_t = ln smooth_mu(E sigma(W x_t)), W from P_t. For mu = 0
    their loss is l(z_t, y_t) = -ln E e^{-l_t(W)}, so that the losses of all rounds sum to -ln E
    e^{-L(W)} with L the sum of all l_t and W uniform, as before the first round. From this, the
    regret over any U with rows of norm at most B is at most

        d K (1 + ln max{1, T (B R + ln K) / (d K)}) - T ln(1 - mu),

    `onebit.theory.bounds.aggregating`, if no example has a norm above R. Indeed, the W = (1 - a)
    U + a V, with V uniform, make up a share a^{dK} of all weights, and L(W) <= (1 - a) L(U) + a
    L(V). So -ln E e^{-L(W)} <= d K ln(1 / a) + L(U) + a E L(V), by Jensen's inequality, and E
    L(V) <= T (B R + ln K), as the mean of V x is zero. Take a = d K / (T (B R + ln K)), or 1.

    The bound is for the exact mean. The authors leave open how to sample; `onebit.numerics.sampler`
    says how it is done here. The algorithm is reconstructed from later accounts, such as Gaptron's
    and FOLKLORE's, and the bound was derived anew.

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
    >>> from onebit.learners import Aggregating
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> learner = Aggregating(B=20, random_state=0)
    >>> play(learner, normalize(X), y).n_mistakes
    16
    >>> round(learner.effective_sample_size_)
    90
    """

    bound = bounds.AGGREGATING
    feedback = "full"
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"mu": 0.01}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "B": [POSITIVE],
        "mu": [Interval(Real, 0, 1, closed="left")],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "n_sweeps": [Interval(Integral, 1, 1000, closed="both")],
    }

    def __init__(
        self,
        B: float = 1.0,
        mu: float = 0.0,
        n_samples: int = 100,
        n_sweeps: int = 1,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.B = B
        self.mu = mu
        self.n_samples = n_samples
        self.n_sweeps = n_sweeps
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        P = new_posterior(self.n_samples, self.n_sweeps, n_features, n_classes, float(self.B), rng)
        return KERNELS, State(P, float(self.mu), rng)
