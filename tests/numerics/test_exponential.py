import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from onebit.numerics.exponential import exponential


@njit
def exponentials(x):
    found = np.empty(x.size)
    for i in range(x.size):
        found[i] = exponential(x[i])
    return found


@given(st.floats(-708.0, 0.0))
@example(-708.0)
@example(-0.0)
@example(-5e-324)
@example(-0.5 * math.log(2.0))
def test_it_is_right_to_two_units_in_the_last_place(x):
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(x).exp()
        wrong_by = abs(Decimal(float(exponential.py_func(x))) - exact)
        assert wrong_by <= 2 * Decimal(math.ulp(float(exact)))


def test_several_at_once_are_those_one_by_one():
    x = -np.random.default_rng(0).exponential(30.0, size=10_000)
    np.testing.assert_array_equal(exponentials(x), [exponential.py_func(one) for one in x])


@pytest.mark.parametrize("x", [-708.0000000000001, -1e300, -math.inf])
def test_it_is_zero_far_below(x):
    assert exponential(x) == 0.0


def test_of_zero_it_is_one_and_of_nan_nan():
    assert exponential(0.0) == 1.0
    assert math.isnan(exponential(math.nan))
