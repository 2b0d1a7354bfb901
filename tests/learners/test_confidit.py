import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from onebit import Decision, play
from onebit.core.generator import new_generator
from onebit.learners.confidit import Confidit, multipliers
from onebit.learners.kernel_confidit import KernelConfidit
from onebit.numerics.second_order import of_class
from paths import assert_same_path, continuous, every_stream, one_hot, repeated
from problems import assert_finite, numpy_generator
from references import confidit
from test_extremes import KINDS, assert_stays_finite, rows

VERSIONS = {
    1: {"projection": True, "confidence": "theory", "covariance": "full"},
    2: {"projection": False, "confidence": "constant", "covariance": "full"},
    3: {"projection": False, "confidence": "theory", "covariance": "full"},
    4: {"projection": True, "confidence": "constant", "covariance": "full"},
    5: {"projection": False, "confidence": "constant", "covariance": "diagonal"},
}


def twins(K, d, seed, **parameters):
    """A learner and its reference, whose generators draw alike."""
    draws = numpy_generator(new_generator(seed))
    reference = confidit.Confidit(d, K, **parameters, draws=draws)
    return Confidit(**parameters, random_state=seed), reference


def walk(K, stream, storage, **parameters):
    X, y = stream(K)
    learner, reference = twins(K, X.shape[1], K, **parameters)

    assert_same_path(learner, reference, X, y, storage)
    confidence = learner._run.state.confidence
    assert confidence.terms == pytest.approx(reference.terms, rel=1e-9)
    assert confidence.width == pytest.approx(reference.multiplier(), rel=1e-9)
    D = np.array([reference.scores(reference.point(x))[1] for x in X])
    np.testing.assert_array_equal(learner.predict(storage(X)), np.argmax(D, axis=1))
    return learner, reference


@every_stream(continuous)
def test_version_5_walks_the_path_of_the_reference(K, stream, storage):
    walk(K, stream, storage, eta=2.0, **VERSIONS[5])


@pytest.mark.parametrize("rows", [{}, {"normalize": False, "a": 0.25}])
def test_walks_the_path_of_the_reference_through_exact_ties(rows):
    walk(3, one_hot, sp.csr_array, eta=2.0, **rows, **VERSIONS[5])


THEORY = {"alpha": 0.5, "norm": 2.0, "approximation_error": [0.3, 0.2, 0.01]}


