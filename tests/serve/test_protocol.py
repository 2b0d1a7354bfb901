"""Both entry points, directly from the connection and through ASGI, give the same replies."""

import asyncio
import json
import sqlite3
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from onebit.serve.access import Access
from onebit.serve.app import App
from onebit.serve.asgi import serve_request
from onebit.serve.keys import make_key
from onebit.serve.protocol import Protocol, whole_head
from onebit.serve.requests import Reply, Request, RequestHead
from onebit.serve.sqlite_log import SQLiteLog
from services import SMALL, TICKETS


class Wire:
    """A transport that keeps what is written to it."""

    def __init__(self):
        self.data, self.closed, self.aborted, self.unread = b"", False, False, 0

    def write(self, data):
        self.data += data

    def get_extra_info(self, name, default=None):
        return {"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)}.get(name, default)

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def abort(self):
        self.closed = self.aborted = True

    def get_write_buffer_size(self):
        return self.unread

    def pause_reading(self):
        pass

    resume_reading = pause_reading


def request(verb, body, *headers, model="m", method="POST", length=None):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} /v1/models/{model}/{verb} HTTP/1.1", "host: localhost", *headers]
    lines += ["content-type: application/json", f"content-length: {length or len(content)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


@pytest.fixture
def serve(tmp_path):
    """Run a scenario with an application, and a function that connects to it."""

    def run(scenario):
        async def work():
            app = App(SQLiteLog(tmp_path))
            await app.start()
            config = uvicorn.Config(app, http=Protocol, proxy_headers=False, log_config=None)
            config.load()
            state = ServerState()

            def connect():
                wire = Wire()
                protocol = Protocol(config=config, server_state=state, app_state={})
                protocol.connection_made(wire)

                async def ask(data, replies=1):
                    """Send bytes; return the statuses and bodies of that many replies."""
                    wire.data = b""
                    protocol.data_received(data)
                    found = []
                    for _ in range(12_000):  # to make a model may take as long as compiling
                        found = split(wire.data)
                        if len(found) >= replies:
                            break
                        await asyncio.sleep(0.005)
                    return found

                return SimpleNamespace(ask=ask, wire=wire, protocol=protocol)

            try:
                body = json.dumps({"name": "m", "labels": list(TICKETS)} | SMALL).encode()
                made = await connect().ask(
                    b"POST /v1/models HTTP/1.1\r\nhost: localhost\r\ncontent-type: "
                    b"application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
                )
                assert made[0][0] == 200
                return await scenario(app, connect)
            finally:
                await app.stop()

        return asyncio.run(work())

    return run


def split(data):
    """Return statuses and bodies of replies that are whole."""
    found = []
    while b"\r\n\r\n" in data:
        head, _, rest = data.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields[b"content-length"])
        if len(rest) < length:
            break
        content, data = rest[:length], rest[length:]
        found.append((int(head[9:12]), json.loads(content), fields))
    return found


def count_direct(app, monkeypatch):
    """Return a list that has the path of each request that came through the direct entry point."""
    paths, respond = [], app.respond

    def counted(request):
        if request.content is not None:
            paths.append(request.head.path)
        return respond(request)

    monkeypatch.setattr(app, "respond", counted)
    return paths


def test_a_pair_takes_the_direct_entry_point(serve, monkeypatch):
    async def scenario(app, connect):
        direct, client = count_direct(app, monkeypatch), connect()
        record = {"subject": TICKETS["login"]}
        question = request("decide", {"record": record}, "x-request-id: mine")
        ((status, made, fields),) = await client.ask(question)
        assert (status, fields[b"x-request-id"]) == (200, b"mine")
        assert set(made) == {"id", "label", "probability", "confidence"}
        said = {"id": made["id"], "correct": True}
        ((status, result, _),) = await client.ask(request("feedback", said))
        assert (status, result) == (200, {"id": made["id"], "status": "accepted"})
        ((status, result, _),) = await client.ask(request("feedback", said))
        assert (status, result["status"]) == (200, "repeated")
        many = [{"record": text} for text in TICKETS.values()]
        ((status, answers, _),) = await client.ask(request("decide", many))
        said = [{"id": one["id"], "truth": one["label"]} for one in answers]
        ((status, results, _),) = await client.ask(request("feedback", said))
        assert [one["status"] for one in results] == ["accepted"] * 3
        assert len(direct) == 5
        statistics = app.service.live["m"].model.meta.statistics
        assert (statistics.decisions, statistics.right) == (4, 4)
        assert app.in_flight == 0

    serve(scenario)


