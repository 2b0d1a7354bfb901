"""What tests of the service share."""

import signal

import pytest

from services import OwnProcess


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    process = OwnProcess("--data", str(tmp_path_factory.mktemp("data")))
    process.wait()
    yield process
    process.kill(signal.SIGTERM)
