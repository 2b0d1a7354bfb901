"""LinUCB and LinTS: the theorems require widths that grow, and linear probabilities."""

from __future__ import annotations

import math

from onebit.theory.bound import Bound

BIT_NOISE = 0.5
"""R: bits, less their mean, are R-sub-Gaussian (Hoeffding's lemma)."""


def lin_ts_v(T: int, d: int, delta: float = 0.05) -> float:
    """Return the v of Algorithm 1 of Agrawal and Goyal, R sqrt(9 d ln(t / delta)), at t = T.

    Parameters
    ----------
    T : int
        Rounds.
    d : int
        Features of the weights that are drawn together: those of x, times the number of labels.
    delta : float in (0, 1)
        The bound holds with probability 1 - delta.

    Examples
    --------
    >>> from onebit.theory.bounds import lin_ts_v
    >>> round(lin_ts_v(50_000, 200), 1)
    78.8
    """
    return BIT_NOISE * math.sqrt(9.0 * d * math.log(T / delta))


LIN_UCB = Bound(
    "none for a constant alpha",
    why_not="theorems about LinUCB have an alpha that grows with d and ln t, and a chance to be "
    "right that is linear in x; they are not about the loss of a comparator",
)
LIN_TS = Bound(
    "none for a constant v",
    why_not="the theorem about LinTS has a v that grows with d and ln t, and a chance to be right "
    "that is linear in x; it is not about the loss of a comparator",
)
