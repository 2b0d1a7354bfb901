import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import HoeffdingTree, load, play
from onebit.learners.hoeffding_tree import KERNELS
from paths import continuous, one_hot
from problems import assert_finite
from references import hoeffding_tree


def reference_of(learner, K):
    """The reference of a learner that has started."""
    used = np.flatnonzero(learner._run.state.used)
    return hoeffding_tree.HoeffdingTree(
        used,
        K,
        learner.n_leaves,
        learner.leaves == "naive_bayes",
        learner.grace,
        learner.delta,
        learner.tie,
    )


@pytest.mark.parametrize(
    ("stream", "leaves", "max_features"),
    [
        (continuous, "counts", 1.0),
        (one_hot, "counts", 1.0),
        (one_hot, "naive_bayes", 0.5),
        pytest.param(continuous, "naive_bayes", 1.0, marks=pytest.mark.slow),
        pytest.param(one_hot, "naive_bayes", 1.0, marks=pytest.mark.slow),
        pytest.param(continuous, "naive_bayes", 0.5, marks=pytest.mark.slow),
    ],
)
def test_walks_the_path_of_the_reference(stream, leaves, max_features):
    K = 3
    X, y = (part[:400] for part in stream(K))
    learner = HoeffdingTree(8, leaves, max_features, classes=range(K), random_state=0)
    learner.decide(X[0])
    reference, stored = reference_of(learner, K), sp.csr_array(X)
    assert len(reference.used) == (5 if max_features == 1.0 else 2)
    for t, truth in enumerate(y):
        decision = learner.decide(stored[[t]])
        expected = reference.probabilities(X[t])
        np.testing.assert_allclose(learner.predict_proba(X[[t]])[0], expected, atol=1e-9)
        assert expected[decision.label] >= expected.max() - 1e-9
        learner.learn(decision, truth=truth)
        reference.learn(X[t], truth)
    assert reference.n == (learner._run.state.n_nodes + 1) // 2 > 2


def test_weighted_examples_walk_the_path_of_the_reference():
    K, rng = 3, np.random.default_rng(0)
    X, y = continuous(K, 1, n=400)
    learner = HoeffdingTree(8, classes=range(K)).fit(X[:1], y[:1])
    reference = reference_of(learner, K)
    reference.learn(X[0], y[0])
    for x, truth in zip(X[1:], y[1:], strict=True):
        weight = rng.random()
        learned = learner.decide(x).x
        KERNELS.weighted(learner._run.state, learned, truth, weight)
        reference.learn(x, truth, weight)
    p = [reference.probabilities(x) for x in X]
    np.testing.assert_allclose(learner.predict_proba(X), p, atol=1e-9)
    assert reference.n > 2


def test_a_stump_and_naive_bayes():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1_000)
    X = rng.normal(size=(1_000, 3)) + 3.0 * y[:, np.newaxis] * [0, 1, 0]
    stump = HoeffdingTree(n_leaves=2)
    assert play(stump, X, y).mistakes[500:].mean() < 0.12
    assert stump._run.state.feature.tolist() == [1, -1, -1]
    assert stump._run.state.threshold[0] == pytest.approx(1.5, abs=0.5)
    bayes = HoeffdingTree(n_leaves=1, leaves="naive_bayes")
    assert play(bayes, X, y).mistakes[500:].mean() < 0.1
    # The odds of two normal densities of variance one, 3 apart, are 3 (x - 1.5).
    log_odds = np.diff(bayes.predict_log_proba(X), axis=1)[:, 0]
    assert np.corrcoef(log_odds, X[:, 1])[0, 1] > 0.95


def test_a_tree_learns_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4_000, 2))
    y = (np.abs(X[:, 0]) < 0.5).astype(int)
    assert play(HoeffdingTree(), X, y).mistakes[2_000:].mean() < 0.1


def test_a_file_that_is_no_tree_is_refused(tmp_path):
    X, y = continuous(3, n=400)
    learner = HoeffdingTree(8).fit(X, y)
    learner.save(tmp_path / "tree")
    assert load(tmp_path / "tree").predict(X).tolist() == learner.predict(X).tolist()
    for node, link in [(0, 0), (1, 1), (0, 3)]:
        before = learner._run.state.link[node]
        learner._run.state.link[node] = link
        learner.save(tmp_path / "broken")
        with pytest.raises(ValueError, match=r"link"):
            load(tmp_path / "broken")
        learner._run.state.link[node] = before
    learner._run.state.n_nodes[()] = 4
    learner.save(tmp_path / "broken")
    with pytest.raises(ValueError, match="n_nodes is 4"):
        load(tmp_path / "broken")


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    offset=st.sampled_from([0.0, 1.0, 1e6]),
    leaves=st.sampled_from(["counts", "naive_bayes"]),
)
def test_extreme_values_stay_finite(seed, scale, offset, leaves):
    rng = np.random.default_rng(seed)
    X = np.clip(scale * (offset + rng.normal(size=(500, 3))), -1e30, 1e30)
    learner = HoeffdingTree(8, leaves, classes=range(3), grace=5)
    play(learner, X, rng.integers(3, size=500))
    assert_finite(learner, X)
