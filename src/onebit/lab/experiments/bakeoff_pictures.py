"""Pictures of the bake-off: errors tool against tool, wins minus losses, ratios by size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onebit.lab.pictures import INK, plain, plain_axes

if TYPE_CHECKING:
    import pandas as pd

BLUE, ORANGE = INK[:2]


def draw_scatter(ax: Any, x: Any, y: Any, found: np.ndarray, name: str) -> Any:
    """Draw our errors against those of a tool, a point for each table.

    `found` is 1 for significant wins, -1 for losses, 0 for neither.
    """
    x, y = 100 * np.asarray(x), 100 * np.asarray(y)
    low = 0.7 * min(x[x > 0].min(), y[y > 0].min())
    ax.plot([low, 100], [low, 100], color="#999", linewidth=1, zorder=1)
    looks = {
        1: ("OneBitClassifier wins", BLUE, BLUE),
        -1: ("OneBitClassifier loses", ORANGE, ORANGE),
        0: ("not significant", "none", "#777"),
    }
    for verdict, (label, face, edge) in looks.items():
        some = found == verdict
        ax.scatter(
            x[some], y[some], s=22, facecolors=face, edgecolors=edge, linewidths=0.9, label=label
        )
    ax.set(xscale="log", yscale="log", xlim=(low, 100), ylim=(low, 100), aspect="equal")
    ax.set(xlabel=f"error %, {name}", ylabel="error %, OneBitClassifier")
    plain_axes(ax)
    ax.xaxis.set_major_locator(ax.yaxis.get_major_locator())
    ax.xaxis.set_major_formatter(ax.yaxis.get_major_formatter())
    return ax


def draw_matrix(ax: Any, differences: pd.DataFrame) -> Any:
    """Draw significant wins minus losses of the tool in the row against that in the column."""
    values = differences.astype(float).to_numpy()
    most = max(1.0, np.nanmax(np.abs(values)))
    ax.imshow(values, cmap="PuOr_r", vmin=-most, vmax=most)
    for i, j in np.argwhere(np.isfinite(values)):
        dark = abs(values[i, j]) > 0.6 * most
        color = "white" if dark else "black"
        ax.text(j, i, f"{values[i, j]:.0f}", ha="center", va="center", fontsize=6.5, color=color)
    names = list(differences.index)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7.5)
    ax.set_yticks(range(len(names)), names, fontsize=7.5)
    ax.figure.set_size_inches(9.5, 9.5)
    for side in ax.spines.values():
        side.set_visible(False)
    return ax


def draw_ratios(ax: Any, x: pd.Series, ratios: Mapping[str, pd.Series], name: str) -> Any:
    """Draw ratios of errors against a size of the tables, on logarithmic axes."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    ax.axhline(1.0, color="#999", linewidth=1)
    for (title, ratio), color, marker in zip(ratios.items(), INK, "os", strict=False):
        ax.scatter(x, ratio, s=18, color=color, marker=marker, alpha=0.7, label=title, lw=0)
    ax.set(xscale="log", yscale="log", xlabel=name, ylabel="ratio of errors")
    ticks = [t for power in range(7) for t in (10**power, 2 * 10**power, 5 * 10**power)]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:,g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="x", labelsize=8)
    plain(ax)
    return ax
