"""Changes in streams, by name, as used in comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onebit.streams.moving import held_back, relabelled


class Change(NamedTuple):
    """A change of a stream, and the part of the stream where it begins: the second or third."""

    make: Callable[[Any, np.ndarray, int], tuple[Any, np.ndarray]]
    """Makes the changed stream, from X, y and a seed."""
    part: int

    def begins(self, n_rounds: int) -> int:
        """Return the first round of the change."""
        return n_rounds // self.part


def permuted(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Permute all labels halfway."""
    return relabelled(X, y, at=y.size // 2, seed=seed)


def two_swapped(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Swap the two most frequent labels halfway."""
    return relabelled(X, y, at=y.size // 2, classes=_most_frequent(y, 2))


def gradual(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Permute all labels from halfway on, over a fifth of the rows."""
    return relabelled(X, y, at=y.size // 2, over=y.size // 5, seed=seed)


def there_and_back(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Permute all labels for a third of the rows."""
    return relabelled(X, y, at=y.size // 3, back=2 * y.size // 3, seed=seed)


def one_held_back(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Hold the most frequent label back until halfway."""
    (label,) = _most_frequent(y, 1)
    return held_back(X, y, label=label, until=y.size // 2, seed=seed)


def _most_frequent(y: np.ndarray, n: int) -> np.ndarray:
    labels, counts = np.unique(y, return_counts=True)
    return labels[np.argsort(-counts, kind="stable")[:n]]


CHANGES = {
    "all permuted": Change(permuted, 2),
    "two swapped": Change(two_swapped, 2),
    "gradual": Change(gradual, 2),
    "A-B-A": Change(there_and_back, 3),
    "held back": Change(one_held_back, 2),
}
"""What may happen to the labels of a stream, by the names that `StreamSpec` takes."""
