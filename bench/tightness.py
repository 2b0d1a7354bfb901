"""How tight the bounds are: ``python bench/tightness.py [rounds]``.

For each learner with a bound, on three streams of two labels and unit examples: its regret over the
best weights in hindsight, the regret that its theorem allows, and their ratio. Means over five
seeds. The parameters are those of the theorems, for so many rounds. A ratio above one would be a
contradiction; a negative regret means that the learner did better than the comparator's loss.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from sklearn.base import clone

from onebit import play, theory
from onebit.core import Learner
from onebit.learners import (
    AROW,
    SOBA,
    Aioli,
    BanditEG,
    BanditReduction,
    Banditron,
    ExpConcaveReduction,
    Folklore,
    Gaptron,
    Newtron,
    OnlineGradient,
    OnlineNewton,
    PassiveAggressive,
    Perceptron,
    SecondOrderPerceptron,
)
from onebit.theory import bounds

D, N_FEATURES, SEEDS = 1.5, 3, 5
"""Length of the comparators, features, runs."""


def streams(T: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the three: separable, noisy, and labels that have nothing to do with the examples."""
    rng = np.random.default_rng(0)
    # One feature tells the label, with a margin; the others mean nothing.
    clean = rng.integers(2, size=T)
    X = rng.normal(size=(T, N_FEATURES))
    X[:, 0] = 0.0
    X *= 0.5 / np.linalg.norm(X, axis=1, keepdims=True)
    X[:, 0] = math.sqrt(0.75) * (2 * clean - 1)
    noisy = np.where(rng.random(T) < 0.2, 1 - clean, clean)
    return {
        "separable": (X, clean),
        "20 % wrong": (X, noisy),
        "any label": (X, rng.integers(2, size=T)),
    }


def learners(T: int) -> dict[str, Learner]:
    """Return all of them, tuned as their theorems say."""
    gamma = min(0.5, (N_FEATURES * 4 * math.log(T) / T) ** 0.5)
    beta = bounds.newtron_beta(2, 1.0, D, 1.0, gamma)
    proven: dict[str, Any] = {"eta": "theory", "gamma": "theory"}
    return {
        "Perceptron": Perceptron(),
        "SecondOrderPerceptron (full)": SecondOrderPerceptron(covariance="full"),
        "AROW (full)": AROW(covariance="full"),
        "PassiveAggressive (PA-I)": PassiveAggressive(C=0.1),
        "Gaptron (hinge, full)": Gaptron("hinge", feedback="full", radius=D),
        "Gaptron (logistic, full)": Gaptron("logistic", feedback="full", radius=D),
        "Gaptron (smooth hinge, full)": Gaptron("smooth_hinge", feedback="full", radius=D),
        "Folklore": Folklore(B=D),
        "Aioli": Aioli(B=2 * D),
        "OnlineGradient": OnlineGradient(radius=D),
        "OnlineNewton": OnlineNewton(radius=D),
        "Banditron": Banditron(gamma=min(0.5, (4 / T) ** (1 / 3))),
        "BanditEG": BanditEG(eta=0.01, gamma=0.1),
        "SOBA (full)": SOBA(gamma=gamma, covariance="full"),
        "SOBA (full, adaptive)": SOBA(gamma="adaptive", covariance="full"),
        "ExpConcaveReduction": ExpConcaveReduction(radius=D, horizon=T),
        "Newtron (full)": Newtron(gamma, alpha=1.0, beta=beta, D=D, covariance="full"),
        "Gaptron (hinge)": Gaptron("hinge", radius=D, horizon=T, **proven),
        "Gaptron (logistic)": Gaptron("logistic", radius=D, horizon=T, **proven),
        "Gaptron (smooth hinge)": Gaptron("smooth_hinge", radius=D, horizon=T, **proven),
        "BanditReduction (Folklore)": BanditReduction(Folklore(B=D), horizon=T),
    }


def main(rounds: str = "10000") -> None:
    """Print the table."""
    T = int(rounds)
    print(f"{T:,} rounds, two labels, {N_FEATURES} features; regret / bound on the regret\n")
    print("| learner | " + " | ".join(streams(T)) + " |")
    print("| --- | --- | --- | --- |")
    for name, learner in learners(T).items():
        cells = []
        for X, y in streams(T).values():
            runs = SEEDS if learner.bound.measure == "mistakes" and name[-5:] != "full)" else 1
            some = [clone(learner).set_params(random_state=s, classes=[0, 1]) for s in range(runs)]
            histories = [play(one, X, y) for one in some]
            fixed = learner.bound._ball is not None
            seen = theory.regret(histories, some[0], X, y, radius=None if fixed else D)
            allowed = seen.bound[-1] - seen.loss[-1]
            ratio = f": {seen.tightness:.2f}" if seen.regret[-1] > 0 else ""
            cells.append(f"{seen.regret[-1]:,.0f} of {allowed:,.0f}{ratio}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
