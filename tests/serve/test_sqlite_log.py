"""The folder of a log; tests/serve/test_parts.py and test_service.py have what is in it."""

import asyncio
import os
from pathlib import Path

import pytest

from onebit.serve.log import LogError
from onebit.serve.sqlite_log import SQLiteLog

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")


def opened(folder):
    """Open the log of a folder, and close it; return what others may do with its files."""

    async def work():
        log = SQLiteLog(folder)
        await log.open()
        await log.close()

    asyncio.run(work())
    found = {path for path in folder.iterdir() if path.name != "lock"}
    return {path.name: path.stat().st_mode & 0o077 for path in found}


def test_others_cannot_read_a_new_log(tmp_path):
    assert set(opened(tmp_path / "data").values()) == {0}


def test_a_log_that_others_can_read_is_closed_to_them_but_not_to_its_group(tmp_path):
    before = opened(tmp_path)
    for name in before:
        (tmp_path / name).chmod(0o777 if (tmp_path / name).is_dir() else 0o666)
    after = opened(tmp_path)
    assert all(mode & 0o007 == 0 for mode in after.values())
    assert all(mode & 0o060 == 0o060 for mode in after.values())


def test_permissions_that_are_fine_are_left_alone(tmp_path, monkeypatch):
    """The folder may belong to another user of the group, who alone may change them."""
    opened(tmp_path)

    def refuse(path, mode):
        raise PermissionError(f"{path} belongs to another user")

    monkeypatch.setattr(Path, "chmod", refuse)
    opened(tmp_path)


def test_one_process_has_a_folder(tmp_path):
    async def work():
        log = SQLiteLog(tmp_path)
        await log.open()
        with pytest.raises(LogError, match="another onebit serve uses"):
            await SQLiteLog(tmp_path).open()
        await log.close()
        again = SQLiteLog(tmp_path)
        await again.open()
        await again.close()

    asyncio.run(work())
