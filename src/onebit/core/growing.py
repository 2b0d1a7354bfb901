"""Arrays of a state that grow with the number of rounds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np


class Growing:
    """An array to which rows can be appended; its memory doubles when it is full."""

    def __init__(self, rows: np.ndarray) -> None:
        self._memory, self._n = rows, len(rows)

    @property
    def rows(self) -> np.ndarray:
        """The rows so far, as a view."""
        return self._memory[: self._n]

    def append(self, row: Any) -> None:
        """Add a row."""
        if self._n == len(self._memory):
            shape = (max(16, 2 * self._n), *self._memory.shape[1:])
            grown = np.zeros(shape, dtype=self._memory.dtype)
            grown[: self._n] = self._memory
            self._memory = grown
        self._memory[self._n] = row
        self._n += 1

    def _asdict(self) -> dict[str, np.ndarray]:
        return {"rows": self.rows}

    def _replace(self, rows: np.ndarray) -> Self:
        return type(self)(rows)
