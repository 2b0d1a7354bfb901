"""Rounds that tools are compared on, and when their feedback comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebit.lab.lines import ROWS as ROWS


@dataclass(frozen=True)
class Rounds:
    """A stream with labels 0 to `n_classes` - 1, of which those from `since` on are counted."""

    X: Any
    y: np.ndarray
    n_classes: int
    since: int = 0

    @property
    def counted(self) -> int:
        """How many rounds are counted."""
        return self.y.size - self.since

    def mistakes(self, labels: np.ndarray) -> int:
        """Return how many of the labels chosen in the counted rounds are wrong."""
        return int(np.count_nonzero(labels[self.since :] != self.y[self.since :]))


@dataclass(frozen=True)
class Feedback:
    """When a bit comes, in rounds after its decision, and in which share of the rounds at all."""

    late: int = 0
    share: float = 1.0

    @property
    def is_usual(self) -> bool:
        """Whether it comes at once, and always."""
        return self.late == 0 and self.share == 1.0

    def comes(self, n: int, seed: int) -> np.ndarray:
        """Tell of each of n rounds whether its bit ever comes."""
        return np.random.default_rng([seed, 1]).random(n) < self.share


FEEDBACK = {
    "": Feedback(),
    "late 100": Feedback(late=100),
    "late 1000": Feedback(late=1_000),
    "a third": Feedback(share=1 / 3),
}


def choose_and_learn(
    feedback: Feedback,
    rounds: Rounds,
    seed: int,
    decide: Callable[[int], tuple[int, Any]],
    learn: Callable[[Any, bool], Any],
) -> int:
    """Play the rounds with feedback that may be late or missing; return the mistakes that count.

    `decide` returns a label for a round, and a decision that `learn` takes with its bit.
    """
    comes = feedback.comes(rounds.y.size, seed)
    labels = np.empty(rounds.y.size, dtype=np.int64)
    waiting: deque[tuple[int, Any]] = deque()
    for t in range(rounds.y.size):
        labels[t], decision = decide(t)
        waiting.append((t, decision))
        if len(waiting) > feedback.late:
            then, decision = waiting.popleft()
            if comes[then]:
                learn(decision, bool(labels[then] == rounds.y[then]))
    return rounds.mistakes(labels)
