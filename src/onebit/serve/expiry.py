"""Expiry: decisions for which no feedback came in time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from onebit.serve.live import LiveModel
from onebit.serve.log import Entry
from onebit.serve.model import PendingDecision
from onebit.serve.replaying import ROWS_AT_ONCE
from onebit.serve.rows import FeedbackBody, Row, body_of, text_of
from onebit.serve.writer import PendingRow

if TYPE_CHECKING:
    from onebit.serve.service import Service

EXPIRY_SECONDS = 1.0
"""Seconds between two looks for expired decisions."""


async def expire_decisions(service: Service) -> None:
    """Write, for expired decisions, what they count as; does not end."""
    while True:
        await asyncio.sleep(EXPIRY_SECONDS)
        for live in list(service.live.values()):
            try:
                while live.is_leader and await _expire_some(service, live):
                    await asyncio.sleep(0)  # requests have their turn
            except Exception as error:
                service.log_error("expiring", error)


async def _expire_some(service: Service, live: LiveModel) -> bool:
    """Look at the next rows of a log; return whether there are more that may have expired."""
    meta = live.model.meta
    if meta.expiry_seconds is None:
        return False
    now = time.time()
    until = now - meta.expiry_seconds
    if live.ahead is not None and live.ahead.at <= until:
        live.expired_up_to, live.ahead = min(live.expired_up_to, live.ahead.n - 1), None
    # Decisions that come from now on are not among the rows that are read.
    end = min(live.expired_up_to + ROWS_AT_ONCE, live.model.n)
    rows = await service.log.unanswered(live.key, live.expired_up_to, ROWS_AT_ONCE)
    # The clock may have been set back: decisions of a time to come hold up no others.
    for row in rows:
        if row.at > now:
            live.postpone(row.n, row.at)
    rows = [row for row in rows if row.at <= now]
    unexpired = [row for row in rows if row.at > until or row.id in live.answering]
    if unexpired:
        rows = rows[: rows.index(unexpired[0])]
        end = min(unexpired[0].n - 1, end)
    if rows:
        await _write(service, live, rows, meta.expired_counts_as == "wrong")
    live.expired_up_to = end
    return not unexpired and end < live.model.n


async def _write(service: Service, live: LiveModel, rows: list[Row], is_wrong: bool) -> None:
    """Write what decisions count as; those that were never shown count as nothing."""
    made = {str(row.id): body_of(row) for row in rows}
    deferred = {name for name, body in made.items() if body.deferred}
    if deferred and is_wrong:
        found = await service.log.find(live.key, list(deferred))
        deferred -= {str(row.id) for row in found if row.kind == "activation"}
    at, entries = time.time(), []
    for name, decision in made.items():
        body = FeedbackBody(expired="wrong" if is_wrong and name not in deferred else "nothing")
        entry = Entry(live.key, "feedback", name, at, text_of(body))
        entries.append(PendingRow(entry, body, PendingDecision(decision)))
    future = service.writer.write(live, entries)
    live.answering.update({str(one.entry.id): (one.body, future) for one in entries})
    try:
        await future
    finally:
        for row in rows:
            live.answering.pop(str(row.id), None)
