"""The best linear predictor in hindsight, and what a learner is charged round by round.

Losses are in natural units: -ln of the probability of the true label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from onebit.core import ProbabilityLearner

_MOST_STEPS = 20_000
_MEMORY = 10
"""Earlier values that a step must not exceed: a step may rise above the last one."""


def log_loss(W: np.ndarray, X: Any, y: np.ndarray) -> float:
    """Return the sum over the rows of -ln sigma(W x)_y.

    Parameters
    ----------
    W : ndarray of shape (n_classes, n_features)
    X : ndarray or sparse matrix of shape (n_rounds, n_features)
    y : ndarray of int, of shape (n_rounds,)
        The position of each true label, from 0.

    Returns
    -------
    float
    """
    Z = X @ W.T
    return float(np.sum(logsumexp(Z, axis=1) - Z[np.arange(len(y)), y]))


def best_linear(
    X: Any, y: np.ndarray, B: float, n_classes: int | None = None, tolerance: float = 1e-3
) -> tuple[np.ndarray, float]:
    """Return the weights of the least logarithmic loss among those with all ||w_k|| <= B.

    These are the weights with ||W||_{2,inf} <= B that FOLKLORE competes with. They are found by
    projected gradient steps with the lengths of Barzilai and Borwein. As the loss is convex, the
    sum over k of <g_k, w_k> + B ||g_k||, with g its gradient, says how far from the least it may
    be: the search ends when that is at most `tolerance`.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rounds, n_features)
    y : ndarray of int, of shape (n_rounds,)
        The position of each true label, from 0.
    B : float > 0
        Largest length of a row of the weights.
    n_classes : int, optional
        One more than the largest of `y`, unless given.
    tolerance : float, default=1e-3
        How much the loss may exceed the least one.

    Returns
    -------
    W : ndarray of shape (n_classes, n_features)
    loss : float
        Its `log_loss`.
    """
    y = np.asarray(y)
    K = int(y.max()) + 1 if n_classes is None else n_classes
    Y = np.eye(K)[y]
    W = np.zeros((K, X.shape[1]))
    loss, G = log_loss(W, X, y), _gradient(W, X, Y)
    recent = [loss]
    step = 1.0 / max(float(np.abs(G).max()), 1e-12)
    for _ in range(_MOST_STEPS):
        gap = float(np.sum(G * W) + B * np.sum(np.linalg.norm(G, axis=1)))
        if gap <= tolerance:
            return W, loss
        direction = _projected(W - step * G, B) - W
        slope, share = float(np.sum(G * direction)), 1.0
        while True:
            W_new = W + share * direction
            new = log_loss(W_new, X, y)
            if new <= max(recent) + 1e-4 * share * slope or share < 1e-10:
                break
            share *= 0.5
        G_new = _gradient(W_new, X, Y)
        moved, turned = W_new - W, G_new - G
        curvature = float(np.sum(moved * turned))
        step = min(float(np.sum(moved * moved)) / curvature, 1e10) if curvature > 0.0 else 1e10
        W, G, loss = W_new, G_new, new
        recent = [*recent[1 - _MEMORY :], loss]
    raise RuntimeError(f"the best linear predictor is known only to {gap:.1e} of its loss")


def online_log_loss(learner: ProbabilityLearner, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the -ln of the probability that `learner` gave to each label before it was told it.

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
    losses = np.empty(len(y))
    for t, truth in enumerate(y):
        x = X[t]
        decision = learner.decide(x)
        scores = learner._scores  # of the x that was last decided on
        losses[t] = np.logaddexp.reduce(scores) - scores[learner._position_of(truth)]
        learner.learn(decision, truth=truth)
    return losses


def _gradient(W: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
    return (X.T @ (softmax(X @ W.T, axis=1) - Y)).T


def _projected(W: np.ndarray, B: float) -> np.ndarray:
    return W * np.minimum(1.0, B / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300))
