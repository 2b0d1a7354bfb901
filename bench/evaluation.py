"""How long estimates from logs take: a million rows in one file, and ten million in many.

``python bench/evaluation.py speed [--rows 1000000]``: a log in a Parquet file, read in batches.

``python bench/evaluation.py parts [--rows 10000000]``: ``onebit evaluate`` on a log in 50 Parquet
files, by one process and by two Dask workers: the largest difference, seconds and memory.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onebit import OneBitClassifier, play
from onebit.evaluation import Log, estimate


def speed(rows: int) -> None:
    """Print seconds and memory of estimates from a file."""
    print("| rows | policy | method | seconds | peak memory, MB |")
    print("| ---: | --- | --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for n in (rows // 4, rows):
            path, model = Path(folder, f"{n}.parquet"), Path(folder, "model.safetensors")
            write_log(path, model, n)
            for policy, method in (
                ("none", "auto"),
                ("label", "auto"),
                ("model", "ips"),
                ("model", "auto"),
            ):
                command = [sys.executable, __file__, "child", str(path), str(model), policy, method]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                told = json.loads(done.stdout)
                print(
                    f"| {n:,} | {policy} | {told['method']} | {told['seconds']:.1f} "
                    f"| {told['megabytes']:.0f} |",
                    flush=True,
                )


def write_log(path: Path, model: Path, n: int) -> None:
    """Write a log of ten labels and ten features, and a model to judge."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(n, 10)), rng.normal(size=(10, 10))
    y = (X @ W + rng.normal(size=(n, 10))).argmax(axis=1)
    log = Log()
    play(OneBitClassifier(min_probability=0.01, random_state=0), X, y, log=log, record=False)
    log.write(path)
    learner = OneBitClassifier(random_state=1, classes=range(10))
    play(learner, X[:5000], y[:5000])
    learner.save(model)


N_PARTS = 50


def parts(rows: int) -> None:
    """Print how estimates by one process and by two workers differ, and what they take."""
    with tempfile.TemporaryDirectory() as name:
        folder, model = Path(name, "log"), Path(name, "model.safetensors")
        folder.mkdir()
        for part in range(N_PARTS):
            write_part(folder / f"{part:02}.parquet", part, rows // N_PARTS)
        X, y = examples(np.random.default_rng(N_PARTS), 5_000)
        learner = OneBitClassifier(random_state=1, classes=range(5))
        play(learner, X, y)
        learner.save(model)
        command = [sys.executable, "-m", "onebit", "evaluate", str(folder), "--json"]
        command += ["--policy", str(model), "--policy", "label=3"]
        one = _estimates(command)
        print(f"one process: {_taken(one)}", flush=True)
        with cluster(Path(name), 2) as address:
            two = _estimates([*command, "--dask", address])
            print(f"two workers: {_taken(two)}")
        numbers = [list(_numbers(told["estimates"])) for told in (one, two)]
        print(f"{rows:,} rows, {len(numbers[0])} numbers; largest difference", end=" ")
        print(f"{np.abs(np.subtract(numbers[0], numbers[1])).max():.1e}")


def examples(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return examples with four features and five labels."""
    X, W = rng.normal(size=(n, 4)), np.random.default_rng(0).normal(size=(4, 5))
    return X, (X @ W + rng.normal(size=(n, 5))).argmax(axis=1)


def write_part(path: Path, seed: int, n: int) -> None:
    """Write decisions that are often right, with every tenth bit missing."""
    rng = np.random.default_rng(seed)
    X, y = examples(rng, n)
    policy = np.full((n, 5), 0.1)
    policy[np.arange(n), np.where(rng.random(n) < 0.7, y, rng.integers(5, size=n))] = 0.6
    labels = (policy.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=4)
    correct = np.where(rng.random(n) < 0.9, labels == y, np.nan)
    chosen = policy[np.arange(n), labels]
    Log(labels, chosen, correct, x=X, classes=range(5), least=0.1).write(path)


@contextmanager
def cluster(folder: Path, n_workers: int) -> Iterator[str]:
    """Yield the address of a scheduler on this machine with some workers."""
    dask, file = [sys.executable, "-m"], folder / "scheduler.json"
    scheduler = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "cwd": folder}
    processes = [
        subprocess.Popen(
            [*dask, *scheduler, "--no-dashboard", "--scheduler-file", str(file)], **quiet
        )
    ]
    try:
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        worker = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        processes += [
            subprocess.Popen([*dask, *worker, "--no-dashboard"], **quiet) for _ in range(n_workers)
        ]
        yield address
        for process in processes[1:]:
            print(f"a worker's peak memory: {_peak(process.pid):.0f} MB")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _estimates(command: list[str]) -> dict[str, Any]:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        time.sleep(0.2)
        peak = max(peak, _peak(process.pid))
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.read())
    return told | {"seconds": time.perf_counter() - start, "megabytes": peak}


def _peak(pid: int) -> float:
    """Return the peak memory of a process in MB; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(found[0]) / 1024 if found else 0.0


def _taken(told: dict[str, Any]) -> str:
    return f"{told['seconds']:.0f} s, peak memory {told['megabytes']:.0f} MB"


def _numbers(value: Any) -> Iterator[float]:
    """Yield all numbers in JSON."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif isinstance(value, int | float):
        yield float(value)


def child(path: str, model: str, policy: str, method: str) -> None:
    """Print seconds and peak memory of one estimate, in a process of its own."""
    from onebit import load

    learner = load(model)
    judged = {"none": None, "label": 3, "model": learner}[policy]
    estimate(next(iter(Log.batches(path, 100))), judged, method)  # compiles
    start = time.perf_counter()
    found = estimate(Log.batches(path), judged, method)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()  # that of getrusage includes the parent's
    kilobytes = int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])
    print(json.dumps({"seconds": seconds, "megabytes": kilobytes / 1024, "method": found.method}))


def main() -> None:
    """Do what was asked."""
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "parts"])
    parser.add_argument("--rows", type=int)
    given = parser.parse_args()
    if given.what == "parts":
        parts(given.rows or 10_000_000)
    else:
        speed(given.rows or 1_000_000)


if __name__ == "__main__":
    main()
