"""Logs of earlier versions, and what another version of the code made."""

import asyncio
import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

import onebit
from onebit.cli import main
from onebit.serve.code import fingerprint, this_code
from onebit.serve.log import LogError
from onebit.serve.model import Model
from onebit.serve.replayable import ReplayableLearner
from onebit.serve.sqlite_log import VERSION, SQLiteLog
from onebit.serve.verify import verify
from services import in_folder

EARLIER = Path(__file__).parent / "data"
"""Logs as earlier versions of the tables wrote them: `log.sqlite` as SQL, and its snapshots."""


def folder_of(version, folder):
    """Make a folder as an earlier version of the tables wrote it."""
    earlier = EARLIER / f"version{version}"
    shutil.copytree(earlier / "snapshots", folder / "snapshots")
    with sqlite3.connect(folder / "log.sqlite") as db:
        db.executescript((earlier / "log.sql").read_text())
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    return folder


@pytest.fixture
def folder(tmp_path):
    """A folder of the first version: 25 rows of a model of numbers, and a key."""
    return folder_of(1, tmp_path)


def verdict(folder, name="numbers"):
    async def work():
        log = SQLiteLog(folder, alone=False, make=False)
        await log.open()
        try:
            return await verify(log, (await log.models())[name])
        finally:
            await log.close()

    return asyncio.run(work())


def version_of(folder):
    with sqlite3.connect(folder / "log.sqlite") as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    return version


def is_same_or_earlier(found):
    """Return whether the snapshot of the first version is reproduced, or reported as earlier.

    Files of learners may have another format since then.
    """
    earlier = ["an earlier version"] * found.other_snapshots
    return (25 in found.equal) != (found.versions == earlier != [])


def rounds(service, n, name="numbers"):
    for i in range(n):
        made = service.ask("POST", f"/v1/models/{name}/decide", {"record": [1.0, i % 3, 0.5]})
        said = {"id": made["id"], "correct": made["label"] == "abc"[i % 3]}
        service.ask("POST", f"/v1/models/{name}/feedback", said)


def with_key(service):
    """Let requests in without the key of the log, whose text nobody knows."""
    service.app.access.check = lambda *_: None
    return service


def test_a_log_of_the_first_version_goes_on(folder):
    with in_folder(folder) as service:
        with_key(service)
        assert version_of(folder) == VERSION
        seen = service.ask("GET", "/v1/models/numbers")
        assert (seen["rows"], seen["decisions"], seen["awaited"]) == (25, 12, 2)
        assert [key.name for key in service.do(service.app.service.log.keys())] == ["web"]
        service.ask("POST", "/v1/models/numbers/feedback", {"id": "T11", "correct": True})
        rounds(service, 5)
    found = verdict(folder)
    assert (found.faults, found.rows, found.checked) == ([], 36, 17)
    assert found.equal[-1] == 36
    assert is_same_or_earlier(found)
    with sqlite3.connect(folder / "log.sqlite") as db:
        codes = dict(db.execute("SELECT code, count(*) FROM log GROUP BY code"))
        assert db.execute("SELECT name FROM code").fetchall() == [(this_code(),)]
    db.close()
    assert codes == {None: 25, 1: 11}


def test_a_log_of_the_first_version_is_verified_at_once(folder):
    found = verdict(folder)
    assert (found.faults, found.rows, found.checked) == ([], 25, 12)
    assert is_same_or_earlier(found)
    assert version_of(folder) == VERSION


def test_feedback_in_a_log_of_the_version_before_can_be_revised(tmp_path):
    with in_folder(folder_of(3, tmp_path)) as service:
        path = "/v1/models/numbers"
        assert version_of(tmp_path) == VERSION
        for word in ({"correct": True}, {"correct": False}, {"withdrawn": True}):
            (said,) = service.ask("POST", f"{path}/revise", [{"id": "T1"} | word])
            assert said["status"] == ("repeated" if word == {"correct": False} else "accepted")
            service.ask("POST", f"{path}/revise", [{"id": "T1", "correct": False}])
        twice = service.ask("POST", f"{path}/feedback", {"id": "T2", "correct": False}, 409)
        assert twice["status"] == "contradiction"
        while service.live("numbers").restoring is not None:
            time.sleep(0.01)
        rounds(service, 2)
    found = verdict(tmp_path)
    assert (found.faults, found.rows, found.checked) == ([], 23, 10)


def test_tables_in_use_by_the_version_before_are_left_alone(folder):
    async def work():
        service = SQLiteLog(folder)
        service._database.lock()  # as the version before does
        with pytest.raises(LogError, match="another onebit serve"):
            await SQLiteLog(folder, alone=False, make=False).open()
        service._database.unlock()

    asyncio.run(work())
    assert version_of(folder) == 1


def test_tables_of_a_later_version_are_refused(folder):
    with sqlite3.connect(folder / "log.sqlite") as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(LogError, match="later version"):
        in_folder(folder).__enter__()


def other_version(monkeypatch, name="onebit 9.9, other"):
    """Replace the code by another version, which learns otherwise."""
    for module in ("sqlite_log", "verify"):
        monkeypatch.setattr(f"onebit.serve.{module}.this_code", lambda: name)
    learn = ReplayableLearner.learn

    def otherwise(student, decision, said, n):
        learn(student, decision, {"correct": not said["correct"]}, n)

    monkeypatch.setattr(ReplayableLearner, "learn", otherwise)


