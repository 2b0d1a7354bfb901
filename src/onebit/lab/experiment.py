"""What an experiment is: the sweeps it needs, and what it makes of their results."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onebit.lab.measures import ONLINE, Measure
from onebit.lab.pictures import draw_curves, draw_with_legend
from onebit.lab.results import best, summary
from onebit.streams import SYNTHETIC
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
    measure: Measure = ONLINE


class Finding(NamedTuple):
    """A claim, whether it holds here (None if unknown), and what was observed."""

    claim: str
    holds: bool | None
    seen: str

    @property
    def verdict(self) -> str:
        """Whether it holds, in words."""
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]


@dataclass
class Section:
    """A part of a report."""

    title: str
    text: str
    figures: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    wide: bool = False
    """Whether a figure takes the width of the page."""
    only: tuple[str, ...] | None = None
    """The tables that a page of the documentation shows, by default all."""

    @property
    def on_page(self) -> bool:
        """Whether a page of the documentation shows anything of it."""
        return bool(self.figures or self.findings or self.on_page_tables())

    def on_page_tables(self) -> list[pd.DataFrame]:
        """Return the tables that a page of the documentation shows."""
        return [t for name, t in self.tables.items() if self.only is None or name in self.only]


class Experiment(NamedTuple):
    """Streams, learners, parameters and seeds, and what is made of the results.

    Attributes
    ----------
    name : str
        Its name in commands.
    title : str
    reference : str
        The paper whose experiment it is.
    notes : list of str
        How data and settings here differ from those of the paper, and what to know of others.
    sweeps : callable
        Returns the sweeps, by name, for a scale. Its keyword-only parameters are the options of
        the experiment: ``onebit lab run NAME --option value``.
    sections : callable
        Returns the parts of the report, from the tables of the sweeps and the scale.
    """

    name: str
    title: str
    reference: str
    notes: list[str]
    sweeps: Callable[..., dict[str, Sweep]]
    sections: Callable[[dict[str, pd.DataFrame], str], list[Section]]

    @property
    def options(self) -> dict[str, Any]:
        """The options of the experiment, with their values."""
        parameters = signature(self.sweeps).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def with_options(self, **values: Any) -> Experiment:
        """Return the same experiment with other values of options, which may be texts."""
        known = self.options
        for name in values:
            if name not in known:
                has = f"its options are {', '.join(known)}" if known else "it has none"
                raise ValueError(f"{self.name} has no option {name!r}: {has}")
        given = {name: _as_type(value, known[name]) for name, value in values.items()}
        return self._replace(sweeps=partial(self.sweeps, **given))


def _as_type(value: Any, default: Any) -> Any:
    """Return an option's value as the type of its default, if that is a number or a truth value."""
    if not isinstance(value, str):
        return value
    if isinstance(default, bool):
        if value not in ("yes", "no"):
            raise ValueError(f"an option that is on or off is yes or no; got {value!r}")
        return value == "yes"
    return type(default)(value) if isinstance(default, int | float) else value


def is_there(stream: str) -> bool:
    """Return whether a named stream can be made: it is synthetic, or its file exists."""
    if stream in SYNTHETIC:
        return True
    folder = os.environ.get(VARIABLE)
    return folder is not None and Path(folder, SOURCES[stream].file).is_file()


class View:
    """A sweep as reports show it: stream by stream, each learner with its best parameters.

    Parameters
    ----------
    table : DataFrame
        As `onebit.lab.sweep` returns it.

    Attributes
    ----------
    streams : dict {name: DataFrame}
        The runs on each stream.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table
        self.streams = {name: table[table.stream == name] for name in dict.fromkeys(table.stream)}

    def ranked(self, stream: str) -> pd.DataFrame:
        """Return the means of each learner on a stream, with its best parameters, best first."""
        return summary(self.streams[stream]).drop_duplicates("learner").set_index("learner")

    def errors(self, stream: str) -> dict[str, float]:
        """Return the mean error of each learner on a stream, best first."""
        return dict(self.ranked(stream).error)

    def said(self, stream: str) -> str:
        """Return the errors on a stream in words."""
        return ", ".join(f"{name} {percent(error)}" for name, error in self.errors(stream).items())

    def best(self, *parameters: str) -> pd.DataFrame:
        """Return mean and spread of each learner on each stream."""
        means = summary(best(self.table))
        shown = means.assign(**{"error %": 100 * means.error, "sd": 100 * means.error_sd})
        return shown[["stream", "learner", *parameters, "error %", "sd", "seeds"]]

    def drawn(self, draw: Callable[..., Any], **options: Any) -> dict[str, Any]:
        """Return a picture of each stream, by a function of `onebit.lab.pictures`."""
        return {
            name: draw_with_legend(partial(draw, table=some, **options), name)
            for name, some in self.streams.items()
        }

    def curves(self) -> dict[str, Any]:
        """Return a picture of each stream, the error so far against rounds."""
        return self.drawn(draw_curves)


def one_picture(draw: Callable[[Any], Any]) -> Any:
    """Return a figure that a function of axes draws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5), layout="constrained")
    draw(figure.add_subplot())
    return figure


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.2f} %"


def mean_and_se(values: Any, decimals: int = 2) -> str:
    """Return the mean of some differences, with its sign and its standard error."""
    mean = f"{np.mean(values):+.{decimals}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ±{np.std(values, ddof=1) / math.sqrt(len(values)):.{decimals}f}"
