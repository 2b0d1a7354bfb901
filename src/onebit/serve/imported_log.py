"""An exported log that is read again, line by line: validated, and applied to a model."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from onebit.core.validation import short
from onebit.serve.api import LogRow
from onebit.serve.model import Model, PendingDecision
from onebit.serve.rows import (
    BODIES,
    OF_DECISIONS,
    ActivationBody,
    DecisionBody,
    ErasedBody,
    ErasureBody,
    FeedbackBody,
    LabelsBody,
    ModelSpec,
    RevisionBody,
    Row,
    ShadowBody,
    text_of,
)

_decode = msgspec.json.Decoder(LogRow).decode

_CACHE = 2**25
"""Bytes of the decisions of a log that are kept in memory; the others are in a temporary file."""


class InvalidLogError(ValueError):
    """A log that cannot be imported, and why."""


def lines_of(parts: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Yield the lines of a log that comes in parts."""
    left = b""
    for part in parts:
        *lines, left = (left + part).split(b"\n")
        yield from lines
        if len(left) > longest:
            raise InvalidLogError(f"a line has at most {longest:,} bytes")
    if left.strip():
        yield left


class ImportedLog:
    """The model of a log that is being read.

    Parameters
    ----------
    most_labels : int or None
        Maximum labels of the model; None for a log of the service itself, whose rows are sound.

    Attributes
    ----------
    model : Model or None
        The model after the rows that were read; None before the first. It ignores revisions,
        as these come after the rows that they change.
    is_revised : bool
        Whether there were revisions.
    code : str or None
        The code that made the last row; empty if the log says that it is not known, and None if it
        says nothing.
    """

    def __init__(self, most_labels: int | None) -> None:
        self._most_labels = most_labels
        self.model: Model | None = None
        self.is_revised = self._is_erased = False
        self.code: str | None = None
        self._decisions = _Decisions()

    def apply(self, line: bytes) -> Row:
        """Apply the next line; raise InvalidLogError if it is wrong."""
        n = 1 if self.model is None else self.model.n + 1
        row, body, code = _parsed(line, n)
        self.code = self.code if code is None else code
        try:
            if isinstance(body, ModelSpec):
                self._check_labels(len(body.labels))
                self.model = Model.begin(row)
                self.model.learner.warm_up()
            elif self.model is not None:
                self._apply(self.model, row, body)
        except InvalidLogError:
            raise
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            raise InvalidLogError(str(error) or type(error).__name__) from None
        return row

    def _apply(self, model: Model, row: Row, body: object) -> None:
        pending = None
        if isinstance(body, FeedbackBody):
            self._check_truth(model, row, body)
        if isinstance(body, DecisionBody):
            self._decisions.add(row)
            if self._most_labels is not None:
                pending = PendingDecision(body, model.checked_decision(body))
        elif isinstance(body, RevisionBody):
            self.is_revised = True
            self._decisions.check_revision(row, body)
        elif isinstance(body, ActivationBody):
            if self._is_erased and self._decisions.find(row) is None:
                row, body = row._replace(kind="erased"), ErasedBody()
            else:
                self._decisions.activate(row)
        elif isinstance(body, FeedbackBody):
            self._decisions.answer(row)
            if row.id not in model.awaited:
                pending = self._decisions.find(row)
                if pending is None and self._is_erased:  # with the decision, while this came
                    row, body = row._replace(kind="erased"), ErasedBody()
        elif isinstance(body, ErasureBody):
            self._is_erased = True
        elif isinstance(body, ShadowBody):
            with contextlib.suppress(ValueError, TypeError):  # it will change nothing
                model.copy().try_change(body)  # which compiles what it needs
        model.apply(row, body, pending)
        if isinstance(body, LabelsBody):
            self._check_labels(len(model.learner.labels))

    def _check_truth(self, model: Model, row: Row, body: FeedbackBody) -> None:
        if self._most_labels is None or body.truth is UNSET or body.truth is None:
            return
        if body.truth not in model.learner.labels:
            raise InvalidLogError(f"row {row.n}: the truth {short(body.truth)} is no label")

    def _check_labels(self, n: int) -> None:
        if self._most_labels is not None and n > self._most_labels:
            raise InvalidLogError(f"a model has at most {self._most_labels:,} labels; got {n:,}")


