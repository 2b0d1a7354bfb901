"""Estimates from logs of real streams, compared with the truth."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from onebit.core import Learner, play
from onebit.evaluation import Log, estimate
from onebit.evaluation.estimators import FIRST_BLOCK
from onebit.evaluation.models import Softmax
from onebit.lab.experiment import Experiment, Section, Sweep, is_there
from onebit.lab.trials import Trial
from onebit.learners import SOBA, Banditron, OneBitClassifier, Perceptron
from onebit.streams import load

if TYPE_CHECKING:
    import pandas as pd

STREAMS = ("satimage", "letter", "20newsgroups", "mnist")
UNCOVERED = "letter"
MOST_ROWS = 6_000
"""Of a stream."""

RUNS = {"small": {"streams": 3, "models": 2, "uncovered": 3}}
RUNS["full"] = {"streams": 100, "models": 20, "uncovered": 10}

JUDGED: dict[str, Learner] = {
    "OneBitClassifier": OneBitClassifier(),
    "OneBitClassifier, explore=1": OneBitClassifier(explore=1.0),
    "SOBA": SOBA(),
    "Banditron": Banditron(),
    "Perceptron": Perceptron(),
}
"""Learners that are judged by a log that another one wrote."""

WITHOUT_MODEL = ("SOBA", "Banditron", "Perceptron")


class Judged(Trial):
    """A learner trained on a third of a stream, judged by a log of the rest.

    OneBitClassifier writes the log.

    Parameters
    ----------
    stream : str
    policy : str
        One of `JUDGED`.
    least : float
        The least probability of a label in the log.
    """

    def __init__(
        self, stream: str = UNCOVERED, policy: str = "OneBitClassifier", least: float = 0.01
    ) -> None:
        self.stream = stream
        self.policy = policy
        self.least = least

    def logged(self, seed: int) -> tuple[Log, np.ndarray, Learner, np.ndarray]:
        """Return a log, the truth of its rows as positions, the learner, and the labels."""
        log, X, y, classes = written(self.stream, self.least, seed)
        first = y.size - len(log)
        learner = clone(JUDGED[self.policy]).set_params(classes=classes, random_state=seed)
        play(learner, X[:first], y[:first], record=False)
        return log, np.searchsorted(classes, y[first:]), learner, classes


@lru_cache(maxsize=1)  # one log judges several learners
def written(stream: str, least: float, seed: int) -> tuple[Log, Any, np.ndarray, np.ndarray]:
    """Return a log of two thirds of a stream, all rows, and the labels there are."""
    X, y = load(stream, order="natural")
    taken = np.random.default_rng(seed).permutation(y.size)[:MOST_ROWS]
    X, y, log = X[taken], y[taken], Log()
    classes, first = np.unique(y), y.size // 3
    writer = OneBitClassifier(min_probability=least, classes=classes, random_state=seed + 1)
    play(writer, X[first:], y[first:], record=False, log=log)
    return log, X, y, classes


class Held(Judged):
    """Whether intervals hold the accuracy, doubly robust and by weights alone."""

    def result(self, seed: int) -> dict[str, Any]:
        """Return accuracy, whether each interval holds it, and widths."""
        log, truth, learner, _ = self.logged(seed)
        accuracy = float(learner.policy(log.x)[np.arange(truth.size), truth].mean())
        found: dict[str, Any] = {"rounds": len(log), "accuracy": accuracy}
        for method in ("dr", "ips"):
            one = estimate(log, learner, method)
            found[f"{method} holds"] = float(one.low <= accuracy <= one.high)
            found[f"{method} width"] = one.high - one.low
        return found


class Widths(Judged):
    """Widths of intervals with different models."""

    def result(self, seed: int) -> dict[str, Any]:
        """Return the width by weights alone, doubly robust, and with the model of MRDR."""
        log, _, learner, _ = self.logged(seed)
        of_mrdr = predictions_of_mrdr(log, learner.policy(log.x))
        found = {
            "ips": estimate(log, learner, "ips"),
            "dr": estimate(log, learner, "dr"),
            "dr, weights of MRDR": estimate(log, learner, "dr", model=of_mrdr),
        }
        return {name: one.high - one.low for name, one in found.items()}


def predictions_of_mrdr(log: Log, p: np.ndarray) -> np.ndarray:
    """Return what a model says of each row before its bit, trained for the least variance of dr.

    More robust doubly robust (Farajtabar, Chow and Ghavamzadeh 2018): an example has the weight
    policy^2 (1 - probability) / probability^2.
    """
    policy, logged = p[np.arange(len(log)), log.labels], log.probabilities
    weights = policy**2 * (1.0 - logged) / logged**2
    assert log.x is not None
    model, q = Softmax(log.x.shape[1], log.classes.size), np.empty(p.shape)
    lo, size = 0, FIRST_BLOCK
    while lo < len(log):
        some = slice(lo, lo + size)
        q[some] = model.predict(log[some])
        model.learn(log[some], weights[some])
        lo, size = lo + size, 2 * size
    return q


class Uncovered(Judged):
    """A greedy policy judged by a log that does not choose all labels."""

    def result(self, seed: int) -> dict[str, Any]:
        """Return the truth, a mean of weighted bits with a normal interval, and the estimate."""
        log, truth, learner, classes = self.logged(seed)
        greedy = learner.predict(log.x)
        weights = (greedy == classes[log.labels]) / log.probabilities
        values = weights * log.correct
        one = estimate(log, learner, greedy=True)
        return {
            "truth": float((greedy == classes[truth]).mean()),
            "mean": float(values.mean()),
            "width": float(1.96 * values.std() / np.sqrt(values.size)),
            "value": one.value if one.is_covered else None,
            "low": one.low,
            "high": one.high,
            "covered": one.covered,
        }


def _sweeps(scale: str) -> dict[str, Sweep]:
    seeds = {part: list(range(n)) for part, n in RUNS[scale].items()}
    there = [name for name in STREAMS if is_there(name)]
    if not there:
        return {}
    judged, few = {"policy": [*JUDGED]}, {"policy": [*WITHOUT_MODEL]}
    wanted = {
        "streams": Sweep({"held": Held()}, {"stream": there, **judged}, {}, seeds["streams"]),
        "models": Sweep({"widths": Widths()}, {"stream": there, **few}, {}, seeds["models"]),
    }
    if UNCOVERED in there:
        trial = {"uncovered": Uncovered(least=0.0)}
        wanted["uncovered"] = Sweep(trial, {}, {}, seeds["uncovered"])
    return wanted


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    sections = [_on_streams(tables["streams"]), _models(tables["models"])]
    return sections + [_uncovered(tables["uncovered"])] * ("uncovered" in tables)


def _by_policy(table: pd.DataFrame, columns: list[str]) -> Any:
    return table.groupby(["stream", "policy"], sort=False)[columns].mean().reset_index()


def _on_streams(table: pd.DataFrame) -> Section:
    columns = ["rounds", "accuracy", "dr holds", "dr width", "ips holds", "ips width"]
    means = _by_policy(table, columns)
    for name in ("accuracy", "dr holds", "ips holds"):
        means[name] = (100 * means[name]).map("{:.1f}".format)
    for name in ("dr width", "ips width"):
        means[name] = means[name].map("{:.3f}".format)
    named = {"rounds": "rows", "accuracy": "accuracy %"}
    named |= {f"{method} holds": f"{method} holds %" for method in ("dr", "ips")}
    return Section(
        "Logs of real streams",
        f"{table.seed.nunique()} runs each, 95 % intervals.",
        tables={"coverage": means.astype({"rounds": int}).rename(columns=named)},
    )


def _models(table: pd.DataFrame) -> Section:
    means = _by_policy(table, ["ips", "dr", "dr, weights of MRDR"]).round(3)
    return Section(
        "Models",
        f"{table.seed.nunique()} runs each, mean widths of 95 % intervals.",
        tables={"widths": means},
    )


def _uncovered(table: pd.DataFrame) -> Section:
    import pandas as pd

    rows, held, by_hand = [], 0, 0
    for run in table.itertuples():
        held += run.low <= run.truth <= run.high
        by_hand += abs(run.mean - run.truth) <= run.width
        said = "" if pd.isna(run.value) else f"{run.value:.3f}, "
        bounds = f"{said}{run.low:.3f} to {run.high:.3f}"
        weighted = f"{run.mean:.3f} ± {run.width:.3f}"
        rows.append([run.seed, f"{run.truth:.3f}", weighted, bounds, f"{run.covered:.1%}"])
    rows.append(["holds", "", f"{by_hand} of {len(table)}", f"{held} of {len(table)}", ""])
    columns = ["seed", "truth", "weights by hand", "estimate", "covered"]
    return Section(
        "A log that does not choose all labels",
        f"{UNCOVERED}: OneBitClassifier judged, greedy; the log has no least probability.",
        tables={"estimates": pd.DataFrame(rows, columns=columns)},
    )


EXPERIMENT = Experiment(
    "logs",
    "Estimates from logs of real streams",
    "No paper: docs/evaluation.md.",
    ["At the small scale: a few runs."],
    _sweeps,
    _sections,
)
