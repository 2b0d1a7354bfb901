"""Logs in a folder: SQLite for the rows, files for the snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

from onebit.core.replacing import replace_file
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
)
from onebit.serve.rows import ErasureBody, Row, text_of
from onebit.serve.sqlite_database import (
    AMENDS,
    IS_ONCE,
    ROOM,
    VERSION,
    SQLiteDatabase,
    files_of,
)

T = TypeVar("T")

_PATIENCE = 0.003
"""Seconds that the event loop waits for the disk. To hand rows to another thread, and to get the
interpreter back from it, takes half as long when there is much to do."""

_COLUMNS, _VALUES = "model, n, kind, id, at, body, code", "(?, ?, ?, ?, ?, ?, ?)"

_IDS = f"log INDEXED BY log_ids WHERE {IS_ONCE}"
_AMENDMENTS = f"log INDEXED BY log_amendments WHERE {AMENDS}"
"""Rows by their ids: left alone, SQLite uses the primary key, and reads all rows of a model."""

_ERASED = "kind = 'erased', id = NULL, body = '{}'"

ERASED_AT_ONCE = 200
"""Decisions that are erased before rows of requests get their turn."""

_ROWS_A_STATEMENT = 128
"""Rows of one INSERT, at most. SQLite keeps one compiled statement for each number of rows."""


class SQLiteLog(ServiceLog):
    """Logs in a folder, for one service at a time.

    A commit is on disk before it returns (write-ahead log, ``synchronous=FULL``). While the disk is
    fast, the event loop writes rows itself; if it is slow, a separate thread does.

    Parameters
    ----------
    folder : path
    alone : bool, default=True
        Whether to lock the folder against other writers: for the process that writes rows.
    make : bool, default=True
        Whether to create what is missing.
    """

    shared = False

    def __init__(
        self, folder: str | os.PathLike[str], *, alone: bool = True, make: bool = True
    ) -> None:
        self._database = SQLiteDatabase(folder, alone=alone, make=make)
        self.folder, self._alone = self._database.folder, alone
        self._heads: dict[int, int] = {}
        self._importing: set[int] = set()
        """Models that are being imported."""
        self._code = 0
        self._codes: dict[str, int] = {}
        """Keys of the code whose rows were written here."""
        self._flush = 0.0
        """Seconds that the last rows took to be on disk."""

    async def open(self) -> None:
        """Open the database, and create it if necessary."""
        try:
            self._open()
        except LogError:
            await self.close()
            raise

    def _open(self) -> None:
        database = self._database
        try:
            database.open()
            with database.errors():
                if self._alone:
                    self._code = database.transact(
                        lambda db: self._key_of_code(db, this_code()) or 0
                    )
                query = "SELECT key, (SELECT max(n) FROM log WHERE model = key) FROM model"
                self._heads = dict(database.read.execute(query))
        except OSError as error:
            raise LogError(f"{error.filename}: {error.strerror}") from error

    async def close(self) -> None:
        """Close the database, so that another process may open it."""
        self._database.close()

    async def tidy(self) -> None:
        """Remove what a killed process left of models that were being imported or removed."""
        with self._database.errors():
            query = "SELECT key FROM model WHERE name IS NULL"
            unnamed = {key for (key,) in self._database.read.execute(query)}
        for key in unnamed - self._importing:
            await self._clear(key)

    def _rows(self, query: str, *values: Any) -> list[Row]:
        with self._database.errors():
            return list(map(Row._make, self._database.read.execute(query, values)))

    async def check(self) -> None:
        """Raise LogError if nothing can be written now."""
        self._database.check_in_place()
        # A full disk is noticed when the write-ahead log has no room left, which may be megabytes
        # later; a disk that cannot be written to at all, when a page is rewritten.
        if (free := shutil.disk_usage(self.folder).free) < ROOM:
            raise LogError(f"{self.folder}: the disk is full, with {free:,} bytes free")
        await self._database.transaction(lambda db: db.execute(f"PRAGMA user_version = {VERSION}"))

    @property
    def code(self) -> int:
        """The key of the code that runs."""
        return self._code

    async def codes(self) -> dict[int, str]:
        """Return all code that wrote to this log."""
        with self._database.errors():
            return dict(self._database.read.execute("SELECT key, name FROM code"))

    def _key_of_code(self, db: sqlite3.Connection, name: str | None) -> int | None:
        """Return the key of some code, which it gets if necessary; None if it is unknown."""
        if not name:
            return None
        if name not in self._codes:
            db.execute("INSERT OR IGNORE INTO code (name) VALUES (?)", (name,))
            query = "SELECT key FROM code WHERE name = ?"
            (self._codes[name],) = db.execute(query, (name,)).fetchone()
        return self._codes[name]

    # Models

    async def models(self) -> dict[str, int]:
        """Return the models there are: their names, with their keys."""
        with self._database.errors():
            query = "SELECT name, key FROM model WHERE name IS NOT NULL ORDER BY name"
            return dict(self._database.read.execute(query))

    async def heads(self) -> dict[str, LogHead]:
        """Return the models there are, with their numbers of rows."""
        return {name: LogHead(key, self._heads[key]) for name, key in (await self.models()).items()}

    async def lead(self, models: list[int]) -> set[int]:
        """Return all models: this process is the only one."""
        return set(models)

    async def add_model(self, name: str, at: float, body: str) -> int:
        """Write the first row of a model, and return the model's key."""
        return await self._add_model(name, at, body, this_code())

    async def _add_model(self, name: str | None, at: float, body: str, code: str | None) -> int:
        def work(db: sqlite3.Connection) -> int:
            with _taken(name):
                key = db.execute("INSERT INTO model (name) VALUES (?)", (name,)).lastrowid
            row = Row(int(key or 0), 1, "model", None, at, body, self._key_of_code(db, code))
            _insert(db, [row])
            return row.model

        key = await self._database.transaction(work)
        self._heads[key] = 1
        return key

    async def begin_import(self, first: ImportedRow) -> LogImport:
        """Write the first row of a model that has no name until all of its rows are written."""
        _, _, at, body, code = first
        key = await self._add_model(None, at, body, code)
        self._importing.add(key)
        return _SQLiteImport(self, key)

    async def remove_model(self, model: int) -> None:
        """Remove a model with its log: at once from view, gradually from the disk."""

        def unname(db: sqlite3.Connection) -> None:
            db.execute("UPDATE model SET name = NULL WHERE key = ?", (model,))

        await self._database.transaction(unname)
        await self._clear(model)

    async def _clear(self, model: int) -> None:
        def some(db: sqlite3.Connection) -> int:
            self._heads.pop(model, None)  # from now on, rows of it are left out
            query = (
                "DELETE FROM log WHERE model = ?1 AND n IN "
                "(SELECT n FROM log WHERE model = ?1 LIMIT 5000)"
            )
            return db.execute(query, (model,)).rowcount

        def rest(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM snapshot WHERE model = ?", (model,))
            db.execute("DELETE FROM model WHERE key = ?", (model,))

        while await self._database.transaction(some):
            await asyncio.sleep(0)
        await self._database.transaction(rest)
        self._importing.discard(model)
        for path in (self.folder / "snapshots").glob(f"{model}-*"):
            path.unlink(missing_ok=True)

    # Rows

    @property
    def at_once(self) -> bool:
        """Whether `append` would now block the event loop until rows are on disk."""
        return self._flush < _PATIENCE and not self._database.committer.submitted

    async def append(self, entries: list[Entry], seconds: float | None = None) -> list[int]:
        """Write rows, all or none, on disk when this returns; return their numbers."""
        with self._database.errors():
            if self.at_once and len(entries) <= _ROWS_A_STATEMENT:
                return self._append(entries)
            return await self._database.committer.submit(lambda: self._append(entries))

    def _append(self, entries: list[Entry]) -> list[int]:
        """Write rows, and remember how long that took."""
        self._database.check_in_place()
        start = time.perf_counter()
        try:
            return self._append_all(entries)
        finally:
            self._flush = time.perf_counter() - start

    def _append_all(self, entries: list[Entry]) -> list[int]:
        heads: dict[int, int] = {}
        rows = []
        for model, kind, name, at, body in entries:
            heads[model] = n = heads.get(model, self._heads.get(model, 0)) + 1
            rows.append((model, n, kind, name, at, body, self._code))
        numbers = [row[1] for row in rows]
        try:
            if not heads.keys() <= self._heads.keys():
                raise _LeftOutError
            if len(rows) <= _ROWS_A_STATEMENT:
                _insert(self._database.write, rows)  # a statement by itself is a transaction
            else:
                self._database.transact(lambda db: _insert(db, rows))
        except (_LeftOutError, sqlite3.IntegrityError):
            heads.clear()
            numbers = self._database.transact(lambda db: self._append_each(db, entries, heads))
        self._heads.update(heads)
        return numbers

    def _append_each(
        self, db: sqlite3.Connection, entries: list[Entry], heads: dict[int, int]
    ) -> list[int]:
        """Write the possible rows, one by one; `heads` has the last number of each model."""
        insert = f"INSERT OR IGNORE INTO log ({_COLUMNS}) VALUES {_VALUES}"
        code = self._code
        numbers = []
        for model, kind, name, at, body in entries:
            n = heads.get(model, self._heads.get(model, 0)) + 1
            if n > 1 and db.execute(insert, (model, n, kind, name, at, body, code)).rowcount:
                heads[model] = n
                numbers.append(n)
            else:
                numbers.append(0)
        return numbers

    async def append_imported(self, model: int, rows: list[ImportedRow]) -> None:
        """Write rows of a model that is being imported; they are on disk after the next `append`.

        A commit that is not flushed by itself is flushed with the next one that is.
        """

        def work() -> None:
            self._database.check_in_place()
            db, n = self._database.write, self._heads[model]
            numbered = [
                (model, n + i, *row, self._key_of_code(db, code))
                for i, (*row, code) in enumerate(rows, start=1)
            ]
            db.execute("PRAGMA synchronous = NORMAL")
            try:
                _insert(db, numbered)
            finally:
                db.execute("PRAGMA synchronous = FULL")
            self._heads[model] = n + len(rows)

        with self._database.errors():
            if self.at_once and len(rows) <= _ROWS_A_STATEMENT:
                work()
            else:
                await self._database.committer.submit(work)

    async def finish_import(self, model: int, name: str) -> None:
        """Give a model its name, which flushes its rows, too."""

        def work(db: sqlite3.Connection) -> None:
            with _taken(name):
                db.execute("UPDATE model SET name = ? WHERE key = ?", (name, model))

        await self._database.transaction(work)
        self._importing.discard(model)

    async def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the rows that follow a row, at most `limit` of them."""
        query = f"SELECT {_COLUMNS} FROM log WHERE model = ? AND n > ? ORDER BY n LIMIT ?"
        return self._rows(query, model, after, limit)

    async def head(self, model: int) -> int:
        """Return the number of the last row."""
        with self._database.errors():
            query = "SELECT max(n) FROM log WHERE model = ?"
            return self._database.read.execute(query, (model,)).fetchone()[0] or 0

    async def amendments(self, model: int) -> list[Row]:
        """Return the rows that change what earlier rows say, in their order."""
        query = f"SELECT {_COLUMNS} FROM {_AMENDMENTS} AND model = ?"
        return sorted(self._rows(query, model))

    async def erase(self, model: int, decisions: list[int], at: float) -> int:
        """Erase decisions; the first of them together with the row that records the erasure.

        So a refused erasure leaves nothing behind, and one that a kill or a full disk ends half-way
        is in the log.
        """
        since = min(decisions)

        def begin(db: sqlite3.Connection) -> tuple[int, list[Any], int]:
            if model not in self._heads:
                raise LogError(f"model {model} was removed")
            n, text = self._heads[model] + 1, text_of(ErasureBody(since))
            _insert(db, [(model, n, "erasure", None, at, text, self._code)])
            files = _remove_snapshots(db, model, since, n)
            return n, files, _erase(db, model=model, decisions=decisions[:ERASED_AT_ONCE])

        def work() -> tuple[list[Any], int]:
            self._heads[model], files, erased = self._database.transact(begin)
            return files, erased

        self._check_room()
        with self._database.errors():
            files, erased = await self._database.committer.submit(work)
        self._unlink(files)
        for i in range(ERASED_AT_ONCE, len(decisions), ERASED_AT_ONCE):
            some = decisions[i : i + ERASED_AT_ONCE]
            erased += await self._database.transaction(partial(_erase, model=model, decisions=some))
            await asyncio.sleep(0)
        return erased

    def _check_room(self) -> None:
        """Raise LogError unless the disk has room for `clean`, which writes all rows anew."""
        try:
            size = (self.folder / "log.sqlite").stat().st_size
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise LogError(f"{error.filename}: {error.strerror}") from error
        if free < size:
            raise LogError(
                f"{self.folder}: to rewrite the log takes {size:,} bytes, and {free:,} are free"
            )

    async def sweep(self, model: int, since: int, head: int) -> None:
        """Erase what other processes wrote before they knew of an erasure."""
        query = (
            f"UPDATE log SET {_ERASED} WHERE model = ? AND n > ? AND kind IN ('feedback', "
            "'revision', 'activation') AND NOT EXISTS (SELECT 1 FROM log AS made INDEXED BY "
            f"log_ids WHERE made.{IS_ONCE} AND made.model = log.model AND made.id = log.id "
            "AND made.kind = 'decision')"
        )

        def work(db: sqlite3.Connection) -> list[Any]:
            db.execute(query, (model, since))
            return _remove_snapshots(db, model, since, head)

        self._unlink(await self._database.transaction(work))

    async def clean(self) -> None:
        """Rewrite the database, and empty the write-ahead log."""
        with self._database.errors():
            await self._database.committer.submit(self._database.rewrite)

    def _unlink(self, found: list[Any]) -> None:
        """Remove the files of snapshots whose rows were removed."""
        for (files,) in found:
            with contextlib.suppress(LogError):
                for file, _ in files_of(files).values():
                    (self.folder / "snapshots" / file).unlink(missing_ok=True)

    async def find(self, model: int, ids: list[str]) -> list[Row]:
        """Return all rows of these ids, in their order."""
        of_ids = f"AND model = ? AND id IN ({', '.join('?' * len(ids))})"
        query = (
            f"SELECT {_COLUMNS} FROM {_IDS} {of_ids} "
            f"UNION ALL SELECT {_COLUMNS} FROM {_AMENDMENTS} {of_ids}"
        )
        return sorted(self._rows(query, model, *ids, model, *ids))

    async def newest(self, model: int, limit: int) -> list[Row]:
        """Return the last decisions, the last one first."""
        query = (
            f"SELECT {_COLUMNS} FROM log WHERE model = ? AND kind = 'decision' "
            "ORDER BY n DESC LIMIT ?"
        )
        return self._rows(query, model, limit)

    async def unanswered(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the decisions without feedback among the `limit` rows that follow a row."""
        query = (
            f"SELECT {_COLUMNS} FROM log AS made WHERE model = ? AND n > ? AND n <= ? "
            f"AND kind = 'decision' AND NOT EXISTS (SELECT 1 FROM {_IDS} AND model = made.model "
            "AND id = made.id AND kind = 'feedback') ORDER BY n"
        )
        return self._rows(query, model, after, after + limit)

    # Snapshots

    async def add_snapshot(self, model: int, snapshot: Snapshot, keep: int) -> None:
        """Write a snapshot: its files first, then the row that describes them."""
        files = {}
        for i, (name, content) in enumerate(snapshot.learners.items()):
            file = f"{model}-{snapshot.n}-{i}.safetensors"
            try:
                await asyncio.to_thread(replace_file, self.folder / "snapshots" / file, content)
            except OSError as error:
                raise LogError(f"{error.filename}: {error.strerror}") from error
            files[name] = [file, await asyncio.to_thread(_digest, content)]

        def work(db: sqlite3.Connection) -> list[Any]:
            values = (model, snapshot.n, snapshot.meta, json.dumps(files), self._code)
            db.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)", values)
            # What other code made last is where this code began.
            query = (
                "DELETE FROM snapshot WHERE model = ?1 AND n NOT IN "
                "(SELECT n FROM snapshot WHERE model = ?1 ORDER BY n DESC LIMIT ?2) AND n NOT IN "
                "(SELECT max(n) FROM snapshot WHERE model = ?1 GROUP BY code) RETURNING files"
            )
            return db.execute(query, (model, keep)).fetchall()

        self._unlink(await self._database.transaction(work))

    async def snapshots(self, model: int) -> AsyncIterator[Snapshot]:
        """Yield the snapshots that are not damaged, the newest first."""
        with self._database.errors():
            query = "SELECT n, meta, files, code FROM snapshot WHERE model = ? ORDER BY n DESC"
            found = self._database.read.execute(query, (model,)).fetchall()
        for n, meta, files, code in found:
            if (learners := self._learners_in(files)) is not None:
                yield Snapshot(n, meta, learners, code)

    def _learners_in(self, files: str) -> dict[str, bytes] | None:
        """Return the learners of a snapshot; None if one of its files is damaged or missing."""
        learners = {}
        try:
            for name, (file, digest) in files_of(files).items():
                learners[name] = (self.folder / "snapshots" / file).read_bytes()
                if _digest(learners[name]) != digest:
                    return None
        except (OSError, LogError):
            return None
        return learners

    # Keys

    async def keys(self) -> list[Key]:
        """Return the API keys."""
        with self._database.errors():
            query = f"SELECT {', '.join(Key._fields)} FROM key ORDER BY name"
            return list(map(Key._make, self._database.read.execute(query)))

    async def add_key(self, key: Key) -> None:
        """Add an API key; raise NameTakenError if another one has its name."""

        def work(db: sqlite3.Connection) -> None:
            with _taken(key.name):
                db.execute("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?, ?)", key)

        await self._database.transaction(work)

    async def remove_key(self, name: str) -> bool:
        """Remove an API key; return whether there was one."""
        query = "DELETE FROM key WHERE name = ?"
        return bool(
            await self._database.transaction(lambda db: db.execute(query, (name,)).rowcount)
        )


