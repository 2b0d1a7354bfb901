"""Rows that change what earlier rows say: revisions of feedback, and erasures.

A model after row n is determined by the first n rows: of each feedback, the last revision among
them counts, at the place of the feedback, and erased rows count as nothing. So a row that amends
others changes the state from an earlier row on, and the model is rebuilt from a state before that
row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from onebit.serve.rows import AMENDING, FeedbackBody, Row, body_of


class Amendment(NamedTuple):
    """A row that changes what earlier rows say.

    Attributes
    ----------
    n : int
        Its number.
    since : int
        The first row that it changes.
    id : str or None
        Of the decision whose feedback it revises; None for an erasure.
    text : str
        Its content; that of a revision can be read as feedback.
    """

    n: int
    since: int
    id: str | None
    text: str


def amendments_of(rows: Iterable[Row], head: int) -> list[Amendment]:
    """Return the amendments among rows up to a number."""
    return [
        Amendment(row.n, body_of(row).since, row.id, row.body)
        for row in rows
        if row.kind in AMENDING and row.n <= head
    ]


def is_current(n: int, amendments: Iterable[Amendment]) -> bool:
    """Return whether the state after row n can be continued: no later row changes one up to it."""
    return not any(one.since <= n < one.n for one in amendments)


def last_words(amendments: Iterable[Amendment]) -> dict[str, str]:
    """Return the content of the last revision of each feedback, by the id of the decision."""
    return {one.id: one.text for one in amendments if one.id is not None}


def amended(rows: Iterable[Row], words: dict[str, str]) -> list[Row]:
    """Return rows with feedback as it was last revised."""
    return [
        row._replace(body=words[str(row.id)]) if row.kind == "feedback" and row.id in words else row
        for row in rows
    ]


class LastWord(NamedTuple):
    """The feedback for a decision that counts, and the row of the first feedback for it."""

    feedback: FeedbackBody
    row: int


def feedback_in(rows: Iterable[Row]) -> dict[str, LastWord]:
    """Return the feedback that counts, by the id of the decision; rows are in their order."""
    found: dict[str, LastWord] = {}
    for row in rows:
        if row.kind == "feedback":
            found[str(row.id)] = LastWord(body_of(row), row.n)
        elif row.kind == "revision":
            found[str(row.id)] = LastWord(body_of(row), body_of(row).since)
    return found
