import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import load, play
from onebit.learners.arow import AROW
from paths import assert_same_path, continuous, every_stream, one_hot
from problems import assert_finite
from references import arow

FORMS = AROW.forms


def covariance(learner):
    """Return Sigma as a matrix in full form, ordered by class and then feature, else its diagonal.

    The learner orders by feature, then class.
    """
    Sigma = learner._run.state.Sigma
    if isinstance(Sigma, np.ndarray):
        return Sigma.T.ravel()
    d, K = learner._run.state.W.shape
    n = int(Sigma.n_pending[0])
    dense = Sigma.base - (Sigma.vectors[:n].T * Sigma.weights[:n]) @ Sigma.vectors[:n]
    order = np.arange(d * K).reshape(d, K).T.ravel()
    return dense[np.ix_(order, order)]


@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    learner, reference = AROW(r=0.7), arow.AROW(X.shape[1], K, r=0.7)
    assert_same_path(learner, reference, X, y, storage)
    np.testing.assert_allclose(covariance(learner), np.diag(reference.Sigma), rtol=1e-9)


@pytest.mark.parametrize("K", [2, 3, 9])
def test_path_through_ties(K):
    X, y = one_hot(K)
    assert_same_path(AROW(r=0.7), arow.AROW(X.shape[1], K, r=0.7), X, y, sp.csr_array)


# One-hot examples leave classes tied for ever in exact arithmetic, and rounding decides in full
# form; the ties here are those of unseen features and empty rows.
@pytest.mark.parametrize("K", [2, 3, 9])
def test_path_in_full_form(K):
    """Beside the path: Sigma^{-1} = I + sum z z' / r, and the means are those of a ridge on it."""
    X, y = continuous(K)
    r, n = 0.7, K * X.shape[1]
    learner, reference = AROW(r, "full"), arow.AROW(X.shape[1], K, r, "full")
    assert_same_path(learner, reference, X, y)
    Z = np.array(reference.zs)
    assert len(Z) > 2 * learner._run.state.Sigma.weights.size
    precision = np.eye(n) + Z.T @ Z / r
    np.testing.assert_allclose(covariance(learner) @ precision, np.eye(n), atol=1e-8)
    ridge = np.linalg.solve(r * precision, Z.sum(axis=0))
    np.testing.assert_allclose(learner.coef_.ravel(), ridge, atol=1e-9)


@pytest.mark.parametrize("n", [60, pytest.param(150, marks=pytest.mark.slow)])
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    r=st.floats(1e-3, 1e3),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    form=st.sampled_from(FORMS),
)
def test_each_step_raises_the_margin_and_the_confidence(n, seed, r, scale, form):
    """It updates on margins below one; the margin grows, to one at most, and Sigma shrinks."""
    rng = np.random.default_rng(seed)
    learner = AROW(r, classes=range(4), **form)
    learner.decide(np.zeros(3))
    for x, truth in zip(scale * rng.normal(size=(n, 3)), rng.integers(4, size=n), strict=True):
        W, Sigma = learner.coef_, covariance(learner)
        s = W @ x
        j = max((k for k in range(4) if k != truth), key=lambda k: s[k])
        m = s[truth] - s[j]
        updated = play(learner, x[None], [truth]).updated[0]
        assert updated == (m < 1)
        after, less = learner.coef_ @ x, Sigma - covariance(learner)
        if not updated:
            np.testing.assert_array_equal(learner.coef_, W)
            assert not less.any()
            continue
        assert m < after[truth] - after[j] + 1e-12 <= 1 + 1e-8
        if Sigma.ndim == 1:
            assert (less >= 0).all()
            assert (covariance(learner) > 0).all()
        else:
            assert np.linalg.eigvalsh(less).min() > -1e-12
            assert np.linalg.eigvalsh(covariance(learner)).min() > -1e-12


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_late_feedback_meets_the_weights_at_arrival(form):
    X, y = continuous(4)
    late = AROW(classes=range(4), **form)
    decisions = [late.decide(x) for x in X[:300]]
    for decision, truth in reversed(list(zip(decisions, y[:300], strict=True))):
        late.learn(decision, truth=truth)
    in_time = AROW(classes=range(4), **form).fit(X[299::-1], y[299::-1])
    np.testing.assert_array_equal(late.coef_, in_time.coef_)


@pytest.mark.parametrize("r", [0.1, 1.0, 10.0])
def test_full_form_keeps_the_mistake_bound(r):
    K = 4
    X, y = continuous(K)
    n = K * X.shape[1]
    learner = AROW(r, "full")
    history = play(learner, X, y)
    A = r * np.linalg.inv(covariance(learner))
    _, log_det = np.linalg.slogdet(A / r)
    N = (history.updated & ~history.mistakes).sum()
    rng = np.random.default_rng(0)
    for U in (learner.coef_, 3 * learner.coef_, rng.normal(size=learner.coef_.shape)):
        scores = X @ U.T
        own = scores[np.arange(len(y)), y]
        scores[np.arange(len(y)), y] = -np.inf
        L = np.maximum(0, 1 - (own - scores.max(axis=1)))[history.updated].sum()
        u = U.reshape(n)
        assert history.n_mistakes <= L - N + np.sqrt(u @ A @ u * (log_det + N)) + 1e-6


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("scale", [1e-8, 1e4, "mixed"])
@pytest.mark.parametrize("r", [1e-6, 1.0, 1e6])
def test_extremes_stay_finite(form, scale, r):
    X, y = continuous(4)
    X = X * (np.array([1e-8, 1, 1e4, 1e-8, 1e4]) if scale == "mixed" else scale)
    learner = AROW(r, **form)
    play(learner, np.tile(X, (3, 1)), np.tile(y, 3))
    assert_finite(learner, X)
    assert np.isfinite(covariance(learner)).all()


def test_full_form_stays_sound_where_examples_are_of_all_lengths(tmp_path):
    """Where nothing was left to learn, rounding made variances negative, and `save` refused."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) * 10 ** rng.uniform(-8, 20, size=(200, 1))
    learner = AROW(covariance="full", random_state=0)
    learner.fit(X, rng.integers(2, size=200)).save(tmp_path / "learner")
    np.testing.assert_array_equal(load(tmp_path / "learner").coef_, learner.coef_)
    assert_finite(learner, X)
