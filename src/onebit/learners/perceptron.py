"""The multiclass Perceptron."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import LINEAR, Cost, Kernels, Learner, lean_kernel
from onebit.core.state import Generator, Weights
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import greedy
from onebit.numerics.linear import add_to_class, linear_scores
from onebit.theory import bounds


class State(NamedTuple):
    """Weights W."""

    W: Weights
    rng: Generator


@lean_kernel
def learn(state, x, scores, label, probability, offer, truth):
    """On a mistake of the greedy label, promote the truth and demote the greedy label."""
    y_hat = argmax(scores)
    if y_hat == truth:
        return False
    add_to_class(state.W, x, truth, 1.0)
    add_to_class(state.W, x, y_hat, -1.0)
    return True


KERNELS = Kernels("perceptron", linear_scores, greedy, learn)


class Perceptron(Learner):
    """Multiclass Perceptron: the full-information baseline of the bandit papers.

    It chooses the label with the highest score. On a mistake it adds x to the weights of the true
    label and subtracts x from those of the chosen label.

    Parameters
    ----------
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed. The Perceptron itself never explores.

    References
    ----------
    R. O. Duda and P. E. Hart. Pattern Classification and Scene Analysis. Wiley, 1973.
    Mistake bound: A. Beygelzimer, F. Orabona and C. Zhang. Efficient online bandit multiclass
    learning with O~(sqrt(T)) regret. ICML 2017, Theorem 1.

    Examples
    --------
    >>> from onebit import Perceptron, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(Perceptron(), X, y).n_mistakes
    21
    """

    feedback = "full"
    reference = "Duda and Hart 1973"
    cost = Cost(LINEAR)
    bound = bounds.PERCEPTRON

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, *, classes: Any = None, random_state: Any = None) -> None:
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        return KERNELS, State(W=np.zeros((n_features, n_classes)), rng=rng)
