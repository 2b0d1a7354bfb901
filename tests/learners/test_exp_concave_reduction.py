import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from onebit import Decision, play, streams
from onebit.learners.exp_concave_reduction import ExpConcaveReduction
from paths import assert_same_path, continuous, repeated, unit
from problems import assert_finite
from references import exp_concave_reduction
from references.exp_concave_reduction import loss

ORACLES = ["ons", "ftal"]
every_oracle = pytest.mark.parametrize("oracle", ORACLES)


def theory(K, gamma, eta, X, D):
    """The theory's beta and epsilon, written out from Claim 1 with the changes noted."""
    steepest = 2 * (1 + math.sqrt(2) * eta * X * D) / (2 - eta)
    G = K / gamma * steepest * math.sqrt(2) * X
    exp_concave = gamma / K * (2 * eta / (2 - eta)) / steepest**2
    beta = min(1 / (4 * G * 2 * D), exp_concave) / 2
    return beta, 1 / (beta * 2 * D) ** 2


@every_oracle
# One-hot examples leave classes tied for ever in exact arithmetic, and rounding decides.
@pytest.mark.parametrize(
    ("K", "storage"), [(2, np.asarray), (3, sp.csr_array), (9, repeated)], ids=["2", "3", "9"]
)
def test_walks_the_path_of_the_reference(oracle, K, storage):
    X, y = continuous(K, d=2)
    gamma, eta, D, beta, epsilon = 0.5, 0.3, 1.0, 0.002, 5.0
    parts = oracle, gamma, eta, D
    reference = exp_concave_reduction.ExpConcaveReduction(2, K, *parts, beta, epsilon)
    learner = ExpConcaveReduction(*parts, beta=beta, epsilon=epsilon, random_state=K)

    def stays_in_the_ball(reference, label, truth):
        assert np.linalg.norm(learner._run.state.W) <= D * (1 + 1e-12)

    assert_same_path(learner, reference, X, y, storage, stays_in_the_ball)
    assert 0 < reference.oracle.projections < reference.updates


@every_oracle
def test_walks_the_path_of_the_reference_with_the_theory(oracle):
    X, y = unit(continuous)(3, d=3)
    D, T = 2.0, 5_000
    eta = 1 / 4
    gamma = math.sqrt(9 * 3 * math.log(T) / (eta * T))
    assert gamma < 1
    parts = oracle, gamma, eta, D
    reference = exp_concave_reduction.ExpConcaveReduction(
        3, 3, *parts, *theory(3, gamma, eta, 1.0, D)
    )
    learner = ExpConcaveReduction(oracle, radius=D, horizon=T, random_state=3)
    assert_same_path(learner, reference, X, y)
    assert reference.updates > 10


def learner_of_gradients(K, oracle="ons", **parameters):
    """One whose weights move by the gradient: beta epsilon = 1, and next to no curvature."""
    return ExpConcaveReduction(
        oracle, beta=1e-12, epsilon=1e12, radius=1e3, random_state=0, classes=range(K), **parameters
    )


@every_oracle
@pytest.mark.parametrize("K", [2, 3, 7])
def test_expected_loss_is_that_of_the_greedy_mistakes(oracle, K):
    """E l~_t(W) = 1[y_hat != y] l_eta(W): so are the gradients that the oracle is told."""
    X, _ = continuous(K)
    learner = learner_of_gradients(K, oracle, gamma=0.3, eta=0.4)
    learner._start(np.arange(K), 5)
    rng = np.random.default_rng(K)
    for x in X[:40]:
        if not x.any():
            continue
        W = rng.normal(size=(K, 5))
        learner._run.state.W[:] = learner._run.state.W_free[:] = W.T
        p, y_hat = learner.policy(x[None])[0], np.argmax(W @ x)
        for truth in range(K):
            expected = np.zeros_like(W)
            for label in range(K):
                other = copy.deepcopy(learner)
                other.learn(Decision(x, label, p[label]), correct=label == truth)
                expected += p[label] * (W - other.coef_)
            l_eta = approx_fprime(
                W.ravel(), lambda w, x, y: loss(w.reshape(K, 5), x, y, 0.4), 1e-7, x, truth
            )
            np.testing.assert_allclose(expected, (y_hat != truth) * l_eta.reshape(K, 5), atol=1e-5)


