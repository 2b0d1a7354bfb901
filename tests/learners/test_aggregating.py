import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import kstest

from onebit import play
from onebit.core.example import INDEX, Example
from onebit.core.generator import new_generator
from onebit.core.growing import Growing
from onebit.learners.frozen.aggregating import Aggregating
from onebit.numerics.sampler import chord, effective_sample_size, new_posterior, observe
from onebit.theory import best_linear, bounds, online_log_loss
from problems import assert_finite, logistic
from references import aggregating

ERRORS = 5
"""How many standard errors a mean may be off; chance makes it so once in a million."""


def stream(T, d, K, seed=0, scale=3.0):
    """Examples of about unit length and labels of a logistic model."""
    return logistic(T, d, K, scale, seed, lambda rng, T, d: rng.normal(size=(T, d)) / np.sqrt(d))


def standard_error(learner, reference, x):
    """Of the probabilities of x; two samples in three are taken to be independent."""
    return reference.deviations(x) / np.sqrt(learner.effective_sample_size_ * 2 / 3) + 1e-12


def example(d):
    return Example(np.arange(d, dtype=INDEX), np.ones(d), d)


@pytest.mark.parametrize(
    ("d", "K", "B", "mu", "n"),
    [
        (1, 2, 20.0, 0.1, 160),
        (1, 3, 3.0, 0.0, 30),
        pytest.param(1, 2, 2.0, 0.0, 40, marks=pytest.mark.slow),
        pytest.param(2, 2, 2.0, 0.0, 9, marks=pytest.mark.slow),
    ],
)
def test_predictions_are_the_integrals(d, K, B, mu, n):
    """At each of 60 rounds; standard errors of up to 0.013, for 3,000 samples."""
    X, y = stream(60, d, K)
    learner = Aggregating(B, mu, n_samples=3_000, random_state=d + K, classes=range(K))
    reference = aggregating.Aggregating(d, K, B, mu, n)
    for x, truth in zip(X, y, strict=True):
        decision = learner.decide(x)
        p, error = reference.probabilities(x), standard_error(learner, reference, x)
        assert error.max() < 0.013
        assert (np.abs(learner.predict_proba([x])[0] - p) < ERRORS * error).all()
        learner.learn(decision, truth=truth)
        reference.learn(x, truth)


@pytest.mark.parametrize(("d", "K", "n"), [(1, 2, 40), (1, 3, 30), (2, 2, 9)])
def test_losses_are_those_of_the_mixture(d, K, n):
    """l(z_t, y_t) = -ln E e^{-l_t}, so all of them sum to -ln E e^{-L}, W uniform (mixability)."""
    X, y = stream(60, d, K, seed=1)
    learner = Aggregating(2.0, n_samples=3_000, random_state=0, classes=range(K))
    losses = online_log_loss(learner, X, y)
    reference = aggregating.Aggregating(d, K, 2.0, n=n)
    sums = []
    for x, truth in zip(X, y, strict=True):
        reference.learn(x, truth)
        sums.append(reference.loss)
    np.testing.assert_allclose(losses, np.diff(sums, prepend=0.0), atol=0.06)
    np.testing.assert_allclose(np.cumsum(losses), sums, atol=0.12)


@pytest.mark.parametrize(("d", "K", "n"), [(1, 3, 30), (2, 2, 9)])
def test_samples_have_the_moments_of_the_distribution(d, K, n):
    X, y = stream(40, d, K, seed=2)
    B, M = 2.0, 4_000
    learner = Aggregating(B, n_samples=M, random_state=0).fit(X, y)
    reference = aggregating.Aggregating(d, K, B, n=n)
    for x, truth in zip(X, y, strict=True):
        reference.learn(x, truth)
    P, W = np.exp(reference.log_P), reference.W.reshape(-1, K * d)
    samples = learner._run.state.P.samples.transpose(0, 2, 1).reshape(-1, K * d)
    weights = np.exp(learner._run.state.P.log_weights)
    assert weights.sum() == pytest.approx(1.0)
    for power in (1, 2):
        exact = P @ W**power
        deviation = np.sqrt(P @ (W**power - exact) ** 2)
        off = np.abs(weights @ samples**power - exact)
        assert (off < ERRORS * deviation / np.sqrt(learner.effective_sample_size_ * 2 / 3)).all()


def test_first_samples_are_uniform():
    d, K, B = 3, 2, 7.0
    P = new_posterior(2_000, 1, d, K, B, new_generator(0))
    lengths = np.linalg.norm(P.samples, axis=1)
    assert kstest(((lengths / B) ** d).ravel(), "uniform").pvalue > 1e-4
    # a coordinate of a point on the sphere of three dimensions is uniform
    assert kstest((P.samples[:, 0] / lengths).ravel(), "uniform", (-1, 2)).pvalue > 1e-4


