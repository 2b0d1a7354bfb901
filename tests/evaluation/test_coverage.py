"""Coverage of a policy by a log: where each verdict begins."""

import numpy as np
import pytest

from onebit.evaluation.coverage import Coverage


def coverage_of(w, most, mass=1.0):
    """Return the coverage after rows with these weights, largest weights and covered shares."""
    coverage = Coverage()
    w, most, mass = np.broadcast_arrays(np.asarray(w, dtype=float), most, mass)
    coverage.update(w, most, mass)
    return coverage


def first_are(value, some, n):
    """Return n numbers: `some` of them are `value`, and the others are one."""
    return np.where(np.arange(n) < some, value, 1.0)


@pytest.mark.parametrize("n", [100, 1_000, 40_000])
def test_one_row_in_a_hundred_may_be_known_to_be_uncovered(n):
    at_most = n // 100
    assert not coverage_of(np.ones(n), 1.0, first_are(0.0, at_most, n)).is_short
    beyond = coverage_of(np.ones(n), 1.0, first_are(0.0, at_most + 1, n))
    assert beyond.is_short
    assert beyond.covered == pytest.approx(1.0 - (at_most + 1) / n)


def test_rows_whose_labels_may_be_rarer_than_one_in_a_thousand_must_show_their_coverage():
    w = first_are(0.0, 30, 1_000)
    assert coverage_of(w, 1_000.0).covered == 1.0
    assert coverage_of(w, 1_000.1).covered == pytest.approx(0.97)


def test_coverage_is_unknown_if_chance_moves_it_by_a_quarter():
    assert not coverage_of(first_are(1.0 + 24.9 / 3.0, 1, 100), np.inf).is_unknown
    beyond = coverage_of(first_are(1.0 + 25.1 / 3.0, 1, 100), np.inf)
    assert beyond.is_unknown
    assert beyond.is_short


def test_weights_3_and_a_half_deviations_off_refute_the_probabilities():
    n = 10_000  # variances of one: a deviation of the sum is 100
    assert not coverage_of(first_are(0.0, 350, n), 1.0).is_impossible
    assert coverage_of(first_are(0.0, 351, n), 1.0).is_impossible


def test_weights_that_are_never_below_one_refute_the_probabilities():
    assert coverage_of(first_are(2.0, 350, 10_000), np.inf).is_impossible
    assert not coverage_of(np.ones(10_000), np.inf).is_impossible


def test_without_rows_nothing_is_covered():
    nothing = Coverage()
    assert nothing.is_short
    assert np.isnan(nothing.covered)
    assert np.isnan(nothing.mean_weight)
    assert nothing.effective_rows == 0.0


def test_weights_of_zero_cover_nothing():
    assert coverage_of(np.zeros(10), 1.0).is_short
