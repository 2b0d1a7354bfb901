"""What the page shows of a model: its answers to whether it is good, and what to do."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from onebit.serve.api import Interval, ModelView, ShadowView
from onebit.serve.rows import Label


class ConstantView(Struct, frozen=True):
    """The constant label that would have been right most often, as far as is known."""

    label: str
    accuracy: Interval | None
    """By importance weights, if one label is right for each record.

    Its interval allows for the choice of the best label.
    """


class WindowView(Struct, frozen=True):
    """The accuracy of a model in some time, and what could be achieved without it."""

    since: float
    until: float
    decisions: int
    explored: int
    right: int
    wrong: int
    accuracy: Interval | None
    constant: ConstantView | None
    chance: float | None
    """The accuracy of labels that are chosen uniformly at random."""


class SeriesPoint(Struct, frozen=True):
    """The accuracy between two times."""

    since: float
    until: float
    decisions: int
    right: int
    wrong: int
    accuracy: Interval | None


class MarkView(Struct, frozen=True):
    """A change of a model, and its accuracy before and after."""

    at: float
    kind: str
    """Such as "labels added", "shadow promoted", "frozen", "version" or "accuracy fell"."""
    names: list[str]
    before: Interval | None
    after: Interval | None


class LabelReport(Struct, frozen=True):
    """A label, and how often it was right recently."""

    label: Label
    retired: bool
    chosen: int
    """Number of decisions, in all."""
    share: float
    """Share of the decisions in the window `last`."""
    recent: Interval | None
    """How often it was right when it was chosen: the last 200 times, or since that changed."""
    before: Interval | None
    """The same, before that."""
    trend: Literal["rose", "fell", "steady"] | None
    """Whether the two intervals do not overlap; None without enough feedback."""
    answered: float | None
    """Share of its decisions that have feedback, of those older than an hour."""
    truths: dict[str, int]
    """The recent truths when it was wrong, most frequent first; empty for none of the labels."""
    description: str | None
    """What it means, as text; long ones are cut."""


class ApprenticeView(Struct, frozen=True):
    """A model that is the apprentice of a product that already decides."""

    decides: Literal["product", "model"]
    share: float
    """Share of the decisions that are left to the one that does not decide."""
    confidence: float | None
    """Probability with which the other one must be better to take over automatically."""
    since: int
    """The row from which on they are compared: the last change of who decides."""
    bits: int
    model: Interval | None
    """The accuracy of the model, had it decided alone; likewise of the product."""
    product: Interval | None
    difference: Interval | None
    """By how much the model is better, at the level of `confidence`."""


class ExplorationView(Struct, frozen=True):
    """What exploration (choosing another label than the best guess) cost and yielded."""

    share: float | None
    """Share of the decisions in the window `last`."""
    right: int
    """Explored decisions that were right, in all; wrong: those that were not."""
    wrong: int
    accuracy: Interval | None
    """Accuracy of explored decisions."""
    cost: Interval | None
    """By how much more often the best guess would be right, if it were always taken."""


Action = Literal[
    "promote", "remove_shadow", "retire", "add_shadow", "unfreeze", "take_over", "give_back"
]


Kind = Literal[
    "no_feedback_yet",
    "better_than_constant",
    "worse_than_constant",
    "unclear",
    "fell",
    "confused",
    "useless_label",
    "label_without_feedback",
    "without_feedback",
    "shadow_better",
    "shadow_worse",
    "shadow_unclear",
    "frozen",
    "exploration",
    "apprentice_better",
    "apprentice_worse",
    "apprentice_unclear",
]
Tone = Literal["good", "note", "bad"]


class Finding(Struct, frozen=True, omit_defaults=True):
    """Something that the evidence supports, and what to do about it."""

    kind: Kind
    tone: Tone
    label: str | None = None
    shadow: str | None = None
    other: str | None = None
    """Another label: the best constant one, or the one that truths name."""
    since: float | None = None
    before: Interval | None = None
    now: Interval | None = None
    difference: Interval | None = None
    share: float | None = None
    of_others: float | None = None
    """The same share for all other labels."""
    action: Action | None = None


class Report(Struct, frozen=True):
    """How a model does, and what to do about it."""

    at: float
    model: ModelView
    last: WindowView
    """About the last thousand bits."""
    day: WindowView
    """The last 24 hours."""
    range: WindowView
    """The time that was asked for; by default all."""
    series: list[SeriesPoint]
    """In the range."""
    marks: list[MarkView]
    labels: list[LabelReport]
    shadows: list[ShadowView]
    findings: list[Finding]
    """The worst first."""
    apprentice: ApprenticeView | None
    exploration: ExplorationView
