"""A label chosen for one x, and the probability with which it was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Decision:
    """The label chosen for one `x`, with the probability of choosing it.

    `Learner.decide` makes decisions; one can also be made by hand, from a log.

    Parameters
    ----------
    x : 1-D array or one sparse row
        In a decision of `decide`, the learner's own copy of it as an `onebit.core.Example`.
    label
        The chosen label.
    probability : float
        The probability with which it was chosen, in (0, 1].
    among : tuple of labels, optional
        The labels on offer, which it was chosen from; None is all of them.
    """

    x: Any
    label: Any
    probability: float
    among: Any = None
    _learned_by: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        among = "" if self.among is None else f", among={self.among!r}"
        return f"Decision(label={self.label!r}, probability={self.probability:.6g}{among})"

    def __getstate__(self) -> tuple[Any, ...]:
        # Learners are told apart by identity, so who learned from it holds within a process only.
        return self.x, self.label, self.probability, self.among

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.x, self.label, self.probability, self.among = state
        self._learned_by = ()
