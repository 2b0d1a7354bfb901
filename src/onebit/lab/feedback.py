"""When bits come: at once, some rounds later, or in a share of the rounds only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Feedback:
    """When a bit comes, in rounds after its decision, and in which share of the rounds at all.

    Parameters
    ----------
    late : int, default=0
    share : float in (0, 1], default=1
    """

    late: int = 0
    share: float = 1.0

    @property
    def is_immediate(self) -> bool:
        """Whether each bit comes at once."""
        return self.late == 0 and self.share == 1.0

    def comes(self, n: int, seed: int) -> np.ndarray:
        """Return for each of n rounds whether its bit ever comes."""
        return np.random.default_rng([seed, 1]).random(n) < self.share

    def labels(
        self,
        y: np.ndarray,
        seed: int,
        decide: Callable[[int], tuple[int, Any]],
        learn: Callable[[Any, bool], Any],
    ) -> np.ndarray:
        """Play the rounds, and return the label chosen in each.

        `decide` returns a label for a round, and a decision that `learn` takes with its bit.
        """
        comes = self.comes(y.size, seed)
        labels = np.empty(y.size, dtype=np.int64)
        waiting: deque[tuple[int, Any]] = deque()
        for t in range(y.size):
            labels[t], decision = decide(t)
            waiting.append((t, decision))
            if len(waiting) > self.late:
                then, decision = waiting.popleft()
                if comes[then]:
                    learn(decision, bool(labels[then] == y[then]))
        return labels


IMMEDIATE = Feedback()

FEEDBACK = {
    "": IMMEDIATE,
    "late 100": Feedback(late=100),
    "late 1000": Feedback(late=1_000),
    "a third": Feedback(share=1 / 3),
}
"""The kinds of feedback that comparisons have a name for."""
