"""What tests of the service share."""

import signal

import pytest

from services import OwnProcess


@pytest.fixture(autouse=True)
def snapshots_at_each_stop(monkeypatch):
    """Let also a short log have a snapshot, for what is tested with it."""
    monkeypatch.setattr("onebit.serve.applying.STOP_ROWS", 1)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    process = OwnProcess("--data", str(tmp_path_factory.mktemp("data")))
    process.wait()
    yield process
    process.kill(signal.SIGTERM)
