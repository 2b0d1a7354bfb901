"""Where a service keeps its logs; tests/serve/test_processes.py has services that run."""

import pytest
import uvicorn

from onebit.serve import running
from onebit.serve.limits import Limits
from onebit.serve.postgres_log import PostgresLog
from onebit.serve.running import open_log
from onebit.serve.sqlite_log import SQLiteLog


@pytest.mark.parametrize("url", ["postgresql://h/models", "postgres://h/models"])
def test_a_database_is_one_of_postgresql(url):
    assert isinstance(open_log("folder", url), PostgresLog)


@pytest.mark.parametrize("url", ["mysql://h/models", "", "h/models", "xpostgresql://h"])
def test_other_databases_are_refused(url):
    with pytest.raises(ValueError, match=r"--database takes postgresql://"):
        open_log(None, url)


@pytest.mark.parametrize(("data", "folder"), [("some", "some"), (None, ".")])
def test_without_a_database_a_folder_is_used(data, folder):
    log = open_log(data, None)
    assert isinstance(log, SQLiteLog)
    assert str(log.folder) == folder


def test_workers_that_start_slowly_are_waited_for(monkeypatch):
    """Those of a busy machine were killed after five seconds, and started again, without end."""
    found = {}
    monkeypatch.setenv(running._OPTIONS, "")
    monkeypatch.setattr(running, "log_as_json", lambda: None)
    monkeypatch.setattr(uvicorn, "run", lambda app, **settings: found.update(settings))
    database = "postgresql://h/models"
    running.serve(running.Options(None, database, "127.0.0.1", 1, 2, False, Limits()))
    del found["factory"]
    assert uvicorn.Config("", **found).timeout_worker_healthcheck == running.WORKER_SECONDS
