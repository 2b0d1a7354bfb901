"""Regret of FOLKLORE, corrected and as printed, beside its bound: ``python bench/regret.py``.

Labels come from a logistic model; the regret is over the best weights in hindsight with rows of
length at most B, in natural units.
"""

from __future__ import annotations

import numpy as np

from onebit.learners.folklore import Folklore
from onebit.theory import best_linear, bounds, online_log_loss

TIMES = (100, 1_000, 10_000, 40_000)

STREAMS = [(2, 2, 1.0, 0.5), (3, 7, 3.0, 1.0), (5, 3, 10.0, 4.0), (20, 7, 10.0, 1.5)]
"""d, K, B and the spread of the model's weights."""


def stream(T: int, d: int, K: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit examples in all directions and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Z = X @ (spread * rng.normal(size=(d, K)))
    return X, np.argmax(Z + rng.gumbel(size=(T, K)), axis=1)


def printed_bound(T: int, d: int, K: int, B: float) -> float:
    """Return the last line of the paper's proof of Theorem 3, for R = 1."""
    return K * (2 * B + (B + np.log(K) / 2) * d * np.log1p(T))


def main() -> None:
    """Print a table for each stream."""
    for d, K, B, spread in STREAMS:
        X, y = stream(TIMES[-1], d, K, spread, seed=1)
        best = [best_linear(X[:t], y[:t], B, K, tolerance=0.1)[1] for t in TIMES]
        print(f"\nd = {d}, K = {K}, B = {B:g}")
        print(f"{'rounds':>24}" + "".join(f"{t:>10,}" for t in TIMES))
        for curvature in ("safe", "paper"):
            learner = Folklore(B, curvature=curvature, classes=range(K))
            losses = np.cumsum(online_log_loss(learner, X, y))
            regret = [losses[t - 1] - b for t, b in zip(TIMES, best, strict=True)]
            print(f"{'regret, ' + curvature:>24}" + "".join(f"{r:10.1f}" for r in regret))
        for name, bound in [("bound", bounds.folklore), ("bound, printed", printed_bound)]:
            print(f"{name:>24}" + "".join(f"{bound(t, d, K, B):10.1f}" for t in TIMES))


if __name__ == "__main__":
    main()
