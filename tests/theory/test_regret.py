"""Measured regret of the learners of the logarithmic loss, against each other and their bounds."""

import numpy as np
import pytest
import scipy.sparse as sp

from onebit.core.validation import check_rows
from onebit.learners.folklore import Folklore
from onebit.learners.online_gradient import OnlineGradient
from onebit.learners.online_newton import OnlineNewton
from onebit.theory import best_linear, bounds, online_log_loss
from onebit.theory.regret import _sizes

TIMES = (100, 1_000, 10_000)


def logistic(d, K, spread, seed=1):
    """Unit examples in all directions, labels of a logistic model."""
    T = TIMES[-1]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Z = X @ (spread * rng.normal(size=(d, K)))
    return X, np.argmax(Z + rng.gumbel(size=(T, K)), axis=1)


def opposed(d, K, seed, theta=0.15):
    """A stream that is hard for all who choose their weights before they see x.

    Each feature has its label. Many examples, -theta e_j, draw a weight down, and a few, e_j, push
    it up with a loss that is as good as linear where the weight is large. It balances, so that
    chance decides whether the best weights are large.
    """
    T = TIMES[-1]
    rng = np.random.default_rng(seed)
    j = rng.integers(d, size=T)
    X = np.zeros((T, d))
    rare = rng.random(T) < theta * (1 - 1 / K)
    X[np.arange(T), j] = np.where(rare, 1.0, -theta)
    return X, j % K


def regrets(X, y, K, B, *learners):
    """The regret of each learner at all times, over the best weights with rows of length B."""
    best = np.array(
        [best_linear(X[:t], y[:t], radius=B, norm="rows", classes=range(K)).loss for t in TIMES]
    )
    at = np.array(TIMES) - 1
    return [
        np.cumsum(online_log_loss(learner.set_params(classes=range(K)), X, y))[at] - best
        for learner in learners
    ]


@pytest.mark.parametrize(
    ("d", "K", "spread", "ratio"),
    [(2, 2, 7.0, 1.2), pytest.param(5, 3, 4.0, 2.0, marks=pytest.mark.slow)],
)
def test_folklore_needs_no_exponential_in_b(d, K, spread, ratio):
    """With B = 10 it is far below the others, whose balls have the same weights in them."""
    B = 10.0
    D = np.sqrt(K) * B
    X, y = logistic(d, K, spread)
    folklore, gradient, ons, ftal = regrets(
        X,
        y,
        K,
        B,
        Folklore(B),
        OnlineGradient(D),
        OnlineNewton("ons", D),
        OnlineNewton("ftal", D),
    )
    for i, t in enumerate(TIMES):
        assert 0 < folklore[i] <= bounds.folklore(t, d, K, B)
        assert 2 * folklore[i] < gradient[i] <= bounds.online_gradient(t, D)
        assert 2 * folklore[i] < ons[i] <= bounds.online_newton(t, d, K, D)
        assert 2 * folklore[i] < ftal[i] <= bounds.online_newton(t, d, K, D)
    # Like ln T, which grows by the same from 1,000 to 10,000 rounds as from 100 to 1,000. In five
    # dimensions the logarithm of the bound, ln(1 + T / (2 K d)), has just begun.
    assert folklore[2] - folklore[1] < ratio * (folklore[1] - folklore[0])
    assert gradient[2] - gradient[1] > 1.5 * (gradient[1] - gradient[0])
    assert ons[2] - ons[1] > 9 * (ons[1] - ons[0])


@pytest.mark.parametrize(("d", "seed"), [(1, 1), pytest.param(10, 2, marks=pytest.mark.slow)])
def test_folklore_is_below_proper_learners_tuned_in_hindsight(d, seed):
    """Each rival has the best step, or beta and epsilon, of a grid, chosen in hindsight."""
    K, B = 2, 10.0
    D = np.sqrt(K) * B
    X, y = opposed(d, K, seed)
    steps = [OnlineGradient(D, np.sqrt(2) * D / eta) for eta in (0.3, 1.0, 3.0, 10.0)]
    newton = [
        OnlineNewton(variant, D, beta=beta, epsilon=epsilon)
        for variant in ("ons", "ftal")
        for beta in (0.3, 1.0)
        for epsilon in (1.0, 10.0)
    ]
    own, *theirs = regrets(X, y, K, B, Folklore(B), *steps, *newton)
    assert own[2] < 0 < bounds.folklore(TIMES[2], d, K, B)
    for i in (1, 2):
        assert own[i] < min(regret[i] for regret in theirs) - 3


@pytest.mark.parametrize(("d", "K", "B"), [(2, 2, 0.5), (3, 4, 1.0)])
def test_regret_is_below_the_bounds_in_small_balls(d, K, B):
    """There the bound of the Newton steps says something, too."""
    D = np.sqrt(K) * B
    X, y = logistic(d, K, B / 3)  # the best weights are inside
    gradient, ons, ftal = regrets(
        X, y, K, B, OnlineGradient(D), OnlineNewton("ons", D), OnlineNewton("ftal", D)
    )
    for i, t in enumerate(TIMES):
        assert gradient[i] <= bounds.online_gradient(t, D)
        assert 0 < ons[i] <= bounds.online_newton(t, d, K, D)
        assert 0 < ftal[i] <= bounds.online_newton(t, d, K, D)
    assert bounds.online_newton(TIMES[2], d, K, D) < TIMES[2] * np.log(K) / 5


def test_bound_of_online_newton():
    d, K, D, R = 3, 4, 0.5, 2.0
    beta = min(1 / (4 * np.sqrt(2) * R * 2 * D), np.exp(-np.sqrt(2) * D * R) / (K - 1)) / 2
    with_default = bounds.online_newton(1_000, d, K, D, R)
    growth = 8 * (beta * D * R) ** 2 * 1_000 / 9
    assert with_default == pytest.approx(1 / (8 * beta) + 9 / (2 * beta) * np.log(1 + growth))
    explicit = bounds.online_newton(1_000, d, K, D, R, beta, epsilon=1 / (2 * D * beta) ** 2)
    assert explicit == pytest.approx(with_default)
    with pytest.raises(ValueError, match="the bound holds for a beta of at most"):
        bounds.online_newton(1_000, d, K, D, R, beta=2 * beta)


def test_bound_of_online_gradient():
    assert bounds.online_gradient(100, 2.0, 3.0) == pytest.approx(3 * np.sqrt(2) * 3 * 2 * 10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_sizes_are_those_of_the_longest_example_and_the_largest_value(make):
    X = np.array([[0.3, -0.4], [0.0, 0.0], [0.1, 0.0]])
    assert _sizes(check_rows(make(X), None)) == pytest.approx((0.5, 0.4))
