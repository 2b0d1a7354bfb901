"""A model in use, with the work in progress on it."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from onebit.serve.model import Model
from onebit.serve.rows import FeedbackBody, LabelsBody
from onebit.serve.statistics import Mark
from onebit.serve.writer import PendingRow


class Ahead(NamedTuple):
    """The first row, and the earliest time, of decisions that are later than the clock."""

    n: int
    at: float


class LiveModel:
    """A model in use.

    Parameters
    ----------
    name : str
    key : int
        Of the model in the log.
    model : Model

    Attributes
    ----------
    head : int
        Number of the last row of its log, as far as this process knows.
    deciding : dict
        Ids of decisions that are being written, with futures of their row numbers.
    answering : dict
        Ids of decisions whose feedback is being written, with that feedback and a future.
    changing : asyncio.Lock
        Held from the check of a change until it is written.
    snapshot_at : int
        The row of its newest snapshot.
    snapshotting : asyncio.Task or None
        Writes a snapshot.
    restoring : asyncio.Task or None
        Rebuilds the model, as a row has changed what earlier ones say.
    is_outdated : bool
        Whether it has to be rebuilt, and no snapshot of it is needed.
    is_leader : bool
        Whether this process makes its snapshots and expires its decisions.
    free : asyncio.Event
        Clear while the model is held, or about to be: its requests wait for that.
    following : bool
        Whether rows of other processes are being applied.
    held : bool
        Whether the model has to stay as it is, for work on it in a thread.
    deferred : list
        Rows that were written while the model was held, with their numbers.
    changed : tuple or None
        A change of labels that is being written, and a copy of the model with it.
    size : int
        Bytes of its learners, zero while they are packed.
    used_at : float
        When it was last used, by decisions, feedback or changes.
    versions : list of Mark or None
        When the version of the code changed; None if nobody asked for it yet.
    expired_up_to : int
        Decisions up to this row have feedback, or expired, or are `ahead`.
    ahead : Ahead or None
        Decisions whose time was still to come when the row above was found.
    """

    def __init__(self, name: str, key: int, model: Model) -> None:
        self.name, self.key, self.model = name, key, model
        self.head = model.n
        self.deciding: dict[str, asyncio.Future[Any]] = {}
        self.answering: dict[str, tuple[FeedbackBody, asyncio.Future[Any]]] = {}
        self.changing = asyncio.Lock()
        self.snapshot_at = 0
        self.snapshotting: asyncio.Task[None] | None = None
        self.restoring: asyncio.Task[None] | None = None
        self.is_leader = True
        self.free = asyncio.Event()
        self.free.set()
        self.following = self.held = self.is_outdated = False
        self.deferred: list[tuple[list[PendingRow], list[int]]] = []
        self.changed: tuple[LabelsBody, Model] | None = None
        self.size = model.size
        self.used_at = time.monotonic()
        self.versions: list[Mark] | None = None
        self.expired_up_to = 0
        self.ahead: Ahead | None = None

    def postpone(self, n: int, at: float) -> None:
        """Note a decision that is later than the clock."""
        known = Ahead(n, at) if self.ahead is None else self.ahead
        self.ahead = Ahead(min(n, known.n), min(at, known.at))
