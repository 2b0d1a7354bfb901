"""Models and decisions as the HTTP interface shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from onebit.serve.api import (
    DecisionView,
    LabelView,
    ListedModel,
    ModelDetail,
    ModelView,
    PointView,
    ShadowView,
)
from onebit.serve.estimates import accuracy, falls, interval_of, watched
from onebit.serve.live import LiveModel
from onebit.serve.log import Log
from onebit.serve.model import Meta, is_right
from onebit.serve.rows import DecisionBody, FeedbackBody, body_of
from onebit.serve.slicing import in_slices
from onebit.serve.statistics import Statistics, Tally


def view_of(live: LiveModel) -> ModelView:
    """Return a model as it is shown."""
    return ModelView(**_fields(live))


async def list_of(live: Iterable[LiveModel], unread: Iterable[str]) -> list[Any]:
    """Return models as they are listed, by name; those that were not read yet by name alone."""
    shown = [ListedModel(is_loaded=True, **_fields(one)) async for one in in_slices(live)]
    shown += [ListedModel(name=name, is_loaded=False) for name in unread]
    return sorted(shown, key=lambda one: one.name)


def detail_of(live: LiveModel) -> tuple[dict[str, Any], Meta]:
    """Return a copy of what `finish_detail` needs, as that may run in another thread."""
    return _fields(live), live.model.copy_of_meta()


def finish_detail(fields: dict[str, Any], meta: Meta) -> ModelDetail:
    """Return a model with how it did over time; intervals take a while the first time."""
    statistics = meta.statistics
    curve = [
        PointView(*point, accuracy=accuracy(point.right, point.wrong)) for point in statistics.curve
    ]
    changes = falls([(point.right, point.wrong) for point in statistics.curve])
    return ModelDetail(
        **fields,
        curve=curve,
        changes=[statistics.curve[i].at for i in changes],
        shadows=_shadows(meta, statistics),
    )


def _shadows(meta: Meta, statistics: Statistics) -> list[ShadowView]:
    views = []
    for name, shadow in sorted(meta.shadows.items()):
        right, wrong = statistics.right - shadow.right, statistics.wrong - shadow.wrong
        views.append(
            ShadowView(
                name,
                shadow.spec.learner,
                dict(shadow.spec.parameters),
                shadow.since,
                interval_of(watched(shadow.estimate, shadow.pending)),
                accuracy(right, wrong),
            )
        )
    return views


def _fields(live: LiveModel) -> dict[str, Any]:
    meta, shape = live.model.meta, live.model.shape
    statistics, retired = meta.statistics, set(shape.retired)
    labels = [
        LabelView(label, label in retired, tally.chosen, tally.right, tally.wrong)
        for label in shape.labels
        for tally in [statistics.labels.get(str(label), Tally())]
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
        "decisions": statistics.decisions,
        "explored": statistics.explored,
        "right": statistics.right,
        "wrong": statistics.wrong,
        "expired": statistics.expired,
        "awaited": statistics.awaited,
        "accuracy": accuracy(statistics.right, statistics.wrong),
        "labels": labels,
    }


async def newest(log: Log, live: LiveModel, limit: int) -> list[DecisionView]:
    """Return the newest decisions, with their feedback."""
    made = await log.newest(live.key, limit)
    rows = await log.find(live.key, [str(row.id) for row in made]) if made else []
    given: dict[str | None, FeedbackBody] = {
        row.id: body_of(row) for row in rows if row.kind == "feedback"
    }
    views = []
    for row in made:
        body: DecisionBody = body_of(row)
        feedback = given.get(row.id)
        truth = None if feedback is None or feedback.truth is UNSET else feedback.truth
        views.append(
            DecisionView(
                str(row.id),
                row.at,
                body.record,
                body.label,
                body.probability,
                body.explored,
                None if feedback is None else is_right(feedback, body.label),
                truth,
                feedback is not None and feedback.expired is not UNSET,
            )
        )
    return views