@pytest.mark.parametrize(
    ("K", "storage", "form"),
    [
        (2, np.asarray, VERSIONS[1]),
        (3, sp.csr_array, {**VERSIONS[1], **THEORY}),
        (9, repeated, {**VERSIONS[1], "alpha": 1 / 8}),
        (2, sp.csr_array, VERSIONS[2]),
        (9, np.asarray, {**VERSIONS[2], "alpha": -0.5}),
        (3, repeated, {**VERSIONS[3], "delta": 0.2}),
        (3, np.asarray, {**VERSIONS[4], "eta": 0.5}),
        (9, sp.csr_array, {"projection": True, "alpha": 0.0}),
        (3, repeated, {"projection": True, "confidence": "theory", **THEORY}),
        (2, sp.csr_array, {"normalize": False, "a": 1.0}),
        (9, np.asarray, {"normalize": False, "a": 0.1, "eta": 10.0, "alpha": 0.5}),
        (3, repeated, {**VERSIONS[1], **THEORY, "normalize": False, "a": 3.0}),
        (2, np.asarray, {**VERSIONS[2], "normalize": False}),
        (3, sp.csr_array, {**VERSIONS[4], "a": 0.5}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_walks_the_path_of_the_reference(K, storage, form):
    learner, reference = walk(K, continuous, storage, **form)
    state = learner._run.state
    if form.get("covariance") != "full":
        np.testing.assert_allclose(1 / state.A_inv.T, [np.diag(A) for A in reference.A], rtol=1e-9)
        return
    # A_i = a I + sum of x x' over the rounds with output i
    log_ratio = 0.0
    for i, A in enumerate(reference.A):
        inverse = of_class(state.A_inv, i)
        m = int(inverse.n_pending[0])
        pending = (inverse.vectors[:m].T * inverse.weights[:m]) @ inverse.vectors[:m]
        np.testing.assert_allclose((inverse.base - pending) @ A, np.eye(len(A)), atol=1e-9)
        log_ratio += np.linalg.slogdet(A / state.confidence.a)[1]
    assert 0 < state.confidence.terms <= log_ratio + 1e-9


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), K=st.integers(2, 4), alpha=st.sampled_from([-0.4, 0, 0.3, 1])
)
def test_projection_solves_the_quadratic_program(seed, K, alpha):
    rng = np.random.default_rng(seed)
    d = 2
    W, root, x = rng.normal(size=(K, d)), rng.normal(size=(K, d, d)), rng.normal(size=d)
    A = root @ root.transpose(0, 2, 1) + np.eye(d)
    A_inv_x = np.linalg.solve(A, x)
    D, n = W @ x, A_inv_x @ x
    tau = np.empty(K)
    multipliers(D, n, float(alpha), tau)
    projected = W + tau[:, np.newaxis] * A_inv_x
    np.testing.assert_allclose(projected @ x, D + tau * n, atol=1e-12)
    assert (projected @ x).min() >= -alpha - 1e-12
    assert (projected @ x).sum() == pytest.approx(1 + alpha - K * alpha, abs=1e-12)

    def distance(U):
        step = U.reshape(K, d) - W
        return np.einsum("ki,kij,kj->", step, A, step) / 2

    program = minimize(
        distance,
        np.zeros(K * d),
        constraints=[
            {"type": "ineq", "fun": lambda U: U.reshape(K, d) @ x + alpha},
            {
                "type": "eq",
                "fun": lambda U: U.reshape(K, d) @ x @ np.ones(K) + K * alpha - 1 - alpha,
            },
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert distance(projected) <= program.fun + 1e-6
    np.testing.assert_allclose(projected.reshape(-1), program.x, atol=1e-3)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    K=st.integers(2, 40),
    alpha=st.sampled_from([-0.999, 0.0, 1.0]),
    size=st.sampled_from([1e-6, 1.0, 1e3]),
)
def test_multipliers_are_those_of_the_nearest_scores(seed, K, alpha, size):
    """With ties among the scores, and uncertainties of many sizes."""
    rng = np.random.default_rng(seed)
    D, n = size * rng.integers(-5, 6, size=K), 10.0 ** -rng.integers(0, 6, size=K)
    tau = np.empty(K)
    multipliers(D, n, alpha, tau)
    np.testing.assert_allclose(
        D + tau * n, confidit.projected(D, n, alpha), atol=1e-11 * max(size, 1.0)
    )


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_projected_scores_fit_the_noise_model(covariance):
    X, y = continuous(4)
    alpha = 0.3
    learner = Confidit(alpha=alpha, projection=True, covariance=covariance, random_state=0)
    learner.fit(X, y)
    D = learner.decision_function(X[X.any(axis=1)])
    assert D.min() >= -alpha - 1e-12
    np.testing.assert_allclose(D.sum(axis=1), 1 + alpha - 4 * alpha, atol=1e-12)
    # and it is the stored weights that were moved: those of classes that were not chosen, too
    before = learner.coef_
    x = X[X.any(axis=1)][0]
    decision = learner.decide(x)
    D = learner.decision_function([x])[0]
    learner.learn(decision, correct=True)
    others = np.arange(4) != decision.label
    assert (learner.coef_[others] != before[others]).any()
    np.testing.assert_allclose((learner.coef_ @ x / np.linalg.norm(x))[others], D[others])


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_expected_update_is_the_true_margin(alpha):
    """E beta = Delta, if the label has the probability (alpha + Delta) / (alpha + 1)."""
    rng = np.random.default_rng(5)
    N, delta = 20_000, 0.2
    learner = Confidit(alpha=alpha, covariance="full", classes=[0, 1], random_state=0)
    for correct in rng.random(N) < (alpha + delta) / (alpha + 1):
        learner.learn(Decision([3.0], 1, 1.0), correct=correct)
    beta = learner.coef_[1, 0] * ((1 + alpha) ** 2 + N) / N  # w = sum of beta x / A
    assert beta == pytest.approx(delta, abs=5 / np.sqrt(N))


def test_alpha_1_leaves_nothing_to_chance():
    X, y = continuous(3)
    first, second = (Confidit(random_state=seed).fit(X, y) for seed in (0, 1))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    random = [Confidit(alpha=0.9, random_state=seed).fit(X, y).coef_ for seed in (0, 1)]
    assert (random[0] != random[1]).any()
    assert set(np.unique(first.policy(X))) == {0.0, 1.0}


def test_confidence_alone_explores():
    X, y = continuous(3, n=2_000)
    assert not play(Confidit(eta=0.0), X, y).explored.any()
    history = play(Confidit(eta=10.0), X, y).explored
    assert history[:500].sum() > 2 * history[-500:].sum() > 0


def test_length_of_an_example_does_not_matter():
    X, y = continuous(3)
    lengths = 10.0 ** np.random.default_rng(0).integers(-200, 30, size=(len(X), 1))
    for form in VERSIONS.values():
        a, b = Confidit(**form, random_state=0), Confidit(**form, random_state=0)
        np.testing.assert_array_equal(
            play(a, X[:500], y[:500]).mistakes, play(b, (lengths * X)[:500], y[:500]).mistakes
        )
        np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)


@pytest.mark.parametrize("form", [{}, {"covariance": "full"}], ids=["diagonal", "full"])
def test_length_matters_unless_examples_are_normalised(form):
    """A_0 = a I and rows c x are A_0 = (a / c^2) I and rows x, with weights divided by c."""
    X, y = continuous(3)
    learners = [
        Confidit(normalize=False, a=a, classes=range(3), **form) for a in (1.0, 1.0, 1 / 16)
    ]
    runs = [play(learner, c * X, y) for learner, c in zip(learners, (1, 4, 1), strict=True)]
    assert (runs[0].mistakes != runs[1].mistakes).any()
    np.testing.assert_array_equal(runs[1].mistakes, runs[2].mistakes)
    np.testing.assert_allclose(4 * learners[1].coef_, learners[2].coef_, rtol=1e-9)
    # rows of unit length are the same to both
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    for raw in (False, True):
        learner = Confidit(normalize=raw, classes=range(3), **form)
        np.testing.assert_array_equal(
            play(learner, unit, y).mistakes, play(Confidit(**form), X, y).mistakes
        )


@pytest.mark.parametrize("rows", [{}, {"normalize": False, "a": 0.5}])
def test_an_example_of_zeros_only_counts_the_round(rows):
    for version in VERSIONS.values():
        form = {**version, **rows}
        X, y = continuous(3)
        learner = Confidit(**form).fit(X, y)
        before = learner.coef_
        zeros = np.zeros((1, X.shape[1]))
        assert (learner.decision_function(zeros) == 0).all()
        learner.partial_fit(zeros, y[:1])
        np.testing.assert_array_equal(learner.coef_, before)
        assert learner._run.state.confidence.rounds == len(y) + 1


def test_a_number_is_the_approximation_error_of_every_round():
    X, y = continuous(3)
    form = {"confidence": "theory", "random_state": 0}
    plain = Confidit(**form).fit(X, y)._run.state.confidence
    for q, Q in [(0.25, 0.25 * len(y)), ([0.5, 0.0], 0.5), (np.arange(4.0), 3.0 * (len(y) - 2))]:
        confidence = Confidit(**form, approximation_error=q).fit(X, y)._run.state.confidence
        assert float(confidence.Q) == pytest.approx(Q)
        widened = confidence.width - 4 * confidence.terms - (plain.width - 4 * plain.terms)
        assert widened == pytest.approx(8 * Q)  # 2 (1 + alpha)^2 Q


def falling(t):
    return 1.0 / t


@pytest.mark.parametrize("cls", [Confidit, KernelConfidit])
def test_a_function_gives_the_approximation_error_of_each_round(cls):
    X, y = (rows[:150] for rows in continuous(3))
    form = {"confidence": "theory", "classes": range(3)}
    expected = cls(**form, approximation_error=[falling(t) for t in range(1, 151)]).fit(X, y)
    learner = cls(**form, approximation_error=falling).partial_fit(X[:70], y[:70])
    learner = pickle.loads(pickle.dumps(learner))
    for x, truth in zip(X[70:90], y[70:90], strict=True):
        learner.learn(learner.decide(x), truth=truth)
    play(learner, X[90:], y[90:])
    assert learner._run.state.confidence.Q == expected._run.state.confidence.Q > 5
    assert learner._run.state.confidence.width == expected._run.state.confidence.width
    np.testing.assert_array_equal(learner.policy(X), expected.policy(X))


def test_a_function_cannot_be_saved_and_must_return_numbers(tmp_path):
    X, y = continuous(3)
    learner = Confidit(confidence="theory", approximation_error=falling).fit(X, y)
    with pytest.raises(ValueError, match=r"approximation_error=.*falling.* cannot be written"):
        learner.save(tmp_path / "learner.safetensors")
    learner = Confidit(
        confidence="theory", approximation_error=lambda t: 150.0 - t, classes=range(3)
    ).partial_fit(X[:100], y[:100])
    before = learner.coef_
    with pytest.raises(ValueError, match=r"non-negative; got .* in rounds 101 to 200"):
        learner.partial_fit(X[100:200], y[100:200])
    np.testing.assert_array_equal(learner.coef_, before)
    assert learner._run.state.confidence.rounds == 100


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"approximation_error": 0.1}, "approximation_error=0.1 widens .* confidence='theory'"),
        ({"confidence": "theory", "approximation_error": [0.1, -1]}, "approximation_error must"),
        ({"confidence": "theory", "approximation_error": []}, "approximation_error must"),
        ({"confidence": "theory", "approximation_error": [[0.1]]}, "approximation_error must"),
        ({"confidence": "theory", "approximation_error": [np.inf]}, "approximation_error must"),
        ({"confidence": "theory", "approximation_error": lambda t: -t}, "approximation_error must"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"eta": -1.0}, "'eta' parameter"),
        ({"delta": 0.0}, "'delta' parameter"),
        ({"a": 0.0}, "'a' parameter"),
        ({"a": "paper"}, "'a' parameter"),
        ({"normalize": "l1"}, "'normalize' parameter"),
    ],
)
def test_refuses_by_name(parameters, words):
    learner = Confidit(**parameters, classes=[0, 1])
    with pytest.raises(ValueError, match=words):
        learner.decide([1.0])
    assert not hasattr(learner, "coef_")


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    version=st.sampled_from([*VERSIONS]),
    alpha=st.sampled_from([-0.999, 0.0, 1.0]),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    rows=st.sampled_from([{}, {"normalize": False}, {"normalize": False, "a": 1e-3}]),
)
def test_stays_finite(seed, version, alpha, size, scale, rows):
    rng = np.random.default_rng(seed)
    # Few directions that come again and again, beside rare ones, are hard on an inverse.
    X = scale * np.repeat(rng.normal(size=(50, 4)) * [1, 1, 1, 1e-6], 60, axis=0)
    learner = Confidit(
        size, alpha, norm=size, delta=1e-6, **VERSIONS[version], **rows, random_state=seed
    ).fit(X, rng.integers(5, size=len(X)))
    assert_finite(learner, X[::60])
    # w is the weight of a ridge regression on targets of -1 and 1
    if version in (2, 3, 5):
        a = rows.get("a", (1 + alpha) ** 2)
        assert np.linalg.norm(learner.coef_, axis=1).max() <= np.sqrt(len(X) / a)


