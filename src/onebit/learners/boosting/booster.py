"""What all boosters share: a chain of weak learners, and a hedge over how long it should be.

In each round, weak learner i sees x and a cost matrix, made from the scores s^{i-1} of those before
it, and predicts a label l^i, which turns s^{i-1} into s^i. Expert i votes for the label with the
largest s^i. Boosters differ only in their `Rule`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from onebit.core import Cost, Kernels, Learner, lean_kernel
from onebit.core.base import InnerLearner
from onebit.core.engine import PythonKernels, makes_kernels
from onebit.core.state import MOST_ROUNDS, Count, Field, Generator, Within
from onebit.learners.boosting.weak import (
    COST_SENSITIVE,
    WEAK_LEARNER,
    Weak,
    new_weak_learners,
    requires_positive_features,
    supports_many_classes,
    weak_kernels,
)
from onebit.learners.hoeffding_tree import HoeffdingTree
from onebit.learners.other_libraries import NOT_SAVED
from onebit.learners.perceptron import Perceptron
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import greedy


class Rule(NamedTuple):
    """What distinguishes one booster from another, as kernels; `rule` is their part of the state.

    ``costs(rule, i, s, first, last, C)``
        fill rows `first` to `last` of the cost matrix of weak learner i, where s = s^{i-1};
    ``combine(rule, i, s, label, combined)``
        fill s^i, where s = s^{i-1} and `label` is that of weak learner i;
    ``adapt(rule, i, t, s, label, truth)``
        learn, in round t, how to combine;
    `hedges`
        whether an expert is drawn, better ones with higher probability; otherwise the last one
        decides.
    """

    costs: Any
    combine: Any
    adapt: Any
    hedges: bool


RULES: dict[str, Rule] = {}
"""The rules of all boosters, by name."""


class Scratch(NamedTuple):
    """What a round computes of x.

    Attributes
    ----------
    s
        s^0, ..., s^N.
    labels
        l^i, the label of each weak learner.
    scores
        The scores of each weak learner.
    C
        Cost matrix of one weak learner.
    p
        Probabilities of one weak learner.
    costs
        Expected costs of one weak learner.
    """

    s: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    C: np.ndarray
    p: np.ndarray
    costs: np.ndarray


class State(NamedTuple):
    """What a booster keeps.

    Attributes
    ----------
    weak
        The weak learners.
    rule
        How they are combined.
    mistakes
        Those of each expert.
    largest
        The largest weight that each weak learner was given.
    total_cost, total_weight
        Sums of C[y, l] and of the row sums of C[y], for each weak learner.
    t
        Rounds learned from.
    """

    weak: Annotated[tuple, Within(each="n_learners")]
    rule: Any
    mistakes: Annotated[np.ndarray, Field("n_learners", dtype=np.int64, least=0, most=MOST_ROUNDS)]
    largest: Annotated[np.ndarray, Field("n_learners", least=0.0, most=1.0)]
    total_cost: Annotated[np.ndarray, Field("n_learners", least=0.0)]
    total_weight: Annotated[np.ndarray, Field("n_learners", least=0.0)]
    t: Count
    scratch: Scratch
    rng: Generator


@lean_kernel
def best_expert(mistakes):
    """Return the expert with the fewest mistakes so far; ties go to the first."""
    best = 0
    for i in range(1, mistakes.size):
        if mistakes[i] < mistakes[best]:
            best = i
    return best


@lean_kernel
def hedge(state, x, scores, offer, p):
    """Policy of drawing an expert with probability proportional to v_i = e^{-mistakes}."""
    s, mistakes = state.scratch.s, state.mistakes
    fewest, total = mistakes[best_expert(mistakes)], 0.0
    for k in range(p.size):
        p[k] = 0.0
    for i in range(mistakes.size):
        v = math.exp(np.float64(fewest - mistakes[i]))
        p[argmax(s[i + 1], offer)] += v
        total += v
    for k in range(p.size):
        p[k] /= total
    return argmax(scores, offer)


@makes_kernels
def booster_kernels(
    rule: str, learner: Kernels, has_probabilities: bool, takes_weights: bool
) -> Kernels:
    """Return the kernels of a booster of this rule, with weak learners of this kind."""
    compiled = not isinstance(learner, PythonKernels)
    decorator: Any = lean_kernel if compiled else lambda function: function
    one_of, predict, update = weak_kernels(Weak(learner, has_probabilities, takes_weights))
    costs, combine, adapt, hedges = RULES[rule]
    takes_costs = learner is COST_SENSITIVE

    @decorator
    def score(state, x, scores):
        """Predict with the weak learners, one after the other; fill s^i of the best expert."""
        scratch, K = state.scratch, scores.size
        s, C = scratch.s, scratch.C
        for i in range(state.mistakes.size):
            costs(state.rule, i, s[i], 0, K - 1, C)
            one = one_of(state.weak, i)
            label = predict(one, x, C, scratch.scores[i], scratch.p, scratch.costs)
            scratch.labels[i] = label
            combine(state.rule, i, s[i], label, s[i + 1])
        best = best_expert(state.mistakes) if hedges else state.mistakes.size - 1
        for k in range(K):
            scores[k] = s[best + 1, k]

    @decorator
    def learn(state, x, scores, label, probability, offer, truth):
        """Update the weak learners and the rule with the label; count the experts' mistakes."""
        state.t[()] += 1
        scratch, K = state.scratch, scores.size
        s, C = scratch.s, scratch.C
        first, last = (0, K - 1) if takes_costs else (truth, truth)
        for i in range(state.mistakes.size):
            costs(state.rule, i, s[i], first, last, C)
            weight = 0.0
            for k in range(K):
                weight += C[truth, k]
            weight = min(weight, 1.0)  # holds up to rounding
            state.total_cost[i] += C[truth, scratch.labels[i]]
            state.total_weight[i] += weight
            state.largest[i] = max(state.largest[i], weight)
            share = weight / state.largest[i] if weight > 0.0 else 0.0
            one = one_of(state.weak, i)
            update(one, x, C, scratch.scores[i], truth, share, state.rng)
            adapt(state.rule, i, state.t[()], s[i], scratch.labels[i], truth)
            if argmax(s[i + 1]) != truth:
                state.mistakes[i] += 1
        return True

    policy: Any = hedge if hedges else greedy
    kind = Kernels if compiled else PythonKernels
    arguments = (rule, learner, has_probabilities, takes_weights)
    name = ".".join(map(str, (rule, learner._module, learner._name, *arguments[2:])))
    policy = policy if compiled else policy.py_func
    return kind(name, score, policy, learn, made_by=(booster_kernels, arguments))


