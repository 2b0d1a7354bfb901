"""The same rounds through other tools: Vowpal Wabbit, River, NumPy by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from river import linear_model
from scipy.linalg.blas import dger
from vowpalwabbit import Workspace

from measuring import EARLY, Measured, error_rates, repeated

VOWPAL_WABBIT = ("--epsilon 0.02", "--squarecb", "--bag 5")
"""Its ways to explore. The first is the one that others are compared with."""


VW_BITS = 18
"""Its table of weights has 2^18 places unless it is told otherwise."""


def write_vw_cache(
    folder: Path, X: Any, y: np.ndarray, n_classes: int, bits: int = VW_BITS
) -> Path:
    """Write a stream as Vowpal Wabbit's binary cache, the fastest that it can read.

    Features get names that are no numbers: it takes numbers for places in its table of weights,
    and under its bandit reductions those of different classes then collide. The cache holds places
    in a table of 2^bits, so a run over it must have as many.
    """
    text, cache = folder / "rounds.txt", folder / "rounds.cache"
    with text.open("w") as file:
        for label, features in zip((y + 1).tolist(), _vw_features(X), strict=True):
            file.write(f"{label} | {features}\n")
    arguments = ["--cbify", str(n_classes), "-b", str(bits), "--data", str(text)]
    Workspace(arg_list=[*arguments, "--cache_file", str(cache), "--quiet"]).finish()
    text.unlink()  # so that a timed run can only read the cache
    return cache


def _vw_features(X: Any) -> Iterator[str]:
    """Yield the features of each row."""
    X = sp.csr_array(X)
    words = [f"f{j}:%.6g" for j in range(X.shape[1])]
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        yield " ".join([words[j] for j in X.indices[row]]) % tuple(X.data[row].tolist())


def run_vowpal_wabbit(
    arguments: str,
    cache: Path,
    n: int,
    *,
    bits: int = VW_BITS,
    seed: int = 0,
    predictions: Path | None = None,
) -> float:
    """Run over the first `n` cached rounds; return the share of them with a wrong label.

    The loss that it sums is 0 or 1 for the label that it chose, exploration included. The
    constant feature that it adds by default stays. The labels chosen can be written to a file.
    """
    command = [*arguments.split(), "--quiet", "-b", str(bits), "--random_seed", str(seed)]
    command += ["--cache_file", str(cache), "--passes", "1", "--examples", str(n)]
    command += [] if predictions is None else ["--predictions", str(predictions)]
    workspace = Workspace(arg_list=command)
    rounds, loss = int(workspace.get_weighted_examples()), workspace.get_sum_loss()
    workspace.finish()
    if rounds != n:
        raise RuntimeError(f"Vowpal Wabbit read {rounds} rounds of {n}")
    return loss / rounds


def vowpal_wabbit(
    exploration: str, cache: Path, n_classes: int, n: int, repeats: int, bits: int = VW_BITS
) -> Measured:
    """Time a whole run over `n` cached rounds, from the making of the workspace to its end.

    Its parser runs in a thread of its own.
    """

    def run(rounds: int = n) -> float:
        return run_vowpal_wabbit(f"--cbify {n_classes} {exploration}", cache, rounds, bits=bits)

    runs, error = repeated(repeats, run)
    return Measured(f"VW {exploration}", n, runs, error, run(EARLY) if n >= EARLY else None)


def river(X: sp.csr_array, y: np.ndarray, n_classes: int, repeats: int) -> Measured:
    """Time epsilon-greedy over one logistic regression a label; the rows are dicts beforehand."""
    rows = [
        dict.fromkeys(X.indices[lo:hi].tolist(), 1.0)
        for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]

    def run() -> np.ndarray:
        models = [linear_model.LogisticRegression() for _ in range(n_classes)]
        rng = random.Random(0)
        mistakes = np.zeros(y.size, dtype=bool)
        for i, (x, truth) in enumerate(zip(rows, y.tolist(), strict=True)):
            if rng.random() < 0.02:
                label = rng.randrange(n_classes)
            else:
                chances = [model.predict_proba_one(x)[True] for model in models]
                label = chances.index(max(chances))
            mistakes[i] = label != truth
            models[label].learn_one(x, label == truth)
        return mistakes

    runs, mistakes = repeated(repeats, run)
    return Measured("River, epsilon 0.02", y.size, runs, *error_rates(mistakes))


def numpy_banditron(
    X: np.ndarray, y: np.ndarray, n_classes: int, gamma: float, repeats: int
) -> Measured:
    """Time Banditron, transcribed from its paper, on dense rows."""

    def run() -> np.ndarray:
        rng = np.random.default_rng(0)
        W = np.zeros((n_classes, X.shape[1]))
        mistakes = np.zeros(y.size, dtype=bool)
        for t, (x, truth) in enumerate(zip(X, y, strict=True)):
            y_hat = np.argmax(W @ x)
            p = np.full(n_classes, gamma / n_classes)
            p[y_hat] += 1.0 - gamma
            y_tilde = rng.choice(n_classes, p=p)
            W[y_hat] -= x
            if y_tilde == truth:
                W[y_tilde] += x / p[y_tilde]
            mistakes[t] = y_tilde != truth
        return mistakes

    runs, mistakes = repeated(repeats, run)
    return Measured("NumPy Banditron, dense", y.size, runs, *error_rates(mistakes))


def _subtract_outer(A_inv: np.ndarray, v: np.ndarray, weight: float) -> None:
    A_inv -= np.outer(weight * v, v)


def _subtract_in_place(A_inv: np.ndarray, v: np.ndarray, weight: float) -> None:
    # BLAS wants columns, and the transpose of a symmetric matrix is the matrix.
    dger(-weight, v, v, a=A_inv.T, overwrite_a=1)


RANK_ONE: dict[str, Callable[[np.ndarray, np.ndarray, float], Any]] = {
    "NumPy, np.outer": _subtract_outer,
    "NumPy, BLAS dger": _subtract_in_place,
}
"""Ways to do A^{-1} -= weight v v'. The first is the one that onebit is compared with."""