def test_versions_are_ordered_as_in_figure_2():
    """More theory, more mistakes; the orders that hold whatever distributions were meant."""
    scales = 10.0 ** np.arange(-3, 4)
    mistakes = {version: np.zeros(scales.size) for version in VERSIONS}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, u = rng.normal(size=(1_000, 9)), rng.normal(size=(5, 5))
        y = np.argmax(X[:, :5] @ u.T, axis=1)
        for version, form in VERSIONS.items():
            for i, scale in enumerate(scales):
                size = {"eta": scale, "norm": scale * (u**2).sum()}
                learner = Confidit(**size, **form, classes=range(5))
                mistakes[version][i] += play(learner, X, y).n_mistakes / 3
    assert (mistakes[1] > mistakes[4]).all()
    assert (mistakes[1] > mistakes[3]).all()
    assert (mistakes[3] > mistakes[5]).all()
    assert (mistakes[4] > mistakes[5]).all()
    assert (mistakes[4] > mistakes[2]).all()
    # Full matrices beat their diagonals, unless the intervals are far too wide.
    assert (mistakes[2] < mistakes[5])[scales <= 10].all()
    assert (mistakes[2] > mistakes[5])[scales >= 100].all()
    assert mistakes[1].min() > 500 > 250 > mistakes[5].min() > mistakes[2].min()


