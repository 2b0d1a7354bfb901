"""Sequences of bits, monitored while feedback arrives: their intervals hold at all times."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from onebit.evaluation.intervals import Interval, LowerBound, check_level, interval_of


class BitSequence(ABC):
    """A mean of values that bits have, with two lower bounds: one from each side.

    Parameters
    ----------
    level : float in (0, 1), default=0.95
    """

    _sides: ClassVar[tuple[str, str]]
    """The names of both bounds in the dictionary."""

    def __init__(self, level: float = 0.95) -> None:
        self.level = check_level(level)
        self._from_below, self._from_above = LowerBound(), LowerBound()

    @property
    def n(self) -> int:
        """Bits so far."""
        return self._from_below.n

    @property
    @abstractmethod
    def mean(self) -> float:
        """The estimate; NaN before the first bit."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.interval.high

    @property
    @abstractmethod
    def interval(self) -> Interval:
        """Both ends."""

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON types, for `from_dict`."""
        below, above = self._sides
        return {
            "level": self.level,
            "n": self.n,
            below: self._from_below.log_capital.tolist(),
            above: self._from_above.log_capital.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return the sequence of a dict that `to_dict` returned."""
        made = cls(state["level"])
        for bound, side in zip((made._from_below, made._from_above), cls._sides, strict=True):
            bound.n = int(state["n"])
            bound.log_capital[:] = state[side]
        return made

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{type(self).__name__}(n={self.n}, mean={self.mean:.4f}, {low:.4f} to {high:.4f})"


def _bits(correct: Any) -> np.ndarray:
    """Return one bit or reward, or many, as an array."""
    bits = np.atleast_1d(np.asarray(correct, dtype=np.float64))
    if bits.ndim != 1 or not ((bits >= 0.0) & (bits <= 1.0)).all():
        raise ValueError(
            f"correct is one bit or a list of bits, or rewards in [0, 1]; got {correct!r:.80}"
        )
    return bits


def _weights(given: Any, n: int) -> np.ndarray:
    """Return one weight or many as an array of n."""
    weights = np.broadcast_to(np.asarray(given, dtype=np.float64), n)
    if not ((weights >= 0.0) & np.isfinite(weights)).all():
        raise ValueError(f"a weight is a number of at least 0; got {given!r:.80}")
    return weights


