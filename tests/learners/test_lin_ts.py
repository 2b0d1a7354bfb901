import numpy as np
import scipy.sparse as sp

from onebit import LinTS, LinUCB, play
from onebit.numerics.second_order import of_class, rewrite
from paths import assert_same_path, continuous, every_stream, grades
from problems import assert_finite, logistic
from references import lin_ucb


@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    parameters = {"v": 0.5, "regularization": 2.0}
    reference = lin_ucb.LinTS(X.shape[1], K, **parameters)
    learner = LinTS(**parameters, random_state=K)
    assert_same_path(learner, reference, X, y, storage, quadrature=1e-6)


def test_walks_the_path_of_the_reference_with_rewards():
    X, y = continuous(3, n=300)
    reference, learner = lin_ucb.LinTS(X.shape[1], 3, 0.5), LinTS(0.5, random_state=0)
    assert_same_path(learner, reference, X, y, rewards=grades(y), quadrature=1e-6)


def test_its_policy_is_that_of_drawn_weights():
    X, y = logistic(300, 4, 3, 3.0)
    learner = LinTS(v=0.7, random_state=0).fit(X, y)
    state = learner._run.state
    rng = np.random.default_rng(0)
    draws = np.zeros((100_000, 3))
    for k in range(3):
        inverse = of_class(state.A_inv, k)
        rewrite(inverse)
        mu = rng.multivariate_normal(state.W[:, k], 0.7**2 * inverse.base, size=len(draws))
        draws[:, k] = mu @ X[0]
    shares = np.bincount(np.argmax(draws, axis=1), minlength=3) / len(draws)
    np.testing.assert_allclose(learner.policy(X[:1])[0], shares, rtol=0, atol=0.008)


def test_without_width_it_is_greedy():
    X, y = logistic(1_000, 5, 4, 3.0)
    greedy, bounds = play(LinTS(v=0.0), X, y), play(LinUCB(alpha=0.0), X, y)
    assert np.array_equal(greedy.mistakes, bounds.mistakes)
    assert greedy.n_explored == 0


def test_stays_finite():
    rng = np.random.default_rng(0)
    for scale in (1e-8, 1.0, 1e8):
        X = scale * np.repeat(rng.normal(size=(50, 4)) * [1, 1, 1, 1e-6], 20, axis=0)
        learner = LinTS(random_state=0).fit(sp.csr_array(X), rng.integers(5, size=len(X)))
        assert_finite(learner, X)
