"""Learners for coba experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from random import Random
from typing import Any

from coba.exceptions import CobaException
from coba.primitives import Learner as CobasLearner
from coba.primitives import is_batch
from sklearn.base import clone

from onebit.contrib.rounds import CONSTANT, bandit_in, bit, named, take_labels
from onebit.core import Decision
from onebit.core.pipeline import Pipeline, make_pipeline
from onebit.core.validation import check_example
from onebit.features import Records


class CobaLearner(CobasLearner):
    """A bandit learner as a coba learner, for `SequentialCB` and the other evaluators.

    The actions are its labels, in the order in which they are first seen, whatever they are: texts,
    numbers, one-hot tuples, dicts. The actions of a round are the labels on offer.

    A context of numbers is used as an example directly; dicts, texts and tuples that contain texts
    are records, which `onebit.features.Records` turns into examples. If the model is a pipeline,
    all contexts are records.

    Parameters
    ----------
    model : Learner or Pipeline
        A bandit learner, or a pipeline of `onebit.make_pipeline`. It is not changed: an untrained
        copy of it learns.
    actions : list, optional
        Actions that are known before the first round. Others become labels when they are first
        seen. Learning from a log before the first prediction requires at least two.
    seed : int, default=1
        Seed of the bits that are drawn for rewards between 0 and 1, which are taken as the
        probability of being right.

    Examples
    --------
    >>> import coba as cb
    >>> from onebit import OneBitClassifier
    >>> from onebit.contrib.coba import CobaLearner
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> environment = cb.Environments.from_supervised(X.tolist(), y.tolist(), "c").shuffle(1)
    >>> learner = CobaLearner(OneBitClassifier(random_state=0))
    >>> rounds = list(cb.SequentialCB(["reward"]).evaluate(environment[0], learner))
    >>> sum(r["reward"] for r in rounds), len(rounds)
    (168.0, 178)
    """

    def __init__(
        self, model: Any, actions: Sequence[Any] | None = None, seed: int | None = 1
    ) -> None:
        bandit_in(model)
        self._model, self._actions, self._seed = model, actions, seed
        self._running: Any = None
        self._labels: dict[Any, int] = {}
        self._dense = False
        self._rng = Random(seed)

    @property
    def params(self) -> Mapping[str, Any]:
        """The learner and its parameters, for coba's result tables."""
        learner = bandit_in(self._model)
        plain = {
            name: value
            for name, value in learner.get_params(deep=False).items()
            if isinstance(value, str | int | float | None)
        }
        return {"family": type(learner).__name__, **plain, "seed": self._seed}

    def predict(self, context: Any, actions: Any) -> tuple[Any, float, dict[str, Any]]:
        """Choose one of the actions."""
        learner, labels = self._ready(context, actions)
        offer = set(labels)
        among = None if len(offer) == len(self._labels) else offer
        decision = learner.decide(self._example(context), among)
        chosen = actions[labels.index(decision.label)]
        return chosen, decision.probability, {"decision": decision}

    def score(self, context: Any, actions: Any, action: Any) -> float:
        """Return the probability of choosing an action."""
        learner, labels = self._ready(context, actions)
        p = learner.policy(self._example(context), among=set(labels))
        return float(p[0, self._labels[_hashable(action)]])

    def learn(
        self,
        context: Any,
        action: Any,
        reward: float,
        probability: float | None,
        decision: Decision | None = None,
    ) -> None:
        """Learn whether an action was right, from a decision of `predict` or of a log."""
        correct = bit(reward, self._rng)
        if decision is None:
            known = self._actions if self._running is None else [action]
            self._ready(context, known)
            (label,) = self._labels_of([action])
            certain = 1.0 if probability is None else probability
            decision = Decision(self._example(context), label, certain)
        bandit_in(self._running).learn(decision, correct=correct)

    def _ready(self, context: Any, actions: Any) -> tuple[Any, list[int]]:
        """Return the learner, and its labels for these actions; start with them if necessary."""
        if is_batch(context) or is_batch(actions):
            raise CobaException("a round is about one context; coba plays batches one by one")
        if not actions:
            raise ValueError(
                f"at least one action is needed; got {actions}. To learn before the first "
                "prediction, name the actions by CobaLearner(model, actions=[...])"
            )
        if self._running is None:
            self._begin(context, actions if self._actions is None else self._actions)
        return bandit_in(self._running), self._labels_of(actions)

    def _begin(self, context: Any, actions: Any) -> None:
        running = clone(self._model)
        bandit_in(running).set_params(classes=None)
        self._dense = _is_dense(context) and not isinstance(running, Pipeline)
        if not self._dense and not isinstance(running, Pipeline):
            running = make_pipeline(Records(), running)
        self._running = running
        self._labels_of(actions)

    def _labels_of(self, actions: Any) -> list[int]:
        """Return the labels of actions, after adding those that are new."""
        known = [_hashable(action) for action in actions]
        new = [action for action in dict.fromkeys(known) if action not in self._labels]
        if new:
            n = len(self._labels)
            take_labels(bandit_in(self._running), list(range(n, n + len(new))))
            self._labels |= {action: n + k for k, action in enumerate(new)}
        return [self._labels[action] for action in known]

    def _example(self, context: Any) -> Any:
        if self._dense:
            return check_example([context] if isinstance(context, Real) else context, None)
        return self._running._example(_record(context))


def _hashable(action: Any) -> Any:
    if isinstance(action, Mapping):
        return frozenset(action.items())
    return tuple(action) if isinstance(action, list) else action


def _is_dense(context: Any) -> bool:
    if isinstance(context, list | tuple):
        return bool(context) and all(isinstance(value, Real) for value in context)
    return isinstance(context, Real)


def _record(context: Any) -> Mapping[str, Any]:
    if context is None:
        return CONSTANT
    if isinstance(context, Mapping):
        return named(context)
    return named(dict(enumerate(context if isinstance(context, list | tuple) else [context])))
