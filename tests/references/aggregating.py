"""The aggregating forecaster of Foster et al. 2018 by exact integration, for one or two features.

A quadrature rule stands for the uniform distribution on the weights whose rows have length at most
B: Gauss-Legendre points on an interval, or in radius and at equal angles on a disc.
"""

from itertools import product

import numpy as np
from scipy.special import log_softmax, logsumexp


def ball(d, B, n):
    """Return points of the ball and their weights, which sum to one."""
    if d == 1:
        points, weights = np.polynomial.legendre.leggauss(n)
        return B * points[:, None], weights / 2
    t, weights = np.polynomial.legendre.leggauss(n)
    radius, weights = B * (t + 1) / 2, weights * (t + 1) / 2
    angle = 2 * np.pi * np.arange(3 * n) / (3 * n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    points = (radius[:, None, None] * circle).reshape(-1, 2)
    return points, np.repeat(weights, 3 * n) / (3 * n)


class Aggregating:
    def __init__(self, d, K, B, mu=0.0, n=40):
        row, weights = ball(d, B, n)
        self.W = np.array(list(product(row, repeat=K)))
        self.log_P = np.log(np.array(list(product(weights, repeat=K)))).sum(axis=1)
        self.K, self.mu = K, mu
        self.loss = 0.0

    def probabilities(self, x):
        p = np.exp(logsumexp(self.log_P[:, None] + log_softmax(self.W @ x, axis=1), axis=0))
        return (1 - self.mu) * p + self.mu / self.K

    def deviations(self, x):
        """The standard deviations of sigma(Wx)."""
        P, sigma = np.exp(self.log_P), np.exp(log_softmax(self.W @ x, axis=1))
        return np.sqrt(P @ (sigma - P @ sigma) ** 2)

    def learn(self, x, y, weight=1.0):
        """Multiply P by exp(-weight l); `loss` is the sum of all -ln E exp(-weight l)."""
        self.log_P = self.log_P + weight * log_softmax(self.W @ x, axis=1)[:, y]
        self.loss -= logsumexp(self.log_P)
        self.log_P -= logsumexp(self.log_P)
