"""The papers' pictures of their losses, drawn from `onebit.losses`, and one of Appendix F.

``python -m onebit.theory.pictures folder`` writes them as PNG.
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


def hessian_dominance(ax: Any) -> Any:
    """Draw Appendix F of the FOLKLORE paper, and return the axes.

    Condition (F.1), which proves the regret of AIOLI, needs a constant c that does not grow with
    B R for two labels, and one of at least exp(B R) / 2 + 1 for three.
    """
    BR = np.linspace(0.0, 8.0, 81)
    for K, colour in ((2, INK[0]), (3, INK[3])):
        needed = [least_dominance(np.append(np.zeros(K - 1), b)) for b in BR]
        ax.plot(BR, needed, color=colour, label=f"{K} labels")
    bound = np.exp(BR) / 2.0 + 1.0
    ax.plot(BR, bound, color=INK[4], linestyle=":", label="exp(BR) / 2 + 1")
    ax.set(xlabel="$BR$", ylabel="least $c$ of (F.1)", yscale="log", xlim=(0.0, 8.0))
    ax.set_title("Hessian dominance", loc="left")
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    return ax


def least_dominance(scores: np.ndarray) -> float:
    """Return the least c of (F.1) at some scores, if the first label is right.

    The regularizer is the mean of the losses of all labels, with the gradient sigma - 1 / K. The
    condition is that D = (sigma - e_1 - psi)(sigma - e_1 - psi)' - psi psi' is at most c S, where
    S = diag(sigma) - sigma sigma'. Both vanish along the vector of ones; elsewhere S is positive,
    and c is the largest eigenvalue of S^{-1/2} D S^{-1/2}.
    """
    K = scores.size
    sigma = np.exp(scores - scores.max())
    sigma /= sigma.sum()
    psi = sigma - 1.0 / K
    away = sigma - psi
    away[0] -= 1.0
    S = np.diag(sigma) - np.outer(sigma, sigma)
    D = np.outer(away, away) - np.outer(psi, psi)
    _, _, basis = np.linalg.svd(np.ones((1, K)))
    rest = basis[1:].T  # orthonormal, and orthogonal to the ones
    L = np.linalg.cholesky(rest.T @ S @ rest)
    half = np.linalg.solve(L, rest.T)
    return float(np.linalg.eigvalsh(half @ D @ half.T)[-1])


def main(folder: str = ".") -> None:
    """Write all pictures."""
    from matplotlib.figure import Figure

    for draw, name in (
        (eta_family, "soba_figure_1.png"),
        (surrogate_gap, "gaptron_figure_1.png"),
        (hessian_dominance, "folklore_appendix_f.png"),
    ):
        figure = Figure(figsize=(6.5, 4.5), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(Path(folder) / name, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
