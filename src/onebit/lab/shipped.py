"""Results of other tools that come with the package, so that they need not be played again.

They are determined by the tool's version, the rows and the seed. A result counts if its version is
installed, or none is: then it is the only one there can be.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from onebit.core.replacing import replace_file
from onebit.lab.measures import result_of_counts
from onebit.lab.shared import fingerprint
from onebit.lab.sweeps import Run, digest
from onebit.lab.tools import ConstantLabel, Tool

PATH = Path(__file__).parent / "shipped.csv"

COLUMNS = (
    *("stream", "tool", "parameters", "measure", "rounds"),
    *("seeds", "mistakes", "seconds", "version", "key"),
)
"""Seeds, mistakes and seconds are lists, separated by spaces; seconds may be unknown."""


def shipped(run: Run) -> dict[str, Any] | None:
    """Return the result of a run, or None if it is not there."""
    if not isinstance(run.learner, Tool):
        return None
    row = _rows(PATH).get(_key(run))
    if row is None or run.learner.version not in (None, row["version"]):
        return None
    found = _by_seed(row).get(run.seed)
    if found is None:
        return None
    rounds, (mistakes, seconds) = int(row["rounds"]), found
    return {**result_of_counts(rounds, mistakes, seconds), "version": row["version"]}


def ship(results: Iterable[tuple[Run, dict[str, Any]]]) -> int:
    """Add results to the file, except those that take no time; return their number.

    They replace those of another version.
    """
    rows, added = dict(_rows(PATH)), 0
    for run, found in results:
        if not isinstance(run.learner, Tool) or isinstance(run.learner, ConstantLabel):
            continue
        key = _key(run)
        known = rows.get(key)
        by_seed = _by_seed(known) if known and known["version"] == found["version"] else {}
        by_seed[run.seed] = found["mistakes"], found["seconds"]
        seeds = sorted(by_seed)
        rows[key] = {
            "stream": run.stream,
            "tool": run.name,
            "parameters": _as_text(dict(run.grid)),
            "measure": _as_text(_changed(run.measure)),
            "rounds": str(found["rounds"]),
            "seeds": " ".join(map(str, seeds)),
            "mistakes": " ".join(str(by_seed[seed][0]) for seed in seeds),
            "seconds": " ".join(f"{by_seed[seed][1]:.2g}" for seed in seeds),
            "version": found["version"],
            "key": key,
        }
        added += 1
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows.values())
    replace_file(PATH, text.getvalue().encode())
    _rows.cache_clear()
    return added


def _as_text(settings: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _by_seed(row: dict[str, str]) -> dict[int, tuple[int, float]]:
    """Return mistakes and seconds of each seed."""
    columns = (row[name].split() for name in ("seeds", "mistakes", "seconds"))
    return {int(s): (int(m), float(t)) for s, m, t in zip(*columns, strict=True)}


def _key(run: Run) -> str:
    """Return a hash of what is played; a new option of streams or tools changes it only if used."""
    assert run.source is not None  # as a trial has
    source = fingerprint(run.source)
    defaults = {one.name: one.default for one in fields(run.source)}
    parameters = run.learner.get_params(deep=False)
    usual = type(run.learner)().get_params(deep=False)
    what = {
        "tool": type(run.learner).__name__,
        "parameters": {n: value for n, value in parameters.items() if value != usual[n]},
        "source": {n: value for n, value in source.items() if value != defaults.get(n)},
        "measure": _changed(run.measure),
    }
    return digest(what)[:16]


def _changed(settings: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, and of dataclasses in it, that differ from defaults."""
    found: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            found |= _changed(value)
        elif value != field.default:
            found[field.name] = value
    return found


@cache
def _rows(path: Path) -> dict[str, dict[str, str]]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {row["key"]: row for row in csv.DictReader(file)}
