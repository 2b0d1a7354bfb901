"""Replaying a log from its first row, and comparing the result with snapshots and decisions."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple

from onebit.serve.amending import Amendment, amendments_of, is_current, last_words
from onebit.serve.applying import SNAPSHOT_ROWS
from onebit.serve.code import this_code
from onebit.serve.log import LogError, ServiceLog, Snapshot
from onebit.serve.model import Model
from onebit.serve.replaying import all_rows, apply_rows, replay_to
from onebit.serve.rows import DecisionBody, Row, body_of

READ_AHEAD = 20_000
"""Rows that are read before a model applies the first of them.

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
        Decisions that were made again, and are the same or a fault.
    unchecked : int
        Decisions that were not made again, as they were made more than READ_AHEAD rows behind.
    erased : int
        Decisions that cannot be made again, as the model had learned from rows erased since then.
    other_snapshots, other_decisions : int
        Snapshots and decisions of another version that this one does not reproduce.
    versions : list of str
        The other versions.
    faults : list of str
        What differs from the log, and no other version explains.
    """

    rows: int
    equal: list[int]
    checked: int
    unchecked: int
    erased: int
    other_snapshots: int
    other_decisions: int
    versions: list[str]
    faults: list[str]


async def verify(
    log: ServiceLog, key: int, progress: Callable[[int], None] = lambda n: None
) -> Verdict:
    """Replay the log of a model from its first row.

    Each snapshot must equal, byte for byte, the model after the rows up to it. Each decision must
    be reproduced, with the same probability, by the model in the state that made it. Another
    version of the code may have done both differently: where it did, this one continues from the
    last snapshot before its own first row, as the service did. Revised feedback counts from the row
    of the revision on, and what was made between an erased row and the erasure is not compared.
    """
    amendments = amendments_of(await log.amendments(key), sys.maxsize)
    snapshots = {snapshot.n: snapshot async for snapshot in log.snapshots(key)}
    replay = _Replay(log, key, snapshots, await log.codes(), amendments)
    async for rows in all_rows(log, key):
        for row in rows:
            await replay.read(row)
        while len(replay.waiting) > READ_AHEAD:
            await replay.apply_next()
        progress(replay.rows)
    if not replay.rows:
        raise LogError(f"the log of model {key} is empty")
    while replay.waiting:
        await replay.apply_next()
    return replay.verdict()


class _Replay:
    """A model that is made again from its log, and what differs from it."""

    model: Model

    def __init__(
        self,
        log: ServiceLog,
        key: int,
        snapshots: dict[int, Snapshot],
        codes: dict[int, str],
        amendments: list[Amendment],
    ) -> None:
        self._log, self._key, self._snapshots, self._codes = log, key, snapshots, codes
        self._revisions = [one for one in amendments if one.id is not None]
        self._erasures = [one for one in amendments if one.id is None]
        self._n = 1
        """The last row up to which the model was made again, or is to be (`_is_revised`)."""
        self._is_revised = False
        """Whether feedback was revised that the model has applied."""
        self._earlier: list[Model] = []
        """States to begin with after a revision."""
        self._own = {key for key, name in codes.items() if name == this_code()}
        self.rows = 0
        self.waiting: deque[Row] = deque()
        """Rows that are read, and not applied yet."""
        self._made: defaultdict[int, list[Row]] = defaultdict(list)
        """Decisions that are not checked yet, by the row after which they were made."""
        self._has_own_rows = self._differs = False
        """Whether this code wrote rows, and whether another one was at work since then."""
        self._has_adopted = self._is_of_another = False
        """Whether it continued from a snapshot of other code, and whether other code had decided
        otherwise, in a log that was imported without the snapshots from which this code began."""
        self._equal: list[int] = []
        self._faults: list[str] = []
        self._checked = self._erased = self._other_snapshots = self._other_decisions = 0
        self._others: set[int | None] = set()

    async def read(self, row: Row) -> None:
        """Read the next row of the log."""
        if row.n != self.rows + 1:
            raise LogError(f"row {self.rows + 1} of model {row.model} is missing")
        self.rows = row.n
        if row.n == 1:
            self.model = Model.begin(row)
            self._earlier.append(self.model.copy())
            await self._compare()
            return
        self.waiting.append(row)
        if row.kind == "decision":
            self._made[body_of(row).seen].append(row)

    async def apply_next(self) -> None:
        """Check the decisions of the current state, and apply the next row."""
        for decision in self._made.pop(self._n, ()):
            await self._check(decision)
        row = self.waiting.popleft()
        self._n = row.n
        self._has_own_rows = self._has_own_rows or row.code in self._own
        self._is_revised = self._is_revised or row.kind == "revision"
        if not self._is_revised:
            await apply_rows(self._log, self.model, [row])
            if row.n % SNAPSHOT_ROWS == 0:
                self._earlier = [*self._earlier[:1], *self._earlier[1:][-2:], self.model.copy()]
        await self._compare()

    async def _apply_revisions(self) -> None:
        """Make the model again, with feedback as it was revised up to now."""
        revisions = [one for one in self._revisions if one.n <= self._n]
        self._earlier = [one for one in self._earlier if is_current(one.n, revisions)]
        self.model, self._is_revised = self._earlier[-1].copy(), False
        await replay_to(self._log, self._key, self.model, self._n, last_words(revisions))
        # The service began with a snapshot; of another version, it may have been another state.
        self._differs = self._differs or bool(self._others)

    @property
    def _is_erased(self) -> bool:
        """Whether the state after the last row cannot be made again."""
        return not is_current(self._n, self._erasures)

    def verdict(self) -> Verdict:
        """Return what was found."""
        return Verdict(
            self.rows,
            self._equal,
            self._checked,
            sum(map(len, self._made.values())),
            self._erased,
            self._other_snapshots,
            self._other_decisions,
            sorted({self._codes.get(code or 0, "an earlier version") for code in self._others}),
            self._faults,
        )

    async def _compare(self) -> None:
        snapshot = self._snapshots.get(self._n)
        if snapshot is None or self._is_erased:
            return
        if self._is_revised:
            await self._apply_revisions()
        if self.model.snapshot() == (snapshot.meta, snapshot.learners):
            self._equal.append(self.model.n)
            self._is_of_another = False
        elif snapshot.code in self._own and not self._differs:
            self._faults.append(
                f"the snapshot at row {snapshot.n} is not what the rows up to it make of the model"
            )
        else:
            self._other_snapshots += 1
            self._others.add(snapshot.code)
            self._adopt(snapshot)

    def _adopt(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of other code, unless rows of this code came before it."""
        if self._has_own_rows:
            self._differs = True
            return
        try:
            self.model = Model.restore(snapshot.meta, snapshot.learners)
            self._has_adopted, self._is_of_another = True, False
        except ValueError:
            self._differs = True

    async def _check(self, row: Row) -> None:
        if self._is_erased:
            self._erased += 1
            return
        if self._is_revised:
            await self._apply_revisions()
        body: DecisionBody = body_of(row)
        # An offer of all labels that are not retired is the model's own default.
        learner, among = self.model.learner, body.among
        if among is not None and set(among) == set(learner.labels) - set(learner.retired):
            among = None
        decision, _ = self.model.decide(
            body.record,
            among,
            row.id,
            sys.maxsize,
            body.chosen,
            body.chosen_probability,
            explore=body.explore,
            cap=body.exploration_cap,
            new_cap=body.new_cap,
        )
        if (decision.label, float(decision.probability)) == (body.label, body.probability):
            self._checked += 1
        elif row.code in self._own and not self._differs and not self._is_of_another:
            self._checked += 1
            self._faults.append(
                f"row {row.n}: the model decides {decision!r}, and the log says {body.label!r}"
            )
        else:
            self._other_decisions += 1
            if row.code not in self._own:
                self._others.add(row.code)
                self._is_of_another = not self._has_adopted
