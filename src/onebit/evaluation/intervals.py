"""Intervals for means, from bets that cannot be won unless a mean is higher than claimed.

Values X_1, X_2, ... have means mu_i given the past, which may drift. For a bet b with 1 + b X_i
not negative, the capital prod (1 + b X_i) / (1 + b mu_i) is a martingale that starts at one. By
concavity of the logarithm, (1 + b m)^n is at least prod (1 + b mu_i), where m is the mean of
the mu_i: so

    sum over bets of prior(b) prod (1 + b X_i) / (1 + b m)^n

ever reaches 1 / alpha with probability at most alpha (Ville's inequality). The least m at which it
has not is a lower bound for the mean of the mu_i that holds simultaneously at all times. The values
need no upper limit, so importance weights may be arbitrarily large, and no sample is too small. The
state is one sum for each bet.

This is the betting of Waudby-Smith and Ramdas (2023) with bets that are fixed in advance, which
makes it valid for means that drift; for importance-weighted bits the bounds follow Waudby-Smith,
Wu, Ramdas, Karampatziakis and Mineiro (2022).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

_SIZES = 2.0 ** np.arange(-20, 11)

BETS = np.tile(_SIZES, 2)
"""The bets b. Neighbours differ by a factor of two: the best possible bet is hardly better.

