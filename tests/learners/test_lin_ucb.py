import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import LinUCB, play
from paths import assert_same_path, continuous, every_stream, grades, one_hot
from problems import assert_finite, logistic
from references import lin_ucb


@every_stream(continuous)
def test_walks_the_path_of_the_reference(K, stream, storage):
    X, y = stream(K)
    parameters = {"alpha": 0.5, "regularization": 2.0}
    reference = lin_ucb.LinUCB(X.shape[1], K, **parameters)
    assert_same_path(LinUCB(**parameters), reference, X, y, storage)


def test_walks_the_path_of_the_reference_through_exact_ties():
    X, y = one_hot(3)
    assert_same_path(LinUCB(), lin_ucb.LinUCB(X.shape[1], 3), X, y, sp.csr_array)


@pytest.mark.parametrize(("K", "storage"), [(2, sp.csr_array), (3, np.asarray)])
def test_walks_the_path_of_the_reference_with_rewards(K, storage):
    X, y = continuous(K, n=300)
    reference = lin_ucb.LinUCB(X.shape[1], K, 0.5)
    assert_same_path(LinUCB(0.5), reference, X, y, storage, rewards=grades(y))


def test_it_regresses_each_label_on_the_rounds_that_chose_it():
    X, y = logistic(500, 4, 3, 3.0)
    learner = LinUCB(alpha=0.3, regularization=0.7, classes=range(3))
    chosen = []
    for x, truth in zip(X, y, strict=True):
        decision = learner.decide(x)
        chosen.append(decision.label)
        learner.learn(decision, correct=decision.label == truth)
    for k in range(3):
        rows = X[np.array(chosen) == k]
        right = (y == chosen)[np.array(chosen) == k]
        theta = np.linalg.solve(rows.T @ rows + 0.7 * np.eye(4), rows.T @ right)
        np.testing.assert_allclose(learner.coef_[k], theta, rtol=1e-9)


def test_it_explores_without_chance():
    X, y = logistic(1_000, 5, 4, 3.0)
    histories = [play(LinUCB(random_state=seed), X, y) for seed in (0, 1)]
    assert np.array_equal(histories[0].mistakes, histories[1].mistakes)
    assert 0 < histories[0].n_explored < 500
    assert play(LinUCB(alpha=0.0), X, y).n_explored == 0
    p = LinUCB().fit(X, y).policy(X)
    assert set(p.ravel()) == {0.0, 1.0}


def test_a_label_never_chosen_is_tried():
    learner = LinUCB(classes=["a", "b", "c"])
    seen = []
    for _ in range(3):
        decision = learner.decide([1.0])
        seen.append(decision.label)
        learner.learn(decision, correct=False)
    assert seen == ["a", "b", "c"]


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.sampled_from([0.0, 1.0, 1e6]),
    regularization=st.sampled_from([1e-6, 1.0, 1e6]),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_stays_finite(seed, alpha, regularization, scale):
    rng = np.random.default_rng(seed)
    # Few directions that come again and again, beside rare ones, are hard on an inverse.
    X = scale * np.repeat(rng.normal(size=(50, 4)) * [1, 1, 1, 1e-6], 60, axis=0)
    learner = LinUCB(alpha, regularization).fit(X, rng.integers(5, size=len(X)))
    assert_finite(learner, X)


@pytest.mark.slow
def test_float_errors_do_not_add_up():
    X, y = logistic(200_000, 5, 3, 3.0)
    learner = LinUCB().fit(X, y)
    state = learner._run.state
    for k, base in enumerate(state.A_inv.base):
        assert np.linalg.eigvalsh(base).min() > 0.0, k