class _Decisions:
    """The decisions of a log, by id, and the rows of the feedback for them.

    They are in a temporary database, so that memory does not grow with the log.
    """

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE // 1024}")
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute(
            "CREATE TABLE decision (id TEXT PRIMARY KEY, body TEXT NOT NULL, answered INT, "
            "activated INT NOT NULL) WITHOUT ROWID"
        )
        self._db.execute("BEGIN")

    def add(self, row: Row) -> None:
        """Add a decision; refuse a second one of its id."""
        query = "INSERT OR IGNORE INTO decision VALUES (?, ?, NULL, 0)"
        if not self._db.execute(query, (row.id, row.body)).rowcount:
            raise _repeated(row)

    def answer(self, row: Row) -> None:
        """Note the feedback for a decision; refuse a second one."""
        query = "UPDATE decision SET answered = ? WHERE id = ? AND answered IS NULL"
        if not self._db.execute(query, (row.n, row.id)).rowcount and self.find(row) is not None:
            raise _repeated(row)

    def check_revision(self, row: Row, body: RevisionBody) -> None:
        """Refuse a revision of feedback that is not there."""
        query = "SELECT answered FROM decision WHERE id = ?"
        if self._db.execute(query, (row.id,)).fetchone() != (body.since,):
            raise InvalidLogError(
                f"row {row.n} revises the feedback for {row.id!r} in row {body.since}, where it "
                "is not"
            )

    def activate(self, row: Row) -> None:
        """Note the activation of a decision; refuse a second one, and one of no decision."""
        query = "UPDATE decision SET activated = 1 WHERE id = ? AND activated = 0"
        if not self._db.execute(query, (row.id,)).rowcount:
            raise (
                _repeated(row)
                if self.find(row)
                else InvalidLogError(f"row {row.n} activates {row.id!r}, which nobody decided")
            )

    def find(self, row: Row) -> PendingDecision | None:
        """Return the decision that a row is feedback for; None if there is none."""
        query = "SELECT body FROM decision WHERE id = ?"
        found = self._db.execute(query, (row.id,)).fetchone()
        return found and PendingDecision(msgspec.json.decode(found[0], type=DecisionBody))


def _repeated(row: Row) -> InvalidLogError:
    return InvalidLogError(f"row {row.n}: there is a row of its kind and id already")


def _parsed(line: bytes, n: int) -> tuple[Row, object, str | None]:
    """Return row n of a log, its content, and the code that made it if the line names it."""
    try:
        found = _decode(line)
        body = msgspec.json.decode(found.body, type=BODIES[found.kind])
    except (ValueError, RecursionError) as error:
        raise InvalidLogError(f"row {n}: {error}") from None
    if found.n != n:
        raise InvalidLogError(f"row {n} is expected, and there is row {found.n}")
    if (found.id is None) == (found.kind in OF_DECISIONS):
        raise InvalidLogError(f"row {n}: rows of decisions have an id, and no other rows")
    if (found.kind == "model") != (n == 1):
        raise InvalidLogError(f"row {n}: the first row makes the model, and no other one")
    if isinstance(body, ModelSpec) and body.seed is None:
        raise InvalidLogError("the first row has the seed of the model")
    if isinstance(body, FeedbackBody):
        given = (body.correct, body.truth, body.reward, body.expired)
        if sum(one is not UNSET for one in given) + body.withdrawn != 1:
            raise InvalidLogError(
                f"row {n}: feedback has one of correct, truth, reward and expired"
            )
    if isinstance(body, ErasureBody | RevisionBody) and not 1 < body.since < n:
        raise InvalidLogError(f"row {n} changes row {body.since}, which is no earlier one")
    return Row(0, n, found.kind, found.id, found.at, text_of(body)), body, found.code
