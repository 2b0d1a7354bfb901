"""What a posterior forgets when something has changed, and how its prior is changed."""

from __future__ import annotations

import math

import numpy as np
from numba.core.types import Array

from onebit.core.compiling import chosen_by_type, lean_kernel
from onebit.numerics.linear import products, with_values
from onebit.numerics.posterior import (
    LEVEL_VARIANCE,
    MEAN,
    VARIANCE,
    Posterior,
    fill_right,
    first_variances,
)
from onebit.numerics.second_order import of_class


@lean_kernel
def score_by_former(posterior, x, scores):
    """Fill the scores by the former weights; x is what `score_posterior` was given last."""
    products(posterior.former, with_values(x, posterior.scratch.x), scores)


@lean_kernel
def predict_by_former(posterior, scores):
    """Fill p with the probability that each label is right, by scores of `score_by_former`."""
    scratch = posterior.scratch
    for k in range(scores.size):
        scores[k] = -math.inf if scratch.retired[k] else scores[k] + posterior.level[MEAN]
    fill_right(posterior.settings.exclusive, scores, scratch.p)


@lean_kernel
def exchange_former(posterior):
    """Exchange the weights with those from before the last change of everything."""
    W, former = posterior.W, posterior.former
    for j in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[j, k], former[j, k] = former[j, k], W[j, k]


@lean_kernel
def doubt_level(posterior):
    """Make the posterior of the level as wide as at first, as everything has changed."""
    if not posterior.settings.exclusive:
        posterior.level[VARIANCE] = LEVEL_VARIANCE


def forget_class(posterior, k):
    """Forget class k: its weights and variances are as before the first round."""
    if isinstance(posterior.S, np.ndarray):
        forget_diagonal(posterior, k)
    else:
        forget_full(posterior, k)


@chosen_by_type(forget_class)
def _forget_class(posterior, k):
    if isinstance(posterior.types[posterior.fields.index("S")], Array):
        return lambda posterior, k: forget_diagonal(posterior, k)
    return lambda posterior, k: forget_full(posterior, k)


@lean_kernel
def forget_diagonal(posterior, k):
    """`forget_class` with variances."""
    last = posterior.W.shape[0] - 1
    for j in range(last + 1):
        posterior.W[j, k] = 0.0
        posterior.S[j, k] = first_variance(posterior, j, last)


@lean_kernel
def forget_full(posterior, k):
    """`forget_class` with covariance matrices."""
    S = posterior.S.base[k]
    last = S.shape[0] - 1
    for i in range(last + 1):
        posterior.W[i, k] = 0.0
        for j in range(last + 1):
            S[i, j] = first_variance(posterior, i, last) if i == j else 0.0
    posterior.S.n_pending[k, 0] = 0


@lean_kernel
def first_variance(posterior, j, last):
    """Return what S has for weight j before the first round, at the present age."""
    settings = posterior.settings
    return (settings.widest_constant if j == last else settings.widest) / posterior.age[()]


# Another prior


def change_prior(posterior, first, end, which, before, now):
    """Change the prior's precision from `before` * a to `now` * a, for some classes.

    These are the classes from `first` to `end` - 1 that `which` marks.

    The evidence of the bits stays the same: for each weight, its precision minus that of the prior,
    and the product of its precision and its mean. With covariance matrices the prior stays.
    """
    if isinstance(posterior.S, np.ndarray):
        change_prior_diagonal(posterior, first, end, which, before, now)


@chosen_by_type(change_prior)
def _change_prior(posterior, first, end, which, before, now):
    if isinstance(posterior.types[posterior.fields.index("S")], Array):
        return lambda posterior, first, end, which, before, now: change_prior_diagonal(
            posterior, first, end, which, before, now
        )
    return lambda posterior, first, end, which, before, now: None


def share_of_prior_mean(
    posterior: Posterior, k: int, mean: np.ndarray, narrow: float
) -> np.ndarray:
    """Return what a prior mean adds to the weights of class k: S_k P^{-1} times the mean.

    P has the first variances; `narrow` is what `change_prior` multiplied its precision by.
    """
    first = first_variances(posterior.settings, mean.size) / posterior.age
    if isinstance(posterior.S, np.ndarray):
        return np.minimum(1.0, posterior.S[:, k] * narrow / first) * mean
    S = of_class(posterior.S, k)
    n = int(S.n_pending[0])
    pending = S.vectors[:n].T @ (S.weights[:n] * (S.vectors[:n] @ (mean / first)))
    return S.base @ (mean / first) - pending


@lean_kernel
def change_prior_diagonal(posterior, first, end, which, before, now):
    """`change_prior` with variances."""
    W, S, last = posterior.W, posterior.S, posterior.W.shape[0] - 1
    for j in range(last + 1):
        widest = first_variance(posterior, j, last)
        for k in range(first, end):
            if which[k]:
                # Forgetting may have widened it.
                variance = min(S[j, k], widest / before)
                S[j, k] = variance / (1.0 + (now - before) * variance / widest)
                W[j, k] *= S[j, k] / variance