@pytest.mark.parametrize(
    ("data", "status", "is_direct"),
    [
        (request("decide", {"record": "x", "id": "a"}), 200, True),
        (request("decide", b"{"), 400, True),
        (request("decide", {"record": 3}), 422, True),
        (request("decide", {"record": "x", "among": ["none"]}), 422, True),
        (request("decide", []), 422, True),
        (request("decide", [{"record": "x"}] * 1001), 422, True),
        (request("decide", {"record": "x"}, model="none"), 404, True),
        (request("decide", {"record": "x"}, model="m/x"), 404, True),
        (request("decide", {"record": "x"}, model="m" * 400), 414, True),
        (request("judge", {"record": "x"}), 404, True),
        (request("decisions", {"record": "x"}), 405, True),
        (request("decide", {"record": "x"}, method="PUT"), 405, False),
        (request("feedback", {"id": "nobody", "correct": True}), 404, True),
        (request("feedback", {"id": "nobody"}), 422, True),
        (request("labels", {"add": []}), 422, True),
        (request("decide", {"record": "x"}).replace(b"localhost", b"example.org"), 403, True),
        (request("decide", {"record": "x"}).replace(b"/json", b"/xml"), 415, True),
        (request("decide", {"record": "x"}, length=10**7), 413, False),
    ],
)
def test_both_entry_points_give_the_same_reply(serve, monkeypatch, data, status, is_direct):
    async def scenario(app, connect):
        direct, length = count_direct(app, monkeypatch), data.index(b"content-length")
        # In two parts, a request goes through ASGI.
        whole, parts = connect(), connect()
        parts.protocol.data_received(data[:length])
        found = [
            (await client.ask(rest))[0] for client, rest in ((parts, data[length:]), (whole, data))
        ]
        for found_status, content, fields in found:
            assert found_status == status
            content.pop("request_id", None)
            fields.pop(b"x-request-id", None)
            fields.pop(b"connection", None)  # of a body that is not read
        assert found[0] == found[1]
        assert len(direct) == is_direct
        assert app.service.live["m"].model.n == (2 if status == 200 else 1)
        assert app.in_flight == 0

    serve(scenario)


def test_requests_in_pieces_and_one_after_the_other(serve):
    async def scenario(app, connect):
        client = connect()
        one = request("decide", {"record": "x", "id": "a"})
        for data in (one[:20], one[20:-5]):
            client.protocol.data_received(data)
        ((status, _, _),) = await client.ask(one[-5:])
        assert status == 200
        names = "bcdef"
        many = [request("decide", {"record": "x", "id": name}) for name in names]
        # The first is on its way when the others come, some of them in part.
        client.protocol.data_received(many[0])
        found = await client.ask(b"".join(many[1:])[:-3], 4)
        assert [body["id"] for _, body, _ in found] == list(names[:4])
        found = await client.ask(many[-1][-3:])
        assert [body["id"] for _, body, _ in found] == ["f"]
        assert app.service.live["m"].model.meta.statistics.decisions == 6

    serve(scenario)


def test_an_id_that_is_known_is_the_same_decision(serve):
    async def scenario(app, connect):
        question = request("decide", {"record": TICKETS["login"], "id": "a"})
        clients = [connect() for _ in range(5)]
        found = await asyncio.gather(*(client.ask(question) for client in clients))
        assert len({json.dumps(one[0][1]) for one in found}) == 1
        live = app.service.live["m"]
        live.model.awaited.clear()  # as after a start: only the log knows it
        ((status, again, _),) = await clients[0].ask(question)
        assert (status, again) == (200, found[0][0][1])
        other = request("decide", {"record": "other", "id": "a"})
        assert (await clients[0].ask(other))[0][0] == 409
        assert live.model.meta.statistics.decisions == 1

    serve(scenario)


