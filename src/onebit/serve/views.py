"""Models and decisions as the HTTP interface shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, structs

from onebit.serve.amending import feedback_in
from onebit.serve.api import (
    DecisionView,
    ExplanationRequest,
    ExplanationView,
    LabelView,
    ListedModel,
    ModelDetail,
    ModelView,
    PointView,
    ReasonView,
)
from onebit.serve.estimates import accuracy
from onebit.serve.live import LiveModel
from onebit.serve.log import ServiceLog
from onebit.serve.model import Model, is_right
from onebit.serve.report import Facts, marks_of, shadow_views
from onebit.serve.rows import DecisionBody, body_of
from onebit.serve.slicing import in_slices
from onebit.serve.statistics import Segment, Tally, merged
from onebit.serve.versions import version_marks

MOST_REASONS = 12
"""Reasons that are shown; the others are summed up."""

LONGEST_SHOWN = 300
"""Most characters of a description that are shown; the log has it whole."""


def view_of(live: LiveModel) -> ModelView:
    """Return a model as it is shown."""
    return ModelView(**_fields(live))


async def list_of(live: Iterable[LiveModel], unread: Iterable[str]) -> list[Any]:
    """Return models as they are listed, by name; those that were not read yet by name alone."""
    shown = [ListedModel(is_loaded=True, **_fields(one)) async for one in in_slices(live)]
    shown += [ListedModel(name=name, is_loaded=False) for name in unread]
    return sorted(shown, key=lambda one: one.name)


async def facts_of(log: ServiceLog, live: LiveModel) -> Facts:
    """Return a copy of what a report needs, as it is made in another thread."""
    model = live.model
    if live.versions is None:  # of processes that ran before; this one has one version
        live.versions = await version_marks(log, live.key, model.n)
    segments = list(model.meta.statistics.segments)
    if segments:  # only the last one changes
        segments[-1] = merged(segments[-1:])
    marks = sorted([*model.meta.statistics.marks, *live.versions])
    shadows = {
        name: structs.replace(shadow, pending=list(shadow.pending))
        for name, shadow in sorted(model.meta.shadows.items())
    }
    apprentice = model.meta.apprentice
    if apprentice is not None:
        apprentice = structs.replace(apprentice, pending=list(apprentice.pending))
    exploration = model.meta.exploration
    exploration = structs.replace(exploration, pending=list(exploration.pending))
    return Facts(view_of(live), shadows, segments, marks, apprentice, exploration)


def detail_of(facts: Facts) -> ModelDetail:
    """Return a model with how it did over time; intervals take a while the first time."""
    curve = []
    total = Segment()
    for segment in facts.segments:
        total.add(segment)
        counts = (total.decisions, total.explored, total.right, total.wrong)
        curve.append(PointView(segment.end, *counts, accuracy(total.right, total.wrong)))
    falls = [mark.at for mark in marks_of(facts) if mark.kind == "accuracy fell"]
    fields = structs.asdict(facts.model)
    return ModelDetail(**fields, curve=curve, changes=falls, shadows=shadow_views(facts))


def _fields(live: LiveModel) -> dict[str, Any]:
    meta, shape = live.model.meta, live.model.shape
    statistics, retired = meta.statistics, set(shape.retired)
    labels = [
        LabelView(label, label in retired, tally.chosen, tally.right, tally.wrong, description)
        for label in shape.labels
        for tally in [statistics.labels.get(str(label), Tally())]
        for description in [_shown(meta.descriptions.get(str(label)))]
    ]
    return {
        "name": live.name,
        "learner": meta.decider.learner,
        "parameters": dict(meta.decider.parameters),
        "input": meta.spec.input,
        "n_features": shape.n_features,
        "rows": meta.n,
        "behind": max(live.head - meta.n, 0),
        "is_leader": live.is_leader,
        "frozen": meta.frozen,
        "expiry_seconds": meta.expiry_seconds,
        "expired_counts_as": meta.expired_counts_as,
        "max_exploration": None if meta.exploration_limit is None else meta.exploration_limit.share,
        "max_new_share": None if meta.new_limit is None else meta.new_limit.share,
        "decisions": statistics.decisions,
        "explored": statistics.explored,
        "right": statistics.right,
        "wrong": statistics.wrong,
        "expired": statistics.expired,
        "awaited": statistics.awaited,
        "accuracy": accuracy(statistics.right, statistics.wrong),
        "labels": labels,
    }


def _shown(description: str | None) -> str | None:
    """Return what a label means, from JSON, as people read it."""
    if description is None:
        return None
    text = msgspec.json.decode(description) if description.startswith('"') else description
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def explanation_of(
    model: Model, request: ExplanationRequest, most_features: int
) -> ExplanationView:
    """Return why one label scores higher than another one."""
    model.check_size(model.learner.example(request.record), most_features)
    found = model.learner.explain(request.record, request.label, request.against, request.among)
    reasons = [ReasonView(*one) for one in found.shown(MOST_REASONS)]
    return ExplanationView(
        found.label, found.against, found.probabilities, found.difference, reasons
    )


async def newest(log: ServiceLog, live: LiveModel, limit: int) -> list[DecisionView]:
    """Return the newest decisions, with their feedback."""
    made = await log.newest(live.key, limit)
    rows = await log.find(live.key, [str(row.id) for row in made]) if made else []
    given = feedback_in(rows)
    views = []
    for row in made:
        body: DecisionBody = body_of(row)
        word = given.get(str(row.id))
        feedback = None if word is None else word.feedback
        truth = None if feedback is None or feedback.truth is UNSET else feedback.truth
        views.append(
            DecisionView(
                str(row.id),
                row.at,
                body.record,
                body.label,
                body.probability,
                body.explored,
                None if feedback is None else is_right(feedback, body.label, str(row.id)),
                truth,
                None if feedback is None or feedback.reward is UNSET else feedback.reward,
                feedback is not None and feedback.expired is not UNSET,
            )
        )
    return views
