"""A label put out for one x, and how likely it was to be put out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Decision:
    """The label put out for one `x`, with the probability it was chosen with.

    `Learner.decide` makes decisions; one can also be made by hand, from a log.

    Parameters
    ----------
    x : 1-D array or one sparse row
        In a decision of `decide`, the learner's own copy of it as an `onebit.core.Example`.
    label
        The label that was put out.
    probability : float
        The probability with which it was put out, in (0, 1].
    """

    x: Any
    label: Any
    probability: float
    _learned_by: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"Decision(label={self.label!r}, probability={self.probability:.6g})"

    def __getstate__(self) -> tuple[Any, ...]:
        # Who learned from it holds within a process only: learners are told apart by identity.
        return self.x, self.label, self.probability

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.x, self.label, self.probability = state
        self._learned_by = ()
