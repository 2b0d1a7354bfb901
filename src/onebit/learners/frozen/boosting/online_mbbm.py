"""OnlineMBBM, boosting by majority, and Online BBM for two classes."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from onebit.core import Cost, lean_kernel
from onebit.learners.boosting.booster import RULES, Booster, Rule
from onebit.theory import bounds

_MAX_LEARNERS = 100
"""A round costs O(N^4): with more weak learners it would take longer than a tenth of a second."""

_UNKNOWN = -1.0
"""Marks a probability that has not been computed yet."""


class Tables(NamedTuple):
    """What the potentials are computed from; see `win`.

    Attributes
    ----------
    powers
        Coefficients of T_c(z)^g, for each c and g.
    factorials
        The factorials of 0, ..., N.
    votes
        The number of labels with each number of votes.
    chances
        Probabilities of winning, by the votes of two labels.
    product, factor
        Memory for two polynomials.
    """

    powers: np.ndarray
    factorials: np.ndarray
    votes: np.ndarray
    chances: np.ndarray
    product: np.ndarray
    factor: np.ndarray


class Potentials(NamedTuple):
    """The model of votes: `right` is the chance that a weak learner votes for the right label."""

    right: float
    scratch: Tables


def new_potentials(n: int, n_classes: int, gamma: float) -> Potentials:
    """Return the potentials of `n` weak learners with the edge gamma."""
    other = (1.0 - gamma) / n_classes
    factorials = np.array([math.factorial(j) for j in range(n + 1)], dtype=np.float64)
    exponential = other ** np.arange(n + 1) / factorials
    powers = np.zeros((n + 1, n_classes + 1, n + 1))
    powers[:, 0, 0] = 1.0
    for c in range(n + 1):
        for g in range(n_classes):
            powers[c, g + 1] = np.convolve(powers[c, g], exponential[: c + 1])[: n + 1]
    tables = Tables(
        powers=powers,
        factorials=factorials,
        votes=np.zeros(n + 2, dtype=np.int64),
        chances=np.zeros((n + 2, n + 2)),
        product=np.zeros(n + 1),
        factor=np.zeros(n + 1),
    )
    return Potentials(other + gamma, tables)


@lean_kernel
def win(rule, n, own):
    """Return 1 - phi^r_n: the probability that r, with `own` votes, beats every other label.

    `votes` has the number of other labels with each number of votes. Each of the n remaining votes
    is for r with probability `right`, and for any other label with probability (1 - gamma) / K = u.
    If m of them are for r, another label with v votes may get at most own + m - 1 - v =: c more.
    With T_c(z) = sum over j <= c of (u z)^j / j!, the probability is the sum over m of

        n! right^m / m! times the coefficient of z^{n-m} in the product of T_c(z) over the others.
    """
    powers, factorials, votes, _, product, factor = rule.scratch
    top = 0
    for v in range(votes.size):
        if votes[v] > 0:
            top = v
    total = 0.0
    for m in range(max(0, top + 1 - own), n + 1):
        k = n - m
        started = False
        for v in range(top + 1):
            if votes[v] == 0:
                continue
            power = powers[min(own + m - 1 - v, n), votes[v]]
            if not started:
                for j in range(k + 1):
                    product[j] = power[j]
                started = True
                continue
            for j in range(k + 1):
                factor[j] = product[j]
            for j in range(k + 1):
                product[j] = 0.0
                for i in range(j + 1):
                    product[j] += factor[i] * power[j - i]
        total += factorials[n] * rule.right**m / factorials[m] * product[k]
    return total


@lean_kernel
def costs(rule, i, s, first, last, C):
    """Fill (phi^r_n(s + e_l) - phi^r_n(s + e_r)) / (K - 1), for the n weak learners after i."""
    votes, chances = rule.scratch.votes, rule.scratch.chances
    K, n = s.size, rule.scratch.factorials.size - 2 - i
    for a in range(votes.size):
        votes[a] = 0
        for b in range(votes.size):
            chances[a, b] = _UNKNOWN
    for k in range(K):
        votes[np.int64(s[k])] += 1
    for r in range(first, last + 1):
        own = np.int64(s[r])
        votes[own] -= 1
        best = win(rule, n, own + 1)
        for k in range(K):
            if k == r:
                C[r, k] = 0.0
                continue
            v = np.int64(s[k])
            if chances[own, v] == _UNKNOWN:
                votes[v] -= 1
                votes[v + 1] += 1
                chances[own, v] = win(rule, n, own)
                votes[v] += 1
                votes[v + 1] -= 1
            C[r, k] = max(best - chances[own, v], 0.0) / (K - 1.0)
        votes[own] += 1


@lean_kernel
def combine(rule, i, s, label, combined):
    """Do s^i = s^{i-1} + e_l."""
    for k in range(s.size):
        combined[k] = s[k]
    combined[label] += 1.0


@lean_kernel
def adapt(rule, i, t, s, label, truth):
    """Do nothing: all votes have the same weight."""


RULES["online_mbbm"] = Rule(costs, combine, adapt, hedges=False)


class OnlineMBBM(Booster):
    """OnlineMBBM: boosting by majority, told the label.

    The label with the most votes of all weak learners is chosen. Weak learner i is told how each
    vote would change the probability that the majority is wrong in the end, if each weak learner
    after it were right a little more often than by chance. An example on which the vote is almost
    decided has hardly any weight.

    Parameters
    ----------
    learner, n_learners
        The weak learner and how many there are, at most 100, as in `AdaBoostOLM`.
    gamma : float in [0, 1], default=0.1
        The edge: a weak learner is assumed to vote for the right label with probability gamma, and
        otherwise for a label uniformly at random.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the weak learners, each of which gets a seed of its own; their own `random_state` is
        ignored.

    Notes
    -----
    The potential phi^r_n(s) is the probability that r does not get more votes than every other
    label, if the votes so far are s and n are still to come. It is computed exactly, from
    polynomials, where the authors draw samples. Weak learners get phi^r_{N-i}(s + e_l) minus that
    of l = r, over K - 1: non-negative, with a zero diagonal and row sums of at most one, as in
    `AdaBoostOLMpp`. The sum of a row is the authors' weight of an example; a weak learner gets each
    weight divided by the largest one it had so far. The authors' released code counts one remaining
    weak learner too many.

    References
    ----------
    Y. H. Jung, J. Goetz and A. Tewari. Online multiclass boosting. NIPS 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onebit import OnlineMBBM, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(OnlineMBBM(random_state=0), X, y).n_mistakes
    216
    """

    reference = "Jung, Goetz, Tewari 2017"
    cost = Cost("N (that of a weak learner + K^2 + N^3)")
    bound = bounds.BOOSTING_ELSEWHERE
    _rule = "online_mbbm"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = Booster._parameter_constraints | {
        "n_learners": [Interval(Integral, 1, _MAX_LEARNERS, closed="both")],
        "gamma": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        learner: Any = None,
        n_learners: int = 20,
        gamma: float = 0.1,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.n_learners = n_learners
        self.gamma = gamma
        self.classes = classes
        self.random_state = random_state

    def _new_rule(self, n: int, n_classes: int) -> Potentials:
        return new_potentials(n, n_classes, float(self.gamma))


class OnlineBBM(OnlineMBBM):
    """Online BBM: boosting by majority, for two classes.

    With s_1 - s_0 for the sum of its votes, it is `OnlineMBBM` with two classes and twice the
    gamma. The weight of an example is then a binomial probability.

    Parameters
    ----------
    learner, n_learners, classes, random_state
        As in `OnlineMBBM`; there are two classes.
    gamma : float in [0, 1/2], default=0.1
        The edge: a weak learner is assumed to be right with probability 1/2 + gamma.

    References
    ----------
    A. Beygelzimer, S. Kale and H. Luo. Optimal and adaptive algorithms for online boosting.
    ICML 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from onebit import OnlineBBM, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(OnlineBBM(random_state=0), X, y == 8).n_mistakes
    133
    """

    reference = "Beygelzimer, Kale, Luo 2015"
    _many_classes = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = OnlineMBBM._parameter_constraints | {
        "gamma": [Interval(Real, 0, 0.5, closed="both")],
    }

    def _new_rule(self, n: int, n_classes: int) -> Potentials:
        return new_potentials(n, n_classes, 2.0 * float(self.gamma))