@every_oracle
@pytest.mark.parametrize("gamma", ["theory", 0.3])
def test_learns_only_where_exploration_beats_the_greedy_label(oracle, gamma):
    X, y = continuous(5, n=2_000)
    learner = ExpConcaveReduction(oracle, gamma, horizon=100_000, random_state=0)
    history = play(learner.set_params(classes=range(5)), X, y)
    empty = ~X.any(axis=1)
    found = history.explored & ~history.mistakes & ~empty
    assert found.sum() > 20
    np.testing.assert_array_equal(history.updated, found)


def test_loss_is_above_the_mistake_and_below_its_own_bounds():
    """Claim 1: exp-concavity and the length of gradients, for all weights in the ball."""
    rng = np.random.default_rng(0)
    for D, X in [(0.3, 1.0), (1.0, 1.0), (4.0, 2.0)]:
        eta = 1 / max(2 * X * D, 1)
        steepest = 2 * (1 + math.sqrt(2) * eta * X * D) / (2 - eta)
        m = np.linspace(-math.sqrt(2) * X * D, math.sqrt(2) * X * D, 1_001)
        slope, bend = -2 / (2 - eta) + 2 * eta / (2 - eta) * m, 2 * eta / (2 - eta)
        assert np.abs(slope).max() == pytest.approx(steepest)
        assert (slope <= 0).all()
        assert bend / steepest**2 >= eta / 8
        for _ in range(100):
            W = rng.normal(size=(4, 3))
            W *= D / np.linalg.norm(W)
            x = rng.normal(size=3)
            x *= X / np.linalg.norm(x)
            y = rng.integers(4)
            g = exp_concave_reduction.gradient(W, x, y, eta)
            assert np.linalg.norm(g) <= steepest * math.sqrt(2) * X * (1 + 1e-12)
            if np.argmax(W @ x) != y:
                assert loss(W, x, y, eta) >= 1


def test_theory_of_gamma():
    def gamma(**parameters):
        learner = ExpConcaveReduction(**parameters)
        return float(learner._begin(5, 3, np.zeros(4, dtype=np.uint64))[1].gamma)

    assert gamma(horizon=100) == 1.0
    expected = math.sqrt(9 * 5 * math.log(10**6) / (0.5 * 10**6))
    assert gamma(horizon=10**6) == pytest.approx(expected)
    assert gamma(horizon=10**6, eta=1.0) == pytest.approx(expected / math.sqrt(2))
    assert gamma(gamma=0.2, horizon=10**6) == 0.2


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    oracle=st.sampled_from(ORACLES),
    gamma=st.sampled_from(["theory", 1e-6, 0.5, 1.0]),
    eta=st.sampled_from(["theory", 1e-6, 1.0]),
    radius=st.sampled_from([1e-3, 1.0, 1e3]),
    beta=st.sampled_from(["theory", 1e-6, 10.0]),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
)
def test_never_leaves_the_ball(seed, oracle, gamma, eta, radius, beta, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(400, 3))
    learner = ExpConcaveReduction(
        oracle, gamma, eta, radius, beta=beta, random_state=seed, classes=range(4)
    )
    for lo in range(0, 400, 20):
        learner.partial_fit(X[lo : lo + 20], rng.integers(4, size=20))
        assert_finite(learner)
        assert np.linalg.norm(learner.coef_) <= radius * (1 + 1e-9)


@every_oracle
@pytest.mark.parametrize("gamma", [1e-6, 0.5])
def test_extreme_values_stay_finite(oracle, gamma):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3)) * 10.0 ** rng.integers(-8, 5, size=(5_000, 1))
    y = np.argmax(X @ rng.normal(size=(3, 4)), axis=1)
    learner = ExpConcaveReduction(oracle, gamma, radius=1e3, random_state=0, classes=range(4))
    learner.fit(X, y)
    assert_finite(learner, X)
    assert np.linalg.norm(learner.coef_) <= 1e3 * (1 + 1e-9)


@every_oracle
def test_finds_the_labels_of_a_separable_stream(oracle):
    X, y = streams.strongly_separable(20_000, n_features=6, n_classes=3, seed=1)
    history = play(ExpConcaveReduction(oracle, 0.05, random_state=1), X, y)
    assert history.mistakes[10_000:].mean() < 0.07
