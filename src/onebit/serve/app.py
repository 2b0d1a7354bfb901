"""The service as an ASGI application: requests in, answers out."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qs

import msgspec

from onebit.core.validation import short
from onebit.serve import views
from onebit.serve.access import Access
from onebit.serve.api import LogRow, NewModel, NewShadow, Problem, Question, RefusedError, Said
from onebit.serve.importing import import_log
from onebit.serve.limits import Limits
from onebit.serve.log import Log, LogError
from onebit.serve.metrics import Metrics
from onebit.serve.openapi import description
from onebit.serve.paths import PATHS, Path, key_of
from onebit.serve.protocol import Head
from onebit.serve.readiness import Readiness
from onebit.serve.rows import LabelsBody, LearnerSpec, Settings, ShadowBody
from onebit.serve.service import Live, Service, exported

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

KEYS_SECONDS = 2.0
"""Seconds until a key that was added or removed is noticed."""

LONGEST_PATH = 400
"""Longest path, in characters; names are shorter. What a path resolves to is cached."""

_STATUS = {"unknown": 404, "expired": 410, "contradiction": 409, "invalid": 422}
"""Status of the answer to refused feedback for one decision."""

_MODELS = "/v1/models/"

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

_ONCE = (b"host", b"authorization", b"content-type")
"""Headers of which a second one could be read differently by a proxy."""

_PAGE = {"/": "page.html", "/page.css": "page.css", "/page.js": "page.js"}
_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; "
        b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]

_encode = msgspec.json.Encoder().encode
_logger = logging.getLogger(__name__)


class Request:
    """A request, as handlers see it."""

    __slots__ = ("body", "names", "receive", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope, self.receive = scope, receive
        self.names: list[str] = []
        self.body: Any = None


class Reply:
    """An answer; `content` may also come in parts."""

    __slots__ = ("content", "headers", "media", "status")

    def __init__(
        self,
        content: bytes | AsyncIterator[bytes],
        status: int = 200,
        media: str = "application/json",
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.content, self.status, self.media = content, status, media
        self.headers = headers or []


class App:
    """The ASGI application.

    Parameters
    ----------
    log : Log
    limits : Limits, optional
    access : Access, optional
        Who may send requests.
    log_requests : bool, default=False
        Whether to log every request; otherwise only those that are refused or change a model.
    metrics : str, optional
        Folder in which the processes of a service tell each other their figures.
    """

    def __init__(
        self,
        log: Log,
        limits: Limits | None = None,
        access: Access | None = None,
        *,
        log_requests: bool = False,
        metrics: str | None = None,
    ) -> None:
        self.limits, self._log_requests = limits or Limits(), log_requests
        self.access = access or Access()
        self.service = Service(log, self.limits)
        self._metrics = Metrics(self.service, lambda: self._in_flight, metrics)
        self._readiness = Readiness(self.service)
        self._tasks: list[asyncio.Task[None]] = []
        self._reading: dict[asyncio.Task[Any] | None, float] = {}
        """Requests whose body is awaited, and since when."""
        self._in_flight, self.stopping = 0, False
        self.started: Callable[[], None] = lambda: None
        """Called when the server is told that the application has started."""
        self._numbers, self._process = itertools.count(), os.urandom(4).hex().encode()
        self._paths: dict[tuple[str, str], tuple[Path, str, Any, Any]] = {}
        self._methods: dict[str, list[str]] = {}
        for path in PATHS:
            key = key_of(path.method, path.path)
            reads = path.takes is not None and path.taken == "application/json"
            decoder = msgspec.json.Decoder(path.takes) if reads else None
            where = f"{path.method} {path.path}"
            self._paths[key] = path, where, getattr(self, f"_{path.handler}"), decoder
            self._methods.setdefault(key[1], []).append(path.method)
        self._page = {
            place: Reply(
                resources.files(__package__).joinpath("page", file).read_bytes(),
                media=f"{_MEDIA[file.rpartition('.')[2]]}; charset=utf-8",
                headers=_PAGE_HEADERS,
            )
            for place, file in _PAGE.items()
        }
        self._usual: dict[str, Any] = {
            "decide": self.service.decide_new,
            "feedback": self.service.hear_new,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop with the server."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except LogError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        self.started()
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        """Open the log, and read all models."""
        await self.service.start()
        self.access.update(await self.service.log.keys())
        loop = asyncio.get_running_loop()
        work = self._read_keys(), self._end_slow(), self._metrics.publish()
        self._tasks = [loop.create_task(one) for one in work]

    async def stop(self) -> None:
        """Write what is left, and close the log."""
        self.stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._readiness.stop()
        await self.service.stop()

    async def _read_keys(self) -> None:
        while True:
            await asyncio.sleep(KEYS_SECONDS)
            try:
                self.access.update(await self.service.log.keys())
            except LogError as error:
                _logger.error("keys: %s", error)

    # From request to answer

    def take(
        self,
        head: Head,
        peer: str | None,
        content: bytes,
        answer: Callable[[bytes, bytes | None], None],
    ) -> bool:
        """Begin to answer an ordinary request for a decision or with feedback.

        Parameters
        ----------
        head : Head
        peer : str or None
            Address of the other end of the connection.
        content : bytes
            The body.
        answer : callable
            Called with the request's id and the answer, or None if `__call__` has to answer.

        Returns
        -------
        bool
            Whether `answer` will be called; if not, nothing has happened.
        """
        start = time.perf_counter()
        model, _, verb = head.path.removeprefix(_MODELS).partition("/")
        live, begin = self.service.live.get(model), self._usual.get(verb)
        if live is None or begin is None or not head.path.startswith(_MODELS):
            return False
        if live.model.is_packed or not live.free.is_set():
            return False
        live.used_at = time.monotonic()
        path, where, _, decoder = self._paths[key_of("POST", head.path)]
        try:
            if self._in_flight >= self.limits.in_flight or head.length > self.limits.body:
                return False
            self.access.check(path, peer, head.headers)
            self._check_media(path, head.headers)
            body = _decoded(decoder, content)
            many = isinstance(body, list)
            if many:
                self._check_items(body)
            begun = begin(live, body if many else [body])
        except Exception:  # the slow path answers and logs it
            return False
        if begun is None:
            return False
        future, answers = begun
        name, reply = self._name_of(head.headers), _encode(answers if many else answers[0])
        self._in_flight += 1

        def finish(future: asyncio.Future[list[int]]) -> None:
            self._in_flight -= 1
            if future.exception() is None and all(future.result()):
                self._note(path, where, ("POST", head.path), 200, start, name)
                answer(name, reply)
            else:
                answer(name, None)

        future.add_done_callback(finish)
        return True

    def _name_of(self, headers: dict[bytes, bytes]) -> bytes:
        """Return the id of a request: the client's, or one of this process."""
        given = headers.get(b"x-request-id")
        if given is not None and _ID.fullmatch(given):
            return given
        return b"%s-%x" % (self._process, next(self._numbers))

    def _note(
        self,
        path: Path | None,
        where: str,
        asked: tuple[str, str],
        status: int,
        start: float,
        name: bytes,
    ) -> None:
        """Count a request, and log it if required."""
        seconds = time.perf_counter() - start
        self._metrics.observe(where, status, seconds)
        if self._log_requests or status >= 400 or (path and path.handler in _LOGGED):
            _logger.info(
                "%s %s: %d",
                *(*asked, status),
                extra={"request_id": name.decode(), "seconds": round(seconds, 6)},
            )

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, headers = time.perf_counter(), dict(scope["headers"])
        name = self._name_of(headers)
        self._in_flight += 1
        where, path = "other", None
        try:
            _check_head(scope)
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            page = self._page.get(scope["path"]) if method == "GET" else None
            key = key_of(method, scope["path"])
            path, where, handler, decoder = self._paths.get(key, _NOWHERE)
            if self._in_flight > self.limits.in_flight and where not in _UNLIMITED:
                raise RefusedError(429, "too many requests at the same time")
            if page is None and path is None:
                raise self._no_such_path(key)
            peer = scope["client"][0] if scope.get("client") else None
            self.access.check(path, peer, headers)
            request = Request(scope, receive)
            request.names = scope["path"].split("/")[3::2]
            if path is not None and path.takes is not None:
                self._check_media(path, headers)
                if decoder is not None:
                    body = await self._body(receive, headers)
                    request.body = _decoded(decoder, body)
            reply = await handler(request) if page is None else page
        except RefusedError as error:
            reply = self._refusal(error.status, str(error), name, error.headers)
        except LogError as error:
            _logger.error("request %s: %s", name.decode(), error)
            reply = self._refusal(503, "the log cannot be written or read now; try again", name)
        except _GoneError:
            return
        except Exception:
            _logger.exception("request %s", name.decode())
            reply = self._refusal(500, "this is a defect of onebit; the log says more", name)
        finally:
            self._in_flight -= 1
        self._note(path, where, (scope["method"], scope["path"]), reply.status, start, name)
        await _send(reply, name, send, without_body=scope["method"] == "HEAD")

    def _no_such_path(self, key: tuple[str, str]) -> RefusedError:
        methods = self._methods.get(key[1])
        if methods is None:
            return RefusedError(404, f"there is no such path: {short(key[1])}; see /openapi.json")
        allowed = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
        return RefusedError(405, f"{key[0]} is not possible here: {allowed}", {"allow": allowed})

    def _refusal(
        self, status: int, message: str, name: bytes, headers: dict[str, str] | None = None
    ) -> Reply:
        more = [(key.encode(), value.encode()) for key, value in (headers or {}).items()]
        if status in (429, 503):
            more.append((b"retry-after", b"1"))
        return Reply(_encode(Problem(message, name.decode())), status, headers=more)

    def _check_media(self, path: Path, headers: dict[bytes, bytes]) -> None:
        media = _media_of(headers.get(b"content-type", b""))
        if media != path.taken:
            raise RefusedError(415, f"the body is {path.taken}; got {short(media)}")

    async def _end_slow(self) -> None:
        """End requests whose body does not arrive; a timeout for each would cost more."""
        while True:
            await asyncio.sleep(min(1.0, self.limits.seconds))
            late = time.monotonic() - self.limits.seconds
            for task, since in list(self._reading.items()):
                if since < late and task is not None:
                    del self._reading[task]
                    task.cancel()

    async def _body(self, receive: Receive, headers: dict[bytes, bytes]) -> bytes:
        """Return the body; most come in one part."""
        most = self.limits.body
        _check_length(headers, most)
        since = time.monotonic()
        body, more = await self._part(receive, since)
        if more:
            parts, size = [body], len(body)
            while more and size <= most:
                part, more = await self._part(receive, since)
                parts.append(part)
                size += len(part)
            body = b"".join(parts)
        if len(body) > most:
            raise _too_large(most)
        return body

    async def _parts(
        self, receive: Receive, headers: dict[bytes, bytes], most: int
    ) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        _check_length(headers, most)
        size, more = 0, True
        while more:
            part, more = await self._part(receive, time.monotonic())
            size += len(part)
            if size > most:
                raise _too_large(most)
            yield part

    async def _part(self, receive: Receive, since: float) -> tuple[bytes, bool]:
        """Return the next part of a body, and whether there are more; refuse one that is slow."""
        task = asyncio.current_task()
        self._reading[task] = since
        try:
            message = await receive()
        except asyncio.CancelledError:
            if task in self._reading:
                raise
            raise RefusedError(408, "the body did not come in time") from None
        finally:
            self._reading.pop(task, None)
        if message["type"] == "http.disconnect":
            raise _GoneError
        return message.get("body", b""), message.get("more_body", False)

    # What is asked

    async def _decide(self, request: Request) -> Reply:
        live, body = await self._model(request), request.body
        if isinstance(body, Question):
            return Reply(_encode((await self.service.decide(live, [body]))[0]))
        self._check_items(body)
        return Reply(_encode(await self.service.decide(live, body)))

    async def _hear(self, request: Request) -> Reply:
        live, body = await self._model(request), request.body
        if isinstance(body, Said):
            (heard,) = await self.service.hear(live, [body])
            return Reply(_encode(heard), _STATUS.get(heard.status, 200))
        self._check_items(body)
        return Reply(_encode(await self.service.hear(live, body)))

    def _check_items(self, items: list[Any]) -> None:
        if not 1 <= len(items) <= self.limits.items:
            most = self.limits.items
            raise RefusedError(422, f"a list has 1 to {most:,} items; this one has {len(items):,}")

    async def _model(self, request: Request) -> Live:
        return await self.service.find(request.names[0])

    async def _list_models(self, request: Request) -> Reply:
        await self.service.read_all()
        return Reply(_encode([views.view_of(live) for live in self.service.live.values()]))

    async def _make_model(self, request: Request) -> Reply:
        body: NewModel = request.body
        return Reply(_encode(views.view_of(await self.service.make(body))))

    async def _show_model(self, request: Request) -> Reply:
        fields, meta = views.detail_of(await self._model(request))
        return Reply(_encode(await asyncio.to_thread(views.finish_detail, fields, meta)))

    async def _change_model(self, request: Request) -> Reply:
        live, settings = await self._model(request), request.body
        if settings == Settings():
            raise RefusedError(422, "there is nothing to change")
        await self.service.change_settings(live, settings)
        return Reply(_encode(views.view_of(live)))

    async def _remove_model(self, request: Request) -> Reply:
        await self.service.remove(request.names[0])
        return Reply(b"", 204)

    async def _change_labels(self, request: Request) -> Reply:
        live, body = await self._model(request), request.body
        assert isinstance(body, LabelsBody)
        await self.service.change_labels(live, body)
        return Reply(_encode(views.view_of(live)))

    async def _add_shadow(self, request: Request) -> Reply:
        live, body = await self._model(request), request.body
        assert isinstance(body, NewShadow)
        spec = LearnerSpec(learner=body.learner, parameters=body.parameters)
        await self.service.change_shadow(live, ShadowBody("add", body.name, spec))
        return Reply(_encode(views.view_of(live)))

    async def _remove_shadow(self, request: Request) -> Reply:
        live = await self._model(request)
        await self.service.change_shadow(live, ShadowBody("remove", request.names[1]))
        return Reply(b"", 204)

    async def _promote(self, request: Request) -> Reply:
        live = await self._model(request)
        await self.service.change_shadow(live, ShadowBody("promote", request.names[1]))
        return Reply(_encode(views.view_of(live)))

    async def _newest(self, request: Request) -> Reply:
        live = await self._model(request)
        query = parse_qs(request.scope["query_string"].decode("latin-1"))
        limit = query.get("limit", ["20"])[-1]
        if not re.fullmatch(r"[0-9]{1,3}", limit) or not 1 <= int(limit) <= 200:
            raise RefusedError(422, f"limit is a number from 1 to 200; got {short(limit)}")
        return Reply(_encode(await views.newest(self.service.log, live, int(limit))))

    async def _learner(self, request: Request) -> Reply:
        live = await self._model(request)
        model = await self.service.copy_of(live)
        content = await asyncio.to_thread(model.student.to_bytes)
        disposition = f'attachment; filename="{live.name}.safetensors"'.encode()
        headers = [(b"content-disposition", disposition)]
        return Reply(content, media="application/octet-stream", headers=headers)

    async def _export(self, request: Request) -> Reply:
        live = await self._model(request)

        async def lines() -> AsyncIterator[bytes]:
            async for rows in exported(self.service.log, live.key):
                yield b"".join(
                    _encode(LogRow(row.n, row.kind, row.at, msgspec.Raw(row.body.encode()), row.id))
                    + b"\n"
                    for row in rows
                )

        return Reply(lines(), media="application/x-ndjson")

    async def _import_(self, request: Request) -> Reply:
        headers = dict(request.scope["headers"])
        parts = self._parts(request.receive, headers, self.limits.imported)
        live = await import_log(self.service, request.names[0], parts)
        return Reply(_encode(views.view_of(live)))

    async def _health(self, request: Request) -> Reply:
        return Reply(b'{"status":"ok"}')

    async def _ready(self, request: Request) -> Reply:
        if self.stopping:
            raise RefusedError(503, "the service stops")
        if fault := await self._readiness.fault():
            raise RefusedError(503, fault)
        return Reply(b'{"status":"ready"}')

    async def _figures(self, request: Request) -> Reply:
        text = await asyncio.to_thread(self._metrics.text, self._metrics.own())
        return Reply(text, media="text/plain; version=0.0.4; charset=utf-8")

    async def _openapi(self, request: Request) -> Reply:
        return Reply(_openapi_text())


