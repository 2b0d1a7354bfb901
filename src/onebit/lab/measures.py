"""What is measured in a run: online mistakes, the error on held-out rows, or regret."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from time import perf_counter, process_time
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from onebit.core import History, Learner, play
from onebit.lab.feedback import IMMEDIATE, Feedback
from onebit.streams import CHANGES, repeated
from onebit.streams.synthetic import replaced
from onebit.theory import best_linear, online_log_loss, regret

Grid = tuple[tuple[str, tuple[Any, ...]], ...]
"""Parameters and the values to try for each, as `grid_of` makes it."""


class Measure(Protocol):
    """Plays a learner, and returns the measurements as JSON types.

    Its `repr` must contain all that the result depends on.
    """

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Measure a learner that has not started, whose random_state is the seed of all draws."""
        ...


def grid_of(**values: Sequence[Any]) -> Grid:
    """Return parameters with the values to try, such as gamma=(0.01, 0.1)."""
    return tuple((name, tuple(some)) for name, some in values.items())


def candidates(learner: Learner, grid: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of values of those parameters of a grid that the learner has."""
    known = [name for name in grid if name in learner.get_params(deep=False)]
    return [dict(zip(known, values, strict=True)) for values in product(*(grid[n] for n in known))]


@dataclass(frozen=True)
class Online:
    """Mistakes round by round, exploration included.

    Parameters
    ----------
    at : tuple of int, default=()
        Rounds up to which the error is returned; by default logarithmically spaced.
    change : str, default=""
        A change of the stream, one of `CHANGES`: only rounds from its first one on are counted.
    last : int, default=0
        If it is not 0, only the last 1 / `last` of the rounds are counted.
    feedback : Feedback, optional
        When bits come; by default at once. Learners that are told every label are told at once.
    """

    at: tuple[int, ...] = ()
    change: str = ""
    last: int = 0
    feedback: Feedback = IMMEDIATE

    def first_counted(self, rounds: int) -> int:
        """Return the first round that is counted, of a run of this length."""
        if self.last:
            return rounds - rounds // self.last
        return CHANGES[self.change].begins(rounds) if self.change else 0

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the totals, and the error so far after some of the rounds."""
        compile_for(learner, X, y)
        since, start = self.first_counted(y.size), perf_counter()
        if not (self.feedback.is_immediate or learner.feedback == "full"):
            labels = self._told_later(learner, X, y)
            return result_of_labels(labels, y, since, perf_counter() - start)
        history = play(learner, repeated(X, y, epochs=epochs), record=bool(since or self.at))
        seconds = perf_counter() - start
        if since:
            history = _after(history, since)
        found = {**_totals(history), "seconds": seconds}
        if self.at:
            at = np.array([t for t in self.at if t <= history.rounds])
            found["curve_rounds"] = at.tolist()
            found["curve_errors"] = (np.cumsum(history.mistakes)[at - 1] / at).tolist()
        return found

    def _told_later(self, learner: Learner, X: Any, y: np.ndarray) -> np.ndarray:
        def decide(t: int) -> tuple[int, Any]:
            decision = learner.decide(X[t : t + 1] if sp.issparse(X) else X[t])
            return int(decision.label), decision

        def learn(decision: Any, correct: bool) -> None:
            learner.learn(decision, correct=correct)

        return self.feedback.labels(y, learner.random_state, decide, learn)


ONLINE = Online()


def result_of_counts(rounds: int, mistakes: int, seconds: float) -> dict[str, Any]:
    """Return a result with the columns of all runs, from counts alone."""
    return {
        "rounds": rounds,
        "mistakes": mistakes,
        "explored": math.nan,
        "updated": math.nan,
        "error": mistakes / rounds,
        "seconds": seconds,
    }


def result_of_labels(
    labels: np.ndarray, y: np.ndarray, since: int, seconds: float
) -> dict[str, Any]:
    """Return the result of labels alone, with the columns of all runs."""
    mistakes = int(np.count_nonzero(labels[since:] != y[since:]))
    return result_of_counts(y.size - since, mistakes, seconds)


def _after(history: History, since: int) -> History:
    """Return what happened from a round on."""
    found = History()
    for flags in history._flags:
        found.append(flags[since:])
        since = max(0, since - flags.size)
    return found


def _totals(history: History) -> dict[str, Any]:
    rounds, errors = history.curve()
    return {
        "rounds": history.rounds,
        "mistakes": history.n_mistakes,
        "explored": history.n_explored,
        "updated": history.n_updated,
        "error": history.error_rate,
        "curve_rounds": rounds.tolist(),
        "curve_errors": errors.tolist(),
    }


@dataclass(frozen=True)
class OnlineStandardized:
    """Mistakes as in `Online`, with columns standardised in hindsight, and a constant one."""

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what `Online` does."""
        return Online()(learner, with_constant(standardized(X)), y, epochs)


def standardized(X: Any) -> Any:
    """Return columns of mean 0 and variance 1; those of sparse rows are not centred."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        sd = np.sqrt(np.maximum(square - mean**2, 0.0))
        return sp.csr_array(X @ sp.diags_array(1.0 / np.where(sd > 0, sd, 1.0)))
    sd = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(sd > 0, sd, 1.0)


def with_constant(X: Any) -> Any:
    """Return X with a column of ones after all others."""
    ones = np.ones((X.shape[0], 1))
    return sp.csr_array(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])


