"""Rewards between right and wrong: what they teach lies between what the two bits teach."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import (
    Banditron,
    Decision,
    FastCB,
    LinUCB,
    LogisticThompson,
    Mixture,
    SoftmaxThompson,
    load,
)

LEARNERS = [
    LogisticThompson("features", "diagonal"),
    SoftmaxThompson("features", "diagonal"),
    LinUCB(0.3),
    FastCB(40.0, B=4.0, R=4.0),
]


def weights(learner):
    state = learner._run.state
    if hasattr(state, "model"):
        return state.model.posterior.W.copy()
    return (state.h if hasattr(state, "h") else state.W).copy()


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 4),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0.0, 1.0)), max_size=20),
    st.floats(0.0, 1.0),
    st.integers(0, 99),
)
def test_weights_are_the_mean_over_a_bit(learner, K, before, reward, seed):
    """After the same rewards, one more moves the weights by the mean of what both bits do."""
    rng, learner = np.random.default_rng(seed), copy.deepcopy(learner)
    learner.set_params(classes=range(K))
    for label, earlier in before:
        learner.learn(Decision(rng.normal(size=3), label % K, 0.5), reward=earlier)
    x, label = rng.normal(size=3), seed % K
    learner.scores([x]) if before else learner.decide(x)
    after = []
    for feedback in ({"correct": False}, {"correct": True}, {"reward": reward}):
        other = copy.deepcopy(learner)
        other.learn(Decision(x, label, 1.0), **feedback)
        after.append(weights(other))
    wrong, right, found = after
    if not np.array_equal(right, weights(learner)):  # a label that was sure teaches nothing
        expected = reward * right + (1.0 - reward) * wrong
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (found >= np.minimum(wrong, right) - 1e-12).all()
    assert (found <= np.maximum(wrong, right) + 1e-12).all()


def test_the_mean_of_rewards_is_learned():
    """A label of which all rewards are 0.3 is right with probability 0.3, as with bits."""
    rng = np.random.default_rng(0)
    for kind in ({"reward": lambda: 0.3}, {"correct": lambda: bool(rng.random() < 0.3)}):
        learner = LogisticThompson("features", "diagonal", classes=range(2))
        for _ in range(2_000):
            learner.learn(Decision([1.0], 0, 1.0), **{name: draw() for name, draw in kind.items()})
        assert learner.right_proba([[1.0]])[0, 0] == pytest.approx(0.3, abs=0.03)


def test_rewards_of_lists_late_and_in_files(tmp_path):
    rng = np.random.default_rng(0)
    learner = LogisticThompson("features", "diagonal", classes=range(4), random_state=0)
    late = learner.decide(rng.normal(size=3))
    for _ in range(30):
        chosen = learner.decide(rng.normal(size=3), top=2)
        learner.learn(chosen, reward=[0.25, None])
        assert learner.has_learned(chosen)
    learner.save(tmp_path / "model")
    for one in (learner, load(tmp_path / "model")):
        one.learn(Decision.from_dict(late.to_dict()), reward=0.6)
        with pytest.raises(ValueError, match="already learned"):
            one.learn(Decision.from_dict(late.to_dict()), reward=0.6)
    assert np.array_equal(weights(learner), weights(one))
    retired = learner.decide(rng.normal(size=3))
    learner.retire_classes([retired.label])
    before = weights(learner)
    learner.learn(retired, reward=0.5)
    assert np.array_equal(before, weights(learner))
    with pytest.raises(ValueError, match="one for each decision"):
        learner.learn(learner.decide([0.0, 1.0, 0.0], top=2), reward=0.5)
    with pytest.raises(ValueError, match="either correct"):
        learner.learn_many([late], correct=[True], reward=[0.5])


def test_a_mixture_takes_rewards_if_all_of_its_members_do():
    model = ("model", SoftmaxThompson("features", "diagonal"))
    assert Mixture([model]).takes_rewards
    assert not Banditron().takes_rewards


def test_a_log_is_replayed_with_rewards_by_rejection_too():
    rng = np.random.default_rng(0)
    X, labels, rewards = rng.normal(size=(300, 3)), rng.integers(3, size=300), rng.random(300)
    rewards[::7] = np.nan
    learner = LogisticThompson("features", "diagonal", classes=range(3), random_state=0)
    chosen, taken = learner.replay(
        X, labels, np.full(300, 1 / 3), reward=rewards, bound=3.0, random_state=0
    )
    assert not taken[::7].any()
    assert 60 < taken.sum() < 200
    again = LogisticThompson("features", "diagonal", classes=range(3), random_state=0)
    for x, label, p, reward, kept in zip(X, labels, chosen, rewards, taken, strict=True):
        assert again.policy([x])[0, label] == p if kept else True
        if kept:
            again.learn(Decision(x, label, p), reward=reward)
    assert np.array_equal(weights(learner), weights(again))
    with pytest.raises(ValueError, match="either correct or reward"):
        learner.replay(X, labels, np.ones(300))
    with pytest.raises(ValueError, match=r"reward is in \[0, 1\]"):
        learner.replay(X, labels, np.ones(300), reward=2.0 * np.ones(300))