def test_the_smallest_delta_has_a_finite_width():
    X, y = np.eye(3), [0, 1, 2]
    learner = Confidit(confidence="theory", delta=1e-320, random_state=0).fit(X, y)
    assert np.isfinite(learner._run.state.confidence.width)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a", ["theory", 1e-6, 1e30])
def test_rows_as_they_are_stay_finite(kind, a):
    """Rounding would be all that is left of A_0 after one example of a length of 10^30."""
    raw = {"normalize": False, "a": a}
    for form in VERSIONS.values():
        assert_stays_finite(Confidit(**form, **raw), rows(kind, n=60), 3)
    for form in ({"kernel": "linear"}, {"kernel": "poly", "projection": True}):
        assert_stays_finite(KernelConfidit(**form, **raw), rows(kind, n=60), 3)


def test_full_matrices_shorten_what_is_too_long_for_them():
    X, y = continuous(3)
    long = X.copy()
    long[::7] *= 1e9
    short = long * np.minimum(1, 1e4 / np.maximum(np.linalg.norm(long, axis=1), 1e-300))[:, None]
    form = {"covariance": "full", "normalize": False, "a": 1.0, "classes": range(3)}
    found, same, other = (Confidit(**form).fit(some, y).coef_ for some in (long, short, X))
    np.testing.assert_allclose(found, same, rtol=1e-6)
    assert not np.allclose(found, other, rtol=0.1)
