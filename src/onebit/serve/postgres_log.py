"""Logs in PostgreSQL, shared by any number of processes."""

from __future__ import annotations

import asyncio
import contextlib
import time
import zlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, sql

from onebit.serve.code import this_code
from onebit.serve.log import (
    Entry,
    ImportedRow,
    Key,
    LogError,
    LogHead,
    LogImport,
    NameTakenError,
    ServiceLog,
    Snapshot,
    UnavailableError,
)
from onebit.serve.postgres_appender import COLUMNS, Appender, LostError
from onebit.serve.postgres_connection import (
    BULK_SECONDS,
    LOCK_PATIENCE,
    LOCK_SECONDS,
    REWRITE_SECONDS,
    STATEMENT_SECONDS,
    Connection,
)
from onebit.serve.postgres_import import PostgresImport
from onebit.serve.postgres_snapshots import digest_of, insert_snapshot, unpacked
from onebit.serve.postgres_tables import (
    AMENDS,
    ERASED,
    FIND,
    INSERT,
    IS_ONCE,
    LOCK_MODELS,
    MIGRATIONS,
    TABLES,
    VERSION,
)
from onebit.serve.rows import ErasureBody, Row, text_of

T = TypeVar("T")

_LOCK = int.from_bytes(b"1bit")
"""The first of the two numbers of the locks in the database; the second is a model's key, or 0."""

_ADD_CODE = "INSERT INTO onebit.code (name) VALUES (%s) ON CONFLICT DO NOTHING"
_KEY_OF_CODE = "SELECT key FROM onebit.code WHERE name = %s"


