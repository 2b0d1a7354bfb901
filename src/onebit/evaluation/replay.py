"""Learners that learn from a log as they go, to estimate how accurate they would have been."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onebit.core.generator import random_state_of
from onebit.core.learner import Learner
from onebit.evaluation.coverage import Coverage
from onebit.evaluation.estimators import Bets, one_for_all
from onebit.evaluation.intervals import check_level
from onebit.evaluation.log import Log
from onebit.evaluation.policies import decider

NEARLY_UNIFORM = 3.0
"""Rejection is used if every label was at most this many times less probable than uniform."""

LEAST_ROUNDS = 200
"""And if it leaves about this many rounds."""


@dataclass(frozen=True)
class Counterfactual:
    """How accurate a learner would have been.

    Attributes
    ----------
    name : str
    method : {"rejection", "weights"}
        How the log was used.
    rows, rounds : int
        Rows of the log, and rounds that the learner learned from.
    value : float
        Its accuracy over all rounds; NaN if the log does not cover what it would have chosen.
    low, high : float
        Its interval. All intervals of the curve hold simultaneously with probability `level`.
    level : float
    curve : ndarray of shape (n_points, 4)
        Rounds, accuracy up to there, and the ends of its interval.
    covered : float
        The share of its choices that the log covers.
    learner : Learner
        In its state after the log.
    """

    name: str
    method: str
    rows: int
    rounds: int
    value: float
    low: float
    high: float
    level: float
    curve: np.ndarray
    covered: float
    learner: Any

    def __str__(self) -> str:
        value = "not covered" if np.isnan(self.value) else f"{self.value:.4f}"
        return (
            f"{self.name}: {value}, {self.low:.4f} to {self.high:.4f} at {self.level:.0%}, "
            f"{self.rounds} rounds by {self.method}"
        )

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Draw accuracy against rounds, and its interval, with matplotlib; return the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(layout="constrained").add_subplot()
        rounds, value, low, high = self.curve.T
        drawn = ax.plot(rounds, 100 * value, **{"label": self.name, **line})[0]
        ax.fill_between(rounds, 100 * low, 100 * high, color=drawn.get_color(), alpha=0.15)
        ax.set(xscale="log", ylim=(0, 100), xlabel="rounds", ylabel="right so far, % of rounds")
        ax.grid(alpha=0.3)
        return ax


def counterfactual(
    log: Log,
    learners: Learner | Iterable[Learner] | Mapping[str, Learner],
    method: str = "auto",
    level: float = 0.95,
    *,
    random_state: Any = 0,
    progress: Callable[[str, int], Any] | None = None,
) -> list[Counterfactual]:
    """Estimate how accurate learners would have been that learn from a log as they go.

    Parameters
    ----------
    log : Log
        With x.
    learners : Learner, iterable of them, or mapping of names to them
        Copies of them learn from the log; pipelines take records.
    method : {"auto", "rejection", "weights"}, default="auto"
        "rejection" keeps rounds in which the learner would have chosen the same label, by rejection
        sampling, so that they are distributed as if it had decided all along: exact, but few rounds
        are left unless the log's choices were nearly uniform. "weights" learns from every bit of
        the log, and weights it by the probability that the learner would have chosen its label: the
        estimate is for a learner that watches another one's decisions. "auto" is "rejection" where
        that leaves enough rounds.
    level : float in (0, 1), default=0.95
        Of the intervals.
    random_state : int, RandomState instance or None, default=0
        For the draws of "rejection".
    progress : callable, optional
        Called with a learner's name and the number of rows it has processed.

    Returns
    -------
    list of Counterfactual

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import SOBA, Banditron, streams
    >>> from onebit.evaluation import Log, counterfactual
    >>> X, y = streams.synnonsep(20_000, seed=0)
    >>> labels = np.random.default_rng(0).integers(9, size=20_000)     # uniform: covers everything
    >>> log = Log(labels, np.full(20_000, 1 / 9), labels == y, x=X, least=1 / 9)
    >>> for result in counterfactual(log, [SOBA(random_state=0), Banditron(random_state=0)]):
    ...     print(result)
    SOBA(random_state=0): 0.3058, 0.2725 to 0.3404 at 95%, 2263 rounds by rejection
    Banditron(random_state=0): 0.4840, 0.4469 to 0.5212 at 95%, 2221 rounds by rejection
    """
    check_level(level)
    if method not in ("auto", "rejection", "weights"):
        raise ValueError(f'method is "auto", "rejection" or "weights"; got {method!r}')
    if log.x is None:
        raise ValueError("this log has no x, and learners decide by it")
    if not log.has_feedback.any():
        raise ValueError("no decision of this log has a bit")
    log = log[log.has_feedback]
    bound = 1.0 / float(log.least.min()) if (log.least > 0.0).all() else np.inf
    if method == "auto":
        labels = log.on_offer.sum(axis=1).mean()
        uniform = bound <= NEARLY_UNIFORM * labels and len(log) / bound >= LEAST_ROUNDS
        method = "rejection" if uniform else "weights"
    if method == "rejection" and not np.isfinite(bound):
        raise ValueError(
            "rejection needs the least probability of a label, above 0: Log(..., least=...)"
        )
    keep = bound if method == "rejection" else None
    draws, results = random_state_of(random_state), []
    for name, learner in _named(learners).items():
        run = _Run(name, copy.deepcopy(learner), keep, level, draws)
        for lo, hi in pairwise([0, *_points(len(log))]):
            run.take(log[lo:hi])
            if progress is not None:
                progress(name, hi)
        results.append(run.result())
    return results


class _Run:
    """A learner on its way through a log."""

    def __init__(
        self, name: str, learner: Any, bound: float | None, level: float, draws: Any
    ) -> None:
        self.name, self.learner, self.bound, self.level = name, learner, bound, level
        self.draws, self.rows, self.right = draws, 0, 0.0
        self.bets, self.coverage = Bets(), Coverage()
        self.curve: list[tuple[float, ...]] = []

    def take(self, log: Log) -> None:
        """Learn from more rows."""
        self._start(log)
        learner = decider(self.learner, log)
        chosen, taken = np.empty(len(log)), np.empty(len(log), dtype=bool)
        for lo, hi in _same_offer(log):
            some = log[lo:hi]
            chosen[lo:hi], taken[lo:hi] = learner.replay(
                some.x,
                some.classes[some.labels],
                some.probabilities,
                reward=some.correct,
                among=None if log.among is None else log.classes[log.among[lo]].tolist(),
                bound=self.bound,
                random_state=self.draws,
            )
        self.rows += len(log)
        modelled = None
        if self.bound is not None:
            w, c, most = np.ones(taken.sum()), log.correct[taken], np.ones(taken.sum())
        else:
            w, c = chosen / log.probabilities, log.correct
            most = np.full(len(log), np.inf)
            np.divide(1.0, log.least, out=most, where=log.least > 0.0)
            accuracy = (self.right + 0.5) / (self.coverage.sum + 1.0)  # of the earlier rows
            modelled = one_for_all(accuracy, np.ones(len(log)), np.maximum(most, w))
        self.bets.update(w, c, modelled)
        self.coverage.update(w, most, np.ones(w.size))
        self.right += float(w @ c)
        if self.coverage.n:
            interval = self.bets.interval(self.level, anytime=True)
            self.curve.append((self.coverage.n, self._value(), *interval))

    def result(self) -> Counterfactual:
        """Return the result."""
        if not self.curve:
            raise ValueError(f"rejection left no round for {self.name}; take method='weights'")
        value = np.nan if self.coverage.is_short else self._value()
        return Counterfactual(
            name=self.name,
            method="weights" if self.bound is None else "rejection",
            rows=self.rows,
            rounds=self.coverage.n,
            value=value,
            low=self.curve[-1][2],
            high=self.curve[-1][3],
            level=self.level,
            curve=np.array(self.curve),
            covered=self.coverage.covered,
            learner=self.learner,
        )

    def _value(self) -> float:
        return self.right / self.coverage.sum if self.coverage.sum else np.nan

    def _start(self, log: Log) -> None:
        last = self.learner.steps[-1][1] if hasattr(self.learner, "steps") else self.learner
        if getattr(last, "classes_", None) is None and last.classes is None:
            last.set_params(classes=log.classes.tolist())


def _points(n: int) -> list[int]:
    """Return the logarithmically spaced rows at which a curve has points."""
    return np.unique(np.rint(np.geomspace(min(n, 20), n, 60)).astype(int)).tolist()


def _same_offer(log: Log) -> list[tuple[int, int]]:
    """Return the ends of runs of rows that have the same labels on offer."""
    if log.among is None:
        return [(0, len(log))]
    changes = np.flatnonzero((log.among[1:] != log.among[:-1]).any(axis=1)) + 1
    return list(pairwise([0, *changes.tolist(), len(log)]))


def _named(learners: Any) -> dict[str, Any]:
    if isinstance(learners, Mapping):
        return dict(learners)
    named: dict[str, Any] = {}
    for learner in [learners] if hasattr(learners, "replay") else learners:
        last = learner.steps[-1][1] if hasattr(learner, "steps") else learner
        name = " ".join(repr(last).split())
        named[name if name not in named else f"{name} ({len(named)})"] = learner
    return named
