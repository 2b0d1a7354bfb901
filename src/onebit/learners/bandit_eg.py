"""Bandit EG+-: exponentiated gradient on Banditron's estimator."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import LINEAR, Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.ranges import PART, POSITIVE
from onebit.core.state import Amount, Field, Generator, Share, Variances, Weights
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import gamma_greedy
from onebit.numerics.linear import Scaled, new_scaled, scaled_scores
from onebit.theory import bounds

_LARGEST_TOTAL = 1e100
"""The largest sum of masses before all are taken relative to a higher shift."""

_LEAST_SHARE_OF_PEAK = 1e-12
"""The least share of its peak that a sum, kept in twice the precision, may fall to."""


class State(NamedTuple):
    """Exponents, and the weights that follow from them.

    Attributes
    ----------
    theta
        Exponents: the sum of Banditron's updates, times eta.
    W
        Weights, radius (w+ - w-) = radius / total (e^theta - e^-theta).
    mass
        e^(theta - shift) + e^(-theta - shift), of the shape of theta.
    total
        The sum of the mass, in two parts: the second has what rounding takes from the first.
    peak
        The largest total since the shift was chosen.
    shift
        The exponent that all masses are taken relative to.
    gamma
        Share of the rounds that explore.
    """

    theta: Weights
    W: Scaled
    mass: Variances
    total: Annotated[np.ndarray, Field(2)]
    peak: Amount
    shift: Amount
    eta: float
    radius: float
    gamma: Share
    rng: Generator

    def check(self) -> None:
        """Check that all other arrays follow from the exponents and the shift."""
        size, total = np.abs(self.theta), self.total.sum()
        with np.errstate(all="ignore"):
            larger = np.exp(size - self.shift)
            mass = larger * (1.0 + np.exp(-2.0 * size))
            V = np.copysign(larger * np.expm1(-2.0 * size), self.theta)
            scale = self.radius / total
        for name, found, expected in [
            ("mass", self.mass, mass),
            ("W.V", self.W.V, V),
            ("total", total, mass.sum()),
            ("W.scale", self.W.scale, scale),
        ]:
            if not np.allclose(found, expected, rtol=1e-6, atol=1e-250):
                raise ValueError(f"{name} does not follow from theta and shift")
        if not total <= self.peak * (1.0 + 1e-6):
            raise ValueError(f"peak is {self.peak}, below the total {total}")

    def begin_classes(self, first: int) -> None:
        """Add the mass of the weights of new classes, which are zero."""
        mass = 2.0 * math.exp(-self.shift)
        self.mass[:, first:] = mass
        self.total[:] = added.py_func(*self.total, mass * self.mass[:, first:].size)
        self.peak[()] = max(self.peak, self.total.sum())
        self.W.scale[()] = self.radius / self.total.sum()


@lean_kernel
def learn(state, x, scores, label, probability, offer, correct):
    """``theta += eta U~``; U~, row r: x (1[correct] 1[label = r] / p_r - 1[y_hat = r])."""
    y_hat = argmax(scores, offer)
    found = state.eta / probability if correct else 0.0
    if label == y_hat:
        move(state, x, y_hat, found - state.eta)
    else:
        move(state, x, y_hat, -state.eta)
        move(state, x, label, found)
    normalise(state)
    return True


@lean_kernel
def move(state, x, k, amount):
    """Add `amount` times x to the exponents of class `k`."""
    unit = math.exp(-state.shift[()])
    high, low = state.total[0], state.total[1]  # in registers, as each sum waits for the last
    for i in range(x.indices.size):
        j, change = x.indices[i], amount * x.values[i]
        if change == 0.0:
            continue
        state.theta[j, k] += change
        high, low = added(high, low, -state.mass[j, k])
        state.W.V[j, k] = exponentiate(state, j, k, unit)
        high, low = added(high, low, state.mass[j, k])
    state.total[0], state.total[1] = high, low


@lean_kernel
def exponentiate(state, j, k, unit):
    """Set the mass of an exponent, and return e^(theta - shift) - e^(-theta - shift).

    `unit` is e^-shift. With t = e^-size the two are unit / t and unit t, unless that overflows.
    """
    theta = state.theta[j, k]
    size = abs(theta)
    t = math.exp(-size)
    larger = unit / t if size + state.shift[()] < 600.0 else math.exp(size - state.shift[()])
    state.mass[j, k] = larger * (1.0 + t * t)
    # Of a small exponent, 1 - t would have few digits.
    less = larger * t * twice_sinh(size) if size < 0.5 else larger * (1.0 - t) * (1.0 + t)
    return math.copysign(less, theta)


@lean_kernel
def twice_sinh(z):
    """Return e^z - e^-z by its series, for z up to 0.5."""
    s = z * z
    rest = s / 20.0 * (1.0 + s / 42.0 * (1.0 + s / 72.0 * (1.0 + s / 110.0 * (1.0 + s / 156.0))))
    return 2.0 * z * (1.0 + s / 6.0 * (1.0 + rest))


@lean_kernel
def added(high, low, value):
    """Return a sum in two parts with one more value: the second has what rounding takes."""
    total = high + value
    rest = total - high
    return total, low + ((high - (total - rest)) + (value - rest))


@lean_kernel
def normalise(state):
    """Divide by the sum of all masses, once that is neither too large nor lost in rounding."""
    total = state.total[0] + state.total[1]
    state.peak[()] = max(state.peak[()], total)
    if not _LEAST_SHARE_OF_PEAK * state.peak[()] <= total <= _LARGEST_TOTAL:  # or if it is NaN
        total = shift_and_sum(state)
    state.W.scale[()] = state.radius / total


@kernel
def shift_and_sum(state):
    """Take all masses relative to the largest exponent, and return their sum."""
    theta, W = state.theta, state.W
    state.shift[()] = max(theta.max(), -theta.min())
    high, low = 0.0, 0.0
    unit = math.exp(-state.shift[()])
    for j in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            W.V[j, k] = exponentiate(state, j, k, unit)
            high, low = added(high, low, state.mass[j, k])
    state.total[0], state.total[1] = high, low
    state.peak[()] = high + low
    return state.peak[()]


KERNELS = Kernels("bandit_eg", scaled_scores, gamma_greedy, learn)


class BanditEG(Learner):
    """Bandit EG+-: Banditron with multiplicative updates, for few relevant among many features.

    It explores as Banditron does and estimates the same update, but sums it in the exponents of two
    sets of positive weights, w+ and w-, that share one unit of mass: W = radius (w+ - w-), with
    (w+, w-) proportional to exp(+theta) and exp(-theta) over all features and classes. Features
    that keep being right come to outweigh all others.

    Parameters
    ----------
    eta : float > 0, default=0.1
        Learning rate. As it goes to zero the decisions become those of Banditron.
    gamma : float in (0, 1], default=0.05
        Share of the rounds that choose a random label.
    radius : float > 0, default=1.0
        Bound on the sum of the absolute weights. It scales the scores; decisions do not depend on
        it, because neither the greedy label nor the estimated update do.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    Wang, Jin and Valizadegan (2010) derive bandit learners from potentials, W = grad Phi(theta)
    with theta the sum of Banditron's updates; one of them is exponentiated gradient. This is a
    construction of that kind, reconstructed from accounts that do not say whether weights are
    normalised by class or jointly, nor how they become negative; it may differ from theirs.

    What holds for this one follows from the potential ln sum (e^theta + e^-theta). By Hoeffding's
    lemma a round raises it by at most eta <W, U~> / radius + eta^2 ||U~||_inf^2 / 2. It starts at
    ln(2 K d), and it is at least <V, theta> / B for any V whose absolute weights sum to B. With
    |x_j| <= X, hinge loss L of V and M mistakes of the greedy label, all in expectation,

        M <= L + B ln(2 K d) / eta + (B eta X^2 / 2) ((K / gamma + 1) M + gamma T / (1 - gamma)),

    and exploration adds at most gamma T mistakes: of order T^(2/3) with the best eta and gamma, and
    sqrt(T) if L = 0. The dimension enters by its logarithm only.

    Only the exponents of an example's features change in a round, so the sum over all of them is
    kept up to date by differences, in twice the usual precision. It is recomputed, relative to the
    largest exponent, when it has grown by a hundred or fallen by twelve orders of magnitude, which
    is rare unless single updates are as large as that. A weight e^700 times smaller than the
    largest is zero.

    References
    ----------
    S. Wang, R. Jin and H. Valizadegan. A potential-based framework for online multi-class learning
    with partial feedback. AISTATS 2010.
    J. Kivinen and M. K. Warmuth. Exponentiated gradient versus gradient descent for linear
    predictors. Information and Computation 132, 1997: EG+-.

    Examples
    --------
    >>> from onebit import BanditEG, Banditron, play, streams
    >>> X, y = streams.strongly_separable(20_000, seed=0)  # 9 of 400 features are relevant
    >>> play(BanditEG(random_state=0), X, y).n_mistakes
    2734
    >>> play(Banditron(random_state=0), X, y).n_mistakes
    9291
    """

    reference = "EG+- on the estimator of Kakade et al. 2008"
    cost = Cost(LINEAR)
    bound = bounds.BANDIT_EG

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "eta": [POSITIVE],
        "gamma": [PART],
        "radius": [POSITIVE],
    }

    def __init__(
        self,
        eta: float = 0.1,
        gamma: float = 0.05,
        radius: float = 1.0,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.eta = eta
        self.gamma = gamma
        self.radius = radius
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        W = new_scaled(n_features, n_classes)
        total = 2.0 * W.V.size
        W.scale[()] = self.radius / total
        return KERNELS, State(
            theta=np.zeros_like(W.V),
            W=W,
            mass=np.full_like(W.V, 2.0),
            total=np.array([total, 0.0]),
            peak=np.array(total),
            shift=np.zeros(()),
            eta=float(self.eta),
            radius=float(self.radius),
            gamma=np.array(float(self.gamma)),
            rng=rng,
        )