Each occurs twice, for values that depend on the bet: see `CAUTION`.
"""

CAUTION = np.repeat([0.1, 0.7], _SIZES.size)
"""Part of each bet that a model may risk: small is best with few rows, large with many."""


class Interval(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.high - self.low


class LowerBound:
    """A lower bound for the mean of values, valid simultaneously at all times.

    Attributes
    ----------
    n : int
        Number of values so far.
    log_capital : ndarray
        The sum of log(1 + b X) for each bet b.
    """

    def __init__(self) -> None:
        self.n = 0
        self.log_capital = np.zeros(BETS.size)

    def update(self, values: Any) -> None:
        """Take more values.

        Parameters
        ----------
        values : float, or array of shape (n,) or (n, n_bets)
            Non-negative; or, with a column for each of `BETS`, more than -1 / b in that of b.
        """
        found = np.asarray(values, dtype=np.float64)
        bets = BETS
        if found.ndim < 2:
            found, bets = found.reshape(-1, 1), _SIZES
        for lo in range(0, len(found), _BLOCK):
            gained = np.log1p(found[lo : lo + _BLOCK] * bets).sum(axis=0)
            self.log_capital += gained if bets is BETS else np.tile(gained, 2)
        self.n += len(found)

    def __add__(self, other: LowerBound) -> LowerBound:
        """Return the bound from the values of both."""
        both = LowerBound()
        both.n, both.log_capital = self.n + other.n, self.log_capital + other.log_capital
        return both

    def bound(self, alpha: float, *, anytime: bool) -> float:
        """Return a lower bound that exceeds the mean with probability at most `alpha`.

        Parameters
        ----------
        alpha : float in (0, 1)
        anytime : bool
            Whether the bound is looked at while values arrive, and must hold simultaneously at all
            times; if not, `n` must have been fixed without looking.
        """
        if not self.n or self._excess(0.0, alpha, anytime) <= 0.0:
            return 0.0
        from scipy.optimize import brentq  # which takes long to import

        high = 1.0
        while self._excess(high, alpha, anytime) > 0.0:
            high *= 2.0
        return float(brentq(self._excess, 0.0, high, args=(alpha, anytime), xtol=1e-12))

    def refutes(self, mean: float, alpha: float, *, anytime: bool) -> bool:
        """Return whether the bound is above this mean."""
        return bool(self.n) and self._excess(mean, alpha, anytime) > 0.0

    def _excess(self, mean: float, alpha: float, anytime: bool) -> float:
        """Return the logarithm of the capital, if this were the mean, minus that of 1 / alpha."""
        prior = log_prior_anytime() if anytime else log_prior_at(self.n, alpha)
        logs = prior + self.log_capital - self.n * np.log1p(BETS * mean)
        highest = float(logs.max())
        return highest + math.log(float(np.exp(logs - highest).sum())) + math.log(alpha)


class ConfidenceSequence:
    """The accuracy of a policy, monitored while feedback arrives: its interval holds at all times.

    Stopping, or raising an alarm, when the interval says so is wrong with probability at most 1 -
    level, however often one looks. The accuracy may change: the interval is for its mean over the
    decisions so far.

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

    def __init__(self, level: float = 0.95) -> None:
        self.level = check_level(level)
        self._right, self._wrong = LowerBound(), LowerBound()
        self._sums = np.zeros(2)

    def update(self, correct: Any, weight: Any = 1.0) -> None:
        """Take one bit or many, with their weights.

        Parameters
        ----------
        correct : bool, 0 or 1, or array-like of these
        weight : float >= 0 or array-like, default=1.0
        """
        bits = np.atleast_1d(np.asarray(correct, dtype=np.float64))
        weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), bits.shape)
        if bits.ndim != 1 or not np.isin(bits, (0.0, 1.0)).all():
            raise ValueError(f"correct is one bit or a list of bits; got {correct!r:.80}")
        if not ((weights >= 0.0) & np.isfinite(weights)).all():
            raise ValueError(f"a weight is a number of at least 0; got {weight!r:.80}")
        self._right.update(weights * bits)
        self._wrong.update(weights * (1.0 - bits))
        self._sums += (weights @ bits, weights.sum())

    @property
    def n(self) -> int:
        """Bits so far."""
        return self._right.n

    @property
    def mean(self) -> float:
        """Mean of the bits times their weights."""
        return float(self._sums[0] / self.n) if self.n else math.nan

    @property
    def mean_weight(self) -> float:
        """Mean of the weights."""
        return float(self._sums[1] / self.n) if self.n else math.nan

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.interval.high

    @property
    def interval(self) -> Interval:
        """Both ends."""
        return interval_of(self._right, self._wrong, self.level, anytime=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON types, for `from_dict`."""
        return {
            "level": self.level,
            "n": self.n,
            "sums": self._sums.tolist(),
            "right": self._right.log_capital.tolist(),
            "wrong": self._wrong.log_capital.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Any) -> ConfidenceSequence:
        """Return the sequence that `to_dict` turned into this."""
        made = cls(state["level"])
        made._sums[:] = state["sums"]
        for bound, name in ((made._right, "right"), (made._wrong, "wrong")):
            bound.n = int(state["n"])
            bound.log_capital[:] = state[name]
        return made

    def __repr__(self) -> str:
        low, high = self.interval
        return f"ConfidenceSequence(n={self.n}, mean={self.mean:.4f}, {low:.4f} to {high:.4f})"


class DifferenceSequence:
    """By how much a policy is more accurate than another one; its interval holds at all times.

    Both are judged by the same decisions. A bit is weighted for each of the two policies: by the
    probability of the chosen label under that policy, divided by the probability with which it was
    chosen. With weights w and v, a bit is worth w if right and v if wrong. As weights have the mean
    one, the mean of that is one plus the difference of the accuracies: it needs a bound for values
    that are not negative, as an accuracy does. Where both policies agree, it has no variance.

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

    def __init__(self, level: float = 0.95) -> None:
        self.level = check_level(level)
        self._better, self._worse = LowerBound(), LowerBound()
        self._sum = 0.0

    def update(self, correct: Any, weight: Any, other_weight: Any = 1.0) -> None:
        """Take one bit or many, with their weights.

        Parameters
        ----------
        correct : bool, 0 or 1, or array-like of these
        weight : float >= 0 or array-like
            Of the policy that is judged.
        other_weight : float >= 0 or array-like, default=1.0
            Of the one that it is compared with; 1 if that one decided.
        """
        bits = np.atleast_1d(np.asarray(correct, dtype=np.float64))
        if bits.ndim != 1 or not np.isin(bits, (0.0, 1.0)).all():
            raise ValueError(f"correct is one bit or a list of bits; got {correct!r:.80}")
        both = []
        for given in (weight, other_weight):
            weights = np.broadcast_to(np.asarray(given, dtype=np.float64), bits.shape)
            if not ((weights >= 0.0) & np.isfinite(weights)).all():
                raise ValueError(f"a weight is a number of at least 0; got {given!r:.80}")
            both.append(weights)
        judged, other = both
        self._better.update(np.where(bits, judged, other))
        self._worse.update(np.where(bits, other, judged))
        # Both sums estimate the difference, and so does their mean, with less variance.
        self._sum += float((bits - 0.5) @ (judged - other))

    @property
    def n(self) -> int:
        """Bits so far."""
        return self._better.n

    @property
    def mean(self) -> float:
        """The estimated difference."""
        return self._sum / self.n if self.n else math.nan

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.interval.high

    @property
    def interval(self) -> Interval:
        """Both ends."""
        alpha = 0.5 * (1.0 - self.level)
        low = min(self._better.bound(alpha, anytime=True), 2.0) - 1.0
        high = 1.0 - min(self._worse.bound(alpha, anytime=True), 2.0)
        return Interval(min(low, high), max(low, high))

    def is_better(self) -> bool:
        """Return whether the lower end of the interval is above zero; faster than the interval."""
        return self._better.refutes(1.0, 0.5 * (1.0 - self.level), anytime=True)

    def is_worse(self) -> bool:
        """Return whether the upper end of the interval is below zero."""
        return self._worse.refutes(1.0, 0.5 * (1.0 - self.level), anytime=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON types, for `from_dict`."""
        return {
            "level": self.level,
            "n": self.n,
            "sum": self._sum,
            "better": self._better.log_capital.tolist(),
            "worse": self._worse.log_capital.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Any) -> DifferenceSequence:
        """Return the sequence that `to_dict` turned into this."""
        made = cls(state["level"])
        made._sum = float(state["sum"])
        for bound, name in ((made._better, "better"), (made._worse, "worse")):
            bound.n = int(state["n"])
            bound.log_capital[:] = state[name]
        return made

    def __repr__(self) -> str:
        low, high = self.interval
        return f"DifferenceSequence(n={self.n}, mean={self.mean:.4f}, {low:.4f} to {high:.4f})"


def interval_of(right: LowerBound, wrong: LowerBound, level: float, *, anytime: bool) -> Interval:
    """Return the interval of an accuracy, from lower bounds for the right and the wrong share.

    What is not known to be either lies between them: the interval needs no coverage.
    """
    alpha = 0.5 * (1.0 - level)
    low = min(right.bound(alpha, anytime=anytime), 1.0)
    high = max(1.0 - wrong.bound(alpha, anytime=anytime), 0.0)
    # They cross only if one of them is wrong, which has probability at most 1 - level.
    return Interval(min(low, high), max(low, high))


def check_level(level: Any, name: str = "level") -> float:
    """Return a probability, such as the level of an interval."""
    if not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise ValueError(f"{name} is a number between 0 and 1; got {level!r}")
    return float(level)


_BLOCK = 4096
"""Values at a time: their products with the bets stay in a processor's cache."""


def _normalised(weights: np.ndarray) -> np.ndarray:
    return np.log(weights / weights.sum())


@lru_cache
def log_prior_anytime() -> np.ndarray:
    """Return log prior(b), centred on the best bet for some thousand values."""
    return _normalised(1.0 / (1.0 + (0.25 * (np.log2(BETS) + 5.0)) ** 2))


@lru_cache(maxsize=64)
def log_prior_at(n: int, alpha: float) -> np.ndarray:
    """Return log prior(b), centred on the best bet for n values of deviation 0.7."""
    best = 0.5 * math.log2(-2.0 * math.log(alpha) / n) + 0.5
    return _normalised(np.exp(-np.abs(np.log2(BETS) - best) / 1.5))
