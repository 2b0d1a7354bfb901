"""A thousand models in one service: memory, stop, start, and requests beside a large import.

    python bench/serve_models.py [--models 1000] [--megabytes 100] [--seconds 30] [--realtime]

It makes models of ten labels in a folder, uses all of them in turns, stops the service, starts it
again and asks for a decision at once. Then one model decides and learns alone, beside heavy work on
another one that a process of its own asks for, and alone again: an import, an export, downloads of
a learner, retiring a label, an erasure, reading a long log. It prints what it measured, and ends
with 1 if the first answer took 5 seconds or more, the stop 10, or a p99 more than 3 times that
alone, except beside the erasure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec

from serve_drill import Service, processor_seconds
from serve_load import memory_of, put_first, records, right
from serve_rivals import LABELS

FIRST_ANSWER_SECONDS, STOP_SECONDS, P99_RATIO = 5.0, 10.0, 3.0


def round_seconds(http: httpx.Client, model: str, record: dict[str, object]) -> list[float]:
    """Decide and give feedback once; return how long both took."""
    begun = time.perf_counter()
    made = http.post(f"/v1/models/{model}/decide", json={"record": record}).json()
    between = time.perf_counter()
    said = {"id": made["id"], "correct": made["label"] == right(record)}
    http.post(f"/v1/models/{model}/feedback", json=said).raise_for_status()
    return [between - begun, time.perf_counter() - between]


def shown(seconds: list[float]) -> tuple[float, str]:
    """Return the p99 of times, and a text with p50 and p99 in milliseconds."""
    found = sorted(seconds)
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    return p99, f"p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms ({len(found):,} requests)"


def lines(megabytes: float) -> Iterator[bytes]:
    """Yield the rows of a log of that many megabytes, as the service exports them."""
    encode, some, rng = msgspec.json.Encoder().encode, records(2000), random.Random(0)
    spec = {"labels": LABELS, "seed": 1}
    size, n = 0, 1
    yield encode({"n": 1, "kind": "model", "at": 0.0, "body": spec}) + b"\n"
    while size < megabytes * 1e6:
        record, name, label = rng.choice(some), f"T{n}", rng.choice(LABELS)
        decision = {"record": record, "label": label, "probability": 0.1, "seen": n}
        feedback = {"correct": label == right(record)}
        rows = [
            {"n": n + 1, "kind": "decision", "at": 0.0, "body": decision, "id": name},
            {"n": n + 2, "kind": "feedback", "at": 0.0, "body": feedback, "id": name},
        ]
        content = b"".join(encode(row) + b"\n" for row in rows)
        size, n = size + len(content), n + 2
        yield content


class Beside:
    """One model in use, alone and beside heavy work on another one."""

    def __init__(self, service: Service, seconds: float) -> None:
        self._service, self._seconds, self._some = service, seconds, records(2000)
        self.faults: list[str] = []

    def measure(self, what: str, command: list[str], *, bounded: bool = True) -> None:
        """Use the model alone, beside the command until that ends, and alone again."""
        script = str(Path(__file__).with_name("serve_request.py"))
        with httpx.Client(base_url=self._service.url, timeout=60) as http:
            alone = self._alone(http)
            start = time.perf_counter()
            process = subprocess.Popen([sys.executable, script, *command])
            beside = []
            while process.poll() is None:
                beside += round_seconds(http, "m0", random.choice(self._some))
            seconds = time.perf_counter() - start
            alone += self._alone(http)
        if process.returncode:
            sys.exit(f"{what} failed")
        (p99, text), (p99_alone, text_alone) = shown(beside), shown(alone)
        ratio, load = p99 / p99_alone, os.getloadavg()[0]
        print(f"one model beside {what} ({seconds:.0f} s): {text}; alone {text_alone}", flush=True)
        print(f"    p99 {ratio:.2f} times that alone; load {load:.1f}", flush=True)
        if bounded and ratio > P99_RATIO:
            self.faults.append(f"the p99 beside {what}")

    def _alone(self, http: httpx.Client) -> list[float]:
        times: list[float] = []
        until = time.monotonic() + self._seconds / 2
        while time.monotonic() < until:
            times += round_seconds(http, "m0", random.choice(self._some))
        return times


def heavy_work(
    service: Service, folder: Path, megabytes: float, seconds: float, realtime: bool
) -> list[str]:
    """Measure requests to one model beside heavy work on others; return what is too slow."""
    url, file = f"{service.url}/v1/models", folder / "log.jsonl"
    beside = Beside(service, seconds)
    with open(file, "wb") as log:
        log.writelines(lines(megabytes))
    wide = [f"L{k}" for k in range(250)]
    body = {"name": "wide", "labels": wide, "seed": 0}
    httpx.post(url, json=body, timeout=120).raise_for_status()
    if realtime:
        assert service.process is not None
        put_first([os.getpid(), service.process.pid], os.SCHED_RESET_ON_FORK)
    beside.measure(
        f"an import of {megabytes:g} MB", ["PUT", f"{url}/imported/log", "--file", str(file)]
    )
    beside.measure("its export", ["GET", f"{url}/imported/log"])
    beside.measure("ten downloads of its learner", ["GET", *[f"{url}/imported/learner"] * 10])
    retire = json.dumps({"retire": wide[:1]})
    beside.measure("retiring one of 250 labels", ["POST", f"{url}/wide/labels", "--json", retire])
    erase = json.dumps({"ids": ["T1"]})
    # The whole database is written anew, which all that is written waits for.
    beside.measure(
        "an erasure from it", ["POST", f"{url}/imported/erase", "--json", erase], bounded=False
    )
    assert service.process is not None
    print(f"memory at the end: {memory_of(service.process):.0f} MB")
    service.stop(signal.SIGTERM)
    with contextlib.closing(sqlite3.connect(folder / "log.sqlite")) as db, db:
        query = "DELETE FROM snapshot WHERE model = (SELECT key FROM model WHERE name = 'imported')"
        db.execute(query)
    service.start()
    if realtime:
        assert service.process is not None
        put_first([os.getpid(), service.process.pid], os.SCHED_RESET_ON_FORK)
    beside.measure("reading it without a snapshot", ["GET", f"{url}/imported"])
    return beside.faults


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=30.0, help="of a model alone")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="as if nobody else used the machine: needs Linux and the rights of root",
    )
    parser.add_argument("--port", type=int, default=8781)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="onebit-models-"))
    service, some = Service(options.port, ["--data", str(folder)]), records(2000)
    faults = []
    try:
        service.start()
        assert service.process is not None
        with httpx.Client(base_url=service.url, timeout=120) as http:
            start = time.perf_counter()
            n = options.models - 2  # one is imported, and one has many labels
            for k in range(n):
                body = {"name": f"m{k}", "labels": LABELS, "seed": k}
                http.post("/v1/models", json=body).raise_for_status()
            seconds = time.perf_counter() - start
            memory = memory_of(service.process)
            print(f"{n} models made in {seconds:.0f} s: {memory:.0f} MB", flush=True)
            times = [
                one
                for _ in range(2)
                for k in range(n)
                for one in round_seconds(http, f"m{k}", random.choice(some))
            ]
        memory = memory_of(service.process)
        print(f"all used in turns: {shown(times)[1]}, {memory:.0f} MB", flush=True)
        start = time.perf_counter()
        service.stop(signal.SIGTERM)
        if (seconds := time.perf_counter() - start) >= STOP_SECONDS:
            faults.append("the stop")
        print(f"stop: {seconds:.1f} s", flush=True)

        start = time.perf_counter()
        ready = service.start()
        with httpx.Client(base_url=service.url, timeout=120) as http:
            round_seconds(http, f"m{n // 2}", some[0])
            if (seconds := time.perf_counter() - start) >= FIRST_ANSWER_SECONDS:
                faults.append("the first answer")
            used = processor_seconds(service.process.pid)
            print(
                f"start: ready after {ready.seconds:.1f} s, first decision and feedback after "
                f"{seconds:.1f} s ({used:.1f} s of a processor)",
                flush=True,
            )
            start = time.perf_counter()
            listed = len(http.get("/v1/models").json())
            print(f"a list of {listed} models: {time.perf_counter() - start:.1f} s", flush=True)
            while "onebit_models_unread 0.0" not in http.get("/metrics").text:
                time.sleep(0.5)
            print(f"all models read after {time.perf_counter() - start:.0f} s", flush=True)
        faults += heavy_work(service, folder, options.megabytes, options.seconds, options.realtime)
        service.stop(signal.SIGTERM)
    finally:
        service.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if faults:
        sys.exit(f"too slow: {', '.join(faults)}")


if __name__ == "__main__":
    main()
