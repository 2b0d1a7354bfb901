"""The probability that each of several normal draws is the largest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from onebit.numerics.winning import (
    _N_NODES,
    _STORED,
    ROOM,
    _fill_hazards,
    _merge_similar,
    tables,
    winning_probabilities,
)

PROMISE = 1e-7


def probabilities(means, deviations):
    means, deviations = np.array(means, dtype=float), np.array(deviations, dtype=float)
    p = np.empty(means.size)
    winning_probabilities(means, deviations, p, np.empty((ROOM, means.size)))
    return p


def exact(means, deviations, counts):
    """The probability of one draw of each kind, of which there are `counts`: fine quadrature."""
    means, deviations, counts = (np.asarray(v, dtype=float) for v in (means, deviations, counts))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    cuts = np.unique(means[:, None] + deviations[:, None] * np.linspace(-10.0, 10.0, 201))
    cuts = cuts[cuts >= (means - 10.0 * deviations).max()]
    half = (cuts[1:, None] - cuts[:-1, None]) / 2.0
    u = cuts[:-1, None] + half * (1.0 + nodes)
    z = (u[..., None] - means) / deviations
    others = (counts * log_ndtr(z)).sum(axis=-1, keepdims=True) - log_ndtr(z)
    p = ((half * weights)[..., None] * norm.pdf(z) / deviations * np.exp(others)).sum(axis=(0, 1))
    assert counts @ p == pytest.approx(1.0, abs=1e-10)
    return p


def assert_right(means, deviations, counts):
    counts = np.asarray(counts)
    p = probabilities(np.repeat(means, counts), np.repeat(deviations, counts))
    assert p.sum() == pytest.approx(1.0, abs=1e-10)
    first = np.cumsum(counts) - counts
    np.testing.assert_allclose(p[first], exact(means, deviations, counts), rtol=0, atol=PROMISE)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-8, 8), st.floats(-5, 3).map(np.exp), st.integers(1, 5)),
        min_size=2,
        max_size=8,
    )
)
def test_a_few_draws_win_as_often_as_the_integral_says(kinds):
    assert_right(*zip(*kinds, strict=True))


@pytest.mark.parametrize("n", [20, 49, 99, 149, 299, 999, 2_999, 9_999, 99_999])
def test_one_wide_draw_among_many_narrow_ones(n):
    for mean, width in [
        (0.0, 0.9),
        (0.5, 0.7),
        (-4.0, 0.35),
        (-2.0, 0.5),
        (0.0, 0.35),
        (0.2, 1e-3),
    ]:
        assert_right([mean, 0.0], [1.0, width], [1, n])


def test_nearly_equal_draws_are_gathered_at_nodes():
    """Without it, each would take as long as a node: the result is the same."""
    n, few = 1_000, 30
    rng = np.random.default_rng(0)
    room = np.zeros((ROOM, n))
    room[0], room[1], room[4], room[6] = (
        0.01 * rng.random(n),
        1.0 - 0.001 * rng.random(n),
        range(n),
        1,
    )
    room[1, :few] = 0.1 + 0.01 * np.arange(few)
    left, gathered = _merge_similar.py_func(room, n)
    assert gathered == n - few
    assert left == few + _N_NODES
    assert room[6, :_N_NODES].sum() == pytest.approx(n - few)
    np.testing.assert_array_equal(room[4, _N_NODES:left], range(few))
    assert _merge_similar.py_func(room, 5) == (5, 0)


@pytest.mark.parametrize("K", [150, 1_000, 10_000])
@pytest.mark.parametrize("seed", range(2))
def test_many_draws_of_several_kinds(K, seed):
    rng = np.random.default_rng(seed)
    counts = 1 + rng.multinomial(K - 6, rng.dirichlet(np.full(6, 0.5)))
    assert_right(rng.normal(size=6), np.exp(1.5 * rng.normal(size=6)), counts)


def exact_of_all(means, deviations):
    """The same for draws that all differ: the trapezoidal rule, with small steps."""
    lowest, highest = (means - 9.0 * deviations).max(), (means + 9.0 * deviations).max()
    step = 0.04 * deviations.min()
    z = (np.arange(lowest, highest, step)[:, None] - means) / deviations
    below = log_ndtr(z)
    others = below.sum(axis=1, keepdims=True) - below
    p = step * (norm.pdf(z) / deviations * np.exp(others)).sum(axis=0)
    assert p.sum() == pytest.approx(1.0, abs=1e-10)
    return p


@pytest.mark.parametrize(
    ("K", "share", "spread"),
    [
        pytest.param(
            K, share, spread, marks=[pytest.mark.slow] if K > 130 and spread != 0.3 else []
        )
        for K in (130, 1_000)
        for share in (0.0, 0.001, 0.006, 0.1)
        for spread in (0.01, 0.3, 1.0, 4.0)
    ],
)
def test_many_draws_that_are_nearly_alike(K, share, spread):
    """Some are equal, a few far from the others; widths are within a share of each other."""
    rng = np.random.default_rng(K)
    means, deviations = -spread * rng.exponential(size=K), 1.2 * (1 - share * rng.random(K) ** 3)
    means[: K // 3], deviations[: K // 3] = 0.0, 1.2
    means[:3], deviations[5:9] = [0.5, 1.5, 3.0], [0.1, 0.7, 1.0, 1.5]
    expected = exact_of_all(means, deviations)
    np.testing.assert_allclose(probabilities(means, deviations), expected, rtol=0, atol=PROMISE)


@pytest.mark.parametrize("n", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("K", [2, 3, 9, 150])
def test_probabilities_are_the_frequencies_of_draws(K, n):
    rng = np.random.default_rng(K)
    means, deviations = rng.normal(size=K), np.exp(rng.normal(size=K) - 0.5)
    p = probabilities(means, deviations)
    n //= 10 if K > 100 else 1
    counts = np.zeros(K)
    for _ in range(n // 20_000):
        draws = means + deviations * rng.standard_normal((20_000, K))
        counts += np.bincount(np.argmax(draws, axis=1), minlength=K)
    z = (counts - n * p) / np.sqrt(n * p * (1 - p) + 1.0)
    assert abs(z).max() < 5.0


def test_equal_draws_win_equally_often_and_certain_ones_always():
    np.testing.assert_allclose(probabilities(np.zeros(150), np.full(150, 0.3)), 1 / 150)
    np.testing.assert_array_equal(probabilities([0.0, 5.0, 1.0], [0.1, 0.1, 0.1]), [0, 1, 0])
    np.testing.assert_array_equal(probabilities([1.0, 1.0], [0.0, 0.0]), [1, 0])
    two = probabilities([0.3, 0.0], [0.4, 1e-3])
    assert two[0] == pytest.approx(norm.cdf(0.3 / np.hypot(0.4, 1e-3)), abs=PROMISE)


def test_draws_without_deviation_are_their_means():
    """The largest of them wins if all others are below it, and is a bound for them if not."""
    p = probabilities([0.5, 0.2, 0.5, 0.0, 9.0, -1.0], [0.0, 0.0, 0.0, 1.0, 1e-5, 1e-320])
    np.testing.assert_array_equal(p, [0, 0, 0, 0, 1, 0])
    p = probabilities([0.5, 0.2, 0.5, 0.0, -1.0, 0.1], [0.0, 0.0, 0.0, 1.0, 2.0, 1e-320])
    below = ndtr(0.5) * ndtr(0.75)
    assert p[0] == pytest.approx(below, abs=PROMISE)
    np.testing.assert_array_equal(p[[1, 2, 5]], 0.0)
    # As a draw far narrower than all others.
    narrow = exact([0.5, 0.0, -1.0], [1e-9, 1.0, 2.0], [1, 1, 1])
    np.testing.assert_allclose(p[[0, 3, 4]], narrow, rtol=0, atol=PROMISE)


@pytest.mark.parametrize("size", [1e-290, 1e-30, 1e-17, 5e-16, 1.0, 1e17, 1e30, 1e290])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1.0])
def test_only_the_relation_of_gaps_and_deviations_matters(size, offset):
    """Gaps that an offset leaves exact, at any scale."""
    if offset and size < 1.0:
        means, deviations = np.full(4, offset), size * np.array([1.0, 2.0, 0.5, 1e-4])
    else:
        means, deviations = size * np.array([0.5, 0.0, 1.0, 0.25]), size * np.ones(4)
        means += offset * size
    expected = exact((means - means[0]) / size, deviations / size, np.ones(4))
    np.testing.assert_allclose(probabilities(means, deviations), expected, rtol=0, atol=PROMISE)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e300, 1e300) | st.floats(-1, 1) | st.sampled_from([0.0, 1.0]),
            st.floats(0, 1e300) | st.floats(0, 1) | st.floats(-400, 300).map(lambda e: 10.0**e),
        ),
        min_size=2,
        max_size=30,
    )
)
def test_any_draws_have_a_distribution(draws):
    p = probabilities(*zip(*draws, strict=True))
    assert (p >= 0.0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_table_of_the_normal_law():
    z = np.linspace(-10.9, 9.0, 2001)
    hazards, gaps, scales, counts = np.empty(1), np.zeros(1), np.full(1, 32.0), np.ones(1)
    below = [_fill_hazards(t, gaps, scales, counts, 1, hazards) for t in z]
    np.testing.assert_allclose(below, log_ndtr(z), rtol=0, atol=1e-9)
    found = []
    for t in z:
        _fill_hazards(t, gaps, scales, counts, 1, hazards)
        found.append(hazards[0])
    np.testing.assert_allclose(found, np.exp(norm.logpdf(z) - log_ndtr(z)), rtol=0, atol=1e-9)


def test_tables_on_disk_are_those_that_are_computed():
    computed = tables()
    assert computed.keys() == _STORED.keys()
    for name, array in computed.items():
        np.testing.assert_allclose(_STORED[name], array, rtol=1e-7, atol=1e-12, err_msg=name)
