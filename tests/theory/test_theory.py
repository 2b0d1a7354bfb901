import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import softmax

from onebit.learners.aioli import Aioli
from onebit.learners.folklore import Folklore
from onebit.theory import best_linear, bounds, log_loss, online_log_loss


def stream(T, d, K, strength, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.argmax(X @ (strength * rng.normal(size=(d, K))) + rng.gumbel(size=(T, K)), axis=1)
    return X, y


@pytest.mark.parametrize("B", [0.5, 3.0, 50.0])
def test_best_linear_is_what_a_general_optimiser_finds(B):
    X, y = stream(200, 3, 3, 3.0)
    W, loss = best_linear(X, y, B, tolerance=1e-6)
    assert loss == pytest.approx(log_loss(W, X, y), abs=1e-12)
    assert (np.linalg.norm(W, axis=1) <= B * (1 + 1e-12)).all()

    def gradient(w):
        return (X.T @ (softmax(X @ w.reshape(3, 3).T, axis=1) - np.eye(3)[y])).T.ravel()

    found = minimize(
        lambda w: log_loss(w.reshape(3, 3), X, y),
        np.zeros(9),
        jac=gradient,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda w: B**2 - np.sum(w.reshape(3, 3) ** 2, axis=1),
            "jac": lambda w: -2 * np.kron(np.eye(3), np.ones(3)) * w,
        },
        options={"ftol": 1e-12, "maxiter": 1_000},
    )
    assert loss == pytest.approx(found.fun, abs=1e-4)


def test_best_linear_knows_classes_not_seen_and_sparse_rows():
    X, y = stream(300, 4, 3, 2.0)
    W, loss = best_linear(X, y, 5.0)
    _, sparse = best_linear(sp.csr_array(X), y, 5.0)
    assert sparse == pytest.approx(loss, abs=2e-3)
    more, less = best_linear(X, y, 5.0, n_classes=5)
    assert more.shape == (5, 4)
    assert less >= loss - 2e-3
    assert W.shape == (3, 4)


def test_best_linear_of_a_separable_stream_is_on_the_border():
    X, y = stream(300, 2, 2, 1e6)
    W, loss = best_linear(X, y, 10.0)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 10.0, rtol=1e-6)
    assert loss > best_linear(X, y, 20.0)[1]


def test_online_log_loss_is_that_of_predict_proba():
    X, y = stream(50, 3, 4, 2.0)
    labels = np.array(list("abcd"))[y]
    losses = online_log_loss(Folklore(2.0, classes=list("abcd")), X, labels)
    learner = Folklore(2.0, classes=list("abcd"))
    assert losses[0] == pytest.approx(np.log(4))
    learner.partial_fit(X[:1], labels[:1])
    for t in range(1, 50):
        expected = -np.log(learner.predict_proba(X[[t]])[0, y[t]])
        assert losses[t] == pytest.approx(expected, rel=1e-12)
        learner.partial_fit(X[[t]], labels[[t]])
    sparse = online_log_loss(Folklore(2.0, classes=list("abcd")), sp.csr_array(X), labels)
    np.testing.assert_allclose(sparse, losses, rtol=1e-9)


@pytest.mark.parametrize(
    ("d", "K", "B", "strength"), [(2, 2, 1.0, 0.5), (5, 3, 10.0, 4.0), (20, 7, 10.0, 1.5)]
)
def test_regret_of_folklore_is_below_its_bound_and_grows_like_the_logarithm(d, K, B, strength):
    T = 10_000
    X, y = stream(T, d, K, strength)
    losses = np.cumsum(online_log_loss(Folklore(B, classes=range(K)), X, y))
    regret = {
        t: losses[t - 1] - best_linear(X[:t], y[:t], B, K, tolerance=0.05)[1]
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
    half, whole = (best_linear(X[:t], y[:t], 1.0)[1] for t in (T // 2, T))
    printed = np.cumsum(online_log_loss(Folklore(curvature="paper", classes=range(K)), X, y))
    assert printed[-1] - whole > 6 * K * (2 + (1 + np.log(K) / 2) * d * np.log(1 + T))
    assert (printed[-1] - whole) / (printed[T // 2 - 1] - half) == pytest.approx(2, abs=0.1)
    corrected = np.cumsum(online_log_loss(Folklore(classes=range(K)), X, y))
    assert corrected[-1] - whole < (printed[-1] - whole) / 30


def test_regret_of_aioli_is_below_its_bound():
    X, y = stream(3_000, 5, 2, 1.0)
    for B in (5.0, 20.0):
        losses = online_log_loss(Aioli(B, classes=range(2)), X, y)
        # theta = w_1 - w_0, and the best of two rows of length B / 2 has them opposite.
        _, best = best_linear(X, y, B / 2)
        assert 0 < losses.sum() - best <= bounds.aioli(3_000, 5, B)


def test_regret_is_below_the_bound_where_no_comparator_is_good():
    """Of a separable stream the learners, who have no ball to stay in, make more than the best."""
    X, y = stream(1_000, 4, 2, 1e6)
    _, best = best_linear(X, y, 1.0)
    assert online_log_loss(Folklore(1.0, classes=range(2)), X, y).sum() - best < 0
    _, best = best_linear(X, y, 30.0)
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
