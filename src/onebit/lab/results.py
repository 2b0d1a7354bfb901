"""Results of runs, one file each, and the table of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebit.core.file_lock import lock
from onebit.core.replacing import replace_file

if TYPE_CHECKING:
    import pandas as pd

MEASURED = ("rounds", "mistakes", "explored", "updated", "error", "seconds")
"""Columns that are counted and timed in a run."""

MAY_BE_UNKNOWN = ("explored", "updated", "seconds")
"""Those that are NaN in runs of other tools."""

SUMMARISED = (
    *("curve_rounds", "curve_errors", "curve_explored", "fold_errors", "chosen"),
    *("times", "regret", "allowed", "seeds", "error_sd", "microseconds"),
    *("version", "n_features", "n_classes"),
)
"""Other columns of a table or its summary that are not parameters."""


class Folder:
    """A folder of results, each in a file with the name of its run.

    Files are written atomically: whenever the process is killed, a result is either complete or
    missing.

    Parameters
    ----------
    path : folder, made if it is not there
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._results = self.path / "results"
        self._results.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one process; a process that is killed leaves no lock behind."""
        with locked(self.path / "lock", wait=False):
            yield

    def write(self, key: str, result: dict[str, Any]) -> None:
        """Store the result of a run."""
        replace_file(self._results / f"{key}.json", json.dumps(result).encode())

    def read(self, key: str) -> dict[str, Any] | None:
        """Return the result of a run, or None if there is no readable one."""
        try:
            result = json.loads((self._results / f"{key}.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return result if isinstance(result, dict) else None


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold a file as a lock, with or without waiting for others."""
    with path.open("w") as file:
        try:
            lock(file, wait=wait)
        except BlockingIOError:
            raise ValueError(f"{path.parent} is in use by another sweep") from None
        yield


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation over the seeds, a row for each setting and stream.

    Parameters
    ----------
    table : DataFrame
        As `onebit.lab.sweep` returns it.

    Returns
    -------
    DataFrame
        With the columns stream, learner, parameters, those of the grid, seeds, error, error_sd
        (NaN for one seed), explored (a share of the rounds) and microseconds (of a round); the
        smallest error of a stream first.
    """
    rates = table.assign(
        explored=table.explored / table.rounds, microseconds=1e6 * table.seconds / table.rounds
    )
    by = ["stream", "learner", "parameters", *grid_columns(table)]
    groups = rates.groupby(by, sort=False, dropna=False)
    found = groups.agg(
        seeds=("seed", "nunique"),
        error=("error", "mean"),
        error_sd=("error", "std"),
        explored=("explored", "mean"),
        microseconds=("microseconds", "mean"),
    ).reset_index()
    order = {name: i for i, name in enumerate(dict.fromkeys(table.stream))}
    found = found.sort_values("error", kind="stable")
    return found.sort_values("stream", key=lambda c: c.map(order), kind="stable", ignore_index=True)


def grid_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns that are parameters of a grid."""
    known = {"learner", "parameters", "stream", "seed", *MEASURED, *SUMMARISED}
    return [name for name in table.columns if name not in known]


def best(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of each learner with the parameters of the lowest mean error."""
    means = summary(table).drop_duplicates(["stream", "learner"])
    return table.merge(means[["stream", "learner", "parameters"]])


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet."""
    replace_file(path, table.to_parquet(index=False))


def read_table(path: Path) -> pd.DataFrame:
    """Return a table that `write_table` wrote; raise ValueError for any other."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype
    from pyarrow import ArrowException

    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    try:
        table = pd.read_parquet(path)
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read as Parquet: {error}") from error
    if table.empty or not table.columns.is_unique:
        raise ValueError(f"{path}: no table of a sweep: it has no rows, or columns of one name")
    for name in ("learner", "parameters", "stream", "seed", *MEASURED):
        if name not in table and name in MEASURED:
            continue  # not every measure counts them
        if name not in table:
            raise ValueError(f"{path}: no table of a sweep: it has no column {name!r}")
        if name in ("learner", "parameters", "stream"):
            expected, fits = "texts", all(isinstance(value, str) for value in table[name])
        else:
            column = table[name]
            known = name in MAY_BE_UNKNOWN or column.notna().all()
            expected, fits = "numbers", is_numeric_dtype(column) and known
        if not fits:
            raise ValueError(f"{path}: no table of a sweep: {name!r} has not only {expected}")
    return table


def as_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return results as a table, a row for each run."""
    import pandas as pd

    return pd.DataFrame(list(rows))
