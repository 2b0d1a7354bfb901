"""Regret over the logarithmic loss, beside the bounds: ``python bench/regret.py``.

The regret is over the best weights in hindsight with rows of length at most B, in nats.
`OnlineGradient` and `OnlineNewton` get the ball ||W||_F <= sqrt(K) B: these weights are in it. Rows
named "tuned" are what no one could have known: in each column the least regret over a grid, of the
step or of beta and epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from onebit.core import ProbabilityLearner
from onebit.learners.folklore import Folklore
from onebit.learners.online_gradient import OnlineGradient
from onebit.learners.online_newton import OnlineNewton
from onebit.theory import best_linear, bounds, online_log_loss

TIMES = (100, 1_000, 10_000)

THETA = 0.15
"""How short most examples of the `opposed` stream are."""


def logistic(T: int, d: int, K: int, spread: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return unit examples in all directions and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Z = X @ (spread * rng.normal(size=(d, K)))
    return X, np.argmax(Z + rng.gumbel(size=(T, K)), axis=1)


def opposed(T: int, d: int, K: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream that is hard for proper learners, who choose W before they see x.

    Each feature has its label. Most examples are -theta e_j, and pull the weight of that label
    down; a few are e_j, for which a large weight costs as much as it is large: there the loss is a
    line, and its exponentially small curvature tells a proper learner nothing. They are as many as
    it takes to balance the pull, so that chance decides whether the best weights are large. It is
    in the spirit of the lower bound of Hazan, Koren and Levy (COLT 2014). An improper learner sees
    which of the two it has before it.

    With many features and classes there are too few rounds for each to make large weights worth
    while. The best weights then hardly gain on W = 0, and those who hardly move do well.
    """
    rng = np.random.default_rng(seed)
    j = rng.integers(d, size=T)
    rare = rng.random(T) < THETA * (1.0 - 1.0 / K)
    X = np.zeros((T, d))
    X[np.arange(T), j] = np.where(rare, 1.0, -THETA)
    return X, j % K


STREAMS: list[tuple[str, int, int, float, Callable[..., tuple[np.ndarray, np.ndarray]]]] = [
    ("labels of a logistic model", 2, 2, 1.0, partial(logistic, spread=0.5)),
    ("labels of a logistic model", 2, 2, 10.0, partial(logistic, spread=7.0)),
    ("labels of a logistic model", 3, 7, 3.0, partial(logistic, spread=1.0)),
    ("labels of a logistic model", 5, 3, 10.0, partial(logistic, spread=4.0)),
    ("labels of a logistic model", 20, 7, 10.0, partial(logistic, spread=1.5)),
    ("opposed", 1, 2, 10.0, opposed),
    ("opposed", 10, 2, 10.0, opposed),
    ("opposed", 20, 7, 10.0, opposed),
]
"""Name, d, K, B and the stream."""


def printed_bound(T: int, d: int, K: int, B: float) -> float:
    """Return the last line of FOLKLORE's proof of Theorem 3 as printed, for R = 1."""
    return K * (2 * B + (B + math.log(K) / 2) * d * math.log1p(T))


def learners(K: int, B: float) -> dict[str, list[ProbabilityLearner]]:
    """Return the learners of each row: one, or all of a grid."""
    D = math.sqrt(K) * B
    steps = (0.3, 1.0, 3.0, 10.0)
    curvatures = [(beta, epsilon) for beta in (0.1, 0.3, 1.0) for epsilon in (0.1, 1.0, 10.0)]
    return {
        "Folklore": [Folklore(B)],
        "Folklore as printed": [Folklore(B, curvature="paper")],
        "OnlineGradient": [OnlineGradient(D)],
        # eta_t = sqrt(2) D / (R sqrt(t)): a max_norm R gives any multiple of 1 / sqrt(t).
        "OnlineGradient, tuned": [OnlineGradient(D, math.sqrt(2.0) * D / eta) for eta in steps],
        "ONS": [OnlineNewton("ons", D)],
        "ONS, tuned": [OnlineNewton("ons", D, beta=b, epsilon=e) for b, e in curvatures],
        "FTAL": [OnlineNewton("ftal", D)],
        "FTAL, tuned": [OnlineNewton("ftal", D, beta=b, epsilon=e) for b, e in curvatures],
    }


def row(name: str, values: Iterable[float]) -> None:
    """Print a row of the table."""
    numbers = [f"{value:12.1f}" if value < 1e6 else f"{value:12.1e}" for value in values]
    print(f"{name:>28}" + "".join(numbers))


def main() -> None:
    """Print a table for each stream."""
    for name, d, K, B, stream in STREAMS:
        X, y = stream(TIMES[-1], d, K)
        best = np.array(
            [best_linear(X[:t], y[:t], radius=B, norm="rows", classes=range(K)).loss for t in TIMES]
        )
        print(f"\n{name}: d = {d}, K = {K}, B = {B:g}")
        print(f"{'rounds':>28}" + "".join(f"{t:12,}" for t in TIMES))
        row("loss of the best weights", best)
        for title, some in learners(K, B).items():
            losses = [online_log_loss(one.set_params(classes=range(K)), X, y) for one in some]
            totals = np.cumsum(losses, axis=1)[:, np.array(TIMES) - 1]
            row(title, totals.min(axis=0) - best)
        D = math.sqrt(K) * B
        row("bound of Folklore", [bounds.folklore(t, d, K, B) for t in TIMES])
        row("the same as printed", [printed_bound(t, d, K, B) for t in TIMES])
        row("bound of OnlineGradient", [bounds.online_gradient(t, D) for t in TIMES])
        row("bound of ONS and FTAL", [bounds.online_newton(t, d, K, D) for t in TIMES])


if __name__ == "__main__":
    main()
