"""The best linear predictor in hindsight, with a certificate, and a learner's own losses.

The problem is to minimise f(W), the sum over the rows of l(W x_i, y_i), over a ball ||W|| <= r. For
any alpha_i at which the conjugate l*(alpha) = sup over s of <alpha, s> - l(s) is finite, f(W) for
all W in the ball is at least

    D(alpha) = - sum of l*_i(alpha_i) - r ||sum of alpha_i (x) x_i||_dual,

by summing the Fenchel-Young inequality l_i(s) >= <alpha_i, s> - l*_i(alpha_i), and Hoelder's
inequality. `gap` is f(W) - D(alpha) for the alpha found: a certificate that does not rely on the
solver.

The logistic losses are smooth, and their gradients at W serve as alpha. The margin losses are not,
not even the squared hinge, as the best other label may change. Instead they are replaced by the
maximum of

    <beta, s_k - s_y> - psi(sum of beta_k) - mu / 2 ||beta - centre||^2,   psi(b) = phi*(-b),

over beta >= 0, with alpha = sum of beta_k (e_k - e_y). This is smooth for every mu > 0. Each time
its minimiser is known well enough, the centre moves to the beta found there (the method of
multipliers), so that in the limit the smoothing costs nothing, whatever mu is. Minimisers are found
by projected quasi-Newton steps: a quadratic model of f, by limited-memory BFGS, is minimised in the
ball without a pass over the rows (Schmidt, van den Berg, Friedlander and Murphy 2009).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from onebit import losses
from onebit.core import ProbabilityLearner
from onebit.core.compiling import compiled, lean_kernel
from onebit.core.example import Rows, count_rows, row, slice_rows
from onebit.core.validation import check_classes, check_labels, check_rows, positions_of
from onebit.numerics.argmax import argmax_except

_PAIRS = 30
"""Number of steps that the quadratic model of f remembers."""

_MODEL_STEPS, _MEMORY = 200, 10
"""Most steps to the minimiser of a model, and the number of steps in which it must improve."""

_FEW_ROWS = 20_000
"""With fewer rows, starting from the minimiser of a subset does not pay off."""

_LEAST_MU = 1e-4
"""With a smaller mu, beta would be inaccurate."""

NORMS = ("frobenius", "rows")


@dataclass(frozen=True)
class Comparator:
    """The best weights in a ball, in hindsight.

    Attributes
    ----------
    W : ndarray of shape (n_classes, n_features)
    loss : float
        Sum of its losses over all rows.
    gap : float
        No weights in the ball have a loss below ``loss - gap``: this is proven, not estimated.
    classes : ndarray
        The labels, in the order of the rows of W.
    of : Loss
        Which loss; see `onebit.losses`.
    radius, norm : float, str
        The ball: ||W||_F <= radius ("frobenius"), or ||w_k|| <= radius for all k ("rows").
    """

    W: np.ndarray
    loss: float
    gap: float
    classes: np.ndarray
    of: losses.Loss
    radius: float
    norm: str

    def losses(self, X: Any, y: Any) -> np.ndarray:
        """Return its loss on each row."""
        rows = check_rows(X, None)
        scores = np.empty((count_rows(rows), len(self.W)))
        _score_pass()(rows, np.ascontiguousarray(self.W.T), scores)
        return self.of(scores, positions_of(self.classes, np.asarray(y)))


def best_linear(
    X: Any,
    y: Any,
    loss: str | losses.Loss = "log_loss",
    radius: float = 1.0,
    norm: str = "frobenius",
    *,
    eta: float | None = None,
    classes: Any = None,
    tolerance: float = 1e-4,
    max_passes: int = 2_000,
) -> Comparator:
    """Return the weights of least loss in a ball, with a bound on their suboptimality.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features)
    y : array-like of shape (n_rounds,)
        Labels of any kind.
    loss : {"log_loss", "logistic", "hinge", "squared_hinge", "smooth_hinge", "eta"} or Loss
        See `onebit.losses`.
    radius : float > 0, default=1.0
        Radius of the ball.
    norm : {"frobenius", "rows"}, default="frobenius"
        The ball of all W with ||W||_F <= radius, or of those whose rows all have ||w_k|| <= radius,
        as for FOLKLORE.
    eta : float in [0, 1], optional
        Which of the losses, for "eta".
    classes : array-like, optional
        All labels; by default those in `y`.
    tolerance : float, default=1e-4
        The search ends when the gap is at most this share of 1 + loss.
    max_passes : int, default=2000
        The search ends after this many passes over the rows, with a warning.

    Returns
    -------
    Comparator

    Examples
    --------
    >>> from onebit import streams, theory
    >>> X, y = streams.strongly_separable(1_000, n_features=20, n_classes=3, seed=0)
    >>> best = theory.best_linear(X, y, "hinge", radius=5.0)
    >>> round(best.loss, 1), best.gap < 1e-4 * (1 + best.loss)
    (56.4, True)
    """
    rows = check_rows(X, None)
    labels = check_labels(y, count_rows(rows), None)
    known = check_classes(labels if classes is None else classes)
    truth = positions_of(known, labels)
    of = losses.of(loss, eta)
    if of.name in ("zero_one", "gaptron_hinge"):
        raise ValueError(f"the loss {of.name!r} is not convex: its best weights cannot be found")
    if norm not in NORMS:
        raise ValueError(f"norm is one of {', '.join(NORMS)}; got {norm!r}")
    if not 0.0 < radius < np.inf:
        raise ValueError(f"radius is a positive number; got {radius}")
    problem = _Problem(rows, truth, known.size, of, float(radius), norm)
    solution = problem.solve(tolerance, max_passes)
    if solution.gap > tolerance * (1.0 + solution.loss):
        warnings.warn(
            f"after {max_passes} passes the loss {solution.loss:.6g} is known to be within "
            f"{solution.gap:.2g} of the least one only",
            ConvergenceWarning,
            stacklevel=2,
        )
    unit = losses.LN2 if of.name == "logistic" else 1.0
    W = np.ascontiguousarray(solution.W.T)
    found = solution.loss / unit, solution.gap / unit
    return Comparator(W, *found, known, of, float(radius), norm)


def online_log_loss(learner: ProbabilityLearner, X: Any, y: np.ndarray) -> np.ndarray:
    """Return -ln of the probability that `learner` gave to each label before it was told.

    Parameters
    ----------
    learner : ProbabilityLearner
        It learns from the rows, and must know its classes.
    X : ndarray or sparse matrix of shape (n_rounds, n_features)
    y : ndarray of shape (n_rounds,)

    Returns
    -------
    ndarray of shape (n_rounds,)
    """
    suffered = np.empty(len(y))
    for t, truth in enumerate(y):
        x = X[t]
        decision = learner.decide(x)
        scores = learner._run.scores  # of the x of the last decision
        suffered[t] = np.logaddexp.reduce(scores) - scores[learner._run.position_of(truth)]
        learner.learn(decision, truth=truth)
    return suffered


@dataclass
class _Solution:
    """W, of shape (n_features, n_classes), its loss, and a lower bound on losses in the ball."""

    W: np.ndarray
    loss: float = np.inf
    bound: float = -np.inf

    @property
    def gap(self) -> float:
        # Both are sums over many rows, accurate only up to rounding.
        return self.loss - self.bound + 1e-12 * abs(self.loss)


class _Problem:
    """The minimisation over one ball and set of rows. Weights have shape (n_features, n_classes).

    `loss`, `smoothed` and `dual` belong to the last W that was evaluated: f, f with the smooth
    losses, and minus the sum of the conjugates.
    """

    def __init__(
        self,
        rows: Rows,
        truth: np.ndarray,
        n_classes: int,
        of: losses.Loss,
        radius: float,
        norm: str,
    ) -> None:
        self.rows, self.truth, self.n_classes = rows, truth, n_classes
        self.of, self.radius, self.norm = of, radius, norm
        self.is_margin_loss = of.name not in ("log_loss", "logistic")
        self.mu = 1.0
        self.centre = np.zeros((truth.size if self.is_margin_loss else 0, n_classes))
        self.scratch = np.empty((2, n_classes))
        self.passes = 0

    def evaluate(self, W: np.ndarray, move_centre: bool = False) -> tuple[float, np.ndarray]:
        """Return f with the smooth losses, and its gradient."""
        G, totals = np.empty_like(W), np.zeros(3)
        scores, c = self.scratch
        if self.is_margin_loss:
            _margin_pass(self.of.eta is not None)(
                self.rows,
                self.truth,
                W,
                self.of.eta or 0.0,
                self.mu,
                self.centre,
                move_centre,
                G,
                scores,
                c,
                totals,
            )
        else:
            _log_pass()(self.rows, self.truth, W, G, scores, c, totals)
        self.passes += 1
        self.loss, self.smoothed, self.dual = totals.tolist()
        return self.smoothed, G

    def project(self, W: np.ndarray) -> np.ndarray:
        axis = 0 if self.norm == "rows" else None
        lengths = np.sqrt(np.sum(W * W, axis=axis))
        return W * np.minimum(1.0, self.radius / np.maximum(lengths, 1e-300))

    def support(self, G: np.ndarray) -> float:
        """Return the largest <G, W> over the ball."""
        axis = 0 if self.norm == "rows" else None
        return self.radius * float(np.sum(np.sqrt(np.sum(G * G, axis=axis))))

    def solve(self, tolerance: float, max_passes: int) -> _Solution:
        n = self.truth.size
        W = np.zeros((self.rows.n_features, self.n_classes))
        if n > _FEW_ROWS:
            some, truth = slice_rows(self.rows, 0, n // 8), self.truth[: n // 8]
            part = _Problem(some, truth, self.n_classes, self.of, self.radius, self.norm)
            W = part.solve(10 * tolerance, max_passes).W
            self.mu = min(1.0, 2.0 * part.mu)
        best = _Solution(W)
        if self.is_margin_loss:
            self.evaluate(W, move_centre=True)
        while self.passes < max_passes:
            before = best.gap
            W = self.descend(W, best, tolerance, max_passes)
            if not self.is_margin_loss or best.gap <= tolerance * (1.0 + best.loss):
                break
            self.evaluate(W, move_centre=True)
            if best.gap > 0.3 * before:
                self.mu = max(0.5 * self.mu, _LEAST_MU)
        return best

    def descend(
        self, W: np.ndarray, best: _Solution, tolerance: float, max_passes: int
    ) -> np.ndarray:
        """Minimise f with the smooth losses until its own gap is small compared with that of f."""
        value, G = self.evaluate(W)
        model = _Model()
        while True:
            bound = self.dual - self.support(G)
            if self.loss < best.loss:
                best.W, best.loss = W, self.loss
            best.bound = max(best.bound, bound)
            own_gap = float(np.sum(G * W)) + self.support(G)
            if (
                best.gap <= tolerance * (1.0 + best.loss)
                or (self.is_margin_loss and own_gap <= 0.3 * (self.loss - bound))
                or self.passes >= max_passes
            ):
                return W
            direction = self.minimise(model, W, G) - W
            slope, share = float(np.sum(G * direction)), 1.0
            while True:
                W_new = W + share * direction
                new, G_new = self.evaluate(W_new)
                if new <= value + 1e-4 * share * slope or share < 1e-6:
                    break
                share *= 0.5
            if share < 1e-6:  # rounding: the model is no better than f itself
                return W
            model.add(W_new - W, G_new - G)
            W, G, value = W_new, G_new, new

    def minimise(self, model: _Model, W: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return an approximate minimiser in the ball of <G, V - W> + 1/2 <V - W, B (V - W)>.

        It takes projected gradient steps with Barzilai-Borwein step sizes, which need no pass.
        """
        if not model.pairs:
            return self.project(W - G * (self.radius / max(float(np.abs(G).max()), 1e-300)))
        V, g, value = W, G, 0.0
        recent, step = [0.0], 1.0 / model.sigma
        for _ in range(_MODEL_STEPS):
            direction = self.project(V - step * g) - V
            slope = float(np.sum(g * direction))
            if slope > -1e-12 * abs(value) or slope == 0.0:
                break
            curved = model.times(direction)
            curvature = float(np.sum(direction * curved))
            # Along a line the model is a parabola, so the best step size is known.
            share = min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
            V, g = V + share * direction, g + share * curved
            value += share * slope + 0.5 * share**2 * curvature
            recent = [*recent[1 - _MEMORY :], value]
            if len(recent) == _MEMORY and recent[0] - value < 1e-3 * -value:
                break
            step = float(np.sum(direction * direction)) / max(curvature, 1e-300)
        return V


