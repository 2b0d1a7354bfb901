"""A folder with a SQLite database: its lock, its connections, its tables and their migrations."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from onebit.core.file_lock import lock
from onebit.serve.committing import Committer
from onebit.serve.log import LogError

T = TypeVar("T")

VERSION = 4
"""Version of the tables below; a database of a later version is refused."""

IS_ONCE, AMENDS = "kind <> 'revision'", "kind IN ('revision', 'erasure')"
"""Conditions of the two indexes of ids below; SQLite uses an index if a query has its condition."""

_INDEXES = f"""
CREATE UNIQUE INDEX log_ids ON log (model, id, kind) WHERE id IS NOT NULL AND {IS_ONCE};
CREATE INDEX log_amendments ON log (model, id) WHERE {AMENDS};
"""

_TABLES = f"""
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
{_INDEXES}
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
    3: f"DROP INDEX log_ids; {_INDEXES}",
}
"""What makes the tables of the next version from those of each earlier one."""

ROOM = 2**23
"""Approximate bytes of the write-ahead log between two checkpoints."""

_CACHE = 2**24
"""Maximum bytes of pages that a connection keeps in memory; there are two connections."""

STATEMENTS_KEPT = 192
"""Statements that SQLite keeps compiled: one for each number of rows that are inserted together."""


_FILE = r"\A[0-9]+-[0-9]+-[0-9]+\.safetensors\Z"

_decode_files = msgspec.json.Decoder(
    dict[str, tuple[Annotated[str, msgspec.Meta(pattern=_FILE)], str]]
).decode


def files_of(column: str) -> dict[str, tuple[str, str]]:
    """Return the files of a snapshot and their digests, by the names of its learners.

    Raise LogError for other names than the service gives them: a folder may come from anyone, and
    a name could be a path to any file.
    """
    try:
        return _decode_files(column)
    except msgspec.DecodeError as error:
        raise LogError(f"the files of a snapshot are damaged: {error}") from None


def _identity_of(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


class SQLiteDatabase:
    """A folder with a database, which one process at a time may lock for itself.

    Parameters
    ----------
    folder : path
    alone : bool
        Whether to lock the folder against other writers.
    make : bool
        Whether to create what is missing.

    Attributes
    ----------
    write, read : sqlite3.Connection
        One connection for each; a thread may wait for the disk while the other one reads.
    committer : Committer
        The thread that writes.
    """

    write: sqlite3.Connection
    read: sqlite3.Connection

    def __init__(self, folder: str | os.PathLike[str], *, alone: bool, make: bool) -> None:
        self.folder, self._alone, self._make = Path(folder), alone, make
        self.committer = Committer()
        self._lock: Any = None
        self._connections: list[sqlite3.Connection] = []
        self._path = self.folder / "log.sqlite"
        self._identity: tuple[int, int] | None = None
        """What distinguishes the file that was opened from one that takes its place."""

    def open(self) -> None:
        """Open the database, and create it if necessary."""
        path = self._path
        if self._make:
            self._make_folder(path)
        elif not path.exists():
            raise LogError(f"{self.folder} has no log.sqlite: it is no folder of onebit serve")
        if self._alone:
            self.lock()
        with self.errors():
            self.write, self.read = (self._connect(path) for _ in range(2))
            self._identity = _identity_of(path)
            self._make_tables()
            self.read.execute("PRAGMA query_only = 1")
            if self._alone and self._make:
                self._make_room(path)

    def close(self) -> None:
        """Close the database, so that another process may open it."""
        self.committer.end()
        for connection in self._connections:
            connection.close()
        self.unlock()

    def check_in_place(self) -> None:
        """Raise LogError if the database was removed, or replaced by another file.

        SQLite would write to the file without a name, which is lost when the process ends.
        """
        try:
            found = _identity_of(self._path)
        except OSError as error:
            raise LogError(f"{self._path}: {error.strerror}; restart the service") from None
        if found != self._identity:
            raise LogError(f"{self._path} was replaced by another file; restart the service")

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

    def lock(self) -> None:
        """Lock the folder; raise LogError if another process has locked it."""
        self._lock = open(self.folder / "lock", "a")  # noqa: SIM115
        try:
            lock(self._lock, wait=False)
        except BlockingIOError:
            self._lock.close()
            raise LogError(f"another onebit serve uses {self.folder}") from None
        except OSError as error:  # a service without a lock could run twice on one log
            self._lock.close()
            raise LogError(f"{self.folder} cannot be locked: {error.strerror}") from None

    def unlock(self) -> None:
        """Release the folder."""
        if self._lock is not None:
            self._lock.close()

    def _connect(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_KEPT,
        )
        self._connections.append(connection)
        connection.execute("PRAGMA busy_timeout = 5000")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE // 1024}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {ROOM * 3 // 4 // 4096}")
        if self._make:
            connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def _make_tables(self) -> None:
        (version,) = self.write.execute("PRAGMA user_version").fetchone()
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
            self.lock()  # a service of the earlier version may be using them
        for earlier in range(version, VERSION):
            self._make_version(_MIGRATIONS[earlier], earlier + 1)
        if not self._alone:
            self.unlock()

    def _make_version(self, tables: str, version: int) -> None:
        script = f"BEGIN; {tables} PRAGMA user_version = {version}; COMMIT"
        self.write.executescript(script)

    def _make_room(self, path: Path) -> None:
        """Grow the write-ahead log to its full size before it is used.

        Overwriting a file is flushed to disk several times as fast as appending to it. A
        transaction that exceeds the cache spills into the write-ahead log; after its rollback, the
        space remains.
        """
        connection = self._connect(path)
        connection.execute("PRAGMA cache_size = -64")
        connection.execute("BEGIN IMMEDIATE")
        values = (0, 0, ROOM)
        connection.execute("INSERT INTO snapshot VALUES (?, ?, zeroblob(?), '', NULL)", values)
        connection.execute("ROLLBACK")
        connection.close()
        with open(f"{path}-wal", "rb") as file:
            os.fsync(file.fileno())

    def rewrite(self) -> None:
        """Rewrite the database without remains of earlier rows, and empty the write-ahead log.

        Pages contain remains of rows that were moved or deleted, and the write-ahead log contains
        earlier versions of pages.
        """
        self.write.execute("VACUUM")
        (busy, *_) = self.write.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise LogError(f"{self.folder} is being read by another process: try again later")
        if self._alone and self._make:
            self._make_room(self.folder / "log.sqlite")

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise errors of SQLite as LogError."""
        try:
            yield
        except sqlite3.Error as error:
            raise LogError(f"{self.folder}: {error}") from error

    async def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` and commit it in the thread that writes; roll back on an error."""
        with self.errors():
            return await self.committer.submit(lambda: self.transact(work))

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` and commit it; roll back on an error."""
        self.check_in_place()
        db = self.write
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
