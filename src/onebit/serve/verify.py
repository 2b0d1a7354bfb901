"""Replaying a log from its first row, and comparing the result with snapshots and decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from onebit.serve.log import Log, LogError, Snapshot
from onebit.serve.model import Model
from onebit.serve.rows import DecisionBody, Row, body_of
from onebit.serve.service import apply_all, exported


class Verdict(NamedTuple):
    """What `verify` found.

    rows: of the log; equal: rows of the snapshots that were reproduced byte for byte; faults: what
    differs from the log; checked: decisions that were reproduced; unchecked: those of another
    process, made in a state that a replay in order has passed.
    """

    rows: int
    equal: list[int]
    checked: int
    unchecked: int
    faults: list[str]


async def verify(log: Log, key: int, progress: Callable[[int], None] = lambda n: None) -> Verdict:
    """Replay the log of a model from its first row.

    Each snapshot must equal, byte for byte, the model after the rows up to it. Each decision must
    be reproduced, with the same probability, by the model in the state that made it.
    """
    snapshots = {snapshot.n: snapshot async for snapshot in log.snapshots(key)}
    model: Model | None = None
    replay = Verdict(0, [], 0, 0, [])
    waiting: deque[Row] = deque()
    async for rows in exported(log, key):
        for row in rows:
            if row.n != replay.rows + 1:
                raise LogError(f"row {replay.rows + 1} of model {key} is missing")
            replay = replay._replace(rows=row.n)
            if model is None:
                model = Model.begin(row)
                replay = _compare(model, snapshots, replay)
                continue
            if row.kind == "decision":
                # A decision may follow rows that the model had not applied when it decided.
                seen = body_of(row).seen
                while waiting and waiting[0].n <= seen:
                    replay = await _apply(log, model, waiting.popleft(), snapshots, replay)
                replay = _check(model, row, replay)
            waiting.append(row)
        progress(replay.rows)
    if model is None:
        raise LogError(f"the log of model {key} is empty")
    while waiting:
        replay = await _apply(log, model, waiting.popleft(), snapshots, replay)
    return replay


async def _apply(
    log: Log, model: Model, row: Row, snapshots: dict[int, Snapshot], replay: Verdict
) -> Verdict:
    await apply_all(log, model, [row])
    return _compare(model, snapshots, replay)


def _compare(model: Model, snapshots: dict[int, Snapshot], replay: Verdict) -> Verdict:
    snapshot = snapshots.get(model.n)
    if snapshot is None:
        return replay
    if model.snapshot() == (snapshot.meta, snapshot.learners):
        return replay._replace(equal=[*replay.equal, model.n])
    fault = f"the snapshot at row {model.n} is not what the rows up to it make of the model"
    return replay._replace(faults=[*replay.faults, fault])


def _check(model: Model, row: Row, replay: Verdict) -> Verdict:
    body: DecisionBody = body_of(row)
    if body.seen != model.n:
        return replay._replace(unchecked=replay.unchecked + 1)
    # An offer of all labels that are not retired is the model's own default.
    among = body.among
    if among is not None and set(among) == set(model.student.labels) - set(model.student.retired):
        among = None
    student = model.student
    decision = student.decide(student.example(body.record), among, row.id)
    replay = replay._replace(checked=replay.checked + 1)
    if (decision.label, float(decision.probability)) == (body.label, body.probability):
        return replay
    fault = f"row {row.n}: the model decides {decision!r}, and the log says {body.label!r}"
    return replay._replace(faults=[*replay.faults, fault])
