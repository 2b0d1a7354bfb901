"""The fast path of ordinary requests: decisions and feedback, answered without a task each.

A task for each request, and the messages between server and application, take longer than a
decision. A request that is unusual in any way takes the normal path, and is answered or refused
there.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, NamedTuple

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onebit.serve.limits import Limits

LONGEST_HEAD = 2048
"""Most bytes before the body of an ordinary request."""

MOST_HEAD = 2**16
"""Most bytes before the body of any request."""

_END = b"\r\n\r\n"


class Head(NamedTuple):
    """The head of an ordinary request."""

    path: str
    headers: dict[bytes, bytes]
    length: int
    """Bytes of the body."""


class Protocol(HttpToolsProtocol):
    """A connection; its application may have `take`, for requests that arrive whole."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._taker: Any = getattr(self.app, "take", None)
        self._begun = self._taken = self._last = False
        self._more = b""
        """What arrived while a request was on the fast path."""
        self._seconds = getattr(self.app, "limits", Limits()).seconds
        self._head = 0
        """Bytes received of an incomplete head."""
        self._late: asyncio.TimerHandle | None = None
        """Ends the connection if the head of a request does not arrive."""

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for no head."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the fast path if a request is ordinary and nothing of this client is pending."""
        if self._taken:
            self._more += data
            if len(self._more) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            return
        idle = not self._begun and (self.cycle is None or self.cycle.response_complete)
        if idle and not self.flow.write_paused and self._take(data):
            return
        self._head += len(data)
        self._feed(data)
        too_long = self._late is not None and self._head > MOST_HEAD
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
        self._begun = True
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
        self._begun = False
        super().on_message_complete()

    def shutdown(self) -> None:
        """Hang up, after the pending answer."""
        if self._taken:
            self._last = True
        else:
            super().shutdown()

    def _take(self, data: bytes) -> bool:
        end = data.find(_END, 0, LONGEST_HEAD) + len(_END)
        head = head_of(data[:end])
        if self._taker is None or head is None or len(data) - end != head.length:
            return False

        def answer(name: bytes, content: bytes | None) -> None:
            self._answer(data, name, content)

        peer = None if self.client is None else self.client[0]
        self._taken = self._taker(head, peer, data[end:], answer)
        if self._taken:
            self._unset_keepalive_if_required()
            self._end_head()
        return self._taken

    def _await_head(self) -> None:
        if self._late is None:
            self._head = 0
            self._late = self.loop.call_later(self._seconds, self._hang_up)

    def _end_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up(self) -> None:
        """End a connection on which no head arrived; an earlier request may still be answered."""
        self._late = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self._await_head()

    def _answer(self, data: bytes, name: bytes, content: bytes | None) -> None:
        """Send an answer; without one, the request takes the normal path."""
        self._taken = False
        if self.transport.is_closing():
            return
        if content is None:
            self._feed(data)
            if self._last:
                super().shutdown()
        else:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\n%scontent-type: application/json\r\nx-request-id: %s\r\n"
                b"%scontent-length: %d\r\n\r\n%s"
                % (
                    b"".join([b"%s: %s\r\n" % one for one in self.server_state.default_headers]),
                    name,
                    b"connection: close\r\n" if self._last else b"",
                    len(content),
                    content,
                )
            )
            if self._last:
                self.transport.close()
            self.on_response_complete()
        if self._more and not self.transport.is_closing():
            more, self._more = self._more, b""
            self.data_received(more)


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
def head_of(content: bytes) -> Head | None:
    """Return the head of an ordinary request; None for any other."""
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
    return Head(found.url.decode(), headers, int(length))
