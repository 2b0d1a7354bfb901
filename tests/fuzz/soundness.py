"""What must hold of a learner at any time, whatever was done to it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fuzz import forms, values
from onebit import play
from onebit.core.learner import Learner
from onebit.core.storage import arrays_of

REFUSALS = (ValueError, TypeError)


def snapshot(learner: Learner) -> dict[str, Any]:
    """Return a copy of all that was learned; nothing, if it has not started."""
    if not learner._started:
        return {}
    arrays = {name: np.array(value) for name, value in arrays_of(learner._run.state)}
    return {
        **arrays,
        "classes_": learner.classes_.copy(),
        "retired_classes_": learner.retired_classes_,
        "n_features_in_": learner.n_features_in_,
    }


def assert_same(before: dict[str, Any], after: dict[str, Any], what: str) -> None:
    """Compare two snapshots bit by bit, except for the sign of zero."""
    assert before.keys() == after.keys(), f"{what}: {before.keys() ^ after.keys()}"
    for name, old in before.items():
        old, new = np.asarray(old), np.asarray(after[name])
        said = [
            (one.dtype, one.shape, (one + 0.0 if one.dtype.kind == "f" else one).tobytes())
            for one in (old, new)
        ]
        assert said[0] == said[1], f"{what}: {name} was {old} and is {new}"


def attempt(learner: Learner, call, *, must: str = "either", what: str = "") -> tuple[bool, Any]:
    """Call; return whether it was refused, and the result. What is refused changes nothing.

    `must` is "accept", "refuse" or "either"; `what` is for the message.
    """
    before = snapshot(learner)
    refusal = None
    try:
        result = call()
    except REFUSALS as error:
        refusal = error
    if refusal is None:
        assert must != "refuse", f"accepted {what}: {result!r}"
        return False, result
    if must == "accept":
        raise AssertionError(f"refused what is allowed {what}: {refusal!r}") from refusal
    assert_same(before, snapshot(learner), f"changed by a refused call {what} ({refusal!r})")
    return True, refusal


def assert_sound(learner: Learner) -> None:
    """Everything it holds and everything it returns is finite; its policy is a distribution."""
    if not learner._started:
        return
    for name, value in arrays_of(learner._run.state):
        assert np.isfinite(value).all(), f"{name} is not finite: {value}"
    rows = values.probes(learner.n_features_in_)
    if forms.is_python(learner):
        rows = rows[:2]  # its kernels may refuse the others
    p, scores = learner.policy(rows), learner.scores(rows)
    assert_distribution(p)
    retired = np.isin(learner.classes_, learner.retired_classes_)
    assert np.isneginf(scores[:, retired]).all(), f"retired labels have scores: {scores}"
    assert np.isfinite(scores[:, ~retired]).all(), f"scores are not finite: {scores}"
    if hasattr(learner, "predict_proba"):
        assert_distribution(learner.predict_proba(rows))
    if hasattr(learner, "coef_"):
        assert np.isfinite(learner.coef_).all(), f"coef_ is not finite: {learner.coef_}"
    assert np.isin(learner.predict(rows), learner.classes_[~retired]).all()


def assert_distribution(p: np.ndarray) -> None:
    """Each row is non-negative and sums to one."""
    assert np.isfinite(p).all(), f"a policy is not finite: {p}"
    assert (p >= 0.0).all(), f"a probability is negative: {p}"
    assert (np.abs(p.sum(axis=1) - 1.0) <= 1e-9).all(), f"a policy sums to {p.sum(axis=1)}"


def assert_continues_identically(
    learner: Learner, other: Learner, rng: np.random.Generator
) -> None:
    """`other` decides and learns as `learner` does, and neither changes the other one."""
    before = snapshot(learner)
    assert_same(before, snapshot(other), "a copy differs")
    X = rng.normal(size=(5, learner.n_features_in_))
    y = forms.labels(rng, learner, 5)
    play(other, X, y)
    assert_same(before, snapshot(learner), "changed by its copy")
    play(learner, X, y)
    assert_same(snapshot(learner), snapshot(other), "a copy goes on otherwise")


def live(learner: Learner, rng: np.random.Generator, n: int) -> None:
    """Make `n` rounds, more than any buffer of a learner holds, and see that it stays sound."""
    assert_sound(learner)
    d = learner.n_features_in_
    for _ in range(3):
        x = rng.normal(size=d)
        decision = learner.decide(x)
        assert decision.probability == probability_of(learner, decision, x[np.newaxis])
        tell(learner, decision, forms.labels(rng, learner, 1)[0])
    play(learner, rng.normal(size=(n, d)), forms.labels(rng, learner, n))
    assert_sound(learner)


def probability_of(learner: Learner, decision, X: Any) -> float:
    """Return what `policy` says of the label that was decided on."""
    return learner.policy(X)[0, learner.classes_.tolist().index(decision.label)]


def tell(learner: Learner, decision, truth: Any) -> None:
    """Give the feedback that the learner asks for."""
    if learner.feedback == "full":
        learner.learn(decision, truth=truth)
    else:
        learner.learn(decision, correct=bool(decision.label == truth))


def copied(learner: Learner) -> Learner:
    """Return an independent copy."""
    return copy.deepcopy(learner)