class ConfidenceSequence(BitSequence):
    """The accuracy of a policy, monitored while feedback arrives: its interval holds at all times.

    Stopping, or raising an alarm, when the interval says so is wrong with probability at most 1 -
    level, however often it is computed. The accuracy may change: the interval is for its mean over
    the decisions so far.

    For decisions of another policy than the judged one, each bit comes with a weight: the
    probability of the chosen label under the judged policy, divided by the probability with which
    it was chosen. Weights may be arbitrarily large. Where the log does not cover the judged policy,
    the interval stays wide, and is still valid.

    Parameters
    ----------
    level : float in (0, 1), default=0.95

    Attributes
    ----------
    n : int
        Bits so far.
    mean : float
        Of the bits, times their weights; NaN before the first.
    mean_weight : float
        Near one in the long run if all is covered and the probabilities are right.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit.evaluation import ConfidenceSequence
    >>> watched = ConfidenceSequence()
    >>> watched.update(np.random.default_rng(0).random(1000) < 0.8)
    >>> watched.update(True)                    # one bit; weight=... if another policy is judged
    >>> f"{watched.mean:.3f}, {watched.low:.3f} to {watched.high:.3f}"
    '0.788, 0.740 to 0.832'
    """

    _sides = ("right", "wrong")

    def __init__(self, level: float = 0.95) -> None:
        super().__init__(level)
        self._sums = np.zeros(2)

    def update(self, correct: Any, weight: Any = 1.0) -> None:
        """Take one bit or many, with their weights.

        Parameters
        ----------
        correct : bool, 0 or 1, reward in [0, 1], or array-like of these
        weight : float >= 0 or array-like, default=1.0
        """
        bits = _bits(correct)
        weights = _weights(weight, bits.size)
        self._from_below.update(weights * bits)
        self._from_above.update(weights * (1.0 - bits))
        self._sums += (weights @ bits, weights.sum())

    @property
    def mean(self) -> float:
        """Mean of the bits times their weights."""
        return float(self._sums[0] / self.n) if self.n else math.nan

    @property
    def mean_weight(self) -> float:
        """Mean of the weights."""
        return float(self._sums[1] / self.n) if self.n else math.nan

    @property
    def interval(self) -> Interval:
        """Both ends."""
        return interval_of(self._from_below, self._from_above, self.level, anytime=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON types, for `from_dict`."""
        return {**super().to_dict(), "sums": self._sums.tolist()}

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return the sequence of a dict that `to_dict` returned."""
        made = super().from_dict(state)
        made._sums[:] = state["sums"]
        return made


class DifferenceSequence(BitSequence):
    """By how much a policy is more accurate than another one; its interval holds at all times.

    Both are judged by the same decisions. A bit is weighted for each of the two policies: by the
    probability of the chosen label under that policy, divided by the probability with which it was
    chosen. With weights w and v, a bit is worth w if right and v if wrong, and a reward r between
    them r w + (1 - r) v. As weights have the mean one, the mean of these values is one plus the
    difference of the accuracies. They are never negative, so the bets that bound an accuracy bound
    their mean, too. Where both policies agree, the values have no variance.

    Parameters
    ----------
    level : float in (0, 1), default=0.95

    Attributes
    ----------
    n : int
        Bits so far.
    mean : float
        The estimated difference; NaN before the first bit.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit.evaluation import DifferenceSequence
    >>> watched = DifferenceSequence()
    >>> rng = np.random.default_rng(0)
    >>> first = rng.random(1000) < 0.5          # which of two policies decides
    >>> watched.update(rng.random(1000) < np.where(first, 0.9, 0.6), 2.0 * first, 2.0 * ~first)
    >>> f"{watched.mean:.3f}, {watched.low:.3f} to {watched.high:.3f}"
    '0.248, 0.141 to 0.351'
    """

    _sides = ("better", "worse")

    def __init__(self, level: float = 0.95) -> None:
        super().__init__(level)
        self._sum = 0.0

    def update(self, correct: Any, weight: Any, other_weight: Any = 1.0) -> None:
        """Take one bit or many, with their weights.

        Parameters
        ----------
        correct : bool, 0 or 1, reward in [0, 1], or array-like of these
        weight : float >= 0 or array-like
            Of the policy that is judged.
        other_weight : float >= 0 or array-like, default=1.0
            Of the one that it is compared with; 1 if that one decided.
        """
        bits = _bits(correct)
        judged, other = _weights(weight, bits.size), _weights(other_weight, bits.size)
        self._from_below.update(bits * judged + (1.0 - bits) * other)
        self._from_above.update(bits * other + (1.0 - bits) * judged)
        # Both sums estimate the difference, and so does their mean, with less variance.
        self._sum += float((bits - 0.5) @ (judged - other))

    @property
    def mean(self) -> float:
        """The estimated difference."""
        return self._sum / self.n if self.n else math.nan

    @property
    def interval(self) -> Interval:
        """Both ends."""
        alpha = 0.5 * (1.0 - self.level)
        low = min(self._from_below.bound(alpha, anytime=True), 2.0) - 1.0
        high = 1.0 - min(self._from_above.bound(alpha, anytime=True), 2.0)
        return Interval(min(low, high), max(low, high))

    def is_better(self) -> bool:
        """Return whether the lower end of the interval is above zero; faster than the interval."""
        return self._from_below.refutes(1.0, 0.5 * (1.0 - self.level), anytime=True)

    def is_worse(self) -> bool:
        """Return whether the upper end of the interval is below zero."""
        return self._from_above.refutes(1.0, 0.5 * (1.0 - self.level), anytime=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON types, for `from_dict`."""
        return {**super().to_dict(), "sum": self._sum}

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return the sequence of a dict that `to_dict` returned."""
        made = super().from_dict(state)
        made._sum = float(state["sum"])
        return made