@dataclass(frozen=True)
class OnBinaryRows:
    """What another measure returns, with each non-zero feature taken as 1.

    Rows are then bags of words of zeros and ones, and not of unit length.
    """

    measure: Measure

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return what the measure does."""
        return self.measure(learner, binary(X), y, epochs)


def binary(X: Any) -> Any:
    """Return ones where X is not zero."""
    if sp.issparse(X):
        return sp.csr_array(X.astype(bool), dtype=np.float64)
    return (np.asarray(X) != 0).astype(np.float64)


@dataclass(frozen=True)
class WrongTold:
    """Mistakes round by round against the true labels, where feedback is by noisy labels.

    The learner gets its feedback from the noisy label; mistakes are counted by the true one.

    Parameters
    ----------
    noise : float in [0, 1]
        Probability that a label is redrawn, uniformly from all labels, once for all epochs.
    """

    noise: float

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the totals, and the mistakes and explorations up to some of the rounds."""
        told = with_noise(learner, y, self.noise)
        compile_for(learner, X, y)
        chosen = CollectedRounds("labels")
        start = perf_counter()
        history = play(learner, repeated(X, told, epochs=epochs), log=chosen)
        seconds = perf_counter() - start
        mistakes = np.cumsum(chosen.values != np.tile(y, epochs))
        explored = np.cumsum(history.explored)
        at = history.curve()[0]
        return {
            **_totals(history),
            "mistakes": int(mistakes[-1]),
            "error": float(mistakes[-1] / mistakes.size),
            "curve_errors": (mistakes[at - 1] / at).tolist(),
            "curve_explored": explored[at - 1].tolist(),
            "seconds": seconds,
        }


class CollectedRounds:
    """Collects one field of `RoundRecord`, as a log collects all.

    Parameters
    ----------
    field : str
    """

    keeps_policy = False

    def __init__(self, field: str) -> None:
        self._field = field
        self._parts: list[np.ndarray] = []

    def add_rounds(self, X: Any, recorded: Any, *_: Any) -> None:
        """Add the rounds of a block."""
        self._parts.append(getattr(recorded, self._field))

    @property
    def values(self) -> np.ndarray:
        """The field in all rounds so far."""
        return np.concatenate(self._parts)


def with_noise(learner: Learner, y: np.ndarray, noise: float) -> np.ndarray:
    """Return labels, some of them redrawn with the learner's seed."""
    rng = np.random.default_rng([learner.random_state, 2])
    return replaced(y, len(learner.classes), noise, "any", rng)


@dataclass(frozen=True)
class CrossValidated:
    """Error on held-out folds, with the parameters that are best on another split.

    Parameters of `grid` are chosen on one split of all rows, 80 % to learn from. Labels for
    learning and for this choice may be noisy; those for testing are right.

    Parameters
    ----------
    grid : Grid
    noise : float in [0, 1], default=0
        Probability that a label is redrawn, uniformly from all labels.
    folds : int, default=10
    """

    grid: Grid = ()
    noise: float = 0.0
    folds: int = 10

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the error of all folds together, of each, and the parameters chosen."""
        told = with_noise(learner, y, self.noise)
        compile_for(learner, X, y)
        start = perf_counter()
        chosen = tuned(learner, self.grid, X, told, epochs)
        rows = np.arange(y.size)
        wrong = [
            _wrong(chosen, X, told, y, np.delete(rows, test), test, epochs)
            for test in np.array_split(rows, self.folds)
        ]
        return _tested(wrong, chosen, self.grid, perf_counter() - start)


@dataclass(frozen=True)
class HeldOut:
    """Error on the last rows, after learning from some of the others; parameters as above.

    Parameters
    ----------
    n_test : int
        Rows at the end that are not learned from.
    n_train : int
        Number of other rows to learn from, redrawn for each seed.
    grid : Grid
    """

    n_test: int
    n_train: int
    grid: Grid = ()

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the error, and the parameters chosen."""
        n = y.size - self.n_test
        rng = np.random.default_rng(learner.random_state)
        train, test = rng.permutation(n)[: self.n_train], np.arange(n, y.size)
        compile_for(learner, X, y)
        start = perf_counter()
        chosen = tuned(learner, self.grid, X[train], y[train], epochs)
        wrong = _wrong(chosen, X, y, y, train, test, epochs)
        return _tested([wrong], chosen, self.grid, perf_counter() - start)


