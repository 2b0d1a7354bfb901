"""The ASGI entry point: any request, and the start and stop of the server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from onebit.serve.log import LogError
from onebit.serve.requests import Receive, Reply, Request, RequestHead

if TYPE_CHECKING:
    from onebit.serve.app import App

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def serve_request(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Reply to a request."""
    peer = scope["client"][0] if scope.get("client") else None
    reply = await app.respond(Request(_head_of(scope), peer, receive=receive))
    if reply is not None:
        await _send(reply, receive, send, without_body=scope["method"] == "HEAD")


async def serve_lifespan(app: App, receive: Receive, send: Send) -> None:
    """Start and stop with the server."""
    await receive()
    try:
        await app.start()
    except LogError as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        return
    await send({"type": "lifespan.startup.complete"})
    app.started()
    await receive()
    await app.stop()
    await send({"type": "lifespan.shutdown.complete"})


def _head_of(scope: Scope) -> RequestHead:
    headers = dict(scope["headers"])
    repeated: tuple[bytes, ...] = ()
    if len(headers) < len(scope["headers"]):
        counts = Counter(name for name, _ in scope["headers"])
        repeated = tuple(name for name, n in counts.items() if n > 1)
    raw_path, query = scope["raw_path"], scope["query_string"]
    return RequestHead(scope["method"], scope["path"], headers, raw_path, query, repeated)


async def _send(reply: Reply, receive: Receive, send: Send, *, without_body: bool) -> None:
    content = reply.content
    headers = [(b"content-type", reply.media.encode()), (b"x-request-id", reply.id), *reply.headers]
    if isinstance(content, bytes):
        headers.append((b"content-length", b"%d" % len(content)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if isinstance(content, bytes):
        await send({"type": "http.response.body", "body": b"" if without_body else content})
        return
    if not without_body:
        await _send_parts(content, receive, send)
    await send({"type": "http.response.body", "body": b""})


async def _send_parts(parts: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send parts until the last one, or until the client is gone."""
    gone = asyncio.ensure_future(_client_gone(receive))
    try:
        async for part in parts:
            if gone.done():
                break
            await send({"type": "http.response.body", "body": part, "more_body": True})
    finally:
        gone.cancel()


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
