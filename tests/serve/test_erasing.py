"""Erasure: nothing of a record is left, and the model is made from what remains."""

import contextlib
import json
import sqlite3
import time
from pathlib import Path

import pytest

from onebit.cli import main
from onebit.serve import sqlite_log
from onebit.serve.api import Erasure
from onebit.serve.backup import back_up_folder
from onebit.serve.erasing import has_field, matching
from onebit.serve.log import Entry
from onebit.serve.rows import DecisionBody
from services import in_folder
from test_revising import PATH, lines, put, settled, verdict

SECRET = b"Marguerite"


def traces(folder, sought=SECRET):
    """Return the files of a folder that have some bytes."""
    found = []
    for path in Path(folder).rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # of a file that becomes a snapshot
            if path.is_file() and sought in path.read_bytes():
                found.append(path.name)
    return found


def fill(service, n, secrets=(), name="m"):
    """Decide about n records, some with a secret in the record and in the id; return all ids."""
    ids = []
    for first in range(0, n, 50):
        asked = []
        for i in range(first, min(first + 50, n)):
            # Ids come in no order, so that pages of the index are split.
            mark = SECRET.decode() if i in secrets else "someone"
            user = {"id": mark, "text": f"{mark} {i} " * (200 if i % 9 == 0 else 3)}
            asked.append(
                {"record": {"user": user, "n": i}, "id": f"{(i * 7919) % 1009}-{mark}-{i}"}
            )
        ids += [one["id"] for one in asked]
        service.ask("POST", f"/v1/models/{name}/decide", asked)
        said = [{"id": one["id"], "correct": i % 3 == 0} for i, one in enumerate(asked)]
        service.ask("POST", f"/v1/models/{name}/feedback", said)
    return ids


def nobody_in(rows):
    """Return a log whose erased rows do nothing, as settings that change nothing."""
    kinds = ("erased", "erasure")
    nothing = {"kind": "settings", "body": {}}
    return [{**row, **nothing} if row["kind"] in kinds else row for row in rows]


def test_no_byte_of_a_record_is_left_and_the_model_is_made_from_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.applying.SNAPSHOT_ROWS", 100)
    with in_folder(tmp_path) as service:
        service.make()
        # Some builds of SQLite overwrite what is deleted by default, and most do not.
        service.app.service.log._database.write.execute("PRAGMA secure_delete = OFF")
        secrets = {3, 9, 81, 200, 250, 299}
        ids = fill(service, 300, secrets)
        service.ask("POST", f"{PATH}/revise", {"id": ids[9], "truth": "login"})
        settled(service)
        service.ask("POST", f"{PATH}/decide", {"record": {"user": {"id": "other"}}})
        service.do(service.app.service.applier.snapshot(service.live()))
        assert traces(tmp_path)
        done = service.ask(
            "POST", f"{PATH}/erase", {"field": ["user", "id"], "value": SECRET.decode()}
        )
        assert done == {"decisions": 6, "rows": 13}
        assert traces(tmp_path) == []
        assert traces(tmp_path, b"someone")
        model, rows = settled(service), lines(service)
        n = model.n
        assert SECRET not in json.dumps(rows).encode()
        assert [row["n"] for row in rows] == list(range(1, n + 1))
        assert model.meta.statistics.decisions == 295
        put(service, nobody_in(rows), name="never")
        assert service.snapshot()[1] == service.snapshot("never")[1]
        put(service, rows, name="copy")
        assert service.snapshot() == service.snapshot("copy")
        service.rounds(10)
        expected = service.snapshot()
        found = verdict(service)
        assert (found.faults, found.rows) == ([], n + 20)
        assert found.checked + found.erased == 305
        assert found.checked >= 13  # before the first erased one, and after the erasure
        assert found.equal == [] or min(found.equal) >= n
    assert traces(tmp_path) == []
    with in_folder(tmp_path) as service:
        assert service.snapshot() == expected
        assert verdict(service).equal[-1] == expected_rows(expected)


def expected_rows(snapshot):
    return json.loads(snapshot[0])["n"]


