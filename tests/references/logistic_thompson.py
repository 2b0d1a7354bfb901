"""LogisticThompson, by its notes: for each label a covariance matrix, or variances, of its own."""

import numpy as np
from scipy.special import expit

from references.one_bit_classifier import (
    Column,
    encoded,
    highest,
    n_encoded,
    winning_probabilities,
)
from references.scales import Scales


def policy_of(q, deviations):
    """The probability that the draw of each label, above its probability, is the highest."""
    best = highest(q)
    deviations = q[best] * (1 - q[best]) * np.asarray(deviations)
    return winning_probabilities(q + 1.75 * deviations, deviations)


class LogisticThompson:
    """Each label is right on its own; scores are drawn from the posterior, and the highest wins."""

    def __init__(self, d, K, view, full):
        self.view, self.K, self.full = view, K, full
        self.explore, self.a = (0.2, 0.5) if full else (0.05, 0.05)
        a = self.a
        self.scales = None if view == "features" else Scales(d)
        self.columns, self.rounds = [Column() for _ in range(d)], 0
        n = n_encoded(view, d)
        first = np.full(n, 1 / a)
        if full and view != "features":
            first[-1] /= 10
        self.S = np.array([np.diag(first) if full else first] * K)
        self.W = np.zeros((K, n))
        self.b, self.V = 0.0, np.pi**2 / 3
        self.lengths = []

    def look(self, x):
        z = x if self.scales is None else self.scales.scaled(x)
        seen = encoded(self.view, x, z, self.columns, self.scales, self.K)
        self.seen = seen
        L = np.sqrt(np.mean([*self.lengths, seen @ seen]))
        self.x = seen / L if L > 0 else seen
        self.s = self.W @ self.x
        self.Sx = self.S @ self.x if self.full else self.S * self.x
        self.uncapped = self.Sx @ self.x
        self.v = np.minimum(self.uncapped, self.x @ self.x / self.a)

    def right(self, k):
        """The probability that label k is right, and the c of its notes."""
        c = 1 / np.sqrt(1 + np.pi / 8 * (self.v[k] + self.V))
        return expit(c * (self.b + self.s[k])), c

    def all_right(self, x):
        """The probability that each label is right."""
        self.look(x)
        return np.array([self.right(k)[0] for k in range(self.K)])

    def deviations(self, x):
        """Of the draws of log-odds."""
        self.look(x)
        return [self.explore * self.right(k)[1] * np.sqrt(self.v[k]) for k in range(self.K)]

    def policy(self, x):
        return policy_of(self.all_right(x), self.deviations(x))

    def learn(self, x, label, p, correct):
        self.rounds += 1
        self.look(x)
        for k in range(self.K) if correct is None else [label]:  # None: no label is right
            self.step(k, float(correct or 0.0))
        self.lengths.append(self.seen @ self.seen)
        if self.scales is not None:
            # Only weights of the line change with the scales.
            self.scales.observe(x, self.W if self.view == "line" else 0.0 * self.W)
        for column, value in zip(self.columns, x, strict=True):
            column.observe(value, self.rounds - 1)

    def step(self, k, bit):
        v = self.v[k]
        q, c = self.right(k)
        g, h = (q - bit) * c, q * (1 - q) * c**2
        self.b, self.V = self.b - g * self.V, self.V - h * self.V**2
        self.W[k] -= (v / self.uncapped[k] if v > 0 else 1.0) * g * self.Sx[k]
        f = h / (1 - h * v)
        if f * self.uncapped[k] <= 1e-6:
            return
        if self.full:
            self.S[k] = np.linalg.inv(np.linalg.inv(self.S[k]) + f * np.outer(self.x, self.x))
        else:
            self.S[k] = 1 / (1 / self.S[k] + f * self.x**2)
