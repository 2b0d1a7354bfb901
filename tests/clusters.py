"""A Dask cluster of processes on this machine."""

import json
import subprocess
import sys
import time

import pytest


@pytest.fixture
def dask_cluster(tmp_path):
    """Yield the address of a scheduler with two worker processes, and those processes."""
    distributed = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker"]
    processes = []

    def start(*command):
        processes.append(subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL))

    try:
        start(*distributed, "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
              "--scheduler-file", "scheduler.json")  # fmt: skip
        file = tmp_path / "scheduler.json"
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for _ in range(2):
            start(*worker, address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