class _Model:
    """B, by BFGS updates from the last steps and the resulting changes of the gradient.

    Its compact form is sigma I - N M^{-1} N' with N = [sigma S, Y] (Byrd, Nocedal and Schnabel
    1994).
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        s, y = step.ravel(), change.ravel()
        if float(s @ y) <= 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        self.pairs = [*self.pairs[1 - _PAIRS :], (s, y)]
        S, Y = (np.array(some).T for some in zip(*self.pairs, strict=True))
        self.sigma = float(y @ y) / float(s @ y)
        SY = S.T @ Y
        L, D = np.tril(SY, -1), np.diag(np.diag(SY))
        M = np.block([[self.sigma * (S.T @ S), L], [L.T, -D]])
        self.N = np.hstack([self.sigma * S, Y])
        self.MN = np.linalg.solve(M, self.N.T)

    def times(self, V: np.ndarray) -> np.ndarray:
        v = V.ravel()
        return (self.sigma * v - self.N @ (self.MN @ v)).reshape(V.shape)


# In the functions below, `compiled` binds these names to the kernels of a margin loss.
phi: Any = None
slope_of: Any = None
bend_of: Any = None


@lean_kernel
def _fill_scores(W, x, scores):
    scores[:] = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        for k in range(scores.size):
            scores[k] += W[j, k] * x_j


@lean_kernel
def _add_outer(G, x, alpha):
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        for k in range(alpha.size):
            G[j, k] += alpha[k] * x_j


def _scores(rows, W, out):
    for i in range(out.shape[0]):
        _fill_scores(W, row(rows, i), out[i])


def _log(rows, truth, W, G, scores, g, totals):
    """Sum up the loss l, twice, and <g, s> - l, with the gradient."""
    G[:] = 0.0
    for i in range(truth.size):
        x, y = row(rows, i), truth[i]
        _fill_scores(W, x, scores)
        value = losses.log_loss(scores, y)
        inner = 0.0
        if losses.log_loss_gradient(scores, y, g):
            _add_outer(G, x, g)
            for k in range(g.size):
                inner += g[k] * scores[k]
        totals[0] += value
        totals[1] += value
        totals[2] += value - inner


def _margin(rows, truth, W, eta, mu, centre, move_centre, G, scores, c, totals):
    """Sum up the loss, the smooth loss and -psi(b), with the gradient of the smooth loss.

    The largest of <beta, s_k - s_y> - psi(b) - mu / 2 ||beta - centre||^2 has beta_k = max{0, c_k +
    m / mu} with c_k = centre_k + (s_k - s_y) / mu, where -m is a subgradient of psi at b = sum of
    beta_k: b is -phi'(m), or any number from 0 to that if m = 1. With h(m) = sum of beta_k -
    (-phi'(m)), which is convex and increasing, h(1) <= 0 means m = 1; otherwise Newton's method
    from 1 descends to its root, in as many steps as there are kinks.
    """
    G[:] = 0.0
    for i in range(truth.size):
        x, y = row(rows, i), truth[i]
        _fill_scores(W, x, scores)
        totals[0] += phi(scores[y] - scores[argmax_except(scores, y)], eta)
        for k in range(c.size):
            c[k] = centre[i, k] + (scores[k] - scores[y]) / mu
        m = 1.0
        while True:
            b, n_positive = 0.0, 0
            for k in range(c.size):
                if k != y and c[k] + m / mu > 0.0:
                    b += c[k] + m / mu
                    n_positive += 1
            h = b - slope_of(m, eta)
            if h <= 1e-14 * b:
                break
            lower = m - h / (n_positive / mu - bend_of(m, eta))
            if lower >= m:
                break
            m = lower
        # Rounding errors in h would invalidate the certificate.
        scale = slope_of(m, eta) / b if m < 1.0 else 1.0
        b *= scale
        inner, squares = 0.0, 0.0
        for k in range(c.size):
            if k != y:
                beta = scale * max(0.0, c[k] + m / mu)
                inner += beta * (scores[k] - scores[y])
                squares += (beta - centre[i, k]) ** 2
                if move_centre:
                    centre[i, k] = beta
                c[k] = beta
        c[y] = -b
        psi = -b * m - phi(m, eta)
        totals[1] += inner - psi - 0.5 * mu * squares
        totals[2] -= psi
        if b > 0.0:
            _add_outer(G, x, c)


@lean_kernel
def _smooth_hinge_phi(m, eta):
    return losses.smooth_hinge_phi(m)


@lean_kernel
def _smooth_hinge_slope(m, eta):
    return losses.smooth_hinge_slope(m)


@lean_kernel
def _smooth_hinge_bend(m, eta):
    return losses.smooth_hinge_bend(m)


@cache
def _score_pass() -> Any:
    return compiled("onebit.theory.scores", _scores, nogil=True)


@cache
def _log_pass() -> Any:
    return compiled("onebit.theory.log", _log, nogil=True)


@cache
def _margin_pass(of_eta_family: bool) -> Any:
    if of_eta_family:
        kernels = (losses.eta_phi, losses.eta_slope, losses.eta_bend)
    else:
        kernels = (_smooth_hinge_phi, _smooth_hinge_slope, _smooth_hinge_bend)
    name = "onebit.theory.eta" if of_eta_family else "onebit.theory.smooth_hinge"
    names = dict(zip(("phi", "slope_of", "bend_of"), kernels, strict=True))
    return compiled(name, _margin, nogil=True, **names)
