"""How much less time a sweep takes with two processes than with one: ``python bench/jobs.py``.

The sweep is that of the SOBA paper at the small scale, streams included, on all data that are
there (ONEBIT_DATA); each time a new process begins with nothing but compiled code. A second
process cannot shorten the import of all modules and the writing of the table: a sweep with nothing
to play measures both. The last line is what the two cores themselves give: a loop of plain Python,
two at once and one alone. Sweeps with one process and with two take turns, and medians are printed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import NamedTuple

LOOP = "for i in range(30_000_000): pass"


class Times(NamedTuple):
    """Seconds of a sweep on the clock and of all processors, and of one with nothing to play."""

    clock: float
    processors: float
    nothing: float


def times(jobs: int) -> Times:
    """Return what `onebit lab run soba` takes, and what it takes again."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "onebit", "lab", "run", "soba", "--jobs", str(jobs)]
        used = _processor_seconds()
        clock = _seconds(1, *command, "--out", folder)
        used = _processor_seconds() - used
        return Times(clock, used, _seconds(1, *command, "--out", folder))


def _seconds(n: int, *command: str) -> float:
    """Return the time until `n` processes that begin together have ended."""
    start = time.perf_counter()
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(n)]
    for process in processes:
        if process.wait():
            raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start


def _processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


def main() -> None:
    """Print the times and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    loop = (sys.executable, "-c", LOOP)
    found = [
        (times(1), times(2), _seconds(1, *loop), _seconds(2, *loop)) for _ in range(turns)
    ]  # fmt: skip
    ones, twos, alone, at_once = zip(*found, strict=True)
    one, two = (Times(*map(median, zip(*some, strict=True))) for some in (ones, twos))
    ratios = [b.clock / a.clock for a, b in zip(ones, twos, strict=True)]
    runs = (two.clock - two.nothing) / (one.clock - one.nothing)
    print(
        f"1 job {one.clock:.1f} s, 2 jobs {two.clock:.1f} s: {median(ratios):.2f} times "
        f"({min(ratios):.2f} to {max(ratios):.2f} in {turns} turns)\n"
        f"with nothing to play {one.nothing:.1f} s and {two.nothing:.1f} s; without that, "
        f"{runs:.2f} times\n"
        f"processors {one.processors:.1f} s and {two.processors:.1f} s: "
        f"{two.processors / one.processors:.2f} times\n"
        f"plain Python: two at once take {median(at_once) / median(alone):.2f} times as long as one"
    )


if __name__ == "__main__":
    main()
