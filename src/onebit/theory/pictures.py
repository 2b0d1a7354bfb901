"""The papers' pictures of their losses, drawn from `onebit.losses`.

``python -m onebit.theory.pictures folder`` writes both as PNG.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from onebit import losses

INK = ("#0072B2", "#009E73", "#E69F00", "#D55E00", "#000000")


def _of_margins(loss: losses.Loss, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a loss and the squared norm of its gradient in w, with two labels and ||x|| = 1.

    Scores (z / 2, -z / 2) have the margin z. For a single vector w with z = y <w, x>, as in the
    paper, the gradient is that in the margin.
    """
    scores = np.stack([margins / 2.0, -margins / 2.0], axis=1)
    first = np.zeros(len(margins), dtype=np.int64)
    return loss(scores, first), loss.gradient(scores, first)[:, 0] ** 2


def eta_family(ax: Any, etas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)) -> Any:
    """Draw SOBA's Figure 1, the losses between the hinge and its square, and return the axes."""
    m = np.linspace(-1.5, 1.5, 601)
    for eta, colour in zip(etas, INK, strict=False):
        name = {0.0: " (hinge)", 1.0: " (squared hinge)"}.get(eta, "")
        values, _ = _of_margins(losses.of("eta", eta), m)
        ax.plot(m, values, color=colour, label=f"$\\eta$ = {eta:g}{name}")
    ax.step(m, _of_margins(losses.of("zero_one"), m)[0], color="0.6", label="mistake")
    ax.set(xlabel="margin", ylabel="loss", xlim=(-1.5, 1.5), ylim=(-0.1, 6.5))
    ax.set_title("SOBA's family of losses", loc="left")
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    return ax


def surrogate_gap(ax: Any, eta: float = 1 / 8) -> Any:
    """Draw Gaptron's Figure 1, the surrogate gap of the smooth hinge, and return the axes.

    For two labels: a mistake plus eta / 2 ||g||^2, without and with the gap map, beside the loss.
    """
    z = np.linspace(-1.0, 1.5, 1001)
    loss, squares = _of_margins(losses.of("smooth_hinge"), z)
    wrong = (z <= 0.0).astype(float)
    gap = np.array([losses.smooth_hinge_gap(np.array([abs(s), 0.0])) for s in z])
    spent = eta / 2.0 * squares
    ax.plot(z, loss, color=INK[1], label="smooth hinge loss")
    ax.plot(z, wrong + spent, color=INK[3], label="mistake of the greedy label, a = 0")
    mixed = (1.0 - gap) * wrong + gap / 2.0 + spent
    ax.plot(z, mixed, color=INK[0], label="chance of a mistake with the gap map a")
    ax.set(xlabel="margin $z$", ylabel=r"with $\eta \|g\|^2 / 2$ added", xlim=(-1, 1.5))
    ax.set_title("The surrogate gap: negative where a curve is below the loss", loc="left")
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    return ax


def main(folder: str = ".") -> None:
    """Write both pictures."""
    from matplotlib.figure import Figure

    for draw, name in ((eta_family, "soba_figure_1.png"), (surrogate_gap, "gaptron_figure_1.png")):
        figure = Figure(figsize=(6.5, 4.5), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(Path(folder) / name, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
