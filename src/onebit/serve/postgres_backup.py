"""Backups of PostgreSQL: made while services run, as folders of the service, and restored."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
from psycopg import AsyncConnection

from onebit.core.replacing import replace_file
from onebit.serve.backup import BackupContent, check_backup, new_folder, opened_backup
from onebit.serve.log import Key, LogError, Snapshot
from onebit.serve.postgres_appender import COLUMNS
from onebit.serve.postgres_log import PostgresLog
from onebit.serve.postgres_snapshots import insert_snapshot, unpacked
from onebit.serve.sqlite_database import VERSION, SQLiteDatabase, files_of

_ROWS = 5000
"""Rows that are read and written together."""

_KEYS = ", ".join(Key._fields)


async def back_up_database(url: str, target: str | os.PathLike[str]) -> BackupContent:
    """Copy the logs in a database, as they are at one moment, to a folder of the service."""
    with new_folder(target) as part:
        database = SQLiteDatabase(part, alone=False, make=True)
        database.open()
        try:
            async with await AsyncConnection.connect(url) as db:
                await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                await _copy(db, database.write, part)
            database.read.close()
            database.write.execute("PRAGMA journal_mode = DELETE")
            return check_backup(database.write, part)
        except psycopg.Error as error:
            raise LogError(f"PostgreSQL: {error}") from error
        finally:
            database.close()


async def _copy(db: AsyncConnection[Any], copy: sqlite3.Connection, part: Path) -> None:
    copy.execute("BEGIN")
    tables = {
        "code (key, name)": "SELECT key, name FROM onebit.code",
        "model (key, name)": "SELECT key, name FROM onebit.model WHERE name IS NOT NULL",
        f"key ({_KEYS})": f"SELECT {_KEYS} FROM onebit.key",
        f"log ({COLUMNS})": f"SELECT {COLUMNS} FROM onebit.log",
    }
    for table, query in tables.items():
        async with db.cursor(name="rows") as cursor:
            await cursor.execute(query.encode())
            while rows := await cursor.fetchmany(_ROWS):
                places = ", ".join("?" * len(rows[0]))
                copy.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
    query = "SELECT model, n, meta, names, learners, code FROM onebit.snapshot ORDER BY model, n"
    async with db.cursor(name="snapshots") as cursor:
        await cursor.execute(query.encode())
        while found := await cursor.fetchone():
            model, n, meta, names, learners, code = found
            packed = Snapshot(n, meta, dict(zip(names, learners, strict=True)), code)
            _add_snapshot(copy, part, model, unpacked(packed))
    copy.execute("COMMIT")


def _add_snapshot(copy: sqlite3.Connection, part: Path, model: int, snapshot: Snapshot) -> None:
    files = {}
    for i, (name, content) in enumerate(snapshot.learners.items()):
        file = f"{model}-{snapshot.n}-{i}.safetensors"
        replace_file(part / "snapshots" / file, content)
        files[name] = [file, hashlib.sha256(content).hexdigest()]
    values = (model, snapshot.n, snapshot.meta, json.dumps(files), snapshot.code)
    copy.execute("INSERT INTO snapshot VALUES (?, ?, ?, ?, ?)", values)


async def restore_database(backup: str | os.PathLike[str], url: str) -> BackupContent:
    """Copy a backup to a database that has no models yet."""
    source = Path(backup)
    with opened_backup(source) as copy:
        content = check_backup(copy, source)
        if copy.execute("PRAGMA user_version").fetchone() != (VERSION,):
            raise LogError(f"{source} is of an earlier version: serve it as a folder once, first")
        log = PostgresLog(url)
        await log.open()  # which makes the tables
        await log.close()
        try:
            async with await AsyncConnection.connect(url) as db:
                await _restore(copy, db, source)
        except psycopg.Error as error:
            raise LogError(f"PostgreSQL: {error}") from error
    return content


async def _restore(copy: sqlite3.Connection, db: AsyncConnection[Any], source: Path) -> None:
    await db.execute("LOCK TABLE onebit.model, onebit.key IN EXCLUSIVE MODE")
    query = "SELECT (SELECT count(*) FROM onebit.model) + (SELECT count(*) FROM onebit.key)"
    if await (await db.execute(query)).fetchone() != (0,):
        raise LogError("the database has models or keys already: restore to an empty one")
    codes: dict[int | None, int | None] = {None: None}
    for key, name in copy.execute("SELECT key, name FROM code").fetchall():
        query = "INSERT INTO onebit.code (name) VALUES (%s) ON CONFLICT DO NOTHING"
        await db.execute(query, (name,))
        found = await db.execute("SELECT key FROM onebit.code WHERE name = %s", (name,))
        codes[key] = (await found.fetchone() or (None,))[0]
    models = (
        "SELECT key, name, (SELECT max(n) FROM log WHERE model = key) FROM model "
        "WHERE name IS NOT NULL"
    )
    for values in copy.execute(models).fetchall():
        query = "INSERT INTO onebit.model OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s)"
        await db.execute(query, values)
    await db.execute(
        "SELECT setval(pg_get_serial_sequence('onebit.model', 'key'), "
        "(SELECT max(key) FROM onebit.model)) WHERE EXISTS (SELECT 1 FROM onebit.model)"
    )
    named = "model IN (SELECT key FROM model WHERE name IS NOT NULL)"
    async with db.cursor().copy(f"COPY onebit.log ({COLUMNS}) FROM STDIN") as rows:
        for *values, code in copy.execute(f"SELECT {COLUMNS} FROM log WHERE {named}"):
            await rows.write_row((*values, codes[code]))
    query = f"SELECT model, n, meta, files, code FROM snapshot WHERE {named}"
    for model, n, meta, files, code in copy.execute(query):
        learners = {}
        for name, (file, digest) in files_of(files).items():
            learners[name] = (source / "snapshots" / file).read_bytes()
            if hashlib.sha256(learners[name]).hexdigest() != digest:
                raise LogError(f"{source / 'snapshots' / file} is damaged")
        await insert_snapshot(db, model, Snapshot(n, meta, learners), codes[code] or 0)
    for values in copy.execute(f"SELECT {_KEYS} FROM key").fetchall():
        await db.execute(
            f"INSERT INTO onebit.key ({_KEYS}) VALUES (%s, %s, %s, %s, %s, %s, %s)".encode(), values
        )
