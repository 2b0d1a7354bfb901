import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import Banditron, Decision, play, streams
from onebit.learners.bandit_eg import BanditEG, twice_sinh
from onebit.streams.separable import strongly_separable
from paths import assert_same_path, continuous, every_stream
from problems import assert_finite
from references import bandit_eg


def log_potential(learner):
    return np.log(learner._run.state.total.sum()) + learner._run.state.shift


def exact_weights(learner):
    theta = np.longdouble(learner._run.state.theta.T)
    return learner.radius * np.sinh(theta) / np.cosh(theta).sum()


# One-hot examples leave exponents tied in exact arithmetic that rounding tells apart; the ties here
# are those of unseen features and empty rows.
@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = bandit_eg.BanditEG(X.shape[1], K, 0.05, 0.3, 2.5)
    assert_same_path(BanditEG(0.05, 0.3, 2.5, random_state=K), reference, X, y, storage)


def test_walks_the_path_of_the_reference_through_large_exponents():
    X, y = continuous(3)
    reference = bandit_eg.BanditEG(X.shape[1], 3, 7.0, 0.3, 1.0)
    learner = BanditEG(7.0, 0.3, random_state=0)
    shifts, largest = set(), []

    def check(reference, label, truth):
        shifts.add(float(learner._run.state.shift))
        largest.append(np.abs(reference.theta).max())

    assert_same_path(learner, reference, X, y, every_round=check)
    assert len(shifts) > 3
    assert max(largest) > 250


@pytest.mark.parametrize("truth", range(4))
def test_expected_update_is_that_of_the_perceptron(truth):
    rng = np.random.default_rng(truth)
    x = rng.normal(size=5)
    X, y = rng.normal(size=(30, 5)), rng.integers(4, size=30)
    started = BanditEG(0.2, 0.3, classes=range(4), random_state=0).fit(X, y)
    theta = started._run.state.theta
    expected = np.zeros_like(theta)
    for label, p in enumerate(started.policy(x[None])[0]):
        learner = BanditEG(0.2, 0.3, classes=range(4), random_state=0).fit(X, y)
        learner.learn(Decision(x, label, p), correct=label == truth)
        expected += p * (learner._run.state.theta - theta)
    y_hat = np.argmax(started.decision_function(x[None]))
    perceptron = 0.2 * np.outer(x, np.eye(4)[truth] - np.eye(4)[y_hat])
    np.testing.assert_allclose(expected, perceptron, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    eta=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    gamma=st.floats(0.01, 1.0),
    radius=st.sampled_from([1.0, 1e3]),
)
def test_potential_rises_no_faster_than_hoeffdings_lemma_allows(seed, eta, gamma, radius):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(100, 4)), rng.integers(3, size=100)
    learner = BanditEG(eta, gamma, radius, classes=range(3), random_state=seed)
    learner.decide(X[0])
    assert log_potential(learner) == pytest.approx(np.log(2 * 3 * 4))
    for x, truth in zip(X, y, strict=True):
        before, theta, W = log_potential(learner), learner._run.state.theta.copy(), learner.coef_.T
        decision = learner.decide(x)
        learner.learn(decision, correct=decision.label == truth)
        change = learner._run.state.theta - theta
        allowed = (W * change).sum() / radius + np.abs(change).max() ** 2 / 2
        assert log_potential(learner) - before <= allowed + 1e-9 * (1 + abs(before))
        assert log_potential(learner) >= np.abs(learner._run.state.theta).max() * (1 - 1e-12)
        assert np.abs(learner.coef_).sum() <= radius * (1 + 1e-12)


@pytest.mark.parametrize("eta", [0.01, 1.0])
def test_normaliser_does_not_drift(eta):
    X, y = streams.synsep(100_000, seed=1)
    learner = BanditEG(eta, random_state=0).fit(X, y)
    np.testing.assert_allclose(learner.coef_, exact_weights(learner), rtol=1e-11, atol=1e-300)
    theta = np.longdouble(learner._run.state.theta)
    expected = float(np.log(2 * np.cosh(theta).sum()))
    assert log_potential(learner) == pytest.approx(expected, abs=1e-12 * expected)


def test_sum_is_taken_anew_only_rarely():
    X, y = streams.synnonsep(20_000, seed=1)
    learner = BanditEG(1.0, classes=range(9), random_state=0)
    shifts = {0.0}
    for lo in range(0, len(y), 10):
        learner.partial_fit(X[lo : lo + 10], y[lo : lo + 10])
        shifts.add(float(learner._run.state.shift))
    assert 3 < len(shifts) < 100


def test_small_steps_are_those_of_banditron():
    X, y = continuous(4)
    slow = play(BanditEG(1e-7, 0.2, random_state=3), X, y)
    np.testing.assert_array_equal(
        slow.mistakes, play(Banditron(0.2, random_state=3), X, y).mistakes
    )


def test_radius_scales_the_weights_and_changes_no_decision():
    X, y = continuous(4)
    one, other = BanditEG(radius=1.0, random_state=0), BanditEG(radius=1e3, random_state=0)
    np.testing.assert_array_equal(play(one, X, y).mistakes, play(other, X, y).mistakes)
    np.testing.assert_allclose(1e3 * one.coef_, other.coef_, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize(("eta", "gamma"), [(1e-6, 1e-6), (1e3, 1e-6), (1e3, 1.0)])
def test_extreme_values_stay_finite(scale, eta, gamma):
    X, y = continuous(5)
    learner = BanditEG(eta, gamma, 1e3, classes=range(5), random_state=0)
    learner.fit(scale * X, y)
    # The rarest right guess there can be.
    learner.learn(Decision(scale * X[0], int(y[0]), gamma / 5), correct=True)
    assert_finite(learner, scale * X)
    assert 0 < np.abs(learner.coef_).sum() <= 1e3 * (1 + 1e-9)


def test_finds_few_relevant_features_among_many_sooner_than_banditron():
    X, y = strongly_separable(20_000, seed=1)
    eg = play(BanditEG(random_state=0), X, y)
    assert eg.n_mistakes < 0.5 * play(Banditron(random_state=0), X, y).n_mistakes


def test_weights_of_small_exponents_have_all_digits():
    z = np.concatenate([[0.0], np.geomspace(1e-300, 0.5, 300)])
    found = np.array([twice_sinh(size) for size in z])
    np.testing.assert_allclose(found, 2.0 * np.sinh(z), rtol=5e-16)
