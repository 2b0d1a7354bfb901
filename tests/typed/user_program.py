"""A program of a user, which `mypy --strict` accepts: the public face is typed."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import onebit
from onebit import (
    NONE_OF_THESE,
    SOBA,
    Client,
    Decision,
    DecisionList,
    Explanation,
    History,
    Learner,
    OneBitClassifier,
    load,
    make_pipeline,
    play,
    streams,
    to_batch,
    warm_up,
)
from onebit.evaluation import ConfidenceSequence, Estimate, Log, estimate
from onebit.features import Records


def route(subjects: list[str], desks: list[str]) -> list[Decision]:
    """Decide, learn, save and load."""
    router = make_pipeline(Records(), OneBitClassifier(classes=desks, random_state=0))
    decisions: list[Decision] = []
    for subject in subjects:
        decision = router.decide({"subject": subject}, among=desks)
        assert_type(decision, Decision)
        probability: float = decision.probability
        confidence: float | None = decision.confidence
        if probability > 0.5 and confidence is not None:
            router.learn(decision, correct=decision.label == desks[0])
        decisions.append(decision)
    chosen = router.decide({"subject": subjects[0]}, top=3)
    assert_type(chosen, DecisionList)
    router.learn(chosen, taken=chosen.labels[0])
    assert_type(router.explain({"subject": subjects[0]}), Explanation)
    router.save("router.safetensors")
    return decisions


def one_by_one(learner: Learner) -> int:
    """Use one learner, of any class."""
    assert_type(OneBitClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1]), OneBitClassifier)
    decision = learner.decide(np.zeros(3), id="one")
    learner.learn(Decision.from_dict(decision.to_dict()), truth=NONE_OF_THESE)
    learner.add_classes(["new"]).retire_classes(["old"])
    assert_type(learner.decide(np.zeros(3), top=2), DecisionList)
    best: float | None = learner.rank(np.zeros(3))[0].probability
    assert best is None or best >= 0.0
    policy: np.ndarray = learner.policy(np.zeros((2, 3)))
    return int(policy.argmax(axis=1)[0])


def whole_run() -> Estimate:
    """Play, look at the history, and judge a log."""
    X, y = streams.synsep(1_000, seed=0)
    log = Log()
    history = play(SOBA(gamma=0.01, random_state=0), X, y, log=log)
    assert_type(history, History)
    rate: float = history.error_rate
    mistakes: int = history.n_mistakes
    watched = ConfidenceSequence(level=0.95)
    watched.update(log.correct)
    warm_up(OneBitClassifier())
    fixed = to_batch(SOBA(random_state=0), X, y)
    print(rate, mistakes, watched, fixed, onebit.__version__)
    return estimate(log, load("router.safetensors"), greedy=True)


def remote(address: str) -> None:
    """Use a model of a service."""
    with Client(address, "desks") as router:
        decision: Decision = router.decide({"subject": "Where is my parcel"})
        router.learn(decision, correct=False)
