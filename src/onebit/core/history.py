"""The history of a run, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from onebit.core.templates import EXPLORED, MISTAKE, UPDATED

_PER_DECADE = 40
"""Points of a curve from round n to round 10 n."""

_POINTS = np.unique(np.rint(10 ** (np.arange(18 * _PER_DECADE) / _PER_DECADE)).astype(np.int64))
"""All points of a curve, up to more rounds than any run has."""


class History:
    """Mistakes, explorations and updates of a run.

    A recorded history keeps one byte per round. One that is not recorded keeps only the totals and
    the curve, a few kilobytes however long the run.

    Attributes
    ----------
    rounds : int
        Number of rounds played.
    n_mistakes : int
        Number of rounds with a wrong label.
    n_explored : int
        Number of rounds with a label other than the greedy one.
    n_updated : int
        Number of rounds that changed the learner.
    changes : list
        Changes that the learner detected in rounds of this run, if it detects changes; see
        `OneBitClassifier.changes_`.
    weights : dict
        For a mixture, the weight of each member after some rounds of this run: from the name of a
        member to a list of pairs (rounds, weight).
    """

    def __init__(self, *, record: bool = True) -> None:
        self.record = record
        self.rounds = self.n_mistakes = self.n_explored = self.n_updated = 0
        self._flags: list[np.ndarray] = []
        self._curve: list[tuple[int, int]] = []
        self.changes: list[Any] = []
        self.weights: dict[str, list[tuple[int, float]]] = {}

    def append(self, flags: np.ndarray) -> None:
        """Add rounds, each as a byte of the bits MISTAKE, EXPLORED and UPDATED."""
        mistakes, at = flags & MISTAKE, 0
        for t in _curve_points(self.rounds, self.rounds + flags.size).tolist():
            self.n_mistakes += int(np.count_nonzero(mistakes[at : t - self.rounds]))
            self._curve.append((t, self.n_mistakes))
            at = t - self.rounds
        self.n_mistakes += int(np.count_nonzero(mistakes[at:]))
        self.rounds += flags.size
        self.n_explored += int(np.count_nonzero(flags & EXPLORED))
        self.n_updated += int(np.count_nonzero(flags & UPDATED))
        if self.record:
            self._flags.append(flags)

    def points(self, n: int) -> list[int]:
        """Return the points of the curve in the next n rounds, and the last of these rounds."""
        return np.union1d(_curve_points(self.rounds, self.rounds + n), self.rounds + n).tolist()

    def append_weights(self, members: list[Any]) -> None:
        """Add the weights of a mixture's members after the rounds so far."""
        for member in members:
            self.weights.setdefault(member.name, []).append((self.rounds, member.weight))

    @property
    def mistakes(self) -> np.ndarray:
        """Per round, whether the chosen label was wrong."""
        return self._bit(MISTAKE)

    @property
    def explored(self) -> np.ndarray:
        """Per round, whether the chosen label differs from the greedy one."""
        return self._bit(EXPLORED)

    @property
    def updated(self) -> np.ndarray:
        """Per round, whether the learner changed."""
        return self._bit(UPDATED)

    @property
    def error_rate(self) -> float:
        """Share of the rounds that were mistakes; NaN before the first round."""
        return self.n_mistakes / self.rounds if self.rounds else float("nan")

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return logarithmically spaced rounds, and the error rate up to each."""
        points = list(self._curve)
        if self.rounds and (not points or points[-1][0] != self.rounds):
            points.append((self.rounds, self.n_mistakes))
        rounds, mistakes = np.array(points, dtype=np.int64).reshape(-1, 2).T
        return rounds, mistakes / rounds

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Draw the error rate against rounds with matplotlib, and return the axes.

        Detected changes are dotted lines: dark if all labels changed, pale if one did. Without
        `ax`, the weights of a mixture's members are drawn below, as shares of the whole.
        """
        draws_weights = ax is None and len(self.weights) > 1
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(layout="constrained").add_subplot()
        rounds, errors = self.curve()
        ax.plot(rounds, 100 * errors, **line)
        for change in self.changes:
            shade = "0.75" if change.label is not None else "0.3"
            ax.axvline(change.round, color=shade, linewidth=1, linestyle=":", zorder=0)
        ax.set(xscale="log", yscale="log", xlabel="rounds", ylabel="mistakes so far, % of rounds")
        ax.grid(alpha=0.3)
        if draws_weights:
            self._plot_weights(ax.inset_axes((0.0, -0.45, 1.0, 0.22), sharex=ax))
        return ax

    def _plot_weights(self, ax: Any) -> None:
        """Draw the weights of the members as bands that add up to one."""
        points = next(iter(self.weights.values()))
        rounds = [t for t, _ in points]
        shares = [[weight for _, weight in values] for values in self.weights.values()]
        shades = [str(0.25 + 0.6 * i / (len(shares) - 1)) for i in range(len(shares))]
        ax.stackplot(rounds, shares, labels=list(self.weights), colors=shades, step="post")
        ax.set(ylim=(0, 1), yticks=[0, 1], ylabel="weights")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.1), fontsize="small", frameon=False)

    def regret(self, learner: Any, X: Any, y: Any, **options: Any) -> Any:
        """Return the regret of the run over the best weights in hindsight, and its bound.

        See `onebit.theory.regret`, which takes several runs too.
        """
        from onebit.theory import regret

        return regret(self, learner, X, y, **options)

    def _bit(self, bit: int) -> np.ndarray:
        if not self.record:
            raise ValueError("this history was not recorded round by round: play with record=True")
        flags = np.concatenate(self._flags) if self._flags else np.zeros(0, dtype=np.uint8)
        return flags & bit != 0

    def __repr__(self) -> str:
        return (
            f"History(rounds={self.rounds}, error_rate={self.error_rate:.4f}, "
            f"explored={self.n_explored}, updated={self.n_updated})"
        )


def _curve_points(after: int, until: int) -> np.ndarray:
    """Return the points of the curve in (after, until]."""
    lo, hi = np.searchsorted(_POINTS, (after, until), side="right")
    return _POINTS[lo:hi]
