"""FastCB of Foster and Krishnamurthy 2021, with an AIOLI for each label as the regression."""

import numpy as np
from scipy.special import expit

from references.aioli import Aioli


class FastCB:
    def __init__(self, d, K, gamma, B=1.0, R=1.0, regularization=None):
        lam = 1 / B**2 if regularization is None else regularization
        self.regressions = [Aioli(d, lam, 1 / (2 * (1 + B * R))) for _ in range(K)]
        self.K, self.gamma = K, gamma

    def policy(self, x):
        """Inverse gap weighting, with gamma over the least predicted loss."""
        y = np.array([expit(-one.log_odds(x)) for one in self.regressions])  # predicted losses
        b = np.argmin(y)
        p = y[b] / (self.K * y[b] + self.gamma * (y - y[b]))
        p[b] = 0.0
        p[b] = 1.0 - p.sum()
        return p

    def learn(self, x, label, p, correct):
        self.regressions[label].learn(x, float(correct))
