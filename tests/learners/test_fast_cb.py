"""FastCB against its literal reference, and the derivation of its bound."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from onebit import Decision, FastCB, play
from onebit.theory import NotProvenError, bounds
from paths import assert_same_path, continuous, every_stream, grades, one_hot
from problems import assert_finite
from references import fast_cb


@every_stream(continuous, one_hot)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = (part[:400] for part in stream(K))
    reference = fast_cb.FastCB(X.shape[1], K, 40.0, B=4.0, R=2.0)
    learner = FastCB(40.0, B=4.0, R=2.0, random_state=K)
    assert_same_path(learner, reference, X, y, storage)
    for k, one in enumerate(reference.regressions):
        weights = -np.linalg.solve(one.A, one.b) / 2
        np.testing.assert_allclose(learner._run.state.h[:, k], weights, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("K", "storage"), [(2, sp.csr_array), (3, np.asarray)])
def test_walks_the_path_of_the_reference_with_rewards(K, storage):
    X, y = continuous(K, n=300)
    reference = fast_cb.FastCB(X.shape[1], K, 40.0, B=4.0, R=2.0)
    learner = FastCB(40.0, B=4.0, R=2.0, random_state=K)
    assert_same_path(learner, reference, X, y, storage, rewards=grades(y))


def inverse_gap_weighting(f, gamma):
    b = np.argmin(f)
    p = f[b] / (f.size * f[b] + gamma * (f - f[b]))
    p[b] = 0.0
    p[b] = 1.0 - p.sum()
    return p


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    K=st.integers(2, 8),
    gamma=st.floats(10.0, 1e5),
    apart=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_regret_of_a_round_is_below_what_the_notes_say(seed, K, gamma, apart):
    """2.8 K / gamma times the mistakes, and 3.7 gamma times the triangular discrimination."""
    rng = np.random.default_rng(seed)
    gamma *= K
    f = 10 ** rng.uniform(-6, 0, K) * rng.random()
    truth = np.clip(f * 10 ** rng.normal(0, apart, K), 0, 1)
    if seed % 3 == 0:  # the best label looks bad, by as much as costs most
        truth[rng.integers(K)] = 0.0
    p = inverse_gap_weighting(f, gamma)
    mistakes = p @ truth
    S = p @ ((f - truth) ** 2 / (f + truth))
    assert mistakes - truth.min() <= 2.8 * K / gamma * mistakes + 3.7 * gamma * S + 1e-15


@settings(max_examples=200, deadline=None)
@given(f=st.floats(1e-9, 1 - 1e-9), truth=st.floats(1e-9, 1 - 1e-9))
def test_discrimination_is_at_most_twice_the_divergence(f, truth):
    divergence = truth * math.log(truth / f) + (1 - truth) * math.log((1 - truth) / (1 - f))
    assert (f - truth) ** 2 / (f + truth) <= 2 * divergence + 1e-12


def test_policy_of_predictions():
    learner = FastCB(30.0, classes=range(3), random_state=0)
    learner.decide([1.0])
    np.testing.assert_allclose(learner.policy([[1.0]])[0], 1 / 3)  # nothing is known
    learner._run.state.h[0] = [1.0, 3.0, 2.0]
    learner._run.state.A_inv.base[:] = 0.0  # predictions are those of the weights
    f = expit([-1.0, -3.0, -2.0])
    np.testing.assert_allclose(learner.policy([[1.0]])[0], inverse_gap_weighting(f, 30.0))
    for scale in (50.0, 1e4):  # certain: hardly anything, and then nothing, is explored
        p = learner.policy([[scale]])[0]
        assert p[1] > 1 - 1e-15
        assert p.sum() == 1.0
    p = learner.policy([[-1e4]])[0]  # all are wrong: f_k differ by less than rounding
    np.testing.assert_allclose(p, 1 / 3)


def test_gamma_of_the_theory():
    K, d, T, B, R = 3, 4, 500, 2.0, 0.9
    lam = 1 / B**2
    regret = K * (lam * B**2 + d * (1 + B * R) * math.log(
        1 + T / K * R**2 / (8 * lam * d * (1 + B * R))))  # fmt: skip
    assert bounds.fast_cb_regret(T, d, K, B, R) == pytest.approx(regret, rel=1e-12)
    of_labels = sum(bounds.aioli(n, d, B, R) for n in (10, 240, 250))
    assert of_labels < regret
    assert bounds.aioli(T, d, B, R) == pytest.approx(bounds.fast_cb_regret(T, d, 1, B, R))
    for loss, gamma in [(0.0, 30.0), (1e6, math.sqrt(2.8 * K * 1e6 / (7.4 * regret)))]:
        learner = FastCB(B=B, R=R, horizon=T, comparator_loss=loss, classes=range(K))
        learner.decide(np.zeros(d))
        assert learner._run.state.gamma == pytest.approx(gamma, rel=1e-12)
        bound = bounds.fast_cb(K, loss, regret)
        assert bound == pytest.approx((loss + 7.4 * gamma * regret) / (1 - 2.8 * K / gamma))
        assert bound == bounds.fast_cb(K, loss, regret, gamma)
    with pytest.raises(NotProvenError, match="at least 10 K; got 29"):
        bounds.fast_cb(K, 0.0, regret, 29.0)
    with pytest.raises(NotProvenError, match="a model of the noise"):
        FastCB.bound(None)


def noisy(T, kind, seed):
    """Return examples, labels and the chance that each label is right, logistic in x."""
    rng = np.random.default_rng(seed)
    if kind == "two labels":
        theta = rng.normal(size=2)
        theta *= 2.0 / np.linalg.norm(theta)
        X = rng.normal(size=(T, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        right = expit(np.column_stack([-X @ theta, X @ theta]))
    else:  # one feature a row: any log odds are linear in x
        K = 3
        X = np.eye(2)[rng.integers(2, size=T)]
        at = rng.dirichlet(np.full(K, 0.3), size=2)
        at = np.clip(at, 0.12, None)
        right = X @ (at / at.sum(axis=1, keepdims=True))
    y = (rng.random((T, 1)) > np.cumsum(right, axis=1)).sum(axis=1)
    return X, y, right


@pytest.mark.parametrize(
    "streams", [2, pytest.param(10, marks=pytest.mark.slow)], ids=["some", "twenty"]
)
@pytest.mark.parametrize("kind", ["two labels", "one feature"])
def test_keeps_its_bound_and_a_broken_one_does_not(kind, streams):
    """Ten streams of each kind; broken: told right where it was wrong."""
    T = 60_000 if kind == "two labels" else 150_000
    for seed in range(streams):
        X, y, right = noisy(T, kind, seed)
        (d, K), B = (X.shape[1], right.shape[1]), 2.0
        L = np.sum(1 - right.max(axis=1))
        learner = FastCB(B=B, horizon=T, comparator_loss=L, classes=range(K), random_state=seed)
        bound = bounds.fast_cb(K, L, bounds.fast_cb_regret(T, d, K, B))
        assert L < play(learner, X, y).n_mistakes <= bound < T
    broken, wrong = FastCB(20.0 * K, B=B, classes=range(K), random_state=0), 0
    n = 3_000
    for x, truth in zip(X[:n], y[:n].tolist(), strict=True):
        decision = broken.decide(x)
        wrong += decision.label != truth
        broken.learn(decision, correct=decision.label != truth)
    assert T / n * wrong > bound


@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_extremes_stay_finite(scale):
    X, y = continuous(4)
    learner = FastCB(B=3, R=10 * scale, random_state=0).fit(scale * X, y)
    assert_finite(learner, scale * X[:50])
    for _ in range(3):
        for label in range(4):
            learner.learn(Decision(1e8 * X[0], label, 1.0), correct=label == 1)
    assert_finite(learner, 1e8 * X[:50])
    np.testing.assert_allclose(learner.policy(1e8 * X[:50]).sum(axis=1), 1, atol=1e-12)
