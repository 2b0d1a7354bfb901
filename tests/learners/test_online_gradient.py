import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import play, streams
from onebit.learners.online_gradient import OnlineGradient
from paths import assert_same_probabilities, continuous, every_stream, one_hot
from problems import assert_finite
from references import online_gradient


@every_stream(continuous, one_hot)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = online_gradient.OnlineGradient(X.shape[1], K, 2.0, 1.5)
    learner = OnlineGradient(2.0, 1.5)
    assert_same_probabilities(learner, reference, X, y, storage)
    assert 10 < reference.projections < 1_900


def test_walks_the_path_of_the_reference_with_a_step_of_its_own():
    X, y = continuous(3)
    reference = online_gradient.OnlineGradient(X.shape[1], 3, 10.0, eta=0.1)
    assert_same_probabilities(OnlineGradient(10.0, eta=0.1), reference, X, y)
    assert reference.projections == 0


def test_step_shrinks_with_the_rounds():
    """Rounds without a gradient count, as in the theory."""
    learner = OnlineGradient(3.0, 2.0, classes=range(2))
    learner.partial_fit(np.zeros((8, 1)), np.zeros(8, dtype=int))
    learner.partial_fit([[0.1]], [1])
    eta = 2 * 3.0 / (np.sqrt(2) * 2.0 * np.sqrt(9))
    np.testing.assert_allclose(learner.coef_, eta * 0.1 * np.array([[-0.5], [0.5]]), rtol=1e-15)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    radius=st.sampled_from([1e-3, 1.0, 1e3]),
    eta=st.sampled_from(["theory", 1e-6, 1.0, 1e4]),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
)
def test_never_leaves_the_ball(seed, radius, eta, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(400, 3))
    learner = OnlineGradient(radius, eta=eta, classes=range(4))
    for lo in range(0, 400, 20):
        learner.partial_fit(X[lo : lo + 20], rng.integers(4, size=20))
        assert_finite(learner)
        assert np.linalg.norm(learner.coef_) <= radius * (1 + 1e-9)


@pytest.mark.parametrize("eta", ["theory", 1e-6, 10.0])
def test_extreme_values_stay_finite(eta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3)) * 10.0 ** rng.integers(-8, 5, size=(20_000, 1))
    y = np.argmax(X @ rng.normal(size=(3, 4)), axis=1)
    learner = OnlineGradient(1e3, 1e-3, eta, classes=range(4)).fit(X, y)
    assert_finite(learner, X)
    assert np.linalg.norm(learner.coef_) <= 1e3 * (1 + 1e-9)


def test_learns_synsep():
    X, y = streams.synsep(20_000, seed=1)
    history = play(OnlineGradient(radius=10, max_norm=7), X, y)
    assert history.mistakes[10_000:].mean() < 0.01
