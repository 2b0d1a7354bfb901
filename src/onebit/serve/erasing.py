"""Erasing decisions with their feedback: by their ids, by a field of the record, or by their age.

Of an erased row, its number and its time remain. The model is rebuilt from the remaining rows, so
it knows nothing of the erased ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from onebit.serve.api import Erasure, ErasureResult, RefusedError
from onebit.serve.live import LiveModel
from onebit.serve.log import LogError, ServiceLog
from onebit.serve.replaying import all_rows
from onebit.serve.rows import DecisionBody, Row, body_of
from onebit.serve.slicing import in_slices

if TYPE_CHECKING:
    from onebit.serve.service import Service

_LEFT_IN_FILES = (
    "the decisions are erased, but files still have them, as the log could not be rewritten; "
    "repeat the request"
)


async def erase(service: Service, live: LiveModel, erasure: Erasure) -> ErasureResult:
    """Erase decisions of a model in use; its files have nothing of them when this returns.

    The model is rebuilt in the background; see `Restorer`.
    """
    check(erasure)
    async with service.erasing:
        decisions = await matching(service.log, live.key, erasure)
        if decisions and live.snapshotting is not None:
            await asyncio.gather(live.snapshotting, return_exceptions=True)
        async with service.hold(live) as model:
            model.awaited.clear()  # from now on, they are looked up in the log
        try:
            result = await erase_from(service.log, live.key, decisions)
        finally:  # also if the disk was full after some of them
            live.head = max(live.head, await service.log.head(live.key))
            if decisions and live.head > live.model.n:
                service.restorer.begin(live)
        if decisions:
            service.check_there(live)
            async with service.hold(live):  # requests that knew decisions have written their rows
                pass
            await service.log.sweep(live.key, min(decisions), live.head)
        try:
            await service.log.clean()
        except LogError as error:
            service.log_error(f"rewriting the log without what was erased from {live.name}", error)
            raise RefusedError(503, _LEFT_IN_FILES) from None
        return result


async def erase_from(log: ServiceLog, key: int, decisions: list[int]) -> ErasureResult:
    """Erase decisions of a model, by the numbers of their rows."""
    rows = await log.erase(key, decisions, time.time()) if decisions else 0
    return ErasureResult(len(decisions), rows)


def check(erasure: Erasure) -> None:
    """Refuse an erasure with no criterion, or with several."""
    given = [erasure.ids, erasure.field, erasure.before]
    if sum(one is not UNSET for one in given) != 1:
        raise RefusedError(422, "an erasure has one of ids, field and before")
    if (erasure.field is UNSET) != (erasure.value is UNSET):
        raise RefusedError(422, "an erasure has field and value together")


async def matching(log: ServiceLog, key: int, erasure: Erasure) -> list[int]:
    """Return the numbers of the decisions that are to be erased."""
    if erasure.ids is not UNSET:
        rows = await log.find(key, erasure.ids)
        return [row.n for row in rows if row.kind == "decision"]
    found, matches = [], _matcher(erasure)
    async for rows in all_rows(log, key):
        found += [row.n async for row in in_slices(rows) if row.kind == "decision" and matches(row)]
    return found


def _matcher(erasure: Erasure) -> Callable[[Row], bool]:
    before = erasure.before
    if before is not UNSET:
        return lambda row: row.at < before
    path = [erasure.field] if isinstance(erasure.field, str) else list(erasure.field or [])
    return lambda row: has_field(body_of(row), path, erasure.value)


def has_field(body: DecisionBody, path: list[str], value: Any) -> bool:
    """Return whether the record of a decision has a value, or a list with it, in a field."""
    found = body.record
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return any(_is_same(one, value) for one in (found if isinstance(found, list) else [found]))


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, also if one of them is the other one as text."""
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (one, other))
    return one == other if numbers else _text(one) == _text(other)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
