import numpy as np
import pytest

from onebit.core.example import INDEX, Example
from onebit.numerics.linear import add_outer, new_scaled, project, weight_norm


def test_scaled_weights_know_their_length():
    rng = np.random.default_rng(0)
    W = new_scaled(7, 3)
    for t in range(2_000):
        x = rng.normal(size=7) * 10.0 ** rng.integers(-6, 3)
        expected = np.asarray(W) + np.outer(x, c := rng.normal(size=3))
        add_outer(W, c, Example(np.arange(7, dtype=INDEX), x, 7), x @ np.asarray(W))
        np.testing.assert_allclose(np.asarray(W), expected, rtol=1e-9, atol=1e-12)
        if t % 3 == 0:
            project(W, 5.0)
            assert np.linalg.norm(np.asarray(W)) <= 5.0 * (1 + 1e-9)
        assert weight_norm(W) == pytest.approx(np.linalg.norm(np.asarray(W)), rel=1e-7, abs=1e-9)
