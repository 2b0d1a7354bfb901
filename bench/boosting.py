"""Online boosting on real streams: the tables of docs/boosting.md.

``python bench/boosting.py error`` prints the error over the last fifth of the rows, of boosters,
of one weak learner and of River's ensembles, with the time of a round; ``regret`` prints the regret
of the boosting regression; ``bit`` the error of boosted trees told one bit, beside
`OneBitClassifier`; ``speed`` the time of a round with compiled trees, and with River's in the same
booster; ``batch`` the error of one stump and of as many boosted by scikit-learn, which sees all
rows at once. Columns are those of `onebit.streams.load`, as they are in the files; ONEBIT_DATA
names their folder.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone

from onebit import (
    AdaBoostOLM,
    AdaBoostOLMpp,
    BanditReduction,
    HoeffdingTree,
    Learner,
    OneBitClassifier,
    OnlineMBBM,
    play,
    streams,
)
from onebit.learners.boosting import BoostingRegression
from onebit.learners.boosting.booster import Booster
from onebit.theory import bounds

STREAMS = ("letter", "satimage", "vowel", "optdigits")
N_LEARNERS = 20

TREES = {
    "naive Bayes in leaves": HoeffdingTree(leaves="naive_bayes", max_features=0.5),
    "counts in leaves": HoeffdingTree(max_features=0.5),
    "stumps": HoeffdingTree(n_leaves=2, max_features=0.5),
}
"""Weak learners: the default one, and weaker ones."""


def boosters(tree: HoeffdingTree, T: int) -> dict[str, Callable[[int], Learner]]:
    """Return one weak learner, one with all features, and the boosters, as functions of a seed."""
    whole = clone(tree).set_params(max_features=1.0)
    return {
        "one weak learner": lambda seed: clone(tree).set_params(random_state=seed),
        "one weak learner, all features": lambda seed: clone(whole),
        "AdaBoostOLM": lambda seed: AdaBoostOLM(tree, N_LEARNERS, random_state=seed),
        "AdaBoostOLMpp": lambda seed: AdaBoostOLMpp(tree, N_LEARNERS, T, random_state=seed),
        "AdaBoostOLMpp, Aioli": lambda seed: AdaBoostOLMpp(
            tree, N_LEARNERS, T, "aioli", random_state=seed
        ),
        "OnlineMBBM": lambda seed: OnlineMBBM(tree, N_LEARNERS, random_state=seed),
    }


def rivers() -> dict[str, Callable[[int], Any]]:
    """Return River's ensembles, with as many of River's own trees, as functions of a seed."""
    from river import ensemble, forest, tree

    return {
        "River Hoeffding tree, alone": lambda seed: tree.HoeffdingTreeClassifier(),
        "River ADWIN boosting": lambda seed: ensemble.ADWINBoostingClassifier(
            tree.HoeffdingTreeClassifier(), n_models=N_LEARNERS, seed=seed
        ),
        "River adaptive random forest": lambda seed: forest.ARFClassifier(
            n_models=N_LEARNERS, seed=seed
        ),
    }


def mistakes_of_river(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Let a model of River predict and learn, row by row."""
    wrong = np.empty(y.size, dtype=bool)
    for i, (x, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        named = dict(enumerate(x))
        wrong[i] = model.predict_one(named) != label
        model.learn_one(named, label)
    return wrong


def rows(name: str, seed: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of a stream in the order of a seed."""
    X, y = streams.load(name, seed=seed, prepared=False)
    return X[:most], y[:most]


def error(names: Iterable[str], seeds: int, most: int, only: str, weak: Iterable[str]) -> None:
    """Print mean and spread of the error over the last fifth, and the time of a round.

    Of boosters, also for how many seeds it is below that of the better of the single ones; of a
    tree of River, how many leaves it has in the end.
    """
    for name in names:
        T = rows(name, 0, most)[1].size
        print(f"\n{name}, {T:,} rows, {seeds} seeds: error % in the last fifth, and µs a round")
        for kind in weak if only != "river" else ():
            print(f"  {kind}")
            single = np.ones(seeds)
            for title, make in boosters(TREES[kind], T).items():
                if only == "one" and not title.startswith("one"):
                    continue
                runs = [timed(play_all, make(s), *rows(name, s, most)) for s in range(seeds)]
                errors = np.array([run[0] for run in runs])
                if title.startswith("one"):
                    single = np.minimum(single, errors)
                    line(title, runs)
                else:
                    line(title, runs, f"   below one in {(errors < single).sum()} of {seeds}")
        for title, make in rivers().items() if only in ("", "river") else ():
            models = [make(s) for s in range(seeds)]
            runs = [
                timed(mistakes_of_river, model, *rows(name, s, most))
                for s, model in enumerate(models)
            ]
            leaves = [model.n_leaves for model in models if hasattr(model, "n_leaves")]
            line(title, runs, f"   leaves: {max(leaves)}" if leaves else "")


def batch(names: Iterable[str], seeds: int, most: int) -> None:
    """Print the error over the last fifth of stumps fitted to all rows before it."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    print(f"\nstumps fitted to all rows before the last fifth, {seeds} seeds: its error %")
    for name in names:
        errors = []
        for seed in range(seeds):
            X, y = rows(name, seed, most)
            last, stump = y.size // 5, DecisionTreeClassifier(max_depth=1)
            boosted = AdaBoostClassifier(stump, n_estimators=N_LEARNERS, random_state=seed)
            models = (model.fit(X[:-last], y[:-last]) for model in (stump, boosted))
            errors.append([1.0 - model.score(X[-last:], y[-last:]) for model in models])
        one, many = 100 * np.mean(errors, axis=0)
        print(f"    {name:<12} one {one:6.1f}    AdaBoost, {N_LEARNERS} {many:6.1f}", flush=True)


def play_all(learner: Learner, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Play a stream, and return the mistakes; what compiles has been compiled before."""
    return play(learner, X, y).mistakes


def timed(run: Callable[..., np.ndarray], model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Return the error over the last fifth, and the microseconds of a round."""
    if isinstance(model, Learner):
        warm = type(model)(**model.get_params(deep=False)).set_params(classes=np.unique(y))
        play(warm, X[:10], y[:10])
    start = time.process_time()
    wrong = run(model, X, y)
    seconds = time.process_time() - start
    return float(wrong[-(y.size // 5) :].mean()), 1e6 * seconds / y.size


def line(title: str, runs: list[tuple[float, float]], note: str = "") -> None:
    """Print a row of the table."""
    errors, times = (np.array(column) for column in zip(*runs, strict=True))
    spread = f"± {100 * errors.std(ddof=1):4.1f}" if errors.size > 1 else ""
    shown = f"{100 * errors.mean():6.1f} {spread}{times.min():12.1f}{note}"
    print(f"    {title:<32}{shown}", flush=True)


def bit(names: Iterable[str], seeds: int, most: int) -> None:
    """Print the error of boosted trees told one bit, beside `OneBitClassifier`."""
    for name in names:
        _, y = rows(name, 0, most)
        print(
            f"\n{name}, {y.size:,} rounds, one bit each, {seeds} seeds: error % in the last fifth"
        )
        counts = np.unique(y, return_counts=True)[1]
        print(f"    {'the largest class':<48}{100 * (1 - counts.max() / y.size):6.1f}")
        contenders: dict[str, Callable[[int], Learner]] = {
            "OneBitClassifier": _linear,
            "OneBitClassifier, prepared columns": _linear,
            **{
                f"BanditReduction({cls.__name__}, gamma={gamma})": partial(
                    _boosted, cls, y.size, gamma
                )
                for cls in (AdaBoostOLMpp, AdaBoostOLM)
                for gamma in (0.1, 0.3)
            },
            "AdaBoostOLMpp, told every label": partial(_boosted, AdaBoostOLMpp, y.size, None),
        }
        for title, make in contenders.items():
            errors, greedy = [], []
            for seed in range(seeds):
                X, y = streams.load(name, seed=seed, prepared="prepared" in title)
                X, y = X[:most], y[:most]
                learner, last = make(seed).set_params(classes=np.unique(y)), y.size // 5
                play(learner, X[:-last], y[:-last])
                greedy.append(1.0 - learner.score(X[-last:], y[-last:]))
                errors.append(play(learner, X[-last:], y[-last:]).error_rate)
            spread = f"± {100 * np.std(errors, ddof=1):4.1f}" if seeds > 1 else ""
            shown = (
                f"{100 * np.mean(errors):6.1f} {spread}   greedy label {100 * np.mean(greedy):6.1f}"
            )
            print(f"    {title:<48}{shown}", flush=True)


def _linear(seed: int) -> Learner:
    return OneBitClassifier(random_state=seed)


def _boosted(cls: type[Booster], T: int, gamma: float | None, seed: int) -> Learner:
    """Return boosted trees told one bit, or every label."""
    booster = cls(TREES["naive Bayes in leaves"], N_LEARNERS, random_state=seed)
    if isinstance(booster, AdaBoostOLMpp):
        booster.set_params(horizon=T)
    if gamma is None:
        return booster
    return BanditReduction(booster, gamma=gamma, random_state=seed)


def regret(seeds: int) -> None:
    """Print the regret of the boosting regression over the best alpha in [-2, 2], in nats."""
    times = (100, 1_000, 10_000, 100_000)
    print(f"\n{'rounds':>28}" + "".join(f"{t:>12,}" for t in times))
    for title, make in STATIONS.items():
        for algorithm in ("folklore", "aioli"):
            totals = [
                float(np.mean([_regret(make, T, algorithm, s) for s in range(seeds)]))
                for T in times
            ]
            show(f"{title}, {algorithm}", totals)
            show("over ln^2 T", [r / math.log(T) ** 2 for r, T in zip(totals, times, strict=True)])
    show("bound, folklore", [bounds.boosting_regression(T) for T in times])
    show("over ln^2 T", [bounds.boosting_regression(T) / math.log(T) ** 2 for T in times])


def show(title: str, values: Iterable[float]) -> None:
    """Print a row of numbers."""
    print(f"{title:>28}" + "".join(f"{value:12.2f}" for value in values), flush=True)


def _calibrated(rng: np.random.Generator, T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, labels and truths that follow s + 1.3 e_l."""
    s, named = 2.0 * rng.normal(size=(T, 3)), rng.integers(3, size=T)
    scores = s + 1.3 * np.eye(3)[named]
    return s, named, np.argmax(scores + rng.gumbel(size=s.shape), axis=1)


def _confident(rng: np.random.Generator, T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores as large as ln T that are right, but for one of 50, and labels that are not."""
    truth = rng.integers(3, size=T)
    seen = np.where(rng.random(T) < 0.02, rng.integers(3, size=T), truth)
    s = math.log(T) * rng.random((T, 1)) * np.eye(3)[seen]
    return s, np.where(rng.random(T) < 0.4, truth, rng.integers(3, size=T)), truth


STATIONS = {"labels of a model": _calibrated, "large scores": _confident}
"""Streams of scores, labels named and truths."""


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


def speed(most: int) -> None:
    """Print the rounds a second of one booster, with compiled trees and with those of River."""
    from river import tree

    X, y = rows("optdigits", 0, most)
    kinds = {
        "HoeffdingTree": HoeffdingTree(leaves="naive_bayes"),
        "HoeffdingTree, half of the features": HoeffdingTree(
            leaves="naive_bayes", max_features=0.5
        ),
        "River HoeffdingTreeClassifier": tree.HoeffdingTreeClassifier(),
    }
    print(f"\nAdaBoostOLMpp with {N_LEARNERS} weak learners, optdigits (10 classes, 64 features)")
    for title, weak in kinds.items():
        foreign = title.startswith("River")
        n = min(y.size, 300) if foreign else y.size
        booster = AdaBoostOLMpp(weak, N_LEARNERS, random_state=0)
        _, microseconds = timed(play_all, booster, X[:n], y[:n])
        print(f"    {title:<40}{1e6 / microseconds:10,.0f} rounds a second ({n:,})", flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table", choices=["error", "batch", "regret", "bit", "speed"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=100_000, help="at most so many of each stream")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=["one", "onebit", "river", ""], default="")
    parser.add_argument("--weak", choices=TREES, nargs="*", default=list(TREES))
    given = parser.parse_args()
    if given.table == "error":
        error(given.names or STREAMS, given.seeds, given.rows, given.only, given.weak)
    elif given.table == "batch":
        batch(given.names or STREAMS, given.seeds, given.rows)
    elif given.table == "regret":
        regret(given.seeds)
    elif given.table == "bit":
        bit(given.names or ("connect4", "poker", "covtype"), given.seeds, given.rows)
    else:
        speed(given.rows)


if __name__ == "__main__":
    main()
