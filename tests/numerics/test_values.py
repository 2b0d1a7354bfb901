"""The probability that each label has the highest value, by literal integrals and simulations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from onebit.numerics.values import linear_policy, valued_policy, widened_by_value
from onebit.numerics.winning import ROOM, winning_probabilities


def policy(m, d, w, c, offer=None, logistic=False):
    m, d, w, c = (np.array(a, dtype=float) for a in (m, d, w, c))
    p = np.full(m.size, np.nan)
    on = np.arange(m.size) if offer is None else np.array(offer)
    return p, valued_policy(m, d, w, c, on, p, logistic=logistic)


def values(t, w, c, logistic):
    P = 1.0 / (1.0 + np.exp(-t)) if logistic else np.exp(np.minimum(t, 0.0))
    return w * P - c


def simulated(m, d, w, c, logistic, n, seed=0):
    """Return how often each label has the highest value; of equal ones the larger draw has it."""
    t = m + d * np.random.default_rng(seed).normal(size=(n, m.size))
    V = values(t, w, c, logistic)
    first = V.max(axis=1, keepdims=True) - 1e-12 <= V
    return np.bincount(np.where(first, t, -np.inf).argmax(axis=1), minlength=m.size) / n


def integrated(m, d, w, c, logistic, n=200_001):
    """Return the integral of each label's density times the others' distribution functions."""
    z = np.linspace(-8.0, 8.0, n)
    p = np.empty(m.size)
    for k in range(m.size):
        v, product = values(m[k] + d[k] * z, w[k], c[k], logistic), norm.pdf(z)
        for j in set(range(m.size)) - {k}:
            with np.errstate(divide="ignore", invalid="ignore"):
                P = (v + c[j]) / w[j]
                t = np.log(P) - np.log1p(-P) if logistic else np.log(P)
            t = np.where(P <= 0.0, -np.inf, np.where(P >= 1.0, np.inf, t))
            product = product * norm.cdf((t - m[j]) / d[j])
        p[k] = np.trapezoid(product, z)
    return p


def problem(seed, K=None):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 8)) if K is None else K
    logistic = bool(rng.integers(2))
    m = 2.0 * rng.normal(size=K)
    if not logistic:
        m -= np.log(np.exp(m).sum())
    d = np.exp(rng.normal(size=K) - 1.0)
    w = np.exp(0.7 * rng.normal(size=K))
    return m, d, w, rng.random(K) * rng.choice([0.1, 1.0]), logistic


@pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 40))]
)
def test_probabilities_are_the_literal_integral(seed):
    *arguments, logistic = problem(seed)
    p, best = policy(*arguments, logistic=logistic)
    # Where a probability is cut off at one, the literal integrand jumps.
    np.testing.assert_allclose(p, integrated(*arguments, logistic), atol=1e-7 if logistic else 2e-5)
    m, _, w, c = arguments
    assert best == values(m, w, c, logistic).argmax()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("equal", [True, False])
def test_probabilities_are_those_of_a_simulation(seed, equal):
    m, d, w, c, logistic = problem(100 + seed)
    if equal:  # several labels have the same highest value, and some are likely to reach it
        w, c, d = np.ones(m.size), np.where(np.arange(m.size) % 2, 0.2, 0.0), 3.0 * d
    p, _ = policy(m, d, w, c, logistic=logistic)
    np.testing.assert_allclose(p, simulated(m, d, w, c, logistic, 200_000, seed), atol=5e-3)


def test_of_equal_worth_and_cost_the_highest_draw_wins():
    """Also where draws exceed the largest probability, and differ in no value."""
    m, d = np.log([0.6, 0.3, 0.08, 0.02]), np.array([0.3, 1.5, 2.0, 3.0])
    expected = np.empty(4)
    winning_probabilities(m, d, expected, np.empty((ROOM, 4)))
    for w, c in ((1.0, 0.0), (2.5, 0.7)):
        p, best = policy(m, d, np.full(4, w), np.full(4, c))
        np.testing.assert_allclose(p, expected, atol=2e-7)
        assert best == 0


def test_a_label_that_cannot_pay_is_not_tried():
    """However little is known of it: at best it is worth less than another is for sure."""
    p, best = policy(np.log([0.9, 0.1]), [0.01, 3.0], [1.0, 1.0], [0.0, 0.5])
    assert p.tolist() == [1.0, 0.0]
    assert best == 0


def test_known_values_and_labels_worth_nothing():
    m = np.log([0.5, 0.3, 0.2])
    p, best = policy(m, [0.0, 0.0, 0.0], [1.0, 2.0, 1.0], [0.0, 0.0, 0.0])
    assert p.tolist() == [0.0, 1.0, 0.0]
    assert best == 1
    p, best = policy(m, [0.3, 0.3, 0.3], [0.0, 1.0, 0.0], [-0.3, 0.0, 1.0])
    assert best == 0
    assert p[0] == pytest.approx(0.5, abs=1e-7)  # against the median of the second
    assert p[2] == 0.0
    p, best = policy(m, [0.3, 0.3, 0.3], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert p.tolist() == [0.0, 1.0, 0.0]


def test_labels_not_on_offer_have_no_part():
    m, d = np.log([0.5, 0.3, 0.2]), np.full(3, 0.5)
    p, best = policy(m, d, [5.0, 1.0, 1.0], [0.0, 0.0, 0.1], offer=[1, 2])
    assert p[0] == 0.0
    assert best == 1
    alone, _ = policy(m[1:], d[1:], [1.0, 1.0], [0.0, 0.1])
    np.testing.assert_array_equal(p[1:], alone)


def test_values_of_many_labels_as_a_simulation():
    K = 300
    rng = np.random.default_rng(0)
    m = rng.normal(size=K)
    m -= np.log(np.exp(m).sum())
    d, w, c = rng.uniform(0.5, 2.0, size=K), np.ones(K), 0.001 * rng.random(K)
    p, _ = policy(m, d, w, c)
    np.testing.assert_allclose(p, simulated(m, d, w, c, False, 20_000), atol=0.02)
    assert np.abs(p - simulated(m, d, w, c, False, 20_000)).sum() < 0.12


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-300, 0),
            st.one_of(st.just(0.0), st.floats(1e-12, 50)),
            st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
            st.floats(-1e6, 1e6),
        ),
        min_size=2,
        max_size=6,
    ),
    st.booleans(),
)
def test_any_values_give_a_distribution(rows, logistic):
    p, best = policy(*zip(*rows, strict=True), logistic=logistic)
    assert (p >= 0.0).all()
    assert math.isclose(p.sum(), 1.0, abs_tol=1e-12)
    assert 0 <= best < len(rows)


def test_linear_values_are_normal():
    m, d = np.array([0.5, 0.3]), np.array([0.1, 0.4])
    w, c = np.array([1.0, 2.0]), np.array([0.0, 0.2])
    p = np.empty(2)
    assert linear_policy(w * m - c, w * d, np.arange(2), p) == 0
    expected = norm.cdf((0.5 - 0.4) / math.hypot(0.1, 0.8))
    np.testing.assert_allclose(p, [expected, 1.0 - expected], atol=1e-7)


def test_draws_are_wider_where_a_label_that_is_not_known_may_bring_more():
    means, deviations = np.array([2.0, 0.0, 0.0, 0.0]), np.array([0.1, 0.1, 0.4, 0.4])
    worth, cost = np.ones(4), np.array([0.3, 0.0, 0.0, 0.6])
    offer = np.arange(4)
    found = widened_by_value(means, deviations, 0.25, worth, cost, offer)
    best = 1 / (1 + np.exp(-2.0)) - 0.3
    assert found[:2].tolist() == [0.1, 0.1]  # the best, and one that is known as well
    nu = 0.25 + 0.75 * (1.0 - best) * (1.0 - 0.1**2 / 0.4**2)
    assert found[2] == pytest.approx(0.4 / 0.25 * nu)
    assert found[3] == 0.4  # it could bring 0.4 at most
    assert best > 0.4
    assert widened_by_value(means, deviations, 1.0, worth, cost, offer) is deviations
    assert widened_by_value(means, deviations, 0.0, worth, cost, offer) is deviations
    without_best = widened_by_value(means, deviations, 0.25, worth, cost, offer[1:])
    assert without_best[3] == 0.4
    assert without_best[2] > found[2] * 0.9
