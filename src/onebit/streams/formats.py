"""Streams in files, whose format is determined by the name."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from onebit.streams.arrays import NpzFile
from onebit.streams.files import SvmlightFile
from onebit.streams.lines import format_of
from onebit.streams.records import RecordFile
from onebit.streams.tables import CsvFile, ParquetFile
from onebit.streams.vw import VwFile

FORMATS: dict[str, Any] = {
    ".csv": CsvFile,
    ".npz": NpzFile,
    ".tsv": CsvFile,
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".vw": VwFile,
}
"""Formats by file name extension; all others are svmlight."""


def from_file(path: str | PathLike[str], **options: Any) -> SvmlightFile | RecordFile | NpzFile:
    """Return the stream in a file, one batch in memory at a time.

    Parameters
    ----------
    path : path of the file
        One that ends in .csv or .tsv is read by `CsvFile`, in .parquet or .pq by `ParquetFile`, in
        .npz by `NpzFile`, in .vw by `VwFile`, and any other by `svmlight`; .gz, .bz2 or .xz may
        follow, except after .parquet, .pq and .npz.
    **options : what the reader takes
        Such as ``label="group"``, the column of the label in a table.

    Returns
    -------
    An iterable of pairs (X, y) that can be iterated any number of times. Its `n_features`,
    `n_examples` and `classes` describe the file.
    """
    reader = FORMATS.get(format_of(Path(path)), SvmlightFile)
    try:
        return reader(path, **options)
    except TypeError:
        tables = [end for end, one in FORMATS.items() if one in (CsvFile, ParquetFile)]
        hint = f"; the names of tables end in {', '.join(tables)}" if "label" in options else ""
        raise ValueError(
            f"{path}: {reader.__name__}, which reads files of such a name, takes no "
            f"{' and no '.join(options)}{hint}"
        ) from None
