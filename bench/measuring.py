"""What a measurement is, and the machine it was made on."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

EARLY = 20_000
"""Rounds after which all tools are compared, the slow ones included."""


DISTURBED = 0.1
"""Cores used by other processes above which a measurement proves nothing.

They do not slow all tools alike: one with two threads waits for the slower of two cores.
"""


class Runs(NamedTuple):
    """The seconds of each of several runs, and the cores that other processes used meanwhile."""

    seconds: tuple[float, ...]
    others: float


@dataclass(frozen=True)
class Measured:
    """One tool on one stream: the times of its identical runs, and what came of them.

    `early_error` is the error after the first `EARLY` rounds.
    """

    tool: str
    rounds: int
    runs: Runs
    error: float | None = None
    early_error: float | None = None
    updates: int | None = None
    first_run_seconds: float | None = None

    @property
    def microseconds(self) -> float:
        """Time of a round in the fastest run.

        What else a machine does only ever adds time, so that run says most about the tool.
        """
        return 1e6 * min(self.runs.seconds) / self.rounds

    @property
    def disturbed(self) -> bool:
        """Whether other processes kept the machine busy."""
        return self.runs.others > DISTURBED

    @property
    def slowest_microseconds(self) -> float:
        """Time of a round in the slowest run."""
        return 1e6 * max(self.runs.seconds) / self.rounds


def error_rates(mistakes: np.ndarray) -> tuple[float, float | None]:
    """Return the error and the early error of a run from its mistakes, round by round."""
    early = float(np.mean(mistakes[:EARLY])) if mistakes.size >= EARLY else None
    return float(np.mean(mistakes)), early


def repeated(
    repeats: int, run: Callable[..., T], prepare: Callable[[], tuple[Any, ...]] = tuple
) -> tuple[Runs, T]:
    """Time several runs, each on what `prepare` returns, and return the result of the last."""
    seconds, others = [], 0.0
    for _ in range(repeats):
        prepared = prepare()
        busy, own, start = _busy_seconds(), time.process_time(), time.perf_counter()
        result = run(*prepared)
        seconds.append(time.perf_counter() - start)
        own = time.process_time() - own
        others += max(0.0, _busy_seconds() - busy - own)
    return Runs(tuple(seconds), others / sum(seconds)), result


def _busy_seconds() -> float:
    """Return the processor time that all processes have used; 0 where the system does not say."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *interrupts = (
        stat.read_text().split("\n", 1)[0].split()[1:9]
    )
    ticks = sum(map(int, (user, nice, system, *interrupts)))
    return ticks / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """Describe where and with what the measurements were made."""
    packages = ("onebit", "numba", "numpy", "scipy", "scikit-learn", "vowpalwabbit", "river")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
