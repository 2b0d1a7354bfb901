"""Appending rows to PostgreSQL: by the service's own message, and by psycopg's pipeline.

    python bench/serve_appender.py [--rows 16] [--batches 2000] [--turns 3]

Both send the same prepared statement for a batch of rows, with arrays as parameters. It prints, for
each, the processor time of this process for a batch, the time until it is on disk, and what they
would add to a pair of decision and feedback at that size of batches. A PostgreSQL is started here.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import uvloop

from onebit.serve.log import Entry
from onebit.serve.postgres_appender import _APPEND
from onebit.serve.postgres_log import PostgresLog
from serve_drill import Postgres
from serve_load import records

Append = Callable[[list[Entry]], Awaitable[Any]]


async def by_psycopg(url: str) -> tuple[psycopg.AsyncConnection[Any], Append]:
    """Return a function that appends through psycopg's pipeline, as well prepared as ours."""
    db = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0)
    await db.execute("SET plan_cache_mode = force_generic_plan")
    query = re.sub(r"\$\d+", "%s", _APPEND)
    # psycopg numbers its parameters by place; the keys of the models stand in two.
    order = [int(n) for n in re.findall(r"\$(\d+)", _APPEND)]

    async def append(entries: list[Entry]) -> Any:
        counts: dict[int, int] = {}
        places = []
        for entry in entries:
            counts[entry.model] = place = counts.get(entry.model, 0) + 1
            places.append(place)
        models, kinds, ids, times, bodies = (list(one) for one in zip(*entries, strict=True))
        names = [name or "" for name in ids]
        values = [list(counts), list(counts.values()), models, places, kinds, names, times, bodies]
        arguments = [*values, 0]
        async with db.pipeline():
            found = await db.execute(query.encode(), [arguments[n - 1] for n in order])
            return await found.fetchall()

    return db, append


async def measure(append: Append, model: int, options: Any, turn: str) -> tuple[float, float]:
    """Append batches; return seconds of the processor and of the clock for each."""
    bodies = [msgspec.json.encode({"record": one}).decode() for one in records(options.rows)]
    used, start = time.process_time(), time.perf_counter()
    for k in range(options.batches):
        entries = [
            Entry(model, "decision", f"{turn}-{k}-{i}", 0.0, body) for i, body in enumerate(bodies)
        ]
        await append(entries)
    n = options.batches
    return (time.process_time() - used) / n, (time.perf_counter() - start) / n


async def compare(url: str, options: Any) -> None:
    """Measure both in turns."""
    log = PostgresLog(url)
    await log.open()
    model = await log.add_model("m", 0.0, "{}")
    db, pipelined = await by_psycopg(url)
    found: dict[str, list[tuple[float, float]]] = {"own message": [], "psycopg's pipeline": []}
    for turn in range(options.turns):
        for name, append in zip(found, (log._appender.append, pipelined), strict=True):
            found[name].append(await measure(append, model, options, f"{name}-{turn}"))
    for name, times in found.items():
        used, seconds = (1e6 * statistics.median(one) for one in zip(*times, strict=True))
        pair = 2 * used / options.rows
        print(
            f"{name:<18} {used:6.0f} us of a processor a batch of {options.rows}, "
            f"{seconds:6.0f} us until it is on disk, {pair:5.1f} us of a processor a pair",
            flush=True,
        )
    await db.close()
    await log.close()


def main() -> None:
    """Start a PostgreSQL, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="onebit-appender-"))
    postgres = Postgres(folder / "pg")
    try:
        uvloop.run(compare(postgres.url, options))
    finally:
        postgres.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
