"""Replaying a log from its first row, and comparing the result with snapshots and decisions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple

from onebit.serve.log import Log, LogError, Snapshot
from onebit.serve.model import Model
from onebit.serve.rows import DecisionBody, Row, body_of
from onebit.serve.service import apply_all, exported

READ_AHEAD = 20_000
"""Rows that are read before a model takes the first of them.

A process that is behind decides with a state from before rows that others wrote in the meantime, so
its decision stands in the log after them.
"""


class Verdict(NamedTuple):
    """What `verify` found.

    Attributes
    ----------
    rows : int
        Rows of the log.
    equal : list of int
        Rows whose snapshots were reproduced byte for byte.
    checked : int
        Decisions that were made again in the state that made them.
    unchecked : int
        Decisions that were not, as they were made more than READ_AHEAD rows behind.
    faults : list of str
        What differs from the log.
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
    made: defaultdict[int, list[Row]] = defaultdict(list)
    """Decisions that are not checked yet, by the row after which they were made."""
    async for rows in exported(log, key):
        for row in rows:
            if row.n != replay.rows + 1:
                raise LogError(f"row {replay.rows + 1} of model {key} is missing")
            replay = replay._replace(rows=row.n)
            if model is None:
                model = Model.begin(row)
                replay = _compare(model, snapshots, replay)
                continue
            waiting.append(row)
            if row.kind == "decision":
                made[body_of(row).seen].append(row)
        while model is not None and len(waiting) > READ_AHEAD:
            replay = await _apply(log, model, waiting.popleft(), made, snapshots, replay)
        progress(replay.rows)
    if model is None:
        raise LogError(f"the log of model {key} is empty")
    while waiting:
        replay = await _apply(log, model, waiting.popleft(), made, snapshots, replay)
    left = sum(map(len, made.values()))
    return replay._replace(unchecked=replay.unchecked + left)


async def _apply(
    log: Log,
    model: Model,
    row: Row,
    made: dict[int, list[Row]],
    snapshots: dict[int, Snapshot],
    replay: Verdict,
) -> Verdict:
    """Check the decisions of the current state, and apply the next row."""
    for decision in made.pop(model.n, ()):
        replay = _check(model, decision, replay)
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
