from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from onebit import Decision, play
from onebit.learners.folklore import Folklore
from paths import TOLERANCE, continuous, one_hot, repeated, unit
from problems import assert_finite, logistic
from references import aioli, folklore


def inverse_of(learner):
    """A^{-1} and h in the paper's order: all features of the first class, then of the next."""
    state = learner._run.state
    n, Q = int(state.A_inv.n_pending[0]), state.Q
    vectors, weights = state.A_inv.vectors[:n], state.A_inv.weights[:n]
    U = state.A_inv.base - (vectors.T * weights) @ vectors
    d, (K, m) = state.h.shape[0], Q.shape
    U = U.reshape(d, m, d, m)
    along = np.einsum("ka,iajb,lb->kilj", Q, U, Q).reshape(K * d, K * d)
    lam = 2 * learner.R / learner.B
    return along + np.kron(np.ones((K, K)) / K, np.eye(d)) / lam, (Q @ state.h.T).ravel()


@pytest.mark.parametrize(
    ("K", "stream", "storage", "curvature"),
    [
        (2, continuous, np.asarray, "safe"),
        (3, continuous, repeated, "safe"),
        (3, one_hot, np.asarray, "safe"),
        (9, unit(continuous), sp.csr_array, "paper"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (3, continuous, np.asarray, "safe"),
                (3, continuous, sp.csr_array, "safe"),
                (3, continuous, np.asarray, "paper"),
                (9, continuous, np.asarray, "safe"),
            ]
        ),
    ],
)
def test_walks_the_path_of_the_reference(K, stream, storage, curvature):
    """Probabilities are compared: which of two classes never told apart is greedy, rounding says.

    They are the same for them in exact arithmetic, for ever.
    """
    X, y = stream(K)
    stored = storage(X)
    reference = folklore.Folklore(X.shape[1], K, B=3.0, corrected=curvature == "safe")
    learner = Folklore(B=3.0, curvature=curvature, classes=range(K))
    for t, truth in enumerate(y):
        row = stored[[t]]
        decision = learner.decide(row if sp.issparse(row) else row[0])
        p = reference.probabilities(X[t])
        np.testing.assert_allclose(learner.predict_proba(row)[0], p, rtol=0, atol=TOLERANCE)
        assert p[decision.label] >= p.max() - TOLERANCE
        learner.learn(decision, truth=truth)
        reference.learn(X[t], np.eye(K)[truth])
    A_inv, h = inverse_of(learner)
    np.testing.assert_allclose(A_inv @ reference.A, np.eye(A_inv.shape[0]), atol=1e-9)
    np.testing.assert_allclose(h, np.linalg.solve(reference.A, reference.G), atol=1e-9)


@pytest.mark.parametrize(
    ("K", "stream", "storage", "n"),
    [
        (2, continuous, sp.csr_array, 60),
        (3, one_hot, np.asarray, 60),
        (4, continuous, np.asarray, 100),
    ],
)
def test_lookahead_walks_the_path_of_its_reference(K, stream, storage, n):
    """Phi_t made with A_t, whose reference solves for all weights."""
    X, y = (part[:n] for part in stream(K, d=3))
    stored = storage(X)
    reference = folklore.Lookahead(X.shape[1], K, B=3.0)
    learner = Folklore(B=3.0, lookahead=True, classes=range(K))
    apart = 0.0
    for t, truth in enumerate(y):
        row = stored[[t]]
        decision = learner.decide(row if sp.issparse(row) else row[0])
        p = reference.probabilities(X[t])
        np.testing.assert_allclose(learner.predict_proba(row)[0], p, rtol=0, atol=1e-8)
        before = softmax(folklore.Folklore.solve(reference, *X[t]))
        apart = max(apart, np.abs(p - before).max())
        learner.learn(decision, truth=truth)
        reference.learn(X[t], np.eye(K)[truth])
    assert apart > 1e-5 or K == 2, "it is not the phi_t of A_{t-1}"


