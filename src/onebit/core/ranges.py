"""Ranges of real parameters in which the arithmetic of all learners is safe.

Numbers from 1e-30 to 1e30, with features and probabilities in similar bounds, have products and
squares that a float can hold.
"""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from onebit.core.example import LARGEST

SMALLEST = 1e-30

POSITIVE = Interval(Real, SMALLEST, LARGEST, closed="both")
NOT_NEGATIVE = Interval(Real, 0, LARGEST, closed="both")
PART = Interval(Real, SMALLEST, 1, closed="both")
"""A fraction, in (0, 1]."""
