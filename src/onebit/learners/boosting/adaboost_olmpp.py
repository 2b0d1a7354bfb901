"""AdaBoost.OLM++: boosting with the regression of FOLKLORE's authors."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import ProbabilityLearner, lean_kernel
from onebit.core.state import MOST_ROUNDS
from onebit.learners.boosting.booster import RULES, Booster, Rule
from onebit.learners.boosting.regression import (
    Regressions,
    new_regressions,
    regress,
    update_regression,
)
from onebit.learners.perceptron import Perceptron
from onebit.numerics.softmax import softmax
from onebit.theory import bounds


@lean_kernel
def costs(rule, i, s, first, last, C):
    """Fill C(y, k) = (sigma_k + 1 - sigma_y) / K for k != y, and zero for y (C.1), sigma of s."""
    K, sigma = s.size, C[first]
    softmax(s, 1.0, sigma)
    for y in range(last, first - 1, -1):  # sigma is overwritten last
        wrong = 1.0 - sigma[y]
        for k in range(K):
            C[y, k] = 0.0 if k == y else (sigma[k] + wrong) / K


@lean_kernel
def adapt(rule, i, t, s, label, truth):
    """Do BoostReg^i.Update(s^{i-1}, l^i, y)."""
    update_regression(rule, i, s, label, truth)


RULES["adaboost_olmpp"] = Rule(costs, regress, adapt, hedges=True)


class AdaBoostOLMpp(Booster, ProbabilityLearner):
    """AdaBoost.OLM++: each weak learner's label corrects the probabilities of those before it.

    Weak learner i is told by how much each label lowers the logistic loss of those before it; the
    less probable they found the true label, the larger the weight of the example. A
    `BoostingRegression` for each weak learner says how to combine its label with the scores so far.
    Expert i uses only the first i weak learners; an expert is drawn with a probability that grows
    with its past performance. `predict` takes the best expert so far, and `predict_proba` returns
    its probabilities.

    Parameters
    ----------
    learner, n_learners
        The weak learner and how many there are, as in `AdaBoostOLM`.
    horizon : int >= 1, default=10_000
        T, the number of rounds that the regressions are for.
    regression : {"folklore", "aioli", "paper"}, default="folklore"
        Which binary logistic regression they are based on, as in
        `onebit.learners.boosting.BoostingRegression`. "paper" is FOLKLORE with the paper's
        constants.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the experts drawn and of the weak learners, each of which gets a seed of its own;
        their own `random_state` is ignored.

    Notes
    -----
    The paper prints the gradient of ln sigma(s)_y with the sign of that of the loss, and indexes
    cost matrices by (predicted, true) once; here rows are true labels:

        C(y, k) = (sigma(s^{i-1})_k + 1 - sigma(s^{i-1})_y) / K for k != y, and 0 for k = y,

    whose rows sum to 1 - sigma(s^{i-1})_y. A weak learner gets these sums divided by the largest
    one it had so far.

    In ``BanditReduction(AdaBoostOLMpp(), gamma=...)`` it learns from one bit.

    References
    ----------
    N. Agarwal, S. Kale and J. Zimmert. Efficient methods for online multiclass logistic regression.
    ALT 2022; arXiv:2110.03020. Algorithm 4, after D. J. Foster, S. Kale, H. Luo, M. Mohri and
    K. Sridharan. Logistic regression: the importance of being improper. COLT 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onebit import AdaBoostOLMpp, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(AdaBoostOLMpp(horizon=len(y), random_state=0), X, y).n_mistakes
    202
    """

    reference = "Agarwal, Kale, Zimmert 2022"
    bound = bounds.BOOSTING
    forms: ClassVar[list[dict[str, Any]]] = [
        {"learner": Perceptron(), "n_learners": 3},
        {"learner": Perceptron(), "n_learners": 3, "regression": "aioli"},
    ]
    _rule = "adaboost_olmpp"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = Booster._parameter_constraints | {
        "horizon": [Interval(Integral, 1, MOST_ROUNDS, closed="both")],
        "regression": [StrOptions({"folklore", "aioli", "paper"})],
    }

    def __init__(
        self,
        learner: Any = None,
        n_learners: int = 20,
        horizon: int = 10_000,
        regression: str = "folklore",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.n_learners = n_learners
        self.horizon = horizon
        self.regression = regression
        self.classes = classes
        self.random_state = random_state

    def _new_rule(self, n: int, n_classes: int) -> Regressions:
        return new_regressions(n, int(self.horizon), self.regression)
