"""A stream through two services that share a PostgreSQL, beside the library alone.

    python bench/serve_stream.py [--rounds 100000] [--stream letter] [--users 16]

Users play the rounds of a named stream through two services, which they choose at random for each
request; the one that teaches is killed in the middle, and started again. It prints the error, that
of `onebit.play` over ten seeds, how long it took until the other one taught, and how far the
services were behind.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import uvloop

from onebit import OneBitClassifier, play, streams
from serve_drill import Postgres, Service
from serve_load import Connection, Refused

SEEDS = 10


class User:
    """Someone who asks one of the services, and another one if there is no answer."""

    def __init__(self, services: list[Service]) -> None:
        self._services = services
        self._connections: dict[int, Connection] = {}

    async def ask(self, verb: bytes, body: Any) -> Any:
        """Send a request until it is answered."""
        content = msgspec.json.encode(body)
        while True:
            port = random.choice(self._services).port
            try:
                connection = self._connections.get(port) or await self._connect(port)
                return msgspec.json.decode(await connection.ask(verb, content))
            except Refused as refused:
                if refused.status < 500:
                    raise
            except OSError:
                self._connections.pop(port, None)
            await asyncio.sleep(0.02)

    async def _connect(self, port: int) -> Connection:
        loop = asyncio.get_running_loop()
        _, self._connections[port] = await loop.create_connection(Connection, "127.0.0.1", port)
        return self._connections[port]


async def through(services: list[Service], X: Any, y: Any, users: int) -> dict[str, Any]:
    """Play the rounds; return the mistakes, and how the services followed."""
    rounds, found = iter(range(len(y))), dict[str, Any]()
    wrong: list[bool] = []
    behind: list[int] = []

    async def play_some() -> None:
        user = User(services)
        for i in rounds:
            row = X[i].toarray().ravel() if hasattr(X, "tocsr") else X[i]
            question = {"record": row.tolist(), "id": f"round-{i}"}
            made = await user.ask(b"decide", question)
            right = made["label"] == str(y[i])
            wrong.append(not right)
            if len(wrong) % 10_000 == 0:
                print(f"{len(wrong):,} rounds, {sum(wrong) / len(wrong):.2%} wrong", flush=True)
            await user.ask(b"feedback", {"id": made["id"], "correct": right})

    async def watch(http: httpx.AsyncClient) -> None:
        while len(wrong) < len(y):
            await asyncio.sleep(1.0)
            seen = []
            for service in services:
                try:
                    seen.append((await http.get(f"{service.url}/v1/models/m")).json())
                except (httpx.TransportError, ValueError):
                    seen.append({})
            behind.extend(one["behind"] for one in seen if "behind" in one)
            if len(wrong) > len(y) // 2 and "takeover" not in found:
                await kill(http, [one.get("is_leader") is True for one in seen])

    async def kill(http: httpx.AsyncClient, teaches: list[bool]) -> None:
        if True not in teaches:
            return
        victim, other = services[teaches.index(True)], services[teaches.index(False)]
        victim.stop()
        start = time.perf_counter()
        while not (await http.get(f"{other.url}/v1/models/m")).json()["is_leader"]:
            await asyncio.sleep(0.05)
        found["takeover"] = time.perf_counter() - start
        await asyncio.to_thread(victim.start)

    async with httpx.AsyncClient(timeout=60) as http:
        await asyncio.gather(watch(http), *(play_some() for _ in range(users)))
    return found | {"error": sum(wrong) / len(wrong), "behind": behind}


def main() -> None:
    """Play a stream both ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--stream", default="letter")
    parser.add_argument("--users", type=int, default=16)
    parser.add_argument("--port", type=int, default=8791)
    options = parser.parse_args()
    X, y = streams.load(options.stream, seed=0)
    at = np.arange(options.rounds) % len(y)
    X, y, labels = X[at], np.asarray(y)[at], [str(label) for label in np.unique(y)]
    alone = [
        play(OneBitClassifier(classes=np.unique(y), random_state=seed), X, y).error_rate
        for seed in range(SEEDS)
    ]
    print(f"library: {np.mean(alone):.2%} wrong, from {min(alone):.2%} to {max(alone):.2%}")
    folder = Path(tempfile.mkdtemp(prefix="onebit-stream-"))
    postgres = Postgres(folder / "pg")
    where = ["--database", postgres.url]
    services = [Service(options.port + k, where) for k in range(2)]
    try:
        for service in services:
            service.start()
        spec = {"name": "m", "labels": labels, "input": "numbers", "n_features": X.shape[1]}
        httpx.post(f"{services[0].url}/v1/models", json=spec, timeout=120).raise_for_status()
        start = time.perf_counter()
        found = uvloop.run(through(services, X, y, options.users))
        seconds = time.perf_counter() - start
        print(f"services: {found['error']:.2%} wrong, {len(y) / seconds:,.0f} rounds a second")
        print(f"takeover after {found.get('takeover', float('nan')):.2f} s")
        behind = sorted(found["behind"]) or [0]
        middle = behind[len(behind) // 2]
        print(f"behind: {middle} rows in the middle, {behind[-1]} at most")
        for service in services:
            service.stop(signal.SIGTERM)
    finally:
        for service in services:
            service.stop()
        postgres.end()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
