"""The direct entry point: requests that arrive whole go to the application without ASGI.

The messages of ASGI between server and application take longer than a decision. A request whose
head is unusual in any way, or that arrives in parts, goes through ASGI. The application applies the
same rules to both.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from onebit.serve.limits import Limits
from onebit.serve.requests import Reply, Request, RequestHead

LONGEST_HEAD = 2048
"""Maximum bytes before the body of a request for the direct entry point."""

MOST_HEAD = 2**16
"""Maximum bytes before the body of any request."""

_END = b"\r\n\r\n"


class WholeHead(NamedTuple):
    """The head of a request for the direct entry point, and the bytes of its body."""

    head: RequestHead
    length: int


class Protocol(HttpToolsProtocol):
    """A connection; if its application has `respond`, it is the direct entry point to it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._respond: Any = getattr(self.app, "respond", None)
        self._in_request = False
        """Whether the parser is inside a request."""
        self._responding: asyncio.Task[None] | None = None
        """Replies to a request that came through the direct entry point."""
        self._is_last = False
        """Whether to close the connection after that reply."""
        self._more = b""
        """What arrived before that reply."""
        self._seconds = getattr(self.app, "limits", Limits()).seconds
        self._head_bytes = 0
        """Bytes received of an incomplete head."""
        self._head_timeout: asyncio.TimerHandle | None = None
        """Closes the connection if the head of a request does not arrive."""
        self._rest_timeout: asyncio.TimerHandle | None = None
        """Closes the connection if the rest of a request that was answered does not arrive."""
        self._reading_timeout: asyncio.TimerHandle | None = None
        """Closes the connection if its client reads no replies."""

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing."""
        self._end_head()
        self._end_rest()
        self._end_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass a whole request on directly, if nothing of this client is pending, or parse."""
        if self._responding is not None:
            self._more += data
            if len(self._more) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            return
        idle = not self._in_request and (self.cycle is None or self.cycle.response_complete)
        if idle and not self.flow.write_paused and self._pass_on(data):
            return
        self._head_bytes += len(data)
        self._feed(data)
        too_long = self._head_timeout is not None and self._head_bytes > MOST_HEAD
        if too_long and not self.transport.is_closing():
            self.send_400_response(f"the head of a request has at most {MOST_HEAD} bytes")

    def _feed(self, data: bytes) -> None:
        """Parse; a request to change the protocol is answered in this one.

        Java's client asks for HTTP/2 in each request, and curl can. A parser that found such a
        request takes what follows for the other protocol.
        """
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.parser.get_method() == b"CONNECT":
                self.send_400_response("this is not a proxy")
                return
            rest, head = data[upgrade.args[0] :], self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            self._feed(head + rest)
        except httptools.HttpParserError:
            self.send_400_response("this is not a request of HTTP/1.1")

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
        for name, value in self.headers:
            if name == b"connection":
                kept = [one for one in value.split(b",") if one.strip().lower() != b"upgrade"]
                value = b",".join(kept)
            if name not in (b"upgrade", b"http2-settings"):
                lines.append(b"%s: %s" % (name, value))
        return b"\r\n".join([*lines, b"", b""])

    def on_message_begin(self) -> None:
        """Remember that the parser is inside a request."""
        self._in_request = True
        self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        if self.parser.should_upgrade():  # this head is parsed again
            return
        self._end_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Remember that the parser is between two requests."""
        if self.parser.should_upgrade():
            return
        self._in_request = False
        self._end_rest()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the rest of a request that was answered before its end, for a bounded time.

        Each part of it resets the timeout of idle connections.
        """
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()
        elif self._in_request and self._rest_timeout is None:
            self._rest_timeout = self.loop.call_later(self._seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self._abort_later()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request, and close the connection."""
        super().send_400_response(msg)
        self._abort_later()

    def pause_writing(self) -> None:
        """Wait for the client to read its replies, for a bounded time."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Continue to write."""
        self._end_reading()
        super().resume_writing()

    def shutdown(self) -> None:
        """Close the connection, after the pending reply."""
        if self._responding is not None:
            self._is_last = True
        else:
            super().shutdown()

    def _pass_on(self, data: bytes) -> bool:
        """Pass a request on to the application; return False if it is not a whole one."""
        end = data.find(_END, 0, LONGEST_HEAD) + len(_END)
        found = whole_head(data[:end])
        if self._respond is None or found is None or len(data) - end != found.length:
            return False
        self._unset_keepalive_if_required()
        self._end_head()
        peer = None if self.client is None else self.client[0]
        request = Request(found.head, peer, data[end:])
        self._responding = self.loop.create_task(self._reply_to(request))
        self.tasks.add(self._responding)
        return True

    async def _reply_to(self, request: Request) -> None:
        try:
            reply = await self._respond(request)
        finally:
            self.tasks.discard(self._responding)
            self._responding = None
        if self.transport.is_closing():
            return
        self._send(reply)
        if self._more and not self.transport.is_closing():
            more, self._more = self._more, b""
            self.data_received(more)

    def _send(self, reply: Reply) -> None:
        assert isinstance(reply.content, bytes)  # only replies to GET come in parts
        headers = [*self.server_state.default_headers, *reply.headers]
        if self._is_last:
            headers.append((b"connection", b"close"))
        self.transport.write(
            b"%s%scontent-type: %s\r\nx-request-id: %s\r\ncontent-length: %d\r\n\r\n%s"
            % (
                STATUS_LINE[reply.status],
                b"".join([b"%s: %s\r\n" % header for header in headers]),
                reply.media.encode(),
                reply.id,
                len(reply.content),
                reply.content,
            )
        )
        if self._is_last:
            self.transport.close()
        self.on_response_complete()

    def _await_head(self) -> None:
        if self._head_timeout is None:
            self._head_bytes = 0
            self._head_timeout = self.loop.call_later(self._seconds, self._close_without_head)

    def _end_head(self) -> None:
        if self._head_timeout is not None:
            self._head_timeout.cancel()
            self._head_timeout = None

    def _close_without_head(self) -> None:
        """End a connection on which no head arrived; an earlier request may still be answered."""
        self._head_timeout = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
            self._abort_later()
        else:
            self._await_head()

    def _abort_later(self) -> None:
        """End a connection that is closing even if its client never reads what was sent."""
        self.loop.call_later(self._seconds, self.transport.abort)

    def _end_rest(self) -> None:
        if self._rest_timeout is not None:
            self._rest_timeout.cancel()
            self._rest_timeout = None

    def _await_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._reading_timeout = self.loop.call_later(self._seconds, self._close_unread, unread)

    def _close_unread(self, before: int) -> None:
        """End a connection whose client has read nothing; wait for one that reads slowly."""
        if self.transport.get_write_buffer_size() < before:
            self._await_reading()
        else:
            self.transport.abort()

    def _end_reading(self) -> None:
        if self._reading_timeout is not None:
            self._reading_timeout.cancel()
            self._reading_timeout = None


class _Parsed:
    """What the parser finds in the head of a request."""

    def __init__(self) -> None:
        self.url, self.whole, self.body = b"", False, False
        self.headers: list[tuple[bytes, bytes]] = []

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.whole = True

    def on_body(self, body: bytes) -> None:
        self.body = True


@lru_cache(maxsize=1024)  # a client's heads differ in hardly more than the length of the body
def whole_head(content: bytes) -> WholeHead | None:
    """Return the head of a request for the direct entry point; None for any other."""
    found = _Parsed()
    parser = httptools.HttpRequestParser(found)
    try:
        parser.feed_data(content)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    headers = dict(found.headers)
    usual = (
        *(found.whole, not found.body, len(headers) == len(found.headers)),
        *(parser.get_method() == b"POST", parser.get_http_version() == "1.1"),
        *(parser.should_keep_alive(), not parser.should_upgrade()),
        *(headers.keys().isdisjoint({b"transfer-encoding", b"expect"}), found.url.isascii()),
        *(found.url.startswith(b"/"), not set(found.url) & set(b"%?#")),
    )
    length = headers.get(b"content-length", b"")
    if not all(usual) or not length.isdigit() or not 0 < len(length) < 10:
        return None
    path = found.url.decode()
    return WholeHead(RequestHead("POST", path, headers, found.url), int(length))
