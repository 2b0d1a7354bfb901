import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import Decision, play
from onebit.learners.frozen.obama import Obama
from onebit.theory import best_linear, bounds
from onebit.theory.bounds.logistic import obama_mu
from problems import assert_finite
from references import aggregating
from test_aggregating import ERRORS, standard_error, stream


@pytest.mark.parametrize(
    ("d", "K", "B", "mu", "eta", "n"),
    [
        (1, 2, 3.0, 0.2, "theory", 40),
        (1, 3, 3.0, 0.3, 0.7, 30),
        pytest.param(2, 2, 2.0, 0.1, 1.0, 9, marks=pytest.mark.slow),
    ],
)
def test_walks_the_path_of_the_integrals(d, K, B, mu, eta, n):
    """At each of 80 rounds, within standard errors of up to 0.013, for 3,000 samples."""
    X, y = stream(80, d, K)
    learner = Obama(B, mu, eta, n_samples=3_000, random_state=0, classes=range(K))
    reference = aggregating.Aggregating(d, K, B, mu, n)
    rate = mu / K if eta == "theory" else eta
    counted = []
    for x, truth in zip(X, y, strict=True):
        decision = learner.decide(x)
        p, error = reference.probabilities(x), standard_error(learner, reference, x)
        assert error.max() < 0.013
        assert (np.abs(learner.policy([x])[0] - p) < ERRORS * error).all()
        learner.learn(decision, correct=decision.label == truth)
        if decision.label == truth:
            counted.append(rate / decision.probability)
            reference.learn(x, truth, counted[-1])
    np.testing.assert_allclose(learner._run.state.P.weights.rows, counted, rtol=1e-12)
    assert len(counted) > 20
    if eta == "theory":
        assert max(counted) <= 1 + 1e-12


def test_no_label_is_less_likely_than_the_smoothing_says():
    X, y = stream(300, 2, 4, scale=20.0)
    learner = Obama(50.0, mu=0.2, eta=1.0, random_state=0).fit(X, y)
    p = learner.policy(X)
    assert 0.05 - 1e-12 <= p.min() < 0.06
    np.testing.assert_allclose(learner.predict_proba(X), p, atol=1e-12)


def test_learns_nothing_from_a_mistake():
    X, y = stream(50, 2, 3)
    learner = Obama(random_state=0, classes=range(3)).fit(X, y)
    before = copy.deepcopy(learner._run.state)
    learner.learn(learner.decide(X[0]), correct=False)
    np.testing.assert_array_equal(before.P.samples, learner._run.state.P.samples)
    np.testing.assert_array_equal(before.P.log_weights, learner._run.state.P.log_weights)
    np.testing.assert_array_equal(before.P.labels.rows, learner._run.state.P.labels.rows)


def test_late_feedback_counts_by_the_probability_of_the_decision():
    learner = Obama(mu=0.3, random_state=0, classes=list("abc"))
    learner.learn(Decision(np.ones(2), "b", 0.25), correct=True)
    assert learner._run.state.P.labels.rows.tolist() == [1]
    assert learner._run.state.P.weights.rows.tolist() == pytest.approx([0.1 / 0.25])


def test_obama_mu():
    T, d, K, B, R = 10_000, 2, 3, 4.0, 1.5
    C = d * K**2 * (1 + np.log(T * (B * R + np.log(K)) / (d * K**2)))
    assert obama_mu(T, d, K, B, R) == pytest.approx(np.sqrt(C / T))
    assert obama_mu(10, d, K, B, R) == 0.5
    learner = Obama(B, R=R, horizon=T, classes=range(K))
    learner.decide(np.zeros(d))
    assert learner._run.state.mu == obama_mu(T, d, K, B, R)
    assert learner._run.state.eta == learner._run.state.mu / K
    # It is not far from the best mu for the bound.
    best = min(bounds.obama(T, d, K, mu, B, R) for mu in np.linspace(0.01, 0.99, 99))
    assert bounds.obama(T, d, K, learner._run.state.mu, B, R) < 1.1 * best


def test_mistakes_are_below_the_bound():
    d, K, B, T = 1, 2, 3.0, 3_000
    X, y = stream(T, d, K)
    X = np.clip(X, -1, 1)
    learner = Obama(B, horizon=T, random_state=0, classes=range(K))
    history = play(learner, X, y)
    bound = best_linear(X, y, radius=B, norm="rows", classes=range(K)).loss + bounds.obama(
        T, d, K, learner._run.state.mu, B
    )
    assert history.n_mistakes < bound < 0.9 * T
    assert history.mistakes[2_000:].mean() < history.mistakes[:200].mean()


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    B=st.sampled_from([1e-3, 1.0, 1e3]),
    mu=st.sampled_from([1e-6, 1.0, "theory"]),
    eta=st.sampled_from([1e-6, 10.0, "theory"]),
)
def test_extreme_values_stay_finite(seed, scale, B, mu, eta):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(60, 3))
    learner = Obama(B, mu, eta, n_samples=20, classes=range(4), random_state=seed)
    play(learner, X, rng.integers(4, size=60))
    assert_finite(learner, X)
    assert learner.policy(X).min() > 0.0
    assert np.linalg.norm(learner._run.state.P.samples, axis=1).max() <= B * (1 + 1e-9)
