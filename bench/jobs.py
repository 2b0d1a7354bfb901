"""How much less time a sweep takes with two processes than with one: ``python bench/jobs.py``.

The sweep is that of the SOBA paper at the small scale, streams included; each time a new process
begins with nothing but compiled code.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time


def seconds(jobs: int) -> float:
    """Return what `onebit lab run soba` takes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "onebit", "lab", "run", "soba", "--jobs", str(jobs)]
        start = time.perf_counter()
        subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def main() -> None:
    """Print both times and their ratio."""
    one, two = seconds(1), seconds(2)
    print(f"1 job {one:.1f} s, 2 jobs {two:.1f} s: {two / one:.2f} times")


if __name__ == "__main__":
    main()