def test_plays_the_minimum_of_the_surrogates():
    """Equation (3.3), left side; with the printed update its right side is something else."""
    rng = np.random.default_rng(0)
    d, K, B = 2, 3, 4.0
    X = rng.normal(size=(15, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(K, size=15)
    c_safe, c_paper = 1 / (2 * B + np.log(2) + 2), 1 / (B + np.log(3) / 2)
    off = {}
    for curvature, c in [("safe", c_safe), ("paper", c_paper)]:
        learner = Folklore(B, curvature=curvature, classes=range(K))
        written_out = folklore.WrittenOut(d, K, 2 / B, c)
        off[curvature] = 0.0
        for x, truth in zip(X, y, strict=True):
            decision = learner.decide(x)
            p = softmax(written_out.weights(x) @ x)
            off[curvature] = max(off[curvature], np.abs(learner.predict_proba([x])[0] - p).max())
            learner.learn(decision, truth=truth)
            written_out.learn(x, np.eye(K)[truth])
    assert off["safe"] < 1e-6
    assert off["paper"] > 0.01


@pytest.mark.parametrize("n", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_inverse_holds_for_many_rounds(n):
    d, K, B = 4, 4, 5.0
    X, y = logistic(n, d, K, strength=3.0, seed=1)
    learner = Folklore(B, classes=range(K))
    c = 1 / (2 * B + np.log(K - 1) + 2)
    A, G = 2 / B * np.eye(K * d), np.zeros(K * d)
    for t, (x, truth) in enumerate(zip(X, y, strict=True)):
        decision = learner.decide(x)
        (z,) = learner.scores([x])
        p = softmax(z)
        S = np.diag(p) - np.outer(p, p)
        A += c * np.kron(S, np.outer(x, x))
        G += np.kron(p - np.eye(K)[truth] - 2 * c * S @ z, x)
        learner.learn(decision, truth=truth)
        if t % 1_000 == 999:
            A_inv, h = inverse_of(learner)
            np.testing.assert_allclose(A_inv @ A, np.eye(K * d), atol=1e-10)
            np.testing.assert_allclose(h, A_inv @ G, atol=1e-10)


def excess(z_t, z, c):
    """l^_t - l_t, which does not depend on the label; and the size of what it is a difference of.

    It is <ln w - ln v, v> + c Var_v(ln w - ln v), with v = sigma(z_t) and w = sigma(z).
    """
    v, difference = softmax(z_t, axis=1), log_softmax(z, axis=1) - log_softmax(z_t, axis=1)
    mean = np.sum(v * difference, axis=1)
    variance = np.sum(v * (difference - mean[:, None]) ** 2, axis=1)
    return mean + c * variance, 1 + np.sum(v * np.abs(difference), axis=1) + c * variance


@pytest.mark.parametrize(
    ("sizes", "n"),
    [((2, 3, 9, 20), 4_000), pytest.param(range(2, 21), 8_000, marks=pytest.mark.slow)],
    ids=["some", "a million points"],
)
def test_surrogate_is_below_the_loss_and_the_printed_one_is_not(sizes, n):
    """Lemma 1: B R from 0.1 to 50, K from 2 to 20, z_t anywhere."""
    rng = np.random.default_rng(2)
    for K in sizes:
        for BR in (0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 50.0):
            z = rng.uniform(-BR, BR, size=(n, K))
            z[::2] = BR * np.sign(z[::2])  # the corners
            z_t = z + rng.normal(size=(n, K)) * 10 ** rng.uniform(-2, 2, size=(n, 1))
            # The worst z_t differs from z in one number only, for a set of the labels.
            in_set = rng.random((n, K)) < rng.random((n, 1))
            z_t[::4] = z[::4] + in_set[::4] * rng.uniform(-3 * BR - 3, 3 * BR + 3, size=(n, 1))[::4]
            c = {
                name: Folklore(BR, curvature=name)._begin(1, K, None)[1].parameters.c
                for name in ("safe", "paper")
            }
            above, size = excess(z_t, z, c["safe"])
            assert (above <= 1e-13 * size).all()
            assert excess(z_t, z, c["paper"])[0].max() > 0.1


def test_printed_surrogate_exceeds_the_loss_by_what_the_notes_say():
    for BR, expected in [(1.0, 0.38), (5.0, 0.91), (20.0, 4.52)]:
        c = Folklore(BR, curvature="paper")._begin(1, 2, None)[1].parameters.c
        z_t, z = np.meshgrid(np.linspace(-60, 60, 2_401), np.linspace(-2 * BR, 2 * BR, 101))
        pair = np.zeros((z.size, 2)), np.zeros((z.size, 2))
        pair[0][:, 1], pair[1][:, 1] = z_t.ravel(), z.ravel()
        assert excess(*pair, c)[0].max() == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_with_two_classes_it_is_aioli(seed):
    """With lambda / 2, c and half the weight on the losses of both labels; B_t changes nothing."""
    rng = np.random.default_rng(seed)
    d, B, R = 4, 6.0, 2.0
    X = rng.normal(size=(500, d))
    y = (X @ rng.normal(size=d) + rng.logistic(size=500) > 0).astype(int)
    learner = Folklore(B, R, classes=range(2))
    reference = aioli.Aioli(d, (2 * R / B) / 2, 1 / (2 * B * R + 2), weight=0.5)
    for x, truth in zip(X, y, strict=True):
        decision = learner.decide(x)
        np.testing.assert_allclose(
            learner.predict_proba([x])[0], reference.probabilities(x), rtol=0, atol=1e-10
        )
        learner.learn(decision, truth=truth)
        reference.learn(x, truth)


def test_rotating_the_examples_changes_nothing():
    X, y = continuous(4)
    X, y = X[:500], y[:500]
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1], X.shape[1])))
    straight = Folklore(3.0).fit(X, y).predict_proba(X)
    turned = Folklore(3.0).fit(X @ rotation, y).predict_proba(X @ rotation)
    np.testing.assert_allclose(straight, turned, rtol=0, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3, 7, 10])
