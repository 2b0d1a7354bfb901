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
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from onebit.core.replacing import replace_file
from onebit.serve.code import this_code
from onebit.serve.committing import Committer
from onebit.serve.log import Entry, Head, Key, Log, LogError, NameTakenError, Snapshot
from onebit.serve.rows import Row

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

VERSION = 3
"""Version of the tables below; a database of a later version is refused."""

_TABLES = """
CREATE TABLE model (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE
);
CREATE TABLE log (
    model INTEGER NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT,
    at REAL NOT NULL,
    body TEXT NOT NULL,
    code INTEGER,
    PRIMARY KEY (model, n)
) WITHOUT ROWID;
CREATE UNIQUE INDEX log_ids ON log (model, id, kind) WHERE id IS NOT NULL;
CREATE TABLE snapshot (
    model INTEGER NOT NULL,
    n INTEGER NOT NULL,
    meta BLOB NOT NULL,
    files TEXT NOT NULL,
    code INTEGER,
    PRIMARY KEY (model, n)
);
CREATE TABLE code (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE key (
    name TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created REAL NOT NULL,
    models TEXT NOT NULL DEFAULT '',
    expires REAL,
    rate REAL
);
"""

_MIGRATIONS = {
    1: """
ALTER TABLE log ADD COLUMN code INTEGER;
ALTER TABLE snapshot ADD COLUMN code INTEGER;
CREATE TABLE code (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
""",
    2: """
ALTER TABLE key ADD COLUMN models TEXT NOT NULL DEFAULT '';
ALTER TABLE key ADD COLUMN expires REAL;
ALTER TABLE key ADD COLUMN rate REAL;
""",
}
"""What makes the tables of the next version from those of each earlier one."""

_ROOM = 2**23
"""Approximate bytes of the write-ahead log between two checkpoints."""

_CACHE = 2**24
"""Most bytes of pages that a connection keeps in memory; there are two connections."""

_PATIENCE = 0.003
"""Seconds that the event loop waits for the disk. To hand rows to another thread, and to get the
interpreter back from it, takes half as long when there is much to do."""

_COLUMNS, _VALUES = "model, n, kind, id, at, body, code", "(?, ?, ?, ?, ?, ?, ?)"

_ROWS_A_STATEMENT = 128
"""Of one INSERT. SQLite keeps as many of them compiled, for each number of rows."""