def test_what_another_version_made_is_no_fault(folder, capsys):
    with pytest.MonkeyPatch.context() as patched:
        other_version(patched)
        with in_folder(folder) as service:
            rounds(with_key(service), 30)
        assert verdict(folder).faults == []
    found = verdict(folder)
    assert (found.faults, found.rows) == ([], 85)
    assert "onebit 9.9, other" in found.versions
    assert found.other_decisions > 0
    # This version goes on from the last snapshot of the other one, and its own rows are verified.
    with in_folder(folder) as service:
        rounds(with_key(service), 30)
    found = verdict(folder)
    assert (found.faults, found.equal[-1]) == ([], 145)
    assert "onebit 9.9, other" in found.versions
    with pytest.raises(SystemExit) as end:
        main(["log", "verify", "--data", str(folder)])
    assert not end.value.code
    printed = capsys.readouterr().out
    assert "made by another version" in printed
    assert "onebit 9.9, other" in printed
    with sqlite3.connect(folder / "log.sqlite") as db:
        db.execute("UPDATE log SET body = '{\"correct\":true}' WHERE kind = 'feedback' AND n > 120")
    db.close()
    assert verdict(folder).faults


def test_imported_rows_keep_the_version_that_made_them(folder):
    with pytest.MonkeyPatch.context() as patched:
        other_version(patched)
        with in_folder(folder) as service:
            rounds(with_key(service), 30)
    with in_folder(folder) as service:
        rounds(with_key(service), 3)
        rows = service.send("GET", "/v1/models/numbers/log").content.splitlines(keepends=True)
        named = {json.loads(row)["n"]: json.loads(row).get("code") for row in rows}
        assert {n: code for n, code in named.items() if code is not None} == {
            26: "onebit 9.9, other",
            86: this_code(),
        }
        unnamed = [json.dumps(json.loads(row) | {"code": None}).encode() + b"\n" for row in rows]
        for name, content in (("copy", rows), ("unnamed", unnamed)):
            reply = service.send(
                *("PUT", f"/v1/models/{name}/log"),
                content=b"".join(content),
                headers={"content-type": "application/x-ndjson"},
            )
            assert reply.status_code == 200, reply.text
    # This version replays what the other one learned, and may decide otherwise.
    copy, other = verdict(folder, "copy"), verdict(folder, "unnamed")
    assert copy.faults == other.faults == []
    assert copy.other_decisions == other.other_decisions > 0
    assert "onebit 9.9, other" in copy.versions
    assert other.versions == ["an earlier version"]
    # What this version makes from then on is verified.
    with in_folder(folder) as service:
        rounds(with_key(service), 5, "copy")
    assert verdict(folder, "copy").faults == []
    with sqlite3.connect(folder / "log.sqlite") as db:
        wrong = "json_set(body, '$.label', 'a', '$.probability', 0.5)"
        change = f"UPDATE log SET body = {wrong} WHERE kind = 'decision' AND n > 95 AND model = ?"
        assert db.execute(change, (2,)).rowcount == 3
    db.close()
    assert len(verdict(folder, "copy").faults) == 4  # three decisions and the snapshot


def test_the_last_snapshot_of_each_version_is_kept(folder, monkeypatch):
    with pytest.MonkeyPatch.context() as patched:
        other_version(patched)
        with in_folder(folder) as service:
            rounds(with_key(service), 3)
    for _ in range(5):
        with in_folder(folder) as service:
            rounds(with_key(service), 1)
    with sqlite3.connect(folder / "log.sqlite") as db:
        kept = db.execute("SELECT n, code FROM snapshot ORDER BY n").fetchall()
    db.close()
    assert kept == [(25, None), (31, 1), (37, 2), (39, 2), (41, 2)]
    names = {path.name for path in (folder / "snapshots").iterdir()}
    assert {"1-25-0.safetensors", "1-31-0.safetensors"} <= names
    assert len(names) == 2 * len(kept)


def test_models_restore_what_they_stored(folder):
    with in_folder(folder) as service:
        stored = service.snapshot("numbers")
        assert Model.restore(*stored).snapshot() == stored


def test_the_fingerprint_is_of_code_and_of_the_tables_that_it_reads(tmp_path):
    package = Path(onebit.__file__).parent
    copy = tmp_path / "onebit"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = fingerprint(copy)
    assert this_code().endswith(before) == (before == fingerprint(package)) is True
    assert (copy / "numerics" / "winning.safetensors").is_file()
    for file in (
        *("numerics/winning.safetensors", "numerics/posterior.py", "losses.py"),
        *("features/records.py", "serve/model.py"),
    ):
        content = (copy / file).read_bytes()
        (copy / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert fingerprint(copy) != before, file
        (copy / file).write_bytes(content)
    (copy / "numerics" / "compiled.nbc").write_bytes(b"machine code")
    (copy / "core" / "__pycache__").mkdir()
    (copy / "core" / "__pycache__" / "function.py").write_text("# by which Numba finds its code")
    (copy / "serve" / "page" / "page.css").write_bytes(b"")
    assert fingerprint(copy) == before
