"""Feedback for decisions: each is learned from once, after it is on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from onebit.core.validation import short
from onebit.serve.amending import feedback_in
from onebit.serve.api import Feedback, FeedbackResult
from onebit.serve.live import LiveModel
from onebit.serve.log import Entry
from onebit.serve.model import Model, PendingDecision, agree
from onebit.serve.rows import ActivationBody, FeedbackBody, body_of, text_of
from onebit.serve.writer import PendingRow

if TYPE_CHECKING:
    from onebit.serve.service import Service


class _Known(NamedTuple):
    """A decision, and its feedback if there is some in the log."""

    decision: PendingDecision
    feedback: FeedbackBody | None = None


async def give_feedback(
    service: Service, live: LiveModel, items: list[Feedback], *, look_up: bool = False
) -> list[FeedbackResult]:
    """Accept feedback; it is written before this returns.

    Parameters
    ----------
    service : Service
    live : LiveModel
    items : list of Feedback
    look_up : bool, default=False
        Whether others have written feedback in the meantime, so that only the log is up to date.
    """
    results: list[FeedbackResult | None] = [None] * len(items)
    await _prepare_rewards(live, items)
    known = await _known(service, live, items, look_up)
    rows: list[PendingRow] = []
    mine: list[int] = []
    waiting: list[tuple[int, FeedbackBody, asyncio.Future[Any]]] = []
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    at = time.time()
    for i, item in enumerate(items):
        name, body = item.id, item.body
        if (fault := fault_of(live.model, item)) is not None:
            results[i] = FeedbackResult(name, "invalid", fault)
        elif name not in known:
            results[i] = FeedbackResult(name, "unknown", "there is no decision of this id")
        elif (earlier := known[name].feedback) is not None:
            results[i] = _compared(name, body, earlier, known[name].decision)
        elif name in live.answering:
            waiting.append((i, *live.answering[name]))
        else:
            entry = Entry(live.key, "feedback", name, at, text_of(body))
            rows.append(PendingRow(entry, body, known[name].decision))
            live.answering[name] = body, future
            mine.append(i)
    if rows:
        for i, n in zip(mine, await _write(service, live, rows, future), strict=True):
            if n:
                results[i] = FeedbackResult(items[i].id, "accepted")
    for i, earlier, other in waiting:
        await asyncio.wait([other])
        if other.exception() is None:
            name, body = items[i].id, items[i].body
            results[i] = _compared(name, body, earlier, known[name].decision)
    left = [i for i, result in enumerate(results) if result is None]
    if left:  # others have written, or failed to write, feedback for these in the meantime
        service.check_there(live)
        more = await give_feedback(service, live, [items[i] for i in left], look_up=True)
        for i, result in zip(left, more, strict=True):
            results[i] = result
    return [result for result in results if result is not None]


async def _prepare_rewards(live: LiveModel, items: Iterable[Feedback]) -> None:
    """Compile what rewards need while other requests go on; this takes seconds, once."""
    if any(item.body.reward is not UNSET for item in items):
        for learner in list(live.model.learners.values()):
            if not learner.is_prepared_for_rewards:
                await asyncio.to_thread(learner.prepare_rewards)


async def _write(
    service: Service, live: LiveModel, rows: list[PendingRow], future: asyncio.Future[Any]
) -> list[int]:
    """Write feedback; other feedback for the same decisions waits in the meantime."""
    try:
        return await service.writer.write(live, rows, future)
    finally:
        for row in rows:
            live.answering.pop(str(row.entry.id), None)


async def _known(
    service: Service, live: LiveModel, items: list[Feedback], look_up: bool
) -> dict[str, _Known]:
    """Return the existing decisions that feedback is for."""
    awaited = {} if look_up else live.model.awaited
    found = {item.id: _Known(awaited[item.id]) for item in items if item.id in awaited}
    missing = {item.id for item in items if item.id not in found}
    if missing:
        rows = await service.log.find(live.key, list(missing))
        words = feedback_in(rows)
        for row in rows:
            if row.kind == "decision":
                name, decision = str(row.id), PendingDecision(body_of(row))
                feedback = words[name].feedback if name in words else None
                found[name] = _Known(decision, feedback)
    return found


async def activate(service: Service, live: LiveModel, name: str) -> bool:
    """Note that a deferred decision is shown; return whether there is a decision of this id."""
    known = await _known(service, live, [Feedback(name)], look_up=False)
    if name not in known:
        return False
    if known[name].decision.body.deferred and known[name].feedback is None:
        body = ActivationBody()
        entry = Entry(live.key, "activation", name, time.time(), text_of(body))
        (n,) = await service.writer.write(live, [PendingRow(entry, body)])
        if not n:  # it was activated before, or the model was removed
            service.check_there(live)
    return True


def fault_of(model: Model, item: Feedback) -> str | None:
    """Return what is wrong with feedback; None if it can be learned from."""
    if sum(one is not UNSET for one in (item.correct, item.truth, item.reward)) != 1:
        return "feedback has one of correct, truth and reward"
    if item.truth is not UNSET and item.truth is not None:
        labels = model.learner.labels
        if item.truth not in labels:
            return f"the truth {short(item.truth)} is none of the labels"
    return None


def _compared(
    name: str, body: FeedbackBody, earlier: FeedbackBody, decision: PendingDecision
) -> FeedbackResult:
    """Return the result of feedback for a decision that has feedback already."""
    if earlier.withdrawn:
        message = "the feedback for this decision was withdrawn; revise it"
        return FeedbackResult(name, "contradiction", message)
    if earlier.expired is not UNSET:
        return FeedbackResult(name, "expired", "no feedback came for this decision in time")
    if agree(body, earlier, decision.body.label):
        return FeedbackResult(name, "repeated")
    message = "other feedback for this decision was accepted before"
    return FeedbackResult(name, "contradiction", message)
