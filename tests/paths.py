"""Walking a learner and its reference over the same rounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from onebit.checks import not_canonical

N_ROUNDS = 2_000
"""Length of the paths and of the streams below; A_FEW in the runs of every day (conftest.py)."""
A_FEW = 400
TOLERANCE = 1e-9


def continuous(K, seed=0, d=5, n=None):
    """Gaussian examples with zeros and empty rows; labels of a linear rule, one in ten random.

    There are `n` of them, or N_ROUNDS.
    """
    n = N_ROUNDS if n is None else n
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[rng.random(n) < 0.02] = 0.0
    y = np.argmax(X @ rng.normal(size=(d, K)), axis=1)
    noisy = rng.random(n) < 0.1
    return X, np.where(noisy, rng.integers(K, size=n), y)


def one_hot(K, seed=0, d=5):
    """One feature a row, or none: scores are single products, so ties are exact ties."""
    rng = np.random.default_rng(seed)
    feature = rng.integers(d + 1, size=N_ROUNDS)
    X = np.eye(d + 1)[feature][:, :d]
    return X, np.where(rng.random(N_ROUNDS) < 0.7, feature % K, rng.integers(K, size=N_ROUNDS))


def unit(stream):
    """The same stream with rows of unit length, for learners that need it."""

    def scaled(K, seed=0, d=5):
        X, y = stream(K, seed, d)
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300), y

    scaled.__name__ = f"unit_{stream.__name__}"
    return scaled


def repeated(X):
    """A CSR copy with every value stored as two halves and the features out of order."""
    return not_canonical(sp.csr_array(X))


def every_stream(*streams):
    """Parametrise a test over K, kinds of examples and their storage.

    Each K and each storage comes with one of the others; all others are slow.
    """
    usual = {(2, sp.csr_array), (3, np.asarray), (9, repeated)}
    cases = [
        pytest.param(
            *(K, stream, storage),
            marks=[] if (K, storage) in usual else [pytest.mark.slow],
            id=f"{K}-{stream.__name__}-{storage.__name__}",
        )
        for stream in streams
        for K in (2, 3, 9)
        for storage in (np.asarray, sp.csr_array, repeated)
    ]
    return pytest.mark.parametrize(("K", "stream", "storage"), cases)


def grades(y, seed=0):
    """Rewards for the right label and for wrong ones, in each round; a third of them are bits."""
    rng = np.random.default_rng(seed)
    right, wrong = rng.uniform(0.4, 1.0, y.size), rng.uniform(0.0, 0.6, y.size)
    is_bit = rng.random(y.size) < 0.3
    return np.column_stack([np.where(is_bit, 1.0, right), np.where(is_bit, 0.0, wrong)])


def assert_same_path(
    learner,
    reference,
    X,
    y,
    storage=np.asarray,
    every_round=None,
    quadrature=TOLERANCE,
    rewards=None,
):
    """Play the rows with both; the distributions of every round and the last weights agree.

    The learner draws the labels; the reference is told which. `every_round(reference, label,
    truth)` may look at the reference after each round. `quadrature` is the error allowed in
    probabilities that are integrals. With `rewards`, as `grades` makes them, these are the feedback
    in place of bits.
    """
    K = int(y.max()) + 1
    learner.set_params(classes=range(K))
    stored = storage(X)
    found, expected = [], []
    for t, truth in enumerate(y):
        row = stored[[t]]
        p = reference.policy(X[t])
        decision = learner.decide(row if sp.issparse(row) else row[0])
        label = int(decision.label)
        found += [decision.probability, *learner.policy(decision.x)[0]]
        expected += [p[label], *p]
        if learner.feedback == "full":
            learner.learn(decision, truth=truth)
            reference.learn(X[t], label, p, truth)
        elif rewards is not None:
            reward = rewards[t, int(label != truth)]
            learner.learn(decision, reward=reward)
            reference.learn(X[t], label, p, reward)
        else:
            learner.learn(decision, correct=label == truth)
            reference.learn(X[t], label, p, label == truth)
        if every_round is not None:
            every_round(reference, label, truth)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=quadrature)
    if hasattr(learner._run.state, "W") or hasattr(learner, "coef_"):
        np.testing.assert_allclose(learner.coef_, reference.W, rtol=TOLERANCE, atol=TOLERANCE)


def assert_same_probabilities(learner, reference, X, y, storage=np.asarray, every_round=None):
    """Tell both the labels; their probabilities in every round and the last weights agree.

    Of classes never told apart, which are tied for ever in exact arithmetic, rounding says which is
    the greedy one. `every_round()` may look at both after each round.
    """
    K = int(y.max()) + 1
    learner.set_params(classes=range(K))
    stored = storage(X)
    found, expected = [], []
    for t, truth in enumerate(y):
        row = stored[[t]]
        decision = learner.decide(row if sp.issparse(row) else row[0])
        p = reference.probabilities(X[t])
        found.append(learner.predict_proba(decision.x)[0])
        expected.append(p)
        assert p[decision.label] >= p.max() - TOLERANCE
        learner.learn(decision, truth=truth)
        reference.learn(X[t], truth)
        if every_round is not None:
            every_round()
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(learner.predict_proba(stored[-1:])[0], softmax(reference.W @ X[-1]))
    np.testing.assert_allclose(learner.coef_, reference.W, rtol=TOLERANCE, atol=TOLERANCE)
