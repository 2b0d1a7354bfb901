import numpy as np
import pytest
import scipy.sparse as sp

from onebit import play
from onebit.learners.second_order_perceptron import SecondOrderPerceptron
from paths import assert_same_path, continuous, every_stream, one_hot
from problems import assert_finite
from references import second_order_perceptron as literal

FORMS = SecondOrderPerceptron.forms


@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = literal.SecondOrderPerceptron(X.shape[1], K, a=1.5)
    assert_same_path(SecondOrderPerceptron(a=1.5), reference, X, y, storage)


@pytest.mark.parametrize("K", [2, 3, 9])
def test_path_through_ties(K):
    X, y = one_hot(K)
    reference = literal.SecondOrderPerceptron(X.shape[1], K, a=1.5)
    assert_same_path(SecondOrderPerceptron(a=1.5), reference, X, y, sp.csr_array)


@pytest.mark.parametrize(("K", "stream"), [(2, one_hot), (3, continuous), (9, continuous)])
def test_path_with_the_current_example_included(K, stream):
    X, y = stream(K)
    learner = SecondOrderPerceptron(0.5, include_current=True)
    reference = literal.SecondOrderPerceptron(X.shape[1], K, 0.5, include_current=True)
    assert_same_path(learner, reference, X, y)
    assert not hasattr(learner, "coef_")
    for name, value in [("A", np.diag(reference.A)), ("theta", reference.theta)]:
        mine = getattr(learner._run.state, name).T.ravel()
        np.testing.assert_allclose(mine, value, rtol=1e-9, atol=1e-9)


# One-hot examples leave classes tied for ever in exact arithmetic, and rounding decides in full
# form; the ties here are those of unseen features and empty rows.
@pytest.mark.parametrize("K", [2, 3, 9])
def test_path_in_full_form(K):
    X, y = continuous(K)
    reference = literal.SecondOrderPerceptron(X.shape[1], K, 1.5, "full")
    assert_same_path(SecondOrderPerceptron(1.5, "full"), reference, X, y)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_learns_only_from_mistakes_of_the_weights_at_arrival(form):
    X, y = continuous(4)
    history = play(SecondOrderPerceptron(**form), X, y)
    np.testing.assert_array_equal(history.updated, history.mistakes)

    late = SecondOrderPerceptron(classes=range(4), **form)
    decisions = [late.decide(x) for x in X[:300]]
    for decision, truth in reversed(list(zip(decisions, y[:300], strict=True))):
        late.learn(decision, truth=truth)
    in_time = SecondOrderPerceptron(classes=range(4), **form).fit(X[299::-1], y[299::-1])
    np.testing.assert_array_equal(late.decision_function(X), in_time.decision_function(X))


def test_full_form_keeps_the_mistake_bound():
    """SOBA's proof with every label known; `L` sums the eta-loss over the mistakes only."""
    K, a = 4, 2.0
    X, y = continuous(K)
    d = X.shape[1]
    reference = literal.SecondOrderPerceptron(d, K, a, "full")
    assert_same_path(SecondOrderPerceptron(a, "full"), reference, X, y)
    Z = np.array(reference.zs)
    _, log_det = np.linalg.slogdet(reference.A / a)
    rng = np.random.default_rng(0)
    least = np.linalg.solve(Z.T @ Z + a * np.eye(K * d), -Z.sum(axis=0))  # the hardest comparator
    for U in (least, 3 * least, rng.normal(size=K * d), np.zeros(K * d)):
        margins = -Z @ U
        for eta in (0.05, 0.5, 1.0):
            L = np.sum(1 - 2 / (2 - eta) * margins + eta / (2 - eta) * margins**2)
            rest = eta / (2 - eta) * a * U @ U + log_det / (eta * (2 - eta))
            assert len(Z) <= L + rest + 1e-6


def test_including_the_current_example_decides_nothing_in_the_binary_algorithm():
    """V' (A + x x')^{-1} x has the sign of v' A^{-1} x; with the diagonal of x x' it need not."""
    rng = np.random.default_rng(0)
    S, v = rng.normal(size=(5, 20)), rng.normal(size=5)
    A = np.eye(5) + S @ S.T
    for x in rng.normal(size=(200, 5)):
        plain = v @ np.linalg.solve(A, x)
        assert plain * (v @ np.linalg.solve(A + np.outer(x, x), x)) > 0
    X, y = continuous(2)
    without = play(SecondOrderPerceptron(), X, y).mistakes
    assert (without != play(SecondOrderPerceptron(include_current=True), X, y).mistakes).any()


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("scale", [1e-8, 1e4, "mixed"])
@pytest.mark.parametrize("a", [1e-6, 1.0, 1e6])
def test_extremes_stay_finite(form, scale, a):
    X, y = continuous(4)
    X = X * (np.array([1e-8, 1, 1e4, 1e-8, 1e4]) if scale == "mixed" else scale)
    learner = SecondOrderPerceptron(a, **form)
    play(learner, np.tile(X, (3, 1)), np.tile(y, 3))
    assert_finite(learner, X)


def test_refuses_to_include_what_depends_on_the_label():
    learner = SecondOrderPerceptron(covariance="full", include_current=True, classes=[0, 1])
    with pytest.raises(ValueError, match=r"'include_current' .* must be False .*'full'"):
        learner.decide([1.0])
    assert not hasattr(learner, "classes_")
