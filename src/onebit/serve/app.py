"""The application: every rule for requests is here, whichever entry point they come through.

A request comes through ASGI (`serve/asgi.py`), or, if it arrives whole, directly from the
connection (`serve/protocol.py`). Both make a `Request` of it and send the `Reply`
that `App.respond` returns.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import re
import time
from collections.abc import Callable
from functools import lru_cache

import msgspec

from onebit.core.validation import short
from onebit.serve import asgi
from onebit.serve.access import SUBSCRIPTION_KEY, Access
from onebit.serve.api import Problem, RefusedError
from onebit.serve.limits import Limits
from onebit.serve.log import LogError, ServiceLog
from onebit.serve.metrics import Metrics
from onebit.serve.readiness import Readiness
from onebit.serve.requests import ClientGoneError, Receive, Reply, Request, RequestHead, read_body
from onebit.serve.routes import ROUTES, Match, Route, Router
from onebit.serve.service import Service
from onebit.serve.tracing import Tracing

KEYS_SECONDS = 2.0
"""Seconds until a key that was added or removed is noticed."""

PROXIES_SECONDS = 30.0
"""Seconds between two lookups of the addresses of proxies that are given by host names."""

LONGEST_PATH = 400
"""Longest path, in characters; names are shorter. Routes of paths are cached."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

_SINGLE_HEADERS = (b"host", b"authorization", b"content-type", SUBSCRIPTION_KEY)
"""Headers of which a proxy could read another one than this service, if there were two."""

_encode = msgspec.json.Encoder().encode
_logger = logging.getLogger(__name__)


class App:
    """The application.

    Parameters
    ----------
    log : ServiceLog
    limits : Limits, optional
    access : Access, optional
        Who may send requests.
    log_requests : bool, default=False
        Whether to log every request; otherwise only those that are refused or change a model.
    metrics : str, optional
        Folder in which the processes of a service share their metrics.
    tracing : Tracing, optional
        Makes spans of requests.
    """

    def __init__(
        self,
        log: ServiceLog,
        limits: Limits | None = None,
        access: Access | None = None,
        *,
        log_requests: bool = False,
        metrics: str | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.limits, self._log_requests = limits or Limits(), log_requests
        self.access, self._tracing = access or Access(), tracing
        self.service = Service(log, self.limits)
        self.in_flight, self.stopping = 0, False
        self.metrics = Metrics(self.service, lambda: self.in_flight, metrics)
        self.readiness = Readiness(self.service)
        self.started: Callable[[], None] = lambda: None
        """Called when the server knows that the application has started."""
        self._router = Router(ROUTES)
        self._tasks: list[asyncio.Task[None]] = []
        self._numbers, self._process = itertools.count(), os.urandom(4).hex().encode()

    async def __call__(self, scope: asgi.Scope, receive: Receive, send: asgi.Send) -> None:
        """Reply to a request, or start and stop with the server."""
        if scope["type"] == "http":
            await asgi.serve_request(self, scope, receive, send)
        elif scope["type"] == "lifespan":
            await asgi.serve_lifespan(self, receive, send)

    async def start(self) -> None:
        """Open the log, and begin to read the models."""
        await self.service.start()
        self.access.update(await self.service.log.keys())
        await self.access.resolve_proxies()
        work = self._read_keys(), self._resolve_proxies(), self.metrics.publish()
        self._tasks = [asyncio.get_running_loop().create_task(one) for one in work]

    async def stop(self) -> None:
        """Write what is left, and close the log."""
        self.stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.readiness.stop()
        await self.service.stop()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.stop)

    async def _read_keys(self) -> None:
        while True:
            await asyncio.sleep(KEYS_SECONDS)
            try:
                self.access.update(await self.service.log.keys())
            except LogError as error:
                _logger.error("keys: %s", error)

    async def _resolve_proxies(self) -> None:
        while True:
            await asyncio.sleep(PROXIES_SECONDS)
            await self.access.resolve_proxies()

    async def respond(self, request: Request) -> Reply | None:
        """Return the reply to a request; None if its client is gone."""
        start, head = time.perf_counter(), request.head
        name = self._id_of(head)
        match: Match | None = None
        origin: bytes | None = None
        self.in_flight += 1
        try:
            _check_head(head)
            origin = self.access.allowed_origin(head.headers) if b"origin" in head.headers else None
            if origin is not None and head.method == "OPTIONS":
                return self._preflight(origin, name)
            match = self._router.match(head.method, head.path)
            reply = await self._handle(request, match)
        except RefusedError as error:
            reply = _refusal(error.status, str(error), name, error.headers)
        except LogError as error:
            _logger.error("request %s: %s", name.decode(), error)
            reply = _refusal(503, "the log cannot be written or read now; try again", name)
        except ClientGoneError:
            return None
        except asyncio.CancelledError:  # a stop has waited long enough
            reply = _refusal(503, "the service stops", name)
        except Exception:
            _logger.exception("request %s", name.decode())
            reply = _refusal(500, "this is a defect of onebit; the log says more", name)
        finally:
            self.in_flight -= 1
        reply.id = name
        if origin is not None:
            reply.headers = [*reply.headers, *_origin_headers(origin)]
        seconds = time.perf_counter() - start
        self._record(head, match, reply, seconds)
        if self._tracing is not None and match is not None:
            now = time.time_ns()
            self._tracing.record(request, match, reply, now - int(1e9 * seconds), now)
        return reply

    @staticmethod
    def _preflight(origin: bytes, name: bytes) -> Reply:
        """Return what pages of an allowed origin may send, for a browser."""
        headers = [
            *_origin_headers(origin),
            (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
            (b"access-control-allow-headers", b"authorization, content-type, x-request-id"),
            (b"access-control-max-age", b"600"),
        ]
        reply = Reply(b"", 204, headers=headers)
        reply.id = name
        return reply

    async def _handle(self, request: Request, match: Match) -> Reply:
        """Apply the rules of a route to a request, and call its handler."""
        route, request.parameters = match.route, match.parameters
        if self.in_flight > self.limits.in_flight and not route.probe:
            raise RefusedError(429, "too many requests at the same time")
        self.access.check(route, request)
        if route.body is not None:
            _check_media(route, request.head)
        if match.parse is not None:
            request.body = _parsed(match.parse, await read_body(request, self.limits))
            if isinstance(request.body, list):
                _check_items(len(request.body), self.limits.items)
                if request.grant is not None:
                    request.grant.add_items(len(request.body))
        return await route.handler(self, request)

    def _id_of(self, head: RequestHead) -> bytes:
        """Return the id of a request: the client's, or one of this process."""
        given = head.headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return b"%s-%x" % (self._process, next(self._numbers))

    def _record(self, head: RequestHead, match: Match | None, reply: Reply, seconds: float) -> None:
        """Count a request, and log it if required."""
        self.metrics.observe("other" if match is None else match.label, reply.status, seconds)
        is_logged = self._log_requests or reply.status >= 400
        if is_logged or (match is not None and match.is_logged):
            _logger.info(
                "%s %s: %d",
                *(head.method, head.path, reply.status),
                extra={"request_id": reply.id.decode(), "seconds": round(seconds, 6)},
            )


def _origin_headers(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"retry-after, x-request-id"),
        (b"vary", b"origin"),
    ]


