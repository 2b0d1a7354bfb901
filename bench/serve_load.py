"""Load on the decision service: pairs of decision and feedback a second, beside what others do.

    python bench/serve_load.py [--seconds 10] [--turns 3] [--connections 32] [--postgres]

Each connection asks for a decision about a record of ten fields, waits, says whether it was right,
waits, and so on. Servers and generator run on this machine, one server at a time; all but the bare
endpoint have each request on disk before they reply. They take turns, as the speed of a machine
changes from minute to minute; ratios are those of one turn. The processor time of a pair, of the
server alone, says most where other programs run. With --asgi it also measures the service without
its direct entry point. It prints a table, medians last, and writes serve-results.json. With --soak
it goes on for that many seconds, prints the memory over time, and ends with 1 if the memory grows
in the second half.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import uvloop

from serve_drill import Postgres, processor_seconds
from serve_rivals import LABELS

PORT = 8731

SOAK_PARTS = 20
"""How often a soak looks at the memory."""

SOAK_GROWTH = 0.02
"""By how much memory may grow in the second half of a soak."""


class Refused(Exception):  # noqa: N818
    """An error, in place of the reply that was asked for."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:200]!r}")
        self.status = status


class Connection(asyncio.Protocol):
    """A connection that sends a request and waits for the reply."""

    transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        """Remember where to write."""
        self.transport, self._data, self._left = transport, b"", -1
        self._reply: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        """Take what comes, until the reply is whole."""
        self._data += data
        if self._left < 0:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._data[:end].lower()
            start = head.index(b"content-length:") + 15
            self._left = end + 4 + int(head[start:].split(b"\r\n", 1)[0])
            self._status = int(head[9:12])
            self._body = end + 4
        if len(self._data) >= self._left and self._reply is not None:
            body, self._data, self._left = self._data[self._body : self._left], b"", -1
            if self._status == 200:
                self._reply.set_result(body)
            else:
                self._reply.set_exception(Refused(self._status, body))

    def connection_lost(self, error: Exception | None) -> None:
        """Fail if a reply is awaited."""
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionError("the server hung up"))

    def ask(self, verb: bytes, body: bytes) -> asyncio.Future[bytes]:
        """Send a request."""
        if self.transport.is_closing():
            raise ConnectionError("the server hung up")
        self._reply = asyncio.get_running_loop().create_future()
        self.transport.write(
            b"POST /v1/models/m/%s HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (verb, len(body), body)
        )
        return self._reply


def records(n: int) -> list[dict[str, Any]]:
    """Return records of ten fields, whose right label depends on one of them."""
    rng, made = random.Random(0), []
    for _ in range(n):
        record: dict[str, Any] = {f"word{k}": rng.choice("abcdefgh") for k in range(4)}
        record |= {f"number{k}": round(rng.gauss(0, 1), 3) for k in range(4)}
        record |= {"subject": f"{rng.choice('xyz')} card charged", "plan": rng.choice(["a", "b"])}
        made.append(record)
    return made


def right(record: dict[str, Any]) -> str:
    """Return the right label of a record."""
    return LABELS[ord(record["word0"]) - ord("a")]


