"""Exploration: its limit for a model, what it cost, and what was learned from it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from onebit.core.terms import WINDOW, Window
from onebit.serve.estimates import compared
from onebit.serve.rows import DecisionBody

BITS_AT_ONCE = 256
"""Bits per update of the difference, which takes about 0.1 ms: every model has it."""


class ExplorationLimit(Struct):
    """The limit of a model, and which of its last decisions explored, or chose new labels.

    Decisions that are being made count, too, so that requests at the same time keep to the limit;
    those that other processes are making do not. Each decision has, in the log, how probable other
    labels than the best guess could be, so it can be repeated.
    """

    share: float
    """Of any 1,000 decisions, at most this share explores."""
    decisions: int = 0
    """Decisions since the limit was set."""
    explored: list[int] = []
    """The numbers of those that explored, among the last 1,000."""

    def add(self, explored: bool) -> None:
        """Count a decision."""
        self.decisions += 1
        if explored:
            self.explored.append(self.decisions)
        while self.explored and self.explored[0] <= self.decisions - (WINDOW - 1):
            del self.explored[0]

    def cap(self, n_exploring: int) -> float:
        """Return how probable the next decision may be to explore.

        Parameters
        ----------
        n_exploring : int
            Decisions that explore and are not counted yet.
        """
        last = self.decisions + n_exploring
        explored = [*self.explored, *range(self.decisions + 1, last + 1)]
        return Window(last, explored).probability(self.share)


class Exploration(Struct):
    """How often explored decisions were right, and how often greedy ones would have been."""

    right: int = 0
    """Explored decisions that were right by their feedback; wrong: those that were not."""
    wrong: int = 0
    difference: dict[str, Any] | None = None
    """By how much always choosing the greedy label would be right more often: what exploration
    costs. As `estimates.compared` keeps it."""
    pending: list[tuple[float, float]] = []
    """Weighted bits that the difference does not include yet."""

    def add_bit(self, body: DecisionBody, correct: bool, value: float) -> None:
        """Take the feedback for a decision of the model; those beside a product do not count.

        Parameters
        ----------
        body : DecisionBody
        correct : bool
            Whether its label counts as right.
        value : float
            The same as a number, or the reward.
        """
        if body.chosen is not None:
            return
        if body.explored:
            self.right += correct
            self.wrong += not correct
        self.pending.append((value, 0.0 if body.explored else 1.0 / body.probability))
        if len(self.pending) >= BITS_AT_ONCE:
            self.difference, self.pending = self.compared(), []

    def compared(self) -> dict[str, Any]:
        """Return the difference with all bits so far."""
        return compared(self.difference, self.pending)
