"""Whether intervals hold what they promise, in simulated logs whose truth is known.

Contexts, labels that are right with known probabilities, and a logging policy that changes halfway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.evaluation import Log, check_probabilities
from onebit.evaluation.estimators import Sums
from onebit.evaluation.intervals import BETS, LowerBound, log_prior_anytime
from onebit.lab.experiment import Experiment, Finding, Section, Sweep
from onebit.lab.trials import Trial

if TYPE_CHECKING:
    import pandas as pd

CONTEXTS, LABELS, FLOOR, LEVEL = 6, 5, 0.02, 0.95
ROWS = [100, 500, 1000]
METHODS = ("ips", "dr")

LOGS = {"small": 100, "full": 2000}
"""Of each size; a tenth of it for wrong probabilities."""


@dataclass
class World:
    """Contexts, how probably each label is right in each, and two logging policies."""

    right: np.ndarray
    logging: np.ndarray
    """(2, n_contexts, n_labels): of the first half of a log, and of the second."""

    @classmethod
    def make(cls, seed: int = 0, *, covered: bool = True) -> World:
        """Return a world; if it is not covered, one label is never chosen in half of it."""
        rng = np.random.default_rng(seed)
        right = rng.dirichlet(np.full(LABELS, 0.3), size=CONTEXTS)
        sharp = rng.dirichlet(np.full(LABELS, 0.2), size=(2, CONTEXTS))
        logging = FLOOR + (1.0 - LABELS * FLOOR) * sharp
        if not covered:
            logging[:, : CONTEXTS // 2, -1] = 0.0
            logging /= logging.sum(axis=-1, keepdims=True)
        return cls(right, logging)

    def log(self, n: int, rng: np.random.Generator) -> Log:
        """Return a log of n decisions."""
        contexts = rng.integers(CONTEXTS, size=n)
        h = self.logging[(np.arange(n) >= n // 2).astype(int), contexts]
        labels = drawn(h, rng)
        p = h[np.arange(n), labels]
        correct = labels == drawn(self.right[contexts], rng)
        least = h.min(axis=1)
        x = np.eye(CONTEXTS)[contexts]
        return Log(labels, p, correct, x=x, classes=range(LABELS), least=least)

    def policies(self) -> dict[str, Any]:
        """Return the policies to be judged, each as a table (n_contexts, n_labels)."""
        best = np.eye(LABELS)[self.right.argmax(axis=1)]
        return {
            "what was chosen": None,
            "uniform": np.full((CONTEXTS, LABELS), 1.0 / LABELS),
            "always the last": np.tile(np.eye(LABELS)[-1], (CONTEXTS, 1)),
            "the best": best,
        }

    def accuracy(self, policy: Any, log: Log) -> np.ndarray:
        """Return the probability, in each row, that the policy is right."""
        contexts = np.asarray(log.x).argmax(axis=1)
        if policy is None:
            chosen = self.logging[(np.arange(len(log)) >= len(log) // 2).astype(int), contexts]
        else:
            chosen = policy[contexts]
        return (chosen * self.right[contexts]).sum(axis=1)


def drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a label for each row of probabilities."""
    return (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)


