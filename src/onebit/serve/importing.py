"""Models from exported logs.

A background process parses, validates and replays a log; this one only writes the rows that come
back, a few at a time, and adopts the model at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import msgspec

from onebit.serve.api import RefusedError
from onebit.serve.applying import STOP_ROWS
from onebit.serve.live import LiveModel
from onebit.serve.log import LogImport, NameTakenError, ServiceLog, Snapshot
from onebit.serve.messages import ImportTask, ReplayedRows
from onebit.serve.model import Model
from onebit.serve.processes import BackgroundProcess
from onebit.serve.replaying import restore
from onebit.serve.rows import Name
from onebit.serve.service import Service

LONGEST_LINE = 2**21
"""Longest line of a log, in bytes."""


async def import_log(service: Service, name: str, parts: AsyncIterator[bytes]) -> LiveModel:
    """Make a model of this name from the lines of a log; if a line is wrong, make nothing."""
    try:
        msgspec.convert(name, Name)
    except msgspec.ValidationError as error:
        raise RefusedError(422, f"{error}") from None
    service.check_room(name)
    async with service.processes.process() as process:
        service.check_room(name)  # there may be one since
        return await _import(service, name, process, parts)


async def _import(
    service: Service, name: str, process: BackgroundProcess, parts: AsyncIterator[bytes]
) -> LiveModel:
    task = ImportTask(service.limits.labels, LONGEST_LINE)
    written: LogImport | None = None
    try:
        async with aclosing(process.run(task, parts)) as messages:
            async for message in messages:
                if isinstance(message, ReplayedRows):
                    written = await _write(service.log, written, message)
                else:
                    snapshot = await asyncio.to_thread(message.snapshot)
                    is_revised = message.model.is_revised
        model = await asyncio.to_thread(_restored, snapshot)
        assert written is not None
        kept = snapshot if snapshot.n >= STOP_ROWS and not is_revised else None
        with service.differing(name):
            await written.finish(name, snapshot.n, kept)
            if is_revised:
                model, _ = await restore(service.log, written.key, service.processes)
            return service.add(name, written.key, model, 0 if kept is None else kept.n)
    except BaseException as error:
        if written is not None:
            await written.abort()
        if isinstance(error, NameTakenError):
            raise RefusedError(409, str(error)) from None
        raise


async def _write(log: ServiceLog, written: LogImport | None, message: ReplayedRows) -> LogImport:
    """Write the next rows; the first one begins the import."""
    rows = message.rows
    if written is None:
        written = await log.begin_import(rows[0])
        rows = rows[1:]
    if rows:
        await written.append(rows)
    return written


def _restored(snapshot: Snapshot) -> Model:
    """Return the model of a snapshot, fully compiled."""
    model = Model.restore(snapshot.meta, snapshot.learners)
    for learner in model.learners.values():
        learner.warm_up()
    return model
