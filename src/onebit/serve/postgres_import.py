"""Imports into PostgreSQL: one transaction on a connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from onebit.serve.log import (
    ImportedRow,
    LogError,
    LogImport,
    NameTakenError,
    Snapshot,
    UnavailableError,
)
from onebit.serve.postgres_appender import COLUMNS
from onebit.serve.postgres_connection import BULK_SECONDS, answered, connect, cut
from onebit.serve.postgres_snapshots import insert_snapshot

T = TypeVar("T")


class PostgresImport(LogImport):
    """A log that is being imported.

    Nothing of it is visible before its transaction is committed, and nothing is left of it if this
    process or the database is killed.

    Parameters
    ----------
    url : str
    code : int
        The key of the code that writes the snapshot.
    key_of_code : callable
        Returns the key of the code of a row, by its name.
    """

    def __init__(self, url: str, code: int, key_of_code: Callable[[str], Awaitable[int]]) -> None:
        self._url, self._code, self._n = url, code, 0
        self._key_of_code = key_of_code
        self._codes: dict[str | None, str] = {None: r"\N", "": r"\N"}
        """Keys of code, as COPY reads them."""
        self._db: AsyncConnection[Any] | None = None
        self._copying = contextlib.AsyncExitStack()
        self._copy: Any = None

    async def begin(self, first: ImportedRow) -> None:
        """Begin the transaction, and write the first row."""
        until = asyncio.get_running_loop().time() + BULK_SECONDS
        try:
            self._db = await connect(self._url, BULK_SECONDS, until)
            await self._answered(self._begin(self._db))
            await self.append([first])
        except (psycopg.Error, OSError) as error:
            await self.abort()
            raise UnavailableError(f"PostgreSQL: {error}") from error
        except BaseException:
            await self.abort()
            raise

    async def _begin(self, db: AsyncConnection[Any]) -> None:
        # Rows come as fast as they are replayed: the one statement that takes them has no deadline
        # of its own, and each part of it has one here.
        await db.execute("SET statement_timeout = 0")
        await db.execute("BEGIN")
        query = "INSERT INTO onebit.model (name, rows) VALUES (NULL, 1) RETURNING key"
        row = await (await db.execute(query)).fetchone()
        self.key = 0 if row is None else int(row[0])
        copy = db.cursor().copy(f"COPY onebit.log ({COLUMNS}) FROM STDIN")
        self._copy = await self._copying.enter_async_context(copy)

    async def append(self, rows: list[ImportedRow]) -> None:
        """Write the next rows."""
        lines = []
        for kind, name, at, body, code in rows:
            self._n += 1
            if code not in self._codes:
                self._codes[code] = str(await self._key_of_code(str(code)))
            shown = r"\N" if name is None else _escaped(name)
            line = f"{self.key}\t{self._n}\t{kind}\t{shown}\t{at!r}\t{_escaped(body)}"
            lines.append(f"{line}\t{self._codes[code]}\n")
        await self._answered(self._copy.write("".join(lines).encode()))

    async def finish(self, name: str, n: int, snapshot: Snapshot | None) -> None:
        """Give the model its name, and commit."""
        await self._answered(self._copying.aclose())
        try:
            await self._answered(self._finish(name, n, snapshot))
        except LogError as error:
            if isinstance(error.__cause__, psycopg.errors.UniqueViolation):
                raise NameTakenError(f"{name!r} exists already") from None
            raise
        await self._close()

    async def _finish(self, name: str, n: int, snapshot: Snapshot | None) -> None:
        assert self._db is not None
        if snapshot is not None:
            await insert_snapshot(self._db, self.key, snapshot, self._code)
        query = "UPDATE onebit.model SET name = %s, rows = %s WHERE key = %s"
        await self._db.execute(query, (name, n, self.key))
        await self._db.execute("COMMIT")

    async def abort(self) -> None:
        """End the connection: the database then rolls back."""
        if self._db is not None:
            cut(self._db)
            await self._close()

    async def _close(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            with contextlib.suppress(psycopg.Error, OSError):  # of a connection that was cut
                await self._copying.aclose()
            db.pgconn.finish()

    async def _answered(self, work: Awaitable[T]) -> T:
        """Return what a part of the work returns, within its deadline."""
        assert self._db is not None
        until = asyncio.get_running_loop().time() + BULK_SECONDS
        try:
            return await answered(self._db, work, until)
        except (psycopg.OperationalError, psycopg.InterfaceError, OSError) as error:
            raise UnavailableError(f"PostgreSQL: {error or 'no answer in time'}") from error
        except psycopg.Error as error:
            raise LogError(f"PostgreSQL: {error}") from error


def _escaped(text: str) -> str:
    """Return a text as COPY reads it."""
    text = text.replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
