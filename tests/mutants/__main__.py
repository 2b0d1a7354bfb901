"""Change the code in many places, one at a time: ``python -m mutants --seed 0 --number 200``.

Each mutant is made in a copy of this checkout, and the tests of its file run there, those of every
day. Results are kept in .mutants, so that the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from mutants.drawing import Mutant, changed, draw, room_of
from mutants.watching import steps_for

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")

LIMIT, COMPILING = 240.0, 420.0
"""Seconds that tests may take, and where a change means that much is to be compiled."""

TIMED = ("tests/serve/", "tests/cli/", "tests/core/test_t")
"""Tests of processes and threads, which a busy machine may fail: they must fail twice."""

COMPILED = ("core", "numerics", "learners", "losses")
"""Rooms with compiled code."""

COMPILERS = [
    f"core/{name}.py"
    for name in ("code_cache", "compiling", "fence", "fingerprint", "hooks", "numba_private")
]
"""Files that decide what is compiled, and where it is stored."""

CACHE = KEPT / "cache"
"""Compiled code: what a change does not reach is found there."""

NOTICED = ("failed", "crashed", "hung", "trivial")
"""Outcomes: a test failed, the process died, took too long, or could not even begin."""


LEFT_OUT: list[str] = []
"""Tests that fail without any change, and can notice none."""

_LOCKS: defaultdict[str, Lock] = defaultdict(Lock)


class Workplace(NamedTuple):
    """A copy of the checkout."""

    root: Path

    @property
    def package(self) -> Path:
        """The sources."""
        return self.root / "src" / "onebit"

    def write(self, path: str, source: str) -> None:
        """Write a source, and forget its bytecode, which may have been made in the same second."""
        file = self.package / path
        file.write_text(source)
        for old in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            old.unlink()


def main() -> None:
    """Draw, run what has no result yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--again", action="store_true", help="run survivors again")
    parser.add_argument("--list", action="store_true", help="print what is drawn, and end")
    asked = parser.parse_args()
    drawn = draw(ROOT / "src" / "onebit", asked.number, asked.seed)
    drawn = [mutant for mutant in drawn if asked.only in mutant.path]
    if asked.list:
        print(*(mutant.key for mutant in drawn), sep="\n")
        return
    # Who is started in the background ignores it, and so would what the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    KEPT.mkdir(exist_ok=True)
    results = read(KEPT / "results.jsonl")
    left = [m for m in drawn if m.key not in results or (asked.again and survived(results[m.key]))]
    random.Random(asked.seed).shuffle(left)  # so that what is done after a while is of all rooms
    run(left, results, asked.jobs)
    print(*table(drawn, results), sep="\n")
    if LEFT_OUT:
        print("", "left out, as they fail without any change:", *sorted(LEFT_OUT), sep="\n")


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the results so far, by their keys; the last of several counts."""
    if not path.exists():
        return {}
    rows = map(json.loads, path.read_text().splitlines())
    return {row["key"]: row for row in rows}


def keep(path: Path, row: dict[str, Any]) -> None:
    """Add a result."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def survived(row: dict[str, Any]) -> bool:
    """Return whether no test noticed."""
    return row["outcome"] not in NOTICED


# Running


def run(left: list[Mutant], results: dict[str, dict[str, Any]], jobs: int) -> None:
    """Run the tests of mutants, several at a time, each in a copy of the checkout."""
    if not left:
        return
    places: queue.Queue[Workplace] = queue.Queue()
    for i in range(jobs):
        places.put(copy_of_checkout(KEPT / f"copy-{i}"))
    baselines = read(KEPT / "baselines.jsonl")

    def work(mutant: Mutant) -> None:
        place = places.get()
        try:
            results[mutant.key] = row = tried(place, mutant, baselines)
        finally:
            places.put(place)
        keep(KEPT / "results.jsonl", row)
        print(f"{row['outcome']:9}{row['seconds']:6.0f} s  {mutant.key}", flush=True)

    with ThreadPoolExecutor(jobs) as threads:
        futures = [threads.submit(work, mutant) for mutant in left]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def copy_of_checkout(root: Path) -> Workplace:
    """Return a new copy of what tests need."""
    shutil.rmtree(root, ignore_errors=True)
    left_out = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
    shutil.copytree(ROOT, root, ignore=left_out)
    for name in ("home", "tmp"):
        (root / f".{name}").mkdir()
    return Workplace(root)


def tried(place: Workplace, mutant: Mutant, baselines: dict[str, Any]) -> dict[str, Any]:
    """Return what the tests of a mutant's file say about it."""
    limit = COMPILING if room_of(mutant.path) in COMPILED else LIMIT
    cache = CACHE
    if mutant.path in COMPILERS:  # which must not meet what others compiled
        cache = place.root / ".cache"
        shutil.rmtree(cache, ignore_errors=True)
    source = (place.package / mutant.path).read_text()
    start = time.monotonic()
    outcome, why = "survived", ""
    waiting = steps_for(place.root, mutant.path)
    while waiting and outcome == "survived":
        step = waiting[0]
        place.write(mutant.path, changed(source, mutant.change))
        try:
            outcome, why = run_tests(place, step, limit, cache)
            if outcome == "failed" and why.startswith(TIMED):
                outcome, why = confirmed(place, step, why, limit, cache)
        finally:
            place.write(mutant.path, source)
        if outcome == "failed" and not passes(place, name_of(why), baselines):
            outcome = "survived"  # that test would fail without the change, too
        else:
            waiting.pop(0)
    seconds = time.monotonic() - start
    return {"key": mutant.key, "outcome": outcome, "seconds": round(seconds, 1), "why": why}


