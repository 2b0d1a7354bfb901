"""Backups of a folder: made while the service runs, and folders of the service themselves."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from onebit.core.replacing import replace_file
from onebit.serve.log import LogError
from onebit.serve.sqlite_database import VERSION, files_of


class BackupContent(NamedTuple):
    """What is in a backup."""

    models: int
    rows: int
    snapshots: int


def back_up_folder(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> BackupContent:
    """Copy a folder of the service, which may be running, as it is at one moment.

    The copy has all rows that were acknowledged before, and is a folder of the service.
    """
    source = Path(folder)
    if not (source / "log.sqlite").exists():
        raise LogError(f"{source} has no log.sqlite: it is no folder of onebit serve")
    with new_folder(target) as part, _errors(source):
        os.close(os.open(part / "log.sqlite", os.O_RDWR | os.O_CREAT, 0o600))
        with contextlib.closing(sqlite3.connect(source / "log.sqlite")) as db:
            db.execute("PRAGMA busy_timeout = 5000")
            db.execute("VACUUM INTO ?", (str(part / "log.sqlite"),))
        with contextlib.closing(sqlite3.connect(part / "log.sqlite", isolation_level=None)) as db:
            _remove_unnamed(db)
            _copy_snapshots(db, source, part)
            return check_backup(db, part)


def restore_folder(backup: str | os.PathLike[str], target: str | os.PathLike[str]) -> BackupContent:
    """Copy a backup to a new folder of the service."""
    source = Path(backup)
    with opened_backup(source) as db:
        content = check_backup(db, source)
        with new_folder(target) as part:
            for file in [Path("log.sqlite"), *_snapshot_files(db)]:
                replace_file(part / file, (source / file).read_bytes())
                (part / file).chmod(0o600)
    return content


@contextlib.contextmanager
def opened_backup(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a backup, to read it."""
    if not (folder / "log.sqlite").exists():
        raise LogError(f"{folder} has no log.sqlite: it is no backup")
    if (folder / "log.sqlite-wal").exists():
        raise LogError(f"{folder} is in use by onebit serve, or was: back it up first")
    with _errors(folder), contextlib.closing(sqlite3.connect(folder / "log.sqlite")) as db:
        db.execute("PRAGMA query_only = 1")
        yield db


def check_backup(db: sqlite3.Connection, folder: Path) -> BackupContent:
    """Return what is in a backup; raise LogError if it is damaged, or of a later version."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 1 <= version <= VERSION:
        raise LogError(f"{folder} is of another version of onebit: {version}")
    for (fault,) in db.execute("PRAGMA quick_check(1)"):
        if fault != "ok":
            raise LogError(f"{folder} is damaged: {fault}")
    counts = (
        "SELECT (SELECT count(*) FROM model), (SELECT count(*) FROM log), "
        "(SELECT count(*) FROM snapshot)"
    )
    return BackupContent(*db.execute(counts).fetchone())


@contextlib.contextmanager
def new_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that others on this machine cannot read: whole after the block, or not at all.

    Its files must be on disk at the end of the block.
    """
    path = Path(target)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise LogError(f"{path} exists already, and is not empty")
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir(mode=0o700)
        (part / "snapshots").mkdir(mode=0o700)
        yield part
        _sync(part / "log.sqlite")
        if path.exists():
            path.rmdir()
        part.rename(path)
    except OSError as error:
        raise LogError(f"{error.filename}: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_unnamed(db: sqlite3.Connection) -> None:
    """Remove models that were being imported or removed."""
    unnamed = "(SELECT key FROM model WHERE name IS NULL)"
    for table in ("log", "snapshot"):
        db.execute(f"DELETE FROM {table} WHERE model IN {unnamed}")
    db.execute("DELETE FROM model WHERE name IS NULL")


def _copy_snapshots(db: sqlite3.Connection, source: Path, part: Path) -> None:
    """Copy the files of snapshots; drop those that the service has replaced in the meantime."""
    for model, n, files in db.execute("SELECT model, n, files FROM snapshot").fetchall():
        contents = {}
        of_snapshot = files_of(files).values()
        for file, digest in of_snapshot:
            with contextlib.suppress(FileNotFoundError):
                content = (source / "snapshots" / file).read_bytes()
                if hashlib.sha256(content).hexdigest() == digest:
                    contents[file] = content
        if len(contents) < len(of_snapshot):
            db.execute("DELETE FROM snapshot WHERE model = ? AND n = ?", (model, n))
            continue
        for file, content in contents.items():
            replace_file(part / "snapshots" / file, content)
            (part / "snapshots" / file).chmod(0o600)


def _snapshot_files(db: sqlite3.Connection) -> list[Path]:
    rows = db.execute("SELECT files FROM snapshot").fetchall()
    names = [file for (files,) in rows for file, _ in files_of(files).values()]
    return [Path("snapshots") / name for name in names]


@contextlib.contextmanager
def _errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise LogError(f"{folder}: {error}") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
