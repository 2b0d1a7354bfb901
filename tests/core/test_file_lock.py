"""Locks on files, and systems that have none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import onebit
from onebit.core.file_lock import lock

SOURCE = Path(onebit.__file__).parents[1]

ELSEWHERE = """
import builtins, contextlib, importlib, os, pathlib, signal, sys
sys.path.insert(0, {source!r})
# What other packages import is their own business.
for name in ("asyncio", "coba", "distributed", "httptools", "httpx", "joblib", "matplotlib.pyplot",
             "msgspec", "multiprocessing", "numba", "pandas", "prometheus_client", "psycopg",
             "pyarrow", "rich.progress", "river", "safetensors.numpy", "scipy.special",
             "sklearn.base", "subprocess", "typer", "uvicorn"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
import_module = builtins.__import__
def import_elsewhere(name, names=None, *rest):
    importer = (names or {{}}).get("__name__", "")
    if importer.startswith("onebit") and name in ("fcntl", "grp", "posix", "pwd", "resource",
                                                  "termios", "uvloop"):
        raise ImportError(f"import of {{name}}, which only some systems have")
    return import_module(name, names, *rest)
builtins.__import__ = import_elsewhere
for name in ("register_at_fork", "fork", "sched_getaffinity", "fchown", "fchmod", "O_NOFOLLOW",
             "O_NONBLOCK", "getuid", "geteuid", "killpg", "setsid", "waitstatus_to_exitcode"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "pthread_sigmask", "SIGALRM"):
    if hasattr(signal, name):
        delattr(signal, name)
"""

IMPORT_ALL = """
package = pathlib.Path({source!r}) / "onebit"
failed = []
for path in sorted(package.rglob("*.py")):
    name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
    if path.name in ("__main__.py",):
        continue
    try:
        importlib.import_module(name.removesuffix(".__init__"))
    except Exception as error:
        failed.append(f"{{name}}: {{type(error).__name__}}: {{error}}")
print("\\n".join(failed))
"""


USE_SOME = """
import asyncio
print("imported")
from onebit import Perceptron, load
from onebit.core.file_lock import lock
Perceptron(classes=[0, 1]).save(r"{folder}/learner")
Perceptron(classes=[0, 2]).save(r"{folder}/learner")
print(load(r"{folder}/learner").classes, len(os.listdir(r"{folder}")))
from onebit.serve.log import LogError
from onebit.serve.sqlite_log import SQLiteLog
try:
    asyncio.run(SQLiteLog(pathlib.Path(r"{folder}/log")).open())
except LogError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What is printed elsewhere: what failed to be imported, and after it what else happens."""
    text = (ELSEWHERE + IMPORT_ALL + USE_SOME).format(
        source=str(SOURCE), folder=tmp_path_factory.mktemp("elsewhere")
    )
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("imported\n")


def test_without_what_only_posix_has_every_module_can_be_imported(printed):
    # What an extra provides may be missing; what only some systems provide may not.
    lines = printed[0].split("\n")
    assert not [line for line in lines if line and "No module named" not in line]


def test_where_files_cannot_be_locked_learners_are_saved_and_services_refuse_to_start(printed):
    first, second = printed[1].splitlines()
    assert first == "[0, 2] 1"
    assert "cannot be locked: files cannot be locked on this system" in second


def test_a_lock_is_held_until_the_file_is_closed(tmp_path):
    path = tmp_path / "lock"
    with open(path, "w") as first, open(path, "w") as second:
        lock(first)
        with pytest.raises(BlockingIOError):
            lock(second, wait=False)
        first.close()
        lock(second, wait=False)
    assert os.path.exists(path)
