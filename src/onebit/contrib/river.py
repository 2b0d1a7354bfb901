"""Learners for River: a classifier of dicts, and a contextual bandit policy."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from sys import getsizeof
from typing import Any

from river import bandit, base

from onebit.contrib.rounds import (
    bandit_in,
    bit,
    learner_in,
    named,
    new_pipeline,
    take_labels,
)
from onebit.core import Decision
from onebit.core.pipeline import Pipeline
from onebit.core.storage import arrays_of
from onebit.learners import Banditron

_UNCHANGING = frozenset({float, int, bool, str, type(None)})


class RiverClassifier(base.Classifier):
    """A learner as a River classifier.

    `learn_one` plays a round: the learner decides, and is told the label. What a bandit learner
    makes of it depends on its `uses_truth`: `OneBitClassifier` learns from the label itself, others
    only whether their own label was right. For one bit per round, see `RiverPolicy`.

    Parameters
    ----------
    model : Learner or Pipeline
        A learner made with its `classes`, or a pipeline of `onebit.make_pipeline`. A learner alone
        gets `onebit.features.Records` before it, which hashes the names of features. For a few
        features, `Records` with a few hundred columns are better: `OneBitClassifier` then has a
        full covariance. The model is not changed: a copy of it learns.

    Examples
    --------
    >>> from onebit import OneBitClassifier, make_pipeline
    >>> from onebit.contrib.river import RiverClassifier
    >>> from onebit.features import Records
    >>> from river import datasets, evaluate, metrics
    >>> learner = OneBitClassifier(classes=[False, True], random_state=0)
    >>> model = RiverClassifier(make_pipeline(Records(n_features=256), learner))
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 90.96%
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._pipeline = new_pipeline(model)
        self._last: tuple[Any, Any] = None, None

    @property
    def pipeline(self) -> Pipeline:
        """What learns: it has `save`, `policy` and all else that a pipeline has."""
        return self._pipeline

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Play a round: decide about `x`, and learn from the label `y`."""
        learner = learner_in(self._pipeline)
        learner.learn(learner.decide(self._example(x)), truth=y)

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """Return the greedy label of `x`."""
        return learner_in(self._pipeline).predict(self._example(x)).tolist()[0]

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probability of each label, if the learner is a probability model."""
        learner = learner_in(self._pipeline)
        if not hasattr(learner, "predict_proba"):
            raise NotImplementedError(f"{type(learner).__name__} is no probability model")
        (p,) = learner.predict_proba(self._example(x)).tolist()
        return dict(zip(learner.classes_.tolist(), p, strict=True))

    def _example(self, x: dict[Any, Any]) -> Any:
        """Return the example of `x`, kept as River predicts and then learns from the same `x`."""
        record = named(x)
        last, example = self._last
        if record != last:
            example = self._pipeline._example(record)
            # A value that changed in place would still compare equal to itself.
            flat = _UNCHANGING.issuperset(map(type, record.values()))
            self._last = (dict(record), example) if flat else (None, None)
        return example

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of the learned state: River's own count would follow compiled code into Numba."""
        learner = learner_in(self._pipeline)
        state = arrays_of(learner._run.state) if hasattr(learner, "classes_") else ()
        return getsizeof(self) + sum(array.nbytes for _, array in state)

    @property
    def _multiclass(self) -> bool:
        learner = learner_in(self._pipeline)
        classes = getattr(learner, "classes_", learner.classes)
        return classes is None or len(classes) > 2

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": Banditron(classes=[False, True], random_state=0)}


class RiverPolicy(bandit.base.ContextualPolicy):
    """A bandit learner as a River policy: its labels are the arms.

    The arms of a pull are the labels on offer. An update that follows the pull of the same arm, for
    the same context, learns from that decision, with its probability. Any other update, as from a
    log or from the burn-in, counts as a decision made with probability 1.

    Parameters
    ----------
    model : Learner or Pipeline
        A bandit learner, or a pipeline of `onebit.make_pipeline`. A learner alone gets
        `onebit.features.Records` before it, which hashes the names of features. The model is not
        changed: a copy of it learns. Arms that are not among its `classes` become labels when they
        are first on offer; the first pull needs at least two arms.
    reward_obj, burn_in
        As for every River policy.
    seed : int, optional
        Seed of the bits that are drawn for rewards between 0 and 1, which are taken as the
        probability of being right.

    Examples
    --------
    >>> from onebit import OneBitClassifier
    >>> from onebit.contrib.river import RiverPolicy
    >>> policy = RiverPolicy(OneBitClassifier(random_state=0))
    >>> wanted = {"morning": "news", "evening": "films"}
    >>> for time in ["morning", "evening"] * 100:
    ...     context = {"time": time}
    ...     arm = policy.pull(["films", "games", "news"], context)
    ...     policy.update(arm, context, arm == wanted[time])
    >>> policy.ranking
    ['films', 'news', 'games']
    >>> policy.pull(["films", "games"], {"time": "evening"})
    'films'
    """

    def __init__(
        self, model: Any, reward_obj: Any = None, burn_in: int = 0, seed: int | None = None
    ) -> None:
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.model = model
        self.seed = seed
        self._pipeline = new_pipeline(model)
        self._rng = Random(seed)
        self._pulled: tuple[Any, Decision | None] = None, None
        learner = bandit_in(self._pipeline)
        classes = getattr(learner, "classes_", learner.classes)
        self._arms = set() if classes is None else set(classes)

    @property
    def pipeline(self) -> Pipeline:
        """What learns: it has `save`, `policy` and all else that a pipeline has."""
        return self._pipeline

    def pull(self, arm_ids: Any, context: Any = None) -> Any:
        """Choose one of these arms, for this context."""
        arms = list(arm_ids)
        new = [arm for arm in arms if arm not in self._arms]
        if new:
            take_labels(learner_in(self._pipeline), new)
            self._arms.update(new)
        return super().pull(arms, context)

    def _pull(self, arm_ids: Any, context: Any) -> Any:
        decision = self._pipeline.decide(named(context), among=arm_ids)
        self._pulled = context, decision
        return decision.label

    def update(self, arm_id: Any, context: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn whether an arm was right.

        Parameters
        ----------
        arm_id
            The arm that was pulled.
        context
            The context for which it was pulled.
        *reward_args, **reward_kwargs
            First the reward, from 0 to 1. All go to `reward_obj`.
        """
        correct = bit(reward_args[0], self._rng)
        seen, decision = self._pulled
        if decision is None or seen is not context or decision.label != arm_id:
            decision = Decision(named(context), arm_id, 1.0)
        self._pipeline.learn(decision, correct=correct)
        self._pulled = None, None
        super().update(arm_id, context, *reward_args, **reward_kwargs)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": Banditron(random_state=0)}
