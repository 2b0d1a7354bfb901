"""Models from their logs: restored from a snapshot, and brought up to date by the rows since."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec
from msgspec import Raw, ValidationError

from onebit.serve.amending import amended, amendments_of, is_current, last_words
from onebit.serve.api import LogRow, RefusedError
from onebit.serve.log import LogError, ServiceLog
from onebit.serve.messages import ReplayTask
from onebit.serve.model import Model, PendingDecision
from onebit.serve.processes import BackgroundProcesses, Replayed
from onebit.serve.rows import AMENDING, Row, body_of
from onebit.serve.slicing import give_way, in_slices

ROWS_AT_ONCE = 1000
"""Rows that are read and applied before other requests get their turn."""

LONG_LOG_ROWS = 10_000
"""Maximum rows of a log without a sound snapshot that a thread of this process replays."""

EXPORTED_ROWS = 16
"""Rows of a log that are exported before other requests get their turn."""

_encode = msgspec.json.Encoder().encode
_logger = logging.getLogger(__name__)


async def restore(
    log: ServiceLog, key: int, processes: BackgroundProcesses | None = None
) -> tuple[Model, int]:
    """Return a model after all current rows, and the row of the snapshot it began with, or zero.

    Of the snapshots, it is the newest that is sound and that no later row has amended. A long log
    without one is replayed by a background process, if there are `processes`.
    """
    head = await log.head(key)
    amendments = amendments_of(await log.amendments(key), head)
    words = last_words(amendments)
    async for snapshot in log.snapshots(key):
        if snapshot.n > head or not is_current(snapshot.n, amendments):
            continue
        try:
            model = await asyncio.to_thread(Model.restore, snapshot.meta, snapshot.learners)
        except (ValueError, ValidationError) as error:
            _logger.warning("the snapshot of model %d at row %d: %s", key, snapshot.n, error)
            continue
        if snapshot.code != log.code:
            _logger.info("model %d continues from a snapshot of another version", key)
        await replay_to(log, key, model, head, words)
        return model, snapshot.n
    rows = await log.rows(key, 0, 1)
    if not rows:
        raise LogError(f"the log of model {key} is empty")
    replayed = None
    if processes is not None and head > LONG_LOG_ROWS:
        lines = exported(log, key, head, words)
        replayed = await _replay_in_background(key, processes, lines)
    if replayed is None:
        replayed = await asyncio.to_thread(Model.begin, rows[0])
    await replay_to(log, key, replayed, head, words)
    return replayed, 0


async def _replay_in_background(
    key: int, processes: BackgroundProcesses, lines: AsyncIterator[bytes]
) -> Model | None:
    """Return the model of the lines of a log; None if no process is free for that, or it fails."""
    if processes.are_all_busy:
        return None
    try:
        async with processes.process() as process:
            async with aclosing(process.run(ReplayTask(), lines)) as messages:
                (replayed,) = [one async for one in messages if isinstance(one, Replayed)]
            return await asyncio.to_thread(replayed.restored)
    except (RefusedError, RuntimeError) as error:
        _logger.warning("the log of model %d was not replayed in the background: %s", key, error)
        return None


async def replay_to(
    log: ServiceLog, key: int, model: Model, head: int, words: dict[str, str]
) -> None:
    """Apply the rows up to a number, in a thread, to a model that nobody else uses.

    Parameters
    ----------
    log : ServiceLog
    key : int
        Of the model.
    model : Model
    head : int
        Number of the last row to apply.
    words : dict
        The last revision of each feedback, as `last_words` returns it.
    """
    async for rows in all_rows(log, key, after=model.n, until=head):
        await apply_rows(log, model, amended(rows, words), in_thread=True)


async def replay(log: ServiceLog, key: int, model: Model) -> bool:
    """Apply all rows that a model has not applied yet, up to one that amends earlier rows.

    Return False if there is such a row: the model has to be restored.
    """
    while rows := await log.rows(key, model.n, ROWS_AT_ONCE):
        amending = next((i for i, row in enumerate(rows) if row.kind in AMENDING), len(rows))
        await apply_rows(log, model, rows[:amending])
        if amending < len(rows) and rows[amending].n > model.n:
            return False
        await asyncio.sleep(0)
    return True


async def apply_rows(
    log: ServiceLog, model: Model, rows: list[Row], *, in_thread: bool = False
) -> None:
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
            _apply(model, row, decisions)


def _apply_each(model: Model, rows: list[Row], decisions: dict[str, PendingDecision]) -> None:
    for row in rows:
        if row.kind == "shadow":
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                model.copy().try_change(body_of(row))
        _apply(model, row, decisions)


def _apply(model: Model, row: Row, decisions: dict[str, PendingDecision]) -> None:
    """Apply a row; feedback for a decision that was erased in the meantime counts as nothing."""
    if row.kind == "feedback" and row.id not in decisions:
        row = Row(row.model, row.n, "erased", None, row.at, "{}", row.code)
    model.apply(row, None, decisions.get(str(row.id)))


async def exported(
    log: ServiceLog, key: int, until: int | None = None, words: dict[str, str] | None = None
) -> AsyncIterator[bytes]:
    """Yield the lines of a log, some at a time; requests have their turn in between.

    A row names the code that made it if that is not the code of the row before.

    Parameters
    ----------
    log : ServiceLog
    key : int
        Of the model.
    until : int, optional
        The last row; by default the last of all.
    words : dict, optional
        Revisions to show in place of feedback, as `last_words` returns them.
    """
    names, code = await log.codes(), None
    async for rows in all_rows(log, key, EXPORTED_ROWS, until=until):
        lines = []
        for row in amended(rows, words) if words else rows:
            name = None if row.code == code else names.get(row.code or 0, "")
            code = row.code
            lines.append(
                _encode(LogRow(row.n, row.kind, row.at, Raw(row.body.encode()), row.id, name))
            )
        yield b"\n".join([*lines, b""])
        await give_way()


async def all_rows(
    log: ServiceLog,
    key: int,
    at_once: int = ROWS_AT_ONCE,
    *,
    after: int = 0,
    until: int | None = None,
) -> AsyncIterator[list[Row]]:
    """Yield the rows of a log that follow a row, up to another one, some at a time."""
    while until is None or after < until:
        limit = at_once if until is None else min(at_once, until - after)
        rows = await log.rows(key, after, limit)
        if not rows:
            return
        yield rows
        after = rows[-1].n
