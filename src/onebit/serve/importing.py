"""Models from exported logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from msgspec import UNSET

from onebit.serve.api import LogRow, RefusedError
from onebit.serve.live import LiveModel
from onebit.serve.log import Entry, NameTakenError
from onebit.serve.model import Model
from onebit.serve.replaying import apply_rows, in_slices
from onebit.serve.rows import BODIES, FeedbackBody, ModelSpec, Name, Row, body_of, text_of
from onebit.serve.service import Service

_decode = msgspec.json.Decoder(LogRow).decode
IMPORTED_ROWS = 64
"""Rows that are written together: those of requests wait for them."""

PARSED_ROWS = 4
"""Rows that are parsed before requests get their turn."""

_LONGEST = 2**21
"""Longest line, in bytes."""


async def import_log(service: Service, name: str, parts: AsyncIterator[bytes]) -> LiveModel:
    """Make a model of this name from the lines of a log; if a line is wrong, make nothing."""
    try:
        msgspec.convert(name, Name)
    except msgspec.ValidationError as error:
        raise RefusedError(422, f"{error}") from None
    service.check_room(name)
    key, model = None, None
    rows: list[Row] = []
    try:
        async for line in _lines(parts):
            row = _row(line, key or 0, model.n + len(rows) + 1 if model else 1)
            if model is None:
                model = await service.begun(row)
                key = await service.log.add_model(None, row.at, row.body)
                continue
            rows.append(row)
            if len(rows) % PARSED_ROWS == 0:
                await asyncio.sleep(0)  # requests have their turn
            if len(rows) == IMPORTED_ROWS:
                await _append(service, model, rows)
                rows = []
        if model is None or key is None:
            raise RefusedError(422, "the log is empty")
        if rows:
            await _append(service, model, rows)
        await service.log.name_model(key, name)
    except BaseException as error:
        if key is not None:
            await service.log.remove_model(key)
        if isinstance(error, NameTakenError):
            raise RefusedError(409, str(error)) from None
        raise
    return service.add(name, key, model)


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    left = b""
    async for part in parts:
        *lines, left = (left + part).split(b"\n")
        for line in lines:
            yield line
        if len(left) > _LONGEST:
            raise RefusedError(422, f"a line has at most {_LONGEST:,} bytes")
    if left.strip():
        yield left


def _row(line: bytes, key: int, n: int) -> Row:
    try:
        found = _decode(line)
        body = msgspec.json.decode(found.body, type=BODIES[found.kind])
    except (ValueError, RecursionError) as error:
        raise RefusedError(422, f"row {n}: {error}") from None
    if found.n != n:
        raise RefusedError(422, f"row {n} is expected, and there is row {found.n}")
    if (found.id is None) == (found.kind in ("decision", "feedback")):
        raise RefusedError(422, f"row {n}: decisions and feedback have an id, and no other rows")
    if (found.kind == "model") != (n == 1):
        raise RefusedError(422, f"row {n}: the first row makes the model, and no other one")
    if isinstance(body, ModelSpec) and body.seed is None:
        raise RefusedError(422, "the first row has the seed of the model")
    if isinstance(body, FeedbackBody):
        given = (body.correct, body.truth, body.expired)
        if sum(one is not UNSET for one in given) != 1:
            raise RefusedError(422, f"row {n}: feedback has one of correct, truth and expired")
    return Row(key, n, found.kind, found.id, found.at, text_of(body))


async def _append(service: Service, model: Model, rows: list[Row]) -> None:
    """Write rows and apply them to the model."""
    entries = [Entry(row.model, row.kind, row.id, row.at, row.body) for row in rows]
    numbers = await service.log.append(entries)
    if numbers != [row.n for row in rows]:
        first = rows[next(i for i, row in enumerate(rows) if numbers[i] != row.n)]
        raise RefusedError(422, f"row {first.n}: there is a row of its kind and id already")
    try:
        await apply_rows(service.log, model, rows)
        async for row in in_slices(rows):
            if row.kind == "decision":  # including those without feedback
                model.check_decision(body_of(row))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise RefusedError(422, str(error)) from None
    service.check_labels(len(model.learner.labels))
