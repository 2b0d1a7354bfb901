"""Regret over time, beside its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from onebit.core import History, Learner, ProbabilityLearner
from onebit.core.example import Rows, count_rows
from onebit.core.validation import check_labels, check_rows, positions_of
from onebit.theory.bound import Bound, NotProvenError, Setting
from onebit.theory.comparator import Comparator, best_linear, online_log_loss

_LEAST_SHOWN = 0.5
"""Where pictures begin: half a mistake."""


@dataclass(frozen=True)
class Regret:
    """The regret of a learner over the best weights in hindsight, and its bound.

    Attributes
    ----------
    measure : {"mistakes", "log_loss"}
        What is counted: mistakes, or -ln of the probability of the true label.
    rounds : ndarray of int
    suffered : ndarray
        The measure of the learner, summed up to each of these rounds; averaged over several runs.
    loss : ndarray
        Loss of the comparator, summed up to each of these rounds.
    bound : ndarray
        The bound on `suffered`, in expectation where the learner is random. NaN where the bound
        depends on something that was not recorded.
    comparator : Comparator
    title : str
    """

    measure: str
    rounds: np.ndarray
    suffered: np.ndarray
    loss: np.ndarray
    bound: np.ndarray
    comparator: Comparator
    title: str

    @property
    def regret(self) -> np.ndarray:
        """What was suffered in excess of the comparator's loss."""
        return self.suffered - self.loss

    @property
    def tightness(self) -> float:
        """Regret divided by what the bound allows, after the last round."""
        return float(self.regret[-1] / (self.bound[-1] - self.loss[-1]))

    def rows(self) -> list[dict[str, float]]:
        """Return a table: rounds, suffered, loss, regret, bound at powers of ten and the end."""
        shown = [i for i, t in enumerate(self.rounds) if _is_round(int(t)) or t == self.rounds[-1]]
        return [
            {
                "rounds": int(self.rounds[i]),
                self.measure: float(self.suffered[i]),
                "comparator": float(self.loss[i]),
                "regret": float(self.regret[i]),
                "bound": float(self.bound[i]),
            }
            for i in shown
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw all of it against rounds with matplotlib, and return the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(layout="constrained").add_subplot()
        what = "mistakes" if self.measure == "mistakes" else "log loss"
        ax.plot(self.rounds, self.bound, color="0.3", linestyle="--", label=f"bound on its {what}")
        ax.plot(self.rounds, self.suffered, color="#D55E00", linewidth=2, label=f"its {what}")
        below = ", below the picture" if self.loss[-1] < _LEAST_SHOWN else ""
        loss = f"{self.comparator.of} of the best weights{below}"
        ax.plot(self.rounds, self.loss, color="#0072B2", label=loss)
        ax.plot(self.rounds, self.rounds, color="0.8", linewidth=1, label="all rounds")
        ax.set(xscale="log", yscale="log", xlabel="rounds", ylabel=f"{what}, summed up")
        ax.set_ylim(bottom=_LEAST_SHOWN)
        ax.set_title(self.title, loc="left")
        ax.legend(frameon=False)
        ax.grid(alpha=0.3)
        return ax


def regret(
    histories: History | Sequence[History],
    learner: Learner,
    X: Any,
    y: Any,
    *,
    radius: float | None = None,
    comparator: Comparator | None = None,
    tolerance: float = 1e-3,
) -> Regret:
    """Return the regret of runs over a stream, beside the bound of the learner.

    Parameters
    ----------
    histories : History or sequence of these
        Runs of `learner` from its first round, over the whole stream, with different seeds.
    learner : learner
        One that played, for its parameters and classes.
    X, y : array-like
        The stream.
    radius : float, optional
        Radius of the ball of comparators, where the theorem leaves it open; 1 if not given.
    comparator : Comparator, optional
        From `best_linear`, for the loss of the theorem; computed if not given.
    tolerance : float, default=1e-3
        Tolerance of `best_linear`.

    Returns
    -------
    Regret

    Raises
    ------
    NotProvenError
        If there is no theorem for this learner with these parameters, or this stream.

    Examples
    --------
    >>> from onebit import Perceptron, play, streams
    >>> X, y = streams.strongly_separable(1_000, n_features=20, n_classes=3, seed=0)
    >>> learner = Perceptron()
    >>> seen = play(learner, X, y).regret(learner, X, y, radius=5.0)
    >>> [round(value[-1]) for value in (seen.suffered, seen.loss, seen.regret, seen.bound)]
    [36, 56, -20, 140]
    """
    runs = [histories] if isinstance(histories, History) else list(histories)
    rows = check_rows(X, learner)
    labels = check_labels(y, count_rows(rows), learner)
    T, d = count_rows(rows), rows.n_features
    if any(run.rounds != T for run in runs):
        raise ValueError(f"the stream has {T} rounds, the histories {[run.rounds for run in runs]}")
    bound: Bound = learner.bound
    longest, largest = _sizes(rows)
    if comparator is None:
        loss, norm, radius = bound.comparator(learner, longest, radius)
        comparator = best_linear(
            X, labels, loss, radius, norm, classes=learner.classes_, tolerance=tolerance
        )
    else:
        loss, norm, _ = bound.comparator(learner, longest, comparator.radius)
        if str(loss) != str(comparator.of):
            raise NotProvenError(f"the bound is over the loss {loss}; got one over {comparator.of}")
    rounds, _ = runs[0].curve()
    losses = np.cumsum(comparator.losses(X, labels))[rounds - 1]
    mistakes = np.mean([_mistakes(run, rounds) for run in runs], axis=0)
    if bound.measure == "log_loss":
        suffered = np.cumsum(_log_losses(learner, X, labels))[rounds - 1]
    else:
        suffered = mistakes
    updates = np.mean([_updates(run, rounds) for run in runs], axis=0)
    values = [
        _value(
            bound,
            Setting(
                T=int(t),
                d=d,
                K=learner.classes_.size,
                X=longest,
                largest=largest,
                U=comparator.W,
                L=float(losses[i]),
                learner=learner,
                mistakes=mistakes[i],
                updates=None if np.isnan(updates[i]) else updates[i],
            ),
        )
        for i, t in enumerate(rounds)
    ]
    title = f"{type(learner).__name__}: {bound}"
    return Regret(bound.measure, rounds, suffered, losses, np.array(values), comparator, title)


def _value(bound: Bound, setting: Setting) -> float:
    if setting.updates is None and "run" in bound.needs:
        return float("nan")
    return bound(setting)


def _mistakes(run: History, rounds: np.ndarray) -> np.ndarray:
    points, errors = run.curve()
    return np.rint(errors * points)


def _updates(run: History, rounds: np.ndarray) -> np.ndarray:
    if run.record:
        return np.cumsum(run.updated)[rounds - 1]
    return np.where(rounds == run.rounds, float(run.n_updated), np.nan)


def _log_losses(learner: Learner, X: Any, y: np.ndarray) -> np.ndarray:
    assert isinstance(learner, ProbabilityLearner)
    again: Any = clone(learner).set_params(classes=learner.classes_)
    positions_of(learner.classes_, y)
    return online_log_loss(again, X, y)


def _sizes(rows: Rows) -> tuple[float, float]:
    """Return the largest norm of an example and the largest absolute value of a feature."""
    squares = np.concatenate([[0.0], np.cumsum(rows.values**2)])
    lengths = np.sqrt(np.maximum(np.diff(squares[rows.indptr]), 0.0))
    return float(lengths.max(initial=0.0)), float(np.abs(rows.values).max(initial=0.0))


def _is_round(t: int) -> bool:
    return t >= 10 and str(t).strip("0") in ("1", "2", "5")
