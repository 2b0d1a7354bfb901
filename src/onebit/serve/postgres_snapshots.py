"""Snapshots in PostgreSQL."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from typing import Any

from psycopg import AsyncConnection

from onebit.serve.log import Snapshot


async def insert_snapshot(
    db: AsyncConnection[Any], model: int, snapshot: Snapshot, code: int
) -> None:
    """Write a snapshot, unless there is one of its row."""
    packed = await asyncio.to_thread(_packed, snapshot)
    names, learners = list(packed.learners), list(packed.learners.values())
    await db.execute(
        "INSERT INTO onebit.snapshot VALUES (%s, %s, %s, %s, %s::bytea[], %s, %s) "
        "ON CONFLICT (model, n) DO NOTHING",
        (model, packed.n, packed.meta, names, learners, digest_of(packed), code),
    )


def _packed(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot compressed, as rows wait while it is flushed."""
    learners = {name: zlib.compress(content, 1) for name, content in snapshot.learners.items()}
    return snapshot._replace(learners=learners)


def unpacked(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it was before it was written."""
    learners = {name: zlib.decompress(content) for name, content in snapshot.learners.items()}
    return snapshot._replace(learners=learners)


def digest_of(snapshot: Snapshot) -> str:
    """Return a digest of a snapshot, as it is written."""
    digest = hashlib.sha256(snapshot.meta)
    for name, content in sorted(snapshot.learners.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()
