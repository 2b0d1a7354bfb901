import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax

from onebit import play
from onebit.learners.folklore import Folklore
from onebit.learners.frozen.gaussian_aggregating import GaussianAggregating, normal_nodes, root
from onebit.theory import online_log_loss
from paths import TOLERANCE, continuous, one_hot, repeated, unit
from problems import assert_finite, logistic
from references import gaussian_aggregating
from test_folklore import inverse_of


@pytest.mark.parametrize(
    ("K", "stream", "storage"),
    [
        (2, continuous, np.asarray),
        (3, continuous, sp.csr_array),
        (3, one_hot, repeated),
        (9, unit(continuous), np.asarray),
    ],
)
def test_walks_the_path_of_the_reference(K, stream, storage):
    """Probabilities are compared: of classes never told apart, rounding says which is greedy."""
    X, y = stream(K)
    stored = storage(X)
    learner = GaussianAggregating(B=3.0, n_nodes=15, classes=range(K), random_state=1)
    learner.decide(X[0])
    reference = gaussian_aggregating.GaussianAggregating(
        X.shape[1], K, learner._run.state.nodes, B=3.0
    )
    for t, truth in enumerate(y):
        row = stored[[t]]
        decision = learner.decide(row if sp.issparse(row) else row[0])
        p = reference.probabilities(X[t])
        np.testing.assert_allclose(learner.predict_proba(row)[0], p, rtol=0, atol=TOLERANCE)
        if t % 50 == 0:
            np.testing.assert_allclose(learner.predict_proba(row)[0], p, rtol=0, atol=TOLERANCE)
        assert p[decision.label] >= p.max() - TOLERANCE
        learner.learn(decision, truth=truth)
        reference.learn(X[t], truth)
    A_inv, h = inverse_of(learner)
    np.testing.assert_allclose(A_inv @ reference.A, np.eye(A_inv.shape[0]), atol=1e-9)
    np.testing.assert_allclose(h, np.linalg.solve(reference.A, reference.G), atol=1e-9)


@pytest.mark.parametrize(("n", "dimension"), [(2, 1), (3, 2), (256, 1), (255, 4), (1000, 9)])
def test_nodes_have_the_moments_of_a_normal_distribution(n, dimension):
    nodes = normal_nodes(n, dimension, np.arange(4, dtype=np.uint64))
    assert nodes.shape == (n, dimension)
    np.testing.assert_allclose(nodes.mean(axis=0), 0.0, atol=1e-12)
    if n > 200:
        np.testing.assert_allclose(nodes.T @ nodes / n, np.eye(dimension), atol=0.15)
    np.testing.assert_array_equal(nodes, normal_nodes(n, dimension, np.arange(4, dtype=np.uint64)))
    assert np.any(nodes != normal_nodes(n, dimension, np.arange(1, 5, dtype=np.uint64)))


def test_mean_of_two_classes_is_the_integral():
    """The lead of the second class is normal, so the mean is one integral, by Gauss-Hermite."""
    X, y = continuous(2)
    learner = GaussianAggregating(B=5.0, random_state=0).fit(X[:300], y[:300])
    A_inv, h = inverse_of(learner)
    t, weights = np.polynomial.hermite_e.hermegauss(80)
    for x in X[300:350]:
        lead = np.concatenate([-x, x])
        mean, variance = -lead @ h / 2, lead @ A_inv @ lead / 2
        exact = weights @ expit(mean + np.sqrt(variance) * t) / weights.sum()
        assert learner.predict_proba([x])[0, 1] == pytest.approx(exact, abs=1e-3)


def test_mean_of_four_classes_is_that_of_many_draws():
    X, y = continuous(4)
    learner = GaussianAggregating(B=5.0, random_state=0).fit(X[:100], y[:100])
    A_inv, h = inverse_of(learner)
    rng = np.random.default_rng(0)
    W = rng.multivariate_normal(-h / 2, A_inv / 2, size=40_000).reshape(-1, 4, X.shape[1])
    for x in X[100:105]:
        exact = softmax(W @ x, axis=1).mean(axis=0)
        np.testing.assert_allclose(learner.predict_proba([x])[0], exact, atol=0.006)


def test_root_of_singular_matrices():
    rng = np.random.default_rng(0)
    for rank in range(5):
        F = rng.normal(size=(4, rank))
        L = root(F @ F.T)
        np.testing.assert_allclose(L @ L.T, F @ F.T, atol=1e-7)
        assert not np.triu(L, 1).any()


def test_classes_of_what_is_new_tie_exactly():
    learner = GaussianAggregating(classes=range(5), random_state=0)
    learner.partial_fit(np.eye(4)[:2], [3, 4])
    np.testing.assert_array_equal(learner.predict_proba(np.eye(4)[2:]), 0.2)
    assert np.ptp(learner.predict_proba(np.eye(4)[:1])) > 0.01


def test_doubt_draws_the_prediction_to_the_middle():
    """The mean of sigma is nearer to one half than sigma of the mean."""
    X, y = continuous(2)
    learner = GaussianAggregating(B=5.0, random_state=0).fit(X[:20], y[:20])
    _, h = inverse_of(learner)
    for x in X[20:40][np.abs(X[20:40]).sum(axis=1) > 0]:
        lead = np.concatenate([-x, x])
        of_mean = expit(-lead @ h / 2)
        p = learner.predict_proba([x])[0, 1]
        assert abs(p - 0.5) < abs(of_mean - 0.5) + 1e-3


def test_regret_is_about_that_of_folklore():
    d, K, B, T = 3, 4, 5.0, 4_000
    X, y = logistic(T, d, K, strength=2.0)
    losses = [
        online_log_loss(cls(B, classes=range(K), random_state=0), X, y).sum()
        for cls in (GaussianAggregating, Folklore)
    ]
    assert losses[0] < losses[1] + 20 < 0.8 * T * np.log(K)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    B=st.sampled_from([1e-3, 1.0, 1e3]),
    K=st.sampled_from([2, 3, 9]),
    n_nodes=st.sampled_from([2, 33]),
)
def test_extreme_values_stay_finite(seed, scale, B, K, n_nodes):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(500, 3))
    learner = GaussianAggregating(B, n_nodes=n_nodes, classes=range(K), random_state=seed)
    play(learner, X, rng.integers(K, size=500))
    assert_finite(learner, X)
    np.testing.assert_allclose(learner.predict_proba(X).sum(axis=1), 1.0)
