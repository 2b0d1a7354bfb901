"""A service for tests: in this process, or in one of its own."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx

from onebit.serve.app import App
from onebit.serve.sqlite_log import SQLiteLog

SMALL = {"n_features": 1024, "seed": 7}
"""What a model of records needs to be cheap."""

TICKETS = {
    "billing": "card charged twice",
    "delivery": "parcel is late",
    "login": "password forgotten again",
}


class InProcess:
    """An application with an event loop in a thread of its own."""

    def __init__(self, log, limits=None):
        self.app = App(log, limits)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def __enter__(self):
        try:
            self.do(self.app.start())
        except BaseException:
            self._end()
            raise
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        return self

    def __exit__(self, *_):
        self.do(self._http.aclose())
        self.do(self.app.stop())
        self._end()

    def _end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def send(self, method, path, json=None, **options):
        return self.do(self._http.request(method, path, json=json, **options))

    def ask(self, method, path, json=None, status=200, **options):
        """Send a request that must have this status; return what is answered."""
        reply = self.send(method, path, json, **options)
        assert reply.status_code == status, reply.text
        return reply.json() if reply.content else None

    def make(self, name="m", labels=tuple(TICKETS), **spec):
        return self.ask("POST", "/v1/models", {"name": name, "labels": list(labels)} | SMALL | spec)

    def rounds(self, n, name="m"):
        """Decide and give feedback; return the ids."""
        ids = []
        for i in range(n):
            desk, text = list(TICKETS.items())[i % len(TICKETS)]
            made = self.ask("POST", f"/v1/models/{name}/decide", {"record": f"{text} {i}"})
            said = {"id": made["id"], "correct": made["label"] == desk}
            self.ask("POST", f"/v1/models/{name}/feedback", said)
            ids.append(made["id"])
        return ids

    def live(self, name="m"):
        return self.do(self.app.service.find(name))

    def model(self, name="m"):
        return self.live(name).model

    def snapshot(self, name="m"):
        async def take():
            return (await self.app.service.find(name)).model.copy().snapshot()

        return self.do(take())


def in_folder(folder, limits=None):
    return InProcess(SQLiteLog(folder), limits)


class OwnProcess:
    """`onebit serve` in a process of its own, which may be killed."""

    def __init__(self, *arguments):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "onebit", "serve", "--port", str(self.port), *arguments]
        self.start = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ
        )

    def wait(self, seconds=60):
        """Return after how many seconds it was ready."""
        end = self.start + seconds
        while time.perf_counter() < end:
            try:
                if httpx.get(f"{self.url}/ready").status_code == 200:
                    return time.perf_counter() - self.start
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise AssertionError(self.process.stderr.read()) from None
                time.sleep(0.01)
        raise AssertionError("the service did not start")

    def kill(self, sent=signal.SIGKILL):
        self.process.send_signal(sent)
        self.process.wait(30)
        self.process.stderr.close()
