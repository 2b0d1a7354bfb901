"""AdaBoost.OLM, and AdaBoost.OL for two classes."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import lean_kernel
from onebit.core.state import Field
from onebit.learners.boosting.booster import RULES, Booster, Rule
from onebit.theory import bounds

_LARGEST_ALPHA = 2.0
"""The largest weight of a weak learner's label, positive or negative."""


class Alphas(NamedTuple):
    """alpha, the weight of each weak learner's label, and eta, its step size in round one."""

    alpha: Annotated[np.ndarray, Field("n_learners", least=-_LARGEST_ALPHA, most=_LARGEST_ALPHA)]
    eta: float


@lean_kernel
def sigmoid(z):
    """Return 1 / (1 + e^{-z})."""
    return 1.0 / (1.0 + math.exp(-z))


@lean_kernel
def costs(rule, i, s, first, last, C):
    """Fill (dL^r/ds_l - dL^r/ds_r) / (K (K - 1)) at s, so that row sums are at most one.

    The derivative is sigmoid(s_l - s_r) for l != r, and minus the sum of these for r.
    """
    K = s.size
    for r in range(first, last + 1):
        total = 0.0
        for k in range(K):
            C[r, k] = 0.0 if k == r else sigmoid(s[k] - s[r])
            total += C[r, k]
        for k in range(K):
            C[r, k] = 0.0 if k == r else (C[r, k] + total) / (K * (K - 1.0))


@lean_kernel
def combine(rule, i, s, label, combined):
    """Do s^i = s^{i-1} + alpha_i e_l."""
    for k in range(s.size):
        combined[k] = s[k]
    combined[label] += rule.alpha[i]


@lean_kernel
def adapt(rule, i, t, s, label, truth):
    """Do a gradient descent step of alpha_i on L^y(s^{i-1} + alpha_i e_l), within [-2, 2]."""
    alpha, slope = rule.alpha[i], 0.0
    if label != truth:
        slope = sigmoid(s[label] + alpha - s[truth])
    else:
        for k in range(s.size):
            if k != truth:
                slope -= sigmoid(s[k] - s[truth] - alpha)
    alpha -= rule.eta / math.sqrt(t) * slope
    rule.alpha[i] = min(max(alpha, -_LARGEST_ALPHA), _LARGEST_ALPHA)


RULES["adaboost_olm"] = Rule(costs, combine, adapt, hedges=True)


class AdaBoostOLM(Booster):
    """AdaBoost.OLM: weak learners whose labels are weighted by gradient descent, told the label.

    Weak learner i is told how much each label would add to the pairwise logistic loss of those
    before it; the larger that loss, the larger the weight of the example. The weight alpha_i of its
    label is learned online. Expert i uses only the first i weak learners; an expert is drawn with a
    probability that grows with its past performance, and `predict` takes the best expert so far.

    Parameters
    ----------
    learner : learner, classifier, cost-sensitive learner or None, default=None
        The weak learner, of which there are `n_learners` copies. It is one of

        - a learner of onebit with ``feedback="full"``, such as ``HoeffdingTree(n_leaves=2)``, a
          decision stump; it is compiled with the booster;
        - a classifier of scikit-learn with `partial_fit`;
        - a classifier of River;
        - an object with the methods ``predict(x, cost_matrix)``, which returns a label from 0 to
          K - 1 and changes nothing, also before the first update, and ``update(x, cost_matrix,
          label)``. x is a dense row, and ``cost_matrix[y, k]`` the cost of label k where y is
          right. All copies start as copies of the object.

        A booster with one of the last three calls it from Python, and cannot be saved to a file.

        None is ``HoeffdingTree(leaves="naive_bayes", max_features=0.5)``.
    n_learners : int >= 1, default=20
        N, the number of weak learners.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the experts drawn and of the weak learners, each of which gets a seed of its own;
        their own `random_state` is ignored.

    Notes
    -----
    L^r(s) is the sum over l != r of ln(1 + e^{s_l - s_r}). Its cost matrices have rows that sum to
    zero, with minus the sum of the others on the diagonal. Here the diagonal is subtracted from
    each row and the result divided by K (K - 1), so the matrices are non-negative, with a zero
    diagonal and row sums of at most one, like those of `AdaBoostOLMpp`. This does not change how
    labels compare; the sum of a row is the authors' weight of an example. A weak learner gets each
    weight divided by the largest one it had so far.

    The step size in round t is 2 sqrt(2) / ((K - 1) sqrt(t)). The authors' released code has the
    wrong sign in an exponent where the label is right; the exact derivative is used here.

    References
    ----------
    Y. H. Jung, J. Goetz and A. Tewari. Online multiclass boosting. NIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onebit import AdaBoostOLM, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(AdaBoostOLM(random_state=0), X, y).n_mistakes
    191
    """

    reference = "Jung, Goetz, Tewari 2017"
    bound = bounds.BOOSTING_ELSEWHERE
    _rule = "adaboost_olm"

    def __init__(
        self,
        learner: Any = None,
        n_learners: int = 20,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.n_learners = n_learners
        self.classes = classes
        self.random_state = random_state

    def _new_rule(self, n: int, n_classes: int) -> Alphas:
        return Alphas(np.zeros(n), 2.0 * math.sqrt(2.0) / (n_classes - 1.0))


class AdaBoostOL(AdaBoostOLM):
    """AdaBoost.OL: weak learners whose labels are weighted by gradient descent, for two classes.

    With s_1 - s_0 for the sum of its weighted votes, it is `AdaBoostOLM` with two classes, except
    for the step size, which is 4 / sqrt(t).

    Parameters
    ----------
    learner, n_learners, classes, random_state
        As in `AdaBoostOLM`; there are two classes.

    References
    ----------
    A. Beygelzimer, S. Kale and H. Luo. Optimal and adaptive algorithms for online boosting.
    ICML 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onebit import AdaBoostOL, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(AdaBoostOL(random_state=0), X, y == 8).n_mistakes
    159
    """

    reference = "Beygelzimer, Kale, Luo 2015"
    _many_classes = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = AdaBoostOLM._parameter_constraints

    def _new_rule(self, n: int, n_classes: int) -> Alphas:
        return Alphas(np.zeros(n), 4.0)