class Booster(Learner):
    """A learner made of many weak ones, told the label.

    A subclass names its rule, and returns the rule's part of the initial state.
    """

    feedback = "full"
    state_version = 1
    cost = Cost("N (that of a weak learner + K^2)")
    forms: ClassVar[list[dict[str, Any]]] = [{"learner": Perceptron(), "n_learners": 3}]

    _rule: ClassVar[str]
    _many_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [*WEAK_LEARNER, None],
        "n_learners": [Interval(Integral, 1, 1_000, closed="both")],
    }

    learner: Any
    n_learners: int

    @abstractmethod
    def _new_rule(self, n: int, n_classes: int) -> Any:
        """Return the rule's part of the initial state, for `n` weak learners."""

    @property
    def edges_(self) -> np.ndarray:
        """gamma_i, the edge that each weak learner had so far, shape (n_learners,).

        It is 1 - K sum of C_t[y_t, l_t] / sum of the row sums of C_t[y_t]: one for a weak learner
        that is always right, zero for one whose labels cost as much as labels chosen uniformly at
        random. The edge of a weak learner that had no weight yet is zero. Bounds need these:
        ``bounds.boosting(T, K, (booster.edges_**2).sum(), N)``.
        """
        cost, weight, K = self._totals()
        return 1.0 - np.divide(K * cost, weight, out=np.ones_like(cost), where=weight > 0.0)

    def excess(self, edge: float) -> float:
        """Return S, by how much the costs of a weak learner exceeded those that an edge allows.

        The weak learning condition is that the costs of each weak learner sum to at most those of
        labels that are right with probability `edge`, and otherwise uniformly at random, plus S.
        This is the least S for which the weak learners so far satisfy it, as `bounds.boosting_weak`
        requires.

        Parameters
        ----------
        edge : float in [0, 1]
            gamma.

        Returns
        -------
        float
        """
        if not 0.0 <= edge <= 1.0:
            raise ValueError(f"an edge is in [0, 1]; got {edge!r}")
        cost, weight, K = self._totals()
        return float(max((cost - (1.0 - edge) / K * weight).max(), 0.0))

    def _totals(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Return copies of the sums of costs and weights, and the number of classes."""
        check_is_fitted(self)
        with self._run.lock:
            state = self._run.state
            return state.total_cost.copy(), state.total_weight.copy(), state.scratch.p.size

    @property
    def exempt(self) -> dict[str, str]:  # type: ignore[override]
        """Names of checks that do not hold for this learner, each with the reason."""
        return {} if isinstance(_weak(self.learner), Learner) else NOT_SAVED

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = _weak(self.learner)
        tags.classifier_tags.multi_class = self._many_classes and supports_many_classes(learner)
        tags.input_tags.positive_only = requires_positive_features(learner)
        return tags

    def _inner_learners(self) -> dict[str, InnerLearner]:
        learner = _weak(self.learner)
        known = isinstance(learner, Learner)
        return {"weak": InnerLearner(learner, self.n_learners)} if known else {}

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        if n_classes > 2 and not self._many_classes:
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}, and there are "
                f"{n_classes} classes: take AdaBoostOLM, AdaBoostOLMpp or OnlineMBBM"
            )
        n = int(self.n_learners)
        weak, states = new_weak_learners(_weak(self.learner), n, n_features, n_classes, rng)
        scratch = Scratch(
            s=np.zeros((n + 1, n_classes)),
            labels=np.zeros(n, dtype=np.int64),
            scores=np.zeros((n, n_classes)),
            C=np.zeros((n_classes, n_classes)),
            p=np.zeros(n_classes),
            costs=np.zeros(n_classes),
        )
        return booster_kernels(self._rule, *weak), State(
            weak=states,
            rule=self._new_rule(n, n_classes),
            mistakes=np.zeros(n, dtype=np.int64),
            largest=np.zeros(n),
            total_cost=np.zeros(n),
            total_weight=np.zeros(n),
            t=np.zeros((), dtype=np.int64),
            scratch=scratch,
            rng=rng,
        )


def _weak(learner: Any) -> Any:
    return HoeffdingTree(leaves="naive_bayes", max_features=0.5) if learner is None else learner
