import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from onebit.numerics.projection import project_in_norm
from onebit.numerics.second_order import new_inverse, subtract


def problem(n, seed, spread=2.0):
    """A^{-1} with eigenvalues over `spread` powers of ten, its `Inverse`, and a direction."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A_inv = (U * 10.0 ** rng.uniform(-spread, 0, size=n)) @ U.T
    A_inv = (A_inv + A_inv.T) / 2
    inverse = new_inverse(n, 1.0)
    inverse.base[:] = A_inv
    w = rng.normal(size=n)
    return A_inv, inverse, w / np.linalg.norm(w)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_is_what_a_general_optimiser_finds(n, seed):
    A_inv, inverse, w = problem(n, seed)
    A, v, radius = np.linalg.inv(A_inv), 3.0 * w, 0.7
    found = minimize(
        lambda u: (u - v) @ A @ (u - v) / 2,
        radius * w,
        jac=lambda u: A @ (u - v),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda u: radius**2 - u @ u,
            "jac": lambda u: -2.0 * u,
        },
        options={"ftol": 1e-15, "maxiter": 1_000},
    ).x
    projected = v.copy()
    assert project_in_norm(inverse, projected, radius)
    np.testing.assert_allclose(projected, found, atol=1e-5)
    if n > 1:
        assert np.abs(projected - radius * w).max() > 1e-3  # the Euclidean projection is another


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(0.0, 5.0),
    length=st.floats(1.0001, 1e8),
    radius=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_satisfies_the_conditions_of_the_minimiser(n, seed, spread, length, radius):
    """(w - v) + mu A^{-1} w = 0 with one mu > 0, and ||w|| = radius."""
    A_inv, inverse, w = problem(n, seed, spread)
    v = length * radius * w
    projected = v.copy()
    assert project_in_norm(inverse, projected, radius)
    assert np.linalg.norm(projected) == pytest.approx(radius, rel=1e-14)
    moved, normal = v - projected, A_inv @ projected
    mu = moved @ normal / (normal @ normal)
    assert mu > 0
    rest = np.linalg.norm(moved - mu * normal)
    assert rest <= 1e-11 * np.linalg.norm(v)


def test_leaves_what_is_inside_alone():
    _, inverse, w = problem(4, 0)
    for length in (0.0, 0.5, 1.0 - 1e-12):
        inside = length * w
        assert not project_in_norm(inverse, inside, 1.0)
        np.testing.assert_array_equal(inside, length * w)


def test_is_euclidean_for_a_multiple_of_the_identity():
    w = np.arange(5.0)
    projected = w.copy()
    project_in_norm(new_inverse(5, 3.0), projected, 2.0)
    np.testing.assert_allclose(projected, 2.0 * w / np.linalg.norm(w), rtol=1e-15)


def test_counts_what_is_pending():
    A_inv, inverse, w = problem(6, 1)
    u = np.linspace(0.0, 0.1, 6)
    changed = A_inv - 0.5 * np.outer(u, u)
    expected, projected = 4.0 * w, 4.0 * w
    subtract(inverse, u, 0.5)
    assert inverse.n_pending[0] == 1
    project_in_norm(inverse, projected, 1.0)
    fresh = new_inverse(6, 1.0)
    fresh.base[:] = changed
    project_in_norm(fresh, expected, 1.0)
    np.testing.assert_allclose(projected, expected, rtol=1e-12)


def test_takes_few_products_where_the_spectrum_is_simple():
    """With three distinct eigenvalues, three directions hold the solution, whatever n."""
    n = 300
    rng = np.random.default_rng(0)
    U, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = np.repeat([1.0, 0.1, 0.01], n // 3)
    inverse = new_inverse(n, 1.0)
    inverse.base[:] = (U * eigenvalues) @ U.T
    v = rng.normal(size=n)
    projected = v.copy()
    project_in_norm(inverse, projected, 1.0)
    powers = np.column_stack([v, inverse.base @ v, inverse.base @ inverse.base @ v])
    rest = projected - powers @ np.linalg.lstsq(powers, projected, rcond=None)[0]
    assert np.linalg.norm(rest) < 1e-10
