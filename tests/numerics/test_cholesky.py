import numpy as np

from onebit.numerics.cholesky import backward, factor, forward, forward_rows


def test_factors_solve():
    rng = np.random.default_rng(0)
    V = rng.normal(size=(6, 3))
    M = np.eye(6) + V @ V.T
    F, b, B = M.copy(), rng.normal(size=6), rng.normal(size=(6, 4))
    factor(F)
    F = np.tril(F)
    np.testing.assert_allclose(F @ F.T, M, atol=1e-14)
    x, Y = b.copy(), B.copy()
    forward(F, x)
    backward(F, x)
    np.testing.assert_allclose(M @ x, b, atol=1e-13)
    forward_rows(F, Y)
    np.testing.assert_allclose(F @ Y, B, atol=1e-13)
    below = np.diag([1.0 - 1e-3, 1.0])  # what rounding may do to the identity
    factor(below)
    np.testing.assert_array_equal(below, np.eye(2))
