"""One model of OneBitClassifier on its own."""

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import Decision, OneBitClassifier, SoftmaxThompson
from paths import assert_same_path, grades
from references.softmax_thompson import SoftmaxThompson as Reference


def columns(K, n=250):
    """Levels, numbers, zeros and empty rows."""
    rng = np.random.default_rng(K)
    X = np.c_[rng.integers(3, size=n), 4.0 * rng.normal(size=n), rng.integers(20, size=n)]
    X[rng.random(n) < 0.03] = 0.0
    y = (X[:, 0] + (X[:, 1] > 0) * (X[:, 2] > 9)).astype(int) % K
    return X, np.where(rng.random(n) < 0.1, rng.integers(K, size=n), y)


all_views = pytest.mark.parametrize(
    ("view", "covariance", "K", "storage"),
    [
        ("line", "full", 3, np.asarray),
        ("cells", "diagonal", 2, sp.csr_array),
        ("features", "diagonal", 4, sp.csr_array),
        pytest.param("products", "full", 3, np.asarray, marks=pytest.mark.slow),
        pytest.param("line", "diagonal", 2, sp.csr_array, marks=pytest.mark.slow),
        pytest.param("features", "full", 2, np.asarray, marks=pytest.mark.slow),
    ],
)


graded_views = pytest.mark.parametrize(
    ("view", "covariance", "K", "storage"),
    [
        ("features", "diagonal", 4, sp.csr_array),
        ("features", "diagonal", 2, np.asarray),
        pytest.param("line", "full", 3, np.asarray, marks=pytest.mark.slow),
        pytest.param("cells", "diagonal", 2, sp.csr_array, marks=pytest.mark.slow),
    ],
)


def walk(learner, reference, K, storage, is_graded=False):
    """Walk both paths; return the posterior of the learner, and the reference."""
    X, y = columns(K)
    if learner.view == "features":
        X = X / 10.0
    slow = reference(X.shape[1], K, learner.view, learner.covariance == "full")
    rewards = grades(y) if is_graded else None
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6, rewards=rewards)
    return learner._run.state.model.posterior, slow


@all_views
def test_it_walks_the_path_of_the_reference(view, covariance, K, storage):
    learner = SoftmaxThompson(view, covariance, random_state=K)
    found, slow = walk(learner, Reference, K, storage)
    np.testing.assert_allclose(found.W.T, slow.posterior.W, rtol=1e-8, atol=1e-9)


@graded_views
def test_it_walks_the_path_of_the_reference_with_rewards(view, covariance, K, storage):
    learner = SoftmaxThompson(view, covariance, random_state=K)
    found, slow = walk(learner, Reference, K, storage, is_graded=True)
    np.testing.assert_allclose(found.W.T, slow.posterior.W, rtol=1e-8, atol=1e-9)


def test_it_learns_what_the_line_of_the_flagship_learns():
    """That also hedges and notices changes; from the same bits, scores are the same."""
    X, y = columns(3)
    one = SoftmaxThompson(classes=range(3))
    line = OneBitClassifier(views="line", notice_changes=False, classes=range(3))
    for t, (x, truth) in enumerate(zip(X, y.tolist(), strict=True)):
        for learner in (one, line):
            learner.learn(Decision(x, t % 3, 1.0), correct=truth == t % 3)
    assert one.decision_function(X).tolist() == line.decision_function(X).tolist()


@pytest.mark.parametrize(
    ("d", "K", "view", "covariance"),
    [
        (5, 3, "line", "full"),
        (300, 3, "line", "diagonal"),
        (5, 3, "cells", "diagonal"),
        (5, 3, "products", "full"),
        (60, 3, "products", "diagonal"),
    ],
)
def test_the_covariance_follows_from_the_size(d, K, view, covariance):
    assert SoftmaxThompson(view)._at_size(d, K).covariance == covariance
    assert SoftmaxThompson(view, "diagonal")._at_size(d, K).covariance == "diagonal"
