"""The exponential of numbers that are not positive, which softmax and the logistic function need.

exp(x) = 2^n exp(r), where n is the integer nearest to x / ln 2, and r = x - n ln 2 is at most
(ln 2) / 2 in size: there, fourteen terms of the series are right up to rounding. The system's
function takes one number at a time, and its last bits differ between systems. This one is inlined,
so that a loop over labels computes several at once, and it is the same everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from onebit.core.compiling import lean_kernel

_LEAST = -708.0
"""Below, where floats have fewer digits, the exponential is zero."""

_PER_LN_2 = 1.0 / math.log(2.0)
_LN_2, _REST_OF_LN_2 = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 to 33 bits, so that its products with n are exact, and what is missing."""

_TO_INTEGER = 1.5 * 2.0**52
"""A number of moderate size, added to this, is rounded to an integer, which its last bits hold."""

_BIAS, _FRACTION = 1023, 52
"""The bits of 2^n are those of n + _BIAS, followed by as many zeros as a fraction has bits."""

_C = tuple(1.0 / math.factorial(i) for i in range(14))


@lean_kernel
def exponential(x):
    """Return exp(x) for x <= 0, to two units in the last place; zero below -708."""
    is_small = x < _LEAST
    x = _LEAST if is_small else x
    rounded = x * _PER_LN_2 + _TO_INTEGER
    n = rounded - _TO_INTEGER
    bits = (np.float64(rounded).view(np.int64) + _BIAS) << _FRACTION
    power = np.int64(bits).view(np.float64)
    r = (x - n * _LN_2) - n * _REST_OF_LN_2
    # In pairs, and pairs of pairs: sums that wait for each other would take longer.
    r2 = r * r
    r4 = r2 * r2
    first = (_C[0] + r * _C[1]) + r2 * (_C[2] + r * _C[3])
    second = (_C[4] + r * _C[5]) + r2 * (_C[6] + r * _C[7])
    third = (_C[8] + r * _C[9]) + r2 * (_C[10] + r * _C[11])
    last = _C[12] + r * _C[13]
    return 0.0 if is_small else power * (first + r4 * (second + r4 * (third + r4 * last)))