class SQLiteLog(Log):
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
        self.folder, self._alone, self._make = Path(folder), alone, make
        self._committer = Committer()
        self._lock: Any = None
        self._connections: list[sqlite3.Connection] = []
        self._heads: dict[int, int] = {}
        self._left: list[int] = []
        """Models without a name when this was opened."""
        self._code = 0
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
        path = self.folder / "log.sqlite"
        try:
            if self._make:
                self._make_folder(path)
            elif not path.exists():
                raise LogError(f"{self.folder} has no log.sqlite: it is no folder of onebit serve")
            if self._alone:
                self._lock_folder()
            with self._errors():
                self._write, self._read = (self._connect(path) for _ in range(2))
                self._make_tables()
                self._read.execute("PRAGMA query_only = 1")
                if self._alone:
                    self._make_room(path)
                    self._code = self._transact(_key_of_code)
                query = "SELECT key, (SELECT max(n) FROM log WHERE model = key) FROM model"
                self._heads = dict(self._read.execute(query))
                query = "SELECT key FROM model WHERE name IS NULL"
                self._left = [key for (key,) in self._read.execute(query)]
        except OSError as error:
            raise LogError(f"{error.filename}: {error.strerror}") from error

    async def close(self) -> None:
        """Close the database, so that another process may open it."""
        self._committer.end()
        for connection in self._connections:
            connection.close()
        if self._lock is not None:
            self._lock.close()

    async def tidy(self) -> None:
        """Remove what a killed process left of models that were being imported or removed."""
        for key in self._left:
            await self._clear(key)

    def _make_folder(self, path: Path) -> None:
        """Make the folder and an empty database, which others on this machine cannot read.

        SQLite gives its other files the permissions of the database.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for found in (path, self.folder / "snapshots"):  # as earlier versions made them
            mode = found.stat().st_mode
            if mode & 0o007:
                found.chmod(mode & ~0o007)

    def _lock_folder(self) -> None:
        self._lock = open(self.folder / "lock", "a")  # noqa: SIM115
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                raise LogError(f"another onebit serve uses {self.folder}") from None

    def _connect(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_ROWS_A_STATEMENT + 64,
        )
        self._connections.append(connection)
        connection.execute("PRAGMA busy_timeout = 5000")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE // 1024}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_ROOM * 3 // 4 // 4096}")
        if self._make:
            connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def _make_tables(self) -> None:
        (version,) = self._write.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise LogError(f"{self.folder} is of a later version of onebit: {version}")
        if version == 0:
            if not self._make:
                raise LogError(f"{self.folder} has an empty log.sqlite")
            self._make_version(_TABLES, VERSION)
        elif version < VERSION:
            self._migrate(version)

    def _migrate(self, version: int) -> None:
        """Make the tables of this version from those of an earlier one."""
        if not self._alone:
            self._lock_folder()  # a service of the earlier version may be using them
        for earlier in range(version, VERSION):
            self._make_version(_MIGRATIONS[earlier], earlier + 1)
        if not self._alone:
            self._lock.close()

    def _make_version(self, tables: str, version: int) -> None:
        script = f"BEGIN; {tables} PRAGMA user_version = {version}; COMMIT"
        self._write.executescript(script)

    def _make_room(self, path: Path) -> None:
        """Grow the write-ahead log to its full size before it is used.

        Overwriting a file is flushed to disk several times as fast as appending to it. A
        transaction that exceeds the cache spills into the write-ahead log; after its rollback, the
        space remains.
        """
        connection = self._connect(path)
        connection.execute("PRAGMA cache_size = -64")
        connection.execute("BEGIN IMMEDIATE")
        values = (0, 0, _ROOM)
        connection.execute("INSERT INTO snapshot VALUES (?, ?, zeroblob(?), '', NULL)", values)
        connection.execute("ROLLBACK")
        connection.close()
        with open(f"{path}-wal", "rb") as file:
            os.fsync(file.fileno())

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LogError(f"{self.folder}: {error}") from error

    async def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` and commit it in the thread that writes; roll back on an error."""
        with self._errors():
            return await self._committer.submit(lambda: self._transact(work))

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        db = self._write
        try:
            db.execute("BEGIN IMMEDIATE")
            done = work(db)
            db.execute("COMMIT")
            return done
        except BaseException:
            if db.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
            raise

    def _rows(self, query: str, *values: Any) -> list[Row]:
        with self._errors():
            return list(map(Row._make, self._read.execute(query, values)))

    async def check(self) -> None:
        """Raise LogError if nothing can be written now."""
        # A full disk is noticed when the write-ahead log has no room left, which may be megabytes
        # later; a disk that cannot be written to at all, when a page is rewritten.
        if (free := shutil.disk_usage(self.folder).free) < _ROOM:
            raise LogError(f"{self.folder}: the disk is full, with {free:,} bytes free")
        await self._transaction(lambda db: db.execute(f"PRAGMA user_version = {VERSION}"))

    @property
    def code(self) -> int:
        """The key of the code that runs."""
        return self._code

    async def codes(self) -> dict[int, str]:
        """Return all code that wrote to this log."""
        with self._errors():
            return dict(self._read.execute("SELECT key, name FROM code"))

    # Models

    async def models(self) -> dict[str, int]:
        """Return the models there are: their names, with their keys."""
        with self._errors():
            query = "SELECT name, key FROM model WHERE name IS NOT NULL ORDER BY name"
            return dict(self._read.execute(query))

    async def heads(self) -> dict[str, Head]:
        """Return the models there are, with their numbers of rows."""
        return {name: Head(key, self._heads[key]) for name, key in (await self.models()).items()}

    async def lead(self, models: list[int]) -> set[int]:
        """Return all models: this process is the only one."""
        return set(models)

    async def add_model(self, name: str | None, at: float, body: str) -> int:
        """Write the first row of a model, and return the model's key."""

        def work(db: sqlite3.Connection) -> int:
            with _taken(name):
                key = db.execute("INSERT INTO model (name) VALUES (?)", (name,)).lastrowid
            row = Row(int(key or 0), 1, "model", None, at, body, self._code)
            _insert(db, [row])
            return row.model

        key = await self._transaction(work)
        self._heads[key] = 1
        return key

    async def name_model(self, model: int, name: str) -> None:
        """Give a model its name; raise NameTakenError if another one has it."""

        def work(db: sqlite3.Connection) -> None:
            with _taken(name):
                db.execute("UPDATE model SET name = ? WHERE key = ?", (name, model))

        await self._transaction(work)

    async def remove_model(self, model: int) -> None:
        """Remove a model with its log: at once from view, gradually from the disk."""

        def unname(db: sqlite3.Connection) -> None:
            db.execute("UPDATE model SET name = NULL WHERE key = ?", (model,))

        await self._transaction(unname)
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

        while await self._transaction(some):
            await asyncio.sleep(0)
        await self._transaction(rest)
        for path in (self.folder / "snapshots").glob(f"{model}-*"):
            path.unlink(missing_ok=True)

    # Rows

    @property
    def at_once(self) -> bool:
        """Whether `append` would now block the event loop until rows are on disk."""
        return self._flush < _PATIENCE and not self._committer.submitted

    async def append(self, entries: list[Entry]) -> list[int]:
        """Write rows, all or none, on disk when this returns; return their numbers."""
        with self._errors():
            if self.at_once:
                return self._append(entries)
            return await self._committer.submit(lambda: self._append(entries))

    def _append(self, entries: list[Entry]) -> list[int]:
        """Write rows, and remember how long that took."""
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
                _insert(self._write, rows)  # a statement by itself is a transaction
            else:
                self._transact(lambda db: _insert(db, rows))
        except (_LeftOutError, sqlite3.IntegrityError):
            heads.clear()
            numbers = self._transact(lambda db: self._append_each(db, entries, heads))
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

    async def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the rows that follow a row, at most `limit` of them."""
        query = f"SELECT {_COLUMNS} FROM log WHERE model = ? AND n > ? ORDER BY n LIMIT ?"
        return self._rows(query, model, after, limit)

    async def find(self, model: int, ids: list[str]) -> list[Row]:
        """Return all rows of these ids: decisions and feedback."""
        places = ", ".join("?" * len(ids))
        return self._rows(
            f"SELECT {_COLUMNS} FROM log WHERE model = ? AND id IN ({places})", model, *ids
        )

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
            "AND kind = 'decision' AND NOT EXISTS (SELECT 1 FROM log WHERE model = made.model "
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

        for (old,) in await self._transaction(work):
            for file, _ in json.loads(old).values():
                (self.folder / "snapshots" / file).unlink(missing_ok=True)

    async def snapshots(self, model: int) -> AsyncIterator[Snapshot]:
        """Yield the snapshots that are not damaged, the newest first."""
        with self._errors():
            query = "SELECT n, meta, files, code FROM snapshot WHERE model = ? ORDER BY n DESC"
            found = self._read.execute(query, (model,)).fetchall()
        for n, meta, files, code in found:
            learners = {}
            for name, (file, digest) in json.loads(files).items():
                with contextlib.suppress(OSError):
                    content = (self.folder / "snapshots" / file).read_bytes()
                    if _digest(content) == digest:
                        learners[name] = content
            if len(learners) == len(json.loads(files)):
                yield Snapshot(n, meta, learners, code)

    # Keys

    async def keys(self) -> list[Key]:
        """Return the API keys."""
        with self._errors():
            query = f"SELECT {', '.join(Key._fields)} FROM key ORDER BY name"
            return list(map(Key._make, self._read.execute(query)))

    async def add_key(self, key: Key) -> None:
        """Add an API key; raise NameTakenError if another one has its name."""

        def work(db: sqlite3.Connection) -> None:
            with _taken(key.name):
                db.execute("INSERT INTO key VALUES (?, ?, ?, ?, ?, ?, ?)", key)

        await self._transaction(work)

    async def remove_key(self, name: str) -> bool:
        """Remove an API key; return whether there was one."""
        query = "DELETE FROM key WHERE name = ?"
        return bool(await self._transaction(lambda db: db.execute(query, (name,)).rowcount))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _key_of_code(db: sqlite3.Connection) -> int:
    db.execute("INSERT OR IGNORE INTO code (name) VALUES (?)", (this_code(),))
    (key,) = db.execute("SELECT key FROM code WHERE name = ?", (this_code(),)).fetchone()
    return int(key)


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
