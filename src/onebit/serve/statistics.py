"""What happened to a model so far, as much as the page needs.

Feedback is counted in segments of time. Old segments are merged, so that their number grows with
the logarithm of the feedback, and the relative precision of "the last n" is the same for all n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

T = TypeVar("T", bound="Tally")

SEGMENT_BITS = 8
"""Feedback in a segment of the lowest level; those of the next level have twice as many."""

LEVEL_SEGMENTS = 16
"""Most segments of one level: beyond it, the two oldest are merged into one of the next level."""

STEPS_PER_OCTAVE = 4
"""Importance weights are counted by their logarithm, rounded down to a quarter of a doubling.

Rounding down makes intervals wider, by at most 19 %, and never wrong.
"""

MOST_MARKS = 50
"""Marks that are kept: the newest."""


class Tally(Struct):
    """How often a label was chosen, and its feedback."""

    chosen: int = 0
    right: int = 0
    wrong: int = 0

    def count_bit(self, correct: bool) -> None:
        """Count feedback for a decision."""
        self.right += correct
        self.wrong += not correct

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.chosen += other.chosen
        self.right += other.right
        self.wrong += other.wrong


class LabelCounts(Tally):
    """A tally in a segment, with what its importance weights and its truths say."""

    right_weight: float = 0.0
    """The sum of 1 / probability over the right ones."""
    right_steps: dict[str, int] = {}
    """The number of right ones by the logarithm of 1 / probability, see `STEPS_PER_OCTAVE`.

    As text, since snapshots have no other keys.
    """
    wrong_steps: dict[str, int] = {}
    truths: dict[str, int] = {}
    """The truths of wrong ones, as text; empty for none of the labels."""

    def add_bit(self, correct: bool, probability: float, truth: str | None) -> None:
        """Add feedback for a decision; the truth if it is known, and another label."""
        self.count_bit(correct)
        step = str(math.floor(-math.log2(probability) * STEPS_PER_OCTAVE + 1e-9))
        steps = self.right_steps if correct else self.wrong_steps
        steps[step] = steps.get(step, 0) + 1
        if correct:
            self.right_weight += 1.0 / probability
        elif truth is not None:
            self.truths[truth] = self.truths.get(truth, 0) + 1

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        super().add(other)
        if isinstance(other, LabelCounts):
            self.right_weight += other.right_weight
            for name in ("right_steps", "wrong_steps", "truths"):
                mine = getattr(self, name)
                for key, n in getattr(other, name).items():
                    mine[key] = mine.get(key, 0) + n


class Counts(Struct):
    """Decisions, and their feedback."""

    decisions: int = 0
    explored: int = 0
    right: int = 0
    wrong: int = 0

    @property
    def feedback(self) -> int:
        """Number of decisions that got feedback."""
        return self.right + self.wrong

    def of(self, label: Any) -> Tally:
        """Return the counts of a label, for updates."""
        raise NotImplementedError

    def count_decision(self, label: Any, explored: bool) -> None:
        """Count a decision."""
        self.decisions += 1
        self.explored += explored
        self.of(label).chosen += 1

    def count_bit(self, correct: bool) -> None:
        """Count feedback for a decision."""
        self.right += correct
        self.wrong += not correct


class Segment(Counts):
    """What happened between two times. Only the last segment of a model changes."""

    level: int = 0
    start: float = math.inf
    end: float = -math.inf
    chance: float = 0.0
    """Right ones to expect of labels that are chosen uniformly at random."""
    labels: dict[str, LabelCounts] = {}
    """By the label as text."""

    def of(self, label: Any) -> LabelCounts:
        """Return the counts of a label, for updates."""
        return _of(self.labels, label, LabelCounts)

    def reach(self, at: float) -> None:
        """Include a time."""
        self.start, self.end = min(self.start, at), max(self.end, at)

    def add(self, other: Segment) -> None:
        """Add what happened in another segment."""
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        self.decisions += other.decisions
        self.explored += other.explored
        self.right += other.right
        self.wrong += other.wrong
        self.chance += other.chance
        for name, counts in other.labels.items():
            self.of(name).add(counts)


def _of(labels: dict[str, T], label: Any, counts: type[T]) -> T:
    """Return the counts of a label, which begin with nothing."""
    name = str(label)
    if name not in labels:
        labels[name] = counts()
    return labels[name]


def merged(segments: Iterable[Segment]) -> Segment:
    """Return what happened in all of the segments."""
    found = Segment()
    for one in segments:
        found.add(one)
    return found


class Mark(NamedTuple):
    """A change that someone made to a model.

    Attributes
    ----------
    at : float
        When, in seconds since 1970.
    kind : str
        Such as "labels added", "shadow promoted" or "frozen".
    names : list of str
        The labels, or the shadow.
    """

    at: float
    kind: str
    names: list[str]


class Statistics(Counts):
    """What happened so far, as much as the page needs."""

    answered: int = 0
    """Decisions whose feedback is no longer awaited."""
    expired: int = 0
    """Those of them that expired without feedback."""
    labels: dict[str, Tally] = {}
    """By the label as text."""
    segments: list[Segment] = []
    """The oldest first; the last one is open until it has `SEGMENT_BITS` of feedback."""
    marks: list[Mark] = []

    @property
    def awaited(self) -> int:
        """Decisions whose feedback may still come."""
        return self.decisions - self.answered

    def of(self, label: Any) -> Tally:
        """Return the tally of a label, for updates."""
        return _of(self.labels, label, Tally)

    def add_decision(self, at: float, label: Any, explored: bool) -> None:
        """Count a decision, in all and in the open segment."""
        self._open(at).count_decision(label, explored)
        self.count_decision(label, explored)

    def add_bit(
        self,
        at: float,
        label: Any,
        correct: bool,
        probability: float = 1.0,
        truth: str | None = None,
        offered: int = 1,
    ) -> None:
        """Count feedback for a decision.

        Parameters
        ----------
        at : float
        label : int or str
            The chosen one.
        correct : bool
        probability : float
            With which it was chosen.
        truth : str, optional
            The right label, if it is known and another one; empty for none of the labels.
        offered : int
            The number of labels on offer.
        """
        segment = self._open(at)
        segment.count_bit(correct)
        segment.chance += 1.0 / offered
        segment.of(label).add_bit(correct, probability, truth)
        self.count_bit(correct)
        self.of(label).count_bit(correct)
        if segment.feedback >= SEGMENT_BITS:
            self._merge()

    def add_mark(self, at: float, kind: str, names: Sequence[Any] = ()) -> None:
        """Note a change that someone made."""
        self.marks = [*self.marks, Mark(at, kind, [*map(str, names)])][-MOST_MARKS:]

    def _open(self, at: float) -> Segment:
        if not self.segments or self.segments[-1].feedback >= SEGMENT_BITS:
            self.segments.append(Segment())
        self.segments[-1].reach(at)
        return self.segments[-1]

    def _merge(self) -> None:
        """Merge the two oldest segments of each level that has too many."""
        end = len(self.segments)
        for level in range(end):
            start = end
            while start and self.segments[start - 1].level == level:
                start -= 1
            if end - start <= LEVEL_SEGMENTS:
                return
            both = merged(self.segments[start : start + 2])
            both.level = level + 1
            self.segments[start : start + 2] = [both]
            end = start + 1
