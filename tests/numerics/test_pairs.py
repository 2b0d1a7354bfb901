"""Pairs of columns: what they find, and when there are none."""

import numpy as np
import pytest

from onebit import OneBitClassifier, play
from onebit.numerics.pairs import new_pairs


def genes(n, d=16, seed=0):
    """Columns of three levels; where the first two differ by one, the label is 1, mostly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(n, d)).astype(float)
    y = (X[:, 0] - X[:, 1]) % 3 == 1
    return X, np.where(rng.random(n) < 0.1, rng.random(n) < 0.5, y).astype(int)


def test_one_pair_among_many_is_found():
    X, y = genes(1_500)
    learner = OneBitClassifier(random_state=0)
    mistakes = play(learner, X, y).mistakes
    weights = {member.name: member.weight for member in learner.members_}
    assert weights["pairs"] > 0.9
    assert mistakes[-500:].mean() < 0.1
    pairs = learner._run.state.mixture.pairs
    assert pairs.trust.argmax() == 0
    assert pairs.trust[0] > 0.9
    reason = max(learner.explain(X[0]).reasons, key=lambda reason: abs(reason.amount))
    assert reason.columns == (0, 1)


@pytest.mark.parametrize(
    ("d", "K", "n"), [(1, 2, 0), (2, 2, 1), (20, 2, 190), (64, 4, 2_016), (65, 2, 0), (64, 5, 0)]
)
def test_pairs_that_are_too_many_are_left_out(d, K, n):
    pairs = new_pairs(d, K)
    assert pairs.trust.size == n
    assert len(pairs.cells) == min(256 * n, 2**16)
    assert pairs.trust.sum() == pytest.approx(float(n > 0))


def test_each_round_counts_once_in_a_cell_of_each_pair():
    """Whatever is said of a label: a bit, a grade or the truth, of labels old, new and retired."""
    rng = np.random.default_rng(0)
    learner = OneBitClassifier(classes=range(3), notice_changes=False, random_state=0)
    offered = [0, 1, 2]
    for t in range(300):
        if t == 100:
            learner.add_classes([3, 4])
            offered = [0, 1, 2, 3, 4]
        if t == 200:
            learner.retire_classes([1])
            offered = [0, 2, 3, 4]
        x = np.array([rng.normal(), 7.0, rng.choice([1e-30, 1e30, 0.0, -1e30]), rng.integers(3)])
        among = rng.choice(offered, size=1 + t % 3, replace=False).tolist() if t % 2 else None
        decision = learner.decide(x, among=among)
        feedback = [{"correct": t % 8 == 0}, {"reward": rng.random()}, {"truth": offered[t % 3]}]
        learner.learn(decision, **feedback[t % 3])
    counts = learner._run.state.mixture.pairs.cells.sum(axis=(0, 2))
    np.testing.assert_allclose(counts, 300 * 6)
    p = learner.predict_proba([x])[0]
    assert p[1] == 0.0
    assert p.sum() == pytest.approx(1.0)
