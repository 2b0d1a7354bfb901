import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from onebit import Decision, play, streams
from onebit.core.generator import new_generator
from onebit.learners.newtron import Newtron
from paths import assert_same_path, continuous, every_stream, one_hot, repeated
from problems import assert_finite, numpy_generator
from references import newtron

PARAMETERS = {"gamma": 0.1, "alpha": 1.0, "beta": 5.0, "D": 2.0}
FORMS = [{}, {"covariance": "full"}, {"variant": "soba2017"}]


def walk(learner, reference, X, y, storage):
    def stays_in_the_ball(reference, label, truth):
        assert np.linalg.norm(np.asarray(learner._run.state.W)) <= learner.D * (1 + 1e-12)

    assert_same_path(learner, reference, X, y, storage, stays_in_the_ball)


# Labels are drawn from a softmax, so that a tie that rounding breaks changes nothing.
SOME_STREAMS = pytest.mark.parametrize(
    ("K", "stream", "storage"),
    [
        (2, continuous, sp.csr_array),
        (3, one_hot, repeated),
        (9, continuous, np.asarray),
    ],
)


@every_stream(continuous)
def test_diagonal_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = newtron.Newtron(X.shape[1], K, **PARAMETERS)
    walk(Newtron(**PARAMETERS, random_state=K), reference, X, y, storage)
    assert 0 < np.count_nonzero(np.array(reference.free) <= PARAMETERS["D"]) < 500


def test_diagonal_walks_the_path_of_the_reference_through_ties():
    X, y = one_hot(9)
    reference = newtron.Newtron(X.shape[1], 9, **PARAMETERS)
    walk(Newtron(**PARAMETERS, random_state=9), reference, X, y, sp.csr_array)


@SOME_STREAMS
def test_full_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = newtron.Newtron(X.shape[1], K, **PARAMETERS, covariance="full")
    learner = Newtron(**PARAMETERS, covariance="full", random_state=K)
    walk(learner, reference, X, y, storage)
    inside = np.count_nonzero(np.array(reference.free) <= PARAMETERS["D"])
    assert 10 < inside < 1_900


def test_full_walks_the_path_of_the_reference_inside_the_ball():
    """Where nothing is projected, updates of the inverse gather."""
    X, y = continuous(9)
    parameters = PARAMETERS | {"D": 3.0}
    reference = newtron.Newtron(X.shape[1], 9, **parameters, covariance="full")
    walk(Newtron(**parameters, covariance="full", random_state=9), reference, X, y, sp.csr_array)
    assert max(reference.free) < 3.0


@SOME_STREAMS
def test_soba2017_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    draws = numpy_generator(new_generator(K))
    reference = newtron.SOBA2017(X.shape[1], K, draws, **PARAMETERS)
    learner = Newtron(**PARAMETERS, variant="soba2017", random_state=K)
    walk(learner, reference, X, y, storage)
    assert np.linalg.norm(learner.coef_) == pytest.approx(PARAMETERS["D"], rel=1e-12)
    assert np.mean(reference.explored) == pytest.approx(PARAMETERS["gamma"], abs=0.03)


def estimates(learner, x, truth):
    """The g that each label would bring, as (label, K, d), and the policy."""
    p_prime = learner.policy(x[None])[0]
    g = []
    for label, probability in enumerate(p_prime):
        other = copy.deepcopy(learner)
        before = other._run.state.b.copy()
        other.learn(Decision(x, label, probability), correct=label == truth)
        g.append((other._run.state.b - before).T)
    return np.array(g), p_prime


@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.parametrize("variant", ["paper", "soba2017"])
def test_estimate_is_unbiased(variant, K):
    """E[g] = (p - e_y) (x) x; for soba2017, 2/K of it."""
    X, y = continuous(K)
    # Without curvature, b is the sum of all g.
    learner = Newtron(0.2, 2.0, 1e-14, 1.0, variant=variant, random_state=0)
    learner.fit(X[:300], y[:300])
    for x in X[300:320]:
        p = learner.predict_proba(x[None])[0]
        for truth in range(K):
            g, p_prime = estimates(learner, x, truth)
            expected = np.outer(p - np.eye(K)[truth], x)
            factor = 1.0 if variant == "paper" else 2.0 / K
            mean = np.tensordot(p_prime, g, axes=1)
            np.testing.assert_allclose(mean, factor * expected, atol=1e-9)


def test_estimates_coincide_for_two_classes():
    X, y = continuous(2)
    learner = Newtron(0.2, 2.0, 1e-14, random_state=0).fit(X[:300], y[:300])
    other = copy.deepcopy(learner)
    other._run.kernels = Newtron(variant="soba2017").fit(X[:2], [0, 1])._run.kernels
    for x in X[300:310]:
        for truth in range(2):
            expected, _ = estimates(learner, x, truth)
            np.testing.assert_allclose(estimates(other, x, truth)[0], expected, atol=1e-12)


