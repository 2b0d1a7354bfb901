"""What a paper's module says: the sweeps it needs, and what is made of their results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onebit.lab.results import best, summary
from onebit.streams.named import SOURCES, VARIABLE

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("small", "full")
"""Small shows the same in minutes; full is what the paper did."""


class Sweep(NamedTuple):
    """What `onebit.lab.sweep` is called with."""

    learners: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    streams: Mapping[str, Any]
    seeds: list[int]


class Finding(NamedTuple):
    """What a paper says, whether it holds here, and what was seen; None if it cannot be told."""

    claim: str
    holds: bool | None
    seen: str


@dataclass
class Section:
    """A part of a report."""

    title: str
    text: str
    figures: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


class Paper(NamedTuple):
    """A paper and its experiments."""

    name: str
    title: str
    reference: str
    differences: list[str]
    """How data and settings here differ from those of the paper."""
    sweeps: Callable[[str], dict[str, Sweep]]
    """By the scale, the sweeps with their names."""
    sections: Callable[[dict[str, pd.DataFrame], str], list[Section]]
    """From the tables of the sweeps and the scale, the parts of the report."""


def is_there(stream: str) -> bool:
    """Whether the file of a named stream is where it is looked for."""
    folder = os.environ.get(VARIABLE)
    return folder is not None and Path(folder, SOURCES[stream].file).is_file()


def by_stream(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs on each stream."""
    return {name: table[table.stream == name] for name in dict.fromkeys(table.stream)}


def best_settings(table: pd.DataFrame, *parameters: str) -> pd.DataFrame:
    """Return mean and spread of each learner, with the parameters that are best on a stream."""
    means = summary(best(table))
    shown = means.assign(**{"error %": 100 * means.error, "sd": 100 * means.error_sd})
    return shown[["stream", "learner", *parameters, "error %", "sd", "seeds"]]


def percent(share: float) -> str:
    """Return a share as percents."""
    return f"{100 * share:.2f} %"
