"""LinUCB and LinTS: the theorems require widths that grow, and linear probabilities."""

from __future__ import annotations

from onebit.theory.bound import Bound

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
