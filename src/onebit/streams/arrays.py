"""Streams in NumPy's .npz files."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from onebit.core.example import LARGEST
from onebit.streams.batches import SIZE, batches, check_size


class NpzFile:
    """The stream in a .npz file: arrays `X`, a row per round, and `y`, their labels.

    Parameters
    ----------
    path : path of the file
        As ``np.savez(path, X=X, y=y)`` writes it.
    size : int, default=10_000
        Rows in a batch.

    Raises
    ------
    ValueError
        While reading, if an array is missing, or the arrays are not a stream.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from onebit import streams
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "table.npz"), X=np.eye(3), y=np.array([2, 5, 2]))
    ...     stream = streams.NpzFile(Path(folder, "table.npz"))
    ...     print(stream.n_examples, stream.n_features, stream.classes.tolist())
    3 3 [2, 5]
    """

    def __init__(self, path: str | PathLike[str], size: int = SIZE) -> None:
        check_size(size)
        self.path, self.size = Path(path), size
        self.path.open("rb").close()

    def __repr__(self) -> str:
        return f"NpzFile({str(self.path)!r}, size={self.size})"

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return self._arrays[0].shape[1]

    @property
    def n_examples(self) -> int:
        """Number of rows of `X`."""
        return len(self._arrays[1])

    @property
    def classes(self) -> np.ndarray:
        """The labels in the file, sorted."""
        return np.unique(self._arrays[1])

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return batches(*self._arrays, self.size)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        try:
            with self.path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                X, y = file["X"], file["y"]
        except KeyError:
            raise ValueError(f"{self.path}: the file needs arrays named 'X' and 'y'") from None
        except (BadZipFile, zlib.error, EOFError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path}: cannot be read as .npz: {error}") from None
        if X.ndim != 2 or y.shape != X.shape[:1] or not X.size:
            raise ValueError(
                f"{self.path}: X must be a table, with a label in y for each row; got shapes "
                f"{X.shape} and {y.shape}"
            )
        if X.dtype.kind not in "biuf" or y.dtype.kind not in "biufU":
            raise ValueError(
                f"{self.path}: X must have numbers, and y numbers or texts; got {X.dtype} and "
                f"{y.dtype}"
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"{self.path}: y has NaN or infinity")
        X = X.astype(np.float64)
        bad = np.flatnonzero(~(np.abs(X) <= LARGEST).all(axis=1))
        if bad.size:
            raise ValueError(
                f"{self.path}: row {bad[0]} of X has NaN, infinity or values beyond {LARGEST:g}"
            )
        return X, y
