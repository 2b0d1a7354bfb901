"""Online boosting on real streams: the tables of docs/boosting.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone

from onebit.core import Learner, play
from onebit.lab.experiment import Experiment, Section, Sweep, is_there
from onebit.lab.experiments.compare import ROWS
from onebit.lab.measures import Online
from onebit.lab.tools import ConstantLabel, Tool
from onebit.lab.trials import Trial
from onebit.learners import (
    AdaBoostOLM,
    AdaBoostOLMpp,
    BanditReduction,
    HoeffdingTree,
    OneBitClassifier,
    OnlineMBBM,
)
from onebit.learners.boosting import BoostingRegression
from onebit.streams import StreamSpec
from onebit.theory import bounds

if TYPE_CHECKING:
    import pandas as pd

STREAMS = ("letter", "satimage", "vowel", "optdigits")
ONE_BIT = ("connect4", "poker", "covtype")
N_LEARNERS = 20
FIFTH = Online(last=5)

FIRST_ROWS = {"small": 1_000, "full": 3_000}
MOST_ROWS = {"small": 2_000, "full": 100_000}
SEEDS = {"small": 2, "full": 5}
TIMES = {"small": [100, 1_000], "full": [100, 1_000, 10_000, 100_000]}

TREES = {
    "naive Bayes in leaves": HoeffdingTree(leaves="naive_bayes", max_features=0.5),
    "counts in leaves": HoeffdingTree(max_features=0.5),
    "stumps": HoeffdingTree(n_leaves=2, max_features=0.5),
}
"""Weak learners: the default one, and weaker ones."""

SINGLE = ("one", "one, all features")


def boosters(kind: str, T: int) -> dict[str, Learner]:
    """Return one weak learner of a kind, one with all features, and boosters of many."""
    tree = TREES[kind]
    found = {
        SINGLE[0]: tree,
        SINGLE[1]: clone(tree).set_params(max_features=1.0),
        "AdaBoostOLM": AdaBoostOLM(tree, N_LEARNERS),
        "AdaBoostOLMpp": AdaBoostOLMpp(tree, N_LEARNERS, T),
        "AdaBoostOLMpp, Aioli": AdaBoostOLMpp(tree, N_LEARNERS, T, "aioli"),
        "OnlineMBBM": OnlineMBBM(tree, N_LEARNERS),
    }
    return {f"{kind}: {name}": learner for name, learner in found.items()}


class River(Tool):
    """A model of River with its defaults, told every label.

    Parameters
    ----------
    model : {"tree", "ADWIN boosting", "adaptive random forest"}
    """

    package = "river"

    def __init__(self, model: str = "tree") -> None:
        self.model = model

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return the prediction for each row, before its label is told."""
        from river import ensemble, forest, tree

        make: dict[str, Callable[[], Any]] = {
            "tree": tree.HoeffdingTreeClassifier,
            "ADWIN boosting": lambda: ensemble.ADWINBoostingClassifier(
                tree.HoeffdingTreeClassifier(), n_models=N_LEARNERS, seed=seed
            ),
            "adaptive random forest": lambda: forest.ARFClassifier(n_models=N_LEARNERS, seed=seed),
        }
        model, labels = make[self.model](), np.full(y.size, -1)
        for i, (x, label) in enumerate(zip(np.asarray(X).tolist(), y.tolist(), strict=True)):
            named = dict(enumerate(x))
            predicted = model.predict_one(named)
            labels[i] = -1 if predicted is None else predicted
            model.learn_one(named, label)
        return labels


RIVER = {
    "River: one": River(),
    "River: ADWIN boosting": River("ADWIN boosting"),
    "River: adaptive random forest": River("adaptive random forest"),
}


