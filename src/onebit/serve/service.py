"""The models of a service: decisions, feedback, and how both are written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar

from msgspec import UNSET, Struct, ValidationError, structs

from onebit.core.decision import new_id
from onebit.core.validation import short
from onebit.serve.api import Answer, Heard, NewModel, Question, RefusedError, Said
from onebit.serve.limits import Limits
from onebit.serve.log import Entry, Log, LogError, NameTakenError, Snapshot
from onebit.serve.model import Awaited, Model, agree
from onebit.serve.packing import packed
from onebit.serve.rows import (
    DecisionBody,
    FeedbackBody,
    Kind,
    LabelsBody,
    ModelSpec,
    Row,
    Settings,
    ShadowBody,
    body_of,
    text_of,
)
from onebit.serve.writer import Part, Writer

SNAPSHOT_ROWS = 10_000
"""Rows between two snapshots of a model."""

STOP_ROWS = 500
"""Least rows since the last snapshot for another one at a stop; fewer are soon replayed."""

SNAPSHOTS_KEPT = 3

IDLE_SECONDS = 60.0
"""Seconds after which the learners of a model that nobody uses are packed."""

PACK_SECONDS = 1.0
"""Seconds between two looks for learners to pack."""

ROWS_AT_ONCE = 1000
"""Rows that are read and applied before other requests get their turn."""

FOLLOW_SECONDS = 0.05
"""Seconds between two looks for what other processes wrote."""

TEACH_SECONDS = 1.0
"""Seconds between two attempts to teach models without a teacher."""

SWEEP_SECONDS = 1.0
"""Seconds between two looks for expired decisions."""

_DRAIN_SECONDS = 0.001
"""Seconds between two looks whether rows of a model are still being written."""

_logger = logging.getLogger(__name__)

T = TypeVar("T")

_Begun = tuple[asyncio.Future[list[int]], list[T]]
"""The numbers of rows that are being written, and the answers once they are."""


class Live:
    """A model that decides, with its rows that are being written."""

    def __init__(self, name: str, key: int, model: Model) -> None:
        self.name, self.key, self.model = name, key, model
        self.head = model.n
        self.deciding: dict[str, asyncio.Future[Any]] = {}
        self.answering: dict[str, tuple[FeedbackBody, asyncio.Future[Any]]] = {}
        self.changing = asyncio.Lock()
        """Held from the check of a change until it is written."""
        self.snapshot_at = 0
        self.snapshotting: asyncio.Task[None] | None = None
        self.taught_here = True
        self.free = asyncio.Event()
        """Clear while work on the model is to begin, or goes on: its requests wait for it."""
        self.free.set()
        self.following = False
        """Whether rows of other processes are being applied."""
        self.held = False
        """Whether the model has to stay as it is, for work on it in a thread."""
        self.deferred: list[tuple[list[Part], list[int]]] = []
        """Rows that were written in the meantime, with their numbers."""
        self.changed: tuple[LabelsBody, Model] | None = None
        """A change of labels that is being written, and a copy of the model with it."""
        self.size = model.size
        """Bytes of its learners, zero while they are packed."""
        self.used_at = time.monotonic()
        """When it was last used, by decisions, feedback or changes."""
        self.swept = 0
        """Decisions up to this row have feedback, or expired."""


class Service:
    """All models of a log.

    Decisions are made at once, by the current state of a model. Rows are written by one task, many
    at a time, and are applied once they are on disk: a model never learns what the log does not
    have.
    """

    def __init__(self, log: Log, limits: Limits | None = None) -> None:
        self.log, self.limits = log, limits or Limits()
        self.live: dict[str, Live] = {}
        self.unread: dict[str, int] = {}
        """Models that were not read from the log yet, with their keys."""
        self._reading: dict[str, asyncio.Lock] = {}
        self._packing = asyncio.Lock()
        self.failed: dict[str, int] = {}
        """Models that cannot apply their logs, with their keys; requests to them are refused."""
        self.writer = Writer(log, self._written)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._being_made: dict[str, asyncio.Future[None]] = {}
        """Models that are being made."""
        self._differing: set[str] = set()
        """Models being made or removed here: the log may have them, and this process not."""
        self._changes = 0
        """How often models were made or removed here."""

    # From start to stop

    async def start(self) -> None:
        """Open the log; models are read when they are asked for, and in the background."""
        await self.log.open()
        self.unread = await self.log.models()
        self.writer.start()
        self._spawn(self._read_in_background())
        self._spawn(self._pack_idle())
        if self.log.shared:
            self._spawn(self._follow())
        self._spawn(self._sweep())
        self._spawn(self._tidy())

    async def stop(self) -> None:
        """Write what is to be written, make snapshots of all models, and close the log."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.writer.stop()
        for live in self.live.values():
            if live.snapshotting is not None:
                await asyncio.gather(live.snapshotting, return_exceptions=True)
            if live.taught_here and live.model.n - live.snapshot_at >= STOP_ROWS:
                await self._snapshot(live)
        await self.log.close()

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Models

    def model(self, name: str) -> Live:
        """Return the model of a name."""
        if name in self.failed:
            raise RefusedError(
                503, f"{name} cannot go on with its log; what the service logs says why"
            )
        if name not in self.live:
            raise RefusedError(404, f"there is no model {short(name)}")
        return self.live[name]

    async def find(self, name: str) -> Live:
        """Return the model of a name, ready for use, also if another process has just made it."""
        if name in self.unread:
            await self._read_unread(name)
        if name not in self.live and self.log.shared:
            await self._follow_once()
        live = self.model(name)
        while not live.free.is_set():
            await live.free.wait()
            live = self.model(name)
        live.used_at = time.monotonic()
        if live.model.is_packed:
            await self._make_room()
            await asyncio.to_thread(live.model.unpack)
            live.size = live.model.size
            if live.head > live.model.n:
                await self._catch_up(live)
        return live

    async def read_all(self) -> None:
        """Return once all models are read."""
        for name in list(self.unread):
            await self._read_unread(name)

    async def _read_unread(self, name: str) -> None:
        """Read a model that was not read yet; many may ask for it."""
        async with self._reading.setdefault(name, asyncio.Lock()):
            if name in self.unread:
                key = self.unread[name]
                await self._make_room()
                await self._read(name, key, lambda: self.unread.get(name) == key)
                self.unread.pop(name, None)
        self._reading.pop(name, None)

    async def _read_in_background(self) -> None:
        """Read all models; those that nobody asked for in the meantime are packed at once."""
        for name in list(self.unread):
            try:
                await self._read_unread(name)
            except LogError as error:  # it is read once someone asks for it
                _log_error(f"reading {name}", error)
            if (live := self.live.get(name)) is not None:
                await self._pack(live)

    async def _pack_idle(self) -> None:
        """Pack learners that nobody uses, and those used least recently if there are too many."""
        while True:
            await asyncio.sleep(PACK_SECONDS)
            await self._make_room()
            for live in self._in_use():
                live.size = live.model.size  # labels and shadows come and go
                if time.monotonic() - live.used_at > IDLE_SECONDS:
                    await self._pack(live)

    def _in_use(self) -> list[Live]:
        """Return the models whose learners are not packed, the one used least recently first."""
        found = (live for live in self.live.values() if not live.model.is_packed)
        return sorted(found, key=lambda live: live.used_at)

    async def _make_room(self) -> None:
        """Pack learners while those in use take more memory than they may.

        Whoever needs another one waits for it, so that none come faster than others go.
        """
        async with self._packing:
            for live in self._in_use():
                if sum(other.size for other in self.live.values()) <= self.limits.memory:
                    return
                await self._pack(live)

    async def _pack(self, live: Live) -> bool:
        """Pack the learners of a model, unless it is used in the meantime."""
        model, state = live.model, (live.used_at, live.model.n)
        if model.is_packed or live.deciding or live.answering or not live.free.is_set():
            return False
        found = await asyncio.to_thread(packed, model.students)
        if state != (live.used_at, model.n) or live.deciding or live.answering:
            return False
        model.pack(found)
        live.size = 0
        return True

    async def make(self, new: NewModel) -> Live:
        """Make a model; the same request again, with its seed, returns the existing model."""
        while new.name in self._being_made:  # a client that got no answer repeats its request
            await asyncio.wait([self._being_made[new.name]])
        if new.name in self.live or new.name in self.unread:
            return self._made_before(await self.find(new.name), new)
        self.check_room(new.name)
        self._being_made[new.name] = done = asyncio.get_running_loop().create_future()
        try:
            return await self._make(new)
        except NameTakenError:
            return self._made_before(await self.find(new.name), new)
        finally:
            del self._being_made[new.name]
            done.set_result(None)

    async def _make(self, new: NewModel) -> Live:
        fields = structs.asdict(new)
        del fields["name"]
        if new.seed is None:
            fields["seed"] = secrets.randbits(53)
        spec = ModelSpec(**fields)
        at = time.time()
        model = await self.begun(Row(0, 1, "model", None, at, text_of(spec)))
        self._differing.add(new.name)
        try:
            return self.add(new.name, await self.log.add_model(new.name, at, text_of(spec)), model)
        finally:
            self._differing.discard(new.name)

    def _made_before(self, live: Live, new: NewModel) -> Live:
        """Return a model if the same request made it; refuse a different one of its name."""
        spec = live.model.meta.spec
        if any(getattr(spec, name) != getattr(new, name) for name in ModelSpec.__struct_fields__):
            raise RefusedError(409, f"there is a model {new.name!r} already")
        return live

    async def begun(self, row: Row) -> Model:
        """Return the model that the first row of a log defines, fully compiled."""
        spec: ModelSpec = body_of(row)
        self.check_labels(len(spec.labels))
        model = await _tried(Model.begin, row)
        await asyncio.to_thread(model.student.warm_up)
        return model

    async def remove(self, name: str) -> None:
        """Remove a model with its log."""
        if name in self.unread:
            await self._read_unread(name)
        live = None if name in self.failed else self.model(name)
        key = self.failed.pop(name) if live is None else live.key
        self.live.pop(name, None)
        self._differing.add(name)
        try:
            if live is not None and live.snapshotting is not None:
                await asyncio.gather(live.snapshotting, return_exceptions=True)
            await self.log.remove_model(key)
        finally:
            self._differing.discard(name)
            self._changes += 1

    async def change_settings(self, live: Live, settings: Settings) -> None:
        """Freeze or unfreeze a model; set when decisions expire."""
        await self._write(live, "settings", settings)

    async def change_labels(self, live: Live, labels: LabelsBody) -> None:
        """Add and retire labels."""
        if not labels.add and not labels.retire:
            raise RefusedError(422, "add or retire at least one label")
        async with live.changing:
            self.check_labels(len(live.model.shape.labels) + len(labels.add))
            async with self.hold(live) as model:
                live.changed = labels, await asyncio.to_thread(model.copy)
                try:
                    await _tried(live.changed[1].try_change, labels)
                    await self._write(live, "labels", labels)
                finally:
                    live.changed = None

    async def change_shadow(self, live: Live, body: ShadowBody) -> None:
        """Add, remove or promote a shadow."""
        async with live.changing:
            if body.action != "add" and body.name not in live.model.meta.shadows:
                raise RefusedError(404, f"{live.name} has no shadow {short(body.name)}")
            copied = await self.copy_of(live)
            await _tried(copied.try_change, body)  # which may compile for long
            await self._write(live, "shadow", body)

    async def copy_of(self, live: Live) -> Model:
        """Return a copy of a model, which a thread makes while only its own requests wait."""
        async with self.hold(live) as model:
            return await asyncio.to_thread(model.copy)

    @contextlib.asynccontextmanager
    async def hold(self, live: Live) -> AsyncIterator[Model]:
        """Keep a model as it is for the block; its requests wait, and what is written is deferred.

        Copies of large models take seconds, and all models share one event loop.
        """
        while not live.free.is_set():
            await live.free.wait()
        live.free.clear()
        try:
            while self.writer.has_rows_of(live) or live.following:
                await asyncio.sleep(_DRAIN_SECONDS)
            live.held = True
            yield live.model
        finally:
            live.held = False
            live.free.set()
            self._apply_deferred(live)

    def check_room(self, name: str) -> None:
        """Refuse another model if there is one of that name, or too many."""
        if name in self.live or name in self.failed or name in self.unread:
            raise RefusedError(409, f"there is a model {name!r} already")
        if len(self.live) + len(self.unread) >= self.limits.models:
            raise RefusedError(
                422, f"there are {self.limits.models:,} models, the most there can be"
            )

    def _check_there(self, live: Live) -> None:
        """Refuse what came too late for a removed model, even if its name is in use again."""
        if self.model(live.name) is not live:
            raise RefusedError(404, f"the model {live.name!r} was removed")

    def check_labels(self, n: int) -> None:
        """Refuse more labels than a model can have."""
        if n > self.limits.labels:
            raise RefusedError(422, f"a model has at most {self.limits.labels:,} labels; got {n:,}")

    def add(self, name: str, key: int, model: Model, snapshot_at: int = 0) -> Live:
        """Let a model decide from now on; its newest snapshot is of row `snapshot_at`."""
        self.live[name] = live = Live(name, key, model)
        live.snapshot_at, live.taught_here = snapshot_at, not self.log.shared
        self._changes += 1
        return live

    async def _write(self, live: Live, kind: Kind, body: Struct) -> None:
        entry = Entry(live.key, kind, None, time.time(), text_of(body))
        (n,) = await self.writer.write(live, [Part(entry, body)])
        if not n:
            self._check_there(live)

    # Decisions

    async def decide(self, live: Live, questions: list[Question]) -> list[Answer]:
        """Choose a label for each question; all are written before this returns, or none is."""
        ids = [question.id for question in questions if question.id is not None]
        known = await self._decided(live, ids) if ids else {}
        parts, answers = self._choose(live, questions, known)
        if parts:
            mine = [name for name in ids if name not in known]
            numbers = await self._write_decisions(live, parts, mine)
            if 0 in numbers:  # another process has written a decision with such an id
                self._check_there(live)
                again = zip(answers, questions, strict=True)
                return await self.decide(
                    live, [structs.replace(question, id=a.id) for a, question in again]
                )
        return answers

    def decide_new(self, live: Live, questions: list[Question]) -> _Begun[Answer] | None:
        """Begin to decide questions that seem to be new; None if some may be known.

        The future has the numbers of the rows, zero where a decision with that id exists already.
        Several questions must not have ids, as some would then be written though all may have to be
        refused.
        """
        ids = [question.id for question in questions if question.id is not None]
        if ids and (len(questions) > 1 or not _is_new(ids, live.deciding, live.model.awaited)):
            return None
        parts, answers = self._choose(live, questions, {})
        return self._write_decisions(live, parts, ids), answers

    def _choose(
        self, live: Live, questions: list[Question], known: dict[str, DecisionBody]
    ) -> tuple[list[Part], list[Answer]]:
        """Choose labels where no decision is known; return what to write, and all answers."""
        model, most, at = live.model, self.limits.features, time.time()
        parts, answers = [], []
        for i, question in enumerate(questions):
            name = new_id() if question.id is None else question.id
            if name in known:
                body = known[name]
                if body.record != question.record:
                    raise RefusedError(409, f"the id {short(name)} is of another record")
                if question.among is not None and body.label not in question.among:
                    raise RefusedError(409, f"the id {short(name)} is of another offer")
                answers.append(Answer(name, body.label, body.probability, body.confidence))
                continue
            try:
                decision, body = model.decide(question.record, question.among, name, most)
            except (ValueError, TypeError) as error:
                where = f"item {i}: " if len(questions) > 1 else ""
                raise RefusedError(422, f"{where}{error}") from None
            entry = Entry(live.key, "decision", name, at, text_of(body))
            parts.append(Part(entry, body, Awaited(body, decision)))
            answers.append(Answer(name, body.label, body.probability, body.confidence))
        return parts, answers

    def _write_decisions(
        self, live: Live, parts: list[Part], ids: list[str]
    ) -> asyncio.Future[list[int]]:
        """Write decisions; requests for the same ids wait in the meantime."""
        future = self.writer.write(live, parts)
        if ids:
            live.deciding.update(dict.fromkeys(ids, future))
            future.add_done_callback(lambda _: [live.deciding.pop(name, None) for name in ids])
        return future

    async def _decided(self, live: Live, ids: list[str]) -> dict[str, DecisionBody]:
        """Return the existing decisions of these ids, once they are on disk."""
        if len(set(ids)) < len(ids):
            raise RefusedError(422, "two decisions have the same id")
        while busy := [live.deciding[name] for name in ids if name in live.deciding]:
            await asyncio.wait(busy)
        found = {name: live.model.awaited[name].body for name in ids if name in live.model.awaited}
        missing = [name for name in ids if name not in found]
        if missing:
            for row in await self.log.find(live.key, missing):
                if row.kind == "decision":
                    found[str(row.id)] = body_of(row)
        return found

    # Feedback

    async def hear(self, live: Live, items: list[Said], *, again: bool = False) -> list[Heard]:
        """Take feedback; what is accepted is written before this returns.

        Parameters
        ----------
        live : Live
        items : list of Said
        again : bool, default=False
            Whether others have written feedback in the meantime, so that only the log is up to
            date.
        """
        heard: list[Heard | None] = [None] * len(items)
        awaited = live.model.awaited
        abouts: dict[str, tuple[Awaited, FeedbackBody | None]] = {
            item.id: (awaited[item.id], None) for item in items if item.id in awaited and not again
        }
        missing = [item.id for item in items if item.id not in abouts]
        if missing:
            abouts |= await self._logged(live, missing)
        parts, mine, waiting = [], [], []
        at = time.time()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        for i, item in enumerate(items):
            name, body = item.id, FeedbackBody(item.correct, item.truth)
            about, before = abouts.get(name, (None, None))
            fault = _fault(live.model, item)
            if fault is not None:
                heard[i] = Heard(name, "invalid", fault)
            elif about is None:
                heard[i] = Heard(name, "unknown", "there is no decision of this id")
            elif before is not None:
                heard[i] = _again(name, body, before, about)
            elif name in live.answering:
                waiting.append((i, live.answering[name], body, about))
            else:
                entry = Entry(live.key, "feedback", name, at, text_of(body))
                parts.append(Part(entry, body, about))
                live.answering[name] = body, future
                mine.append(i)
        try:
            numbers = await self.writer.write(live, parts, future) if parts else []
        finally:
            for i in mine:
                live.answering.pop(items[i].id, None)
        for i, n in zip(mine, numbers, strict=True):
            if n:
                heard[i] = Heard(items[i].id, "accepted")
        for i, (before, other), body, about in waiting:
            await asyncio.wait([other])
            if other.exception() is None:
                heard[i] = _again(items[i].id, body, before, about)
        left = [i for i, one in enumerate(heard) if one is None]
        if left:  # others have written, or failed to write, feedback for these in the meantime
            self._check_there(live)
            more = await self.hear(live, [items[i] for i in left], again=True)
            for i, one in zip(left, more, strict=True):
                heard[i] = one
        return [one for one in heard if one is not None]

    def hear_new(self, live: Live, items: list[Said]) -> _Begun[Heard] | None:
        """Begin to take feedback for decisions that await it here; None if some do not.

        The future has the numbers of the rows, zero where feedback exists already. If others wrote
        some of several, only `hear` can tell which.
        """
        awaited, at, ids = live.model.awaited, time.time(), [item.id for item in items]
        if len(ids) > 1 and (self.log.shared or len(set(ids)) < len(ids)):
            return None
        if not _is_new(ids, live.answering):
            return None
        parts = []
        for item in items:
            name, body = item.id, FeedbackBody(item.correct, item.truth)
            if name not in awaited or _fault(live.model, item) is not None:
                return None
            entry = Entry(live.key, "feedback", name, at, text_of(body))
            parts.append(Part(entry, body, awaited[name]))
        future = self.writer.write(live, parts)
        live.answering.update((str(part.entry.id), (part.body, future)) for part in parts)
        future.add_done_callback(lambda _: [live.answering.pop(name, None) for name in ids])
        return future, [Heard(name, "accepted") for name in ids]

    async def _logged(
        self, live: Live, ids: list[str]
    ) -> dict[str, tuple[Awaited, FeedbackBody | None]]:
        """Return the decisions of these ids in the log, with their feedback."""
        rows = await self.log.find(live.key, list(set(ids)))
        said = {row.id: body_of(row) for row in rows if row.kind == "feedback"}
        made = (row for row in rows if row.kind == "decision")
        return {str(row.id): (Awaited(body_of(row)), said.get(row.id)) for row in made}

    # What happens when rows are written

    def _written(self, live: Live, parts: list[Part], numbers: list[int]) -> None:
        """Apply rows that are on disk to a model, at once or when it is no longer held."""
        live.deferred.append((parts, numbers))
        is_change = live.changed is not None and parts[0].body is live.changed[0]
        if is_change or not live.held:
            self._apply_deferred(live)

    def _apply_deferred(self, live: Live) -> None:
        written, live.deferred = live.deferred, []
        if self.live.get(live.name) is not live:
            return
        try:
            for parts, numbers in written:
                for part, n in zip(parts, numbers, strict=True):
                    self._apply_part(live, part, n)
        except Exception:
            self._fail(live.name, live.key)
        else:
            self._maybe_snapshot(live)

    @staticmethod
    def _apply_part(live: Live, part: Part, n: int) -> None:
        if n:
            live.head = max(live.head, n)
        if n != live.model.n + 1:  # those of other processes are read from the log
            return
        if live.changed is not None and part.body is live.changed[0]:
            _, changed = live.changed
            if changed.n == live.model.n:
                live.model.take_labels_of(changed)
                return
        model, kind, name, at, text = part.entry
        live.model.apply(Row(model, n, kind, name, at, text), part.body, part.about)

    def _fail(self, name: str, key: int) -> None:
        """Refuse a model from now on, as its state no longer matches its log."""
        _logger.exception("%s cannot go on with its log", name)
        self.live.pop(name, None)
        self.failed[name] = key

    async def _read(self, name: str, key: int, is_still_there: Callable[[], bool]) -> None:
        """Read a model from the log; it decides from now on, unless it was removed meanwhile."""
        try:
            restored = await restore(self.log, key)
        except LogError:
            raise
        except Exception:
            self._fail(name, key)
        else:
            if is_still_there():
                self.add(name, key, *restored)

    def _maybe_snapshot(self, live: Live) -> None:
        due = live.model.n - live.snapshot_at >= SNAPSHOT_ROWS
        if due and live.taught_here and live.snapshotting is None:
            live.snapshotting = asyncio.get_running_loop().create_task(self._snapshot(live))
            live.snapshotting.add_done_callback(lambda _: setattr(live, "snapshotting", None))

    async def _snapshot(self, live: Live) -> None:
        if live.snapshot_at == live.model.n > 1 or self.live.get(live.name) is not live:
            return
        model = await self.copy_of(live)
        live.snapshot_at = model.n
        try:
            meta, learners = await asyncio.to_thread(model.snapshot)
            await self.log.add_snapshot(live.key, Snapshot(model.n, meta, learners), SNAPSHOTS_KEPT)
        except LogError as error:
            _logger.error("no snapshot of %s: %s", live.name, error)

    async def _follow(self) -> None:
        """Apply what other processes wrote, and teach models that have no teacher."""
        tried = 0.0
        while True:
            try:
                await self._follow_once()
                if time.monotonic() - tried > TEACH_SECONDS:
                    taught = await self.log.teach([live.key for live in self.live.values()])
                    for live in self.live.values():
                        live.taught_here = live.key in taught
                    tried = time.monotonic()
            except Exception as error:
                _log_error("following", error)
                for live in self.live.values():
                    live.taught_here = False
                tried = 0.0
                await asyncio.sleep(TEACH_SECONDS / 2)
            await asyncio.sleep(FOLLOW_SECONDS)

    async def _follow_once(self) -> None:
        changes = -1
        while changes != self._changes:  # a list from before a change here may contradict it
            changes = self._changes
            heads = await self.log.heads()
        for name, live in list(self.live.items()):
            if name not in heads or heads[name].key != live.key:
                del self.live[name]
        for known in (self.failed, self.unread):
            for name, key in list(known.items()):
                if name not in heads or heads[name].key != key:
                    del known[name]
        for name, (key, head) in heads.items():
            if name not in self.live:
                if not any(name in known for known in (self.failed, self.unread, self._differing)):
                    await self._read(name, key, partial(self._is_change, self._changes))
            elif self.live[name].key == key:
                live = self.live[name]
                live.head = max(live.head, head)
                if live.model.is_packed and not live.taught_here:
                    continue  # it follows once it is used
                if live.head > live.model.n:
                    await self.writer.settle()  # what was written here need not be read
                if live.head > live.model.n:
                    await self._catch_up(live)

    def _is_change(self, changes: int) -> bool:
        return self._changes == changes

    async def _catch_up(self, live: Live) -> None:
        """Let a model know all rows that there are."""
        if not live.free.is_set():
            return
        live.following = True
        try:
            await follow(self.log, live.key, live.model)
        except LogError:
            raise
        except Exception:
            self._fail(live.name, live.key)
        else:
            self._maybe_snapshot(live)
        finally:
            live.following = False

    async def _tidy(self) -> None:
        try:
            await self.log.tidy()
        except LogError as error:
            _log_error("tidying", error)

    async def _sweep(self) -> None:
        """Write, for expired decisions, what they count as."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for live in list(self.live.values()):
                try:
                    while live.taught_here and await self._sweep_some(live):
                        await asyncio.sleep(0)  # requests have their turn
                except Exception as error:
                    _log_error("expiring", error)

    async def _sweep_some(self, live: Live) -> bool:
        meta = live.model.meta
        if meta.expiry_seconds is None:
            return False
        until = time.time() - meta.expiry_seconds
        # Decisions that come from now on are not among the rows that are read.
        swept = min(live.swept + ROWS_AT_ONCE, live.model.n)
        rows = await self.log.unanswered(live.key, live.swept, ROWS_AT_ONCE)
        busy = [row for row in rows if row.at > until or row.id in live.answering]
        rows = rows[: rows.index(busy[0])] if busy else rows
        if rows:
            body = FeedbackBody(expired="wrong" if meta.expired_counts_as == "wrong" else "nothing")
            at, text = time.time(), text_of(body)
            parts = [
                Part(Entry(live.key, "feedback", row.id, at, text), body, Awaited(body_of(row)))
                for row in rows
            ]
            future = self.writer.write(live, parts)
            live.answering.update({str(row.id): (body, future) for row in rows})
            try:
                await future
            finally:
                for row in rows:
                    live.answering.pop(str(row.id), None)
        live.swept = min(busy[0].n - 1, swept) if busy else swept
        return not busy and live.swept < live.model.n


def _log_error(doing: str, error: Exception) -> None:
    """Log why an attempt failed; there will be another one."""
    _logger.error("%s: %s", doing, error, exc_info=not isinstance(error, LogError))


# Reading logs


async def restore(log: Log, key: int) -> tuple[Model, int]:
    """Return a model as it is after all rows, and the row of its newest sound snapshot or zero."""
    async for snapshot in log.snapshots(key):
        try:
            model = await asyncio.to_thread(Model.restore, snapshot.meta, snapshot.learners)
        except (ValueError, ValidationError) as error:
            _logger.warning("the snapshot of model %d at row %d: %s", key, snapshot.n, error)
            continue
        if snapshot.code != log.code:
            _logger.info("model %d goes on from a snapshot of another version", key)
        await follow(log, key, model, in_thread=True)
        return model, snapshot.n
    rows = await log.rows(key, 0, 1)
    if not rows:
        raise LogError(f"the log of model {key} is empty")
    model = await asyncio.to_thread(Model.begin, rows[0])
    await follow(log, key, model, in_thread=True)
    return model, 0


async def follow(log: Log, key: int, model: Model, *, in_thread: bool = False) -> None:
    """Let a model know all rows that there are; in a thread, if nobody else uses it."""
    while rows := await log.rows(key, model.n, ROWS_AT_ONCE):
        await apply_all(log, model, rows, in_thread=in_thread)
        await asyncio.sleep(0)


async def apply_all(log: Log, model: Model, rows: list[Row], *, in_thread: bool = False) -> None:
    """Apply the next rows to a model; the decisions they are about are read from the log.

    What a new shadow needs is compiled in a thread first.
    """
    wanted = {str(row.id) for row in rows if row.kind == "feedback"}
    # A model may drop these before it reaches their feedback.
    abouts = {name: model.awaited[name] for name in wanted if name in model.awaited}
    here = [row for row in rows if row.kind == "decision" and row.id in wanted]
    missing = list(wanted - abouts.keys() - {row.id for row in here})
    for i in range(0, len(missing), ROWS_AT_ONCE):
        here += await log.find(rows[0].model, missing[i : i + ROWS_AT_ONCE])
    abouts |= {str(row.id): Awaited(body_of(row)) for row in here if row.kind == "decision"}
    if in_thread:
        await asyncio.to_thread(_apply_rows, model, rows, abouts)
        return
    for row in rows:
        if row.kind == "shadow":
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                await asyncio.to_thread(model.copy().try_change, body_of(row))
        if row.n > model.n:  # others may have applied some of them while these were read
            model.apply(row, None, abouts.get(str(row.id)))


def _apply_rows(model: Model, rows: list[Row], abouts: dict[str, Awaited]) -> None:
    for row in rows:
        if row.kind == "shadow":
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                model.copy().try_change(body_of(row))
        model.apply(row, None, abouts.get(str(row.id)))


async def exported(log: Log, key: int) -> AsyncIterator[list[Row]]:
    """Yield all rows of a log, some at a time."""
    n = 0
    while rows := await log.rows(key, n, ROWS_AT_ONCE):
        yield rows
        n = rows[-1].n


# Checks


async def _tried(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do slow work in a thread; its errors are blamed on the request."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        raise RefusedError(422, str(error) or type(error).__name__) from None


def _is_new(ids: list[str], *places: dict[str, Any]) -> bool:
    return not any(name in place for place in places for name in ids)


def _fault(model: Model, item: Said) -> str | None:
    if (item.correct is UNSET) == (item.truth is UNSET):
        return "feedback has either correct or truth"
    if item.truth is not UNSET and item.truth is not None:
        labels = model.student.labels
        if item.truth not in labels:
            return f"the truth {short(item.truth)} is none of the labels"
    return None


def _again(name: str, body: FeedbackBody, before: FeedbackBody, about: Awaited) -> Heard:
    if before.expired is not UNSET:
        return Heard(name, "expired", "no feedback came for this decision in time")
    if agree(body, before, about.body.label):
        return Heard(name, "repeated")
    return Heard(name, "contradiction", "other feedback for this decision was accepted before")
