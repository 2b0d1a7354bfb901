"""The models of a service: from start to stop, reading, making, changing and removing them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from msgspec import Struct, structs

from onebit.core.validation import short
from onebit.serve.api import NewModel, RefusedError
from onebit.serve.applying import Applier
from onebit.serve.expiry import expire_decisions
from onebit.serve.following import Follower
from onebit.serve.limits import Limits
from onebit.serve.live import LiveModel
from onebit.serve.log import Entry, LogError, NameTakenError, ServiceLog
from onebit.serve.memory import Memory
from onebit.serve.model import Model
from onebit.serve.processes import BackgroundProcesses
from onebit.serve.replaying import restore
from onebit.serve.restoring import Restorer
from onebit.serve.rows import (
    Kind,
    LabelsBody,
    ModelSettings,
    ModelSpec,
    Row,
    ShadowBody,
    body_of,
    text_of,
)
from onebit.serve.writer import PendingRow, Writer

_DRAIN_SECONDS = 0.001
"""Seconds between two looks whether rows of a model are still being written."""

BEHIND_SECONDS = 8.0
"""Maximum seconds that a change waits for a model that is behind its log."""

_logger = logging.getLogger(__name__)


class Service:
    """All models of a log.

    Decisions are made at once, by the current state of a model (`decisions.decide`). Rows are
    written by one task, many at a time, and are applied once they are on disk: a model never learns
    what the log does not have.

    Parameters
    ----------
    log : ServiceLog
    limits : Limits, optional

    Attributes
    ----------
    live : dict
        The models that were read, by name.
    unread : dict
        Keys of the models that were not read yet, by name.
    failed : dict
        Keys of the models that cannot apply their logs, by name; requests to them are refused.
    removed : set of int
        Keys of the models that were removed here; no other models ever get them.
    changes : int
        How often models were made or removed here.
    """

    def __init__(self, log: ServiceLog, limits: Limits | None = None) -> None:
        self.log, self.limits = log, limits or Limits()
        self.live: dict[str, LiveModel] = {}
        self.unread: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.removed: set[int] = set()
        self.changes = 0
        self.applier, self.follower = Applier(self), Follower(self)
        self.memory = Memory(self.live, self.limits.memory)
        self.processes = BackgroundProcesses()
        self.restorer = Restorer(self)
        self.erasing = asyncio.Lock()
        """Held while rows are erased."""
        self.writer = Writer(log, self.applier.apply_written)
        self._reading: dict[str, asyncio.Lock] = {}
        self._being_made: dict[str, asyncio.Future[None]] = {}
        """Models that are being made."""
        self._differing: set[str] = set()
        """Models being made or removed here: the log may have them, and this process not."""
        self._tasks: set[asyncio.Task[Any]] = set()

    # From start to stop

    async def start(self) -> None:
        """Open the log; models are read when they are asked for, and in the background."""
        await self.log.open()
        self.unread = await self.log.models()
        self.writer.start()
        work = [self._read_in_background(), self.memory.pack_idle(), expire_decisions(self)]
        work += [self._tidy(), self.follower.run()] if self.log.shared else [self._tidy()]
        for one in work:
            task = asyncio.get_running_loop().create_task(one)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Write what is to be written, make snapshots, and close the log."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.restorer.stop()
        await self.processes.stop()
        await self.writer.stop()
        await self.applier.stop()
        await self.log.close()

    async def _tidy(self) -> None:
        try:
            await self.log.tidy()
        except LogError as error:
            self.log_error("tidying", error)

    @staticmethod
    def log_error(doing: str, error: Exception) -> None:
        """Log why an attempt failed; there will be another one."""
        _logger.error("%s: %s", doing, error, exc_info=not isinstance(error, LogError))

    # Finding and reading models

    def model(self, name: str) -> LiveModel:
        """Return the model of a name."""
        if name in self.failed:
            raise RefusedError(
                503, f"{name} cannot continue with its log; what the service logs says why"
            )
        if name not in self.live:
            raise RefusedError(404, f"there is no model {short(name)}")
        return self.live[name]

    async def find(self, name: str) -> LiveModel:
        """Return the model of a name, ready for use, also if another process has just made it."""
        if name in self.unread:
            await self._read_unread(name)
        if name not in self.live and self.log.shared:
            await self.follower.follow()
        live = self.model(name)
        while not live.free.is_set():
            await live.free.wait()
            live = self.model(name)
        live.used_at = time.monotonic()
        if live.model.is_packed:
            await self.memory.unpack(live)
            if live.head > live.model.n:
                await self.follower.catch_up(live)
        return live

    def is_known(self, name: str) -> bool:
        """Return whether a model that is not in `live` needs no reading now."""
        return any(name in known for known in (self.failed, self.unread, self._differing))

    async def read(self, name: str, key: int) -> None:
        """Read a model from the log; it decides from now on, unless it was removed meanwhile.

        Others may have read it meanwhile, too: the first one counts.
        """
        try:
            restored = await restore(self.log, key, self.processes)
        except LogError:
            raise
        except Exception:
            self.fail(name, key)
        else:
            if key not in self.removed and name not in self.live:
                self.add(name, key, *restored)

    async def _read_unread(self, name: str) -> None:
        """Read a model that was not read yet; many may ask for it."""
        async with self._reading.setdefault(name, asyncio.Lock()):
            if name in self.unread:
                key = self.unread[name]
                await self.memory.make_room()
                await self.read(name, key)
                self.unread.pop(name, None)
        self._reading.pop(name, None)

    async def _read_in_background(self) -> None:
        """Read all models; those that nobody asked for in the meantime are packed at once."""
        for name in list(self.unread):
            try:
                await self._read_unread(name)
            except LogError as error:  # it is read once someone asks for it
                self.log_error(f"reading {name}", error)
            if (live := self.live.get(name)) is not None:
                await self.memory.pack(live)

    def add(self, name: str, key: int, model: Model, snapshot_at: int = 0) -> LiveModel:
        """Use a model from now on; its newest snapshot is of row `snapshot_at`."""
        self.live[name] = live = LiveModel(name, key, model)
        live.snapshot_at, live.is_leader = snapshot_at, not self.log.shared
        self.changes += 1
        return live

    def fail(self, name: str, key: int) -> None:
        """Refuse a model from now on, as its state no longer matches its log."""
        _logger.exception("%s cannot continue with its log", name)
        self.live.pop(name, None)
        self.failed[name] = key

    # Making and removing models

    async def make(self, new: NewModel) -> LiveModel:
        """Make a model; the same request again, with its seed, returns the existing model."""
        while new.name in self._being_made:  # a client that got no answer repeats its request
            await asyncio.wait([self._being_made[new.name]])
        if new.name in self.live or new.name in self.unread:
            return _made_before(await self.find(new.name), new)
        self.check_room(new.name)
        self._being_made[new.name] = done = asyncio.get_running_loop().create_future()
        try:
            return await self._make(new)
        except NameTakenError:
            return _made_before(await self.find(new.name), new)
        finally:
            del self._being_made[new.name]
            done.set_result(None)

    async def _make(self, new: NewModel) -> LiveModel:
        fields = structs.asdict(new)
        del fields["name"]
        if new.seed is None:
            fields["seed"] = secrets.randbits(53)
        spec = ModelSpec(**fields)
        at = time.time()
        model = await self.begun(Row(0, 1, "model", None, at, text_of(spec)))
        with self.differing(new.name):
            return self.add(new.name, await self.log.add_model(new.name, at, text_of(spec)), model)

    @contextlib.contextmanager
    def differing(self, name: str) -> Iterator[None]:
        """Prevent reads of a model for the block, as it is being made or removed here."""
        self._differing.add(name)
        try:
            yield
        finally:
            self._differing.discard(name)

    async def begun(self, row: Row) -> Model:
        """Return the model that the first row of a log defines, fully compiled."""
        spec: ModelSpec = body_of(row)
        self.check_labels(len(spec.labels))
        model = await _tried(Model.begin, row)
        await asyncio.to_thread(model.learner.warm_up)
        return model

    async def remove(self, name: str) -> None:
        """Remove a model with its log."""
        if name in self.unread:
            await self._read_unread(name)
        if name not in self.live and name not in self.failed and self.log.shared:
            await self.follower.follow()
        live = None if name in self.failed else self.model(name)
        key = self.failed.pop(name) if live is None else live.key
        self.live.pop(name, None)
        self.removed.add(key)
        try:
            with self.differing(name):
                if live is not None and live.snapshotting is not None:
                    await asyncio.gather(live.snapshotting, return_exceptions=True)
                await self.log.remove_model(key)
        except LogError:
            self.removed.discard(key)
            self.unread[name] = key  # it is read again if it is still there
            raise
        finally:
            self.changes += 1

    # Changing models

    async def change_settings(self, live: LiveModel, settings: ModelSettings) -> None:
        """Freeze or unfreeze a model; set when decisions expire."""
        await self._write(live, "settings", settings)

    async def change_labels(self, live: LiveModel, labels: LabelsBody) -> None:
        """Add, retire and describe labels."""
        if labels == LabelsBody():
            raise RefusedError(422, "add, retire or describe at least one label")
        for one in labels.describe:
            if one.description is None:
                raise RefusedError(422, f"the description of {short(one.name)} is missing")
        async with live.changing:
            await self._when_current(live, self._change_labels, labels)

    async def _change_labels(self, live: LiveModel, labels: LabelsBody) -> None:
        self.check_labels(len(live.model.shape.labels) + len(labels.add))
        async with self.hold(live) as model:
            live.changed = labels, await asyncio.to_thread(model.copy)
            try:
                await _tried(live.changed[1].try_change, labels)
                await self._write(live, "labels", labels)
            finally:
                live.changed = None

    async def change_shadow(self, live: LiveModel, body: ShadowBody) -> None:
        """Add, remove or promote a shadow."""
        async with live.changing:
            await self._when_current(live, self._change_shadow, body)

    async def _change_shadow(self, live: LiveModel, body: ShadowBody) -> None:
        if body.action != "add" and body.name not in live.model.meta.shadows:
            raise RefusedError(404, f"{live.name} has no shadow {short(body.name)}")
        copied = await self.copy_of(live)
        await _tried(copied.try_change, body)  # which may compile for long
        await self._write(live, "shadow", body)

    async def _when_current(
        self, live: LiveModel, change: Callable[[LiveModel, Any], Awaitable[None]], body: Struct
    ) -> None:
        """Make a change; if a model that is behind its log refuses it, again once it is not.

        While a model is being restored, it lacks the labels and shadows that were added since.
        """
        head, until = live.head, time.monotonic() + BEHIND_SECONDS
        try:
            await change(live, body)
        except RefusedError:
            if live.model.n >= head:
                raise
            while live.model.n < head:
                if time.monotonic() > until:
                    raise RefusedError(503, f"{live.name} is behind its log; try again") from None
                await asyncio.sleep(_DRAIN_SECONDS)
                self.check_there(live)
            await change(live, body)

    async def _write(self, live: LiveModel, kind: Kind, body: Struct) -> None:
        entry = Entry(live.key, kind, None, time.time(), text_of(body))
        (n,) = await self.writer.write(live, [PendingRow(entry, body)])
        if not n:
            self.check_there(live)

    async def copy_of(self, live: LiveModel) -> Model:
        """Return a copy of a model, which a thread makes while only its own requests wait."""
        async with self.hold(live) as model:
            return await asyncio.to_thread(model.copy)

    @contextlib.asynccontextmanager
    async def hold(self, live: LiveModel) -> AsyncIterator[Model]:
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
            self.applier.apply_deferred(live)

    # Checks

    def check_room(self, name: str) -> None:
        """Refuse another model if there is one of that name, or too many."""
        if name in self.live or name in self.failed or name in self.unread:
            raise RefusedError(409, f"there is a model {name!r} already")
        if len(self.live) + len(self.unread) >= self.limits.models:
            raise RefusedError(
                422, f"there are {self.limits.models:,} models, the most there can be"
            )

    def check_there(self, live: LiveModel) -> None:
        """Refuse what came too late for a removed model, even if its name is in use again."""
        if self.model(live.name) is not live:
            raise RefusedError(404, f"the model {live.name!r} was removed")

    def check_labels(self, n: int) -> None:
        """Refuse more labels than a model can have."""
        if n > self.limits.labels:
            raise RefusedError(422, f"a model has at most {self.limits.labels:,} labels; got {n:,}")


def _made_before(live: LiveModel, new: NewModel) -> LiveModel:
    """Return a model if the same request made it; refuse a different one of its name."""
    spec = live.model.meta.spec
    if any(getattr(spec, name) != getattr(new, name) for name in ModelSpec.__struct_fields__):
        raise RefusedError(409, f"there is a model {new.name!r} already")
    return live


async def _tried(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do slow work in a thread; its errors are blamed on the request."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
        raise RefusedError(422, str(error) or type(error).__name__) from None