class PostgresLog(ServiceLog):
    """Logs in a database, in the schema ``onebit``.

    A writer of a model's rows locks the model's own row until they are committed, so they are
    numbered in the order in which others see them. The leader of a model holds an advisory lock,
    which the database releases when the connection ends.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host:port/database``
    seconds : float, optional
        Maximum seconds that a statement takes, with the wait for its connection. Appending rows
        takes at most twice as long, as those whose confirmation was lost are looked up.
    """

    shared = True
    deadline: float

    def __init__(self, url: str, seconds: float = STATEMENT_SECONDS) -> None:
        self._url, self._seconds, self.deadline = url, seconds, 2 * seconds
        self._write, self._leader = Connection(url, seconds), Connection(url, seconds)
        self._read = Connection(url, seconds, tries=2)  # reads may be repeated
        self._bulk = Connection(url, BULK_SECONDS)
        self._appender = Appender(url, seconds)
        self._led: set[int] = set()
        self._led_by: Any = None

    async def open(self) -> None:
        """Connect, and create the tables if necessary."""
        self._appender.code = await self._bulk.run(self._make_tables)

    @staticmethod
    async def _make_tables(db: AsyncConnection[Any]) -> int:
        async with db.transaction():
            await db.execute("SET LOCAL lock_timeout = 0")  # another process may be migrating
            await db.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCK,))
            found = await db.execute("SELECT to_regclass('onebit.version')")
            row = await found.fetchone()
            if row is None or row[0] is None:
                await db.execute(TABLES)
                query = sql.SQL("INSERT INTO onebit.version VALUES ({})").format(VERSION)
                await db.execute(query)
            found = await db.execute("SELECT version FROM onebit.version")
            row = await found.fetchone()
            version = VERSION if row is None else int(row[0])
            if version > VERSION:
                raise LogError(f"the database is of a later version of onebit: {version}")
            for earlier in range(version, VERSION):
                await db.execute(MIGRATIONS[earlier].encode())
                await db.execute("UPDATE onebit.version SET version = %s", (earlier + 1,))
            await db.execute(_ADD_CODE, (this_code(),))
            found = await db.execute(_KEY_OF_CODE, (this_code(),))
            row = await found.fetchone()
            return 0 if row is None else int(row[0])

    async def close(self) -> None:
        """Close all connections, so that others can lead the models."""
        self._appender.close()
        for connection in (self._write, self._read, self._leader, self._bulk):
            await connection.close()

    async def check(self) -> None:
        """Raise LogError if nothing can be written now."""
        (row,) = await self._ask("SELECT pg_is_in_recovery()", on=self._write)
        if row[0]:
            raise LogError("PostgreSQL is read-only now")

    async def _ask(
        self,
        query: str,
        *values: Any,
        on: Connection | None = None,
        seconds: float | None = None,
    ) -> list[Any]:
        async def work(db: AsyncConnection[Any]) -> list[Any]:
            found = await db.execute(query, values)
            return await found.fetchall() if found.description else [(found.rowcount,)]

        return await (on or self._read).run(work, seconds)

    async def _rows(self, query: str, *values: Any) -> list[Row]:
        return list(map(Row._make, await self._ask(query, *values)))

    @property
    def code(self) -> int:
        """The key of the code that runs."""
        return self._appender.code

    async def codes(self) -> dict[int, str]:
        """Return all code that wrote to this log."""
        return dict(await self._ask("SELECT key, name FROM onebit.code"))

    # Models

    async def models(self) -> dict[str, int]:
        """Return the models there are: their names, with their keys."""
        return {name: head.key for name, head in (await self.heads()).items()}

    async def heads(self) -> dict[str, LogHead]:
        """Return the models there are, with their numbers of rows."""
        query = "SELECT name, key, rows FROM onebit.model WHERE name IS NOT NULL ORDER BY name"
        return {name: LogHead(key, rows) for name, key, rows in await self._ask(query)}

    async def lead(self, models: list[int]) -> set[int]:
        """Try to become the leader of these models; return those that this process leads."""

        async def work(db: AsyncConnection[Any]) -> set[int]:
            if db is not self._led_by:  # a new connection holds no locks
                for name, value in _KEEP_ALIVE.items():
                    await db.execute(f"SET {name} = {value}")
                self._led, self._led_by = set(), db
            await db.execute("SELECT 1")
            for key in self._led.difference(models):
                await db.execute("SELECT pg_advisory_unlock(%s, %s)", (_LOCK, key))
            self._led &= set(models)
            for key in models:
                if key not in self._led:
                    found = await db.execute("SELECT pg_try_advisory_lock(%s, %s)", (_LOCK, key))
                    row = await found.fetchone()
                    if row is not None and row[0]:
                        self._led.add(key)
            return set(self._led)

        return await self._leader.run(work)

    async def add_model(self, name: str, at: float, body: str) -> int:
        """Write the first row of a model, and return the model's key."""

        async def work(db: AsyncConnection[Any]) -> int:
            async with db.transaction():
                query = "INSERT INTO onebit.model (name, rows) VALUES (%s, 1) RETURNING key"
                row = await (await db.execute(query, (name,))).fetchone()
                key = int(row[0]) if row is not None else 0
                query = (
                    f"INSERT INTO onebit.log ({COLUMNS}) VALUES (%s, 1, 'model', NULL, %s, %s, %s)"
                )
                await db.execute(query, (key, at, body, self.code))
                return key

        return await self._named(self._write.run(work), name)

    async def begin_import(self, first: ImportedRow) -> LogImport:
        """Write the first row of a model that has no name until all of its rows are written."""
        new = PostgresImport(self._url, self.code, self._key_of_code)
        await new.begin(first)
        return new

    async def _key_of_code(self, name: str) -> int:
        """Return the key of some code, which it gets if necessary."""
        await self._ask(_ADD_CODE, name, on=self._write)
        ((key,),) = await self._ask(_KEY_OF_CODE, name)
        return int(key)

    async def _named(self, work: Awaitable[T], name: str) -> T:
        try:
            return await work
        except LogError as error:
            if isinstance(error.__cause__, psycopg.errors.UniqueViolation):
                raise NameTakenError(f"{name!r} exists already") from None
            raise

    async def remove_model(self, model: int) -> None:
        """Remove a model with its log."""

        async def work(db: AsyncConnection[Any]) -> None:
            async with db.transaction():
                await db.execute("DELETE FROM onebit.model WHERE key = %s", (model,))
                await db.execute("DELETE FROM onebit.log WHERE model = %s", (model,))
                await db.execute("DELETE FROM onebit.snapshot WHERE model = %s", (model,))

        await self._bulk.run(work)

    # Rows

    async def append(self, entries: list[Entry], seconds: float | None = None) -> list[int]:
        """Write rows, all or none, on disk when this returns; return their numbers."""
        until, lost = time.monotonic() + (self.deadline if seconds is None else seconds), False
        # A change of a model has no id by which a repetition could be recognised.
        can_repeat = all(entry.id is not None for entry in entries)
        try:
            return await self._appender.append(entries)
        except psycopg.errors.UniqueViolation:
            pass
        except (LostError, psycopg.OperationalError, OSError) as error:
            lost = isinstance(error, LostError)
            if not (lost and can_repeat):
                raise UnavailableError(f"PostgreSQL: {error or 'no answer in time'}") from error
        except psycopg.Error as error:
            raise LogError(f"PostgreSQL: {error}") from error
        while True:
            try:
                numbers = await self._append_some(entries, until - time.monotonic())
                if not lost:
                    return numbers
                return await self._numbers_of(entries, numbers, until - time.monotonic())
            except UnavailableError:
                lost = True
                if not can_repeat or time.monotonic() > until - 0.1:
                    raise
            await asyncio.sleep(0.1)

    async def _append_some(self, entries: list[Entry], seconds: float) -> list[int]:
        """Write the rows that are missing."""
        numbers, seen, kept = [0] * len(entries), set(), []
        for i, entry in enumerate(entries):
            if entry.id is None or (entry.model, entry.kind, entry.id) not in seen:
                seen.add((entry.model, entry.kind, entry.id))
                kept.append(i)
        columns = [list(column) for column in zip(*(entries[i] for i in kept), strict=True)]

        async def work(db: AsyncConnection[Any]) -> list[Any]:
            # One transaction, which the database commits without another message from here: others
            # wait for the locks, and this process may be busy.
            async with db.pipeline():
                await db.execute(LOCK_MODELS, (list(set(columns[0])),))
                found = await db.execute(INSERT, (*columns, self.code))
            return await found.fetchall()

        for i, n in await self._write.run(work, seconds):
            numbers[kept[i - 1]] = n
        return numbers

    async def _numbers_of(
        self, entries: list[Entry], numbers: list[int], seconds: float
    ) -> list[int]:
        """Return the numbers of rows, including those that an earlier try has written."""
        columns = [list(column) for column in zip(*entries, strict=True)]
        found = {i - 1: n for i, n in await self._ask(FIND, *columns, seconds=seconds)}
        return [found.get(i, n) for i, n in enumerate(numbers)]

    async def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the rows that follow a row, at most `limit` of them."""
        query = f"SELECT {COLUMNS} FROM onebit.log WHERE model = %s AND n > %s ORDER BY n LIMIT %s"
        return await self._rows(query, model, after, limit)

    async def head(self, model: int) -> int:
        """Return the number of the last row."""
        rows = await self._ask("SELECT rows FROM onebit.model WHERE key = %s", model)
        return int(rows[0][0]) if rows else 0

    async def amendments(self, model: int) -> list[Row]:
        """Return the rows that change what earlier rows say, in their order."""
        query = f"SELECT {COLUMNS} FROM onebit.log WHERE model = %s AND {AMENDS} ORDER BY n"
        return await self._rows(query, model)

    async def erase(self, model: int, decisions: list[int], at: float) -> int:
        """Erase decisions, in one transaction; other writers of the model wait for it."""
        since = min(decisions)

        async def work(db: AsyncConnection[Any]) -> int:
            async with db.transaction():
                found = await db.execute(LOCK_MODELS, ([model],))
                if not await found.fetchall():
                    return 0
                query = (
                    "SELECT id FROM onebit.log WHERE model = %s AND n = ANY(%s) "
                    "AND kind = 'decision'"
                )
                found = await db.execute(query, (model, decisions))
                ids, erased = [name for (name,) in await found.fetchall()], 0
                for condition in (IS_ONCE, AMENDS):
                    query = (
                        f"UPDATE onebit.log SET {ERASED} WHERE model = %s AND id = ANY(%s) "
                        f"AND {condition}"
                    )
                    erased += (await db.execute(query.encode(), (model, ids))).rowcount
                query = "DELETE FROM onebit.snapshot WHERE model = %s AND n >= %s"
                await db.execute(query, (model, since))
                query = (
                    "WITH counted AS (UPDATE onebit.model SET rows = rows + 1 WHERE key = %s "
                    f"RETURNING key, rows) INSERT INTO onebit.log ({COLUMNS}) "
                    "SELECT key, rows, 'erasure', NULL, %s, %s, %s FROM counted"
                )
                text = text_of(ErasureBody(since))
                await db.execute(query.encode(), (model, at, text, self.code))
                return erased

        return await self._bulk.run(work)

    async def sweep(self, model: int, since: int, head: int) -> None:
        """Erase what other processes wrote before they knew of an erasure."""
        query = (
            f"UPDATE onebit.log SET {ERASED} WHERE model = %s AND n > %s AND kind IN ('feedback', "
            "'revision', 'activation') AND NOT EXISTS (SELECT 1 FROM onebit.log AS made WHERE "
            f"made.{IS_ONCE} AND made.model = log.model AND made.id = log.id "
            "AND made.kind = 'decision')"
        )
        await self._ask(query, model, since, on=self._bulk)
        query = "DELETE FROM onebit.snapshot WHERE model = %s AND n >= %s AND n < %s"
        await self._ask(query, model, since, head, on=self._bulk)

    async def clean(self) -> None:
        """Rewrite the tables; nobody else uses them in the meantime.

        Whoever wants to use a table after this has asked for it waits, too. So it asks for a short
        time, and again later: an import may use the tables for minutes.
        """
        rewriting = Connection(self._url, REWRITE_SECONDS)
        until = time.monotonic() + LOCK_SECONDS

        async def rewrite(db: AsyncConnection[Any]) -> None:
            await db.execute(f"SET lock_timeout = {int(1000 * LOCK_PATIENCE)}")
            for table in ("log", "snapshot"):
                while True:
                    try:
                        await db.execute(f"VACUUM FULL onebit.{table}".encode())
                        break
                    except psycopg.errors.LockNotAvailable:
                        if time.monotonic() > until:
                            raise
                        await asyncio.sleep(LOCK_PATIENCE)

        try:
            await rewriting.run(rewrite)
        finally:
            await rewriting.close()

    async def find(self, model: int, ids: list[str]) -> list[Row]:
        """Return all rows of these ids, in their order."""
        of_ids = f"SELECT {COLUMNS} FROM onebit.log WHERE model = %s AND id = ANY(%s)"
        # Each kind of row has an index of its own.
        query = f"{of_ids} AND {IS_ONCE} UNION ALL {of_ids} AND {AMENDS} ORDER BY n"
        return await self._rows(query, model, ids, model, ids)

    async def newest(self, model: int, limit: int) -> list[Row]:
        """Return the last decisions, the last one first."""
        query = (
            f"SELECT {COLUMNS} FROM onebit.log WHERE model = %s AND kind = 'decision' "
            "ORDER BY n DESC LIMIT %s"
        )
        return await self._rows(query, model, limit)

    async def unanswered(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the decisions without feedback among the `limit` rows that follow a row."""
        query = (
            f"SELECT {COLUMNS} FROM onebit.log AS made WHERE model = %s AND n > %s AND n <= %s "
            "AND kind = 'decision' AND NOT EXISTS (SELECT 1 FROM onebit.log AS feedback WHERE "
            "feedback.model = made.model AND feedback.id = made.id AND feedback.kind = 'feedback' "
            f"AND feedback.{IS_ONCE}) ORDER BY n"
        )
        return await self._rows(query, model, after, after + limit)

    # Snapshots

    async def add_snapshot(self, model: int, snapshot: Snapshot, keep: int) -> None:
        """Write a snapshot; forget all but the last `keep`, and the last one of each code."""

        async def work(db: AsyncConnection[Any]) -> None:
            async with db.transaction():
                await insert_snapshot(db, model, snapshot, self.code)
                await db.execute(
                    # What other code made last is where this code began.
                    "DELETE FROM onebit.snapshot WHERE model = %s AND n NOT IN (SELECT n FROM "
                    "onebit.snapshot WHERE model = %s ORDER BY n DESC LIMIT %s) AND n NOT IN "
                    "(SELECT max(n) FROM onebit.snapshot WHERE model = %s GROUP BY code)",
                    (model, model, keep, model),
                )

        await self._bulk.run(work)

    async def snapshots(self, model: int) -> AsyncIterator[Snapshot]:
        """Yield the snapshots that are not damaged, the newest first."""
        query = "SELECT n FROM onebit.snapshot WHERE model = %s ORDER BY n DESC"
        for (n,) in await self._ask(query, model, on=self._bulk):
            query = (
                "SELECT code, meta, names, learners, digest FROM onebit.snapshot "
                "WHERE model = %s AND n = %s"
            )
            rows = await self._ask(query, model, n, on=self._bulk)
            for code, meta, names, learners, digest in rows:
                found = Snapshot(n, meta, dict(zip(names, learners, strict=True)), code)
                if digest_of(found) == digest:
                    with contextlib.suppress(zlib.error):  # of a version without compression
                        yield unpacked(found)

    # Keys

    async def keys(self) -> list[Key]:
        """Return the API keys."""
        query = f"SELECT {', '.join(Key._fields)} FROM onebit.key ORDER BY name"
        return list(map(Key._make, await self._ask(query)))

    async def add_key(self, key: Key) -> None:
        """Add an API key; raise NameTakenError if another one has its name."""
        query = "INSERT INTO onebit.key VALUES (%s, %s, %s, %s, %s, %s, %s)"
        await self._named(self._ask(query, *key, on=self._write), key.name)

    async def remove_key(self, name: str) -> bool:
        """Remove an API key; return whether there was one."""
        query = "DELETE FROM onebit.key WHERE name = %s RETURNING name"
        return bool(await self._ask(query, name, on=self._write))


_KEEP_ALIVE = {"tcp_keepalives_idle": 2, "tcp_keepalives_interval": 1, "tcp_keepalives_count": 3}
"""With these the database notices within seconds that the machine of a leader is gone."""
