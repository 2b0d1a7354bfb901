import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels

from onebit import load, play
from onebit.learners.confidit import Confidit
from onebit.learners.kernel_confidit import KernelConfidit
from paths import assert_same_path, continuous, repeated
from problems import assert_finite
from references import confidit
from test_confidit import THEORY, VERSIONS, twins


def shorter(K, n):
    X, y = continuous(K, n=n)
    return X[:n], np.append(y[: n - 1], K - 1)


def rbf(x, z):
    return np.exp(-0.3 * np.sum((x - z) ** 2))


def cubic(x, z):
    return (0.2 * x @ z + 0.5) ** 3


@pytest.mark.parametrize("n", [150, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("K", "storage", "form"),
    [
        (2, np.asarray, {}),
        (3, sp.csr_array, {"alpha": 0.5, "eta": 3.0}),
        (9, repeated, {"confidence": "theory", **THEORY}),
        (2, sp.csr_array, {"projection": True, "confidence": "theory"}),
        (3, np.asarray, {"projection": True, "alpha": 0.0}),
        (9, np.asarray, {"projection": True, "confidence": "theory", **THEORY}),
        (3, sp.csr_array, {"normalize": False, "a": 0.5}),
        (2, np.asarray, {"normalize": False, "projection": True, "confidence": "theory", **THEORY}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_linear_kernel_walks_the_path_of_the_full_matrices(K, storage, form, n):
    X, y = shorter(K, n)
    _, reference = twins(K, X.shape[1], K, **form, covariance="full")
    learner = KernelConfidit("linear", **form, random_state=K)
    assert_same_path(learner, reference, X, y, storage)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_linear_kernel_is_full_confidit_over_many_rounds(version):
    X, y = continuous(4)
    form = {**VERSIONS[version], "alpha": 0.7, "random_state": 3, "classes": range(4)}
    primal = Confidit(**form)
    form.pop("covariance")
    dual = KernelConfidit("linear", **form)
    first, second = play(primal, X, y), play(dual, X, y)
    np.testing.assert_array_equal(first.mistakes, second.mistakes)
    np.testing.assert_array_equal(first.explored, second.explored)
    np.testing.assert_allclose(dual.coef_, primal.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(dual._run.state.rng, primal._run.state.rng)


@pytest.mark.parametrize("n", [80, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("k", "parameters", "form"),
    [
        (rbf, {"kernel": "rbf", "gamma": 0.3}, {}),
        (cubic, {"kernel": "poly", "gamma": 0.2, "coef0": 0.5}, {"projection": True}),
        (
            cubic,
            {"kernel": "poly", "gamma": 0.2, "coef0": 0.5},
            {"projection": True, "normalize": False, "a": 2.0},
        ),
    ],
    ids=["rbf", "poly", "raw"],
)
def test_walks_the_path_of_the_dual_reference(k, parameters, form, n):
    X, y = shorter(3, n)
    reference = confidit.KernelConfidit(k, 3, **form)
    learner = KernelConfidit(**parameters, **form)
    assert_same_path(learner, reference, X, y)
    D = np.array([reference.scores(x)[1] for x in X])
    np.testing.assert_allclose(learner.decision_function(X), D, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "polynomial", "laplacian", "cosine"])
def test_kernels_are_those_of_scikit_learn(name):
    X, y = shorter(3, 30)
    parameters = {"gamma": 0.4, "degree": 2, "coef0": 0.7}

    def function(A, B):
        return pairwise_kernels(A, B, metric=name, filter_params=True, **parameters)

    named = KernelConfidit(name, **parameters).fit(X, y)
    given = KernelConfidit(function).fit(X, y)
    np.testing.assert_allclose(named.decision_function(X), given.decision_function(X), atol=1e-12)
    default = KernelConfidit(name, degree=2, coef0=0.7).fit(X, y)
    parameters["gamma"] = None
    given = KernelConfidit(function).fit(X, y)
    np.testing.assert_allclose(default.decision_function(X), given.decision_function(X), atol=1e-12)


def test_any_positive_definite_function_can_be_the_kernel():
    X, y = shorter(3, 300)
    history = play(KernelConfidit(chi2_kernel, random_state=0), np.abs(X), y)
    assert history.n_mistakes < 200  # where chance makes at least 200


@pytest.mark.parametrize("projection", [False, True])
def test_factors_and_uncertainty(projection):
    """L L' = rho I + K_i, and n_i is what the definition says it is."""
    X, y = shorter(3, 300)
    learner = KernelConfidit("laplacian", alpha=0.4, projection=projection, random_state=0)
    learner.fit(X, y)
    state, rho = learner._run.state, 1.4**2
    log_ratio = 0.0
    for i in range(3):
        S = state.examples.rows[state.outputs.rows == i]
        M = pairwise_kernels(S, metric="laplacian") + rho * np.eye(len(S))
        L = np.zeros_like(M)
        L[np.tril_indices(len(S))] = state.L[i]._asdict()["packed"]
        np.testing.assert_allclose(L @ L.T, M, atol=1e-12)
        log_ratio += np.linalg.slogdet(M / rho)[1]
    # the sum of x' A^{-1} x is at most ln det(A / rho) = ln det(I + K / rho)
    assert 0 < state.confidence.terms <= log_ratio


def test_projected_scores_fit_the_noise_model():
    X, y = shorter(4, 300)
    learner = KernelConfidit(alpha=0.3, projection=True, random_state=0).fit(X, y)
    D = learner.decision_function(X)
    assert D.min() >= -0.3 - 1e-12
    np.testing.assert_allclose(D.sum(axis=1), 1 + 0.3 - 4 * 0.3, atol=1e-12)


def test_learns_what_no_linear_rule_can():
    X = np.random.default_rng(1).normal(size=(800, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    assert play(KernelConfidit(gamma=2.0), X, y).mistakes[400:].mean() < 0.1
    assert play(Confidit(covariance="full"), X, y).mistakes[400:].mean() > 0.3


def test_only_a_linear_kernel_has_weights():
    X, y = shorter(2, 20)
    assert not hasattr(KernelConfidit("linear"), "coef_")
    assert not hasattr(KernelConfidit("rbf").fit(X, y), "coef_")
    assert KernelConfidit("linear").fit(X, y).coef_.shape == (2, X.shape[1])


def test_a_callable_kernel_cannot_be_written(tmp_path):
    X, y = shorter(2, 20)
    learner = KernelConfidit(chi2_kernel).fit(np.abs(X), y)
    with pytest.raises(ValueError, match=r"kernel=<function chi2_kernel.*cannot be written"):
        learner.save(tmp_path / "learner")


@pytest.mark.parametrize("form", [{"kernel": "rbf"}, {"kernel": "poly", "normalize": False}])
def test_goes_on_from_a_file(form, tmp_path):
    X, y = shorter(9, 60)
    learner = KernelConfidit(**form, eta=0.0, alpha=0.5, random_state=0, classes=[*range(9)])
    learner.partial_fit(X[:5], y[:5]).save(tmp_path / "learner")
    loaded = load(tmp_path / "learner")
    assert len(set(loaded._run.state.outputs.rows)) < 9  # some factors are empty
    np.testing.assert_array_equal(play(loaded, X, y).mistakes, play(learner, X, y).mistakes)
    np.testing.assert_array_equal(loaded._run.state.C.rows, learner._run.state.C.rows)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernel": "sigmoid"}, "'kernel' parameter"),
        ({"gamma": 0.0}, "'gamma' parameter"),
        ({"degree": 1.5}, "'degree' parameter"),
        ({"approximation_error": [0.1]}, "approximation_error="),
        ({"kernel": lambda X, Z: -X @ Z.T}, "kernel of an x with itself .* got -1.0"),
    ],
)
def test_refuses_by_name(parameters, words):
    learner = KernelConfidit(**parameters, classes=[0, 1])
    with pytest.raises(ValueError, match=words):
        learner.decide([1.0])


@pytest.mark.parametrize("projection", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_stays_finite(kernel, projection):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(20, 4)) * [1, 1, 1, 1e-6], 15, axis=0)
    X *= rng.choice([1e-8, 1.0, 1e4], size=(len(X), 1))
    X[::50] = 0.0
    learner = KernelConfidit(
        kernel, alpha=-0.999, confidence="theory", norm=1e6, projection=projection, random_state=0
    ).fit(X, rng.integers(4, size=len(X)))
    assert_finite(learner, X)
