from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from onebit import load, play
from onebit.core.generator import new_generator
from onebit.learners.kernel_separable_bandit import KernelSeparableBandit
from onebit.learners.separable_bandit import SeparableBandit
from paths import assert_same_path, continuous, one_hot, repeated, unit
from problems import assert_finite, numpy_generator
from references import separable_bandit

FORMS = ["theory", "repository"]


def rational(A, b, nu=0.5):
    A, b = (v / np.maximum(1, np.linalg.norm(v, axis=-1, keepdims=True)) for v in (A, b))
    return 1 / (1 - nu * (A @ b))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("K", "storage"), [(2, np.asarray), (3, sp.csr_array), (9, repeated)], ids=["2", "3", "9"]
)
def test_walks_the_path_of_the_reference(form, K, storage):
    X, y = unit(continuous)(K)
    X[::3] *= 1.5  # longer than one: to be shortened
    X[1::3] *= 0.5
    reference = separable_bandit.KernelSeparableBandit(K, form, rational)
    learner = KernelSeparableBandit(form=form, random_state=K)
    assert_same_path(learner, reference, X, y, storage)
    expected = [len(terms) for terms in reference.lists]
    assert np.bincount(learner._run.state.owners.rows, minlength=K).tolist() == expected


@pytest.mark.parametrize("form", FORMS)
def test_walks_the_path_of_the_reference_with_a_budget(form):
    X, y = unit(continuous)(3)
    draws = numpy_generator(new_generator(5)).random
    reference = separable_bandit.KernelSeparableBandit(3, form, rational, 15, draws)

    def check(reference, label, truth):
        assert max(map(len, reference.lists)) <= 15

    learner = KernelSeparableBandit(form=form, budget=15, random_state=5)
    assert_same_path(learner, reference, X, y, every_round=check)
    assert np.bincount(learner._run.state.owners.rows).tolist() == [15, 15, 15]
    for i in range(3):
        mine = learner._run.state.owners.rows == i
        expected = np.array([x for x, _ in reference.lists[i]])
        np.testing.assert_allclose(learner._run.state.points.rows[mine], expected, rtol=1e-15)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stream", [continuous, one_hot])
def test_linear_kernel_is_the_linear_learner(form, stream):
    X, y = stream(4)
    linear = SeparableBandit(form, random_state=1)
    kernel = KernelSeparableBandit("linear", form, random_state=1)
    np.testing.assert_array_equal(play(kernel, X, y).mistakes, play(linear, X, y).mistakes)
    np.testing.assert_allclose(
        kernel.decision_function(X), linear.decision_function(X), rtol=1e-9, atol=1e-9
    )


def test_names_functions_and_parameters_mean_the_same():
    X, y = continuous(3)
    X, y = X[:200], y[:200]
    named = KernelSeparableBandit("rbf", kernel_params={"gamma": 0.3}, random_state=0).fit(X, y)
    for other in [
        KernelSeparableBandit(partial(rbf_kernel, gamma=0.3), random_state=0),
        KernelSeparableBandit(rbf_kernel, kernel_params={"gamma": 0.3}, random_state=0),
    ]:
        np.testing.assert_allclose(
            other.fit(X, y).decision_function(X), named.decision_function(X), rtol=1e-9, atol=1e-12
        )
    other = KernelSeparableBandit("rbf", kernel_params={"gamma": 3.0}, random_state=0).fit(X, y)
    assert (other.decision_function(X) != named.decision_function(X)).any()


def test_nu_is_a_parameter_of_the_rational_kernel():
    X, y = unit(continuous)(3)
    learner = KernelSeparableBandit(kernel_params={"nu": 0.9}, random_state=0).fit(X[:50], y[:50])
    points, signs = learner._run.state.points.rows, learner._run.state.signs.rows
    terms = signs * rational(points, X[60], 0.9)
    expected = np.bincount(learner._run.state.owners.rows, terms, minlength=3)
    np.testing.assert_allclose(learner.decision_function(X[[60]])[0], expected, rtol=1e-9)
    with pytest.raises(ValueError, match="nu of the rational kernel is in"):
        KernelSeparableBandit(kernel_params={"nu": 1.0}).fit(X, y)


