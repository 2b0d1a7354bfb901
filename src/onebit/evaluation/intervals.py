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
