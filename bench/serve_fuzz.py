"""Broken requests: no answer of 5xx, no wrong lesson, nothing let in.

    python bench/serve_fuzz.py [--requests 100000] [--seed 0] [--workers 1]

It serves a model, with keys, and sends requests that are changed at random: JSON of wrong types
and depths, bytes, paths, headers, keys and sizes; and clients that stop in the middle. In between,
sound rounds are played. At the end the log must have exactly their rows, by `onebit log verify`. It
prints how often each status came (0: the service hung up), and ends with 1 if there was any fault.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import httpx

from serve_drill import Service, storage

LABELS = ["billing", "delivery", "login"]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    10**30,
    1e308,
    -0.0,
    "",
    "\x00",
    "é\u2028",
    "x" * 5000,
    [],
    {},
    [[]],
]
EVENT = "personalizer/v1.0/events/none"
RANK = "personalizer/v1.0/rank"
VERBS = [
    *("decide", "feedback", "explain", "revise", "erase", "labels", "shadows", "log", "learner"),
    *("decisions", "report", RANK, f"{EVENT}/reward", f"{EVENT}/activate", "nothing", ""),
]
"""What comes after the path of a model."""


class Fuzz:
    """Requests at random."""

    def __init__(self, seed: int, keys: dict[str, str]) -> None:
        self._rng, self._keys = random.Random(seed), keys

    def value(self, depth: int = 0) -> Any:
        """Return a JSON value."""
        rng = self._rng
        if depth > 4 or rng.random() < 0.5:
            return rng.choice(ODD)
        if rng.random() < 0.5:
            return [self.value(depth + 1) for _ in range(rng.randrange(4))]
        return {rng.choice(["record", "id", "a", ""]): self.value(depth + 1) for _ in range(3)}

    def body(self, verb: str) -> bytes:
        """Return the body of a request, more or less sound."""
        rng = self._rng
        examples: dict[str, dict[str, Any]] = {
            "decide": {"record": {"subject": "card", "n": 1}, "among": LABELS[:2], "id": "x"},
            "feedback": {"id": f"none-{rng.randrange(100)}", "correct": True},
            "explain": {"record": "card", "label": "billing", "against": "login", "among": LABELS},
            "revise": {"id": f"none-{rng.randrange(100)}", "withdrawn": True},
            "erase": {"ids": ["none"], "field": "user", "value": 7, "before": 1e9},
            RANK: {"contextFeatures": [{"n": 1}], "eventId": "x", "deferActivation": True},
            f"{EVENT}/reward": {"value": 1},
            "labels": {"add": ["billing"], "retire": ["none"]},
            "shadows": {"name": "bad name", "learner": "SOBA", "parameters": {"gamma": 7}},
        }
        sound = examples.get(verb, {"name": "m", "labels": LABELS, "frozen": 3})
        name = rng.choice([*sound, "more"])
        sound[name] = self.value()
        if verb == RANK:
            sound["actions"] = [{"id": "billing"}] * 2  # so that it cannot be right by chance
        elif verb in ("explain", "erase", "labels", "shadows") or (
            verb == "decide" and name != "more"
        ):
            sound["not a field"] = 1
        found: Any = [sound] * rng.choice([1, 2, 1001]) if rng.random() < 0.1 else sound
        content = json.dumps(found).encode()
        if rng.random() < 0.3:
            at = rng.randrange(len(content) + 1)
            content = (
                content[:at] + rng.randbytes(rng.randrange(4)) + content[at + rng.randrange(3) :]
            )
        if rng.random() < 0.02:
            content = b'{"record":' + b"[" * rng.choice([100, 100_000])
        if rng.random() < 0.005:
            content = b" " * (2**20 + 1)
        return content

    def request(self) -> tuple[str, str, bytes, dict[str, str]]:
        """Return method, path, body and headers."""
        rng, verb = self._rng, self._rng.choice(VERBS)
        model = rng.choice(["m", "m", "m", "none", "..", "%2e%2e", "a" * 300, "é"])
        path = rng.choice([f"/v1/models/{model}/{verb}", f"/v1/models/{model}", "/v1/models", "/x"])
        method = rng.choice(["POST", "POST", "POST", "GET", "PUT", "PATCH", "BREW"])
        if rng.random() < 0.7:  # most of them where lessons are
            verb = rng.choice(["decide", "feedback", "explain", "revise", RANK])
            method, path = "POST", f"/v1/models/m/{verb}"
        headers = {"content-type": rng.choice(["application/json"] * 9 + ["text/plain"])}
        # Never the key that may change or remove the model.
        key = rng.choice([self._keys["use"]] * 8 + ["x", "wrong", "Bearer"])
        headers["authorization"] = f"Bearer {key}"
        return method, path, self.body(verb), headers


class RawConnection:
    """A connection that sends what it is told: a client of a library would mend some of it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writer: asyncio.StreamWriter | None = None

    async def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Return the status and the body of the answer; zero if the service hung up."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        try:
            self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await self._writer.drain()
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            content = await self._reader.readexactly(int(length))
        except (OSError, asyncio.IncompleteReadError):  # as while a body is sent that is too large
            self.close()
            return 0, b""
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), content

    def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


