"""Limits on exploration, worth and cost: whether limits hold, what they cost, and what logs say.

Streams are played with a limit on the share of decisions that explore, in any 1,000 of them. And in
the contexts of `intervals`, a learner with worth and a limit decides; its log is asked how accurate
other policies would have been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.core import play
from onebit.core.terms import WINDOW
from onebit.evaluation import Log
from onebit.lab.experiment import Experiment, Finding, Section, Sweep
from onebit.lab.experiments.intervals import (
    CONTEXTS,
    FLOOR,
    LABELS,
    LEVEL,
    METHODS,
    World,
    drawn,
    judge,
)
from onebit.lab.trials import Trial
from onebit.learners import Banditron, OneBitClassifier
from onebit.streams import swapped, synnonsep, synsep

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = {"small": 5_000, "full": 1_000_000}
LOGS = {"small": 20, "full": 500}
ROWS = 1_000
SHARES = (None, 0.05, 0.01, 0.001)
STREAMS = ("SynSep", "SynNonSep", "SynNonSep, features swapped")
LEARNERS = {"OneBitClassifier": OneBitClassifier(), "Banditron": Banditron(gamma=0.1)}

WORTH = {0: 2.0, 1: 0.5}
"""Of labels in the contexts; the others are worth 1."""

MAX_EXPLORATION = 0.2
"""In the contexts."""


class Limited(Trial):
    """Mistakes and explored decisions of a learner with a limit.

    Parameters
    ----------
    name : str
        One of `LEARNERS`.
    stream : str
        One of `STREAMS`.
    rounds : int
    share : float or None
        The limit.
    """

    def __init__(
        self,
        name: str = "Banditron",
        stream: str = "SynSep",
        rounds: int = 5_000,
        share: float | None = None,
    ) -> None:
        self.name = name
        self.stream = stream
        self.rounds = rounds
        self.share = share

    def result(self, seed: int) -> dict[str, Any]:
        """Return the mistakes, the explored decisions and the most of them in a window."""
        X, y = (synsep if self.stream == "SynSep" else synnonsep)(self.rounds, seed=seed)
        if self.stream.endswith("swapped"):
            X, y = swapped(X, y, at=self.rounds // 2, seed=seed)
        learner = LEARNERS[self.name].__class__(**LEARNERS[self.name].get_params())
        learner.set_params(classes=range(9), random_state=seed)
        history = play(learner.set_limits(max_exploration=self.share), X, y)
        total = np.concatenate([[0], np.cumsum(history.explored)])
        return {
            "mistakes": history.n_mistakes,
            "explored": history.n_explored,
            "most": int((total[WINDOW:] - total[:-WINDOW]).max()),
        }


class Covered(Trial):
    """How often intervals hold the accuracy of policies, by logs of a learner with terms.

    Parameters
    ----------
    rows : int
        Of each log.
    logs : int
    """

    def __init__(self, rows: int = ROWS, logs: int = 20) -> None:
        self.rows = rows
        self.logs = logs

    def result(self, seed: int) -> dict[str, Any]:
        """Return the shares of intervals that hold, and mean widths."""
        world, rng = World.make(), np.random.default_rng(seed)
        found: dict[tuple[str, str], list[Any]] = {}
        for i in range(self.logs):
            log, contexts = self.log(world, rng, i)
            for name, policy in world.policies().items():
                chosen = log.policy if policy is None else policy[contexts]
                accuracy = (chosen * world.right[contexts]).sum(axis=1)
                for method in METHODS if policy is not None else ("ips",):
                    one = judge(log, policy, accuracy, method)
                    found.setdefault((name, method), []).append(one)
        parts = ("fixed", "anytime", "width", "number")
        means = {
            part: [float(np.mean([getattr(one, part) for one in some])) for some in found.values()]
            for part in parts
        }
        return {"policies": [p for p, _ in found], "methods": [m for _, m in found], **means}

    def log(self, world: World, rng: np.random.Generator, seed: int) -> tuple[Log, np.ndarray]:
        """Return the log of a learner that plays in these contexts, and the contexts."""
        contexts = rng.integers(CONTEXTS, size=self.rows)
        learner = OneBitClassifier(
            min_probability=FLOOR, views="line", classes=range(LABELS), random_state=seed
        )
        learner.set_utility(worth=WORTH).set_limits(max_exploration=MAX_EXPLORATION)
        log = Log(keeps_policy=True)
        play(learner, np.eye(CONTEXTS)[contexts], drawn(world.right[contexts], rng), log=log)
        return log, contexts


def _sweeps(scale: str) -> dict[str, Sweep]:
    limited: dict[str, Any] = {
        f"{name}, {stream}, {share}": Limited(name, stream, ROUNDS[scale], share)
        for name in LEARNERS
        for stream in STREAMS
        for share in SHARES
    }
    covered: dict[str, Any] = {"logs with terms": Covered(ROWS, LOGS[scale])}
    return {
        "limits": Sweep(limited, {}, {}, [0]),
        "coverage": Sweep(covered, {}, {}, [0]),
    }


def _sections(tables: dict[str, pd.DataFrame], scale: str) -> list[Section]:
    import pandas as pd

    runs = tables["limits"].set_index("learner")
    rows, within = [], True
    for name in LEARNERS:
        for stream in STREAMS:
            for share in SHARES:
                run = runs.loc[f"{name}, {stream}, {share}"]
                within &= share is None or run.most <= share * WINDOW
                rows.append(
                    [
                        name,
                        stream,
                        "none" if share is None else f"{share:.1%}",
                        f"{run.mistakes:,.0f}",
                        f"{100 * run.explored / ROUNDS[scale]:.2f}",
                        f"{run.most:.0f}",
                    ]
                )
    columns = ["policies", "methods", "fixed", "anytime", "width", "number"]
    found = tables["coverage"][columns].explode(columns, ignore_index=True)
    least = found[["fixed", "anytime"]].astype(float).min(axis=None)
    shown = pd.DataFrame(
        {
            "policy": found.policies,
            "method": found.methods,
            "fixed holds %": [f"{100 * value:.2f}" for value in found.fixed],
            "at all times %": [f"{100 * value:.2f}" for value in found.anytime],
            "mean width": [f"{value:.3f}" for value in found.width],
            "a number %": [f"{100 * value:.0f}" for value in found.number],
        }
    )
    titles = ["learner", "stream", "limit", "mistakes", "explored %", f"most in {WINDOW:,}"]
    return [
        Section(
            "Limits on exploration",
            f"{ROUNDS[scale]:,} rounds of each stream.",
            tables={"limits": pd.DataFrame(rows, columns=titles)},
            findings=[
                Finding(
                    f"No {WINDOW:,} decisions explore more than the limit (a claim of ours).",
                    bool(within),
                    f"{len(rows) - len(LEARNERS) * len(STREAMS)} runs with a limit",
                )
            ],
        ),
        Section(
            "Logs of a learner with worth and a limit",
            f"{LOGS[scale]:,} logs of {ROWS:,} decisions, at most {MAX_EXPLORATION:.0%} of them "
            f"explored; how often the {LEVEL:.0%} interval holds the policy's accuracy.",
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
    ]


EXPERIMENT = Experiment(
    "limits",
    "Limits on exploration, and logs made with them",
    "No paper: docs/decisions.md.",
    [f"At the small scale: {ROUNDS['small']:,} rounds and {LOGS['small']} logs."],
    _sweeps,
    _sections,
)
