"""Time of a round, and memory, of OneBitClassifier with embeddings and descriptions of labels.

``python bench/embeddings.py``: 768 columns of unit length in single precision, 77 labels. Times are
those of the processor, the least of three runs: what else a machine does only ever adds to them.
Memory is the most that was allocated while the stream was played, that of the learner included and
that of the stream not.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from onebit import OneBitClassifier, play

FEATURES, LABELS, ROUNDS = 768, 77, 8_000
BATCH = 500
RUNS = 3


def stream(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return unit vectors around one of each label, their labels, and those of the labels."""
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(LABELS, FEATURES))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    y = rng.integers(LABELS, size=ROUNDS)
    X = D[y] + 3.6 / np.sqrt(FEATURES) * rng.normal(size=(ROUNDS, FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(np.float32), y, D


def in_batches(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rounds in batches."""
    for i in range(0, y.size, BATCH):
        yield X[i : i + BATCH], y[i : i + BATCH]


def main() -> None:
    """Print the time of a round, the error and the memory, without descriptions and with them."""
    X, y, D = stream(0)
    print(f"{FEATURES} columns, {LABELS} labels, {ROUNDS:,} rounds, X has {X.nbytes / 1e6:.0f} MB")
    for described in (False, True):

        def new(described: bool = described) -> Any:
            learner = OneBitClassifier(classes=range(LABELS), random_state=0)
            if described:
                learner.describe(dict(enumerate(D)))
            return learner

        play(new(), X[:20], y[:20])  # compiles
        times, error = [], 0.0
        for _ in range(RUNS):
            learner, start = new(), process_time()
            error = play(learner, X, y).error_rate
            times.append(1e6 * (process_time() - start) / ROUNDS)
        most = []
        for whole in (True, False):
            tracemalloc.start()
            if whole:
                play(new(), X, y)
            else:
                play(new(), in_batches(X, y))
            most.append(tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.stop()
        told = "described" if described else "no descriptions"
        print(
            f"{told:>15}: {min(times):.1f} microseconds a round, error {error:.1%}; "
            f"{most[0]:.0f} MB, in batches of {BATCH} {most[1]:.0f} MB"
        )


if __name__ == "__main__":
    main()
