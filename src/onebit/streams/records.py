"""Streams in files of records, whatever their format."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onebit.core.validation import as_labels, short
from onebit.features import Records
from onebit.streams.batches import check_size
from onebit.streams.files import label_of, number_in

N_FEATURES = 2**16
"""Default number of columns that names are hashed to, as in `Records`."""


class Round(NamedTuple):
    """An example as written in a file; `place` is the file and the line or row."""

    place: str
    label: Any
    content: Any


class RecordFile(ABC):
    """The stream in a file of records, reopened for each `iter`.

    Attributes
    ----------
    path : Path
    size : int
        Examples in a batch.
    n_examples, n_features : int
    classes : ndarray
        The labels in the file, sorted.
    """

    def __init__(self, path: str | PathLike[str], size: int, n_features: int) -> None:
        check_size(size)
        self.path, self.size = Path(path), size
        self._records = Records(n_features)
        self._records._validate_params()
        self.path.open("rb").close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self._records.n_features)

    @property
    def n_examples(self) -> int:
        """Number of examples in the file."""
        return self._scan[0]

    @property
    def classes(self) -> np.ndarray:
        """The labels in the file, sorted."""
        return self._scan[1]

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        rounds = self._rounds()
        while batch := list(islice(rounds, self.size)):
            yield self._examples(batch), self._labels(batch)

    @abstractmethod
    def _rounds(self) -> Iterator[Round]:
        """Yield the contents of the file, with labels converted."""

    def _examples(self, batch: Sequence[Round]) -> Any:
        """Return the contents of a batch as a matrix."""
        try:
            return self._records.transform([one.content for one in batch])
        except (TypeError, ValueError):
            for one in batch:
                try:
                    self._records.encode(one.content)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"{one.place}: {error}") from None
            raise

    def _labels(self, batch: Sequence[Round]) -> np.ndarray:
        labels = [one.label for one in batch]
        return as_labels(labels, np.array(labels), str(self.path))

    @cached_property
    def _scan(self) -> tuple[int, np.ndarray]:
        n_examples, first = 0, None
        labels: dict[Any, Round] = {}
        for one in self._rounds():
            first = one if first is None else first
            if isinstance(one.label, str) != isinstance(first.label, str):
                raise ValueError(
                    f"{one.place}: labels are all texts or all numbers; got {short(one.label)} "
                    f"after {short(first.label)}"
                )
            if one.label not in labels and isinstance(one.label, float) and one.label % 1:
                raise ValueError(
                    f"{one.place}: a label is a text or a whole number; got {one.label}"
                )
            n_examples += 1
            labels.setdefault(one.label, one)
        if not n_examples:
            raise ValueError(f"{self.path}: the file has no examples")
        return n_examples, np.unique(self._labels(list(labels.values())))


class LabelReader:
    """Reads labels: as numbers if the first one is a number, otherwise as texts."""

    def __init__(self) -> None:
        self._numbers: bool | None = None

    def __call__(self, text: str, place: str) -> int | float | str:
        """Return a label."""
        if not text:
            raise ValueError(f"{place}: the label is missing: remove rows without one")
        if self._numbers is None:
            self._numbers = number_in(text) is not None
        if not self._numbers:
            return text
        try:
            return label_of(text.encode())
        except ValueError as error:
            if number_in(text) is not None and math.isfinite(float(text)):
                raise ValueError(f"{place}: {error}") from None
            raise ValueError(
                f"{place}: the label must be a number, as the first of the file is; got "
                f"{short(text)}"
            ) from None
