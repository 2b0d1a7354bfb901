"""AIOLI: online logistic regression for two classes, with a regret of order ln T."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import Cost, Kernels, ProbabilityLearner, kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Field, Generator, Within
from onebit.numerics.exploration import greedy
from onebit.numerics.fixed_point import binary_fixed_point
from onebit.numerics.logistic_surrogate import binary_surrogate
from onebit.numerics.second_order import (
    Inverse,
    fill_times,
    inner,
    is_settled,
    new_inverse,
    subtract,
)
from onebit.theory import bounds


class Scratch(NamedTuple):
    """What `score` computes of x.

    Attributes
    ----------
    v
        A^{-1} x.
    q
        x' A^{-1} x.
    hx
        h . x.
    """

    v: np.ndarray
    q: np.ndarray
    hx: np.ndarray


class State(NamedTuple):
    """The sum of the regulariser and the surrogate losses so far, a quadratic function.

    Attributes
    ----------
    A_inv
        A^{-1}, of size d.
    h
        A^{-1} b.
    c
        Curvature of the surrogate losses.
    """

    A_inv: Annotated[Inverse, Within(n="features")]
    h: Annotated[np.ndarray, Field("features")]
    c: float
    scratch: Scratch
    rng: Generator


@kernel
def score(state, x, scores):
    """Fill (-u, u) / 2, where u = theta_t . x solves u = -h . x / 2 - q / 2 tanh(u / 2)."""
    scratch = state.scratch
    fill_times(state.A_inv, x, scratch.v)
    scratch.q[()] = inner(x, scratch.v)
    scratch.hx[()] = inner(x, state.h)
    # q is non-negative up to rounding.
    u = binary_fixed_point(-0.5 * scratch.hx[()], 0.5 * max(scratch.q[()], 0.0))
    scores[0] = -0.5 * u
    scores[1] = 0.5 * u


@kernel
def learn(state, x, scores, label, probability, offer, truth):
    """Add the surrogate of the round: A += c s' xx' and b += (s - 1[y = 1] - 2 c s' u) x.

    s = sigma(u) is the probability of the second class and s' = s (1 - s). Unlike in the paper,
    there is no update where x' A^{-1} x is only rounding error.
    """
    v, q, hx = state.scratch.v, state.scratch.q[()], state.scratch.hx[()]
    if not q > 0.0 or is_settled(state.A_inv, x, v, q):  # x is zero, or known
        return False
    bend, g = binary_surrogate(scores[1] - scores[0], truth == 1, state.c)
    weight = bend / (1.0 + bend * q)
    # h becomes A^{-1} (b + g x), with the new A^{-1}.
    step = g - weight * (hx + g * q)
    for j in range(v.size):
        state.h[j] += step * v[j]
    subtract(state.A_inv, v, weight)
    return True


AIOLI = Kernels("aioli", score, greedy, learn)


class Aioli(ProbabilityLearner):
    """AIOLI: logistic regression for two classes that hedges over both labels before it predicts.

    Its weights theta_t, computed for each x, minimise the sum of a regulariser, a quadratic
    surrogate for the loss of every earlier round, and the losses of both labels that x might have.
    This last part pulls the prediction towards one half where x is new. Because of it the regret
    grows only with `B` and ln T, where proper learners, which choose theta_t before they see x,
    need e^B.

    Parameters
    ----------
    B : float > 0, default=1.0
        Largest norm ||theta|| of the weights it competes with. theta . x is the log odds of the
        second class.
    R : float > 0, default=1.0
        Largest norm ||x|| of an example. Longer ones are learned from, but void the bound.
    regularization : float > 0 or None, default=None
        lambda, the weight of ||theta||^2. None is 1 / B^2.
    classes : array-like, optional
        The labels, two of them. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Not used: it does not explore.

    Notes
    -----
    With y = 1 for the second class and -1 for the first, and l(u, y) = ln(1 + e^{-y u}),

        theta_t = argmin of lambda ||theta||^2 + sum over s < t of l^_s(theta)
                  + l(theta . x_t, 1) + l(theta . x_t, -1),
        l^_s(theta) = l_s + g_s . (theta - theta_s) + eta_s / 2 (g_s . (theta - theta_s))^2,

    where l_s and g_s are the loss of round s and its gradient at theta_s, and eta_s = e^{y_s
    theta_s . x_s} / (1 + B R). As (l')^2 e^{y u} = l'', the last term is c l'' (x_s . (theta -
    theta_s))^2 with c = 1 / (2 (1 + B R)). By the derivation in the notes of `Folklore`, a
    surrogate of this kind is a lower bound of the loss if c <= 1 / (2 + B R), which holds here.

    The algorithm is reconstructed from later accounts, such as FOLKLORE's; its recursion and the
    bound, that of `onebit.theory.bounds.aioli`, were derived anew.

    For two classes, `Folklore` predicts as AIOLI does with lambda / 2, the c of `Folklore` and
    half the weight on the losses of the two labels.

    References
    ----------
    R. Jezequel, P. Gaillard and A. Rudi. Efficient improper learning for online logistic
    regression. COLT 2020; arXiv:2003.08109.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import Aioli, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(Aioli(B=10), normalize(X), y == 8).n_mistakes
    78
    """

    reference = "Jezequel, Gaillard, Rudi 2020"
    cost = Cost("d^2")
    bound = bounds.AIOLI
    feedback = "full"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "B": [POSITIVE],
        "R": [POSITIVE],
        "regularization": [POSITIVE, None],
    }

    def __init__(
        self,
        B: float = 1.0,
        R: float = 1.0,
        regularization: float | None = None,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.B = B
        self.R = R
        self.regularization = regularization
        self.classes = classes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        if n_classes != 2:
            raise ValueError(
                f"Only binary classification is supported by Aioli, and there are {n_classes} "
                "classes: take Folklore"
            )
        B, R = float(self.B), float(self.R)
        lambda_ = 1.0 / B**2 if self.regularization is None else float(self.regularization)
        c = 1.0 / (2.0 * (1.0 + B * R))
        scratch = Scratch(np.zeros(n_features), np.zeros(()), np.zeros(()))
        A_inv = new_inverse(n_features, lambda_)
        return AIOLI, State(A_inv, np.zeros(n_features), c, scratch, rng)
