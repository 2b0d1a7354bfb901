"""Running the service: the server, its workers and its log lines."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import logging
import os
import sys
from typing import Any, NamedTuple

import uvicorn

from onebit.core.progress import announce_with
from onebit.serve.app import App
from onebit.serve.limits import Limits
from onebit.serve.log import Log
from onebit.serve.protocol import Protocol
from onebit.serve.sqlite_log import SQLiteLog

_OPTIONS = "ONEBIT_SERVE"
"""The environment variable that tells workers what to serve."""

_SWITCH_SECONDS = 0.0002


class Options(NamedTuple):
    """What to serve, and where."""

    data: str | None
    database: str | None
    host: str
    port: int
    workers: int
    log_requests: bool
    limits: Limits


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


def open_log(data: str | None, database: str | None, **options: bool) -> Log:
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


def serve(options: Options) -> None:
    """Serve until a signal says to stop."""
    check_host(options)
    print(f"onebit serves on http://{options.host}:{options.port}", file=sys.stderr)
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
        server = uvicorn.Server(uvicorn.Config(app_of(options), **settings))
        server.run()
        if not server.started:
            sys.exit(3)
        return
    os.environ[_OPTIONS] = json.dumps(options._asdict())
    uvicorn.run("onebit.serve.starting:worker", factory=True, workers=options.workers, **settings)


def worker() -> App:
    """Return the application of one of several processes."""
    log_as_json()
    found = json.loads(os.environ[_OPTIONS])
    return app_of(Options(**found | {"limits": Limits(*found["limits"])}))


def app_of(options: Options) -> App:
    """Return the application."""
    # The thread that commits must not wait longer for the GIL than for the disk.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Decisions that await feedback form no cycles: scanning all of them after every few requests
    # would take a tenth of the time.
    gc.set_threshold(50_000, 20, 100)
    log = open_log(options.data, options.database)
    return App(log, options.limits, log_requests=options.log_requests)


def log_as_json() -> None:
    """Write log lines as JSON, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    announce_with(logging.getLogger("onebit").info)
    for name in ("uvicorn", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


def check_host(options: Options) -> None:
    """Raise ValueError if others could reach a service that has no keys."""
    if is_loopback(options.host):
        return

    async def has_keys() -> bool:
        log = open_log(options.data, options.database, alone=False)
        await log.open()
        try:
            return bool(await log.keys())
        finally:
            await log.close()

    if not asyncio.run(has_keys()):
        raise ValueError(
            f"--host {options.host} lets others in, and there is no API key: make one first, with "
            "onebit key add"
        )


def is_loopback(host: str) -> bool:
    """Return whether only the local machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
