import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import Decision, play
from onebit.learners.separable_bandit import SeparableBandit
from onebit.streams.separable import strongly_separable
from paths import assert_same_path, continuous, every_stream, one_hot, repeated
from problems import assert_finite
from references import separable_bandit

FORMS = ["theory", "repository"]


def walk(form, K, stream, storage):
    X, y = stream(K)
    reference = separable_bandit.SeparableBandit(X.shape[1], K, form)
    assert_same_path(SeparableBandit(form, random_state=K), reference, X, y, storage)


@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    walk("theory", K, stream, storage)


@pytest.mark.parametrize(
    ("form", "stream"), [("theory", one_hot), ("repository", continuous), ("repository", one_hot)]
)
@pytest.mark.parametrize(("K", "storage"), [(2, np.asarray), (3, sp.csr_array), (9, repeated)])
def test_walks_other_paths_of_the_reference(form, K, stream, storage):
    walk(form, K, stream, storage)


def coordinates(X, y):
    """Return, for each class, the coordinates that are positive in its examples only."""
    return [np.flatnonzero(((X > 0) == (y == k)[:, None]).all(axis=0)) for k in range(y.max() + 1)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("d", "K"), [(400, 9), (12, 4), (2, 2)])
def test_mistakes_keep_within_the_bound(form, d, K):
    X, y = strongly_separable(20_000, n_features=d, n_classes=K, seed=d)
    own = [c[0] for c in coordinates(X, y)]
    # The comparator u_i = e_own(i) / sqrt(K) has margin gamma / 2 on each x, of length R = 1.
    gamma = 2 * np.abs(X[:, own]).min() / np.sqrt(K)
    corrections = np.floor(4 / gamma**2)
    histories = [play(SeparableBandit(form, random_state=seed), X, y) for seed in range(5)]
    mistakes = [history.n_mistakes for history in histories]
    assert np.mean(mistakes) <= (K - 1) * corrections
    if form == "theory":  # a round corrects one Perceptron
        assert max(history.n_updated for history in histories) <= corrections
    assert np.mean([history.mistakes[-2_000:].mean() for history in histories]) < 0.02


def test_guesses_only_while_every_perceptron_says_no():
    learner = SeparableBandit(classes=range(3), random_state=0)
    X, y = continuous(3)
    for x, truth in zip(X[:500], y[:500], strict=True):
        decision = learner.decide(x)
        p, scores = learner.policy(x[None])[0], learner.decision_function(x[None])[0]
        if scores.max() < 0:
            np.testing.assert_array_equal(p, 1 / 3)
        else:
            np.testing.assert_array_equal(p, np.eye(3)[np.argmax(scores)])
        learner.learn(decision, correct=decision.label == truth)


@pytest.mark.parametrize("form", FORMS)
def test_late_feedback_corrects_only_a_perceptron_that_is_mistaken_by_then(form):
    x = np.array([1.0, 0.0])
    learner = SeparableBandit(form, classes=range(3), random_state=0)
    learner.learn(Decision(x, 0, 1.0), correct=False)
    assert learner.decision_function(x[None])[0].tolist() == [-1, 0, 0]
    learner.learn(Decision(x, 0, 1.0), correct=False)
    assert learner.decision_function(x[None])[0].tolist() == [-1, 0, 0]
    learner.learn(Decision(x, 0, 1.0), correct=True)
    others = 0 if form == "theory" else -1
    assert learner.decision_function(x[None])[0].tolist() == [0, others, others]


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    form=st.sampled_from(FORMS),
)
def test_decisions_do_not_depend_on_the_scale_of_the_examples(seed, scale, form):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, size=(1_000, 4)).astype(float), rng.integers(3, size=1_000)
    one, other = (SeparableBandit(form, random_state=0, classes=range(3)) for _ in range(2))
    power = 2.0 ** np.round(np.log2(scale))  # so that rounding is the same
    np.testing.assert_array_equal(play(one, X, y).mistakes, play(other, power * X, y).mistakes)
    np.testing.assert_array_equal(power * one.coef_, other.coef_)
    assert_finite(other)


def test_stream_gives_each_class_a_half_space():
    X, y = strongly_separable(2_000, n_features=30, n_classes=5, seed=3)
    found = coordinates(X, y)
    assert [len(c) for c in found] == [1] * 5
    own = np.concatenate(found)
    assert np.abs(X[:, own]).min() > 0.1 / np.sqrt(1 + 5 * 0.1**2)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    assert np.bincount(y).min() > 300
    again, other = (strongly_separable(10, seed=seed)[0] for seed in (0, 1))
    np.testing.assert_array_equal(again, strongly_separable(10, seed=0)[0])
    assert (again != other).any()
    with pytest.raises(ValueError, match="got 3 of 2"):
        strongly_separable(10, n_features=2, n_classes=3)