async def load(connections: int, seconds: float, batch: int, pause: float) -> dict[str, float]:
    """Send pairs for some seconds; return how many a second, and how long a request takes."""
    loop, some = asyncio.get_running_loop(), records(2000)
    bodies = [msgspec.json.encode({"record": record}) for record in some]
    times: list[float] = []
    pairs = correct = 0
    start = loop.time()
    until = start + seconds

    async def user(k: int) -> None:
        nonlocal pairs, correct
        _, connection = await loop.create_connection(Connection, "127.0.0.1", PORT)
        i = k * 37
        while loop.time() < until:
            chosen = [(i + j) % len(some) for j in range(batch)]
            i += batch
            if batch > 1:
                question = b"[" + b",".join(bodies[j] for j in chosen) + b"]"
            else:
                question = bodies[chosen[0]]
            begun = time.perf_counter()
            answers = msgspec.json.decode(await connection.ask(b"decide", question))
            between = time.perf_counter()
            answers = answers if batch > 1 else [answers]
            said = [
                {"id": answer["id"], "correct": answer["label"] == right(some[j])}
                for j, answer in zip(chosen, answers, strict=True)
            ]
            body = msgspec.json.encode(said if batch > 1 else said[0])
            asked = time.perf_counter()
            await connection.ask(b"feedback", body)
            times.extend((between - begun, time.perf_counter() - asked))
            pairs += batch
            correct += sum(one["correct"] for one in said)
            if pause:
                await asyncio.sleep(pause)
        connection.transport.close()

    await asyncio.gather(*(user(k) for k in range(connections)))
    times.sort()
    return {
        "pairs_a_second": pairs / (loop.time() - start),
        "p50_ms": 1e3 * times[len(times) // 2],
        "p99_ms": 1e3 * times[int(len(times) * 0.99)],
        "right": correct / pairs,
        "pairs": float(pairs),
    }


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block."""
    process = subprocess.Popen(command)
    try:
        for _ in range(600):
            try:
                httpx.get(f"http://127.0.0.1:{PORT}/docs")
                break
            except httpx.TransportError:
                if process.poll() is not None:
                    raise RuntimeError(f"{command} ended") from None
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(30)


def put_first(pids: list[int], flags: int = 0) -> None:
    """Let processes or threads run before all others on the machine: needs Linux and root.

    With `os.SCHED_RESET_ON_FORK`, what they start from now on does not.
    """
    for pid in pids:
        os.sched_setscheduler(pid, os.SCHED_FIFO | flags, os.sched_param(10))


def memory_of(process: subprocess.Popen[bytes]) -> float:
    """Return the megabytes that a process holds."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def make_model() -> None:
    """Make the model of the service, anew if it is there."""
    body = {"name": "m", "labels": LABELS, "seed": 0}
    with httpx.Client(base_url=f"http://127.0.0.1:{PORT}", timeout=120) as http:
        http.delete("/v1/models/m")
        http.post("/v1/models", json=body).raise_for_status()


def main() -> None:
    """Measure all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--data", help="folder to write to; its disk is what is measured")
    parser.add_argument("--postgres", action="store_true", help="measure a PostgreSQL, too")
    parser.add_argument("--asgi", action="store_true", help="measure also without the direct entry")
    parser.add_argument("--only", help="some of bare,diy,sqlite,asgi,postgres")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="measure as if nobody else used the machine, which then waits: needs Linux and root",
    )
    parser.add_argument("--soak", type=float, default=0.0, help="seconds at half the load")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="onebit-load-", dir=options.data))
    serve = [sys.executable, "-m", "onebit", "serve", "--port", str(PORT)]
    rival = [sys.executable, str(Path(__file__).with_name("serve_rivals.py"))]
    servers = {
        "bare": [*rival, "bare", str(PORT), ""],
        "sqlite": [*serve, "--data", str(folder / "onebit")],
        "diy": [*rival, "diy", str(PORT), str(folder / "diy")],
    }
    if options.asgi:
        servers["asgi"] = [*rival, "asgi", str(PORT), str(folder / "asgi")]
    postgres = Postgres(folder / "pg") if options.postgres else None
    if postgres is not None:
        servers["postgres"] = [*serve, "--database", postgres.url]
    if options.only is not None:
        servers = {name: servers[name] for name in options.only.split(",")}
    results: dict[str, Any] = {}

    def run(name: str, batch: int, process: subprocess.Popen[bytes]) -> None:
        if options.realtime:
            put_first([0, *map(int, os.listdir(f"/proc/{process.pid}/task"))])
        before = processor_seconds(process.pid)
        found = uvloop.run(load(options.connections, options.seconds, batch, 0.0))
        if options.realtime:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        used = processor_seconds(process.pid) - before
        found["processor_us"] = 1e6 * used / found["pairs"]
        results.setdefault(f"{name}, {batch} a request", []).append(found)
        show(name, batch, found)

    print(
        f"{'server':<10} {'each':>4} {'pairs/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'right':>7} "
        f"{'processor us':>12}"
    )
    try:
        for turn in range(options.turns):
            for name, command in servers.items():
                shutil.rmtree(folder / "diy", ignore_errors=True)
                with running(command) as process:
                    if name in ("sqlite", "asgi", "postgres"):
                        make_model()
                    uvloop.run(load(options.connections, 1.0, 1, 0.0))  # to warm up
                    run(name, 1, process)
                    if name != "diy":
                        run(name, 100, process)
                    if options.soak and name == "sqlite" and turn == options.turns - 1:
                        soak(process, options, results)
    finally:
        if postgres is not None:
            postgres.end()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"medians of {options.turns} turns")
    for key, found in results.items():
        if key != "soak":
            name, batch = key.removesuffix(" a request").split(", ")
            show(name, int(batch), {k: statistics.median(f[k] for f in found) for k in found[0]})
    for name in servers.keys() - {"bare", "diy"}:
        for other in servers.keys() & {"bare", "diy"}:
            times = sorted(ratios(results, name, other))
            print(
                f"{name}: {statistics.median(times):.2f} times {other}, "
                f"from {times[0]:.2f} to {times[-1]:.2f}"
            )
    Path("serve-results.json").write_text(json.dumps(results, indent=2) + "\n")
    if not results.get("soak", {"flat": True})["flat"]:
        sys.exit(1)


def show(name: str, batch: int, found: dict[str, float]) -> None:
    """Print a line of the table."""
    print(
        f"{name:<10} {batch:>4} {found['pairs_a_second']:>10,.0f} {found['p50_ms']:>8.2f} "
        f"{found['p99_ms']:>8.2f} {found['right']:>7.1%} {found['processor_us']:>12.0f}",
        flush=True,
    )


def ratios(results: dict[str, Any], one: str, other: str) -> list[float]:
    """Return how many times the pairs of another server one has, in each turn."""
    turns = zip(*(results[f"{name}, 1 a request"] for name in (one, other)), strict=True)
    return [a["pairs_a_second"] / b["pairs_a_second"] for a, b in turns]


def soak(process: subprocess.Popen[bytes], options: Any, results: dict[str, Any]) -> None:
    """Go on at about half the load, and look at the memory; it must not grow in the second half."""
    full = results["sqlite, 1 a request"][-1]
    pause = options.connections / full["pairs_a_second"]
    memory = [memory_of(process)]
    for k in range(SOAK_PARTS):
        found = uvloop.run(load(options.connections, options.soak / SOAK_PARTS, 1, pause))
        memory.append(memory_of(process))
        print(
            f"soak: {options.soak * (k + 1) / SOAK_PARTS:,.0f} s, {memory[-1]:,.0f} MB, "
            f"{found['pairs_a_second']:,.0f} pairs/s, p99 {found['p99_ms']:.1f} ms",
            flush=True,
        )
    middle, end = memory[SOAK_PARTS // 2], memory[-1]
    flat = end <= middle * (1 + SOAK_GROWTH)
    verdict = "is flat" if flat else "GROWS"
    print(f"soak: memory {verdict}: {middle:,.0f} MB at half time, {end:,.0f} MB at the end")
    results["soak"] = {"seconds": options.soak, "megabytes": memory, "flat": flat}


if __name__ == "__main__":
    main()
