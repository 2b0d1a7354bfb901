"""Pictures of sweeps: error against rounds, with bands, and error against a parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onebit.lab.results import best, grid_columns, summary

if TYPE_CHECKING:
    import pandas as pd

INK = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colour-blind safe palette, without yellow, which is too pale for a line."""

DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
"""Line styles: with more learners than colours, the next style begins."""


def style(i: int) -> dict[str, Any]:
    """Return colour and dashes of line number `i`."""
    return {"color": INK[i % len(INK)], "linestyle": DASHES[i // len(INK) % len(DASHES)]}


def draw_sweep(table: pd.DataFrame) -> Any:
    """Return a figure of a sweep, a column for each stream.

    The upper row has the error so far against rounds, for each learner with its best parameters on
    that stream in hindsight; the band is one standard deviation over the seeds to either side.
    Where one parameter has several values, a row below has the error against it.
    """
    from matplotlib.figure import Figure

    streams = list(dict.fromkeys(table.stream))
    swept = swept_parameters(table)
    n_rows = 1 + len(swept)
    figure = Figure(figsize=(max(6.5, 4.2 * len(streams)), 4.2 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, len(streams), squeeze=False)
    for column, stream in enumerate(streams):
        some = table[table.stream == stream]
        draw_curves(axes[0, column], some)
        axes[0, column].set_title(stream, loc="left")
        for row, parameter in enumerate(swept, start=1):
            draw_parameter(axes[row, column], some, parameter)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    n = table.seed.nunique()
    title = f"mean over {n} seeds; band: one standard deviation to either side" if n > 1 else None
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, title=title)
    return figure


def draw_with_legend(draw: Callable[[Any], Any], title: str) -> Any:
    """Return a figure of one picture, with its legend below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4.4), layout="constrained")
    ax = figure.add_subplot()
    draw(ax)
    ax.set_title(title, loc="left")
    figure.legend(
        *ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    return figure


class MeanCurve(NamedTuple):
    """A mean over runs against something, and its standard deviation."""

    x: np.ndarray
    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, values: np.ndarray) -> MeanCurve:
        """Return the curve of values with one row per run."""
        return cls(x, values.mean(axis=0), values.std(axis=0, ddof=min(1, len(values) - 1)))

    def until(self, last: float) -> MeanCurve:
        """Return the part up to some x."""
        return MeanCurve(*(values[self.x <= last] for values in self))


def draw_lines(ax: Any, lines: Mapping[str, MeanCurve], names: Sequence[str]) -> Any:
    """Draw lines with bands, coloured by their positions among all `names`."""
    for name, line in lines.items():
        look = style(names.index(name))
        ax.plot(line.x, line.mean, label=name, linewidth=1.6, **look)
        low, high = line.mean - line.sd, line.mean + line.sd
        ax.fill_between(line.x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    plain(ax)
    return ax


def draw_panels(rows: Sequence[Sequence[Callable[[Any], Any]]], title: str) -> Any:
    """Return a figure of panels, each drawn by a function of axes, with the legend of the first."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(rows[0]), 2.9 * len(rows) + 0.7), layout="constrained")
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for line, panels in zip(axes, rows, strict=True):
        for ax, draw in zip(line, panels, strict=True):
            draw(ax)
    figure.suptitle(title, x=0.01, ha="left")
    handles = axes[0, 0].get_legend_handles_labels()
    columns = 2 * len(rows[0]) - 1
    figure.legend(*handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def swept_parameters(table: pd.DataFrame) -> list[str]:
    """Return the parameters that are numbers, and have several values."""
    from pandas.api.types import is_numeric_dtype

    return [
        name
        for name in grid_columns(table)
        if table[name].nunique() > 1 and is_numeric_dtype(table[name])
    ]


def draw_curves(ax: Any, table: pd.DataFrame) -> Any:
    """Draw the error so far against rounds on one stream, a line and a band for each learner."""
    styles = {name: style(i) for i, name in enumerate(dict.fromkeys(table.learner))}
    chosen = best(table)
    lowest = 100.0
    for name, line in styles.items():
        runs = chosen[chosen.learner == name]
        rounds = np.array(runs.curve_rounds.iloc[0])
        errors = 100 * np.stack([np.array(curve) for curve in runs.curve_errors])
        shown = rounds >= min(10, rounds[-1])
        rounds, errors = rounds[shown], errors[:, shown]
        mean, sd = errors.mean(axis=0), errors.std(axis=0, ddof=min(1, len(errors) - 1))
        ax.plot(rounds, mean, label=name, linewidth=1.8, **line)
        ax.fill_between(
            rounds, np.maximum(mean - sd, 1e-3), mean + sd, color=line["color"], alpha=0.15, lw=0
        )
        lowest = min([lowest, *mean[mean > 0]])
    ax.set(xscale="log", yscale="log", xlabel="rounds", ylabel="mistakes so far, % of rounds")
    ax.set_ylim(0.7 * lowest, 100)
    plain_axes(ax)
    return ax


def draw_parameter(ax: Any, table: pd.DataFrame, parameter: str) -> Any:
    """Draw the error against a parameter on one stream; learners without it are flat lines."""
    styles = {name: style(i) for i, name in enumerate(dict.fromkeys(table.learner))}
    means = summary(table)
    for name, line in styles.items():
        some = means[means.learner == name]
        if some[parameter].isna().all():
            ax.axhline(100 * some.error.min(), linewidth=1.2, label=name, **line)
            continue
        # With the best values of all other parameters.
        some = some.loc[some.groupby(parameter).error.idxmin()].sort_values(parameter)
        x, mean = some[parameter].to_numpy(), 100 * some.error.to_numpy()
        sd = 100 * some.error_sd.fillna(0).to_numpy()
        ax.plot(x, mean, marker="o", markersize=3, linewidth=1.5, label=name, **line)
        ax.fill_between(x, mean - sd, mean + sd, color=line["color"], alpha=0.15, linewidth=0)
    values = table[parameter].dropna()
    if (values > 0).all() and values.max() >= 10 * values.min():
        ax.set_xscale("log")
    ax.set(xlabel=parameter, ylabel="mistakes, % of rounds")
    ax.set_ylim(0, None)
    plain(ax)
    return ax


def plain(ax: Any) -> None:
    """Draw a pale grid, and no frame."""
    ax.grid(alpha=0.3)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def plain_axes(ax: Any) -> None:
    """Give an axis of percents ticks like 5, 10, 20, and one of rounds ticks like 1,000."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    ticks = [digit * 10.0**power for power in range(-6, 3) for digit in (1, 2, 5)]
    ax.yaxis.set_major_locator(FixedLocator([t for t in ticks if t <= 100]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:,.0f}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    plain(ax)
