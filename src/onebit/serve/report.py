"""Reports: is a model good, what changed, which label is bad, and what should be done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from onebit.serve.api import Interval, ModelView, ShadowView
from onebit.serve.apprentice import Apprentice
from onebit.serve.estimates import (
    LEAST_WINDOW,
    LEVEL,
    accuracy,
    changes,
    compared,
    constant_accuracy,
    difference_of,
    fall,
    interval_of,
    watched,
)
from onebit.serve.exploration import Exploration
from onebit.serve.model import Shadow
from onebit.serve.report_types import (
    Action,
    ApprenticeView,
    ConstantView,
    ExplorationView,
    Finding,
    Kind,
    LabelReport,
    MarkView,
    Report,
    SeriesPoint,
    Tone,
    WindowView,
)
from onebit.serve.statistics import LabelCounts, Mark, Segment, merged

LAST_BITS = 1000
"""Feedback in the window that is called the last."""

LABEL_BITS = 200
"""Feedback of a label that is called recent."""

DAY_SECONDS = 86_400.0

LATE_SECONDS = 3600.0
"""Age from which a decision without feedback counts as one that gets none."""

LATE_DECISIONS = 5000
"""Decisions that are checked for missing feedback, at most."""

MOST_WITHOUT_FEEDBACK = 0.2
"""With a larger share of decisions without feedback, the report says so."""

MOST_POINTS = 80
"""Points of a series."""

LEAST_TRUTHS = 10
"""Truths that are needed before they say what a label is confused with."""


class Facts(NamedTuple):
    """A copy of what a report needs, as it is made in another thread.

    Attributes
    ----------
    model : ModelView
    shadows : dict of Shadow
        By name.
    segments : list of Segment
        Copied, as the last one changes.
    marks : list of Mark
        Including those of other versions of the code.
    apprentice : Apprentice or None
        Copied.
    exploration : Exploration
        Copied.
    """

    model: ModelView
    shadows: dict[str, Shadow]
    segments: list[Segment]
    marks: list[Mark]
    apprentice: Apprentice | None
    exploration: Exploration


def report_of(facts: Facts, since: float | None = None, until: float | None = None) -> Report:
    """Return the report of a model, with a range of time."""
    now, model, segments = time.time(), facts.model, facts.segments
    last = _suffix(segments, LAST_BITS)
    chosen = [
        one
        for one in segments
        if (since is None or one.end >= since) and (until is None or one.start <= until)
    ]
    answered = _answered(segments, now)
    labels = [_label(one, segments, last, answered) for one in model.labels]
    window = _window(last, len(model.labels))
    exploration = _exploration_view(facts.exploration, window)
    findings = sorted(_findings(facts, window, labels, now), key=lambda one: _ORDER.index(one.tone))
    return Report(
        now,
        model,
        window,
        _window([one for one in segments if one.end > now - DAY_SECONDS], len(model.labels)),
        _window(chosen, len(model.labels)),
        _series(chosen),
        marks_of(facts),
        labels,
        shadow_views(facts),
        [*findings, *_explored(exploration)],
        _apprentice_view(facts.apprentice),
        exploration,
    )


_ORDER = ["bad", "note", "good"]


# Is it good?


def _suffix(segments: Sequence[Segment], bits: int, label: str | None = None) -> list[Segment]:
    """Return the last segments that have some number of bits together, the oldest first."""
    found: list[Segment] = []
    n = 0
    for one in reversed(segments):
        if n >= bits:
            break
        found.append(one)
        n += one.feedback if label is None else _bits_of(one, label)
    return found[::-1]


def _bits_of(segment: Segment, label: str) -> int:
    counts = segment.labels.get(label)
    return 0 if counts is None else counts.right + counts.wrong


def _bits(segments: Sequence[Segment], label: str | None = None) -> list[tuple[int, int]]:
    """Return the numbers of right and wrong decisions, of one label or of all."""
    if label is None:
        return [(one.right, one.wrong) for one in segments]
    counts = (one.labels.get(label, _NONE) for one in segments)
    return [(one.right, one.wrong) for one in counts]


_NONE = LabelCounts()


def _window(segments: Sequence[Segment], n_labels: int) -> WindowView:
    found = merged(segments)
    if not segments:
        found.start = found.end = 0.0
    return WindowView(
        found.start,
        found.end,
        found.decisions,
        found.explored,
        found.right,
        found.wrong,
        accuracy(found.right, found.wrong),
        _constant(found, n_labels),
        found.chance / found.feedback if found.feedback else None,
    )


def _constant(found: Segment, n_labels: int) -> ConstantView | None:
    """Return the best constant label; the interval holds for all labels together."""
    if not found.feedback:
        return None
    name = max(found.labels, key=lambda one: found.labels[one].right_weight)
    level = 1.0 - (1.0 - LEVEL) / n_labels
    return ConstantView(name, constant_accuracy(name, found.labels, found.feedback, level))


# What changed?


def _series(segments: Sequence[Segment]) -> list[SeriesPoint]:
    """Return accuracies over time, each of enough feedback to mean something."""
    total = sum(one.feedback for one in segments)
    least = max(min(LEAST_WINDOW, total // 4), total // MOST_POINTS)
    points: list[SeriesPoint] = []
    group: list[Segment] = []
    for i, one in enumerate(segments):
        group.append(one)
        if sum(part.feedback for part in group) >= least or i == len(segments) - 1:
            found, group = merged(group), []
            if found.feedback:
                points.append(
                    SeriesPoint(
                        found.start,
                        found.end,
                        found.decisions,
                        found.right,
                        found.wrong,
                        accuracy(found.right, found.wrong),
                    )
                )
    return points


def marks_of(facts: Facts) -> list[MarkView]:
    """Return marks with the accuracy before and after, back and forth to the next mark."""
    segments = facts.segments
    edges = [0, *changes(_bits(segments)), len(segments)]
    marks = list(facts.marks)
    for start, middle, end in zip(edges, edges[1:], edges[2:], strict=False):
        was, now = _sum(segments[start:middle]), _sum(segments[middle:end])
        if was is not None and now is not None and now.high < was.low:
            marks.append(Mark(segments[middle].start, "accuracy fell", []))
    marks.sort(key=lambda mark: mark.at)
    times = [float("-inf"), *(mark.at for mark in marks), float("inf")]
    return [
        MarkView(
            mark.at,
            mark.kind,
            mark.names,
            _sum([one for one in segments if start <= one.start and one.end < mark.at]),
            _sum([one for one in segments if mark.at <= one.start and one.end <= end]),
        )
        for mark, start, end in zip(marks, times, times[2:], strict=False)
    ]


def _sum(segments: Sequence[Segment]) -> Interval | None:
    return accuracy(sum(one.right for one in segments), sum(one.wrong for one in segments))


# Which label is bad?


class _Answered(NamedTuple):
    """Decisions that are old enough for feedback, and how many of them have some, by label."""

    old: dict[str, int]
    answered: dict[str, int]


def _answered(segments: Sequence[Segment], now: float) -> _Answered:
    """Return how many decisions have feedback, at most.

    Feedback that came since the oldest of them was for them, or for others: the number is too
    large rather than too small.
    """
    recent: list[Segment] = []
    for one in reversed(segments):
        if sum(part.decisions for part in recent) >= LATE_DECISIONS:
            break
        recent.append(one)
    old: dict[str, int] = {}
    bits: dict[str, int] = {}
    for one in recent:
        for name, counts in one.labels.items():
            bits[name] = bits.get(name, 0) + counts.right + counts.wrong
            if one.end < now - LATE_SECONDS:
                old[name] = old.get(name, 0) + counts.chosen
    return _Answered(old, {name: min(n, bits.get(name, 0)) for name, n in old.items()})


def _label(
    view: Any, segments: Sequence[Segment], last: Sequence[Segment], answered: _Answered
) -> LabelReport:
    name = str(view.label)
    (changed, *_) = reversed([0, *changes(_bits(segments, name))])
    late = _suffix(segments[changed:], LABEL_BITS, name)
    early = _suffix(segments[: len(segments) - len(late)], LABEL_BITS, name)
    recent, before = _counts(late, name), _counts(early, name)
    now, was = (accuracy(one.right, one.wrong) for one in (recent, before))
    decisions = sum(one.decisions for one in last)
    old = answered.old.get(name, 0)
    return LabelReport(
        view.label,
        view.retired,
        view.chosen,
        _counts(last, name).chosen / decisions if decisions else 0.0,
        now,
        was,
        _trend(was, now, min(recent.right + recent.wrong, before.right + before.wrong)),
        answered.answered[name] / old if old >= LEAST_WINDOW else None,
        dict(sorted(recent.truths.items(), key=lambda item: -item[1])),
        view.description,
    )


def _counts(segments: Sequence[Segment], name: str) -> LabelCounts:
    found = LabelCounts()
    for one in segments:
        if name in one.labels:
            found.add(one.labels[name])
    return found


def _trend(was: Interval | None, now: Interval | None, n: int) -> Any:
    if was is None or now is None or n < LEAST_WINDOW:
        return None
    return "fell" if now.high < was.low else "rose" if now.low > was.high else "steady"


# What should I do?


def shadow_views(facts: Facts) -> list[ShadowView]:
    """Return the shadows of a model, with the accuracy that they would have had."""
    views, model = [], facts.model
    for name, shadow in facts.shadows.items():
        views.append(
            ShadowView(
                name,
                shadow.spec.learner,
                dict(shadow.spec.parameters),
                shadow.since,
                interval_of(watched(shadow.estimate, shadow.pending)),
                accuracy(model.right - shadow.right, model.wrong - shadow.wrong),
                difference_of(compared(shadow.difference, shadow.pending)),
            )
        )
    return views


def _findings(
    facts: Facts, window: WindowView, labels: Sequence[LabelReport], now: float
) -> Iterator[Finding]:
    yield _verdict(window)
    fallen = set()
    for finding in _falls(facts, labels):
        fallen.add(finding.label)
        yield finding
    yield from _confusions(labels)
    yield from _useless(facts, window, labels, fallen)
    yield from _without_feedback(_answered(facts.segments, now))
    for shadow in shadow_views(facts):
        yield _shadow(shadow)
    if facts.apprentice is not None:
        yield _apprentice(facts.apprentice)
    if facts.model.frozen:
        yield Finding("frozen", "note", action="unfreeze" if fallen else None)


def _exploration_view(found: Exploration, window: WindowView) -> ExplorationView:
    return ExplorationView(
        window.explored / window.decisions if window.decisions else None,
        found.right,
        found.wrong,
        accuracy(found.right, found.wrong),
        difference_of(found.compared()),
    )


def _explored(found: ExplorationView) -> Iterator[Finding]:
    """Yield what exploration cost and yielded, once there is enough feedback for it."""
    if found.right + found.wrong >= LEAST_WINDOW and found.cost is not None:
        yield Finding(
            "exploration", "note", now=found.accuracy, difference=found.cost, share=found.share
        )


def _apprentice_view(found: Apprentice | None) -> ApprenticeView | None:
    if found is None:
        return None
    model, product = map(interval_of, found.accuracies())
    return ApprenticeView(
        found.decides,
        found.share,
        found.confidence,
        found.since,
        0 if found.difference is None else found.difference["n"],
        model,
        product,
        difference_of(found.difference),
    )


def _apprentice(found: Apprentice) -> Finding:
    difference, decides = difference_of(found.difference), found.decides
    if difference is not None and difference.low > 0.0:
        action: Action | None = "take_over" if decides == "product" else None
        return Finding("apprentice_better", "good", difference=difference, action=action)
    if difference is not None and difference.high < 0.0:
        is_bad = decides == "model"
        return Finding(
            "apprentice_worse",
            "bad" if is_bad else "note",
            difference=difference,
            action="give_back" if is_bad else None,
        )
    return Finding("apprentice_unclear", "note", difference=difference)


def _verdict(window: WindowView) -> Finding:
    found, best = window.accuracy, window.constant
    kind: Kind
    tone: Tone
    if found is None or best is None or best.accuracy is None:
        return Finding("no_feedback_yet", "note")
    if found.low > best.accuracy.high:
        kind, tone = "better_than_constant", "good"
    elif found.high < best.accuracy.low:
        kind, tone = "worse_than_constant", "bad"
    else:
        kind, tone = "unclear", "note"
    return Finding(kind, tone, now=found, before=best.accuracy, other=best.label)


def _falls(facts: Facts, labels: Sequence[LabelReport]) -> Iterator[Finding]:
    """Yield the falls that last until now: of all labels together, and of each."""
    segments = facts.segments
    names: list[str | None] = [None, *(str(one.label) for one in labels if not one.retired)]
    for name in names:
        bits = _bits(segments, name)
        if (found := fall(bits, changes(bits))) is None:
            continue
        at, before, after = found
        since = segments[at].start
        is_answered = any(mark.kind == "shadow added" and mark.at > since for mark in facts.marks)
        can_help = name is None and not facts.model.frozen and not is_answered
        yield Finding(
            "fell",
            "bad",
            name,
            since=since,
            before=before,
            now=after,
            action="add_shadow" if can_help else None,
        )


def _confusions(labels: Sequence[LabelReport]) -> Iterator[Finding]:
    for one in labels:
        n = sum(one.truths.values())
        if n < LEAST_TRUTHS:
            continue
        other, count = next(iter(one.truths.items()))
        share = accuracy(count, n - count)
        if share is not None and share.low > 0.5:
            yield Finding("confused", "bad", str(one.label), other=other, now=share)


def _useless(
    facts: Facts, window: WindowView, labels: Sequence[LabelReport], fallen: set[str | None]
) -> Iterator[Finding]:
    """Yield labels that are, and always were, right less often than a random label."""
    chance, offered = window.chance, sum(not one.retired for one in labels)
    for one in labels:
        if one.retired or one.recent is None or chance is None or str(one.label) in fallen:
            continue
        if one.recent.high < chance and one.trend in (None, "steady"):
            action: Action | None = "retire" if offered > 2 else None
            yield Finding(
                "useless_label", "bad", str(one.label), now=one.recent, share=chance, action=action
            )


def _without_feedback(found: _Answered) -> Iterator[Finding]:
    old, answered = sum(found.old.values()), sum(found.answered.values())
    for name, n in found.old.items():
        own = accuracy(found.answered[name], n - found.answered[name])
        rest, others = old - n, answered - found.answered[name]
        of_others = accuracy(others, rest - others)
        if own is None or of_others is None or n < LEAST_WINDOW:
            continue
        if own.high < of_others.low and own.estimate < 0.5 * of_others.estimate:
            yield Finding(
                "label_without_feedback",
                "bad",
                name,
                share=1.0 - own.estimate,
                of_others=1.0 - of_others.estimate,
            )
    if old >= LEAST_WINDOW and (share := 1.0 - answered / old) >= MOST_WITHOUT_FEEDBACK:
        yield Finding("without_feedback", "note", share=share)


def _shadow(shadow: ShadowView) -> Finding:
    found = shadow.difference
    if found is not None and found.low > 0.0:
        return Finding(
            "shadow_better", "good", shadow=shadow.name, difference=found, action="promote"
        )
    if found is not None and found.high < 0.0:
        return Finding(
            "shadow_worse", "note", shadow=shadow.name, difference=found, action="remove_shadow"
        )
    return Finding("shadow_unclear", "note", shadow=shadow.name, difference=found)