def confirmed(place: Workplace, step: str, why: str, limit: float, cache: Path) -> tuple[str, str]:
    """Return the outcome of a test that failed once: it must fail again, alone or in its step.

    What a test leaves open may fail another one after it, which passes alone.
    """
    outcome, _ = run_tests(place, shlex.quote(name_of(why)), limit, cache)
    if outcome == "survived":
        outcome, again = run_tests(place, step, limit, cache)
        if outcome == "failed" and name_of(again) != name_of(why):
            outcome, _ = run_tests(place, shlex.quote(name_of(again)), limit, cache)
            why = again
    return outcome, why


def name_of(why: str) -> str:
    """Return the test of a line in pytest's summary."""
    return why.partition(" - ")[0]


def passes(place: Workplace, test: str, baselines: dict[str, Any]) -> bool:
    """Return whether a test passes without any change, tried twice; if not, it is left out."""
    with _LOCKS[test]:
        if test in LEFT_OUT:
            raise RuntimeError(f"{test} was left out, and fails")
        if test not in baselines:
            for _ in range(2):
                outcome, why = run_tests(place, shlex.quote(test), 1800.0, CACHE)
                if outcome == "survived":
                    break
                print(f"{'baseline':9}          {test}: {outcome} {why}".rstrip(), flush=True)
            else:
                LEFT_OUT.append(test)
                return False
            baselines[test] = {"key": test}
            keep(KEPT / "baselines.jsonl", baselines[test])
    return True


def run_tests(place: Workplace, step: str, limit: float, cache: Path) -> tuple[str, str]:
    """Run a step of tests; return the outcome, and the test that noticed."""
    environment = os.environ | {
        "PYTHONPATH": str(place.root / "src"),
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HOME": str(place.root / ".home"),
        "TMPDIR": str(place.root / ".tmp"),
    }
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "-q", "-x"]
    command += ["-m", "not slow", "--no-header", *shlex.split(step)]
    command += [word for test in LEFT_OUT for word in ("--deselect", test)]
    process = subprocess.Popen(
        command,
        cwd=place.root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return "hung", f"{step}: more than {limit:.0f} s"
    finally:
        end_all(process)
    return outcome_of(process.returncode, output)


def end_all(process: subprocess.Popen[str]) -> None:
    """End a process and those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def outcome_of(code: int, output: str) -> tuple[str, str]:
    """Return what a run of pytest says, by its exit code and the end of its output."""
    if code in (0, 5):  # 5: there are no tests
        return "survived", ""
    summary = output.rpartition("short test summary info")[2]  # what is above may have logs
    found = re.findall(r"^(?:FAILED|ERROR) (.*)", summary, flags=re.MULTILINE)
    why = found[0] if found else output.strip()[-300:]
    if "file or directory not found" in why:
        raise RuntimeError(f"there are no such tests: {why}")
    if code < 0 or code > 5:
        return "crashed", why
    if code > 1 or "ERROR collecting" in output or "numba.core.errors" in output:
        return "trivial", why
    return "failed", why


# The table


def table(drawn: list[Mutant], results: dict[str, dict[str, Any]]) -> list[str]:
    """Return the lines of a table by room, and below it those that survived."""
    same = equivalent()
    counts: dict[str, Counter[str]] = {}
    survivors = []
    for mutant in drawn:
        row = results.get(mutant.key)
        if row is None:
            continue
        outcome = row["outcome"]
        if outcome == "survived" and (mutant.path, mutant.old, mutant.new) in same:
            outcome = "same"
        elif outcome == "survived":
            survivors.append(mutant)
        counts.setdefault(room_of(mutant.path), Counter())[outcome] += 1
    counts["all"] = sum(counts.values(), Counter())
    lines = ["| room | drawn | noticed | share | trivial | hung | changes nothing |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for room, found in counts.items():
        noticed = sum(found[name] for name in NOTICED)
        lines.append(
            f"| {room} | {found.total()} | {noticed} | {noticed / max(1, found.total()):.0%} "
            f"| {found['trivial']} | {found['hung']} | {found['same']} |"
        )
    for mutant in survivors:
        lines += ["", f"{mutant.path}:{mutant.line}", f"- {mutant.old}", f"+ {mutant.new}"]
    return lines


def equivalent() -> set[tuple[str, str, str]]:
    """Return the changes that are known to change nothing anyone can observe."""
    if not EQUIVALENT.exists():
        return set()
    found = set()
    for block in EQUIVALENT.read_text().split("\n\n"):
        lines = block.strip().splitlines()
        if len(lines) >= 4 and not lines[0].startswith("#"):
            path, old, new = lines[0], lines[1].removeprefix("- "), lines[2].removeprefix("+ ")
            found.add((path, old, new))
    return found


if __name__ == "__main__":
    main()