def test_full_is_the_leader_of_the_quadratic_bounds():
    """W' is the minimiser of the sum of f_t and ||W||^2 / (2 D) in the ball."""
    K, d, D = 3, 2, 0.8
    X, y = continuous(K, d=d)
    learner = Newtron(0.3, 2.0, 0.1, D, "full", classes=range(K), random_state=3)
    reference = newtron.Newtron(d, K, 0.3, 2.0, 0.1, D)
    terms = []
    for x, truth in zip(X[:80], y[:80], strict=True):
        decision = learner.decide(x)
        reference.W = learner.coef_
        p_prime = reference.policy(x)
        correct = decision.label == truth
        g, kappa = reference.estimate(x, decision.label, p_prime, correct)
        terms.append((g, kappa, learner.coef_.reshape(-1)))
        learner.learn(decision, correct=correct)

    def total(w):
        value, slope = w @ w / (2 * D), w / D
        for g, kappa, center in terms:
            s = g @ (w - center)
            value += s + kappa * 0.1 / 2 * s * s
            slope = slope + (1 + kappa * 0.1 * s) * g
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


def test_labels_are_drawn_from_the_softmax_mixed_with_gamma():
    X, y = continuous(4)
    learner = Newtron(0.3, 2.0, random_state=0).fit(X, y)
    scores = learner.decision_function(X)
    p = np.exp(2.0 * scores) / np.exp(2.0 * scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(learner.predict_proba(X), p, atol=1e-12)
    np.testing.assert_allclose(learner.policy(X), 0.7 * p + 0.3 / 4, atol=1e-12)
    np.testing.assert_array_equal(learner.predict(X), scores.argmax(axis=1))


def test_coin_of_soba2017_uses_the_probability_of_the_decision():
    """A label that only exploration chooses was explored; then W' counts as zero in b."""
    X, y = continuous(3)
    learner = Newtron(0.3, 2.0, 0.5, variant="soba2017", random_state=0).fit(X[:300], y[:300])
    x = X[300]
    for probability, explored in [(0.3 / 3, True), (1.0, None)]:
        seen = set()
        for seed in range(40):
            other = copy.deepcopy(learner)
            other._run.state.rng[:] = new_generator(seed)
            before = other._run.state.b.copy()
            other.learn(Decision(x, 0, probability), correct=False)
            seen.add(tuple((other._run.state.b - before).ravel()))
        p = learner.predict_proba(x[None])[0]
        g = np.outer(x, [1.0, -1.0, -1.0]) * p[0] / probability / 3
        matches = [np.allclose(np.reshape(b, g.shape), g, atol=1e-12) for b in seen]
        assert any(matches)
        assert len(seen) == (1 if explored else 2)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    gamma=st.sampled_from([0.0, 1e-6, 0.01, 1.0]),
    alpha=st.sampled_from([1e-3, 10.0, 1e3]),
    beta=st.sampled_from([1e-6, 0.01, 10.0]),
    D=st.sampled_from([1e-3, 1.0, 1e3]),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    form=st.sampled_from(FORMS),
)
def test_never_leaves_the_ball(seed, gamma, alpha, beta, D, scale, form):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(400, 3))
    learner = Newtron(gamma, alpha, beta, D, **form, random_state=seed, classes=range(4))
    for lo in range(0, 400, 20):
        learner.partial_fit(X[lo : lo + 20], rng.integers(4, size=20))
        assert_finite(learner)
        assert np.linalg.norm(learner.coef_) <= D * (1 + 1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gamma", [1e-6, 0.5])
def test_extreme_values_stay_finite(gamma, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3)) * 10.0 ** rng.integers(-8, 5, size=(5_000, 1))
    y = np.argmax(X @ rng.normal(size=(3, 4)), axis=1)
    learner = Newtron(gamma, 10.0, 0.01, 1e3, **form, random_state=0, classes=range(4))
    learner.fit(X, y)
    assert_finite(learner, X)
    assert np.linalg.norm(learner.coef_) <= 1e3 * (1 + 1e-9)


def test_empty_examples_leave_soba2017_at_zero():
    learner = Newtron(variant="soba2017", classes=range(3), random_state=0)
    learner.partial_fit(np.zeros((5, 2)), [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(learner.coef_, np.zeros((3, 2)))


def test_refuses_the_full_form_of_soba2017():
    learner = Newtron(covariance="full", variant="soba2017", classes=[0, 1])
    with pytest.raises(ValueError, match="variant='soba2017' of Newtron has only"):
        learner.decide([1.0])
    assert not hasattr(learner, "classes_")


@pytest.mark.parametrize("variant", ["paper", "soba2017"])
def test_finds_the_labels_of_synsep(variant):
    """Near the floor of exploration, (K - 1) gamma / K = 0.89 %."""
    X, y = streams.synsep(100_000, seed=1)
    history = play(Newtron(0.01, variant=variant, random_state=1), X, y)
    assert 0.008 < history.mistakes[50_000:].mean() < 0.0105
