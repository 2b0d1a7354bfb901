"""Runs of other tools on the named streams, which come with the package.

They are determined by the version and the seed, and take hours, so a comparison reads them from
here. Each line of the file is a tool on a stream, with the number of mistakes for each seed.
"""

from __future__ import annotations

import csv
import io
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from onebit.core.replacing import replace_file

PATH = Path(__file__).parent / "rivals.csv"

SEEDS = 5


class Runs(NamedTuple):
    """What is run: a tool on the first `rows` rows of a stream, of which the last ones count.

    change: that of the stream; feedback: when it comes; counted: the rounds whose mistakes are
    counted.
    """

    stream: str
    change: str
    feedback: str
    rows: int
    counted: int
    tool: str


class Kept:
    """The file, rewritten after each run, so that nothing is lost."""

    def __init__(self, path: Path = PATH) -> None:
        self.path = path
        self.read()

    def read(self) -> None:
        """Read the file, which another process may have added to."""
        self.versions: dict[Runs, str] = {}
        self.mistakes: dict[Runs, dict[int, int]] = {}
        if not self.path.exists():
            return
        with self.path.open(newline="") as file:
            for row in csv.DictReader(file):
                runs = Runs(
                    row["stream"],
                    row["change"],
                    row["feedback"],
                    int(row["rows"]),
                    int(row["counted"]),
                    row["tool"],
                )
                self.versions[runs] = row["version"]
                self.mistakes[runs] = {
                    seed: int(row[f"seed {seed}"]) for seed in range(SEEDS) if row[f"seed {seed}"]
                }

    def has(self, runs: Runs, seed: int, version: str) -> bool:
        """Tell whether there is a run with that seed by that version."""
        return self.versions.get(runs) == version and seed in self.mistakes[runs]

    def add(self, runs: Runs, version: str, seed: int, mistakes: int) -> None:
        """Add a run; runs by another version are dropped."""
        self.read()
        if self.versions.get(runs) != version:
            self.versions[runs], self.mistakes[runs] = version, {}
        self.mistakes[runs][seed] = mistakes
        self._write()

    def _write(self) -> None:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Runs._fields, "version", *(f"seed {s}" for s in range(SEEDS))])
        for runs in sorted(self.mistakes):
            found = self.mistakes[runs]
            numbers = (found.get(seed, "") for seed in range(SEEDS))
            writer.writerow([*runs, self.versions[runs], *numbers])
        replace_file(self.path, file.getvalue().encode())

    def errors(self, runs: Runs, most: int) -> list[float]:
        """Return the errors in percent with seeds 0, 1, ..., up to the first that is missing."""
        found = self.mistakes.get(runs, {})
        seeds = takewhile(lambda seed: seed in found, range(most))
        return [100.0 * found[seed] / runs.counted for seed in seeds]
