"""Exported logs of `onebit serve`: rows of decisions, feedback and changes, a line each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

COLUMNS = {"n", "kind", "at", "body"}
"""What every row of such a log has."""

Rows = Iterator[tuple[int, dict[str, Any]]]


def revisions_in(path: Path) -> dict[str, dict[str, Any]]:
    """Return the last revision of each feedback in a log, by the id of the decision."""
    found = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if '"revision"' in line and (row := json.loads(line)).get("kind") == "revision":
                found[row["id"]] = row["body"]
    return found


def decisions_in(rows: Rows, where: str, revisions: Mapping[str, Any] | None = None) -> Rows:
    """Yield decisions in the order of their feedback, and those without feedback at the end.

    Parameters
    ----------
    rows : iterator of (line, row)
        Rows as the service exports them.
    where : str
        Names the file in errors.
    revisions : mapping, optional
        What counts in place of feedback, by the id of the decision.
    """
    revised = {} if revisions is None else revisions
    labels: list[Any] = []
    retired: set[Any] = set()
    awaited: dict[str, tuple[int, dict[str, Any]]] = {}
    for line, row in rows:
        try:
            kind, body = row["kind"], row["body"]
            if kind == "model":
                labels = _names(body["labels"])
            elif kind == "labels":
                added = _names(body.get("add", ()))
                labels += [label for label in added if label not in labels]
                retired = (retired - set(added)) | set(body.get("retire", ()))
            elif kind == "decision":
                offer = [label for label in labels if label not in retired]
                awaited[row["id"]] = line, _decision(row, offer)
            elif kind == "feedback" and row["id"] in awaited:
                made_in, decision = awaited.pop(row["id"])
                yield made_in, decision | _feedback(revised.get(row["id"], body))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{where}:{line}: a row of a service's log has kind, id, at and body: "
                f"{type(error).__name__} {error}"
            ) from None
    yield from awaited.values()


def _names(labels: Iterable[Any]) -> list[Any]:
    """Return the names of labels, of which some have a description."""
    return [label["name"] if isinstance(label, dict) else label for label in labels]


def _decision(row: Mapping[str, Any], offer: list[Any]) -> dict[str, Any]:
    body = row["body"]
    return {
        "id": row["id"],
        "time": row["at"],
        "label": body["label"],
        "probability": body["probability"],
        "confidence": body.get("confidence"),
        # Labels may be added later, so all of them are not the same as those on offer.
        "among": body.get("among") or offer,
        "x": body["record"],
    }


def _feedback(body: Mapping[str, Any]) -> dict[str, Any]:
    if body.get("withdrawn"):
        return {}
    if "expired" in body:
        return {"correct": False} if body["expired"] == "wrong" else {}
    if body.get("truth") is not None:
        return {"truth": body["truth"]}
    if "reward" in body:
        return {"reward": body["reward"]}
    return {"correct": bool(body.get("correct", False))}  # `truth` null: none of the labels
