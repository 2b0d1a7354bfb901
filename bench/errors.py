"""Error of the learners on SynSep and SynNonSep over several seeds: mean and spread.

Run by ``make errors``. Each seed draws the stream and the learner's exploration anew.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from onebit import SOBA, Banditron, Learner, Perceptron, play, streams

CHECKPOINTS = [1_000, 10_000, 100_000, 300_000, 1_000_000]

LEARNERS: dict[str, Learner] = {
    "Perceptron": Perceptron(),
    "Banditron 0.014": Banditron(gamma=0.014),
    "Banditron 2^-7": Banditron(gamma=2**-7),
    "SOBA 0.01": SOBA(gamma=0.01),
    "SOBA 2^-7": SOBA(gamma=2**-7),
}


def errors(learner: Learner, stream: str, rounds: int, seed: int) -> list[float]:
    """Return the error in percent up to each checkpoint."""
    X, y = getattr(streams, stream)(rounds, seed=seed)
    fresh = type(learner)(**{**learner.get_params(), "random_state": seed})
    mistakes = np.cumsum(play(fresh, X, y).mistakes)
    return [100 * mistakes[t - 1] / t for t in CHECKPOINTS if t <= rounds]


def _short(t: int) -> str:
    return f"{t // 1_000_000}M" if t >= 1_000_000 else f"{t // 1000}k"


def main() -> None:
    """Print a table for each stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console()
    results: dict[str, dict[str, list[list[float]]]] = {}
    for stream in ("synsep", "synnonsep"):
        shown = [t for t in CHECKPOINTS if t <= options.rounds]
        table = Table(
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            title=f"{stream}: error % up to a round, mean and sd of {options.seeds} seeds",
        )
        table.add_column("learner", no_wrap=True)
        for t in shown:
            table.add_column(_short(t), justify="right", no_wrap=True)
        results[stream] = {}
        for name, learner in LEARNERS.items():
            with console.status(f"{stream}: {name}"):
                runs = [
                    errors(learner, stream, options.rounds, seed) for seed in range(options.seeds)
                ]
            results[stream][name] = runs
            mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1)
            table.add_row(name, *(f"{m:.2g} ±{s:.2g}" for m, s in zip(mean, spread, strict=True)))
        console.print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
