"""Running the service: the server, its workers and its log lines."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import inspect
import json
import logging
import os
import sys
import tempfile
from typing import Any, NamedTuple

import uvicorn

from onebit.core.progress import announce_with
from onebit.serve.access import Access, is_loopback_host, parse_origins, parse_proxies
from onebit.serve.app import App
from onebit.serve.limits import Limits
from onebit.serve.log import ServiceLog
from onebit.serve.protocol import Protocol
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.tracing import Tracing

_OPTIONS = "ONEBIT_SERVE"
"""The environment variable with the options of workers."""

_SWITCH_SECONDS = 0.0002

WORKER_SECONDS = 60
"""Seconds without an answer after which a worker counts as hung, and is replaced.

On a busy machine, a worker that starts imports modules for longer than uvicorn would wait.
"""


_WORKER_TIMEOUT = "timeout_worker_healthcheck"
"""An option of uvicorn, which its earlier versions lack."""


class Options(NamedTuple):
    """What to serve, and where."""

    data: str | None
    database: str | None
    host: str
    port: int
    workers: int
    log_requests: bool
    limits: Limits
    proxies: tuple[str, ...] = ()
    """Addresses, networks and host names of proxies in front of the service."""
    origins: tuple[str, ...] = ()
    """Origins of pages elsewhere that may ask, such as https://shop.example."""
    metrics: str | None = None
    """Folder in which several processes publish their figures to each other."""
    opentelemetry: bool = False
    """Whether to send traces."""

    @property
    def exposed(self) -> bool:
        """Whether others can reach the service, directly or through a proxy."""
        return bool(self.proxies) or not is_loopback_host(self.host)


class JSONLines(logging.Formatter):
    """Log lines as JSON objects."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        for name in ("request_id", "seconds"):
            if hasattr(record, name):
                line[name] = getattr(record, name)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def open_log(data: str | None, database: str | None, **options: bool) -> ServiceLog:
    """Return the log in a folder or in a database, not opened yet."""
    if database is None:
        return SQLiteLog(data or ".", **options)
    if not database.startswith(("postgresql://", "postgres://")):
        raise ValueError("--database takes postgresql://...")
    try:
        from onebit.serve.postgres_log import PostgresLog
    except ModuleNotFoundError as missing:
        raise ValueError(f"--database needs {missing.name}: onebit[postgres]") from None
    return PostgresLog(database)


class Server(uvicorn.Server):
    """A server that says where it listens, once it does."""

    async def startup(self, sockets: Any = None) -> None:
        """Start the application, and listen."""
        try:
            await super().startup(sockets)
        except SystemExit:
            if self.lifespan.should_exit:  # and has logged why
                raise
            config = self.config
            sys.exit(f"onebit cannot listen on {config.host}:{config.port}: the log says why")
        for listener in self.servers[0].sockets:
            announce(*listener.getsockname()[:2])


def announce(host: str, port: int) -> None:
    """Say where the service listens."""
    host = f"[{host}]" if ":" in host else host
    print(f"onebit serves on http://{host}:{port}", file=sys.stderr, flush=True)


def serve(options: Options) -> None:
    """Serve until a signal says to stop."""
    check_exposure(options)
    log_as_json()
    settings: dict[str, Any] = {
        "host": options.host,
        "port": options.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_graceful_shutdown": 10,
        "lifespan": "on",
        "http": Protocol,
        "ws": "none",
        "loop": "uvloop" if sys.platform != "win32" else "asyncio",
    }
    if options.workers == 1:
        server = Server(uvicorn.Config(app_of(options), **settings))
        server.run()
        if not server.started:
            sys.exit(3)
        return
    with tempfile.TemporaryDirectory(prefix="onebit-metrics-") as folder:
        os.environ[_OPTIONS] = json.dumps(options._replace(metrics=folder)._asdict())
        settings |= {"factory": True, "workers": options.workers}
        if _WORKER_TIMEOUT in inspect.signature(uvicorn.Config).parameters:
            settings[_WORKER_TIMEOUT] = WORKER_SECONDS
        uvicorn.run("onebit.serve.starting:worker", **settings)


def worker() -> App:
    """Return the application of one of several processes."""
    log_as_json()
    found = json.loads(os.environ[_OPTIONS])
    limits, proxies = Limits(*found["limits"]), tuple(found["proxies"])
    origins = tuple(found["origins"])
    options = Options(**found | {"limits": limits, "proxies": proxies, "origins": origins})
    app = app_of(options)
    # The port was bound before this process was started; it is listened to next.
    app.started = lambda: announce(options.host, options.port)
    return app


def app_of(options: Options) -> App:
    """Return the application."""
    # The thread that commits must not wait longer for the GIL than for the disk.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Decisions that await feedback form no cycles: scanning all of them after every few requests
    # would take a tenth of the time.
    gc.set_threshold(50_000, 20, 100)
    _return_large_arrays()
    log = open_log(options.data, options.database)
    access = Access(
        exposed=options.exposed, proxies=options.proxies, origins=parse_origins(options.origins)
    )
    return App(
        log,
        options.limits,
        access,
        log_requests=options.log_requests,
        metrics=options.metrics,
        tracing=Tracing.from_environment() if options.opentelemetry else None,
    )


def _return_large_arrays() -> None:
    """Make glibc return memory of large arrays to the system as soon as they are freed.

    By default it keeps that of arrays as large as any that was freed before.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 2**20)


_M_MMAP_THRESHOLD = -3


def log_as_json() -> None:
    """Write log lines as JSON, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    announce_with(logging.getLogger("onebit").info)
    for name in ("uvicorn", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


def check_exposure(options: Options) -> None:
    """Raise ValueError if others could reach a service that has no keys."""
    parse_proxies(options.proxies)
    parse_origins(options.origins)
    if not options.exposed:
        return

    async def has_keys() -> bool:
        log = open_log(options.data, options.database, alone=False)
        await log.open()
        try:
            return bool(await log.keys())
        finally:
            await log.close()

    if not asyncio.run(has_keys()):
        let_in = "--trusted-proxy" if is_loopback_host(options.host) else f"--host {options.host}"
        raise ValueError(
            f"{let_in} lets others in, and there is no API key: make one first, with onebit key add"
        )
