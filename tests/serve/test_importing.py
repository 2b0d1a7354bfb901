"""Imports: replayed by a background process, so that nobody else waits."""

import asyncio
import io
import itertools
import json
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import httpx
import pytest

from onebit.serve import background, imported_log, processes
from onebit.serve.imported_log import ImportedLog, InvalidLogError, lines_of
from onebit.serve.limits import Limits
from onebit.serve.messages import (
    Announcement,
    ImportTask,
    decode_message,
    encode,
    framed,
    read_message,
)
from onebit.serve.model import Model
from onebit.serve.processes import BackgroundProcess
from onebit.serve.replaying import exported
from onebit.serve.verify import verify
from services import SMALL, TICKETS, OwnProcess, in_folder

HEADERS = {"content-type": "application/x-ndjson"}


def log_lines(rounds, learner="Banditron"):
    """Return an exported log with that many decisions and feedback."""
    spec = {"labels": list(TICKETS), "learner": learner} | SMALL
    rows = [{"n": 1, "kind": "model", "at": 0.0, "body": spec}]
    for k in range(rounds):
        name = f"T\\{k}\t\n'\""
        decision = {"record": f"card {k}", "label": "login", "probability": 1 / 3, "seen": 1}
        for kind, body in (("decision", decision), ("feedback", {"correct": k % 2 == 0})):
            rows.append({"n": len(rows) + 1, "kind": kind, "at": 0.5, "body": body, "id": name})
    return [json.dumps(row).encode() + b"\n" for row in rows]


def put(service, lines, status=200, name="copy"):
    reply = service.send("PUT", f"/v1/models/{name}/log", content=b"".join(lines), headers=HEADERS)
    assert reply.status_code == status, reply.text
    return reply.json()


def rows_in(folder):
    """Return the numbers of models and of rows in a folder."""
    with sqlite3.connect(Path(folder) / "log.sqlite") as db:
        return db.execute(
            "SELECT (SELECT count(*) FROM model), (SELECT count(*) FROM log)"
        ).fetchone()


def background_process(service):
    """Return the process that is idle, once there is one."""
    for _ in range(500):
        if service.app.service.processes._idle:
            return service.app.service.processes._idle[0]._process
        time.sleep(0.01)
    raise AssertionError("there is no process")


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid):
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with in_folder(tmp_path_factory.mktemp("imports")) as found:
        yield found


def test_nothing_of_a_log_is_applied_in_this_process(service, monkeypatch):
    lines = log_lines(40)
    put(service, lines, name="before")

    def apply(*_):
        raise AssertionError("a row was applied by the process that serves")

    with monkeypatch.context() as patched:
        patched.setattr(Model, "apply", apply)
        assert put(service, lines, name="beside")["rows"] == 81
    assert service.snapshot("beside") == service.snapshot("before")
    service.rounds(2, "beside")


def test_a_process_is_used_again_and_gives_way_to_others(service):
    put(service, log_lines(1), name="first")
    process = background_process(service)
    put(service, [b"{\n"], 422, name="wrong")
    put(service, log_lines(1), name="second")
    assert background_process(service).pid == process.pid
    assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)


def test_a_process_without_a_task_ends(service, monkeypatch):
    monkeypatch.setattr(processes, "IDLE_SECONDS", 0.05)
    put(service, log_lines(1), name="idle")
    for _ in range(500):
        if not service.app.service.processes._idle:
            break
        time.sleep(0.01)
    assert not service.app.service.processes._timers


def test_a_process_that_was_killed_leaves_nothing(service):
    put(service, log_lines(1), name="warm")
    before = rows_in(service.app.service.log.folder)
    process, lines = background_process(service), log_lines(400)

    async def half():
        yield b"".join(lines[:500])
        await asyncio.sleep(0.2)
        process.kill()
        yield b"".join(lines[500:])

    async def send():
        return await service._http.put("/v1/models/dead/log", content=half(), headers=HEADERS)

    reply = service.do(send())
    assert (reply.status_code, "try again" in reply.text) == (503, True)
    assert rows_in(service.app.service.log.folder) == before
    assert put(service, lines, name="dead")["rows"] == 801  # by another process


