"""OneBitClassifier on columns as they come, beside the same columns prepared.

``python bench/raw.py [name ...]``. A prepared stream knows the scale of its features in advance and
has a constant; "without" is the learner with standardize=False there, "with" the default. The raw
columns are played as a dense array and as a sparse matrix, which give the same history.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp

from onebit import OneBitClassifier, play, streams

NUMERIC = [
    "vowel",
    "satimage",
    "optdigits",
    "letter",
    "shuttle",
    "dna",
    "kddcup99",
    "covtype",
    "mnist",
]
TEXTS = [
    "reuters_r8",
    "snips",
    "banking77",
    "clinc150",
    "20newsgroups",
    "ag_news",
    "amazon4",
    "rcv1",
]


def main() -> None:
    """Print the table, a stream at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*NUMERIC, *TEXTS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="at most so many of each stream")
    given = parser.parse_args()
    print(f"{'stream':<14}{'rows':>8}   prepared: without    with      raw   raw / without")
    for name in given.names:
        errors = np.array([_errors(name, seed, given.rows) for seed in range(given.seeds)])
        without, with_, raw, rows = errors.mean(axis=0)
        shown = (
            f"{100 * raw:9.2f}{raw / without:16.3f}"
            if raw
            else f"{'':9}{'':>7}{with_ / without:9.3f}"
        )
        print(f"{name:<14}{rows:8.0f}{100 * without:20.2f}{100 * with_:8.2f}{shown}", flush=True)


def _errors(name: str, seed: int, rows: int | None) -> tuple[float, float, float, int]:
    X, y = streams.load(name, seed=seed)
    X, y = X[:rows], y[:rows]
    full = X.shape[1] ** 2 * np.unique(y).size <= 200_000
    form = {"covariance": "full" if full else "diagonal", "random_state": seed}
    without = play(OneBitClassifier(standardize=False, **form), X, y).error_rate
    with_ = play(OneBitClassifier(**form), X, y).error_rate
    raw = 0.0
    if name in NUMERIC:
        X, _ = streams.load(name, seed=seed, prepared=False)
        dense = play(OneBitClassifier(**form), X[:rows], y)
        sparse = play(OneBitClassifier(**form), sp.csr_array(X[:rows]), y)
        if not np.array_equal(dense.mistakes, sparse.mistakes):
            raise AssertionError(f"dense and sparse copies of {name} have other histories")
        raw = dense.error_rate
    return without, with_, raw, y.size


if __name__ == "__main__":
    main()
