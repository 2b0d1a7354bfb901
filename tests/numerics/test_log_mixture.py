"""Means of softmax distributions, in logarithms."""

import math

import numpy as np
import pytest

from onebit.numerics.mixture import log_mixture, log_sum, smooth


@pytest.mark.parametrize("mu", [0.0, 1e-9, 0.2, 0.75])
def test_smoothing_mixes_with_the_uniform_distribution(mu):
    p = np.array([0.7, 0.2, 0.1])
    scores = np.log(p)
    smooth.py_func(scores, mu)
    assert np.exp(scores) == pytest.approx((1.0 - mu) * p + mu / 3.0, rel=1e-14)


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 0.5])
def test_a_smoothed_probability_is_positive_even_where_it_underflows(mu):
    scores = np.array([-1e6, 0.0])
    smooth.py_func(scores, mu)
    assert scores[0] == pytest.approx(math.log(mu) - math.log(2.0))
    assert scores[1] == pytest.approx(math.log1p(-mu / 2.0), abs=1e-15)


def test_a_mixture_is_the_weighted_mean_of_the_softmax_of_its_rows():
    Z, weights = np.array([[0.0, 1.0, -2.0], [3.0, 0.5, 0.0]]), np.array([0.25, 0.75])
    scores = np.empty(3)
    log_mixture.py_func(Z, np.log(weights), scores)
    softmax = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    assert np.exp(scores) == pytest.approx(weights @ softmax, rel=1e-14)


def test_a_mixture_is_finite_where_all_its_rows_underflow():
    scores = np.empty(2)
    log_mixture.py_func(np.array([[0.0, 2e4], [0.0, 1e4]]), np.log([0.5, 0.5]), scores)
    assert scores == pytest.approx([-1e4 + math.log(0.5), 0.0])
    assert log_sum.py_func(np.array([1e4, 1e4])) == pytest.approx(1e4 + math.log(2.0))
