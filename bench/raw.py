"""OneBitClassifier on columns as they come, beside the same columns prepared.

``python bench/raw.py [name ...]``. A prepared stream knows the scale of its features in advance and
has a constant; "without" is the learner with standardize=False there, "with" the default. The raw
columns are played as a dense array and as a sparse matrix, which give the same history.

``python bench/raw.py small``: accuracy in cross-validation over 20 shuffles of scikit-learn's iris,
wine and breast cancer, raw, and scaled with a constant.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

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
    if given.names == ["small"]:
        _show_small()
        return
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


def _show_small(shuffles: int = 20) -> None:
    print(f"{'data':<14}{'scaled':>8}{'raw':>8}   raw - scaled, with its standard error")
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        scaled = np.c_[StandardScaler().fit_transform(X), np.ones(y.size)]
        found = np.zeros((shuffles, 2))
        for seed in range(shuffles):
            order = np.random.default_rng(seed).permutation(y.size)
            for column, (rows, standardize) in enumerate(((scaled, False), (X, True))):
                learner = OneBitClassifier(standardize=standardize, random_state=seed)
                found[seed, column] = 100 * cross_val_score(learner, rows[order], y[order]).mean()
        difference = found[:, 1] - found[:, 0]
        se = difference.std(ddof=1) / np.sqrt(shuffles)
        name = load.__name__.removeprefix("load_")
        means = "".join(f"{mean:8.2f}" for mean in found.mean(axis=0))
        print(f"{name:<14}{means}{difference.mean():+8.2f} ±{se:.2f}", flush=True)


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