def tuned(learner: Learner, grid: Grid, X: Any, y: np.ndarray, epochs: int) -> Learner:
    """Return the learner with the parameters that make the fewest mistakes on the last fifth."""
    found = [clone(learner).set_params(**some) for some in candidates(learner, dict(grid))]
    if len(found) == 1:
        return found[0]
    train, test = np.split(np.arange(y.size), [4 * y.size // 5])
    return min(found, key=lambda one: _wrong(one, X, y, y, train, test, epochs).sum())


def _wrong(
    learner: Learner,
    X: Any,
    told: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    epochs: int,
) -> np.ndarray:
    """Return for each row of `test` whether a copy that learned from `train` is wrong."""
    fresh = clone(learner)
    play(fresh, repeated(X[train], told[train], epochs=epochs), record=False)
    wrong: np.ndarray = fresh.predict(X[test]) != y[test]
    return wrong


def _tested(wrong: list[np.ndarray], chosen: Learner, grid: Grid, seconds: float) -> dict[str, Any]:
    together = np.concatenate(wrong)
    parameters = chosen.get_params(deep=False)
    return {
        "rounds": together.size,
        "mistakes": int(together.sum()),
        "explored": 0,
        "updated": 0,
        "error": float(together.mean()),
        "seconds": seconds,
        "fold_errors": [float(some.mean()) for some in wrong],
        "chosen": json.dumps({name: parameters[name] for name, _ in grid if name in parameters}),
    }


_TIMED_PLAYS, _LONG = 3, 5.0
"""How often a timed run is played, if it takes fewer than this many seconds."""


@dataclass(frozen=True)
class Regret:
    """Log loss in excess of that of the best weights in hindsight, in nats.

    Parameters
    ----------
    B : float
        The comparators have rows of at most this norm.
    times : tuple of int
        Rounds after which the regret is measured, each against its own best weights.
    """

    B: float
    times: tuple[int, ...] = field(default=(100, 1_000, 10_000))

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return the regret after each of the times, and the processor time that `play` takes.

        The shortest of several plays counts, unless one takes long.
        """
        compile_for(learner, X, y)
        seconds = np.inf
        for _ in range(_TIMED_PLAYS):
            start = process_time()
            history = play(clone(learner), X, y, record=False)
            seconds = min(seconds, process_time() - start)
            if seconds > _LONG:
                break
        suffered = np.cumsum(online_log_loss(learner, X, y))
        X = np.ascontiguousarray(X)
        least = _least_losses(
            X.tobytes(), y.tobytes(), X.shape, len(learner.classes), self.B, self.times
        )
        beyond = suffered[np.array(self.times) - 1] - least
        return {
            **_totals(history),
            "seconds": seconds,
            "times": list(self.times),
            "regret": beyond.tolist(),
        }


@lru_cache(maxsize=4)
def _least_losses(
    rows: bytes, labels: bytes, shape: tuple[int, int], K: int, B: float, times: tuple[int, ...]
) -> np.ndarray:
    """Return the loss of the best weights up to each time, once for all learners of a process."""
    X, y = np.frombuffer(rows).reshape(shape), np.frombuffer(labels, dtype=np.int64)
    return np.array(
        [best_linear(X[:t], y[:t], radius=B, norm="rows", classes=range(K)).loss for t in times]
    )


@dataclass(frozen=True)
class RegretAndBound:
    """Regret over the best weights in hindsight, and how much the learner's theorem allows.

    Parameters
    ----------
    radius : float
        The largest norm of the comparators.
    """

    radius: float

    def __call__(self, learner: Learner, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
        """Return both, after the last round."""
        compile_for(learner, X, y)
        start = perf_counter()
        history = play(learner, X, y)
        seconds = perf_counter() - start
        seen = regret(history, learner, X, y, radius=self.radius)
        return {
            **_totals(history),
            "seconds": seconds,
            "regret": float(seen.regret[-1]),
            "allowed": float(seen.bound[-1] - seen.loss[-1]),
        }


def compile_for(learner: Learner, X: Any, y: np.ndarray) -> None:
    """Compile what a learner needs, so that compilation is not timed."""
    play(clone(learner), X[:2], y[:2])