async def send(service: Service, fuzz: Fuzz, n: int, found: Counter[int]) -> list[str]:
    """Send requests; return what went wrong."""
    faults: list[str] = []

    async def some(k: int) -> None:
        connection = RawConnection(service.port)
        for _ in range(k):
            method, path, body, headers = fuzz.request()
            status, content = await asyncio.wait_for(
                connection.ask(method, path, body, headers), 60
            )
            found[status] += 1
            # Feedback in a list is answered one by one, and none of it should be accepted.
            refused = status < 400 and b'"status"' in content and b'"accepted"' not in content
            was_read = method == "GET" and status == 200
            if status and not (refused or was_read or 400 <= status < 500):
                faults.append(f"{method} {path} {body[:80]!r}: {status}")
        connection.close()

    await asyncio.gather(*(some(n // 16) for _ in range(16)))
    return faults


def hang_up(service: Service, times: int) -> None:
    """Open connections that stop in the middle, or send nothing."""
    head = b"POST /v1/models/m/decide HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n"
    for i in range(times):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(
                [b"", head[:20], head, head + b'\r\n{"rec', b"\x16\x03\x01\x00"][i % 5]
            )


def main() -> None:
    """Send broken requests, and look at the log."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes; several use PostgreSQL")
    parser.add_argument("--port", type=int, default=8761)
    options = parser.parse_args()
    with storage(options.workers) as where:
        faults = fuzz_service(where, options)
    for fault in faults[:20]:
        print(fault)
    sys.exit(1 if faults else 0)


def fuzz_service(where: list[str], options: Any) -> list[str]:
    """Serve a model, and send broken requests; return what went wrong."""
    onebit, keys = [sys.executable, "-m", "onebit"], {}
    for name, scopes in {"use": "decide,feedback,read", "admin": "admin"}.items():
        command = [*onebit, "key", "add", name, "--scopes", scopes, *where]
        keys[name] = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    service = Service(options.port, [*where, "--workers", str(options.workers)])
    service.start()
    try:
        admin = {"authorization": f"Bearer {keys['admin']}"}
        with httpx.Client(base_url=service.url, headers=admin, timeout=120) as http:
            body = {"name": "m", "labels": LABELS, "n_features": 1024}
            http.post("/v1/models", json=body).raise_for_status()
            found, faults, fuzz = Counter[int](), [], Fuzz(options.seed, keys)
            for _ in range(10):
                made = http.post("/v1/models/m/decide", json={"record": "card charged"}).json()
                said = {"id": made["id"], "correct": True}
                http.post("/v1/models/m/feedback", json=said).raise_for_status()
                faults += asyncio.run(send(service, fuzz, options.requests // 10, found))
                hang_up(service, 20)
                print(
                    f"{sum(found.values()):,} requests: {dict(sorted(found.items()))}", flush=True
                )
            rows, until = 0, time.monotonic() + 10
            while rows < 21 and time.monotonic() < until:  # a process may be behind another
                rows = http.get("/v1/models/m").json()["rows"]
        if rows != 21:
            faults.append(f"the log has {rows} rows, and 21 were written")
        service.stop(signal.SIGTERM)
        if subprocess.run([*onebit, "log", "verify", *where]).returncode:
            faults.append("the log is not what was learned")
        return faults
    finally:
        service.stop(signal.SIGTERM)  # which ends its workers, too


if __name__ == "__main__":
    main()
