"""Measurements that make their own data, as simulations do."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator


class Trial(BaseEstimator):
    """A measurement that makes its own data; its parameters are those of `__init__`.

    In a sweep it stands where a learner does, and the sweep has no streams. Subclasses define
    `result`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def result(self, seed: int) -> dict[str, Any]:
        """Return what is measured, as JSON types; the seed determines all draws."""
        raise NotImplementedError
