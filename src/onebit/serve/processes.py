"""Background processes of the service: started when there is work for them, a few at most."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple

from onebit.serve.api import RefusedError
from onebit.serve.log import Snapshot
from onebit.serve.messages import (
    LENGTH,
    LONGEST_PART,
    Announcement,
    Failure,
    Refusal,
    ReplayedModel,
    ReplayedRows,
    Task,
    decode_message,
    encode,
    framed,
)
from onebit.serve.model import Model

MOST_PROCESSES = 2
"""Maximum number of tasks at a time; each takes a process with a model of its own."""

MOST_WAITING = 8
"""Maximum number of tasks that wait, for others or for their input; more are refused."""

UPLOAD_PATIENCE = 1.0
"""Seconds that a task waits for its input, in all, before it lets others go on meanwhile."""

IDLE_SECONDS = 30.0
"""Seconds until a process without a task ends: to start one takes a second."""

_BUFFER = 2**17
"""Bytes in each direction that wait for whoever is slower."""

_MAIN = "from onebit.serve.starting import run_in_background; run_in_background()"

_logger = logging.getLogger(__name__)


class Replayed(NamedTuple):
    """A model that a process has replayed, with the parts of its learners' contents."""

    model: ReplayedModel
    learners: dict[str, list[bytes]]

    def snapshot(self) -> Snapshot:
        """Return the model as a snapshot."""
        contents = {name: b"".join(parts) for name, parts in self.learners.items()}
        return Snapshot(self.model.n, self.model.meta, contents)

    def restored(self) -> Model:
        """Return the model."""
        found = self.snapshot()
        return Model.restore(found.meta, found.learners)


class _Turn:
    """One of the tasks that go on at a time; a task may give its turn to others."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free, self._is_taken = free, False

    async def take(self) -> None:
        """Wait for a turn."""
        await self._free.acquire()
        self._is_taken = True

    def give_up(self) -> None:
        """Give the turn to another task."""
        if self._is_taken:
            self._free.release()
            self._is_taken = False

    async def while_working(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield parts; once they have been waited for long, others go on during each wait."""
        patience = UPLOAD_PATIENCE
        while True:
            coming = asyncio.ensure_future(anext(parts, None))
            start = time.monotonic()
            try:
                await asyncio.wait([coming], timeout=patience)
                patience = max(0.0, patience - (time.monotonic() - start))
                if not coming.done():
                    self.give_up()
                    await asyncio.wait([coming])
                    await self.take()
            finally:
                coming.cancel()
            if (part := await coming) is None:
                return
            yield part


