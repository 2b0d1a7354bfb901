"""Where logs are kept: what the service needs from a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import NamedTuple

from onebit.serve.rows import Kind, Row


class LogError(Exception):
    """The log could not be written or read: the disk is full, the database unavailable."""


class UnavailableError(LogError):
    """The database cannot be reached, or did not answer in time."""


class NameTakenError(ValueError):
    """A model of that name exists."""


class Entry(NamedTuple):
    """A row to be written; it gets its number when it is."""

    model: int
    kind: Kind
    id: str | None
    at: float
    body: str


ImportedRow = tuple[Kind, str | None, float, str, str | None]
"""Kind, id, time, body and code of a row that is imported; no code, or an empty one, if unknown."""


class Key(NamedTuple):
    """An API key, of which only a digest is kept.

    Attributes
    ----------
    name : str
    digest : str
    scopes : str
        Some of decide, feedback, read and admin, separated by commas.
    created : float
        In seconds since 1970.
    models : str
        The models that it is for, separated by commas; empty for all.
    expires : float or None
        In seconds since 1970.
    rate : float or None
        Maximum number of requests a second, to each process.
    """

    name: str
    digest: str
    scopes: str
    created: float
    models: str = ""
    expires: float | None = None
    rate: float | None = None


class LogHead(NamedTuple):
    """A model's key, and the number of the last row of its log."""

    key: int
    rows: int


class Snapshot(NamedTuple):
    """A model after n rows, as bytes; `code` is the key of the code that made it, as of a row."""

    n: int
    meta: bytes
    learners: dict[str, bytes]
    code: int | None = None


class LogImport(ABC):
    """A log that is being imported: it is invisible until it is complete.

    Attributes
    ----------
    key : int
        Of the model.
    """

    key: int

    @abstractmethod
    async def append(self, rows: list[ImportedRow]) -> None:
        """Write the next rows; they need not be on disk when this returns."""

    @abstractmethod
    async def finish(self, name: str, n: int, snapshot: Snapshot | None) -> None:
        """Give the model its name, with all n rows and a snapshot on disk when this returns.

        Raise NameTakenError if another model has that name.
        """

    @abstractmethod
    async def abort(self) -> None:
        """Remove what was written; also after `finish` failed."""


class ServiceLog(ABC):
    """The logs of all models, their snapshots, and the API keys.

    Rows of a model are numbered 1, 2, ..., without gaps, in the order in which they become visible.
    No two decisions of a model have the same id, and no decision has feedback twice, other than by
    revisions: the database itself enforces this.
    """

    shared: bool
    """Whether other processes may write to it at the same time."""

    deadline: float | None = None
    """Maximum seconds until rows of a request are on disk or refused; None for a local disk."""

    @property
    def at_once(self) -> bool:
        """Whether `append` would now block the event loop until rows are on disk."""
        return False

    @abstractmethod
    async def open(self) -> None:
        """Make ready; raise LogError if that is not possible."""

    @abstractmethod
    async def close(self) -> None:
        """Release all resources."""

    async def tidy(self) -> None:  # noqa: B027
        """Remove what a killed process left of models that were being imported or removed."""

    @abstractmethod
    async def check(self) -> None:
        """Raise LogError if nothing can be written now."""

    @property
    @abstractmethod
    def code(self) -> int:
        """The key of the code that runs, which rows and snapshots of this process get."""

    @abstractmethod
    async def codes(self) -> dict[int, str]:
        """Return all code that wrote to this log: keys, with versions and fingerprints."""

    @abstractmethod
    async def models(self) -> dict[str, int]:
        """Return the models there are: their names, with their keys."""

    @abstractmethod
    async def heads(self) -> dict[str, LogHead]:
        """Return the models there are, with their numbers of rows."""

    @abstractmethod
    async def lead(self, models: list[int]) -> set[int]:
        """Try to become the leader of these models; return those that this process leads."""

    @abstractmethod
    async def add_model(self, name: str, at: float, body: str) -> int:
        """Write the first row of a model, and return the model's key."""

    @abstractmethod
    async def begin_import(self, first: ImportedRow) -> LogImport:
        """Write the first row of a model that has no name until all of its rows are written."""

    @abstractmethod
    async def remove_model(self, model: int) -> None:
        """Remove a model with its log."""

    @abstractmethod
    async def append(self, entries: list[Entry], seconds: float | None = None) -> list[int]:
        """Write rows, all or none, on disk when this returns; return their numbers.

        A log with a `deadline` takes at most `seconds`, which are at least half of the deadline.
        An entry that would be the second decision of an id, or the second feedback for one, or of
        a model that was removed, is left out, and its number is 0.
        """

    @abstractmethod
    async def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the rows that follow a row, at most `limit` of them."""

    @abstractmethod
    async def head(self, model: int) -> int:
        """Return the number of the last row."""

    @abstractmethod
    async def amendments(self, model: int) -> list[Row]:
        """Return the rows that change what earlier rows say, in their order."""

    @abstractmethod
    async def erase(self, model: int, decisions: list[int], at: float) -> int:
        """Erase decisions, by the numbers of their rows, with their feedback and its revisions.

        Snapshots that learned from them are removed, and a row records the erasure. `clean` removes
        what files still contain of erased rows.

        Returns
        -------
        int
            The number of rows that were erased.
        """

    @abstractmethod
    async def sweep(self, model: int, since: int, head: int) -> None:
        """Erase what other processes wrote before they knew of an erasure.

        That is feedback, in later rows, for decisions that are erased, and snapshots.

        Parameters
        ----------
        model : int
        since : int
            The first erased row.
        head : int
            The row that notes the erasure.
        """

    @abstractmethod
    async def clean(self) -> None:
        """Rewrite all files of the database, without what was erased or removed."""

    @abstractmethod
    async def find(self, model: int, ids: list[str]) -> list[Row]:
        """Return all rows of these ids, in their order: decisions, feedback and revisions."""

    @abstractmethod
    async def newest(self, model: int, limit: int) -> list[Row]:
        """Return the last decisions, the last one first."""

    @abstractmethod
    async def unanswered(self, model: int, after: int, limit: int) -> list[Row]:
        """Return the decisions without feedback among the `limit` rows that follow a row."""

    @abstractmethod
    async def add_snapshot(self, model: int, snapshot: Snapshot, keep: int) -> None:
        """Write a snapshot; forget all but the last `keep`, and the last one of each code."""

    @abstractmethod
    def snapshots(self, model: int) -> AsyncIterator[Snapshot]:
        """Yield the snapshots that are not damaged, the newest first."""

    @abstractmethod
    async def keys(self) -> list[Key]:
        """Return the API keys."""

    @abstractmethod
    async def add_key(self, key: Key) -> None:
        """Add an API key; raise NameTakenError if another one has its name."""

    @abstractmethod
    async def remove_key(self, name: str) -> bool:
        """Remove an API key; return whether there was one."""
