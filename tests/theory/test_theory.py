from time import process_time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from onebit import losses, streams
from onebit.learners.aioli import Aioli
from onebit.learners.folklore import Folklore
from onebit.theory import best_linear, bounds, online_log_loss


def stream(T, d, K, strength, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.argmax(X @ (strength * rng.normal(size=(d, K))) + rng.gumbel(size=(T, K)), axis=1)
    return X, y


LOSSES = [losses.of(name) for name in ("log_loss", "logistic", "hinge", "squared_hinge")]
LOSSES += [losses.of("smooth_hinge"), losses.of("eta", 0.5)]


def least_by_a_general_solver(X, y, loss, radius, norm):
    """SLSQP; the maximum over other labels becomes one constraint each, so that all is smooth."""
    n, d = X.shape
    K = int(y.max()) + 1
    size = K * d
    balls = [slice(0, size)] if norm == "frobenius" else [slice(k * d, k * d + d) for k in range(K)]

    def in_ball(v):
        return np.array([radius**2 - v[part] @ v[part] for part in balls])

    def in_ball_gradient(v):
        J = np.zeros((len(balls), v.size))
        for row, part in zip(J, balls, strict=True):
            row[part] = -2 * v[part]
        return J

    ball = {"type": "ineq", "fun": in_ball, "jac": in_ball_gradient}
    options = {"ftol": 1e-11, "maxiter": 2_000}
    if str(loss) in ("log_loss", "logistic"):

        def value(v):
            return loss(X @ v.reshape(K, d).T, y).sum()

        def gradient(v):
            return (loss.gradient(X @ v.reshape(K, d).T, y).T @ X).ravel()

        found = minimize(
            value, np.zeros(size), jac=gradient, method="SLSQP", constraints=ball, options=options
        )
        return found.fun
    # Variables W and m_i <= 1, with m_i <= s_y - s_k: phi decreases, so that m_i is the margin.
    A = np.zeros((n * (K - 1), size + n))
    for i in range(n):
        for r, k in enumerate(k for k in range(K) if k != y[i]):
            row = A[i * (K - 1) + r]
            row[y[i] * d : y[i] * d + d] += X[i]
            row[k * d : k * d + d] -= X[i]
            row[size + i] = -1
    # Two labels, the second with score 0: the loss of the margin itself.
    pairs = np.zeros((n, 2))

    def phi(m):
        pairs[:, 0] = m
        return loss(pairs, np.zeros(n, dtype=int))

    def phi_gradient(m):
        pairs[:, 0] = np.minimum(m, 1 - 1e-12)
        return loss.gradient(pairs, np.zeros(n, dtype=int))[:, 0]

    margins = {"type": "ineq", "fun": lambda v: A @ v, "jac": lambda v: A}
    found = minimize(
        lambda v: phi(v[size:]).sum(),
        np.zeros(size + n),
        jac=lambda v: np.concatenate([np.zeros(size), phi_gradient(v[size:])]),
        method="SLSQP",
        bounds=[(None, None)] * size + [(None, 1.0)] * n,
        constraints=[ball, margins],
        options=options,
    )
    # Rounding leaves it a little outside of the ball.
    W = found.x[:size].reshape(K, d)
    lengths = np.linalg.norm(W, axis=None if norm == "frobenius" else 1, keepdims=True)
    return loss(X @ (W * np.minimum(1, radius / lengths)).T, y).sum()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("norm", ["frobenius", "rows"])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_best_linear_is_what_a_general_solver_finds(loss, norm, radius):
    X, y = stream(25, 3, 3, 3.0)
    best = best_linear(X, y, loss, radius, norm, tolerance=1e-7)
    assert best.loss == pytest.approx(loss(X @ best.W.T, y).sum(), rel=1e-12)
    lengths = np.linalg.norm(best.W, axis=None if norm == "frobenius" else 1)
    assert (lengths <= radius * (1 + 1e-12)).all()
    assert 0 < best.gap <= 1e-7 * (1 + best.loss)
    least = least_by_a_general_solver(X, y, loss, radius, norm)
    assert best.loss == pytest.approx(least, rel=1e-6)
    # Proven: nothing in the ball is below, whoever found it.
    assert least >= best.loss - best.gap - 1e-9


def test_best_linear_agrees_with_scikit_learn():
    """A ball's multiplier is a ridge: with C from the gradient, the same weights are optimal."""
    X, y = stream(300, 4, 3, 2.0)
    best = best_linear(X, y, "log_loss", 2.0, tolerance=1e-9)
    assert np.linalg.norm(best.W) == pytest.approx(2.0)
    pull = np.linalg.norm(losses.of("log_loss").gradient(X @ best.W.T, y).T @ X) / 2.0
    ridge = LogisticRegression(C=1 / pull, fit_intercept=False, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(ridge.fit(X, y).coef_, best.W, atol=1e-4)
    assert losses.of("log_loss")(X @ ridge.coef_.T, y).sum() == pytest.approx(best.loss, rel=1e-6)


def test_best_linear_takes_labels_classes_and_sparse_rows_as_learners_do():
    X, y = stream(300, 4, 3, 2.0)
    best = best_linear(X, y, "hinge", 5.0)
    assert best.losses(X, y).sum() == pytest.approx(best.loss)
    for again in (
        best_linear(sp.csr_array(X), y, "hinge", 5.0),
        best_linear(X, np.array(["c", "a", "b"])[y], "hinge", 5.0),
        best_linear(X, y + 1, "hinge", 5.0),
    ):
        assert again.loss == pytest.approx(best.loss, rel=3e-4)
    named = best_linear(X, np.array(["c", "a", "b"])[y], "hinge", 5.0)
    assert named.classes.tolist() == ["a", "b", "c"]
    assert named.losses(X, np.array(["c", "a", "b"])[y]).sum() == pytest.approx(named.loss)
    more = best_linear(X, y, radius=5.0, norm="rows", classes=range(5))
    assert more.W.shape == (5, 4)
    assert more.loss >= best_linear(X, y, radius=5.0, norm="rows").loss * (1 - 1e-3)


def test_best_linear_of_a_separable_stream_is_on_the_border():
    X, y = stream(300, 2, 2, 1e6)
    best = best_linear(X, y, radius=10.0, norm="rows")
    np.testing.assert_allclose(np.linalg.norm(best.W, axis=1), 10.0, rtol=1e-6)
    assert best.loss > best_linear(X, y, radius=20.0, norm="rows").loss


def test_best_linear_says_what_it_could_not_do():
    X, y = stream(100, 3, 3, 2.0)
    with pytest.warns(ConvergenceWarning, match="after 3 passes"):
        best = best_linear(X, y, "hinge", 5.0, max_passes=3)
    assert best.gap > 1e-4 * (1 + best.loss)
    with pytest.raises(ValueError, match="not convex"):
        best_linear(X, y, "zero_one")
    with pytest.raises(ValueError, match="norm is one of"):
        best_linear(X, y, norm="l1")
    with pytest.raises(ValueError, match="radius is a positive number"):
        best_linear(X, y, radius=0.0)
    with pytest.raises(ValueError, match="NaN"):
        best_linear(np.full((3, 2), np.nan), [0, 1, 0])


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_best_linear_of_a_million_rows(loss):
    X, y = streams.synnonsep(1_000_000, seed=0)
    start = process_time()
    best = best_linear(X, y, loss, radius=1.0, tolerance=1e-3)
    assert best.gap <= 1e-3 * (1 + best.loss)
    assert process_time() - start < 180


def test_online_log_loss_is_that_of_predict_proba():
    X, y = stream(50, 3, 4, 2.0)
    labels = np.array(list("abcd"))[y]
    suffered = online_log_loss(Folklore(2.0, classes=list("abcd")), X, labels)
    learner = Folklore(2.0, classes=list("abcd"))
    assert suffered[0] == pytest.approx(np.log(4))
    learner.partial_fit(X[:1], labels[:1])
    for t in range(1, 50):
        expected = -np.log(learner.predict_proba(X[[t]])[0, y[t]])
        assert suffered[t] == pytest.approx(expected, rel=1e-12)
        learner.partial_fit(X[[t]], labels[[t]])
    sparse = online_log_loss(Folklore(2.0, classes=list("abcd")), sp.csr_array(X), labels)
    np.testing.assert_allclose(sparse, suffered, rtol=1e-9)


@pytest.mark.parametrize(
    ("d", "K", "B", "strength"),
    [(2, 2, 1.0, 0.5), (5, 3, 10.0, 4.0), pytest.param(20, 7, 10.0, 1.5, marks=pytest.mark.slow)],
)
def test_regret_of_folklore_is_below_its_bound_and_grows_like_the_logarithm(d, K, B, strength):
    T = 10_000
    X, y = stream(T, d, K, strength)
    suffered = np.cumsum(online_log_loss(Folklore(B, classes=range(K)), X, y))
    regret = {
        t: suffered[t - 1] - best_linear(X[:t], y[:t], radius=B, norm="rows", classes=range(K)).loss
        for t in (100, 1_000, T)
    }
    for t in regret:
        assert 0 < regret[t] <= bounds.folklore(t, d, K, B)
    # The logarithm in the bound begins to look like one where T is far above 2 K d.
    if 2 * K * d < 100:
        assert regret[T] - regret[1_000] < 2 * (regret[1_000] - regret[100])


def test_printed_folklore_breaks_its_theorem():
    """Its regret is linear in T: two features, two classes, B = R = 1, within all assumptions.

    The proof of Theorem 3 ends with K (2 B R + (B R + ln(K) / 2) d ln(1 + T)).
    """
    T, d, K = 10_000, 2, 2
    X, y = stream(T, d, K, 0.5, seed=1)
    half, whole = (best_linear(X[:t], y[:t], norm="rows").loss for t in (T // 2, T))
    printed = np.cumsum(online_log_loss(Folklore(curvature="paper", classes=range(K)), X, y))
    assert printed[-1] - whole > 6 * K * (2 + (1 + np.log(K) / 2) * d * np.log(1 + T))
    assert (printed[-1] - whole) / (printed[T // 2 - 1] - half) == pytest.approx(2, abs=0.1)
    corrected = np.cumsum(online_log_loss(Folklore(classes=range(K)), X, y))
    assert corrected[-1] - whole < (printed[-1] - whole) / 30


def test_regret_of_aioli_is_below_its_bound():
    X, y = stream(3_000, 5, 2, 1.0)
    for B in (5.0, 20.0):
        suffered = online_log_loss(Aioli(B, classes=range(2)), X, y)
        # theta = w_1 - w_0, and the best of two rows of length B / 2 has them opposite.
        best = best_linear(X, y, radius=B / 2, norm="rows").loss
        assert 0 < suffered.sum() - best <= bounds.aioli(3_000, 5, B)


def test_regret_is_below_the_bound_where_no_comparator_is_good():
    """Of a separable stream the learners, who have no ball to stay in, make more than the best."""
    X, y = stream(1_000, 4, 2, 1e6)
    best = best_linear(X, y, norm="rows").loss
    assert online_log_loss(Folklore(1.0, classes=range(2)), X, y).sum() - best < 0
    best = best_linear(X, y, radius=30.0, norm="rows").loss
    regret = online_log_loss(Folklore(30.0, classes=range(2)), X, y).sum() - best
    assert 0 < regret <= bounds.folklore(1_000, 4, 2, 30.0)


def test_bound_of_folklore():
    with_default = bounds.folklore(1_000, 3, 4, B=5.0, R=2.0)
    c = 1 / (2 * 10 + np.log(3) + 2)
    assert with_default == pytest.approx(0.8 * 4 * 25 + 12 / (4 * c) * np.log(1 + 1_000 / 24))
    explicit = bounds.folklore(1_000, 3, 4, B=5.0, R=2.0, regularization=0.8)
    assert explicit <= with_default  # c B R <= 1/2 is all that was lost
    with pytest.raises(ValueError, match="regularization of at least"):
        bounds.folklore(1_000, 3, 4, B=5.0, R=2.0, regularization=0.01)
