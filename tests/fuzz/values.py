"""Values at the ends of what is allowed and beyond, for features, probabilities and parameters."""

from __future__ import annotations

import datetime
import decimal
import fractions
from numbers import Integral
from typing import Any

import hypothesis.strategies as st
import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

from onebit.core import example

LARGEST = getattr(example, "LARGEST", 1e30)

ALLOWED = [0.0, -0.0, 5e-324, -1e-310, 1e-300, -1e-155, 1e-30, 1e-8, 1.0, -1.0, 1e4, -1e8, 1e15]
ALLOWED += [1e20, -1e25, LARGEST, -LARGEST]
BEYOND = [np.nextafter(LARGEST, np.inf), -1e31, 1e155, -1e300, 1.7e308, np.inf, -np.inf, np.nan]
STRANGE = [True, 7, 2**63, -(2**70), 10**400, "1.5", "x", b"1", None, 1j, [1.0], {}, object()]
STRANGE += [decimal.Decimal("NaN"), fractions.Fraction(1, 3), datetime.date(2020, 1, 1)]
STRANGE += [np.float16("inf"), np.float32(1.5), np.longdouble("1e4000")]
STRANGE += [np.datetime64("NaT", "s")]

PROBABILITIES = [np.nextafter(1.0, 2.0), 1.00002, 1.0, 0.5, 1e-3, 1e-10, 1e-29, 1e-30]
IMPROBABLE = [9e-31, 1e-300, 5e-324, 0.0, -0.0, -0.5, 1.001, np.inf, np.nan]
STRANGE_PROBABILITIES = [
    "0.5",
    None,
    True,
    10**400,
    np.float32(0.3),
    np.array([0.5, 0.5]),
    1j,
    [0.5],
]


def matrix(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Return rows that any learner takes: "gentle", "wide" (any size) or "mixed"."""
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    wide = np.where(
        rng.random((n, d)) < 0.5,
        rng.choice(ALLOWED, size=(n, d)),
        rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-320, 29, size=(n, d)),
    )
    if kind == "gentle":
        return X
    return wide if kind == "wide" else np.where(rng.random((n, d)) < 0.2, wide, X)


def probes(d: int) -> np.ndarray:
    """Return rows to ask a learner about: the first two gentle, the others at the limits."""
    rows = np.zeros((5, d))
    rows[1] = 1.0
    rows[2] = LARGEST * (-1.0) ** np.arange(d)
    rows[3] = 1e-300
    rows[4, 0] = -LARGEST
    return rows


SIZES = {"n_samples", "n_sweeps", "n_nodes", "degree", "budget"}
"""Parameters that say how much work or memory is asked for: large ones are no test of soundness."""


def parameters(cls: type) -> st.SearchStrategy[dict[str, Any]]:
    """Draw values for some parameters of a learner, in their declared ranges and out of them."""
    some = {
        name: st.sampled_from([value for one in constraints for value in _around(name, one)])
        for name, constraints in cls._parameter_constraints.items()
        if name not in ("classes", "random_state", "learner", "kernel", "kernel_params")
    }
    return st.fixed_dictionaries({}, optional=some)


def declared(cls: type, given: dict[str, Any]) -> bool:
    """Return whether all values are in the ranges that the class declares."""
    return all(
        any(make_constraint(one).is_satisfied_by(value) for one in cls._parameter_constraints[name])
        for name, value in given.items()
    )


def _around(name: str, constraint: Any) -> list[Any]:
    """Return values on both sides of the ends of a constraint."""
    if isinstance(constraint, StrOptions):
        return [*sorted(constraint.options), "nonsense", ""]
    if isinstance(constraint, Interval) and constraint.type is Integral:
        low = constraint.left
        high = [2**62, 2**64, -(10**30)] if name not in SIZES else []
        return [low - 1, low, low + 1, low + 2, low + 0.5, float(low), str(low), *high]
    if isinstance(constraint, Interval):
        found = [np.nan, np.inf, -np.inf, "1", 10**400, 1, True, 0.3, 1e-15, 1e-17, 1e-20, -1e-9]
        for end in (constraint.left, constraint.right):
            ends = [1e-320, 1e-150, 1e-30, 1e30, 1e150, 1.7e308] if end is None else [end]
            for value in map(float, ends):
                found += [value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf)]
                found += [value * 1.5, value / 1.5]
        return found
    if constraint == "boolean":
        return [True, False, np.True_, 1, "yes", None]
    if constraint is None:
        return [None]
    if constraint == "array-like":
        return [[], [0.1], [np.nan], [-1.0, 1e300], [[0.1]], ["x"]]
    return [object()]
