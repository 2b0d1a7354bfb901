"""The bandit Perceptrons of Beygelzimer et al. (2019), for strongly separable examples."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.state import Generator, Weights
from onebit.numerics.argmax import argmax
from onebit.numerics.linear import add_to_class, linear_scores
from onebit.theory import bounds


class State(NamedTuple):
    """Weights W of one binary Perceptron for each class."""

    W: Weights
    rng: Generator


@lean_kernel
def policy(state, x, scores, offer, p):
    """Uniform if S = {i: w_i . x >= 0} is empty; else the arg max, which is in S."""
    y_hat = argmax(scores, offer)
    p[:] = 0.0
    if scores[y_hat] < 0.0:
        for k in on_offer(offer, p.size):
            p[k] = 1.0 / n_on_offer(offer, p.size)
    else:
        p[y_hat] = 1.0
    return y_hat


@lean_kernel
def theory(scores, label, correct, i):
    """Return the multiple of x to add to w_i: the chosen label is corrected if mistaken."""
    if i != label:
        return 0.0
    if correct:
        return 1.0 if scores[i] < 0.0 else 0.0
    return -1.0 if scores[i] >= 0.0 else 0.0


@lean_kernel
def repository(scores, label, correct, i):
    """Return the multiple of x to add to w_i: a right label also rules out all others."""
    if correct and i == label:
        return 1.0 if scores[i] <= 0.0 else 0.0
    if correct or i == label:
        return -1.0 if scores[i] >= 0.0 else 0.0
    return 0.0


@lean_kernel
def learn_theory(state, x, scores, label, probability, offer, correct):
    """W += x for the chosen label, if it was right and S empty; -= x, if wrong and in S."""
    amount = theory(scores, label, correct, label)
    if amount != 0.0:
        add_to_class(state.W, x, label, amount)
    return amount != 0.0


@lean_kernel
def learn_repository(state, x, scores, label, probability, offer, correct):
    """W += x or -= x for each class whose Perceptron is known to have been mistaken."""
    updated = False
    for i in on_offer(offer, scores.size):
        amount = repository(scores, label, correct, i)
        if amount != 0.0:
            add_to_class(state.W, x, i, amount)
            updated = True
    return updated


THEORY = Kernels("theory", linear_scores, policy, learn_theory)
REPOSITORY = Kernels("repository", linear_scores, policy, learn_repository)


class SeparableBandit(Learner):
    """One binary Perceptron for each class: finitely many mistakes on strongly separable streams.

    The Perceptron of each class says whether x is of that class. If any says yes, the label of the
    one with the highest score is chosen, and if that is wrong this Perceptron is corrected. If none
    says yes, one of them is mistaken: a label is chosen uniformly at random, and if it is right its
    Perceptron is corrected. There is nothing to tune.

    Parameters
    ----------
    form : {"theory", "repository"}, default="theory"
        "theory" is the algorithm that the paper analyses. "repository" is the one that its authors
        released: from a right label it also corrects the Perceptrons of other classes that said
        yes, and it corrects scores of zero in both directions.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    Let ||x|| <= R, and let vectors u_i, whose squared norms sum to at most one, have <u_y, x> >=
    gamma / 2 and <u_i, x> <= -gamma / 2 for the other classes i. Then the expected number of
    mistakes is at most (K - 1) floor(4 (R / gamma)^2): the Perceptrons are corrected at most 4 (R /
    gamma)^2 times in all, each mistake in a round where one says yes is a correction, and each
    correction in a round where none does comes after K - 1 mistakes in expectation. The same holds
    for the form "repository": every correction there is still one of a mistaken Perceptron or of a
    score of zero, and the two kinds of rounds correct as before.

    The paper lets any label with w_i . x >= 0 be chosen. The arg max, taken here, is one of them;
    it is what `predict` returns and what the authors' code does.

    For streams that are not strongly separable nothing is proven.

    References
    ----------
    A. Beygelzimer, D. Pal, B. Szorenyi, D. Thiruvenkatachari, C.-Y. Wei and C. Zhang. Bandit
    multiclass linear classification: efficient algorithms for the separable case. ICML 2019.

    Examples
    --------
    >>> from onebit import SeparableBandit, play, streams
    >>> X, y = streams.strongly_separable(20_000, seed=0)
    >>> play(SeparableBandit(random_state=0), X, y).n_mistakes
    2022
    """

    reference = "Beygelzimer et al. 2019"
    cost = Cost(LINEAR)
    bound = bounds.SEPARABLE_BANDIT
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"form": "repository"}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "form": [StrOptions({"theory", "repository"})],
    }

    def __init__(
        self, form: str = "theory", *, classes: Any = None, random_state: Any = None
    ) -> None:
        self.form = form
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        kernels = THEORY if self.form == "theory" else REPOSITORY
        return kernels, State(W=np.zeros((n_features, n_classes)), rng=rng)
