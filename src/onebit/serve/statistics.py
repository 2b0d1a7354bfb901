"""What happened to a model so far, as much as the page needs."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

MOST_POINTS = 120
"""Most points of a curve over time."""


class Tally(Struct):
    """How often a label was chosen, and its feedback."""

    chosen: int = 0
    right: int = 0
    wrong: int = 0


class Point(NamedTuple):
    """Sums up to a time: decisions, explored ones, right and wrong ones by their feedback."""

    at: float
    decisions: int
    explored: int
    right: int
    wrong: int


class Statistics(Struct):
    """What happened so far, as much as the page needs."""

    decisions: int = 0
    explored: int = 0
    right: int = 0
    wrong: int = 0
    answered: int = 0
    """Decisions whose feedback is no longer awaited."""
    expired: int = 0
    """Those of them that expired without feedback."""
    labels: dict[str, Tally] = {}
    """By the label as text."""
    curve: list[Point] = []
    stride: int = 1
    """Feedback between two points of the curve."""

    @property
    def feedback(self) -> int:
        """Number of decisions with feedback."""
        return self.right + self.wrong

    @property
    def awaited(self) -> int:
        """Decisions whose feedback may still come."""
        return self.decisions - self.answered

    def of(self, label: Any) -> Tally:
        """Return the tally of a label, for updates."""
        name = str(label)
        if name not in self.labels:
            self.labels[name] = Tally()
        return self.labels[name]

    def add_point(self, at: float) -> None:
        """Add a point after each `stride` of feedback; if there are too many, keep every other."""
        if self.feedback % self.stride:
            return
        self.curve.append(Point(at, self.decisions, self.explored, self.right, self.wrong))
        if len(self.curve) > MOST_POINTS:
            self.stride *= 2
            self.curve = [point for point in self.curve if not sum(point[3:]) % self.stride]
