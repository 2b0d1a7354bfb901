"""Decisions: made at once by the current state of a model, and returned once they are on disk."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from msgspec import structs

from onebit.core.decision import new_id
from onebit.core.validation import short
from onebit.serve.api import DecisionRequest, DecisionResult, RefusedError
from onebit.serve.live import LiveModel
from onebit.serve.log import Entry
from onebit.serve.model import PendingDecision
from onebit.serve.rows import DecisionBody, body_of, text_of
from onebit.serve.writer import PendingRow

if TYPE_CHECKING:
    from onebit.serve.service import Service


async def decide(
    service: Service,
    live: LiveModel,
    requests: list[DecisionRequest],
    *,
    look_up: bool = False,
    deferred: bool = False,
) -> list[DecisionResult]:
    """Choose a label for each request; all are written before this returns, or none is.

    An id that seems to be new is written without looking it up first, as the log refuses a second
    decision of the same id. Several requests with ids are looked up: otherwise some could be
    written though all have to be refused.

    Parameters
    ----------
    service : Service
    live : LiveModel
    requests : list of DecisionRequest
    look_up : bool, default=False
        Whether some of the ids are known to be in the log.
    deferred : bool, default=False
        Whether the labels may never be shown, so that decisions expire as nothing.
    """
    ids = [request.id for request in requests if request.id is not None]
    known: dict[str, DecisionBody] = {}
    if ids and (look_up or len(requests) > 1 or _is_known(live, ids[0])):
        known = await _known_decisions(service, live, ids)
    rows, results = _choose(live, requests, known, service.limits.features, deferred)
    if not rows:
        return results
    numbers = await _write(service, live, rows, [name for name in ids if name not in known])
    if 0 in numbers:  # the log has a decision with such an id, or the model was removed
        service.check_there(live)
        again = zip(requests, results, strict=True)
        requests = [structs.replace(request, id=result.id) for request, result in again]
        return await decide(service, live, requests, look_up=True, deferred=deferred)
    return results


def _is_known(live: LiveModel, name: str) -> bool:
    return name in live.deciding or name in live.model.awaited


def _choose(
    live: LiveModel,
    requests: list[DecisionRequest],
    known: dict[str, DecisionBody],
    most_features: int,
    deferred: bool,
) -> tuple[list[PendingRow], list[DecisionResult]]:
    """Choose labels where no decision is known; return what to write, and all results."""
    model, at = live.model, time.time()
    rows, results = [], []
    for i, request in enumerate(requests):
        name = new_id() if request.id is None else request.id
        if name in known:
            body = known[name]
            _check_same(request, name, body)
        else:
            try:
                decision, body = model.decide(
                    request.record,
                    request.among,
                    name,
                    most_features,
                    request.chosen,
                    request.chosen_probability,
                    explore=request.explore,
                    cap=model.exploration_cap(),
                    new_cap=model.new_cap(),
                )
            except (ValueError, TypeError) as error:
                where = f"item {i}: " if len(requests) > 1 else ""
                raise RefusedError(422, f"{where}{error}") from None
            if deferred:
                body = structs.replace(body, deferred=True)
            if body.explored and body.exploration_cap is not None:
                model.exploring.add(name)
            if body.is_new:
                model.choosing_new.add(name)
            entry = Entry(live.key, "decision", name, at, text_of(body))
            rows.append(PendingRow(entry, body, PendingDecision(body, decision)))
        results.append(DecisionResult(name, body.label, body.probability, body.confidence))
    return rows, results


def _check_same(request: DecisionRequest, name: str, body: DecisionBody) -> None:
    """Refuse a request whose id belongs to a decision about something else."""
    if body.record != request.record:
        raise RefusedError(409, f"the id {short(name)} is of another record")
    if request.among is not None and body.label not in request.among:
        raise RefusedError(409, f"the id {short(name)} is of another offer")
    if request.chosen != body.chosen:
        raise RefusedError(409, f"the id {short(name)} is of another choice")
    if body.explored and not request.explore:
        raise RefusedError(409, f"the id {short(name)} is of a decision that explored")


def _write(
    service: Service, live: LiveModel, rows: list[PendingRow], ids: list[str]
) -> asyncio.Future[list[int]]:
    """Write decisions; requests for the same ids wait in the meantime."""
    future = service.writer.write(live, rows)
    exploring, choosing_new = live.model.exploring, live.model.choosing_new
    if exploring or choosing_new:
        names = [str(row.entry.id) for row in rows]
        future.add_done_callback(lambda _: exploring.difference_update(names))
        future.add_done_callback(lambda _: choosing_new.difference_update(names))
    if ids:
        live.deciding.update(dict.fromkeys(ids, future))
        future.add_done_callback(lambda _: [live.deciding.pop(name, None) for name in ids])
    return future


async def _known_decisions(
    service: Service, live: LiveModel, ids: list[str]
) -> dict[str, DecisionBody]:
    """Return the existing decisions of these ids, once they are on disk."""
    if len(set(ids)) < len(ids):
        raise RefusedError(422, "two decisions have the same id")
    while busy := [live.deciding[name] for name in ids if name in live.deciding]:
        await asyncio.wait(busy)
    awaited = live.model.awaited
    found = {name: awaited[name].body for name in ids if name in awaited}
    missing = [name for name in ids if name not in found]
    if missing:
        for row in await service.log.find(live.key, missing):
            if row.kind == "decision":
                found[str(row.id)] = body_of(row)
    return found
