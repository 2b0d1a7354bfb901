"""The bake-off's test of significance."""

import math

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

from onebit.lab.significance import significance, z_statistic


def test_z_is_the_difference_over_its_standard_error():
    p, q, n = 0.1, 0.13, 1_000
    expected = (q - p) / math.sqrt(p * (1 - p) / n + q * (1 - q) / n)
    assert z_statistic(100, 130, n) == pytest.approx(expected)
    assert z_statistic(130, 100, n) == pytest.approx(-expected)


def test_wins_are_one_sided_at_five_percent():
    n = 1_000
    least = next(m for m in range(200, 400) if z_statistic(200, m, n) > norm.ppf(0.95))
    assert (
        1 - norm.cdf(z_statistic(200, least, n))
        < 0.05
        < 1 - norm.cdf(z_statistic(200, least - 1, n))
    )
    found = significance([200, 200, least, 200], [least, least - 1, 200, 200], n)
    assert found.tolist() == [1, 0, -1, 0]


def test_rounds_may_differ_by_table():
    assert significance([10, 1_000], [20, 2_000], [100, 10_000]).tolist() == [1, 1]
    assert significance([10, 1_000], [15, 1_500], [100, 10_000]).tolist() == [0, 1]


def test_errors_of_none_and_all_need_no_variance():
    assert significance([0, 5, 0, 5], [5, 0, 0, 5], 5).tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize("p", [0.02, 0.2, 0.5])
def test_equal_tools_win_by_chance_in_a_twentieth_of_independent_runs(p):
    rng = np.random.default_rng(0)
    ours, theirs = rng.binomial(2_000, p, size=(2, 40_000))
    found = significance(ours, theirs, 2_000)
    for verdict in (1, -1):  # binomial counts are discrete, and their variance is estimated
        assert np.mean(found == verdict) == pytest.approx(0.05, abs=0.006)


def test_tools_that_fail_together_win_less_often_by_chance():
    rng = np.random.default_rng(0)
    both = rng.binomial(2_000, 0.15, size=20_000)
    ours, theirs = both + rng.binomial(2_000, 0.05, size=(2, 20_000))
    assert np.mean(significance(ours, theirs, 2_000) == 1) < 0.02


def test_scripts_of_the_authors_lack_a_root():
    """As the docstring says: 1 - erf(|z|) < 0.05 is |z| > 1.386, and chance wins in 8.3 %."""
    assert erf(1.386) == pytest.approx(0.95, abs=1e-4)
    assert norm.sf(1.386) == pytest.approx(0.083, abs=1e-3)
    assert norm.cdf(0.7) == pytest.approx((1 + erf(0.7 / math.sqrt(2))) / 2)
    ours, theirs, n = 200, 227, 1_000  # between the two thresholds
    assert 1.386 < z_statistic(ours, theirs, n) < norm.ppf(0.95)
    assert significance(ours, theirs, n) == 0