class _SQLiteImport(LogImport):
    def __init__(self, log: SQLiteLog, key: int) -> None:
        self._log, self.key = log, key

    async def append(self, rows: list[ImportedRow]) -> None:
        await self._log.append_imported(self.key, rows)

    async def finish(self, name: str, n: int, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            await self._log.add_snapshot(self.key, snapshot, 1)
        await self._log.finish_import(self.key, name)

    async def abort(self) -> None:
        await self._log.remove_model(self.key)


def _remove_snapshots(db: sqlite3.Connection, model: int, since: int, until: int) -> list[Any]:
    """Remove the rows of snapshots; return what they say of their files."""
    query = "DELETE FROM snapshot WHERE model = ? AND n >= ? AND n < ? RETURNING files"
    return db.execute(query, (model, since, until)).fetchall()


def _erase(db: sqlite3.Connection, model: int, decisions: list[int]) -> int:
    """Erase decisions with all that has their ids; return the number of rows."""
    places = ", ".join("?" * len(decisions))
    query = f"SELECT id FROM log WHERE model = ? AND n IN ({places}) AND kind = 'decision'"
    ids = [name for (name,) in db.execute(query, (model, *decisions))]
    of_ids = f"model = ? AND id IN ({', '.join('?' * len(ids))})"
    return sum(
        db.execute(
            f"UPDATE log INDEXED BY {index} SET {_ERASED} WHERE {condition} AND {of_ids}",
            (model, *ids),
        ).rowcount
        for index, condition in (("log_ids", IS_ONCE), ("log_amendments", AMENDS))
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _LeftOutError(Exception):
    """Not all entries can be written, and those that follow have other numbers then."""


def _insert(db: sqlite3.Connection, rows: list[Any]) -> None:
    """Insert rows, many per statement: other threads run in the meantime."""
    for i in range(0, len(rows), _ROWS_A_STATEMENT):
        some = rows[i : i + _ROWS_A_STATEMENT]
        db.execute(_statement(len(some)), list(chain.from_iterable(some)))


@cache
def _statement(n: int) -> str:
    return f"INSERT INTO log ({_COLUMNS}) VALUES {', '.join([_VALUES] * n)}"


@contextlib.contextmanager
def _taken(name: str | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise NameTakenError(f"{name!r} exists already") from None
