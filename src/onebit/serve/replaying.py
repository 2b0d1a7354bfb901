"""Models from their logs: restored from a snapshot, and brought up to date by the rows since."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
from msgspec import Raw, ValidationError

from onebit.serve.api import LogRow, RefusedError
from onebit.serve.log import Log, LogError
from onebit.serve.messages import ReplayTask
from onebit.serve.model import Model, PendingDecision
from onebit.serve.processes import BackgroundProcesses, Replayed
from onebit.serve.rows import Row, body_of
from onebit.serve.slicing import in_slices

ROWS_AT_ONCE = 1000
"""Rows that are read and applied before other requests get their turn."""

LONG_LOG_ROWS = 10_000
"""Most rows of a log without a sound snapshot that a thread of this process replays."""

EXPORTED_ROWS = 64
"""Rows of a log that are exported before other requests get their turn."""

_encode = msgspec.json.Encoder().encode
_logger = logging.getLogger(__name__)


async def restore(
    log: Log, key: int, processes: BackgroundProcesses | None = None
) -> tuple[Model, int]:
    """Return a model as it is after all rows, and the row of its newest sound snapshot or zero.

    A long log without one is replayed by a background process, if there are `processes`.
    """
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
    replayed = None
    if processes is not None and await log.rows(key, LONG_LOG_ROWS, 1):
        replayed = await _replay_in_background(log, key, processes)
    if replayed is None:
        replayed = await asyncio.to_thread(Model.begin, rows[0])
    await replay(log, key, replayed, in_thread=True)
    return replayed, 0


async def _replay_in_background(log: Log, key: int, processes: BackgroundProcesses) -> Model | None:
    """Return the model of a log; None if there is no process for that, or it fails."""
    if processes.are_all_busy:
        return None
    try:
        async with processes.process() as process:
            async with aclosing(process.run(ReplayTask(), exported(log, key))) as messages:
                (replayed,) = [one async for one in messages if isinstance(one, Replayed)]
            return await asyncio.to_thread(replayed.restored)
    except (RefusedError, RuntimeError) as error:
        _logger.warning("the log of model %d was not replayed in the background: %s", key, error)
        return None


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


def _apply_each(model: Model, rows: list[Row], decisions: dict[str, PendingDecision]) -> None:
    for row in rows:
        if row.kind == "shadow":
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                model.copy().try_change(body_of(row))
        model.apply(row, None, decisions.get(str(row.id)))


async def exported(log: Log, key: int) -> AsyncIterator[bytes]:
    """Yield the lines of a log, some at a time; requests have their turn in between."""
    async for rows in all_rows(log, key, EXPORTED_ROWS):
        yield b"".join(
            _encode(LogRow(row.n, row.kind, row.at, Raw(row.body.encode()), row.id)) + b"\n"
            for row in rows
        )
        await asyncio.sleep(0)


async def all_rows(log: Log, key: int, at_once: int = ROWS_AT_ONCE) -> AsyncIterator[list[Row]]:
    """Yield all rows of a log, some at a time."""
    n = 0
    while rows := await log.rows(key, n, at_once):
        yield rows
        n = rows[-1].n