class _GoneError(Exception):
    """The client hung up."""


_LOGGED = frozenset(
    path.handler
    for path in PATHS
    if path.method != "GET" and path.handler not in ("decide", "hear")
)
"""Requests that are always logged: those that change a model."""

_NOWHERE: tuple[Path | None, str, Any, Any] = None, "other", None, None

_UNLIMITED = ("GET /health", "GET /ready")
"""What is answered however many requests there are: an overloaded service must not be killed."""


@cache
def _openapi_text() -> bytes:
    return json.dumps(description()).encode()


def _check_head(scope: Scope) -> None:
    """Refuse what proxies and this service could read in different ways."""
    if len(scope["path"]) > LONGEST_PATH:
        raise RefusedError(414, f"a path has at most {LONGEST_PATH} characters")
    if b"%2f" in scope["raw_path"].lower():
        raise RefusedError(404, "there is no such path: no name has a slash; see /openapi.json")
    names = [name for name, _ in scope["headers"]]
    if twice := [name.decode() for name in _ONCE if names.count(name) > 1]:
        raise RefusedError(400, f"there is more than one header {twice[0]}")


@lru_cache(maxsize=256)
def _media_of(content_type: bytes) -> str:
    return content_type.decode("latin-1").partition(";")[0].strip().lower()


def _check_length(headers: dict[bytes, bytes], most: int) -> None:
    """Refuse a body that says it is too large."""
    length = headers.get(b"content-length", b"0")
    if len(length) > 15 or (length.isdigit() and int(length) > most):
        raise _too_large(most)


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"a body has at most {most:,} bytes")


def _decoded(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise RefusedError(422, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None


async def _send(reply: Reply, name: bytes, send: Send, *, without_body: bool) -> None:
    headers = [
        (b"content-type", reply.media.encode()),
        (b"x-request-id", name),
        *reply.headers,
    ]
    start = {"type": "http.response.start", "status": reply.status, "headers": headers}
    if isinstance(reply.content, bytes):
        headers.append((b"content-length", b"%d" % len(reply.content)))
    await send(start)
    if isinstance(reply.content, bytes) or without_body:
        content = b"" if without_body or not isinstance(reply.content, bytes) else reply.content
        await send({"type": "http.response.body", "body": content})
        return
    async for part in reply.content:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
