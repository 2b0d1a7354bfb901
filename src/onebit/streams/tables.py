"""Streams in tables: CSV and Parquet, with numbers, categories and texts."""

from __future__ import annotations

import csv
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from onebit.core.example import LARGEST
from onebit.core.validation import listed, short
from onebit.streams.batches import SIZE
from onebit.streams.files import number_in
from onebit.streams.lines import format_of, texts_of
from onebit.streams.records import N_FEATURES, LabelReader, RecordFile, Round

LABELS = ("label", "y", "target", "class")
"""Default names of the label column; the first that exists is used."""


class _Table(RecordFile):
    """A table with one row per round. Subclasses say what its columns are and read its rows."""

    def __init__(
        self,
        path: str | PathLike[str],
        label: str | None = None,
        n_features: int = N_FEATURES,
        size: int = SIZE,
    ) -> None:
        super().__init__(path, size, n_features)
        self.label = label

    @property
    def n_features(self) -> int:
        """Number of features: of the columns, if all are numbers, otherwise of the hashes."""
        return len(self.features) if self.is_dense else super().n_features

    @property
    def features(self) -> list[str]:
        """The names of all columns but that of the label."""
        return [name for name in self.columns if name != self._label_column]

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of all columns, in their order."""

    @cached_property
    def is_dense(self) -> bool:
        """Whether all columns are numbers, and examples have one feature for each."""
        return all(self._is_number[name] for name in self.features)

    @property
    @abstractmethod
    def _is_number(self) -> dict[str, bool]:
        """Whether a column has numbers."""

    @cached_property
    def _label_column(self) -> str:
        wanted = LABELS if self.label is None else (self.label,)
        for name in wanted:
            if name in self.columns:
                if len(self.columns) == 1:
                    raise ValueError(f"{self.path}: there is no column but the label {name!r}")
                return name
        raise ValueError(
            f"{self._header}: no column is named {' or '.join(map(repr, wanted))}; the columns are "
            f"{listed(self.columns)}: {self._remedy}"
        )

    @property
    def _remedy(self) -> str:
        """What to do if there is no column of labels."""
        return "say which is the label, with label=... or --label"

    @property
    def _header(self) -> str:
        """Where the names of the columns are."""
        return str(self.path)

    def _check_unique(self, names: list[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ValueError(f"{self._header}: two columns are named {short(name)}")
            seen.add(name)

    def _examples(self, batch: Sequence[Round]) -> Any:
        if not self.is_dense:
            return super()._examples(batch)
        rows = [[0.0 if v is None else v for v in one.content.values()] for one in batch]
        return np.array(rows, dtype=np.float64)


class CsvFile(_Table):
    r"""The stream in a CSV file with a header: a row is a round, a column the label.

    If all other columns are numbers, they are the features, in their order. Otherwise a row is a
    record {column: cell}, which `onebit.features.Records` turns into an example: numbers,
    categories, and texts, which are cells with white space. So a table of texts and labels is a
    stream, too. A column is numeric if the first of its non-empty cells is a number. An empty cell
    is a missing value, which gives no feature: 0. A file whose name ends in .gz, .bz2 or .xz is
    decompressed on the fly.

    Parameters
    ----------
    path : path of the file, in UTF-8
    label : str, optional
        The column of the label; by default the first there is of label, y, target and class.
    texts : sequence of str, default=()
        Columns that look like numbers but are not: codes, years, identifiers.
    delimiter : str, optional
        Separates cells; by default a tab in .tsv files, otherwise a comma.
    n_features : int, default=2**16
        Columns that names are hashed to, where not all features are numbers.
    size : int, default=10_000
        Rows in a batch.

    Raises
    ------
    ValueError
        While reading, if a line is malformed, with the name of the file and the line number.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from onebit import streams
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "flowers.csv")
    ...     _ = path.write_text("width,length,label\n1,2.5,rose\n3,,tulip\n")
    ...     stream = streams.CsvFile(path)
    ...     print(stream.n_features, stream.classes.tolist())
    ...     [X.tolist() for X, y in stream]
    2 ['rose', 'tulip']
    [[[1.0, 2.5], [3.0, 0.0]]]
    """

    def __init__(
        self,
        path: str | PathLike[str],
        label: str | None = None,
        texts: Sequence[str] = (),
        delimiter: str | None = None,
        n_features: int = N_FEATURES,
        size: int = SIZE,
    ) -> None:
        super().__init__(path, label, n_features, size)
        self.texts = texts
        self.delimiter = delimiter or ("\t" if format_of(self.path) == ".tsv" else ",")

    @property
    def _remedy(self) -> str:
        if len(self.columns) == 1:
            for other in ";\t|":
                if other in self.columns[0]:
                    return f"cells are separated by {self.delimiter!r} here, not by {other!r}"
        return super()._remedy

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns, in their order."""
        _, cells = next(self._rows(), (0, []))
        if not cells:
            raise ValueError(f"{self.path}: the file is empty")
        if "" in cells:
            raise ValueError(f"{self._header}: a column has no name; got {listed(cells)}")
        self._check_unique(cells)
        for name in self.texts:
            if name not in cells:
                raise ValueError(
                    f"{self._header}: there is no column {name!r}, but {listed(cells)}"
                )
        return cells

    @property
    def _header(self) -> str:
        return f"{self.path}:1"

    @cached_property
    def _is_number(self) -> dict[str, bool]:
        found: dict[str, bool] = dict.fromkeys(self.texts, False)
        unknown = [(i, name) for i, name in enumerate(self.columns) if name not in found]
        for _, cells in self._checked_rows():
            for i, name in unknown:
                if cells[i]:
                    found[name] = number_in(cells[i]) is not None
            unknown = [(i, name) for i, name in unknown if name not in found]
            if not unknown:
                break
        return {name: found.get(name, True) for name in self.columns}

    def _rounds(self) -> Iterator[Round]:
        features = [(i, n) for i, n in enumerate(self.columns) if n != self._label_column]
        label = self.columns.index(self._label_column)
        is_number, label_of = self._is_number, LabelReader()
        for line_number, cells in self._checked_rows():
            place = f"{self.path}:{line_number}"
            content = {
                name: self._number(cells[i], name, place) if is_number[name] else cells[i] or None
                for i, name in features
            }
            yield Round(place, label_of(cells[label].strip(), place), content)

    def _number(self, cell: str, name: str, place: str) -> float | None:
        if not cell or cell.isspace():
            return None
        number = number_in(cell)
        if number is None:
            raise ValueError(
                f"{place}: {name} must be a number, as the first of its column is; got "
                f"{short(cell)} (a missing value is an empty cell)"
            )
        if not abs(number) <= LARGEST:
            raise ValueError(
                f"{place}: {name} is {short(cell)}; a missing value is an empty cell"
                if math.isnan(number)
                else f"{place}: {name} is {short(cell)}: values beyond {LARGEST:g} are refused"
            )
        return number

    def _checked_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield all rows but the header, each with the number of its first line."""
        n_columns = len(self.columns)
        rows = self._rows()
        next(rows)
        for line_number, cells in rows:
            if len(cells) != n_columns:
                raise ValueError(
                    f"{self.path}:{line_number}: the header has {n_columns} columns; got "
                    f"{len(cells)}"
                )
            yield line_number, cells

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(texts_of(self.path), delimiter=self.delimiter, strict=True)
        while True:
            first = reader.line_num + 1
            try:
                with long_fields():
                    cells = next(reader, None)
            except csv.Error as error:
                raise ValueError(f"{self.path}:{first}: not CSV: {error}") from None
            if cells is None:
                return
            if cells:  # blank lines have none
                yield first, cells


class ParquetFile(_Table):
    """The stream in a Parquet file: a row is a round, a column the label. It needs pyarrow.

    Examples are made as in `CsvFile`; lists and structs are parts of records, too. Errors name the
    row, counted from 1. Compression is that of the format.

    Parameters
    ----------
    path : path of the file
    label : str, optional
        The column of the label; by default the first there is of label, y, target and class.
    n_features : int, default=2**16
        Columns that names are hashed to, where not all features are numbers.
    size : int, default=10_000
        Rows in a batch.

    Raises
    ------
    ValueError
        While reading, if the file is not Parquet, or if a row is malformed, with its number.
    """

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns, in their order."""
        with self._open() as file:
            names = [str(name) for name in file.schema_arrow.names]
        self._check_unique(names)
        return names

    @cached_property
    def _is_number(self) -> dict[str, bool]:
        from pyarrow import types

        with self._open() as file:
            return {
                field.name: types.is_integer(field.type)
                or types.is_floating(field.type)
                or types.is_boolean(field.type)
                for field in file.schema_arrow
            }

    def _rounds(self) -> Iterator[Round]:
        label, row = self._label_column, 0
        numbers = [name for name in self.features if self._is_number[name]]
        with self._open() as file:
            for batch in file.iter_batches(self.size):
                for content in batch.to_pylist():
                    row += 1
                    place = f"{self.path}: row {row}"
                    value = content.pop(label)
                    if value is None or value != value:
                        raise ValueError(f"{place}: the label is missing: remove rows without one")
                    if not isinstance(value, str | int | float):
                        raise ValueError(
                            f"{place}: a label is a text or a number; got {short(value)}"
                        )
                    if isinstance(value, str) and "\0" in value:  # NumPy drops it at the end
                        raise ValueError(f"{place}: byte 0x00 in the label {short(value)}")
                    if isinstance(value, int) and value >= 2**63:
                        raise ValueError(f"{place}: a label is an integer of 64 bits; got {value}")
                    for name in numbers:
                        number = content[name]
                        if number is not None and not abs(number) <= LARGEST:
                            raise ValueError(
                                f"{place}: {name} is {number}; values are finite, at most "
                                f"{LARGEST:g}, or null"
                            )
                    yield Round(place, value, content)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        from pyarrow import ArrowException, ArrowInvalid
        from pyarrow.parquet import ParquetFile as Reader

        try:
            with Reader(self.path) as file:
                yield file
        except (ArrowInvalid, ArrowException, OSError) as error:
            raise ValueError(f"{self.path}: cannot be read as Parquet: {error}") from error


@contextmanager
def long_fields() -> Iterator[None]:
    """Allow long cells, as for texts: the csv module has one limit for the whole process."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
