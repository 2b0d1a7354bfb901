"""The boosting regression: how far to trust a label, by binary logistic regression.

Given the scores s of K classes and a label l, only one number matters: the log odds of l against
all other labels together, its lead. Algorithm 3 of FOLKLORE's authors turns it into an example with
two features, (half the lead, 1), for FOLKLORE with two classes: l is right, or it is not.

For two classes FOLKLORE, like AIOLI, has a closed form up to one scalar equation: both are the same
recursion with different constants (see `onebit.Aioli`). With two features, its matrix A has three
distinct entries.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from onebit.core import lean_kernel
from onebit.core.state import Field
from onebit.numerics.fixed_point import binary_fixed_point
from onebit.numerics.logistic_surrogate import binary_surrogate, boosting_parameters


class Regressions(NamedTuple):
    """One regression for each weak learner, by `onebit.Aioli`.

    Attributes
    ----------
    A
        A_11, A_12 and A_22.
    b
        As in `onebit.Aioli`.
    c
        Curvature of the surrogate losses.
    weight
        Weight of the losses of the two labels that x might have.
    most
        The largest half lead, ln T.
    """

    A: Annotated[np.ndarray, Field("n_learners", 3)]
    b: Annotated[np.ndarray, Field("n_learners", 2)]
    c: float
    weight: float
    most: float

    def check(self) -> None:
        """Check that each A is positive definite."""
        first, mixed, second = self.A.T
        if not ((first > 0.0) & (second > 0.0) & (first * second > mixed * mixed)).all():
            raise ValueError("A is not positive definite")


def new_regressions(n: int, horizon: int, algorithm: str) -> Regressions:
    """Return `n` regressions, before their first round."""
    T = max(horizon, 2)
    if algorithm == "aioli":
        # theta = (2, alpha) has norm at most sqrt(8), and theta . x is at most 2 (1 + ln T).
        c, lambda_, weight = 1.0 / (2.0 * (1.0 + 2.0 * (1.0 + math.log(T)))), 1.0 / 8.0, 1.0
    else:
        c, lambda_, _, _ = boosting_parameters(T, "paper" if algorithm == "paper" else "tight")
        # FOLKLORE is the recursion of AIOLI with half its regularisation.
        lambda_, weight = 0.5 * lambda_, 0.5
    A = np.tile([lambda_, 0.0, lambda_], (n, 1))
    return Regressions(A, np.zeros((n, 2)), c, weight, math.log(T))


@lean_kernel
def log_sum_except(s, label):
    """Return ln of the sum over k != label of e^{s_k}."""
    largest, total = -math.inf, 0.0
    for k in range(s.size):
        if k != label:
            largest = max(largest, s[k])
    for k in range(s.size):
        if k != label:
            total += math.exp(s[k] - largest)
    return largest + math.log(total)


@lean_kernel
def half_lead(state, s, label, rest):
    """Return half the lead of a label over the rest, at most ln T."""
    return min(max(0.5 * (s[label] - rest), -state.most), state.most)


@lean_kernel
def log_odds(state, i, h):
    """Return u = theta_t . x for x = (h, 1), as `onebit.Aioli` predicts it."""
    first, mixed, second = state.A[i, 0], state.A[i, 1], state.A[i, 2]
    determinant = first * second - mixed * mixed
    v_0, v_1 = (second * h - mixed) / determinant, (first - mixed * h) / determinant
    q = h * v_0 + v_1
    m = -0.5 * (state.b[i, 0] * v_0 + state.b[i, 1] * v_1)
    return binary_fixed_point(m, 0.5 * state.weight * q)


@lean_kernel
def regress(state, i, s, label, predicted):
    """Fill s^ of regression i (Algorithm 3): zeta_1 for the label, zeta_2 for the rest.

    zeta = (u, -u) / 2, and the other labels keep their relative probabilities.
    """
    rest = log_sum_except(s, label)
    u = log_odds(state, i, half_lead(state, s, label, rest))
    for k in range(s.size):
        predicted[k] = s[k] - 0.5 * u - rest
    predicted[label] = 0.5 * u


@lean_kernel
def update_regression(state, i, s, label, truth):
    """Update regression i with whether the label was right."""
    h = half_lead(state, s, label, log_sum_except(s, label))
    bend, g = binary_surrogate(log_odds(state, i, h), truth == label, state.c)
    state.A[i, 0] += bend * h * h
    state.A[i, 1] += bend * h
    state.A[i, 2] += bend
    state.b[i, 0] += g * h
    state.b[i, 1] += g


class BoostingRegression:
    """Algorithm 3: how to combine scores with one more label, with regret of order ln^2 T.

    In each round it gets scores s of K classes and a label l. It competes in logistic loss with s +
    alpha e_l, for the best alpha in [-2, 2] in hindsight. `AdaBoostOLMpp` has one for each weak
    learner. A round costs O(K).

    Parameters
    ----------
    horizon : int >= 1, default=10_000
        T, the number of rounds: leads are clipped at 2 ln T.
    algorithm : {"folklore", "aioli", "paper"}, default="folklore"
        Which binary logistic regression it is based on. "paper" is FOLKLORE with the constants of
        Algorithm 3, B = 2 and R = 1 + ln T.

    Notes
    -----
    By default the constants are those of FOLKLORE for the weights that it actually competes with
    (`onebit.numerics.logistic_surrogate.boosting_parameters`): c is nearly twice as large as with
    the paper's. The regret is at most `onebit.theory.bounds.boosting_regression`.

    The paper has "play s_t", where s^_t is meant, and -1 as the second feature, where its proof has
    1; that changes nothing.

    References
    ----------
    N. Agarwal, S. Kale and J. Zimmert. Efficient methods for online multiclass logistic regression.
    ALT 2022; arXiv:2110.03020. Algorithm 3 and Theorem 13.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit.learners.boosting import BoostingRegression
    >>> regression, s = BoostingRegression(horizon=1_000), np.zeros(3)
    >>> for _ in range(1_000):
    ...     regression.update(s, 2, 2)
    >>> p = np.exp(regression.predict(s, 2))
    >>> (p / p.sum()).round(3).tolist()
    [0.006, 0.006, 0.988]
    """

    def __init__(self, horizon: int = 10_000, algorithm: str = "folklore") -> None:
        self.horizon, self.algorithm = horizon, algorithm
        self._state = new_regressions(1, horizon, algorithm)

    def predict(self, s: Any, label: int) -> np.ndarray:
        """Return s^, logits of K classes.

        Parameters
        ----------
        s : array-like of shape (K,)
        label : int from 0 to K - 1

        Returns
        -------
        ndarray of shape (K,)
        """
        given = np.asarray(s, dtype=np.float64)
        predicted = np.empty(given.size)
        regress(self._state, 0, given, label, predicted)
        return predicted

    def update(self, s: Any, label: int, truth: int) -> None:
        """Learn from a round.

        Parameters
        ----------
        s, label
            As in `predict`.
        truth : int from 0 to K - 1
            The right label.
        """
        update_regression(self._state, 0, np.asarray(s, dtype=np.float64), label, truth)