def test_what_can_be_erased(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        ids = fill(service, 10)
        time.sleep(0.01)
        middle = time.time()
        time.sleep(0.01)
        ids += service.rounds(3)
        path = f"{PATH}/erase"
        for body in ({}, {"ids": ["a"], "before": 1.0}, {"field": "user"}, {"value": 3}):
            service.ask("POST", path, body, 422)
        service.ask("POST", "/v1/models/none/erase", {"ids": ["a"]}, 404)
        n = service.model().n
        assert service.ask("POST", path, {"ids": ["nobody"]}) == {"decisions": 0, "rows": 0}
        assert service.model().n == n
        assert service.ask("POST", path, {"ids": ids[:2]}) == {"decisions": 2, "rows": 4}
        done = service.ask("POST", path, {"field": "n", "value": "4"})
        assert done == {"decisions": 1, "rows": 2}
        assert service.ask("POST", path, {"before": middle}) == {"decisions": 7, "rows": 14}
        statistics = settled(service).meta.statistics
        assert (statistics.decisions, statistics.feedback) == (3, 3)
        assert not verdict(service).faults
        # What was erased is unknown, and its id is free.
        service.ask("POST", f"{PATH}/feedback", {"id": ids[0], "correct": True}, 404)
        service.ask("POST", f"{PATH}/revise", {"id": ids[0], "correct": True}, 404)
        service.ask("POST", f"{PATH}/decide", {"record": "again", "id": ids[0]})
        service.ask("POST", f"{PATH}/feedback", {"id": ids[0], "correct": True})
        assert service.model().meta.statistics.decisions == 4
        assert not verdict(service).faults


@pytest.mark.parametrize(
    ("record", "path", "value", "found"),
    [
        ({"user": 17}, ["user"], 17, True),
        ({"user": "17"}, ["user"], 17, True),
        ({"user": 17}, ["user"], "17", True),
        ({"user": 17.0}, ["user"], 17, True),
        ({"user": 171}, ["user"], 17, False),
        ({"user": True}, ["user"], 1, False),
        ({"user": None}, ["user"], None, True),
        ({}, ["user"], None, False),
        ({"user": [16, 17]}, ["user"], 17, True),
        ({"user": {"id": 17}}, ["user", "id"], 17, True),
        ({"user": {"id": 17}}, ["user"], 17, False),
        ("user 17", ["user"], 17, False),
        ([17.0], ["user"], 17, False),
    ],
)
def test_a_field_has_a_value(record, path, value, found):
    assert has_field(DecisionBody(record, "a", 1.0, 1), path, value) is found


def test_feedback_for_a_decision_that_is_being_erased_counts_as_nothing(tmp_path):
    """As of a process that does not know of the erasure yet."""
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        ids = fill(service, 5, {2})
        late = service.ask("POST", f"{PATH}/decide", {"record": "x", "id": SECRET.decode()})["id"]
        log, key = service.app.service.log, service.live().key

        async def work():
            numbers = await matching(log, key, Erasure(ids=[ids[2], late]))
            assert await log.erase(key, numbers, 0.0) == 3
            entry = Entry(key, "feedback", late, 0.0, '{"correct":true}')
            assert await log.append([entry]) == [14]
            live = service.app.service.live["m"]
            live.head = 14
            service.app.service.restorer.begin(live)

        service.do(work())
        assert settled(service).n == 14
        rows = lines(service)
        assert [row["kind"] for row in rows[-3:]] == ["erased", "erasure", "erased"]
        assert not verdict(service).faults
        expected = service.snapshot()
        put(service, rows)
        assert service.snapshot("copy") == expected
        # An import has such feedback where it was exported before it was swept.
        rows[-1] |= {"kind": "feedback", "id": late, "body": {"correct": True}}
        put(service, rows, name="early")
        assert service.snapshot("early") == expected
        del rows[-2]
        rows[-1]["n"] = 13
        assert "nobody decided" in put(service, rows, 422, "wrong")["error"]


def test_an_erasure_that_was_killed_half_way_is_asked_for_again(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        ids = fill(service, 20, {2, 3, 4})
        with monkeypatch.context() as patched:
            patched.setattr(sqlite_log, "ERASED_AT_ONCE", 1)
            erase = sqlite_log._erase

            def once(db, **arguments):
                patched.setattr(sqlite_log, "_erase", lambda *_, **__: 1 // 0)
                return erase(db, **arguments)

            patched.setattr(sqlite_log, "_erase", once)
            service.ask("POST", f"{PATH}/erase", {"ids": ids[2:5]}, 500)
        monkeypatch.setattr(service.app.service.applier, "stop", lambda: time_out())
    with in_folder(tmp_path) as service:
        assert not verdict(service).faults
        assert service.model().meta.statistics.decisions == 19
        done = service.ask("POST", f"{PATH}/erase", {"ids": ids[2:5]})
        assert done == {"decisions": 2, "rows": 4}
        assert settled(service).meta.statistics.decisions == 17
        assert not verdict(service).faults
        assert traces(tmp_path) == []


@pytest.mark.parametrize("at_once", [200, 1], ids=["at the first", "after one"])
def test_an_erasure_that_a_full_disk_refuses_keeps_nothing_from_being_learned(
    tmp_path, monkeypatch, at_once
):
    """A row of it was left, which no model applied, nor any row after it."""
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        ids = fill(service, 20, {2, 3})
        with monkeypatch.context() as patched:
            patched.setattr(sqlite_log, "ERASED_AT_ONCE", at_once)
            erase = sqlite_log._erase

            def fill_disk(db, model, decisions):
                if decisions != [4]:  # the row of the first of them
                    raise sqlite3.OperationalError("database or disk is full")
                return erase(db, model, decisions)

            patched.setattr(sqlite_log, "_erase", fill_disk)
            service.ask("POST", f"{PATH}/erase", {"ids": ids[2:4]}, 503)
        left = 2 if at_once == 200 else 1
        assert [row["kind"] for row in lines(service)].count("erasure") == 2 - left
        service.rounds(3)
        assert settled(service).n == 41 + (2 - left) + 6
        assert len(traces(tmp_path)) > 0
        done = service.ask("POST", f"{PATH}/erase", {"ids": ids[2:4]})
        assert done == {"decisions": left, "rows": 2 * left}
        assert traces(tmp_path) == []
        assert settled(service).meta.statistics.decisions == 21
        assert not verdict(service).faults


def test_an_erasure_is_refused_where_the_disk_has_no_room_to_rewrite_the_log(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        ids = fill(service, 20, {2})
        usage = sqlite_log.shutil.disk_usage(tmp_path)
        with monkeypatch.context() as patched:
            size = (tmp_path / "log.sqlite").stat().st_size
            full = usage._replace(free=size - 1)
            patched.setattr(sqlite_log.shutil, "disk_usage", lambda _: full)
            service.ask("POST", f"{PATH}/erase", {"ids": ids[2:3]}, 503)
        assert [row["kind"] for row in lines(service)].count("erasure") == 0
        assert service.model().n == 41
        # It may get full between this and the rewriting.
        with monkeypatch.context() as patched:
            database = service.app.service.log._database
            patched.setattr(database, "rewrite", lambda: database.write.execute("no statement"))
            said = service.ask("POST", f"{PATH}/erase", {"ids": ids[2:3]}, 503)
            assert "files still have them" in said["error"]
        assert settled(service).meta.statistics.decisions == 19
        assert traces(tmp_path)
        done = service.ask("POST", f"{PATH}/erase", {"ids": ids[2:3]})
        assert done == {"decisions": 0, "rows": 0}
        assert traces(tmp_path) == []


async def time_out():
    """Stop as a killed process does."""


def test_no_snapshot_is_made_of_what_was_erased(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        fill(service, 20, {2})
        # As if it stopped before the model was made again.
        monkeypatch.setattr(service.app.service.restorer, "_run", lambda live: time_out())
        service.ask("POST", f"{PATH}/erase", {"field": ["user", "id"], "value": SECRET.decode()})
    assert list((tmp_path / "snapshots").iterdir()) == []
    with in_folder(tmp_path) as service:
        assert service.model().meta.statistics.decisions == 19
        assert not verdict(service).faults


def test_commands(tmp_path, capsys):
    folder, copy = tmp_path / "data", tmp_path / "copy"

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["log", *arguments])
        return end.value.code, "".join(capsys.readouterr())

    with in_folder(folder) as service:
        service.make(learner="Banditron")
        ids = fill(service, 30, {7, 8, 9})
        back_up_folder(folder, copy)
        code, text = run("erase", "m", "--id", ids[7], "--data", str(folder))
        assert (code, "another onebit serve uses" in text) == (2, True)
    for place in (folder, copy):
        assert traces(place)
        code, text = run("erase", "m", "--id", ids[7], "--id", ids[8], "--data", str(place))
        assert (code, text) == (0, "m: 2 decisions erased, 4 rows\n")
        code, text = run("erase", "m", "--field", "n=9", "--data", str(place))
        assert (code, text) == (0, "m: 1 decisions erased, 2 rows\n")
        assert traces(place) == []
        code, text = run("verify", "--data", str(place))
        assert (code, "30 decisions" in text, "27 decisions" in text) == (0, False, True)
        code, text = run("erase", "m", "--older-than", "1m", "--data", str(place))
        assert (code, text) == (0, "m: 0 decisions erased, 0 rows\n")
    for wrong, message in (
        (["m"], "one of --id"),
        (["m", "--field", "n"], "user=17"),
        (["m", "--older-than", "9"], "--older-than takes"),
        (["other", "--id", "a"], "no model"),
    ):
        code, text = run("erase", *wrong, "--data", str(folder))
        assert (code, message in text) == (2, True), text
    with in_folder(folder) as service:
        assert service.model().meta.statistics.decisions == 27