def numpy_soba(
    tool: str,
    X: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    gamma: float,
    a: float,
    repeats: int,
) -> Measured:
    """Time SOBA, transcribed from Algorithm 1 with the Sherman-Morrison formula, on dense rows."""
    subtract = RANK_ONE[tool]
    n_features = X.shape[1]

    def run() -> tuple[np.ndarray, int]:
        rng = np.random.default_rng(0)
        mistakes = np.zeros(y.size, dtype=bool)
        A_inv = np.eye(n_classes * n_features) / a
        theta = np.zeros(n_classes * n_features)
        W = np.zeros_like(theta)
        margins, updates = 0.0, 0
        for t, (x, truth) in enumerate(zip(X, y, strict=True)):
            scores = W.reshape(n_classes, n_features) @ x
            p = np.full(n_classes, gamma / n_classes)
            p[np.argmax(scores)] += 1.0 - gamma
            label = rng.choice(n_classes, p=p)
            mistakes[t] = label != truth
            if label != truth:
                continue
            scores[label] = -np.inf
            y_bar = np.argmax(scores)
            z = np.zeros((n_classes, n_features))
            z[y_bar], z[label] = x, -x
            g = z.reshape(-1) / p[label]
            z = z.reshape(-1) / np.sqrt(p[label])
            v = A_inv @ z
            q = z @ v
            m = ((W @ z) ** 2 + 2.0 * W @ g) / (1.0 + q)
            if margins + m < 0.0:
                continue
            margins += m
            updates += 1
            subtract(A_inv, v, 1.0 / (1.0 + q))
            theta -= g
            W = A_inv @ theta
        return mistakes, updates

    runs, (mistakes, updates) = repeated(repeats, run)
    return Measured(tool, y.size, runs, *error_rates(mistakes), updates=updates)


def numpy_inverse_updates(
    tool: str, X: np.ndarray, n_classes: int, repeats: int
) -> tuple[Measured, float]:
    """Time A += z z' for one z a row, each a rank-one rewrite of the inverse."""
    subtract = RANK_ONE[tool]
    n_features = X.shape[1]

    def run(A_inv: np.ndarray) -> float:
        total = 0.0
        for i, x in enumerate(X):
            z = np.zeros((n_features, n_classes))
            z[:, i % n_classes], z[:, (i + 1) % n_classes] = x, -x
            v = A_inv @ z.reshape(-1)
            q = float(z.reshape(-1) @ v)
            subtract(A_inv, v, 1.0 / (1.0 + q))
            total += q
        return total

    runs, total = repeated(repeats, run, lambda: (np.eye(n_features * n_classes),))
    return Measured(tool, X.shape[0], runs), total
