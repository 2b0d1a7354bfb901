import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from onebit.learners.online_newton import OnlineNewton
from onebit.theory.bounds.logistic import log_loss_exp_concavity
from paths import assert_same_probabilities, continuous, one_hot, repeated
from problems import assert_finite
from references import online_newton

VARIANTS = ["ons", "ftal"]
every_variant = pytest.mark.parametrize("variant", VARIANTS)


@every_variant
@pytest.mark.parametrize(
    ("K", "stream", "storage"),
    [
        (2, continuous, np.asarray),
        (3, continuous, sp.csr_array),
        (3, one_hot, repeated),
        (9, continuous, np.asarray),
    ],
)
def test_walks_the_path_of_the_reference(variant, K, stream, storage):
    X, y = stream(K, d=2)
    D, beta, epsilon = 3.0, 0.3, 2.0
    reference = online_newton.OnlineNewton(2, K, variant, D, beta, epsilon)
    learner = OnlineNewton(variant, D, beta=beta, epsilon=epsilon)

    def stays_in_the_ball():
        assert np.linalg.norm(learner._run.state.W) <= D * (1 + 1e-12)

    assert_same_probabilities(learner, reference, X, y, storage, stays_in_the_ball)
    assert 3 < reference.projections < len(y) - 3


@every_variant
def test_walks_the_path_of_the_reference_with_the_theory(variant):
    """Where nothing is projected, updates of the inverse gather."""
    X, y = continuous(3, d=3)
    K, D, R = 3, 3.0, 2.0
    beta = theory(K, D, R)
    epsilon = 1 / (beta * 2 * D) ** 2
    reference = online_newton.OnlineNewton(3, K, variant, D, beta, epsilon)
    assert_same_probabilities(OnlineNewton(variant, D, R), reference, X, y)
    assert reference.projections == 0
    assert np.linalg.norm(reference.W) > 0.1


def test_variants_are_the_same_inside_the_ball():
    X, y = continuous(4)
    ons, ftal = (OnlineNewton(v, 100.0, beta=0.3, epsilon=2.0).fit(X, y) for v in VARIANTS)
    assert np.linalg.norm(ons.coef_) < 100
    np.testing.assert_allclose(ons.coef_, ftal.coef_, rtol=1e-9)
    ons, ftal = (OnlineNewton(v, 1.0, beta=0.3, epsilon=2.0).fit(X, y) for v in VARIANTS)
    assert np.abs(ons.coef_ - ftal.coef_).max() > 1e-3


def test_ftal_is_the_leader_of_the_quadratic_bounds():
    """W is the minimiser of the sum of f_t and beta epsilon / 2 ||W||^2 in the ball."""
    K, d, D, beta, epsilon = 3, 2, 0.8, 0.2, 1.5
    X, y = continuous(K, d=d)
    learner = OnlineNewton("ftal", D, beta=beta, epsilon=epsilon, classes=range(K))
    terms = []
    for x, truth in zip(X[:80], y[:80], strict=True):
        decision = learner.decide(x)
        W = learner.coef_
        g = np.outer(softmax(W @ x) - np.eye(K)[truth], x)
        terms.append((g.reshape(-1), W.reshape(-1)))
        learner.learn(decision, truth=truth)

    def total(w):
        value, slope = beta * epsilon / 2 * w @ w, beta * epsilon * w
        for g, center in terms:
            s = g @ (w - center)
            value += s + beta / 2 * s * s
            slope = slope + (1 + beta * s) * g
        return value, slope

    found = minimize(
        total,
        np.zeros(K * d),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: D**2 - w @ w, "jac": lambda w: -2 * w},
        options={"ftol": 1e-15, "maxiter": 1_000},
    )
    assert np.linalg.norm(found.x) == pytest.approx(D)
    np.testing.assert_allclose(learner.coef_.reshape(-1), found.x, atol=1e-6)