class BackgroundProcess:
    """A process, and the messages to and from it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout
        self.is_idle = True
        """Whether all input of its last task was sent, and its whole output was read."""
        self.turn: _Turn | None = None
        """Of its task."""

    @classmethod
    async def start(cls) -> BackgroundProcess:
        """Start a process that finds modules where this one does."""
        flags: dict[str, Any] = {}
        if sys.platform == "win32":
            flags["creationflags"] = subprocess.BELOW_NORMAL_PRIORITY_CLASS
        command = (sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {_MAIN}")
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, limit=_BUFFER, **flags
            )
        except OSError as error:  # too many open files or processes, or no memory
            _logger.error("no background process could be started: %s", error)
            raise RefusedError(503, "no process for this can be started; try again") from None
        return cls(process)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.returncode is not None

    async def run(
        self, task: Task, parts: AsyncIterator[bytes]
    ) -> AsyncGenerator[ReplayedRows | Replayed, None]:
        """Do a task: yield rows, if there are some, then the model.

        Raise RefusedError if the process refuses its input, and whatever `parts` raises.
        """
        self.is_idle = False
        sending = asyncio.ensure_future(self._send(task, parts))
        try:
            try:
                while isinstance(message := await self._message(), ReplayedRows):
                    yield message
                yield Replayed(message, await self._learners(message))
            except asyncio.IncompleteReadError:
                if sending.done():
                    sending.result()
                raise RefusedError(503, "the process for this ended; try again") from None
            await sending
            self.is_idle = True
        except RefusedError as error:
            self.is_idle = sending.done() and error.status == 422
            raise
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send(self, task: Task, parts: AsyncIterator[bytes]) -> None:
        try:
            await self._write(encode(task))
            if self.turn is not None:
                parts = self.turn.while_working(parts)
            async for part in parts:
                for i in range(0, len(part), LONGEST_PART):
                    await self._write(part[i : i + LONGEST_PART])
            await self._write(b"")
        except (BrokenPipeError, ConnectionError):
            pass  # its output says that it ended
        except BaseException:
            self.kill()  # whoever waits for its output need not
            raise

    async def _write(self, content: bytes) -> None:
        self._input.write(framed(content))
        await self._input.drain()

    async def _message(self) -> ReplayedRows | ReplayedModel:
        while True:
            message = decode_message(await self._read())
            if isinstance(message, Announcement):
                _logger.info("%s", message.message)
            elif isinstance(message, Refusal):
                raise RefusedError(422, message.message)
            elif isinstance(message, Failure):
                raise RuntimeError(message.traceback)
            else:
                return message

    async def _learners(self, model: ReplayedModel) -> dict[str, list[bytes]]:
        learners: dict[str, list[bytes]] = {}
        for name, size in model.sizes.items():
            learners[name] = parts = []
            while size:
                parts.append(await self._read())
                size -= len(parts[-1])
        return learners

    async def _read(self) -> bytes:
        (length,) = LENGTH.unpack(await self._output.readexactly(LENGTH.size))
        return await self._output.readexactly(length)

    def kill(self) -> None:
        """End the process now."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """End the process, and wait for that."""
        self.kill()
        await self._process.wait()


class BackgroundProcesses:
    """The background processes of a service.

    Tasks wait for one another if there are many, and for a process to start. One that has done its
    task waits for the next one for some seconds.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MOST_PROCESSES)
        self._tasks = 0
        """Tasks that go on, wait for a turn, or wait for their input."""
        self._idle: list[BackgroundProcess] = []
        self._timers: dict[BackgroundProcess, Any] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def are_all_busy(self) -> bool:
        """Whether another task would wait."""
        return self._free.locked()

    @contextlib.asynccontextmanager
    async def process(self) -> AsyncIterator[BackgroundProcess]:
        """Give a process for a task; refuse it if too many others wait."""
        if self._tasks >= MOST_PROCESSES + MOST_WAITING:
            raise RefusedError(429, "too many logs are being imported; try again later")
        self._tasks += 1
        turn = _Turn(self._free)
        try:
            await turn.take()
            process = self._next_idle() or await BackgroundProcess.start()
            process.turn = turn
            try:
                yield process
            finally:
                self._keep_or_end(process)
        finally:
            turn.give_up()
            self._tasks -= 1

    def _next_idle(self) -> BackgroundProcess | None:
        while self._idle:
            process = self._idle.pop()
            self._timers.pop(process).cancel()
            if not process.has_ended:
                return process
        return None

    def _keep_or_end(self, process: BackgroundProcess) -> None:
        if not process.is_idle or process.has_ended:
            self._end(process)
            return
        self._idle.append(process)
        loop = asyncio.get_running_loop()
        self._timers[process] = loop.call_later(IDLE_SECONDS, self._end_idle, process)

    def _end_idle(self, process: BackgroundProcess) -> None:
        del self._timers[process]
        self._idle.remove(process)
        self._end(process)

    def _end(self, process: BackgroundProcess) -> None:
        task = asyncio.get_running_loop().create_task(process.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def stop(self) -> None:
        """End the processes that have no task; those with a task end with it, or with this one."""
        while (process := self._next_idle()) is not None:
            self._end(process)
        await asyncio.gather(*self._ending)
