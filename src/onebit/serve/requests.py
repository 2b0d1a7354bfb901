"""Requests and replies, and how the body of a request is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple

from onebit.serve.api import RefusedError
from onebit.serve.keys import Grant
from onebit.serve.limits import Limits

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

SLOWEST = 2**15
"""Bytes a second that a client sends at least of a log, apart from short pauses."""

_NO_PARAMETERS: Mapping[str, str] = {}


class RequestHead(NamedTuple):
    """The head of a request.

    Attributes
    ----------
    method : str
    path : str
        Without percent-encoding.
    headers : dict
        By names in lower case.
    raw_path : bytes
        As it was sent.
    query : bytes
    repeated : tuple of bytes
        Names of headers that occur more than once.
    """

    method: str
    path: str
    headers: dict[bytes, bytes]
    raw_path: bytes = b""
    query: bytes = b""
    repeated: tuple[bytes, ...] = ()


class Request:
    """A request on its way to a handler.

    Attributes
    ----------
    head : RequestHead
    peer : str or None
        Address of the other end of the connection.
    content : bytes or None
        The body, if it came together with the head.
    receive : callable or None
        Returns the next message of ASGI, with a part of the body.
    parameters : mapping
        What the path has in place of the names in its template.
    body : object
        The body, parsed.
    grant : Grant or None
        What the key of the request allows; None if there are no keys.
    """

    __slots__ = ("body", "content", "grant", "head", "parameters", "peer", "receive")

    def __init__(
        self,
        head: RequestHead,
        peer: str | None,
        content: bytes | None = None,
        receive: Receive | None = None,
    ) -> None:
        self.head, self.peer, self.content, self.receive = head, peer, content, receive
        self.parameters = _NO_PARAMETERS
        self.body: Any = None
        self.grant: Grant | None = None


class Reply:
    """A reply; its content may be an iterator of parts. The id is that of the request."""

    __slots__ = ("content", "headers", "id", "media", "status")

    def __init__(
        self,
        content: bytes | AsyncIterator[bytes],
        status: int = 200,
        media: str = "application/json",
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.content, self.status, self.media = content, status, media
        self.headers = headers or []
        self.id = b""


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request; refuse one that is too large or too slow."""
    _check_length(request, limits.body)
    if request.content is not None:
        return request.content
    content = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for part in _parts(request):
                content += part
                if len(content) > limits.body:
                    raise _too_large(limits.body)
    except TimeoutError:
        raise _too_slow() from None
    return bytes(content)


async def stream_body(request: Request, most: int, seconds: float) -> AsyncIterator[bytes]:
    """Yield the parts of a body; refuse one that is too large or too slow.

    A client has `seconds` to send something, and that much more for its pauses as it sends
    `SLOWEST` bytes in. Only the time counts in which a part is waited for.
    """
    _check_length(request, most)
    parts, size, left = _parts(request), 0, seconds
    while True:
        start = time.monotonic()
        try:
            async with asyncio.timeout(left):
                part = await anext(parts, None)
        except TimeoutError:
            raise _too_slow() from None
        if part is None:
            return
        size += len(part)
        if size > most:
            raise _too_large(most)
        left = min(seconds, left - (time.monotonic() - start) + len(part) / SLOWEST)
        yield part


async def _parts(request: Request) -> AsyncIterator[bytes]:
    if request.content is not None:
        yield request.content
    more = request.receive is not None
    while more and request.receive is not None:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        more = message.get("more_body", False)
        yield message.get("body", b"")


def _check_length(request: Request, most: int) -> None:
    """Refuse a body whose head says that it is too large."""
    length = request.head.headers.get(b"content-length", b"0")
    if len(length) > 15 or (length.isdigit() and int(length) > most):
        raise _too_large(most)


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"a body has at most {most:,} bytes")


def _too_slow() -> RefusedError:
    return RefusedError(408, "the body did not arrive in time")
