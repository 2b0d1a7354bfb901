"""Speed over time: the time of a round beside one of NumPy in the same run, by version.

``python bench/speed.py`` prints the ratios of this checkout beside those that speed.csv has;
``--check`` also returns 1 if one is more than `SLOWER` times the last one there; ``--append`` adds
them to the file, which is done for every release and for every change that is about speed.

Machines differ, and other processes take turns with this one: a ratio of processor times, runs of
both in turn and the smallest of each, depends little on either. The rival is Banditron as one would
write it in NumPy, in one thread; Vowpal Wabbit, whose parser has a thread of its own, took 2.5 to
3.7 microseconds in runs of a minute on a busy machine, where the rival stayed within 1 %. asv would
serve one machine that does nothing else: it keeps absolute times, and builds an environment for
each commit.
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import onebit
from onebit import SOBA, Banditron, OneBitClassifier, play, streams

PATH = Path(__file__).parent / "speed.csv"

COLUMNS = ("version", "date", "figure", "ratio", "microseconds", "rival", "rival_microseconds")

RIVAL = "Banditron in NumPy"
RIVAL_ROUNDS = 2_000
ROUNDS = 20_000
ONLINE_ROUNDS = 1_000
FEATURES, CLASSES = 10, 5

SLOWER = 1.1
"""Between two runs of one version ratios differ by less, on a machine that does much else."""


def figures() -> dict[str, tuple[int, Callable[[], Any]]]:
    """Return what is timed, with the number of rounds; each function plays them once."""
    X, y = streams.synsep(ROUNDS)
    rng = np.random.default_rng(0)
    few = rng.normal(size=(ROUNDS, FEATURES))
    labels = (few @ rng.normal(size=(FEATURES, CLASSES))).argmax(axis=1)

    def played(cls: Any, rows: Any, truth: np.ndarray) -> Callable[[], Any]:
        return lambda: play(cls(classes=np.unique(truth), random_state=0), rows, truth)

    def one_by_one() -> None:
        learner = OneBitClassifier(classes=range(CLASSES), random_state=0)
        for x, truth in zip(few[:ONLINE_ROUNDS], labels[:ONLINE_ROUNDS].tolist(), strict=True):
            decision = learner.decide(x)
            learner.learn(decision, correct=decision.label == truth)

    return {
        "Banditron, SynSep": (ROUNDS, played(Banditron, X, y)),
        "SOBA, SynSep": (ROUNDS, played(SOBA, X, y)),
        "OneBitClassifier, SynSep": (ROUNDS, played(OneBitClassifier, X, y)),
        "OneBitClassifier, ten columns": (ROUNDS, played(OneBitClassifier, few, labels)),
        "OneBitClassifier, decide and learn": (ONLINE_ROUNDS, one_by_one),
    }


def measured(turns: int) -> list[dict[str, str]]:
    """Return a row for each figure: the least processor time of a round, beside the rival's."""
    wanted = figures()
    for _, run in wanted.values():
        run()  # compiles
    least = dict.fromkeys([*wanted, RIVAL], float("inf"))
    X, y = streams.synsep(RIVAL_ROUNDS)
    rows, n_classes = X.toarray(), streams.N_CLASSES_OF["synsep"]
    import rivals  # which needs other tools

    rival = (RIVAL_ROUNDS, lambda: rivals.numpy_banditron(rows, y, n_classes, 0.01, repeats=1))
    for _ in range(turns):
        for name, (n, run) in {**wanted, RIVAL: rival}.items():
            start = time.process_time()
            run()
            least[name] = min(least[name], 1e6 * (time.process_time() - start) / n)
    return [
        {
            "version": onebit.__version__,
            "date": datetime.now(UTC).date().isoformat(),
            "figure": name,
            "ratio": f"{least[name] / least[RIVAL]:.4g}",
            "microseconds": f"{least[name]:.3g}",
            "rival": f"{RIVAL} {np.__version__}, Python {platform.python_version()}",
            "rival_microseconds": f"{least[RIVAL]:.2f}",
        }
        for name in wanted
    ]


def kept(path: Path) -> list[dict[str, str]]:
    """Return the rows of the file, the oldest first."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def slower(found: Sequence[dict[str, str]], before: Sequence[dict[str, str]]) -> list[str]:
    """Return the figures whose ratio is more than `SLOWER` times the last one that was kept."""
    last = {row["figure"]: float(row["ratio"]) for row in before}
    return [
        row["figure"]
        for row in found
        if float(row["ratio"]) > SLOWER * last.get(row["figure"], float("inf"))
    ]


def append(found: Sequence[dict[str, str]], path: Path) -> None:
    """Add rows to the file."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a figure that is checked has become slower."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=9, help="runs of each, of which one counts")
    parser.add_argument("--check", action="store_true", help="return 1 if one is slower")
    parser.add_argument("--append", action="store_true", help=f"add the ratios to {PATH.name}")
    options = parser.parse_args(arguments)
    before, found = kept(PATH), measured(options.turns)
    print(f"times of a round over those of {RIVAL}, in the same run")
    for row in [*before, *found]:
        when = f"{row['version']}, {row['date']}" if row in before else "now"
        print(f"{row['figure']:<36}{when:<26}{row['ratio']:>8}{row['microseconds']:>10} µs")
    for name in (worse := slower(found, before)):
        print(f"slower than the last version by more than {SLOWER - 1:.0%}: {name}")
    if options.append:
        append(found, PATH)
    return int(options.check and bool(worse))


if __name__ == "__main__":
    sys.exit(main())