class Stumps(Tool):
    """Stumps fitted to all rows before the last fifth, one or boosted by scikit-learn."""

    package = "scikit-learn"

    def __init__(self, n_stumps: int = 1) -> None:
        self.n_stumps = n_stumps

    def labels(self, X: Any, y: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
        """Return predictions for the last fifth; the others do not count."""
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        first, labels = FIFTH.first_counted(y.size), np.zeros(y.size, dtype=np.int64)
        model: Any = DecisionTreeClassifier(max_depth=1)
        if self.n_stumps > 1:
            model = AdaBoostClassifier(model, n_estimators=self.n_stumps, random_state=seed)
        labels[first:] = model.fit(X[:first], y[:first]).predict(X[first:])
        return labels


BATCH = {"one stump, batch": Stumps(), f"AdaBoost, {N_LEARNERS} stumps, batch": Stumps(N_LEARNERS)}


@dataclass(frozen=True)
class GreedyToo:
    """Error over the last fifth of the rounds, and that of the greedy label before them."""

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return both."""
        first = FIFTH.first_counted(y.size)
        play(learner, X[:first], y[:first])
        greedy = 1.0 - float(learner.score(X[first:], y[first:]))
        history = play(learner, X[first:], y[first:])
        return {"rounds": y.size, "error": history.error_rate, "greedy": greedy}


def told_one_bit(T: int) -> dict[str, Learner]:
    """Return boosted trees told one bit, and told every label."""
    tree = TREES["naive Bayes in leaves"]
    made = {
        "AdaBoostOLMpp": AdaBoostOLMpp(tree, N_LEARNERS, T),
        "AdaBoostOLM": AdaBoostOLM(tree, N_LEARNERS),
    }
    found: dict[str, Learner] = {
        f"BanditReduction({name}, gamma={gamma})": BanditReduction(booster, gamma=gamma)
        for name, booster in made.items()
        for gamma in (0.1, 0.3)
    }
    return {**found, "AdaBoostOLMpp, told every label": made["AdaBoostOLMpp"]}


def _calibrated(rng: np.random.Generator, T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, labels and truths that follow s + 1.3 e_l."""
    s, named = 2.0 * rng.normal(size=(T, 3)), rng.integers(3, size=T)
    scores = s + 1.3 * np.eye(3)[named]
    return s, named, np.argmax(scores + rng.gumbel(size=s.shape), axis=1)


def _confident(rng: np.random.Generator, T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores up to ln T that are right in 49 of 50 rounds, and labels that are not."""
    truth = rng.integers(3, size=T)
    seen = np.where(rng.random(T) < 0.02, rng.integers(3, size=T), truth)
    s = math.log(T) * rng.random((T, 1)) * np.eye(3)[seen]
    return s, np.where(rng.random(T) < 0.4, truth, rng.integers(3, size=T)), truth


STATIONS = {"labels of a model": _calibrated, "large scores": _confident}
"""Streams of scores, labels named and truths."""


class Regret(Trial):
    """Regret of the boosting regression over the best alpha in [-2, 2], in nats.

    Parameters
    ----------
    scores : str
        One of `STATIONS`.
    algorithm : {"folklore", "aioli"}
    T : int
        Rounds.
    """

    def __init__(
        self, scores: str = "labels of a model", algorithm: str = "folklore", T: int = 100
    ) -> None:
        self.scores = scores
        self.algorithm = algorithm
        self.T = T

    def result(self, seed: int) -> dict[str, Any]:
        """Return the regret after T rounds."""
        return {"regret": _regret(STATIONS[self.scores], self.T, self.algorithm, seed)}


def _regret(make: Callable[..., Any], T: int, algorithm: str, seed: int) -> float:
    s, named, truth = make(np.random.default_rng(seed), T)
    regression, own = BoostingRegression(T, algorithm), 0.0
    for scores, label, y in zip(s, named.tolist(), truth.tolist(), strict=True):
        own -= log_softmax(regression.predict(scores, label))[y]
        regression.update(scores, label, y)

    def theirs(alpha: float) -> float:
        return -float(log_softmax(s + alpha * np.eye(3)[named], axis=1)[np.arange(T), truth].sum())

    best = minimize_scalar(theirs, bounds=(-2.0, 2.0), method="bounded").fun
    return own - min(best, theirs(-2.0), theirs(2.0))


def _sweeps(scale: str, *, rows: int = 0) -> dict[str, Sweep]:
    """Return all tables; `rows` is the number of first rows of the streams of trees."""
    seeds, most = list(range(SEEDS[scale])), rows or FIRST_ROWS[scale]
    few = {n: StreamSpec(n, min(ROWS[n], most), prepared=False) for n in STREAMS if is_there(n)}
    wanted = {}
    for name, stream in few.items():
        trees = {
            n: some for kind in TREES for n, some in boosters(kind, stream.rounds or 0).items()
        }
        tools = {**trees, **RIVER, **BATCH}
        wanted[f"trees, {name}"] = Sweep(tools, {}, {name: stream}, seeds, FIFTH)
    for name in filter(is_there, ONE_BIT):
        T = min(ROWS[name], MOST_ROWS[scale])
        raw, prepared = {name: StreamSpec(name, T, prepared=False)}, {name: StreamSpec(name, T)}
        linear = {"OneBitClassifier": OneBitClassifier()}
        ready = {"OneBitClassifier, prepared columns": OneBitClassifier()}
        constant = {"the largest class": ConstantLabel()}
        learners = {**linear, **told_one_bit(T)}
        wanted[f"nothing, {name}"] = Sweep(constant, {}, raw, seeds)
        wanted[f"prepared, {name}"] = Sweep(ready, {}, prepared, seeds, GreedyToo())
        wanted[f"one bit, {name}"] = Sweep(learners, {}, raw, seeds, GreedyToo())
    grid: dict[str, list[Any]] = {
        "scores": [*STATIONS],
        "algorithm": ["folklore", "aioli"],
        "T": TIMES[scale],
    }
    wanted["regret"] = Sweep({"regret": Regret()}, grid, {}, seeds)
    return wanted


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    kinds: dict[str, dict[str, pd.DataFrame]] = {}
    for part, table in tables.items():
        kind, _, stream = part.partition(", ")
        kinds.setdefault(kind, {})[stream] = table
    sections = []
    if "trees" in kinds:
        sections.append(_trees(kinds["trees"]))
    if "one bit" in kinds:
        sections.append(_one_bit(kinds))
    if "regret" in tables:
        sections.append(_regrets(tables["regret"]))
    return sections


def _trees(tables: dict[str, pd.DataFrame]) -> Section:
    import pandas as pd

    columns = {stream: _cells(table) for stream, table in tables.items()}
    names = dict.fromkeys(name for cells in columns.values() for name in cells)
    rows = [[name, *(cells.get(name, "") for cells in columns.values())] for name in names]
    return Section(
        "Boosted trees",
        "Error in percent over the last fifth of the rows, mean and standard deviation over the "
        "seeds, and in brackets the microseconds of a round. A star marks a booster that is not "
        "below the better of the two single trees with all seeds.",
        tables={"error %": pd.DataFrame(rows, columns=["trees", *columns])},
    )


def _cells(table: pd.DataFrame) -> dict[str, str]:
    runs = {name: some.set_index("seed") for name, some in table.groupby("learner", sort=False)}
    cells = {}
    for name, some in runs.items():
        kind, _, which = name.partition(": ")
        errors, rounds = 100 * some.error, 5 * some.rounds
        below = ""
        if kind in TREES and which not in SINGLE:
            single = np.minimum(*(runs[f"{kind}: {one}"].error for one in SINGLE))
            below = "" if (some.error < single).all() else "*"
        time = f" ({1e6 * (some.seconds / rounds).min():,.1f})" if name not in BATCH else ""
        sd = f" ± {errors.std(ddof=1):.1f}" if len(errors) > 1 else ""
        cells[name] = f"{errors.mean():.1f}{sd}{below}{time}"
    return cells


def _one_bit(kinds: dict[str, dict[str, pd.DataFrame]]) -> Section:
    import pandas as pd

    shown: dict[str, dict[str, str]] = {}
    for kind in ("nothing", "prepared", "one bit"):
        for stream, table in kinds.get(kind, {}).items():
            for name, some in table.groupby("learner", sort=False):
                greedy = f" ({100 * some.greedy.mean():.1f})" if "greedy" in some else ""
                shown.setdefault(name, {})[stream] = f"{100 * some.error.mean():.1f}{greedy}"
    streams = list(kinds["one bit"])
    rows = [[name, *(cells.get(stream, "") for stream in streams)] for name, cells in shown.items()]
    return Section(
        "Told one bit",
        "Mean error in percent over the last fifth of the rounds, and in brackets that of the "
        "greedy label.",
        tables={"error %": pd.DataFrame(rows, columns=["learner", *streams])},
    )


def _regrets(table: pd.DataFrame) -> Section:
    import pandas as pd

    times = sorted(table["T"].unique())
    rows = []
    for (scores, algorithm), some in table.groupby(["scores", "algorithm"], sort=False):
        means = some.groupby("T").regret.mean()
        rows += _with_logs(f"{scores}, {algorithm}", [means[T] for T in times], times)
    bound = [bounds.boosting_regression(int(T)) for T in times]
    rows += _with_logs("bound, folklore", bound, times)
    return Section(
        "The boosting regression",
        "Regret over the best alpha in [-2, 2], in nats, mean over the seeds.",
        tables={"regret": pd.DataFrame(rows, columns=["T", *(f"{T:,}" for T in times)])},
    )


def _with_logs(title: str, values: list[float], times: list[int]) -> list[list[str]]:
    over = [value / math.log(T) ** 2 for value, T in zip(values, times, strict=True)]
    return [
        [title, *(f"{value:.2f}" for value in values)],
        ["over ln^2 T", *(f"{value:.2f}" for value in over)],
    ]


EXPERIMENT = Experiment(
    "boosting",
    "Online boosting",
    "No paper: docs/boosting.md.",
    [
        "Trees play the first rows of streams, columns as they are in the files; --rows 100000 "
        "plays all of them.",
        "River's models have River's defaults.",
        f"At the small scale: {FIRST_ROWS['small']:,} and {MOST_ROWS['small']:,} rows, "
        f"{SEEDS['small']} seeds.",
    ],
    _sweeps,
    _sections,
)
