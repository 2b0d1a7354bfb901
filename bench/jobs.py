"""How much less time a sweep takes with two processes than with one: ``python bench/jobs.py``.

The sweep is that of the SOBA paper at the small scale, streams included; each time a new process
begins with nothing but compiled code. Half the ratio of processor times is what an idle machine
with two cores could reach.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time


def seconds(jobs: int) -> tuple[float, float]:
    """Return what `onebit lab run soba` takes: on the clock, and of all processors."""
    used = _processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "onebit", "lab", "run", "soba", "--jobs", str(jobs)]
        start = time.perf_counter()
        subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start, _processor_seconds() - used


def _processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


def main() -> None:
    """Print both times and their ratio."""
    (one, used_one), (two, used_two) = seconds(1), seconds(2)
    print(f"1 job {one:.1f} s, 2 jobs {two:.1f} s: {two / one:.2f} times")
    print(f"processors {used_one:.1f} s and {used_two:.1f} s: {used_two / used_one:.2f} times")


if __name__ == "__main__":
    main()
