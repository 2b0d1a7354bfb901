"""Models from their logs: restored from a snapshot, and brought up to date by the rows since."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from msgspec import ValidationError

from onebit.serve.log import Log, LogError
from onebit.serve.model import Model, PendingDecision
from onebit.serve.rows import Row, body_of

ROWS_AT_ONCE = 1000
"""Rows that are read and applied before other requests get their turn."""

SLICE_SECONDS = 0.0001
"""Seconds of work on rows before requests get their turn, where the event loop does it.

A thread would hold the interpreter for longer, as the operating system decides who runs next.
"""

_logger = logging.getLogger(__name__)


async def restore(log: Log, key: int) -> tuple[Model, int]:
    """Return a model as it is after all rows, and the row of its newest sound snapshot or zero."""
    async for snapshot in log.snapshots(key):
        try:
            model = await asyncio.to_thread(Model.restore, snapshot.meta, snapshot.learners)
        except (ValueError, ValidationError) as error:
            _logger.warning("the snapshot of model %d at row %d: %s", key, snapshot.n, error)
            continue
        if snapshot.code != log.code:
            _logger.info("model %d continues from a snapshot of another version", key)
        await replay(log, key, model, in_thread=True)
        return model, snapshot.n
    rows = await log.rows(key, 0, 1)
    if not rows:
        raise LogError(f"the log of model {key} is empty")
    model = await asyncio.to_thread(Model.begin, rows[0])
    await replay(log, key, model, in_thread=True)
    return model, 0


async def replay(log: Log, key: int, model: Model, *, in_thread: bool = False) -> None:
    """Apply all rows that a model has not applied yet; in a thread, if nobody else uses it."""
    while rows := await log.rows(key, model.n, ROWS_AT_ONCE):
        await apply_rows(log, model, rows, in_thread=in_thread)
        await asyncio.sleep(0)


async def apply_rows(log: Log, model: Model, rows: list[Row], *, in_thread: bool = False) -> None:
    """Apply the next rows to a model; the decisions they are about are read from the log.

    What a new shadow needs is compiled in a thread first.
    """
    wanted = {str(row.id) for row in rows if row.kind == "feedback"}
    # A model may drop these before it reaches their feedback.
    decisions = {name: model.awaited[name] for name in wanted if name in model.awaited}
    found = [row for row in rows if row.kind == "decision" and row.id in wanted]
    missing = list(wanted - decisions.keys() - {row.id for row in found})
    for i in range(0, len(missing), ROWS_AT_ONCE):
        found += await log.find(rows[0].model, missing[i : i + ROWS_AT_ONCE])
    decisions |= {
        str(row.id): PendingDecision(body_of(row)) for row in found if row.kind == "decision"
    }
    if in_thread:
        await asyncio.to_thread(_apply_each, model, rows, decisions)
        return
    async for row in in_slices(rows):
        if row.kind == "shadow":
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                await asyncio.to_thread(model.copy().try_change, body_of(row))
        if row.n > model.n:  # others may have applied some of them while these were read
            model.apply(row, None, decisions.get(str(row.id)))


async def in_slices(rows: list[Row]) -> AsyncIterator[Row]:
    """Yield rows, and let requests have their turn in between."""
    start = time.perf_counter()
    for row in rows:
        yield row
        if time.perf_counter() - start > SLICE_SECONDS:
            await asyncio.sleep(0)
            start = time.perf_counter()


def _apply_each(model: Model, rows: list[Row], decisions: dict[str, PendingDecision]) -> None:
    for row in rows:
        if row.kind == "shadow":
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                model.copy().try_change(body_of(row))
        model.apply(row, None, decisions.get(str(row.id)))


async def exported(log: Log, key: int) -> AsyncIterator[list[Row]]:
    """Yield all rows of a log, some at a time."""
    n = 0
    while rows := await log.rows(key, n, ROWS_AT_ONCE):
        yield rows
        n = rows[-1].n