def test_a_list_of_which_one_is_refused_leaves_nothing_behind(serve):
    async def scenario(app, connect):
        client, live = connect(), app.service.live["m"]
        assert (await client.ask(request("decide", {"record": "x", "id": "a"})))[0][0] == 200
        live.model.awaited.clear()  # as after a start: only the log knows it
        for first in ({"record": "y"}, {"record": "y", "id": "b"}):
            many = [first, {"record": "other", "id": "a"}]
            assert (await client.ask(request("decide", many)))[0][0] == 409
        assert live.model.meta.statistics.decisions == 1

    serve(scenario)


def test_keys_and_limits_hold_at_the_direct_entry_point(serve, monkeypatch):
    async def scenario(app, connect):
        log, direct, client = app.service.log, count_direct(app, monkeypatch), connect()
        keys = {scope: await make_key(log, scope, [scope]) for scope in ("decide", "feedback")}
        app.access.update(await log.keys())
        for key, status in ((keys["decide"], 200), (keys["feedback"], 403), ("none", 401)):
            asked = request("decide", {"record": "x"}, f"authorization: Bearer {key}")
            assert (await client.ask(asked))[0][0] == status
        assert (await client.ask(request("decide", {"record": "x"})))[0][0] == 401
        assert len(direct) == 4
        monkeypatch.setattr(app, "access", Access())
        with monkeypatch.context() as patched:
            patched.setattr(app, "in_flight", app.limits.in_flight)
            assert (await client.ask(request("decide", {"record": "x"})))[0][0] == 429
        assert app.service.live["m"].model.n == 2

    serve(scenario)


def test_requests_are_counted_and_logged_at_the_direct_entry_point(serve, monkeypatch, caplog):
    async def scenario(app, connect):
        monkeypatch.setattr(app, "_log_requests", True)
        direct, client = count_direct(app, monkeypatch), connect()
        with caplog.at_level("INFO", logger="onebit.serve.app"):
            await client.ask(request("decide", {"record": "x"}, "x-request-id: mine"))
        assert len(direct) == 1
        (line,) = caplog.records
        assert line.getMessage() == "POST /v1/models/m/decide: 200"
        assert line.request_id == "mine"
        counted = 'path="POST /v1/models/{model}/decide",status="200"} 1.0'
        assert counted in app.metrics.text(app.metrics.own()).decode()

    serve(scenario)


