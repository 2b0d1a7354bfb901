"""Time of a round of OneBitClassifier with many labels, from the first round on.

``python bench/many_labels.py``: 20 words of 10,000 an example, the label that of its first word.
SOBA, which does not integrate, is beside it. Times are those of the processor, the least of three
runs: what else a machine does only ever adds to them.
"""

from __future__ import annotations

from time import process_time

import numpy as np
import scipy.sparse as sp

from onebit import SOBA, OneBitClassifier, play

WORDS, LENGTH = 10_000, 20
ROUNDS = {100: 10_000, 1_000: 6_000, 10_000: 1_000}
RUNS = 3


def main() -> None:
    """Print microseconds a round in each third of the rounds."""
    print(f"{'labels':>7}{'rounds':>8}  microseconds a round, by thirds")
    for n_labels, rounds in ROUNDS.items():
        rng = np.random.default_rng(0)
        words = rng.integers(WORDS, size=(rounds, LENGTH))
        starts = np.arange(0, words.size + 1, LENGTH)
        X = sp.csr_array((np.ones(words.size), words.ravel(), starts), shape=(rounds, WORDS))
        y = words[:, 0] % n_labels
        X.sum_duplicates()
        for cls in (OneBitClassifier, SOBA):
            play(cls(classes=range(n_labels), random_state=0), X[:20], y[:20])  # compiles
            times = np.full(3, np.inf)
            for _ in range(RUNS):
                learner = cls(classes=range(n_labels), random_state=0)
                learner.decide(X[:1])  # makes the state, which takes time once
                for i, part in enumerate(np.array_split(np.arange(rounds), 3)):
                    start = process_time()
                    play(learner, X[part[0] : part[-1] + 1], y[part])
                    times[i] = min(times[i], 1e6 * (process_time() - start) / part.size)
            shown = "".join(f"{time:10.1f}" for time in times)
            print(f"{n_labels:7,}{rounds:8,}{shown}  {cls.__name__}", flush=True)


if __name__ == "__main__":
    main()
