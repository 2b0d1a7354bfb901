import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import softmax

from onebit.numerics.fixed_point import (
    binary_fixed_point,
    fixed_point,
    lookahead_fixed_point,
)


@numba.njit
def solve_all(A, g, z, p, steps):
    for i in range(steps.size):
        steps[i] = fixed_point(A[i], g[i], z[i], p[i])


def problems(rng, n, K, largest):
    """Matrices of any rank, with eigenvalues over six powers of ten, and some diagonals in g."""
    rank = rng.integers(1, K + 1)
    V = rng.normal(size=(n, K, rank)) * 10 ** rng.uniform(-3, 0, size=(n, 1, rank))
    A = V @ V.transpose(0, 2, 1)
    A *= (largest * 10 ** rng.uniform(-3, 0, size=n) / np.linalg.norm(A, axis=(1, 2)))[
        :, None, None
    ]
    g = rng.normal(size=(n, K)) * 10 ** rng.uniform(-1, 2, size=(n, 1))
    g[::2] += np.einsum("nkk->nk", A)[::2] / 2
    A[::17] = 0.0
    return A, g


def solved(A, g):
    z, p, steps = np.empty_like(g), np.empty_like(g), np.empty(len(g), dtype=np.int64)
    solve_all(A, g, z, p, steps)
    return z, p, steps


@pytest.mark.parametrize(
    ("sizes", "n"),
    [
        ((2, 3, 5, 9, 20, 50), 200),
        pytest.param(range(2, 51), 2_050, marks=pytest.mark.slow),  # a hundred thousand
    ],
    ids=["some", "many"],
)
def test_a_dozen_steps_solve_any_problem(sizes, n):
    rng = np.random.default_rng(0)
    most = 0
    for K in sizes:
        A, g = problems(rng, n, K, 100.0)
        z, p, steps = solved(A, g)
        off = np.abs(z - g + np.einsum("nkl,nl->nk", A, p)).max(axis=1)
        assert (off <= 1e-11 * (1 + np.abs(z).max(axis=1))).all()  # never NaN either
        np.testing.assert_allclose(p, softmax(z, axis=1), rtol=1e-12)
        most = max(most, int(steps.max()))
    assert most <= 12


@pytest.mark.slow
def test_a_few_iterations_look_ahead():
    """As FOLKLORE asks: c = 1 / (2 B R + ln(K - 1) + 2), and T is at most B R / 2.

    Every day, the path of FOLKLORE's reference tests the solution.
    """
    rng, most, moved = np.random.default_rng(0), 0, 0.0
    for _ in range(3_000):
        K, BR = rng.choice([2, 3, 5, 9]), 10 ** rng.uniform(-1, 2.5)
        c = 1 / (2 * BR + np.log(K - 1) + 2)
        Q, _ = np.linalg.qr(rng.normal(size=(K, K)))
        T = (Q * (BR / 2 * 10 ** -rng.uniform(0, 4 * rng.integers(2), size=K))) @ Q.T
        g = rng.normal(size=K) * 10 ** rng.uniform(-1, np.log10(BR + 1))
        z, p = np.empty(K), np.empty(K)
        most = max(most, lookahead_fixed_point(T / 2, g, c, z, p))
        S = np.diag(softmax(z)) - np.outer(softmax(z), softmax(z))
        after = np.diag(T @ np.linalg.inv(np.eye(K) + c * S @ T))
        u = (np.eye(K) + c * T @ S) @ after / 4
        off = np.abs(z - g + T @ softmax(z) / 2 - u).max()
        assert off <= 1e-10 * (1 + np.abs(z).max())
        moved = max(moved, np.abs(u - np.diag(T) / 4).max())
    assert most <= 16
    assert moved > 0.1


def test_plain_iteration_would_not_do():
    A, g = 10 * np.eye(2), np.array([0.5, 0.0])
    z = g
    for _ in range(1_000):
        z = g - A @ softmax(z)
    assert np.abs(z - g + A @ softmax(z)).max() > 5
    z, p, _ = solved(A[None], g[None])
    assert np.abs(z[0] - g + A @ p[0]).max() < 1e-11


def test_is_the_minimiser_over_the_distributions():
    rng = np.random.default_rng(1)
    A, g = problems(rng, 200, 5, 30.0)
    _, p, _ = solved(A, g)

    def value(q):
        entropy = np.sum(q * np.log(np.maximum(q, 1e-300)), axis=1)
        return np.einsum("nk,nkl,nl->n", q, A, q) / 2 - np.sum(g * q, axis=1) + entropy

    for _ in range(50):
        away = rng.dirichlet(np.ones(5), size=200)
        for share in (1e-3, 0.1, 1.0):
            q = (1 - share) * p + share * away
            assert (value(q) >= value(p) - 1e-10).all()


@pytest.mark.parametrize("largest", [1e4, 1e8, 1e100])
def test_never_a_nan(largest):
    rng = np.random.default_rng(2)
    for K in (2, 3, 10):
        A, g = problems(rng, 200, K, largest)
        z, p, _ = solved(A, g)
        assert np.isfinite(z).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


@settings(max_examples=100, deadline=None)
@given(m=st.floats(-1e3, 1e3), a=st.floats(0, 1e6))
# Newton's method from m would go to and fro between two points for ever.
@example(m=13.726264394804833, a=16.98568056472404)
@example(m=-40.0, a=50.0)
def test_binary_fixed_point_solves_its_equation(m, a):
    u = binary_fixed_point(m, a)
    assert m - a <= u <= m + a
    if a > 0:
        expected = brentq(lambda u: u - m + a * np.tanh(u / 2), m - a - 1, m + a + 1)
        assert u == pytest.approx(expected, rel=1e-9, abs=1e-10)
    pair, p = np.empty(2), np.empty(2)
    if a <= 100:  # the same with two classes: A = [[a, -a], [-a, a]] / 2
        A = a / 2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
        fixed_point(A, np.array([0.0, m]), pair, p)
        assert pair[1] - pair[0] == pytest.approx(u, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("a", [1e-3, 1.0, 10.0, 40.0, 300.0, 1e5, 1e30])
def test_binary_fixed_point_of_all_sizes(a):
    for share in np.linspace(-1.3, 1.3, 53):
        m = float(share * a)
        u = binary_fixed_point(m, a)
        assert abs(u - m + a * np.tanh(u / 2)) <= 1e-12 * (1 + abs(m) + a)
        assert u * m > 0 or u == m == 0
