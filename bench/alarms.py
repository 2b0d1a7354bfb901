"""False alarms of OneBitClassifier: changes that it notices on streams that do not change.

``python bench/alarms.py [--runs 200] [--rounds 100000]``. Runs take turns among SynSep, SynNonSep,
clouds around random centres and, where there are data, rows drawn anew from named streams.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from onebit import OneBitClassifier, play, streams

NAMED = ["letter", "satimage", "shuttle", "snips", "dna", "connect4"]


def main() -> None:
    """Print each run with an alarm, and how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=100_000)
    given = parser.parse_args()
    kinds = ["synsep", "synnonsep", "clouds", *(name for name in NAMED if _has_data(name))]
    alarmed = {name: [0, 0] for name in kinds}
    for seed in range(given.runs):
        name = kinds[seed % len(kinds)]
        X, y = stream(name, seed, given.rounds)
        learner = OneBitClassifier(classes=np.unique(y), random_state=seed)
        error = play(learner, X, y, record=False).error_rate
        alarmed[name][0] += bool(learner.changes_)
        alarmed[name][1] += 1
        if learner.changes_:
            print(f"{name}, seed {seed}, error {error:.1%}: {learner.changes_}", flush=True)
    for name, (n, runs) in alarmed.items():
        print(f"{name:<12}{n:4} of {runs} runs with an alarm")
    total = sum(n for n, _ in alarmed.values())
    print(f"{'all':<12}{total:4} of {given.runs} runs: {total / given.runs:.1%}")


def _has_data(name: str) -> bool:
    try:
        streams.load(name, seed=0)
    except FileNotFoundError:
        return False
    return True


def stream(name: str, seed: int, rounds: int) -> tuple[Any, np.ndarray]:
    """Return a stream whose rounds are independent draws from one law."""
    if name in ("synsep", "synnonsep"):
        return getattr(streams, name)(rounds, seed=seed)
    rng = np.random.default_rng(seed)
    if name != "clouds":
        X, y = streams.load(name, seed=0)
        rows = rng.integers(y.size, size=rounds)
        return X[rows], y[rows]
    K, d = int(rng.integers(2, 9)), int(rng.integers(3, 12))
    centres = rng.uniform(0.5, 2.5) * rng.normal(size=(K, d))
    y = rng.choice(K, size=rounds, p=rng.dirichlet(np.ones(K)))
    return centres[y] + rng.normal(size=(rounds, d)), y


if __name__ == "__main__":
    main()
