"""Connections to PostgreSQL that reconnect, and never wait longer than their deadline."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from onebit.serve.log import LogError, UnavailableError

T = TypeVar("T")

STATEMENT_SECONDS = 4.0
"""Maximum seconds for ordinary work: the wait for the connection, connecting, and the answer."""

BULK_SECONDS = 120.0
"""Maximum seconds for work on whole models: writing a snapshot, removing a log."""

REWRITE_SECONDS = 3600.0
"""Maximum seconds for rewriting a table."""

LOCK_SECONDS = 60.0
"""Maximum seconds until nobody uses a table that is to be rewritten."""

LOCK_PATIENCE = 0.5
"""Seconds that others wait, too, for such a table."""

_GRACE_SECONDS = 0.5
"""Seconds in which work notices that its connection was cut."""

_DEFAULTS = {
    "connect_timeout": 3,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 4000,
}
"""Parameters of a connection, unless the URL has them: a machine that is gone is noticed."""


async def connect(url: str, seconds: float, until: float, **options: Any) -> AsyncConnection[Any]:
    """Connect until a time of the event loop.

    The server itself ends statements, and open transactions that send none, after `seconds`. Work
    on whole models may take long, but does not wait as long for a lock: while a table is rewritten,
    requests are refused.
    """
    options |= {k: v for k, v in _DEFAULTS.items() if k not in conninfo_to_dict(url)}
    async with asyncio.timeout_at(until):
        db = await AsyncConnection.connect(url, autocommit=True, **options)
    milliseconds = max(1, int(seconds * 1000))
    settings = (
        f"SET statement_timeout = {milliseconds}; "
        f"SET idle_in_transaction_session_timeout = {milliseconds}; "
        f"SET lock_timeout = {min(milliseconds, int(STATEMENT_SECONDS * 1000))}"
    )
    await answered(db, db.execute(settings), until)
    return db


def cut(db: AsyncConnection[Any]) -> None:
    """End a connection as a broken network would, so that a wait for its answer ends.

    Cancelling the wait instead would ask the same server to cancel the statement, and wait for it.
    What has arrived can still be read.
    """
    with contextlib.suppress(psycopg.Error, OSError):  # it has ended already
        ended = socket.socket(fileno=db.pgconn.socket)
        try:
            ended.shutdown(socket.SHUT_RDWR)
        finally:
            ended.detach()


async def answered(db: AsyncConnection[Any], work: Awaitable[T], until: float) -> T:
    """Return what `work` with a connection returns, by a time of the event loop.

    Raise TimeoutError, with the connection cut, if it did not return in time.
    """
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.wait([doing], timeout=until - asyncio.get_running_loop().time())
        if not doing.done():
            cut(db)
            await asyncio.wait([doing], timeout=_GRACE_SECONDS)
    finally:  # also if nobody waits for it any longer
        if not doing.done():
            cut(db)
            doing.cancel()
    if not doing.done():
        raise TimeoutError("no answer in time")
    return doing.result()


class Connection:
    """A connection that reconnects after the database was away; used by one task at a time.

    Parameters
    ----------
    url : str
    seconds : float
        Maximum seconds for a piece of work.
    tries : int, default=1
        How often to try; more than once only for work that may be done twice.
    """

    def __init__(self, url: str, seconds: float, *, tries: int = 1) -> None:
        self._url, self._seconds, self._tries = url, seconds, tries
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection[Any] | None = None

    async def run(
        self, work: Callable[[AsyncConnection[Any]], Awaitable[T]], seconds: float | None = None
    ) -> T:
        """Do `work` with the connection.

        Raise UnavailableError if the database cannot be reached or does not answer in time, and
        LogError if it refuses the work.
        """
        seconds = self._seconds if seconds is None else min(seconds, self._seconds)
        until = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(until):
                await self._lock.acquire()
        except TimeoutError:
            raise _too_late(seconds) from None
        try:
            return await self._try(work, until, seconds)
        finally:
            self._lock.release()

    async def _try(
        self, work: Callable[[AsyncConnection[Any]], Awaitable[T]], until: float, seconds: float
    ) -> T:
        for left in range(self._tries - 1, -1, -1):
            try:
                return await self._work(work, until)
            except (psycopg.OperationalError, psycopg.InterfaceError, OSError) as error:
                await self._hang_up()
                if asyncio.get_running_loop().time() >= until:
                    raise _too_late(seconds) from error
                if not left:
                    raise UnavailableError(f"PostgreSQL: {error}") from error
            except psycopg.Error as error:
                raise LogError(f"PostgreSQL: {error}") from error
        raise AssertionError("unreachable")

    async def _work(self, work: Callable[[AsyncConnection[Any]], Awaitable[T]], until: float) -> T:
        db = self._connection
        if db is None or db.closed:
            self._connection = db = await connect(self._url, self._seconds, until)
        try:
            return await answered(db, work(db), until)
        except asyncio.CancelledError:
            await self._hang_up()  # the statement may still be answered
            raise

    async def _hang_up(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()

    async def close(self) -> None:
        """Close the connection, once nobody uses it."""
        async with self._lock:
            await self._hang_up()


def _too_late(seconds: float) -> UnavailableError:
    return UnavailableError(f"PostgreSQL did not answer within {seconds:g} s")