def weakly_separable():
    """Three sectors of the circle: no half-plane holds one of them and nothing else."""
    angle = np.random.default_rng(0).uniform(-3, 3, size=20_000)
    angle = angle[abs(abs(angle) - 1) > 0.1]
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.digitize(angle, [-1, 1])


@pytest.mark.parametrize("form", FORMS)
def test_mistakes_end_where_examples_are_weakly_separable(form):
    X, y = weakly_separable()
    kernel = play(KernelSeparableBandit(form=form, random_state=0), X, y)
    linear = play(SeparableBandit(form, random_state=0), X, y)
    assert kernel.mistakes[10_000:].sum() == 0
    assert kernel.n_mistakes < linear.n_mistakes / 4


def test_saved_with_its_kernel(tmp_path):
    X, y = continuous(3)
    learner = KernelSeparableBandit("rbf", budget=9, kernel_params={"gamma": 0.3}, random_state=0)
    learner.fit(X[:100], y[:100]).save(tmp_path / "learner")
    loaded = load(tmp_path / "learner")
    for one in (learner, loaded):
        one.partial_fit(X[100:200], y[100:200])
    np.testing.assert_array_equal(
        loaded.decision_function(X[:50]), learner.decision_function(X[:50])
    )
    new = KernelSeparableBandit(classes=[0, 1, 2])
    new.decide(X[0])
    new.save(tmp_path / "new")
    assert load(tmp_path / "new").decision_function(X[:2]).tolist() == [[0, 0, 0]] * 2
    with pytest.raises(ValueError, match=r"kernel=<function rbf_kernel .* cannot be written"):
        KernelSeparableBandit(rbf_kernel).fit(X[:9], y[:9]).save(tmp_path / "callable")


def test_bad_kernels_are_named():
    X, y = continuous(3)
    for kernel, words in [
        (lambda A, B: np.zeros(len(B)), r"shape \(1, 1\); .* returned \(1,\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "returned NaN or infinity"),
    ]:
        with pytest.raises(ValueError, match=words):
            KernelSeparableBandit(kernel).fit(X, y)
    with pytest.raises(ValueError, match="'kernel' parameter of KernelSeparableBandit"):
        KernelSeparableBandit("chi2").fit(X, y)


@pytest.mark.parametrize("kernel", ["rational", "linear", "rbf", "poly", "cosine", "laplacian"])
@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_extreme_examples_stay_finite(kernel, scale):
    X, y = continuous(4)
    X, y = X[:150], y[:150]
    learner = KernelSeparableBandit(kernel, "repository", 20, random_state=0)
    learner.fit(scale * X, y)
    assert_finite(learner, scale * X)
    assert len(learner._run.state.points.rows) <= 4 * 20
    assert not hasattr(learner, "coef_")


@pytest.mark.parametrize(
    ("kernel", "parameters", "message"),
    [
        ("rational", {"zz": 7}, "'rational' has no parameter 'zz': it has nu"),
        ("linear", {"gamma": 7}, "'linear' has no parameter 'gamma': it has none"),
        ("rbf", {"gamma": "wide"}, "gamma of the kernel 'rbf' is a finite number; got 'wide'"),
        ("rational", {"nu": 1.5}, r"nu of the rational kernel is in \(0, 1\); got 1.5"),
        ("poly", {"degree": float("nan")}, "degree of the kernel 'poly' is a finite number"),
    ],
)
def test_parameters_that_a_kernel_does_not_take_are_refused_at_the_start(
    kernel, parameters, message
):
    some = KernelSeparableBandit(kernel, kernel_params=parameters, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        some.decide([1.0, 0.0, 2.0])