def test_what_is_not_written_is_refused(serve, monkeypatch):
    async def scenario(app, connect):
        log, client = app.service.log, connect()

        def fail(entries):
            raise sqlite3.OperationalError("disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(log, "_append_all", fail)
            ((status, problem, _),) = await client.ask(request("decide", {"record": "x"}))
        assert status == 503
        assert "try again" in problem["error"]
        assert app.service.live["m"].model.n == 1
        ((status, _, _),) = await client.ask(request("decide", {"record": "x"}))
        assert status == 200
        assert app.service.live["m"].model.n == 2

    serve(scenario)


def test_a_stop_waits_for_the_answer(serve):
    async def scenario(app, connect):
        client = connect()
        client.protocol.data_received(request("decide", {"record": "x"}))
        client.protocol.shutdown()
        assert not client.wire.closed
        ((status, _, fields),) = await client.ask(b"")
        assert (status, fields[b"connection"]) == (200, b"close")
        assert client.wire.closed

    serve(scenario)


def test_a_request_for_which_a_stop_waits_no_longer_is_refused(serve):
    async def scenario(app, connect):
        headers = {b"host": b"localhost", b"content-type": b"application/x-ndjson"}
        head = RequestHead("PUT", "/v1/models/slow/log", headers)
        receive = asyncio.Event().wait  # nothing comes
        work = asyncio.create_task(app.respond(Request(head, "127.0.0.1", receive=receive)))
        await asyncio.sleep(0.1)
        work.cancel()
        assert (await work).status == 503
        assert app.in_flight == 0

    serve(scenario)


def test_after_the_last_answer_nothing_is_decided(serve):
    async def scenario(app, connect):
        client, question = connect(), request("decide", {"record": "x"})
        client.protocol.data_received(question)
        client.protocol.data_received(question)
        client.protocol.shutdown()
        assert len(await client.ask(b"")) == 1
        await asyncio.sleep(0.05)
        assert app.service.live["m"].model.meta.statistics.decisions == 1

    serve(scenario)


@pytest.mark.parametrize(
    "changed",
    [
        (b"POST", b"GET"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"host: localhost", b"connection: close"),
        (b"host: localhost", b"expect: 100-continue"),
        (b"host: localhost", b"transfer-encoding: chunked"),
        (b"host: localhost", b"content-length: 3"),
        (b"/v1", b"/v%31"),
        (b"/decide", b"/decide?x=1"),
        (b"content-length: 15", b"x: 15"),
        (b"content-length: 15", b"content-length: -15"),
        (b"\r\nhost", b"\n\nhost"),
        (b"POST /v1", b"POST v1"),
    ],
)
def test_heads_that_are_not_usual(changed):
    head = request("decide", {"record": "x"}).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    assert whole_head(head).length == 15
    assert changed[0] in head
    assert whole_head(head.replace(*changed)) is None
    assert whole_head(head[:-2]) is None
    assert whole_head(b"\r\n\r\n") is None


def test_a_head_that_does_not_come_is_not_waited_for(serve, monkeypatch):
    async def scenario(app, connect):
        monkeypatch.setattr(app, "limits", app.limits._replace(seconds=0.2))
        silent, dripping, asking = connect(), connect(), connect()
        await asking.ask(request("decide", {"record": "card"}))
        for byte in b"GET /health HTTP/1.1\r\nhost: local":
            if not dripping.wire.closed:
                dripping.protocol.data_received(bytes([byte]))
            await asyncio.sleep(0.02)
        assert (silent.wire.closed, dripping.wire.closed) == (True, True)
        # After an answer, too.
        assert not asking.wire.closed
        asking.protocol.data_received(b"POST /v1")
        await asyncio.sleep(0.4)
        assert asking.wire.closed
        assert silent.wire.data == dripping.wire.data == b""

    serve(scenario)


def test_the_rest_of_a_request_that_was_answered_is_not_waited_for(serve, monkeypatch):
    async def scenario(app, connect):
        monkeypatch.setattr(app, "limits", app.limits._replace(seconds=0.3))
        dripping, ending = connect(), connect()
        head = b"GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n"
        for client in (dripping, ending):
            assert (await client.ask(head))[0][0] == 200
        ending.protocol.data_received(b"a" * 100)
        for _ in range(25):
            if not dripping.wire.closed:
                dripping.protocol.data_received(b"a")
            await asyncio.sleep(0.02)
        assert dripping.wire.closed
        health = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
        assert not ending.wire.closed
        assert (await connect().ask(health))[0][0] == 200

    serve(scenario)


def test_a_client_that_reads_nothing_is_not_waited_for(serve, monkeypatch):
    async def scenario(app, connect):
        monkeypatch.setattr(app, "limits", app.limits._replace(seconds=0.2))
        deaf, slow, late = connect(), connect(), connect()
        for client in (deaf, slow, late):
            await client.ask(request("decide", {"record": "card"}))
            client.wire.unread = 1000
            client.protocol.pause_writing()
        for _ in range(25):
            await asyncio.sleep(0.02)
            slow.wire.unread -= 1
            if late.wire.unread:
                late.wire.unread = 0
                late.protocol.resume_writing()
        assert [one.wire.closed for one in (deaf, slow, late)] == [True, False, False]

    serve(scenario)


def test_a_connection_that_closes_does_not_wait_for_its_client(serve, monkeypatch):
    """Of what was sent to it, that is: a transport closes once all is sent."""

    async def scenario(app, connect):
        monkeypatch.setattr(app, "limits", app.limits._replace(seconds=0.2))
        silent, idle, last, wrong = connect(), connect(), connect(), connect()
        await idle.ask(request("decide", {"record": "card"}))
        idle.protocol.timeout_keep_alive_handler()
        await last.ask(request("decide", {"record": "card"}, "connection: close"))
        wrong.protocol.data_received(b"\0\r\n\r\n")
        closing = [idle, last, wrong]
        assert [(one.wire.closed, one.wire.aborted) for one in closing] == [(True, False)] * 3
        await asyncio.sleep(0.6)
        assert all(one.wire.aborted for one in [silent, *closing])

    serve(scenario)


def test_a_long_reply_ends_when_its_client_is_gone():
    async def scenario():
        gone, sent = asyncio.Event(), []

        async def parts():
            for _ in range(1000):
                yield b"a row"
                await asyncio.sleep(0)

        async def respond(request):
            return Reply(parts())

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if len(sent) == 10:
                gone.set()

        scope = {"client": ("127.0.0.1", 1), "headers": [], "method": "GET", "path": "/"}
        scope |= {"raw_path": b"/", "query_string": b""}
        await serve_request(SimpleNamespace(respond=respond), scope, receive, send)
        assert 10 <= len(sent) < 20

    asyncio.run(scenario())


def test_a_head_without_end_is_refused(serve):
    async def scenario(app, connect):
        for start in (b"GET /", b"GET / HTTP/1.1\r\nhost: ", b"GET / HTTP/1.1\r\n"):
            user = connect()
            user.protocol.data_received(start)
            for _ in range(100):
                if not user.wire.closed:
                    user.protocol.data_received(b"a" * 1000)
            assert user.wire.closed
            assert user.wire.data.startswith(b"HTTP/1.1 400")
        long = connect()
        found = await long.ask(
            b"GET /v1/models/%s HTTP/1.1\r\nhost: localhost\r\n\r\n" % (b"a" * 500)
        )
        assert found[0][0] == 414
        # A body is not a head.
        ((status, made, _),) = await connect().ask(request("decide", {"record": "a " * 100_000}))
        assert (status, made["label"] in TICKETS) == (200, True)

    serve(scenario)


ASKS_FOR_HTTP_2 = (
    "connection: Upgrade, HTTP2-Settings",
    "upgrade: h2c",
    "http2-settings: AAMAAABkAAQCAAAAAAIAAAAA",
)


def test_a_request_that_asks_for_http_2_is_answered_in_http_1(serve):
    async def scenario(app, connect):
        client = connect()
        asked = request("decide", {"record": "card", "id": "a"}, *ASKS_FOR_HTTP_2)
        ((status, made, _),) = await client.ask(asked)
        assert (status, made["id"]) == (200, "a")
        # In pieces, and followed by others, on the same connection.
        asked = request("decide", {"record": "card", "id": "b"}, *ASKS_FOR_HTTP_2)
        for data in (asked[:30], asked[30:-20], asked[-20:-3]):
            client.protocol.data_received(data)
        ((status, made, _),) = await client.ask(asked[-3:])
        assert (status, made["id"]) == (200, "b")
        said = [
            request("feedback", {"id": name, "correct": True}, *ASKS_FOR_HTTP_2) for name in "ab"
        ]
        found = await client.ask(b"".join(said), 2)
        assert [(status, heard["status"]) for status, heard, _ in found] == [(200, "accepted")] * 2
        got = b"GET /health HTTP/1.1\r\nhost: localhost\r\n%s\r\n\r\n"
        lines = "\r\n".join(ASKS_FOR_HTTP_2).encode()
        ((status, body, _),) = await client.ask(got % lines)
        assert (status, body) == (200, {"status": "ok"})
        client.protocol.data_received(b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n")
        assert client.wire.closed
        assert app.in_flight == 0

    serve(scenario)


def test_heads_that_could_be_read_in_two_ways_are_refused(serve):
    async def scenario(app, connect):
        twice = request("decide", {"record": "x"}, "host: example.org")
        assert (await connect().ask(twice))[0][0] == 400
        slash = request("decide", {"record": "x"}).replace(b"m/decide", b"m%2Fdecide")
        assert (await connect().ask(slash))[0][0] == 404
        same = request("decide", {"record": "x"}).replace(b"m/decide", b"%6d/decide")
        assert (await connect().ask(same))[0][0] == 200

    serve(scenario)
