"""Randomized decoding against its literal reference, and what its derivation says."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from onebit import Decision, FenchelYoung, play
from onebit.theory import NotProvenError, bounds
from onebit.theory.bounds.fenchel_young import ETA, theory_eta, theory_gamma
from paths import assert_same_path, continuous, every_stream, one_hot, unit
from problems import assert_finite
from references import fenchel_young

LN2 = math.log(2)


@every_stream(continuous, one_hot)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = fenchel_young.FenchelYoung(X.shape[1], K, "bandit", 0.05, 0.2)
    learner = FenchelYoung(eta=0.05, gamma=0.2, random_state=K)
    assert_same_path(learner, reference, X, y, storage)


@pytest.mark.parametrize("K", [2, 5])
def test_walks_the_path_of_the_reference_with_full_information(K):
    X, y = continuous(K)
    reference = fenchel_young.FenchelYoung(X.shape[1], K, "full", 0.3, 0.0)
    learner = FenchelYoung("full", eta=0.3, random_state=0)
    assert_same_path(learner, reference, X, y)


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_walks_the_path_of_the_reference_with_the_theory(feedback):
    K, X_norm, D, T = 4, 2.0, 3.0, 5_000
    X, y = unit(continuous)(K)
    if feedback == "bandit":
        gamma = math.sqrt(K * D**2 * X_norm**2 / (2 * 0.8555 * (K - 1) / K * T))
        eta = 0.8555 * gamma / (K * X_norm**2)
    else:
        gamma, eta = 0.0, 0.8555 / X_norm**2
    reference = fenchel_young.FenchelYoung(X.shape[1], K, feedback, eta, gamma)
    learner = FenchelYoung(feedback, radius=D, max_norm=X_norm, horizon=T, random_state=0)
    assert_same_path(learner, reference, X, y)


def decoded(sigma):
    """The decisions before exploration."""
    M = min(1, 2 * (1 - sigma.max()))
    return M * sigma + (1 - M) * np.eye(sigma.size)[np.argmax(sigma)]


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 9), few=st.booleans())
def test_loss_exceeds_the_chance_of_a_mistake_by_half_the_step_times_the_squared_gradient(
    seed, K, few
):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=K) * 10 ** rng.uniform(-2, 1.5)
    if few:
        scores[2:] -= 50.0
    sigma, loss = softmax(scores), -log_softmax(scores) / LN2
    p = decoded(sigma)
    for y in range(K):
        g = (sigma - np.eye(K)[y]) / LN2
        assert 1 - p[y] <= loss[y] - ETA / 2 * (g @ g) + 1e-12


def test_no_larger_step_would_do():
    """The least ratio is that of two labels, the less probable of which is right."""
    found = minimize_scalar(
        lambda p: LN2**2 * (2 * p**2 - 1 - math.log2(p)) / (1 - p) ** 2,
        bounds=(1e-6, 0.5),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert ETA <= found.fun < ETA + 1e-4
    sigma = np.array([found.x, 1 - found.x])
    g = (sigma - [1, 0]) / LN2
    gap = 1 - decoded(sigma)[0] + math.log2(found.x) + (ETA + 1e-4) / 2 * (g @ g)
    assert gap > 0


@pytest.mark.parametrize("K", [2, 5])
def test_expected_step_with_one_bit_is_that_of_full_information(K):
    X, y = unit(continuous)(K)
    bandit = FenchelYoung(eta=0.05, gamma=0.1, classes=range(K), random_state=0)
    bandit.fit(X[:300], y[:300])
    full = FenchelYoung("full", 0.05, 0.1, classes=range(K)).fit(X[:1], y[:1])
    full._run.state = full._run.state._replace(W=bandit._run.state.W)
    before = bandit.coef_
    for x, truth in zip(X[300:320], y[300:320], strict=True):
        expected = np.zeros_like(before)
        for label, p in enumerate(bandit.policy(x[None])[0]):
            told = copy.deepcopy(bandit)
            told.learn(Decision(x, label, p), correct=label == truth)
            expected += p * (told.coef_ - before)
        told = copy.deepcopy(full)
        told.learn(Decision(x, 0, 1.0), truth=truth)
        np.testing.assert_allclose(expected, told.coef_ - before, rtol=0, atol=1e-13)


def test_theory_minimises_the_bound():
    for K in (2, 3, 20):
        for D, X, T in [(1.0, 1.0, 10_000), (5.0, 0.3, 10**6), (50.0, 1.0, 100)]:
            gamma = theory_gamma(K, X, D, T)
            best = bounds.fenchel_young(T, K, 7.0, D, X=X)
            for other in (0.5 * gamma, min(1.0, 2 * gamma)):
                assert best <= bounds.fenchel_young(T, K, 7.0, D, X=X, gamma=other) * (1 + 1e-12)
            if gamma < 1:
                regret = 2 / math.sqrt(2 * ETA) * X * D * math.sqrt((K - 1) * T)
                assert best == pytest.approx(7.0 + regret)
                assert best < bounds.gaptron(T, K, 7.0, D, "hinge", "bandit", X, D)
    full = bounds.fenchel_young(10, 5, 7.0, 3.0, "full", X=2.0)
    assert full == pytest.approx(7.0 + 9.0 * 4.0 / (2 * ETA))
    assert theory_eta("full", 0.0, 5, 2.0) == pytest.approx(ETA / 4)
    assert theory_eta("bandit", 0.1, 5, 2.0) == pytest.approx(ETA * 0.1 / 20)


def test_what_is_not_proven_is_refused():
    with pytest.raises(NotProvenError, match="step of at most"):
        bounds.fenchel_young(100, 3, 0.0, 1.0, eta=1.0)
    with pytest.raises(NotProvenError, match="step of at most"):
        bounds.fenchel_young(100, 3, 0.0, 1.0, gamma=0.0)
    with pytest.raises(ValueError, match="it would never learn"):
        FenchelYoung(gamma=0, classes=[0, 1]).decide([1.0])
    FenchelYoung(gamma=0, eta=0.1, classes=[0, 1]).decide([1.0])


def test_a_margin_leaves_only_exploration():
    """And labels without one are drawn from the softmax."""
    learner = FenchelYoung(eta=1.0, gamma=0.1, classes=range(4), random_state=0)
    learner.decide([1.0])
    np.testing.assert_allclose(learner.policy([[1.0]])[0], 0.25)
    learner._run.state.W[0] = [0.0, 1.0, 0.5, 0.2]
    sigma = softmax([0.0, 1.0, 0.5, 0.2])
    np.testing.assert_allclose(learner.policy([[1.0]])[0], 0.9 * sigma + 0.025)
    np.testing.assert_allclose(learner.policy([[50.0]])[0], [0.025, 0.925, 0.025, 0.025])
    p = learner.policy([[3.0]])[0]
    sigma = softmax([0.0, 3.0, 1.5, 0.6])
    M = 2 * (1 - sigma[1])
    assert p[2] == pytest.approx(0.9 * M * sigma[2] + 0.025)


@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_extremes_stay_finite(scale):
    X, y = continuous(4)
    for feedback in ("bandit", "full"):
        learner = FenchelYoung(feedback, max_norm=10 * scale, random_state=0).fit(scale * X, y)
        assert_finite(learner, scale * X[:50])
        np.testing.assert_allclose(learner.policy(X[:50]).sum(axis=1), 1, atol=1e-12)


def test_learns():
    """With full information, on labels of a linear rule, one in ten random."""
    X, y = unit(continuous)(5)
    assert play(FenchelYoung("full", random_state=0), X, y).mistakes[200:].mean() < 0.3
