"""Pictures of runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebit.cli.playing import Result
from onebit.lab.pictures import INK, plain_axes, style

if TYPE_CHECKING:
    from onebit import History, Learner

NOISE = 0.05
"""Share of the labels of SynNonSep that are wrong: no learner can do better in the long run."""


def check_writable(path: Path | None) -> None:
    """Raise now, not after the run, if there cannot be such a file."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ValueError(f"cannot write {path}: permission denied")


def check_picture(path: Path | None) -> None:
    """Raise now, not after the run, if no picture can be written to this file."""
    check_writable(path)
    if path is None:
        return
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ValueError(f"cannot draw {path}: its name must end in .{', .'.join(known)}")


def save_plot(path: Path, plot: Callable[[Any], Any], height: float = 4.5) -> None:
    """Save what a function draws on axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, height), layout="constrained")
    plot(figure.add_subplot())
    figure.savefig(path, dpi=150)


def draw_run(path: Path, learner: Learner, stream: str, history: History) -> None:
    """Draw error against rounds of one run."""

    def draw(ax: Any) -> None:
        history.plot(ax, color=INK[0], linewidth=2)
        plain_percents(ax, [history])
        ax.set_title(f"{type(learner).__name__} on {stream}", loc="left")

    save_plot(path, draw)


def draw_demo(path: Path, ranked: dict[str, tuple[Learner, Result]]) -> None:
    """Draw error against rounds of all learners, the best last and on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    ax = figure.add_subplot()
    histories = {name: result.history for name, (_, result) in ranked.items()}
    styles = {name: style(i) for i, name in enumerate(histories)}
    for name in reversed(histories):
        full = ranked[name][0].feedback == "full"
        histories[name].plot(ax, linewidth=1.2 if full else 2, **styles[name])
    plain_percents(ax, list(histories.values()), lowest=100 * NOISE)
    ax.axhline(100 * NOISE, color="0.4", linewidth=1, linestyle=(0, (6, 3)))
    ax.annotate(
        f"noise floor: {100 * NOISE:g} % of the labels are wrong",
        xy=(0.01, 100 * NOISE),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        color="0.3",
        fontsize=9,
    )
    label_ends(ax, ranked, styles)
    ax.set_title("Learning from one bit a round: SynNonSep", loc="left")
    figure.savefig(path, dpi=150)


def label_ends(ax: Any, ranked: dict[str, tuple[Learner, Result]], styles: dict[str, Any]) -> None:
    """Write each learner's name and error beside the end of its line, without overlaps."""
    to_axes = ax.transData + ax.transAxes.inverted()
    ends = {
        name: (result.history.rounds, 100 * result.history.error_rate)
        for name, (_, result) in ranked.items()
    }
    wanted = [float(to_axes.transform(end)[1]) for end in ends.values()]
    for (name, end), height in zip(ends.items(), spread(wanted, gap=0.045), strict=True):
        told = " (full feedback)" if ranked[name][0].feedback == "full" else ""
        ax.annotate(
            f"{name} {end[1]:.1f} %{told}",
            xy=end,
            xytext=(1.04, height),
            textcoords="axes fraction",
            verticalalignment="center",
            color=styles[name]["color"],
            fontsize=9,
            arrowprops={"arrowstyle": "-", "linewidth": 0.7, "relpos": (0, 0.5), **styles[name]},
        )


def spread(wanted: list[float], gap: float) -> list[float]:
    """Return heights in [0, 1] nearest to the wanted ones, in their order and `gap` apart.

    With the gaps subtracted, heights only have to be non-decreasing: an isotonic regression.
    """
    from sklearn.isotonic import isotonic_regression

    shares = [i * gap for i in range(len(wanted))]
    least = [height - share for height, share in zip(wanted, shares, strict=True)]
    fitted = isotonic_regression(least, y_min=0.0, y_max=max(0.0, 1.0 - shares[-1]))
    return [float(height) + share for height, share in zip(fitted, shares, strict=True)]


def plain_percents(ax: Any, histories: list[History], lowest: float = 100.0) -> None:
    """Fit the axes to `lowest` and the histories from round 10 on, with ticks like 5, 10, 20."""
    errors = [error for h in histories for t, error in zip(*h.curve(), strict=True) if t >= 10]
    lowest = min([lowest, *(100 * error for error in errors if error > 0)])
    ax.set_xlim(10, max(100, *(h.rounds for h in histories)))
    ax.set_ylim(0.8 * lowest, 100)
    plain_axes(ax)
