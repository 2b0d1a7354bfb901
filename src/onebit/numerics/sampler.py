"""Samples of P(W), proportional to exp(-sum of weighted logistic losses), from a product of balls.

The rows of W have norm at most B, and P is uniform on all such W before the first loss. The samples
are weighted, and follow P as it changes (sequential Monte Carlo; Chopin 2002). A new loss changes
the weights. If that would make them too unequal, only a part of the loss is applied, the samples
are renewed, and the rest follows. To renew them, they are resampled by their weights, and the
copies are moved apart by Markov chains that leave P invariant. The more losses there are, the less
the next one changes P, so renewals become rare.

The chains are hit-and-run: P is log-concave, so it is unimodal on a line through W, and the next W
is drawn by slice sampling (Neal 2003). This is exact and needs no tuning. The lines point in
directions in which the samples are uncorrelated: if P were normal, one step in each of them would
be enough to forget where a chain started.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from onebit.core.compiling import compiled, kernel
from onebit.core.example import Example, dense
from onebit.core.generator import below, normal, uniform
from onebit.core.growing import Growing
from onebit.core.state import EXAMPLES, LABELS, ROWS, Field
from onebit.numerics.linear import assign
from onebit.numerics.mixture import log_mixture, log_sum, smooth

_LEAST_EFFECTIVE_SHARE = 0.5
"""Share of the samples that must be effective; otherwise they are renewed."""

_HALVINGS = 50
"""Bisection steps to find the part of a loss that leaves enough samples effective."""

_MAX_RENEWALS = 50
"""Most renewals for one loss; the rest is then applied at once. Only huge examples need many."""

_FIRST_WIDTH = 3.0
"""Width of the first interval on a line, in estimated standard deviations of P on it."""

_LEAST_DEVIATION = 1e-9
"""Least deviation in any coordinate, relative to B, to move samples apart if all are equal."""

_MAX_WIDTHS = 100
"""How often an interval may grow."""

_MAX_CUTS = 100
"""Each roughly halves the interval: samples stay where they are if rounding leaves no room."""


class Posterior(NamedTuple):
    """Weighted samples of P, of shape (M, d, K), and the losses so far.

    The loss of example s with label y_s counts `weights[s]` times. When the samples are renewed,
    each moves `n_sweeps` times in each of K d directions.
    """

    samples: Annotated[np.ndarray, Field("n_samples", "features", "classes")]
    log_weights: Annotated[np.ndarray, Field("n_samples", most=1e-6)]
    examples: Annotated[Growing, EXAMPLES]
    labels: Annotated[Growing, LABELS]
    weights: Annotated[Growing, Field(ROWS, least=0.0)]
    B: float
    n_sweeps: int

    def check(self) -> None:
        """Check that the samples are in the balls and the weights sum to one, up to rounding."""
        if not (np.linalg.norm(self.samples, axis=1) <= self.B * (1.0 + 1e-6)).all():
            raise ValueError(f"samples has a row longer than B = {self.B}")
        if not np.isclose(np.exp(self.log_weights).sum(), 1.0, rtol=0.0, atol=1e-6):
            raise ValueError("log_weights are not those of a distribution")

    def begin_classes(self, first: int) -> None:
        """Refuse: all past losses, which determined the samples, would change."""
        raise ValueError("samples of all weights were drawn jointly, for these classes")


def new_posterior(
    n_samples: int, n_sweeps: int, n_features: int, n_classes: int, B: float, rng: np.ndarray
) -> Posterior:
    """Return P before the first loss; the samples are drawn from `rng`."""
    samples = np.empty((n_samples, n_features, n_classes))
    _compiled(_fill_uniform)(samples, B, rng)
    return Posterior(
        samples,
        log_weights=np.full(n_samples, -math.log(n_samples)),
        examples=Growing(np.zeros((0, n_features))),
        labels=Growing(np.zeros(0, dtype=np.int64)),
        weights=Growing(np.zeros(0)),
        B=B,
        n_sweeps=n_sweeps,
    )


def predict(P: Posterior, x: Example, mu: float, scores: np.ndarray) -> None:
    """Fill scores with ln smooth_mu(E sigma(Wx)), smooth_mu(p) = (1 - mu) p + mu / K."""
    if len(P.labels.rows) == 0:  # the classes are exchangeable in P, though not in its samples
        scores[:] = -math.log(scores.size)
        return
    _compiled(_average)(P.samples, P.log_weights, x, mu, scores)


def observe(P: Posterior, x: Example, y: int, weight: float, rng: np.ndarray) -> bool:
    """Multiply P by exp(-weight l(W)), for the loss l of (x, y); return whether it changed."""
    if not x.values.any():
        return False
    P.examples.append(dense(x))
    P.labels.append(y)
    P.weights.append(weight)
    past = P.examples.rows, P.labels.rows, P.weights.rows
    _compiled(_apply_last_loss)(P.samples, P.log_weights, *past, P.B, P.n_sweeps, rng)
    return True


def effective_sample_size(P: Posterior) -> float:
    """Return 1 / sum of w_i^2 for the sample weights w_i: their number, if all are equal."""
    return float(1.0 / np.sum(np.exp(2.0 * P.log_weights)))


@kernel
def fill_uniform(samples, B, rng):
    """Draw rows uniformly from the ball of radius B: any direction, and (norm / B)^d uniform."""
    M, d, K = samples.shape
    for i in range(M):
        for k in range(K):
            squares = 0.0
            for j in range(d):
                samples[i, j, k] = normal(rng)
                squares += samples[i, j, k] ** 2
            scale = B * uniform(rng) ** (1.0 / d) / math.sqrt(squares)
            for j in range(d):
                samples[i, j, k] *= scale


@kernel
def average(samples, log_weights, x, mu, scores):
    """Fill scores with the logarithms of the smoothed mean of sigma(Wx)."""
    Z = np.zeros((samples.shape[0], scores.size))
    for i in range(Z.shape[0]):
        for j in range(x.indices.size):
            for k in range(scores.size):
                Z[i, k] += samples[i, x.indices[j], k] * x.values[j]
    log_mixture(Z, log_weights, scores)
    smooth(scores, mu)


@kernel
def apply_last_loss(samples, log_weights, X, y, weights, B, n_sweeps, rng):
    """Apply the loss of the last row of X, as much at a time as leaves enough samples effective."""
    M, last = log_weights.size, y.size - 1
    losses, Z = np.empty(M), np.empty((1, samples.shape[2]))
    whole, done = weights[last], 0.0
    for renewals in range(_MAX_RENEWALS + 1):
        for i in range(M):
            row_scores(samples[i], X[last:], Z)
            losses[i] = log_sum(Z[0]) - Z[0, y[last]]
        rest = whole - done
        part = rest if renewals == _MAX_RENEWALS else applicable_part(log_weights, losses, rest)
        reweigh(log_weights, losses, part, log_weights)
        if part == rest:
            break
        done += part
        weights[last] = done
        renew(samples, log_weights, X, y, weights, B, n_sweeps, rng)
    weights[last] = whole


@kernel
def applicable_part(log_weights, losses, rest):
    """Return the largest part of the losses, up to `rest`, that leaves enough samples effective."""
    new = np.empty(losses.size)
    fewest = _LEAST_EFFECTIVE_SHARE * losses.size
    if reweigh(log_weights, losses, rest, new) >= fewest:
        return rest
    low, high = 0.0, rest
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if reweigh(log_weights, losses, middle, new) >= fewest:
            low = middle
        else:
            high = middle
    return low


@kernel
def reweigh(log_weights, losses, part, new):
    """Fill `new` with the weights times exp(-part losses); return how many are effective."""
    for i in range(losses.size):
        new[i] = log_weights[i] - part * losses[i]
    log_total, squares = log_sum(new), 0.0
    for i in range(losses.size):
        new[i] -= log_total
        squares += math.exp(2.0 * new[i])
    return 1.0 / squares


@kernel
def renew(samples, log_weights, X, y, weights, B, n_sweeps, rng):
    """Draw samples of equal weight from the samples, and move each of them in all directions."""
    axes = directions(samples, log_weights, B)
    resample(samples, log_weights, rng)
    Z, U = np.empty((y.size, samples.shape[2])), np.zeros((y.size, samples.shape[2]))
    for i in range(samples.shape[0]):
        W = samples[i]
        row_scores(W, X, Z)
        loss = loss_on_line(Z, U, 0.0, y, weights, np.inf)
        for step in range(n_sweeps * axes.shape[0]):
            V = axes[step % axes.shape[0]]
            row_scores(V, X, U)
            a, loss = slice_sample(W, V, Z, U, y, weights, B, loss, rng)
            W += a * V
            Z += a * U


@kernel
def directions(samples, log_weights, B):
    """Return directions, one per entry of W, in which P varies roughly independently.

    They are the columns of a Cholesky factor of the covariance of the samples, whose correlations
    are shrunk the more, the fewer samples there are.
    """
    M, d, K = samples.shape
    D = d * K
    cloud = samples.reshape((M, D)).copy()
    center, deviation = np.zeros(D), np.zeros(D)
    for i in range(M):
        center += math.exp(log_weights[i]) * cloud[i]
    for i in range(M):
        assign(cloud[i], math.exp(0.5 * log_weights[i]) * (cloud[i] - center))
        deviation += cloud[i] ** 2
    deviation = np.maximum(np.sqrt(deviation), _LEAST_DEVIATION * B)
    cloud /= deviation
    correlation = M / (M + D) * np.dot(cloud.T, cloud)
    for j in range(D):
        correlation[j, j] = 1.0
    columns = np.linalg.cholesky(correlation).T * deviation
    return np.ascontiguousarray(columns).reshape((D, d, K))


@kernel
def resample(samples, log_weights, rng):
    """Replace the samples by copies: of each, a number in proportion to its weight, to within one.

    With u uniform, each of u, u + 1, ..., u + M - 1 selects the first sample i for which M times
    the sum of the weights up to i exceeds it.
    """
    M, old = log_weights.size, samples.copy()
    u, i, total = uniform(rng), 0, M * math.exp(log_weights[0])
    for place in range(M):
        while total <= u + place and i < M - 1:
            i += 1
            total += M * math.exp(log_weights[i])
        assign(samples[place], old[i])
    log_weights[:] = -math.log(M)


@kernel
def slice_sample(W, V, Z, U, y, weights, B, loss, rng):
    """Draw W + a V from P on this line; return a and the loss there.

    Z and U are the products of all examples with W and V, and `loss` is the loss at W.
    """
    highest = loss - math.log(1.0 - uniform(rng))
    least, most = chord(W, V, B)
    # Neal's stepping out: one width around 0, extended on both sides to where the slice ends.
    low = -_FIRST_WIDTH * uniform(rng)
    high = low + _FIRST_WIDTH
    left = below(rng, _MAX_WIDTHS)
    right = _MAX_WIDTHS - 1 - left
    while left > 0 and low > least and is_in_slice(Z, U, low, y, weights, highest):
        low -= _FIRST_WIDTH
        left -= 1
    while right > 0 and high < most and is_in_slice(Z, U, high, y, weights, highest):
        high += _FIRST_WIDTH
        right -= 1
    low, high = max(low, least), min(high, most)
    for _ in range(_MAX_CUTS):
        a = low + (high - low) * uniform(rng)
        new = loss_on_line(Z, U, a, y, weights, highest)
        if new <= highest:
            return a, new
        if a < 0.0:
            low = a
        else:
            high = a
    return 0.0, loss


@kernel
def is_in_slice(Z, U, a, y, weights, highest):
    """Return whether the loss at W + a V is at most `highest`."""
    return loss_on_line(Z, U, a, y, weights, highest) <= highest


@kernel
def chord(W, V, B):
    """Return the least a <= 0 and the largest a >= 0 where all rows of W + a V have norm <= B."""
    least, most = -np.inf, np.inf
    for k in range(W.shape[1]):
        # B^2 - ||w + a v||^2 = room - 2 a wv - a^2 vv
        room, wv, vv = B * B, 0.0, 0.0
        for j in range(W.shape[0]):
            room -= W[j, k] * W[j, k]
            wv += W[j, k] * V[j, k]
            vv += V[j, k] * V[j, k]
        if vv > 0.0:
            # The two roots, each without cancellation.
            far = abs(wv) + math.sqrt(wv * wv + vv * max(room, 0.0))
            near = max(room, 0.0) / far if far > 0.0 else 0.0
            least = max(least, -(near if wv < 0.0 else far / vv))
            most = min(most, far / vv if wv < 0.0 else near)
    return least, most


@kernel
def loss_on_line(Z, U, a, y, weights, enough):
    """Return the weighted losses of the scores Z + a U, or a partial sum that exceeds `enough`."""
    total = 0.0
    for s in range(y.size):
        score, odds = Z[s, y[s]] + a * U[s, y[s]], 0.0
        for k in range(Z.shape[1]):
            if k != y[s]:
                odds += math.exp(Z[s, k] + a * U[s, k] - score)
        total += weights[s] * (
            math.log(1.0 + odds) if odds < np.inf else asymptotic_loss(Z[s], U[s], a, y[s])
        )
        # Partial sums only grow, as no loss is negative.
        if total > enough:
            break
    return total


@kernel
def asymptotic_loss(z, u, a, y):
    """Return the loss of the scores z + a u where its exponential would overflow."""
    scores = z + a * u
    return log_sum(scores) - scores[y]


@kernel
def row_scores(W, X, Z):
    """Fill Z with the scores of each row of X."""
    for s in range(X.shape[0]):
        for k in range(W.shape[1]):
            Z[s, k] = 0.0
        for j in range(W.shape[0]):
            for k in range(W.shape[1]):
                Z[s, k] += X[s, j] * W[j, k]


@cache
def _compiled(template: Callable[..., Any]) -> Any:
    return compiled(f"{__name__}.{template.__name__}", template, nogil=False)


def _fill_uniform(samples, B, rng):
    fill_uniform(samples, B, rng)


def _average(samples, log_weights, x, mu, scores):
    average(samples, log_weights, x, mu, scores)


def _apply_last_loss(samples, log_weights, X, y, weights, B, n_sweeps, rng):
    apply_last_loss(samples, log_weights, X, y, weights, B, n_sweeps, rng)
