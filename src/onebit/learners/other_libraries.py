"""Classifiers of other libraries inside a learner: those of scikit-learn and of River.

They learn with full information, one example at a time. River is never imported: a River classifier
is recognised by its methods `learn_one` and `predict_proba_one`.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods

from onebit.core.engine import PythonKernels
from onebit.core.example import Example, dense
from onebit.numerics.exploration import greedy

_LEAST_PROBABILITY = 1e-300
"""A probability used instead of zero, whose logarithm is not finite."""

CLASSIFIER = [
    HasMethods(["partial_fit", "predict_proba"]),
    HasMethods(["partial_fit", "decision_function"]),
    HasMethods(["learn_one", "predict_proba_one"]),
]
"""What a classifier of another library may be, as constraints of a parameter."""

NOT_SAVED = dict.fromkeys(
    ["check_saved_learner_goes_on", "check_decisions_outlive_the_process"],
    "only learners of onebit are written to files",
)
"""Checks that learners with such a classifier are exempt from, with the reason."""


class Model(NamedTuple):
    """A classifier, its labels, and the number of examples that it has learned."""

    model: Any
    labels: list[Any]
    updates: np.ndarray

    def begin_classes(self, first: int) -> None:
        """Refuse: a classifier of another library keeps its own list of classes."""
        raise ValueError(
            f"a classifier of another library cannot take further classes: {self.model!r}"
        )


def is_river_classifier(model: Any) -> bool:
    """Return whether a classifier has the methods of River."""
    return hasattr(model, "learn_one")


def gives_probabilities(model: Any) -> bool:
    """Return whether a classifier is a probability model."""
    return hasattr(model, "predict_proba") or hasattr(model, "predict_proba_one")


def takes_many_classes(model: Any) -> bool:
    """Return whether a classifier takes more than two classes."""
    if is_river_classifier(model):
        return getattr(model, "_multiclass", True)
    return get_tags(model).classifier_tags.multi_class


def takes_weights(model: Any) -> bool:
    """Return whether a classifier takes weights of examples."""
    if is_river_classifier(model):
        return "w" in signature(model.learn_one).parameters
    return "sample_weight" in signature(model.partial_fit).parameters


def takes_positive_only(model: Any) -> bool:
    """Return whether a classifier takes no negative features."""
    return not is_river_classifier(model) and get_tags(model).input_tags.positive_only


def new_model(model: Any, n_classes: int, seed: int) -> tuple[PythonKernels, Model]:
    """Return the kernels of a classifier, and a copy of it before its first example.

    `seed` goes to each `random_state` of a scikit-learn classifier that is None. The labels are the
    positions of the classes.
    """
    if n_classes > 2 and not takes_many_classes(model):
        raise ValueError(
            f"Only binary classification is supported by {model!r}, and there are {n_classes} "
            "classes"
        )
    labels, updates = list(range(n_classes)), np.zeros((), dtype=np.int64)
    if is_river_classifier(model):
        return RIVER, Model(model.clone(), labels, updates)
    kernels = SCIKIT_LEARN if gives_probabilities(model) else MARGINS
    return kernels, Model(seeded(clone(model), seed), labels, updates)


def with_labels(state: Model, labels: list[Any]) -> Model:
    """Return `state` with these labels, if its classifier takes any labels."""
    # River's binary classifiers take nothing but 0 and 1, or False and True.
    return state if is_river_classifier(state.model) else state._replace(labels=labels)


def seeded(model: Any, seed: int, *, anew: bool = False) -> Any:
    """Give `seed` to each `random_state` of a model of scikit-learn; return it.

    Only those that are None are set, unless `anew`.
    """
    names = [
        name
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and (anew or value is None)
    ]
    return model.set_params(**dict.fromkeys(names, seed))


def score_by_probabilities(state: Model, x: Example, scores: np.ndarray) -> None:
    """Fill the logarithms of `predict_proba`."""
    if state.updates == 0:
        scores[:] = 0.0
        return
    with np.errstate(all="ignore"):
        p = state.model.predict_proba(dense(x)[np.newaxis])[0]
    fill_logarithms(p, scores)


def score_by_margins(state: Model, x: Example, scores: np.ndarray) -> None:
    """Fill the scores of `decision_function`."""
    if state.updates == 0:
        scores[:] = 0.0
        return
    margins = state.model.decision_function(dense(x)[np.newaxis])[0]
    scores[:] = margins if np.ndim(margins) else (0.0, margins)


def score_river(state: Model, x: Example, scores: np.ndarray) -> None:
    """Fill the logarithms of `predict_proba_one`, which leaves out labels that it has not seen."""
    if state.updates == 0:
        scores[:] = 0.0
        return
    p = state.model.predict_proba_one(by_feature(x))
    fill_logarithms(np.array([p.get(label, 0.0) for label in state.labels]), scores)


def fill_logarithms(p: np.ndarray, scores: np.ndarray) -> None:
    """Fill ln p, or equal scores if p is not a distribution, as with too few examples."""
    total = p.sum()
    if np.isfinite(total) and total > 0.0:
        np.log(np.maximum(p / total, _LEAST_PROBABILITY), out=scores)
    else:
        scores[:] = 0.0


def learn(state: Model, x: Example, scores, label, probability, offer, truth) -> bool:
    """Update a classifier of scikit-learn with the label of x."""
    y = [state.labels[truth]]
    state.model.partial_fit(dense(x)[np.newaxis], y, classes=state.labels)
    state.updates[()] += 1
    return True


def learn_river(state: Model, x: Example, scores, label, probability, offer, truth) -> bool:
    """Update a classifier of River with the label of x."""
    state.model.learn_one(by_feature(x), state.labels[truth])
    state.updates[()] += 1
    return True


def learn_weighted(state: Model, x: Example, truth: int, weight: float) -> None:
    """Update a classifier of scikit-learn with the label of x, with a weight."""
    y = [state.labels[truth]]
    state.model.partial_fit(
        dense(x)[np.newaxis], y, classes=state.labels, sample_weight=np.array([weight])
    )
    state.updates[()] += 1


def learn_river_weighted(state: Model, x: Example, truth: int, weight: float) -> None:
    """Update a classifier of River with the label of x, with a weight."""
    state.model.learn_one(by_feature(x), state.labels[truth], w=weight)
    state.updates[()] += 1


def by_feature(x: Example) -> dict[int, float]:
    """Return x as River takes it, including features that are zero."""
    return dict(enumerate(dense(x).tolist()))


SCIKIT_LEARN = PythonKernels(
    "scikit_learn", score_by_probabilities, greedy.py_func, learn, weighted=learn_weighted
)
MARGINS = PythonKernels("margins", score_by_margins, greedy.py_func, learn, weighted=learn_weighted)
RIVER = PythonKernels(
    "river", score_river, greedy.py_func, learn_river, weighted=learn_river_weighted
)
