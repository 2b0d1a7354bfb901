import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import play
from onebit.learners.passive_aggressive import PassiveAggressive
from paths import assert_same_path, continuous, every_stream, one_hot
from problems import assert_finite
from references import passive_aggressive

VARIANTS = ["PA", "PA-I", "PA-II"]


@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    reference = passive_aggressive.PassiveAggressive(X.shape[1], K, C=0.3)
    assert_same_path(PassiveAggressive(C=0.3), reference, X, y, storage)


@pytest.mark.parametrize("K", [2, 3, 9])
def test_path_through_ties(K):
    X, y = one_hot(K)
    reference = passive_aggressive.PassiveAggressive(X.shape[1], K, C=0.3)
    assert_same_path(PassiveAggressive(C=0.3), reference, X, y, sp.csr_array)


@pytest.mark.parametrize("K", [2, 3, 9])
@pytest.mark.parametrize("variant", ["PA", "PA-II"])
def test_path_of_the_other_variants(K, variant):
    X, y = continuous(K)
    reference = passive_aggressive.PassiveAggressive(X.shape[1], K, 0.3, variant)
    assert_same_path(PassiveAggressive(0.3, variant), reference, X, y)


@pytest.mark.parametrize("n", [60, pytest.param(150, marks=pytest.mark.slow)])
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    K=st.integers(2, 5),
    C=st.floats(1e-3, 1e3),
    variant=st.sampled_from(VARIANTS),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
)
def test_each_step_is_the_one_the_paper_defines(n, seed, K, C, variant, scale):
    """PA leaves no loss on the pair it changes, and at most half of the loss over all labels."""
    rng = np.random.default_rng(seed)
    learner = PassiveAggressive(C, variant, classes=range(K))
    learner.decide(np.zeros(3))

    def losses(x, truth):
        s = learner.coef_ @ x
        loss = 1 - (s[truth] - s)
        loss[truth] = -np.inf
        return loss

    for x, truth in zip(scale * rng.normal(size=(n, 3)), rng.integers(K, size=n), strict=True):
        W, before = learner.coef_, losses(x, truth)
        j, loss = np.argmax(before), before.max()
        updated = play(learner, x[None], [truth]).updated[0]
        assert updated == (loss > 0)
        step = learner.coef_ - W
        if not updated:
            assert not step.any()
            continue
        after = losses(x, truth)
        tau = step[truth] @ x / (x @ x)
        np.testing.assert_allclose(step[j], -step[truth], atol=1e-9 / scale)
        assert after.max() <= loss
        if variant == "PA":
            assert after[j] == pytest.approx(0, abs=1e-8)
            assert after.max() <= loss / 2 + 1e-8
        elif variant == "PA-I":
            assert tau <= C * (1 + 1e-9) + 1e-9 / scale**2
        else:  # the loss that is left is tau / (2 C)
            assert after[j] == pytest.approx(tau / (2 * C), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_empty_row_teaches_nothing(variant):
    learner = PassiveAggressive(variant=variant, classes=range(3)).fit(*continuous(3))
    before = learner.coef_
    for x in (np.zeros(5), np.full(5, 1e-200)):
        assert play(learner, x[None], [2]).n_updated == 0
    np.testing.assert_array_equal(learner.coef_, before)


@pytest.mark.parametrize("variant", VARIANTS)
def test_late_feedback_meets_the_weights_at_arrival(variant):
    X, y = continuous(4)
    late = PassiveAggressive(variant=variant, classes=range(4))
    decisions = [late.decide(x) for x in X[:300]]
    for decision, truth in reversed(list(zip(decisions, y[:300], strict=True))):
        late.learn(decision, truth=truth)
    in_time = PassiveAggressive(variant=variant, classes=range(4)).fit(X[299::-1], y[299::-1])
    np.testing.assert_array_equal(late.coef_, in_time.coef_)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_keeps_the_mistake_bound(C):
    X, y = continuous(4)
    learner = PassiveAggressive(C)
    history = play(learner, X, y)
    full_rows = X.any(axis=1)
    n_mistakes, squares = (history.mistakes & full_rows).sum(), (X * X).sum(axis=1).max()
    for U in (learner.coef_, 0.1 * learner.coef_):
        scores = X @ U.T
        own = scores[np.arange(len(y)), y]
        scores[np.arange(len(y)), y] = -np.inf
        L = np.maximum(0, 1 - (own - scores.max(axis=1)))[full_rows].sum()
        assert n_mistakes <= max(2 * squares, 1 / C) * ((U * U).sum() + 2 * C * L)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e4, "mixed"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_extremes_stay_finite(variant, scale, C):
    X, y = continuous(4)
    X = X * (np.array([1e-8, 1, 1e4, 1e-8, 1e4]) if scale == "mixed" else scale)
    learner = PassiveAggressive(C, variant)
    play(learner, np.tile(X, (3, 1)), np.tile(y, 3))
    assert_finite(learner, X)
