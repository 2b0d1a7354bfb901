"""Revised feedback: a row of its own, with which the model is made again."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from msgspec import UNSET

from onebit.serve.amending import LastWord, feedback_in
from onebit.serve.api import Feedback, FeedbackResult, Revision
from onebit.serve.feedback import fault_of, give_feedback
from onebit.serve.live import LiveModel
from onebit.serve.log import Entry
from onebit.serve.rows import FeedbackBody, RevisionBody, text_of
from onebit.serve.writer import PendingRow

if TYPE_CHECKING:
    from onebit.serve.service import Service


async def revise(service: Service, live: LiveModel, items: list[Revision]) -> list[FeedbackResult]:
    """Accept feedback in place of earlier feedback; it is written before this returns.

    For a decision without feedback, it is the first.
    """
    while busy := [live.answering[item.id][1] for item in items if item.id in live.answering]:
        await asyncio.wait(busy)
    rows = await service.log.find(live.key, [item.id for item in items])
    decided, given = {row.id for row in rows if row.kind == "decision"}, feedback_in(rows)
    results: list[FeedbackResult | None] = [None] * len(items)
    first: list[int] = []
    revised: list[int] = []
    for i, item in enumerate(items):
        if (fault := _fault(live, item)) is not None:
            results[i] = FeedbackResult(item.id, "invalid", fault)
        elif item.id not in decided:
            results[i] = FeedbackResult(item.id, "unknown", "there is no decision of this id")
        elif item.id in given and _is_same(item, given[item.id].feedback):
            results[i] = FeedbackResult(item.id, "repeated")
        elif item.id in given:
            revised.append(i)
        elif item.withdrawn:
            message = "there is no feedback to withdraw"
            results[i] = FeedbackResult(item.id, "contradiction", message)
        else:
            first.append(i)
    for i in await _write(service, live, [items[i] for i in revised], given, revised):
        results[i] = FeedbackResult(items[i].id, "accepted")
    if first:
        given_first = [items[i] for i in first]
        feedback = [Feedback(one.id, one.correct, one.truth, one.reward) for one in given_first]
        for i, result in zip(first, await give_feedback(service, live, feedback), strict=True):
            if result.status not in ("contradiction", "expired"):
                results[i] = result
    left = [i for i, result in enumerate(results) if result is None]
    if left:  # others have written feedback for these in the meantime
        service.check_there(live)
        more = await revise(service, live, [items[i] for i in left])
        for i, result in zip(left, more, strict=True):
            results[i] = result
    return [result for result in results if result is not None]


async def _write(
    service: Service,
    live: LiveModel,
    items: list[Revision],
    given: dict[str, LastWord],
    places: list[int],
) -> list[int]:
    """Write revisions; return the places of those that are written."""
    if not items:
        return []
    at, rows = time.time(), []
    for item in items:
        said = item.body
        body = RevisionBody(
            said.correct,
            said.truth,
            said.reward,
            withdrawn=item.withdrawn,
            since=given[item.id].row,
        )
        rows.append(PendingRow(Entry(live.key, "revision", item.id, at, text_of(body)), body))
    numbers = await service.writer.write(live, rows)
    return [i for i, n in zip(places, numbers, strict=True) if n]


def _fault(live: LiveModel, item: Revision) -> str | None:
    if item.withdrawn:
        if item.correct is UNSET and item.truth is UNSET and item.reward is UNSET:
            return None
        return "what is withdrawn has no other feedback"
    return fault_of(live.model, item)


def _is_same(item: Revision, word: FeedbackBody) -> bool:
    body = item.body
    said = (body.correct, body.truth, body.reward, UNSET, item.withdrawn)
    return said == (word.correct, word.truth, word.reward, word.expired, word.withdrawn)
