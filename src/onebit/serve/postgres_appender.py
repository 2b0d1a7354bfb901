"""A connection to PostgreSQL that does nothing but append rows, with little overhead."""

from __future__ import annotations

import asyncio
import select
import sys
from collections.abc import Iterable
from struct import Struct
from typing import Any

import psycopg
from psycopg import AsyncConnection, pq

from onebit.serve.log import Entry
from onebit.serve.postgres_connection import answered, connect

COLUMNS = "model, n, kind, id, at, body, code"

# For new rows, as nearly all are. Writers to the same models wait for the locks on these, in the
# order of their keys, and then see how many rows there are.
_APPEND = f"""
WITH locked AS (
    SELECT key FROM onebit.model WHERE key = ANY($1::bigint[]) ORDER BY key FOR UPDATE
), counted AS (
    UPDATE onebit.model SET rows = rows + more.n
    FROM unnest($1::bigint[], $2::bigint[]) AS more (key, n) JOIN locked USING (key)
    WHERE model.key = more.key RETURNING model.key, rows - more.n AS before
), written AS (
    INSERT INTO onebit.log ({COLUMNS})
    SELECT given.model, before + place, kind, nullif(id, ''), at, body, $9::bigint
    FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::float8[], $8::text[])
    AS given (model, place, kind, id, at, body) JOIN counted ON key = given.model
)
SELECT key, before FROM counted
"""


class LostError(Exception):
    """The connection ended before the answer came: it is unknown whether rows are on disk."""


class Appender:
    """A connection that appends rows; the event loop watches its socket for the answer.

    A batch is one message to the database, with values in its wire format: a driver's overhead per
    statement takes longer than the statement (`bench/serve_appender.py`: 126 microseconds of a
    processor for a batch of 16 rows, 804 with psycopg's pipeline). So does a waiting thread.
    Batches take turns, as a connection has one statement at a time; a batch that is not answered
    in time is lost, and so is its connection.

    Parameters
    ----------
    url : str
    seconds : float
        Maximum seconds for a batch.

    Attributes
    ----------
    code : int
        The key of the code that makes the rows.
    """

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds, self._turn = url, seconds, asyncio.Lock()
        self.code = 0
        self._connection: AsyncConnection[Any] | None = None
        self._socket = -1
        self._answer: asyncio.Future[Any] | None = None
        self._result: Any = None
        """The part of the answer that has arrived."""

    async def append(self, entries: list[Entry]) -> list[int]:
        """Write rows, all or none; return their numbers, zero for models that are not there.

        Raise TimeoutError, or an error of psycopg, if nothing was written, and LostError if it is
        unknown whether it was.
        """
        counts: dict[int, int] = {}
        places = []
        for entry in entries:
            counts[entry.model] = place = counts.get(entry.model, 0) + 1
            places.append(place)
        models, kinds, ids, times, bodies = zip(*entries, strict=True)
        values = [
            *(_plain(counts), _plain(counts.values()), _plain(models), _plain(places)),
            *(_plain(kinds), _texts([name or "" for name in ids]), _plain(times), _texts(bodies)),
            str(self.code).encode(),
        ]
        until = asyncio.get_running_loop().time() + self._seconds
        async with asyncio.timeout_at(until):
            await self._turn.acquire()
        try:
            found = await self._run(values, until)
        finally:
            self._turn.release()
        before = {
            int(found.get_value(i, 0)): int(found.get_value(i, 1)) for i in range(found.ntuples)
        }
        return [before[m] + k if m in before else 0 for m, k in zip(models, places, strict=True)]

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            loop.remove_writer(self._socket)
            self._connection.pgconn.finish()
            self._connection = None

    async def _run(self, values: list[bytes], until: float) -> Any:
        try:
            db = self._connection
            if db is None:
                db = await self._connect(until)
            loop = asyncio.get_running_loop()
            self._answer = loop.create_future()
            timer = loop.call_at(until, self._lose, "no answer in time")
            try:
                db.pgconn.send_query_prepared(b"append", values, _FORMATS)
                self._send()
                return _checked(await self._answer)
            finally:
                timer.cancel()
        except psycopg.errors.UniqueViolation:
            raise
        except BaseException:
            self.close()  # the statement may still be answered
            raise
        finally:
            self._answer = self._result = None

    async def _connect(self, until: float) -> AsyncConnection[Any]:
        db = await connect(self._url, self._seconds, until, client_encoding="utf8")
        self._connection, self._socket = db, db.pgconn.socket
        # Planning each time takes longer than inserting, and gives the same plan.
        for query in ("SET plan_cache_mode = force_generic_plan", f"PREPARE append AS {_APPEND}"):
            await answered(db, db.execute(query.encode()), until)
        asyncio.get_running_loop().add_reader(self._socket, self._receive)
        return db

    def _send(self) -> None:
        """Send what the socket accepts now, and the rest when it accepts more."""
        assert self._connection is not None
        loop = asyncio.get_running_loop()
        try:
            if self._connection.pgconn.flush():
                loop.add_writer(self._socket, self._send)
            else:
                loop.remove_writer(self._socket)
        except psycopg.OperationalError as error:
            self._lose(str(error))

    def _receive(self) -> None:
        """Read all that has arrived; an answer ends when the database is ready for the next query.

        libpq reads a part at a time, and uvloop does not report a socket again once it has an
        error: the last words of a server that was killed, and the end after them, come together.
        """
        assert self._connection is not None
        db = self._connection.pgconn
        try:
            while True:
                db.consume_input()
                while self._answer is not None and not self._answer.done() and not db.is_busy():
                    result = db.get_result()
                    if result is None:
                        self._answer.set_result(self._result)
                    self._result = result or self._result
                if not _is_readable(self._socket):
                    return
        except psycopg.OperationalError as error:
            self._lose(str(error))

    def _lose(self, reason: str) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(LostError(reason))


def _is_readable(fileno: int) -> bool:
    if sys.platform == "win32":
        return bool(select.select([fileno], [], [], 0)[0])
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))


def _checked(result: Any) -> Any:
    """Return what the database answered; raise what it says is wrong."""
    if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
        raise psycopg.errors.error_from_result(result)
    return result


def _plain(values: Iterable[Any]) -> bytes:
    """Return numbers or plain words as an array of the database, in its text format."""
    return f"{{{','.join(map(str, values))}}}".encode()


def _texts(values: Iterable[str]) -> bytes:
    """Return texts as an array of the database, in its binary format."""
    contents = [value.encode() for value in values]
    parts = [_ARRAY.pack(1, 0, _TEXT, len(contents), 1)]
    for content in contents:
        parts += _LENGTH.pack(len(content)), content
    return b"".join(parts)


_ARRAY, _LENGTH, _TEXT = Struct("!5i"), Struct("!i"), 25
"""Of an array: dimensions, whether there are nulls, the type, the length, where it begins."""

_FORMATS = [pq.Format.TEXT] * 5 + [pq.Format.BINARY, pq.Format.TEXT, pq.Format.BINARY]
_FORMATS += [pq.Format.TEXT]
