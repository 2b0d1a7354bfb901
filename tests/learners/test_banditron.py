import numpy as np
import pytest

from onebit import Banditron, Decision
from paths import assert_same_path, continuous, every_stream, one_hot
from references import banditron


@every_stream(continuous, one_hot)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    gamma = 0.25  # 1 / p is then exact for K = 2 and ties stay ties
    learner = Banditron(gamma, random_state=K)
    assert_same_path(learner, banditron.Banditron(X.shape[1], K, gamma), X, y, storage)


@pytest.mark.parametrize("truth", range(4))
def test_expected_update_is_that_of_the_perceptron(truth):
    rng = np.random.default_rng(truth)
    x = rng.normal(size=5)
    started = Banditron(0.3, classes=range(4), random_state=0).fit(
        rng.normal(size=(30, 5)), rng.integers(4, size=30)
    )
    W = started.coef_
    expected = np.zeros_like(W)
    for label, p in enumerate(started.policy(x[None])[0]):
        learner = Banditron(0.3, classes=range(4), random_state=0)
        learner.partial_fit(np.zeros((1, 5)), [0])
        learner._run.state.W[:] = W.T
        learner.learn(Decision(x, label, p), correct=label == truth)
        expected += p * (learner.coef_ - W)
    y_hat = np.argmax(W @ x)
    perceptron = np.outer(np.eye(4)[truth] - np.eye(4)[y_hat], x)
    np.testing.assert_allclose(expected, perceptron, atol=1e-12)
