import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from onebit import play
from onebit.learners.aioli import Aioli
from onebit.learners.folklore import Folklore
from paths import TOLERANCE, continuous, one_hot, repeated
from problems import assert_finite
from references import aioli


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, repeated])
@pytest.mark.parametrize("stream", [continuous, one_hot])
def test_walks_the_path_of_the_reference(stream, storage):
    """Probabilities are compared: a label that both sides tie on, rounding would choose."""
    X, y = stream(2)
    stored = storage(X)
    B, R = 3.0, 2.0
    learner = Aioli(B, R, classes=range(2))
    reference = aioli.Aioli(X.shape[1], 1 / B**2, 1 / (2 * (1 + B * R)))
    for t, truth in enumerate(y):
        row = stored[[t]]
        decision = learner.decide(row if sp.issparse(row) else row[0])
        p = reference.probabilities(X[t])
        np.testing.assert_allclose(learner.predict_proba(row)[0], p, rtol=0, atol=TOLERANCE)
        assert p[decision.label] >= p.max() - TOLERANCE
        learner.learn(decision, truth=truth)
        reference.learn(X[t], truth)
    np.testing.assert_allclose(
        learner.predict_proba(stored), [reference.probabilities(x) for x in X], atol=TOLERANCE
    )
    np.testing.assert_allclose(
        learner._run.state.h, np.linalg.solve(reference.A, reference.b), atol=TOLERANCE
    )


def test_plays_the_minimum_it_is_defined_by():
    rng = np.random.default_rng(0)
    d, B, R = 3, 4.0, 1.0
    X = rng.normal(size=(25, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learner = Aioli(B, R, classes=range(2))
    written_out = aioli.WrittenOut(d, 1 / B**2, B, R)
    for x, truth in zip(X, rng.integers(2, size=25), strict=True):
        decision = learner.decide(x)
        expected = expit(written_out.weights(x) @ x)
        assert learner.predict_proba([x])[0, 1] == pytest.approx(expected, abs=1e-6)
        learner.learn(decision, truth=truth)
        written_out.learn(x, truth)


def test_differs_from_folklore_by_its_constants_only():
    """AIOLI with the regularisation, the curvature and the weight of FOLKLORE is FOLKLORE."""
    X, y = continuous(2)
    X, y = X[:300], y[:300]
    B = 2.0
    same = aioli.Aioli(X.shape[1], 1 / B, 1 / (2 * B + 2), weight=0.5)
    other = aioli.Aioli(X.shape[1], 1 / B, 1 / (2 * B + 2), weight=1.0)
    for x, truth in zip(X, y, strict=True):
        same.learn(x, truth)
        other.learn(x, truth)
    p = Folklore(B).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, [same.probabilities(x) for x in X], atol=1e-10)
    assert np.abs(p - [other.probabilities(x) for x in X]).max() > 1e-3


def test_its_surrogate_is_below_the_loss():
    """Where theta . x is at most B R, its c of 1 / (2 + 2 B R) is below 1 / (2 + B R)."""
    u_t, u = np.meshgrid(np.linspace(-80, 80, 4_001), np.linspace(-1, 1, 201))
    for BR in (0.1, 1.0, 10.0, 50.0):
        c = Aioli(BR)._begin(1, 2, None)[1].c
        s, away = expit(u_t), BR * u - u_t
        below = np.logaddexp(0, u_t) + s * away + c * s * expit(-u_t) * away**2 <= np.logaddexp(
            0, BR * u
        ) + 1e-12 * (1 + np.abs(away) + c * s * expit(-u_t) * away**2)
        assert below.all()


def test_has_two_classes_only():
    learner = Aioli(classes=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"supported by Aioli, and there are 3 classes"):
        learner.decide([1.0, 2.0])
    assert not hasattr(learner, "classes_")


def test_a_new_direction_is_predicted_with_one_half():
    learner = Aioli(B=10.0, classes=[False, True]).fit(np.eye(3)[[0] * 50], [True] * 50)
    p = learner.predict_proba(np.eye(3))[:, 1]
    assert p[0] > 0.9
    assert (p[1:] == 0.5).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    B=st.sampled_from([1e-3, 1.0, 1e3]),
    regularization=st.sampled_from([None, 1e-6, 1e6]),
)
def test_extreme_values_stay_finite(seed, scale, B, regularization):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(2_000, 3))
    learner = Aioli(B, regularization=regularization, classes=range(2))
    play(learner, X, rng.integers(2, size=2_000))
    assert_finite(learner, X)