def test_classes_of_a_new_learner_tie_exactly(K):
    rng = np.random.default_rng(K)
    for x in rng.normal(size=(20, 6)):
        learner = Folklore(rng.uniform(0.1, 10), classes=range(K))
        assert learner.decide(x).label == 0
        assert np.ptp(learner.scores([x])) == 0


def test_learns_from_distributions():
    rng = np.random.default_rng(0)
    d, K = 3, 4
    X, Y = rng.normal(size=(100, d)), rng.dirichlet(np.ones(K), size=100)
    learner = Folklore(2.0, classes=list("abcd"))
    reference = folklore.Folklore(d, K, B=2.0)
    for x, y in zip(X, Y, strict=True):
        decision = learner.decide(x)
        p = learner.predict_proba([x])[0]
        np.testing.assert_allclose(p, reference.probabilities(x), atol=1e-9)
        learner.learn(decision, truth=y)
        reference.learn(x, y)
    hard, soft = Folklore(classes=list("abcd")), Folklore(classes=list("abcd"))
    for x, k in zip(X, rng.integers(K, size=100), strict=True):
        hard.learn(hard.decide(x), truth="abcd"[k])
        soft.learn(soft.decide(x), truth=np.eye(K)[k].tolist())
    np.testing.assert_array_equal(hard.predict_proba(X), soft.predict_proba(X))


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ([0.5, 0.5], "one number for each of the 3 classes; got 2"),
        ([0.5, 0.6, -0.1], "non-negative"),
        ([0.5, 0.2, 0.2], "sum to one"),
        ([np.nan, 0.5, 0.5], "non-negative"),
        ([[0.2, 0.3, 0.5]], "unknown label"),
        ("d", "unknown label 'd'"),
    ],
)
def test_refuses_what_is_no_distribution(truth, words):
    learner = Folklore(classes=list("abc"))
    decision = learner.decide([1.0, 2.0])
    with pytest.raises(ValueError, match=words):
        learner.learn(decision, truth=truth)
    assert not learner._run.state.h.any()
    learner.learn(decision, truth="b")


def test_predicts_the_same_from_several_threads_while_it_learns():
    """What a round needs again is nowhere that another thread writes to."""
    X, y = continuous(3)
    learner, twin = Folklore(classes=range(3)).fit(X, y), Folklore(classes=range(3)).fit(X, y)
    expected = learner.predict_proba(X)
    with ThreadPoolExecutor(4) as threads:
        for p in threads.map(lambda _: learner.predict_proba(X), range(8)):
            np.testing.assert_array_equal(p, expected)
        looking = [threads.submit(learner.predict_proba, X) for _ in range(8)]
        for x, truth in zip(X, y, strict=True):
            learner.learn(Decision(x, 0, 1.0), truth=truth)
        for future in looking:
            future.result()
    twin.partial_fit(X, y)
    np.testing.assert_array_equal(learner.predict_proba(X), twin.predict_proba(X))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-8, 1.0, 1e4]),
    B=st.sampled_from([1e-3, 1.0, 1e3]),
    K=st.sampled_from([2, 3, 9]),
    curvature=st.sampled_from(["safe", "paper"]),
)
def test_extreme_values_stay_finite(seed, scale, B, K, curvature):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(500, 3))
    learner = Folklore(B, curvature=curvature, classes=range(K))
    play(learner, X, rng.integers(K, size=500))
    assert_finite(learner, X)
    np.testing.assert_allclose(learner.predict_proba(X).sum(axis=1), 1.0)