def test_a_client_that_goes_away_leaves_nothing(service):
    before = rows_in(service.app.service.log.folder)
    lines = log_lines(400)

    async def go():
        sent = iter([b"".join(lines[:300]), None])

        async def receive():
            part = next(sent)
            if part is None:
                await asyncio.sleep(0.3)
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": True}

        replies = []
        path = "/v1/models/gone/log"
        scope = {
            **{"type": "http", "method": "PUT", "path": path, "raw_path": path.encode()},
            **{"query_string": b"", "client": ("127.0.0.1", 1)},
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-ndjson")],
        }

        async def send(message):
            replies.append(message)

        await service.app(scope, receive, send)
        return replies

    assert service.do(go()) == []
    assert rows_in(service.app.service.log.folder) == before
    put(service, lines, name="gone")


def test_more_imports_than_processes_wait_and_too_many_are_refused(service, monkeypatch):
    monkeypatch.setattr(processes, "MOST_WAITING", 3)
    lines = log_lines(3)

    async def together():
        ready = asyncio.Event()

        async def parts():
            await ready.wait()
            yield b"".join(lines)

        async def one(k):
            path = f"/v1/models/many{k}/log"
            return await service._http.put(path, content=parts(), headers=HEADERS)

        tasks = [asyncio.ensure_future(one(k)) for k in range(7)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ready.set()
        return [reply.status_code for reply in await asyncio.gather(*tasks)]

    statuses = service.do(together())
    assert sorted(statuses) == [200] * 5 + [429] * 2


def test_slow_uploads_let_others_go_on(service, monkeypatch):
    monkeypatch.setattr(processes, "UPLOAD_PATIENCE", 0.05)
    lines = log_lines(3)

    async def together():
        others_are_done = asyncio.Event()

        async def slow():
            yield lines[0]
            await others_are_done.wait()
            for line in lines[1:]:
                yield line
                await asyncio.sleep(0.02)

        async def one(name, content):
            path = f"/v1/models/{name}/log"
            reply = await service._http.put(path, content=content, headers=HEADERS)
            return reply.status_code

        waiting = [asyncio.ensure_future(one(f"slow{k}", slow())) for k in range(2)]
        fast = [await one(f"fast{k}", b"".join(lines)) for k in range(2)]
        others_are_done.set()
        return fast + await asyncio.gather(*waiting)

    assert service.do(together()) == [200] * 4
    found = service.app.service.processes
    assert (found._tasks, found._free._value) == (0, processes.MOST_PROCESSES)


def test_an_upload_that_drips_is_refused(service, monkeypatch):
    """Each part had its own seconds, so that an upload could last for days."""
    limits = service.app.limits._replace(seconds=0.5)
    monkeypatch.setattr(service.app, "limits", limits)
    lines = log_lines(400)

    def upload(parts, pause):
        async def slow():
            for part in parts:
                yield part
                await asyncio.sleep(pause)

        start = time.monotonic()
        send = service._http.put("/v1/models/drip/log", content=slow(), headers=HEADERS)
        return service.do(send), time.monotonic() - start

    drops = [b"".join(lines)[k : k + 1] for k in range(100)]
    reply, seconds = upload(drops, 0.1)
    assert (reply.status_code, seconds < 5.0) == (408, True)
    assert "did not arrive in time" in reply.json()["error"]
    assert "drip" not in service.app.service.live
    # As slow, and as long, but with as many bytes a second as are needed.
    monkeypatch.setattr("onebit.serve.requests.SLOWEST", 100.0)
    reply, seconds = upload([b"".join(lines[k : k + 80]) for k in range(0, len(lines), 80)], 0.1)
    assert (reply.status_code, seconds > 1.0) == (200, True)


def test_rows_of_requests_are_still_flushed(service):
    put(service, log_lines(200), name="flushed")
    db = service.app.service.log._database.write
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_long_log_has_a_snapshot_and_a_short_one_is_replayed(tmp_path):
    with in_folder(tmp_path) as service:
        put(service, log_lines(300), name="long")
        put(service, log_lines(3), name="short")
        long, short = service.live("long"), service.live("short")
        assert (long.snapshot_at, short.snapshot_at) == (601, 0)
        expected = service.snapshot("long"), service.snapshot("short")
    with in_folder(tmp_path) as service:
        assert (service.snapshot("long"), service.snapshot("short")) == expected
        log = service.app.service.log
        verdict = service.do(verify(log, service.live("long").key))
        assert (verdict.rows, verdict.equal) == (601, [601])


def test_a_defect_of_the_process_is_no_fault_of_the_log(monkeypatch):
    """The traceback is sent, and the process goes on with the next task."""
    monkeypatch.setattr(ImportedLog, "apply", lambda *_: 1 // 0)
    task = framed(encode(ImportTask(10, 100))) + framed(b"line\n") + framed(b"")
    output = io.BytesIO()
    tasks = background._Tasks(io.BytesIO(task * 2), output)
    with pytest.raises(EOFError):
        tasks.run()
    output.seek(0)
    for _ in range(2):
        failure = decode_message(read_message(output))
        assert "ZeroDivisionError" in failure.traceback
    assert output.read() == b""

    async def receive():
        process = object.__new__(BackgroundProcess)
        monkeypatch.setattr(process, "_output", asyncio.StreamReader(), raising=False)
        process._output.feed_data(framed(encode(Announcement("compiling"))))
        process._output.feed_data(framed(encode(failure)))
        await process._message()

    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        asyncio.run(receive())


def test_lines_come_in_any_parts():
    content = b"one\ntwo\n\nfour"
    for size in range(1, len(content) + 1):
        parts = [content[i : i + size] for i in range(0, len(content), size)]
        assert list(lines_of(parts, 100)) == [b"one", b"two", b"", b"four"]
    assert list(lines_of([b"one\n", b" \n", b" "], 100)) == [b"one", b" "]
    with pytest.raises(InvalidLogError, match="at most 3 bytes"):
        list(lines_of([b"longer"], 3))


def test_decisions_from_long_ago_are_found(monkeypatch):
    """A model keeps the last decisions only; feedback may come for any."""
    monkeypatch.setattr("onebit.serve.model.MOST_AWAITED", 5)
    lines = log_lines(30)
    first, decisions, feedback = lines[0], lines[1::2], lines[2::2]
    rows = [json.loads(line) for line in (first, *decisions, *feedback)]
    log = ImportedLog(10)
    for n, row in enumerate(rows, start=1):
        log.apply(json.dumps(row | {"n": n}).encode())
    assert log.model.n == 61
    assert log.model.meta.statistics.right == 15
    for again, kind in ((rows[1], "decision"), (rows[-30], "feedback")):
        assert again["kind"] == kind
        with pytest.raises(InvalidLogError, match="row 62: there is a row of its kind and id"):
            log.apply(json.dumps(again | {"n": 62}).encode())


def test_memory_of_decisions_is_bounded():
    decisions = imported_log._Decisions()
    (size,) = decisions._db.execute("PRAGMA cache_size").fetchone()
    assert size == -(2**15)


def half_imported(running, lines):
    """Begin an import that waits for the rest of its log; return when rows of it are written."""
    stop = threading.Event()

    def parts():
        yield b"".join(lines[:600])
        stop.wait(60)
        yield b"".join(lines[600:])

    replies = []

    def send():
        try:
            url = f"{running.url}/v1/models/copy/log"
            replies.append(httpx.put(url, content=parts(), headers=HEADERS, timeout=60).status_code)
        except httpx.TransportError:
            replies.append(None)

    thread = threading.Thread(target=send)
    thread.start()
    return thread, stop, replies


@pytest.mark.parametrize(
    "sent", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_the_end_of_a_service_ends_its_processes_and_imports(tmp_path, sent):
    running, lines = OwnProcess("--data", str(tmp_path)), log_lines(400)
    running.wait()
    thread, stop, replies = half_imported(running, lines)
    try:
        for _ in range(2000):
            if rows_in(tmp_path)[1] >= 500:
                break
            time.sleep(0.01)
        assert rows_in(tmp_path)[1] >= 500
        (child,) = children_of(running.process.pid)
        start = time.monotonic()
        running.kill(sent)
        assert time.monotonic() - start < 15
        for _ in range(500):
            if not is_running(child):
                break
            time.sleep(0.01)
        assert not is_running(child)
    finally:
        stop.set()
        thread.join()
    assert replies != [200]
    with in_folder(tmp_path) as service:
        assert service.ask("GET", "/v1/models") == []
        for _ in range(500):
            if rows_in(tmp_path) == (0, 0):
                break
            time.sleep(0.01)
        assert rows_in(tmp_path) == (0, 0)
        assert put(service, lines)["rows"] == 801


def test_a_full_service_takes_no_more_models(tmp_path):
    with in_folder(tmp_path, Limits(models=1)) as service:
        service.make("m", learner="Banditron")
        assert "the most there can be" in put(service, log_lines(1), 422)["error"]


def test_a_long_log_without_a_snapshot_is_replayed_by_a_process(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.replaying.LONG_LOG_ROWS", 50)
    monkeypatch.setattr("onebit.serve.applying.STOP_ROWS", 10**9)
    threads, apply = [], Model.apply

    def counted(*arguments):
        threads.append(threading.get_ident())
        return apply(*arguments)

    with in_folder(tmp_path) as service:
        for name, rounds in (("long", 40), ("short", 3)):
            service.make(name, learner="Banditron")
            service.rounds(rounds, name)
        service.ask("POST", "/v1/models/long/labels", {"add": ["fax"], "retire": ["login"]})
        service.ask("POST", "/v1/models/long/shadows", {"name": "s", "learner": "Banditron"})
        service.rounds(3, "long")
        service.ask("POST", "/v1/models/long/decide", {"record": "card", "id": "late"})
        expected = service.snapshot("long"), service.snapshot("short")
    monkeypatch.setattr(Model, "apply", counted)
    with in_folder(tmp_path) as service:
        assert service.snapshot("long") == expected[0]
        assert service.snapshot("short") == expected[1]
        assert 0 < len(threads) < 50  # the rows of the short log only
        said = {"id": "late", "correct": True}
        assert service.ask("POST", "/v1/models/long/feedback", said)["status"] == "accepted"
        assert service.do(verify(service.app.service.log, service.live("long").key)).faults == []
    monkeypatch.setattr("onebit.serve.processes._MAIN", "raise SystemExit(1)")
    with in_folder(tmp_path) as service:  # then this process does it
        service.rounds(1, "long")


def test_where_no_process_can_be_started_imports_are_refused_and_models_are_read(
    tmp_path, monkeypatch
):
    """A model whose log was long failed until a restart, and an import was answered with 500."""
    monkeypatch.setattr("onebit.serve.replaying.LONG_LOG_ROWS", 5)
    monkeypatch.setattr("onebit.serve.applying.STOP_ROWS", 10**9)
    with in_folder(tmp_path) as service:
        service.make("long", learner="Banditron")
        service.rounds(5, "long")

    async def too_many(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(processes.asyncio, "create_subprocess_exec", too_many)
    with in_folder(tmp_path) as service:
        service.rounds(1, "long")
        assert "no process" in put(service, log_lines(3), 503)["error"]
        monkeypatch.undo()
        put(service, log_lines(3))


def test_an_export_lets_others_have_their_turn(tmp_path, monkeypatch):
    """A database that answers at once, and a client that reads at once, are no reason to go on."""
    with in_folder(tmp_path) as service:
        put(service, log_lines(500), name="m")
        log, steps = service.app.service.log, []

        async def export():
            async def other():
                while True:
                    steps.append("other")
                    await asyncio.sleep(0)

            task = asyncio.ensure_future(other())
            lines = 0
            async for part in exported(log, service.app.service.live["m"].key):
                steps.append(part.count(b"\n"))
                lines += part.count(b"\n")
            task.cancel()
            return lines

        assert service.do(export()) == 1001
        assert max(one for one in steps if one != "other") <= 64
        assert all("other" in pair for pair in itertools.pairwise(steps))
