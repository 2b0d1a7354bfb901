"""What tests share: streams to play, the generator that draws, and what must be finite."""

import numpy as np

from onebit.core.storage import arrays_of


def numpy_generator(rng):
    """NumPy's own generator in the state of a learner's."""
    bits = np.random.SFC64()
    bits.state = {**bits.state, "state": {"state": rng.copy()}}
    return np.random.Generator(bits)


def unit_rows(rng, n, d):
    """Unit examples in all directions."""
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def logistic_labels(rng, Z):
    """Labels of a logistic model with scores Z."""
    return np.argmax(Z + rng.gumbel(size=Z.shape), axis=1)


def logistic(n, d, K, strength, seed=0, rows=unit_rows):
    """Examples, and labels of a logistic model whose weights are about `strength`."""
    rng = np.random.default_rng(seed)
    X = rows(rng, n, d)
    return X, logistic_labels(rng, strength * X @ rng.normal(size=(d, K)))


def assert_finite(learner, X=None):
    """All that a learner holds is finite, and so is what it says of the rows of X."""
    for name, value in arrays_of(learner._run.state):
        assert np.isfinite(value).all(), name
    if hasattr(learner, "coef_"):
        assert np.isfinite(learner.coef_).all()
    if X is not None:
        assert np.isfinite(learner.scores(X)).all()
        p = learner.policy(X)
        assert (p >= 0.0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-9)
