"""How tight the bounds are: regret against what each learner's theorem allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import Learner
from onebit.lab.experiment import Experiment, Finding, Section, Sweep
from onebit.lab.measures import RegretAndBound
from onebit.learners import (
    AROW,
    SOBA,
    Aioli,
    BanditEG,
    BanditReduction,
    Banditron,
    ExpConcaveReduction,
    FenchelYoung,
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

if TYPE_CHECKING:
    import pandas as pd

D, N_FEATURES, SEEDS = 1.5, 3, 5
"""Norm of the comparators, features, runs of each learner that is told one bit."""

ROUNDS = {"small": 3_000, "full": 10_000}


def streams(T: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the three streams: separable, noisy, and with labels independent of the examples."""
    rng = np.random.default_rng(0)
    # One feature determines the label, with a margin; the others are noise.
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


TOLD: dict[str, Learner] = {
    "Perceptron": Perceptron(),
    "SecondOrderPerceptron (full)": SecondOrderPerceptron(covariance="full"),
    "AROW (full)": AROW(covariance="full"),
    "PassiveAggressive (PA-I)": PassiveAggressive(C=0.1),
    "Gaptron (hinge), told": Gaptron("hinge", feedback="full", radius=D),
    "Gaptron (logistic), told": Gaptron("logistic", feedback="full", radius=D),
    "Gaptron (smooth hinge), told": Gaptron("smooth_hinge", feedback="full", radius=D),
    "FenchelYoung, told": FenchelYoung("full"),
    "Folklore": Folklore(B=D),
    "Folklore (lookahead)": Folklore(B=D, lookahead=True),
    "Aioli": Aioli(B=2 * D),
    "OnlineGradient": OnlineGradient(radius=D),
    "OnlineNewton": OnlineNewton(radius=D),
}
"""With full information."""


def one_bit(T: int) -> dict[str, Learner]:
    """Return the learners that are told one bit, tuned as their theorems say."""
    gamma = min(0.5, (N_FEATURES * 4 * math.log(T) / T) ** 0.5)
    beta = bounds.newtron_beta(2, 1.0, D, 1.0, gamma)
    proven: dict[str, Any] = {"eta": "theory", "gamma": "theory"}
    return {
        "Banditron": Banditron(gamma=min(0.5, (4 / T) ** (1 / 3))),
        "BanditEG": BanditEG(eta=0.01, gamma=0.1),
        "SOBA (full)": SOBA(gamma=gamma, covariance="full"),
        "SOBA (full, adaptive)": SOBA(gamma="adaptive", covariance="full"),
        "ExpConcaveReduction": ExpConcaveReduction(radius=D, horizon=T),
        "Newtron (full)": Newtron(gamma, alpha=1.0, beta=beta, D=D, covariance="full"),
        "Gaptron (hinge)": Gaptron("hinge", radius=D, horizon=T, **proven),
        "Gaptron (logistic)": Gaptron("logistic", radius=D, horizon=T, **proven),
        "Gaptron (smooth hinge)": Gaptron("smooth_hinge", radius=D, horizon=T, **proven),
        "FenchelYoung": FenchelYoung(radius=D, horizon=T),
        "BanditReduction (Folklore)": BanditReduction(Folklore(B=D), horizon=T),
    }


def _sweeps(scale: str) -> dict[str, Sweep]:
    T, measure = ROUNDS[scale], RegretAndBound(D)
    return {
        "told": Sweep(TOLD, {}, streams(T), [0], measure),
        "one_bit": Sweep(one_bit(T), {}, streams(T), list(range(SEEDS)), measure),
    }


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    of = ["learner", "stream"]
    means = pd.concat(tables.values()).groupby(of, sort=False)[["regret", "allowed"]].mean()
    cells = pd.Series([_cell(*pair) for pair in means.itertuples(index=False)], means.index)
    ratios = (means.regret / means.allowed)[means.regret > 0]
    worst = ratios.idxmax()
    shown = cells.unstack(sort=False).reset_index()
    return [
        Section(
            f"{ROUNDS[scale]:,} rounds, two labels, {N_FEATURES} features",
            "Regret of the regret that is allowed, and where it is positive their ratio. Negative "
            "regret means that the learner did better than the comparator's loss.",
            tables={"regret of what is allowed": shown.rename_axis(columns=None)},
            findings=[
                Finding(
                    "No learner has more regret than its theorem allows.",
                    bool((means.regret <= means.allowed).all()),
                    f"at most {ratios[worst]:.2f} times as much: {', '.join(worst)}",
                )
            ],
        )
    ]


def _cell(regret: float, allowed: float) -> str:
    ratio = f": {regret / allowed:.2f}" if regret > 0 else ""
    return f"{regret:,.0f} of {allowed:,.0f}{ratio}"


EXPERIMENT = Experiment(
    "bounds",
    "How tight the bounds are",
    "No paper: the theorems of all that have one.",
    [
        "Streams are ours: two labels, examples of unit length.",
        "Parameters are those of the theorems, for the number of rounds that are played.",
        f"Learners that are told one bit have {SEEDS} seeds, of which the means are shown; those "
        "with full information have one.",
        "At the small scale: 3,000 rounds.",
    ],
    _sweeps,
    _sections,
)
