"""What is proven about a learner, as a callable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit import losses


class NotProvenError(ValueError):
    """The theorem does not hold for these parameters or this stream; the message says why."""


@dataclass(frozen=True)
class Setting:
    """What bounds depend on.

    Attributes
    ----------
    T, d, K : int
        Rounds, features, classes.
    X : float
        Length of the longest example.
    largest : float
        Largest absolute value of a feature.
    U : ndarray of shape (n_classes, n_features)
        The comparator.
    L : float
        Its loss in the T rounds.
    learner : learner
        Only its parameters are read.
    mistakes, updates : int or None
        Those of the run so far, for bounds that depend on them.
    """

    T: int
    d: int
    K: int
    X: float
    largest: float
    U: np.ndarray
    L: float
    learner: Any
    mistakes: int | None = None
    updates: int | None = None

    @property
    def length(self) -> float:
        """||U||_F."""
        return float(np.linalg.norm(self.U))

    @property
    def longest_row(self) -> float:
        """The largest ||u_k||."""
        return float(np.linalg.norm(self.U, axis=1).max())


class Bound:
    """A theorem: an upper bound on a learner's mistakes, or on its loss.

    ``str(bound)`` is its short form, ``bound(setting)`` its value, or it raises `NotProvenError`.

    Attributes
    ----------
    text : str
    measure : {"mistakes", "log_loss"}
        What is bounded: expected mistakes, or the sum of -ln of the true label's probability.
    needs : tuple of str
        ("run",) if the setting must contain a run's mistakes and updates.
    """

    def __init__(
        self,
        text: str,
        value: Callable[[Setting], float] | None = None,
        *,
        loss: str | Callable[[Any, float, float], losses.Loss] = "hinge",
        ball: Callable[[Any], tuple[str, float | None]] | None = None,
        measure: str = "mistakes",
        needs: tuple[str, ...] = (),
        why_not: str = "",
    ) -> None:
        self.text, self.measure, self.needs = text, measure, needs
        self._value, self._loss, self._ball, self._why_not = value, loss, ball, why_not

    def __call__(self, setting: Setting) -> float:
        """Return the bound on the measure after ``setting.T`` rounds.

        Parameters
        ----------
        setting : Setting

        Returns
        -------
        float

        Raises
        ------
        NotProvenError
            If the theorem does not hold for the parameters or the stream.
        """
        if self._value is None:
            raise NotProvenError(self._why_not or self.text)
        return self._value(setting)

    def comparator(
        self, learner: Any, X: float, radius: float | None
    ) -> tuple[losses.Loss, str, float]:
        """Return the loss, and the norm and radius of the ball of the theorem's comparators.

        Parameters
        ----------
        learner : learner
        X : float
            Length of the longest example.
        radius : float or None
            The requested one, where the theorem leaves it open; 1 if None.
        """
        if self._value is None:
            raise NotProvenError(self._why_not or self.text)
        norm, own = self._ball(learner) if self._ball else ("frobenius", None)
        if own is None:
            wanted = 1.0 if radius is None else float(radius)
        elif radius is not None and radius > own:
            raise NotProvenError(
                f"the bound of this {type(learner).__name__} is against weights of length at most "
                f"{own:g}, its own parameter; got radius={radius:g}"
            )
        else:
            wanted = own if radius is None else float(radius)
        loss = self._loss if isinstance(self._loss, str) else self._loss(learner, X, wanted)
        return losses.of(loss), norm, wanted

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Bound({self.text!r})"


def check_length(X: float, max_norm: float) -> None:
    """Raise if the stream has longer examples than the learner's parameter allows."""
    if max_norm * (1 + 1e-9) < X:
        raise NotProvenError(
            f"the longest example has length {X:.6g}, and the learner's parameter promises at most "
            f"{max_norm:g}: normalise the examples, or give their length"
        )


def with_exploration(greedy: float, T: int, K: int, gamma: float) -> float:
    """Return the expected mistakes of gamma-greedy labels, given those of the greedy labels.

    A label is wrong with probability 1 - gamma / K where the greedy one is, otherwise with
    probability gamma (K - 1) / K: in expectation (1 - gamma) M + gamma T (K - 1) / K.
    """
    return (1.0 - gamma) * greedy + gamma * T * (K - 1) / K
