"""What the adapters share: a model to play rounds with, contexts as records, rewards as bits."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

from onebit.core.learner import Learner
from onebit.core.pipeline import Pipeline, make_pipeline
from onebit.features import Records

CONSTANT = {"constant": 1.0}
"""The record of a round without a context."""


def new_pipeline(model: Any) -> Pipeline:
    """Return a copy of a pipeline, or of a learner behind `Records`."""
    if isinstance(model, Learner):
        return make_pipeline(Records(), copy.deepcopy(model))
    if isinstance(model, Pipeline):
        return copy.deepcopy(model)
    raise TypeError(
        f"a model is a learner of onebit or what make_pipeline returns; got {type(model).__name__}"
    )


def learner_in(model: Any) -> Any:
    """Return the learner that a model is, or has at its end."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def bandit_in(model: Any) -> Any:
    """Return the learner of a model, which must be a bandit learner."""
    learner = learner_in(model)
    if learner.feedback == "full":
        raise ValueError(
            f"{type(learner).__name__} learns from the label itself, and a bandit is told only "
            "whether its own was right: BanditReduction(learner) learns from that"
        )
    return learner


def take_labels(learner: Any, labels: list[Any]) -> None:
    """Add labels to a learner, whether it has started or not."""
    if hasattr(learner, "classes_"):
        learner.add_classes(labels)
    else:
        known = [] if learner.classes is None else list(learner.classes)
        learner.set_params(classes=[*known, *labels])


def named(context: Mapping[Any, Any] | None) -> Mapping[str, Any]:
    """Return a context as a record, with names converted to strings."""
    if context is None:
        return CONSTANT
    for name in context:
        if type(name) is not str:
            return {str(name): value for name, value in context.items()}
    return context


def bit(reward: Any, rng: Random) -> bool:
    """Return whether a label was right, drawn with probability `reward` if that is not 0 or 1."""
    try:
        sound = 0.0 <= reward <= 1.0
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(f"a reward is from 0, for wrong, to 1, for right; got {reward!r}")
    return rng.random() < reward if 0.0 < reward < 1.0 else bool(reward)
