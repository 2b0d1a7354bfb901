import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.numerics.softmax import covariance_root, softmax


@settings(deadline=None)
@given(st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=8), st.floats(0, 100))
def test_softmax_is_a_distribution(scores, inverse_temperature):
    p = np.empty(len(scores))
    softmax(np.array(scores), inverse_temperature, p)
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1)
    exact = inverse_temperature * (np.array(scores) - max(scores))
    np.testing.assert_allclose(p, np.exp(exact) / np.exp(exact).sum(), rtol=1e-9)


@settings(max_examples=50, deadline=None)
@given(K=st.integers(2, 20), seed=st.integers(0, 2**32 - 1), spread=st.floats(0, 500))
def test_covariance_root_times_its_transpose_is_the_covariance(K, seed, spread):
    rng = np.random.default_rng(seed)
    scores = spread * rng.normal(size=K)
    if K > 2:
        scores[rng.integers(K)] = -np.inf
    p = scipy.special.softmax(scores)
    L = np.empty((K, K - 1))
    covariance_root(p, L)
    np.testing.assert_allclose(L @ L.T, np.diag(p) - np.outer(p, p), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(L, np.tril(L))
