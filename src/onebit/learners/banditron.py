"""Banditron."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import LINEAR, Cost, Kernels, Learner, lean_kernel
from onebit.core.ranges import PART
from onebit.core.state import Generator, Share, Weights
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import gamma_greedy
from onebit.numerics.linear import add_to_class, linear_scores
from onebit.theory import bounds


class State(NamedTuple):
    """Weights W, and gamma, the share of the rounds that explore."""

    W: Weights
    gamma: Share
    rng: Generator


@lean_kernel
def learn(state, x, scores, label, probability, offer, correct):
    """W += U~, row r: x (1[correct] 1[label = r] / p_r - 1[y_hat = r])."""
    y_hat = argmax(scores, offer)
    if correct and label == y_hat:
        add_to_class(state.W, x, label, 1.0 / probability - 1.0)
    else:
        add_to_class(state.W, x, y_hat, -1.0)
        if correct:
            add_to_class(state.W, x, label, 1.0 / probability)
    return True


KERNELS = Kernels("banditron", linear_scores, gamma_greedy, learn)


class Banditron(Learner):
    """Banditron: the Perceptron, with its update estimated from one bit.

    It chooses the label with the highest score or, with probability `gamma`, a label uniformly at
    random. The greedy label is demoted in every round, and a label found right is promoted by one
    over its probability; in expectation this is the Perceptron's update.

    Parameters
    ----------
    gamma : float in (0, 1], default=0.05
        Share of the rounds that choose a random label.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    References
    ----------
    S. M. Kakade, S. Shalev-Shwartz and A. Tewari. Efficient bandit algorithms for online multiclass
    prediction. ICML 2008.

    Examples
    --------
    >>> from onebit import Banditron, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(Banditron(gamma=0.014, random_state=0), X, y).n_mistakes
    488
    """

    reference = "Kakade, Shalev-Shwartz, Tewari 2008"
    cost = Cost(LINEAR)
    bound = bounds.BANDITRON

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [PART],
    }

    def __init__(
        self, gamma: float = 0.05, *, classes: Any = None, random_state: Any = None
    ) -> None:
        self.gamma = gamma
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        W = np.zeros((n_features, n_classes))
        return KERNELS, State(W=W, gamma=np.array(float(self.gamma)), rng=rng)