def _refusal(
    status: int, message: str, name: bytes, headers: dict[str, str] | None = None
) -> Reply:
    more = [(key.encode(), value.encode()) for key, value in (headers or {}).items()]
    if status in (429, 503) and not any(key == b"retry-after" for key, _ in more):
        more.append((b"retry-after", b"1"))
    return Reply(_encode(Problem(message, name.decode())), status, headers=more)


def _check_head(head: RequestHead) -> None:
    """Refuse what a proxy and this service could read in different ways."""
    if len(head.path) > LONGEST_PATH:
        raise RefusedError(414, f"a path has at most {LONGEST_PATH} characters")
    if b"%" in head.raw_path and b"%2f" in head.raw_path.lower():
        raise RefusedError(404, "there is no such path: no name has a slash; see /openapi.json")
    for name in head.repeated:
        if name in _SINGLE_HEADERS:
            raise RefusedError(400, f"there is more than one header {name.decode()}")


def _check_media(route: Route, head: RequestHead) -> None:
    media = _media_of(head.headers.get(b"content-type", b""))
    if media != route.body_media:
        raise RefusedError(415, f"the body is {route.body_media}; got {short(media)}")


@lru_cache(maxsize=256)
def _media_of(content_type: bytes) -> str:
    return content_type.decode("latin-1").partition(";")[0].strip().lower()


def _parsed(parse: Callable[[bytes], object], content: bytes) -> object:
    try:
        return parse(content)
    except msgspec.ValidationError as error:
        raise RefusedError(422, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None


def _check_items(n: int, most: int) -> None:
    if not 1 <= n <= most:
        raise RefusedError(422, f"a list has 1 to {most:,} items; this one has {n:,}")
