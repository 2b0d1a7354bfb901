"""Weak learners: ``predict(x, cost_matrix) -> label`` and ``update(x, cost_matrix, label)``.

A cost matrix C is K x K and non-negative: C[y, l] is the cost of label l where y is right. Its
diagonal is zero, and its row sums are at most one. An object with these two methods is a weak
learner. So is any full-information learner of onebit, and any incremental classifier of
scikit-learn or River: costs are turned into weights for them.

The sum w_y of row y is the weight of an example of label y: learners that take weights learn with
it, and others learn from the example with that probability. Either way a probability model learns
p_y proportional to P(y | x) w_y. It predicts the label of least expected cost, the sum over y of
P(y | x) C[y, l], which is also the one with the least sum of p_y C[y, l] / w_y; with C[y, l]
itself, the weights would count twice. With two classes this is the label that the model finds
likelier, as in AdaBoost.OL, whose weak learners see no costs. It is exact for a model that can
distinguish examples with different weights; a stump knows only a mean of P(y | x) w_y over half of
the examples. Learners that are not probability models predict their greedy label.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from onebit.core import Kernels, Learner, ProbabilityLearner, lean_kernel
from onebit.core.engine import PythonKernels
from onebit.core.example import Example, dense
from onebit.core.generator import below, new_generator, uniform
from onebit.core.state import at, stacked
from onebit.learners.other_libraries import (
    CLASSIFIER,
    Model,
    gives_probabilities,
    is_river_classifier,
    new_model,
    seeded,
    takes_many_classes,
    takes_positive_only,
    takes_weights,
)
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import greedy
from onebit.numerics.softmax import softmax

_COST_TOLERANCE = 1e-12
"""Costs that differ by less are equal: rounding must not break ties between labels."""

_LEAST_WEIGHT = 1e-300
"""A row of costs with a smaller sum counts as zero, as its inverse may not be finite."""


WEAK_LEARNER = [Learner, *CLASSIFIER, HasMethods(["predict", "update"])]
"""What a weak learner may be, as constraints of a parameter."""


class Models(NamedTuple):
    """Weak learners that are called from Python."""

    models: tuple[Model, ...]

    def begin_classes(self, first: int) -> None:
        """Refuse, as each of them does."""
        self.models[0].begin_classes(first)


class Weak(NamedTuple):
    """The kind of the weak learners: their kernels, and what they can do.

    Attributes
    ----------
    kernels
        `COST_SENSITIVE` for weak learners that take cost matrices themselves.
    has_probabilities
        Whether their scores are those of a probability model.
    takes_weights
        Whether they learn with weights of examples.
    """

    kernels: Kernels
    has_probabilities: bool
    takes_weights: bool


def takes_costs(learner: Any) -> bool:
    """Return whether a weak learner takes cost matrices itself."""
    return hasattr(learner, "predict") and hasattr(learner, "update")


def supports_many_classes(learner: Any) -> bool:
    """Return whether a weak learner takes more than two classes."""
    return takes_costs(learner) or takes_many_classes(learner)


def requires_positive_features(learner: Any) -> bool:
    """Return whether a weak learner takes no negative features."""
    return not takes_costs(learner) and takes_positive_only(learner)


def new_weak_learners(
    learner: Any, n: int, n_features: int, n_classes: int, rng: np.ndarray
) -> tuple[Weak, Any]:
    """Return `n` copies of a learner, each with its own seed: their kind, and their states."""
    seeds = [int(below(rng, 2**31)) for _ in range(n)]
    # Copies with the same seed would be identical.
    copies = [_copy(learner, seed) for seed in seeds]
    if takes_costs(learner):
        labels = list(range(n_classes))
        updates = np.zeros((), dtype=np.int64)
        return Weak(COST_SENSITIVE, False, False), Models(
            tuple(Model(one, labels, updates.copy()) for one in copies)
        )
    if not isinstance(learner, Learner):
        models = [new_model(one, n_classes, 0) for one in copies]
        weak = Weak(models[0][0], gives_probabilities(learner), takes_weights(learner))
        return weak, Models(tuple(model for _, model in models))
    if learner.feedback != "full":
        raise ValueError(
            f"a weak learner is told the label, and {learner!r} needs one bit only: take one with "
            'feedback="full"'
        )
    states = []
    for one in copies:
        one._validate_params()
        kernels, state = one._begin(n_features, n_classes, new_generator(one.random_state))
        states.append(state)
    if isinstance(kernels, PythonKernels):
        raise ValueError(f"{learner!r} is not compiled, and cannot be a weak learner")
    weighted = kernels.weighted is not None
    return Weak(kernels, isinstance(learner, ProbabilityLearner), weighted), stacked(states)


def _copy(learner: Any, seed: int) -> Any:
    if is_river_classifier(learner):
        return learner  # `new_model` copies it
    if not hasattr(learner, "get_params"):
        return deepcopy(learner)
    return seeded(clone(learner), seed, anew=True)


@lean_kernel
def least_cost(p, C, costs):
    """Return the label of least expected cost, after filling the expected costs.

    p was learned from examples weighted by the row sums of C.
    """
    K = p.size
    for k in range(K):
        costs[k] = 0.0
    for y in range(K):
        weight = 0.0
        for k in range(K):
            weight += C[y, k]
        chance = p[y] / weight if weight > _LEAST_WEIGHT else 0.0
        for k in range(K):
            costs[k] += chance * C[y, k]
    best = 0
    for k in range(1, K):
        if costs[k] < costs[best] - _COST_TOLERANCE:
            best = k
    return best


def predict_with_costs(state: Model, x: Example, C, scores, p, costs) -> int:
    """Return the label that a cost-sensitive learner predicts."""
    label, K = state.model.predict(dense(x), C.copy()), len(state.labels)
    if not isinstance(label, int | np.integer) or not 0 <= label < K:
        raise ValueError(
            f"predict(x, cost_matrix) of a weak learner returns a label from 0 to {K - 1}; "
            f"{state.model!r} returned {label!r}"
        )
    return int(label)


def update_with_costs(state: Model, x: Example, C, scores, truth, weight, rng) -> None:
    """Update a cost-sensitive learner with the costs and the label of x."""
    state.model.update(dense(x), C.copy(), int(truth))
    state.updates[()] += 1


COST_SENSITIVE = PythonKernels(
    "cost_sensitive", predict_with_costs, greedy.py_func, update_with_costs
)
"""Stands for weak learners that take cost matrices: they are called with these, not with scores."""


def weak_kernels(weak: Weak) -> tuple[Any, Any, Any]:
    """Return three functions: the selection of one weak learner, its `predict` and its `update`."""
    kernels, has_probabilities, takes_weights = weak
    if kernels is COST_SENSITIVE:
        return _model, predict_with_costs, update_with_costs
    compiled = not isinstance(kernels, PythonKernels)
    decorator: Any = lean_kernel if compiled else lambda function: function
    score, learn = kernels._kernels["score"], kernels._kernels["learn"]
    learn_weighted = kernels.weighted

    @decorator
    def predict(state, x, C, scores, p, costs):
        """Return a label for x, after filling the weak learner's own scores."""
        score(state, x, scores)
        if not has_probabilities:
            return argmax(scores)
        softmax(scores, 1.0, p)
        return least_cost(p, C, costs)

    @decorator
    def update(state, x, C, scores, truth, weight, rng):
        """Learn that `truth` is the label of x, after `predict`; the weight is at most one."""
        if takes_weights:
            if weight > 0.0:
                learn_weighted(state, x, truth, weight)
        elif uniform(rng) < weight:
            learn(state, x, scores, truth, 1.0, None, truth)

    return at if compiled else _model, predict, update


def _model(models: Models, i: int) -> Model:
    return models.models[i]