def test_renewed_samples_are_uniform_if_the_old_ones_were():
    """Of the first third, with all of the weight, and a loss that does not count."""
    d, K, B, M = 3, 2, 7.0, 3_000
    rng = new_generator(1)
    P = new_posterior(M, 1, d, K, B, rng)
    old = P.samples.copy()
    P.log_weights[:] = np.where(np.arange(M) < M / 3, -np.log(M / 3), -np.inf)
    observe(P, example(d), 0, 1e-12, rng)
    assert effective_sample_size(P) == pytest.approx(M)
    lengths = np.linalg.norm(P.samples, axis=1)
    assert lengths.max() <= B * (1 + 1e-12)
    assert kstest(((lengths / B) ** d).ravel(), "uniform").pvalue > 1e-4
    # One sweep is enough to forget of which of the old samples it was one of three copies.
    parents = old[np.arange(M) // 3]
    assert (P.samples != parents).all()
    assert abs(np.corrcoef(parents.ravel(), P.samples.ravel())[0, 1]) < 0.1


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-9, 1.0, 1e9]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_chord_ends_at_the_balls(seed, scale, share):
    rng = np.random.default_rng(seed)
    B = 3.0
    W = rng.normal(size=(4, 3))
    W *= share * B / np.linalg.norm(W, axis=0)
    V = scale * rng.normal(size=(4, 3))
    least, most = chord(W, V, B)
    assert least <= 0.0 <= most
    for a in (least, most):
        assert np.linalg.norm(W + a * V, axis=0).max() == pytest.approx(B, rel=1e-9)


def test_one_huge_example_is_taken_in_part_by_part():
    """It says that the first of two weights is the larger one: then its mean is B / 3."""
    learner = Aggregating(B=3.0, n_samples=4_000, random_state=0, classes=range(2))
    learner.learn(learner.decide([1e6]), truth=0)
    W, weights = learner._run.state.P.samples[:, 0], np.exp(learner._run.state.P.log_weights)
    assert (W[:, 0] > W[:, 1] - 1e-4)[weights > 1e-12].all()
    assert weights @ W == pytest.approx([1.0, -1.0], abs=0.1)
    # And now that the two are the same, up to 1e-6 or so.
    learner.learn(learner.decide([1e6]), truth=1)
    W = learner._run.state.P.samples[:, 0]
    assert np.abs(W[:, 0] - W[:, 1]).max() < 1e-4
    assert W.mean(axis=0) == pytest.approx([0.0, 0.0], abs=0.2)
    assert W.std(axis=0) == pytest.approx(3.0 / np.sqrt(3), rel=0.1)
    assert learner.effective_sample_size_ >= 2_000


@pytest.mark.slow
def test_effective_sample_size_predicts_the_errors_over_seeds():
    X, y = stream(50, 2, 3, seed=3)
    x = np.array([[0.5, -0.5]])
    p, sizes = [], []
    for seed in range(60):
        learner = Aggregating(3.0, n_samples=100, random_state=seed).fit(X, y)
        p.append(learner.predict_proba(x)[0])
        sizes.append(learner.effective_sample_size_)
    assert min(sizes) >= 50
    assert max(sizes) <= 100 * (1 + 1e-12)
    many = Aggregating(3.0, n_samples=4_000, random_state=0).fit(X, y)
    sigma = softmax(np.einsum("j,ijk->ik", x[0], many._run.state.P.samples), axis=1)
    weights = np.exp(many._run.state.P.log_weights)
    variance = weights @ (sigma - weights @ sigma) ** 2
    true_size = variance.sum() / np.var(p, axis=0, ddof=1).sum()
    assert 0.5 < true_size / np.mean(sizes) < 2
    assert np.mean(p, axis=0) == pytest.approx(weights @ sigma, abs=0.02)


def test_regret_is_below_the_bound():
    d, K, B, T = 2, 3, 5.0, 400
    X, y = stream(T, d, K, scale=5.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for mu in (0.0, 1 / T):
        learner = Aggregating(B, mu, random_state=0, classes=range(K))
        regret = (
            online_log_loss(learner, X, y).sum()
            - best_linear(X, y, radius=B, norm="rows", classes=range(K)).loss
        )
        assert 0 < regret < bounds.aggregating(T, d, K, B, mu=mu)


def test_smoothing_limits_the_loss():
    learner = Aggregating(100.0, 0.01, random_state=0, classes=range(4))
    play(learner, np.full((50, 1), 10.0), np.zeros(50, dtype=int))
    scores = learner.scores([[10.0], [0.0]])
    assert scores.min() == pytest.approx(np.log(0.01 / 4), abs=1e-3)
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1.0)


def test_examples_of_zeros_are_not_kept():
    learner = Aggregating(random_state=0, classes=range(2)).fit(np.eye(3), [0, 1, 0])
    before = learner._run.state.P.samples.copy()
    assert play(learner, np.zeros((5, 3)), np.zeros(5, dtype=int)).updated.sum() == 0
    np.testing.assert_array_equal(before, learner._run.state.P.samples)
    assert isinstance(learner._run.state.P.labels, Growing)
    assert learner._run.state.P.labels.rows.tolist() == [0, 1, 0]
    assert learner._run.state.P.weights.rows.tolist() == [1.0, 1.0, 1.0]


def test_has_no_effective_sample_size_before_it_starts():
    assert not hasattr(Aggregating(), "effective_sample_size_")


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    B=st.sampled_from([1e-3, 1.0, 1e3]),
    K=st.sampled_from([2, 5]),
    n_samples=st.sampled_from([2, 20]),
)
def test_extreme_values_stay_finite(seed, scale, B, K, n_samples):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(60, 3))
    learner = Aggregating(B, n_samples=n_samples, classes=range(K), random_state=seed)
    play(learner, X, rng.integers(K, size=60))
    assert_finite(learner, X)
    assert np.linalg.norm(learner._run.state.P.samples, axis=1).max() <= B * (1 + 1e-9)
