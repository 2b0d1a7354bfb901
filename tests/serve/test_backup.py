"""Backups, made while a service runs, and restored elsewhere."""

import asyncio
import contextlib
import json
import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from onebit.cli import main
from onebit.serve.backup import back_up_folder, restore_folder
from onebit.serve.code import this_code
from onebit.serve.log import LogError
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.verify import verify
from services import in_folder


class Traffic:
    """Rounds of a service in a thread, until the end of the block."""

    def __init__(self, service, name="m"):
        self._service, self._name, self._stop = service, name, threading.Event()
        self.ids = []
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.is_set():
            self.ids += self._service.rounds(3, self._name)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def wait_for(self, n):
        while len(self.ids) < n:
            assert self._thread.is_alive()
            time.sleep(0.01)


def verified(folder, name="m"):
    """Return what `verify` finds in the log of a model, and all its ids."""

    async def work():
        log = SQLiteLog(folder, alone=False, make=False)
        await log.open()
        try:
            key = (await log.models())[name]
            rows = await log.rows(key, 0, 10**6)
            return await verify(log, key), {row.id for row in rows if row.kind == "feedback"}
        finally:
            await log.close()

    return asyncio.run(work())


def test_a_backup_under_load_is_restored_elsewhere_and_goes_on(tmp_path):
    with in_folder(tmp_path / "data") as service:
        service.make(learner="Banditron")
        service.make("other", learner="Banditron")
        service.do(service.app.service.applier.snapshot(service.live()))
        half = service.do(
            service.app.service.log.begin_import(("model", None, 0.0, "{}", this_code()))
        )
        with Traffic(service) as traffic:
            traffic.wait_for(20)
            acknowledged = set(traffic.ids)
            content = back_up_folder(tmp_path / "data", tmp_path / "backup")
            n = len(traffic.ids)
            traffic.wait_for(n + 6)  # the service goes on
        service.do(half.abort())
    assert (content.models, content.snapshots) == (2, 1)
    restore_folder(tmp_path / "backup", tmp_path / "restored")
    verdict, ids = verified(tmp_path / "restored")
    assert acknowledged <= ids
    assert (verdict.faults, verdict.equal) == ([], [1])
    assert content.rows == verdict.rows + 1
    with in_folder(tmp_path / "restored") as service:
        shown = service.ask("GET", "/v1/models/m")
        assert shown["decisions"] == verdict.rows // 2
        service.rounds(3)
        service.rounds(3, "other")
    assert verified(tmp_path / "restored")[0].faults == []
    with in_folder(tmp_path / "backup") as service:  # a backup is a folder of the service
        service.rounds(1)


def test_others_on_the_machine_cannot_read_a_backup(tmp_path):
    with in_folder(tmp_path / "data") as service:
        service.make(learner="Banditron")
        service.do(service.app.service.applier.snapshot(service.live()))
    back_up_folder(tmp_path / "data", tmp_path / "backup")
    restore_folder(tmp_path / "backup", tmp_path / "restored")
    for name in ("backup", "restored"):
        found = [tmp_path / name, *(tmp_path / name).rglob("*")]
        assert len(found) == 4
        assert not any(path.stat().st_mode & 0o077 for path in found), found


def test_what_is_no_backup_and_what_would_be_overwritten_is_refused(tmp_path):
    with in_folder(tmp_path / "data") as service:
        service.make(learner="Banditron")
        service.rounds(200)
        with pytest.raises(LogError, match="in use"):
            restore_folder(tmp_path / "data", tmp_path / "restored")
    with pytest.raises(LogError, match="not empty"):
        back_up_folder(tmp_path / "data", tmp_path)
    for work in (back_up_folder, restore_folder):
        with pytest.raises(LogError, match=r"no log\.sqlite"):
            work(tmp_path / "nothing", tmp_path / "backup")
    (tmp_path / "empty").mkdir()
    back_up_folder(tmp_path / "data", tmp_path / "empty")
    with pytest.raises(LogError, match="not empty"):
        restore_folder(tmp_path / "empty", tmp_path / "data")
    file = tmp_path / "empty" / "log.sqlite"
    content = bytearray(file.read_bytes())
    content[8192:12288] = os.urandom(4096)
    file.write_bytes(content)
    with pytest.raises(LogError, match=r"damaged|malformed"):
        restore_folder(tmp_path / "empty", tmp_path / "restored")
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(LogError, match="another version"):
        restore_folder(tmp_path / "empty", tmp_path / "restored")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "empty"]


def test_a_snapshot_that_was_replaced_meanwhile_is_left_out(tmp_path):
    with in_folder(tmp_path / "data") as service:
        service.make(learner="Banditron")
        service.rounds(3)
        service.do(service.app.service.applier.snapshot(service.live()))
        service.rounds(1)
    first, second = sorted((tmp_path / "data" / "snapshots").iterdir())
    second.unlink()
    assert back_up_folder(tmp_path / "data", tmp_path / "backup").snapshots == 1
    assert [path.name for path in (tmp_path / "backup" / "snapshots").iterdir()] == [first.name]
    first.write_bytes(b"damaged")
    assert back_up_folder(tmp_path / "data", tmp_path / "again").snapshots == 0
    assert verified(tmp_path / "again")[0].faults == []


@pytest.mark.parametrize("name", ["../../outside", "{absolute}", "log.sqlite"])
def test_a_backup_from_anyone_reaches_no_other_files(tmp_path, name):
    """The names of the files of snapshots were taken as paths."""
    data, backup, outside = tmp_path / "data", tmp_path / "backup", tmp_path / "outside"
    with in_folder(data) as service:
        service.make(learner="Banditron")
        service.rounds(3)
        service.do(service.app.service.applier.snapshot(service.live()))
        back_up_folder(data, backup)
    outside.write_text("mine")
    outside.chmod(0o644)
    columns = json.dumps({"": [name.format(absolute=outside), "0" * 64]})
    for folder in (data, backup):
        with contextlib.closing(sqlite3.connect(folder / "log.sqlite")) as db, db:
            db.execute("UPDATE snapshot SET files = ?", (columns,))
    with pytest.raises(LogError, match="files of a snapshot are damaged"):
        restore_folder(backup, tmp_path / "in" / "restored")
    with pytest.raises(LogError, match="files of a snapshot are damaged"):
        back_up_folder(data, tmp_path / "again")
    with in_folder(data) as service:  # as if there were no snapshot
        assert service.model().n == 7
        service.ask("POST", "/v1/models/m/erase", {"before": 1e11})
    assert (outside.read_text(), outside.stat().st_mode & 0o777) == ("mine", 0o644)
    assert not (tmp_path / "in" / "outside").exists()


def test_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with in_folder(Path("onebit-data")) as service:
        service.make(learner="Banditron")
        service.rounds(2)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(["log", *arguments])
        return end.value.code, *capsys.readouterr()

    code, out, _ = run("backup", "copy")
    assert (code or 0, out) == (0, "copy: 1 models, 5 rows, 1 snapshots\n")
    code, out, _ = run("restore", "copy", "--data", "new")
    assert (code or 0, out) == (0, "new: 1 models, 5 rows, 1 snapshots\n")
    code, _, err = run("restore", "copy", "--data", "new")
    assert (code, "not empty" in err) == (2, True)