def theory(K, D, R):
    """The theory's beta, written out."""
    exp_concave = math.exp(-math.sqrt(2) * D * R) / (K - 1)
    return min(1 / (4 * math.sqrt(2) * R * 2 * D), exp_concave) / 2


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    K=st.integers(2, 6),
    D=st.sampled_from([0.3, 1.0, 4.0]),
    along=st.booleans(),
)
def test_quadratic_bounds_are_below_the_loss(seed, K, D, along):
    """Lemma 3 of Hazan, Agarwal and Kale, with the theory's beta, for all weights in the ball."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=3)
    x /= np.linalg.norm(x)
    for _ in range(50):
        pair = rng.normal(size=(2, K, 3))
        if along:  # as far along x as the ball allows
            pair = np.einsum("wk,i->wki", rng.normal(size=(2, K)), x)
        W, W_t = (D * P / np.linalg.norm(P) * rng.random() ** 0.1 for P in pair)
        y = rng.integers(K)
        s = np.sum(np.outer(softmax(W_t @ x) - np.eye(K)[y], x) * (W - W_t))
        bound = -log_softmax(W_t @ x)[y] + s + theory(K, D, 1.0) / 2 * s * s
        assert bound <= -log_softmax(W @ x)[y] + 1e-12


def test_exp_concavity_is_nearly_tight_for_two_classes():
    """exp(-alpha l) has a second derivative of the sign of alpha l'^2 - l'', here along x."""
    D, R = 1.3, 0.7
    alpha = log_loss_exp_concavity(2, D, R)
    m = np.linspace(-math.sqrt(2) * D * R, math.sqrt(2) * D * R, 1_001)  # s_y - s_k in the ball
    slope, curvature = -1 / (1 + np.exp(m)), 1 / (2 + np.exp(m) + np.exp(-m))
    assert (alpha * slope**2 <= curvature * (1 + 1e-12)).all()
    assert (1.01 * alpha * slope**2 > curvature).any()


def test_theory_is_a_number_for_every_ball():
    for D in (1e-3, 1.0, 30.0, 1e3, 1e6):
        state = OnlineNewton(radius=D)._begin(2, 3, np.zeros(4, dtype=np.uint64))[1]
        beta = max(theory(3, D, 1.0), 1e-50)
        assert state.step.scale == pytest.approx(2 * D * beta, rel=1e-12)
        assert state.step.slope == pytest.approx(2 * D, rel=1e-12)


@every_variant
def test_examples_without_a_gradient_change_nothing(variant):
    X, y = continuous(3)
    learner = OnlineNewton(variant, classes=range(3)).fit(X[:100], y[:100])
    before = copy.deepcopy(learner._run.state)
    learner.partial_fit(np.zeros((5, 5)), [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(learner._run.state.W, before.W)
    np.testing.assert_array_equal(learner._run.state.A_inv.n_pending, before.A_inv.n_pending)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    variant=st.sampled_from(VARIANTS),
    radius=st.sampled_from([1e-3, 1.0, 1e3]),
    beta=st.sampled_from(["theory", 1e-6, 0.1, 10.0]),
    epsilon=st.sampled_from(["theory", 1e-3, 1e3]),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
)
def test_never_leaves_the_ball(seed, variant, radius, beta, epsilon, scale):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(400, 3))
    learner = OnlineNewton(variant, radius, beta=beta, epsilon=epsilon, classes=range(4))
    for lo in range(0, 400, 20):
        learner.partial_fit(X[lo : lo + 20], rng.integers(4, size=20))
        assert_finite(learner)
        assert np.linalg.norm(learner.coef_) <= radius * (1 + 1e-9)


@every_variant
@pytest.mark.parametrize(("radius", "beta"), [(1e3, "theory"), (1e3, 0.1), (1e-3, 10.0)])
def test_extreme_values_stay_finite(variant, radius, beta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3)) * 10.0 ** rng.integers(-8, 5, size=(3_000, 1))
    y = np.argmax(X @ rng.normal(size=(3, 4)), axis=1)
    learner = OnlineNewton(variant, radius, beta=beta, classes=range(4)).fit(X, y)
    assert_finite(learner, X)
    assert np.linalg.norm(learner.coef_) <= radius * (1 + 1e-9)
