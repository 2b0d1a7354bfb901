"""The passive-aggressive algorithms PA, PA-I and PA-II."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, lean_kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator, Weights
from onebit.numerics.argmax import argmax_except
from onebit.numerics.exploration import greedy
from onebit.numerics.linear import add_to_class, linear_scores, squared_norm
from onebit.theory import bounds

_SMALLEST_SQUARED_NORM = np.finfo(np.float64).tiny
"""The smallest squared norm of an x that is safe to divide by."""


class State(NamedTuple):
    """Weights, and what limits the steps.

    Attributes
    ----------
    W
        Weights.
    largest
        The largest allowed step: C for PA-I, infinite for PA and PA-II.
    slack
        A term that makes steps smaller: 1 / (2 C) for PA-II, 0 for PA and PA-I.
    """

    W: Weights
    largest: float
    slack: float
    rng: Generator


@lean_kernel
def learn(state, x, scores, label, probability, offer, truth):
    """If l = 1 - m > 0: w_y += tau x, w_j -= tau x."""
    y = truth
    j = argmax_except(scores, y)
    loss = 1.0 - (scores[y] - scores[j])
    squares = squared_norm(x)
    if loss <= 0.0 or squares < _SMALLEST_SQUARED_NORM:
        return False
    tau = min(state.largest, loss / (2.0 * squares + state.slack))
    add_to_class(state.W, x, y, tau)
    add_to_class(state.W, x, j, -tau)
    return True


KERNELS = Kernels("passive_aggressive", linear_scores, greedy, learn)


class PassiveAggressive(Learner):
    """Passive-aggressive learning: the smallest step that gives the true label a margin of one.

    It chooses the label with the highest score. When the true label leads the best other label by
    at least one, it is passive; otherwise it changes the weights of these two labels just enough to
    make the lead one, or by less where `C` limits the step.

    Parameters
    ----------
    C : float > 0, default=1.0
        Aggressiveness: the largest step of "PA-I", and the weight of the squared loss relative to
        the squared step in "PA-II". "PA" does not use it.
    variant : {"PA", "PA-I", "PA-II"}, default="PA-I"
        "PA" always takes the full step, and so fits noise.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed. The passive-aggressive algorithms themselves never explore.

    Notes
    -----
    The step is for the pair of the true label and the best other one. With three or more labels, PA
    therefore leaves no loss with respect to that pair, but a third label can be within the margin
    after the step: the loss on x falls to half or less, not to zero.

    An x of zeros teaches nothing: no step changes its scores.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer. Online passive-aggressive
    algorithms. JMLR 7, 2006.

    Examples
    --------
    >>> from onebit import PassiveAggressive, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(PassiveAggressive(), X, y).n_mistakes
    8
    """

    feedback = "full"
    reference = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006"
    cost = Cost(LINEAR)
    bound = bounds.PASSIVE_AGGRESSIVE
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"variant": "PA"}, {"variant": "PA-II"}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [POSITIVE],
        "variant": [StrOptions({"PA", "PA-I", "PA-II"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        variant: str = "PA-I",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.variant = variant
        self.classes = classes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A whole step for each noisy row: one pass ends where the last few of them lead.
        tags.classifier_tags.poor_score = self.variant == "PA"
        return tags

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        largest = float(self.C) if self.variant == "PA-I" else math.inf
        slack = 0.5 / float(self.C) if self.variant == "PA-II" else 0.0
        return KERNELS, State(np.zeros((n_features, n_classes)), largest, slack, rng)