class Recorded(LowerBound):
    """A bound that remembers what each row gained, to look at it at all times."""

    def __init__(self) -> None:
        super().__init__()
        self.gained: list[np.ndarray] = []

    def update(self, values: Any) -> None:
        """Take more values."""
        found = np.asarray(values, dtype=np.float64)
        # Of values that are the same for all bets, each bet is there twice, and both are the same.
        bets = BETS if found.ndim == 2 else BETS[: BETS.size // 2]
        gained = np.log1p(found.reshape(len(found), -1) * bets)
        self.gained.append(gained)
        self.log_capital += np.resize(gained.sum(axis=0), BETS.size)
        self.n += len(found)

    def ever_refutes(self, means: np.ndarray, alpha: float) -> bool:
        """Return whether the mean so far was below the bound at some time."""
        n = np.arange(1, means.size + 1)[:, None]
        so_far = means.cumsum()[:, None] / n
        gained, bets, prior = np.concatenate(self.gained), BETS, log_prior_anytime()
        if gained.shape[1] < BETS.size:
            bets, prior = BETS[: BETS.size // 2], prior[: BETS.size // 2] + np.log(2.0)
        logs = prior + gained.cumsum(axis=0) - n * np.log1p(bets * so_far)
        highest, needed = logs.max(axis=1), -np.log(alpha)
        near = highest > needed - np.log(bets.size)  # else all bets together do not reach it
        total = highest[near] + np.log(np.exp(logs[near] - highest[near, None]).sum(axis=1))
        return bool((total > needed).any())


@dataclass
class Outcome:
    """Of one log: whether both kinds of intervals held, the width, and if there was a number."""

    fixed: bool
    anytime: bool
    width: float
    number: bool


def judge(
    log: Log, policy: Any, accuracy: np.ndarray, method: str, level: float = LEVEL
) -> Outcome:
    """Return what comes of estimating a policy's accuracy."""
    function = None if policy is None else (lambda x: policy[x.argmax(axis=1)])
    sums = Sums(function, method, greedy=False, model=None, clip=100.0)
    right = sums.known.right = Recorded()
    wrong = sums.known.wrong = Recorded()
    sums.take(log)
    found, alpha = sums.estimate(level, anytime=False), 0.5 * (1.0 - level)
    held = not right.ever_refutes(accuracy, alpha) and not wrong.ever_refutes(1 - accuracy, alpha)
    inside = found.low <= accuracy.mean() <= found.high
    return Outcome(bool(inside), held, found.high - found.low, found.is_covered)


class Coverage(Trial):
    """How often intervals hold the accuracy of policies.

    Parameters
    ----------
    rows : int
        Of each log.
    covered : bool
        Whether the logging policy chooses every label everywhere.
    logs : int
    """

    def __init__(self, rows: int = 100, covered: bool = True, logs: int = 100) -> None:
        self.rows = rows
        self.covered = covered
        self.logs = logs

    def outcomes(self, seed: int) -> dict[tuple[str, str], list[Outcome]]:
        """Return what came of each log, by policy and method."""
        world = World.make(covered=self.covered)
        policies = world.policies()
        if not self.covered:
            policies = {"badly covered": policies["always the last"]}
        rng = np.random.default_rng(seed)
        found: dict[tuple[str, str], list[Outcome]] = {}
        for _ in range(self.logs):
            log = world.log(self.rows, rng)
            for name, policy in policies.items():
                accuracy = world.accuracy(policy, log)
                for method in METHODS if policy is not None else ("ips",):
                    one = judge(log, policy, accuracy, method)
                    found.setdefault((name, method), []).append(one)
        return found

    def result(self, seed: int) -> dict[str, Any]:
        """Return the shares of intervals that hold, and mean widths."""
        found = self.outcomes(seed)
        parts = ("fixed", "anytime", "width", "number")
        means = {
            part: [float(np.mean([getattr(one, part) for one in some])) for some in found.values()]
            for part in parts
        }
        return {"policies": [p for p, _ in found], "methods": [m for _, m in found], **means}


CLAIMS = {
    "true": lambda p: p,
    "half as sure": lambda p: 0.5 * p + 0.5 / LABELS,
    "uniform": lambda p: np.full(p.size, 1.0 / LABELS),
    "all 1": lambda p: np.ones(p.size),
}
"""What a log says of the probabilities that were true."""


class Noticed(Trial):
    """How often wrong probabilities of a log are noticed.

    Parameters
    ----------
    claim : str
        What the log says, one of `CLAIMS`.
    rows, logs : int
    """

    def __init__(self, claim: str = "true", rows: int = 300, logs: int = 10) -> None:
        self.claim = claim
        self.rows = rows
        self.logs = logs

    def result(self, seed: int) -> dict[str, Any]:
        """Return the share of logs."""
        world, rng, found = World.make(), np.random.default_rng(seed), 0
        for _ in range(self.logs):
            log = world.log(self.rows, rng)
            p = CLAIMS[self.claim](log.probabilities)
            wrong = Log(log.labels, p, log.correct, least=np.minimum(log.least, p.min()))
            found += not check_probabilities(wrong).passed
        return {"noticed": found / self.logs}


def _sweeps(scale: str) -> dict[str, Sweep]:
    logs = LOGS[scale]
    coverage = {"intervals": Coverage(logs=logs)}
    noticed = {"claims": Noticed(logs=max(logs // 10, 10))}
    return {
        "coverage": Sweep(coverage, {"rows": ROWS, "covered": [True, False]}, {}, [0]),
        "noticed": Sweep(noticed, {"claim": [*CLAIMS], "rows": [300, 3000]}, {}, [1]),
    }


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    columns = ["policies", "methods", "fixed", "anytime", "width", "number"]
    found = tables["coverage"][["rows", *columns]].explode(columns, ignore_index=True)
    least = found[["fixed", "anytime"]].astype(float).min(axis=None)
    shown = pd.DataFrame(
        {
            "policy": found.policies,
            "rows": found.rows,
            "method": found.methods,
            "fixed holds %": [f"{100 * value:.2f}" for value in found.fixed],
            "at all times %": [f"{100 * value:.2f}" for value in found.anytime],
            "mean width": [f"{value:.3f}" for value in found.width],
            "a number %": [f"{100 * value:.0f}" for value in found.number],
        }
    )
    noticed = tables["noticed"].pivot(index="claim", columns="rows", values="noticed")
    by_claim = [[n, *(f"{100 * value:.1f}" for value in noticed.loc[n])] for n in CLAIMS]
    titles = ["the log says", *(f"noticed %, {rows:,} rows" for rows in noticed.columns)]
    return [
        Section(
            "Intervals of simulated logs",
            f"{LOGS[scale]:,} logs of each size; how often the {LEVEL:.0%} interval holds the "
            "policy's accuracy on the log's examples, and the interval for all times at every row "
            "of the run; its mean width, and how often there was a number, not bounds alone.",
            tables={"coverage": shown},
            findings=[
                Finding(
                    f"Intervals hold at least as often as they promise, {LEVEL:.0%} (a claim of "
                    "ours).",
                    bool(least >= LEVEL),
                    f"the least of all: {100 * least:.2f} %",
                )
            ],
        ),
        Section(
            "Wrong probabilities",
            "How often it is noticed that the probabilities in a log are wrong.",
            tables={"noticed": pd.DataFrame(by_claim, columns=titles)},
        ),
    ]


EXPERIMENT = Experiment(
    "intervals",
    "Whether intervals hold what they promise",
    "No paper: docs/evaluation.md.",
    [f"At the small scale: {LOGS['small']} logs."],
    _sweeps,
    _sections,
)
