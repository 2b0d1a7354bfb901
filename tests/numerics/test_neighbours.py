"""Neighbours against the literal reference: distances, ties, wrong labels, eras, a full memory."""

import numpy as np
import pytest

from onebit import NONE_OF_THESE, Decision, OneBitClassifier, load, play
from onebit.numerics import neighbours
from references.one_bit_classifier import Neighbours

pytestmark = pytest.mark.xdist_group("one_bit_classifier")


def clouds(n, K=3, seed=0):
    """Clouds on a grid, so that many distances tie, and labels of which a few are noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(6, size=(n, 2)).astype(float)
    X[:, 1] += rng.normal(size=n) * (rng.random(n) < 0.5)
    y = (X[:, 0] + (X[:, 1] > 2)).astype(int) % K
    return X, np.where(rng.random(n) < 0.1, rng.integers(K, size=n), y)


def assert_same(state, slow):
    found = state.mixture.neighbours
    np.testing.assert_allclose(found.scratch.labels[neighbours.P], slow.p, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        found.scratch.labels[neighbours.COUNTS], slow.counts, rtol=1e-9, atol=1e-12
    )
    assert float(found.weight) == pytest.approx(slow.weight, rel=1e-9)


def test_a_full_memory_has_the_last_examples(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_CASES", 20)
    X, y = clouds(70)
    learner = OneBitClassifier(classes=range(3), random_state=0)
    slow = Neighbours(2, 3, room=20)
    for x, truth in zip(X, y.tolist(), strict=True):
        decision = learner.decide(x)
        state = learner._run.state
        seen = state.scales.scratch
        z = np.zeros(2)
        n = seen.sizes[1] - 1
        z[seen.indices[:n]] = seen.values[:n]
        slow.look(z, state.mixture.neighbours.scratch.labels[neighbours.OTHERS])
        assert_same(state, slow)
        learner.learn(decision, correct=decision.label == truth)
        slow.learn(decision.label, int(decision.label == truth))
    assert learner.members_[-1].n_inputs == 20
    assert state.mixture.neighbours.examples.shape == (2, 20)


@pytest.mark.parametrize(
    ("feedback", "stored"),
    [
        ({"correct": True}, [[1, 1.0]]),
        ({"correct": False}, [[1, 0.0]]),
        ({"reward": 0.25}, [[1, 0.25]]),
        ({"truth": 2}, [[2, 1.0]]),
        ({"truth": NONE_OF_THESE}, []),  # which says nothing where one label is right
    ],
    ids=str,
)
def test_what_is_stored_is_what_was_said(feedback, stored):
    learner = OneBitClassifier(classes=range(3), random_state=0)
    learner.learn(Decision([1.0, 2.0], 1, 0.5), **feedback)
    memory = learner._run.state.mixture.neighbours
    found = memory.cases[: neighbours.n_stored(memory)]
    assert found[:, [neighbours.LABEL, neighbours.SHARE_RIGHT]].tolist() == stored


@pytest.mark.parametrize(("d", "n"), [(1, 4096), (24, 4096), (100, 1000), (256, 390), (10**6, 1)])
def test_memory_is_bounded(d, n):
    assert neighbours.n_examples(d) == n


def test_neighbours_see_what_no_pair_of_columns_does():
    """The parity of three bits: near examples say it; without them, the error was 0.5."""
    X = np.random.default_rng(0).integers(2, size=(3_000, 3)).astype(float)
    X = np.c_[X, np.random.default_rng(1).normal(size=(3_000, 1)) * 0.1]
    y = X[:, :3].sum(axis=1).astype(int) % 2
    learner = OneBitClassifier(random_state=0)
    assert play(learner, X, y).mistakes[1_500:].mean() < 0.02
    weights = {member.name: member.weight for member in learner.members_}
    assert weights["neighbours"] > 0.9


def test_labels_that_are_retired_are_right_for_no_neighbour():
    X, y = clouds(300)
    learner = OneBitClassifier(random_state=0, classes=range(3))
    play(learner, X, y)
    learner.retire_classes([1])
    learner.policy(X[:1])
    assert learner._run.state.mixture.neighbours.scratch.labels[neighbours.P, 1] == 0.0
    learner.add_classes([3])
    assert learner.members_[-1].n_inputs == 300


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (neighbours.LABEL, 3, "cases has a label that is not from 0 to 2"),
        (neighbours.LABEL, 0.5, "cases has a label that is not from 0 to 2"),
        (neighbours.SHARE_RIGHT, 2, "cases has a share of right that is not from 0 to 1"),
    ],
)
def test_unsound_cases_in_a_file_are_refused(tmp_path, column, value, message):
    X, y = clouds(50)
    learner = OneBitClassifier(random_state=0, classes=range(3))
    play(learner, X, y)
    learner._run.state.mixture.neighbours.cases[0, column] = value
    learner.save(tmp_path / "learner")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "learner")
