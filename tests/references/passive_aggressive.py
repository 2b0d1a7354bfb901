"""Multiclass passive-aggressive algorithms, prediction-based (Crammer et al. 2006, section 8)."""

import numpy as np


class PassiveAggressive:
    def __init__(self, d, K, C=1.0, variant="PA-I"):
        self.K, self.C, self.variant = K, C, variant
        self.W = np.zeros((K, d))

    def policy(self, x):
        return np.eye(self.K)[np.argmax(self.W @ x)]

    def learn(self, x, label, p, y):
        s = self.W @ x
        j = max((k for k in range(self.K) if k != y), key=lambda k: s[k])
        loss = max(0, 1 - (s[y] - s[j]))
        if x.any():
            tau = {
                "PA": loss / (2 * x @ x),
                "PA-I": min(self.C, loss / (2 * x @ x)),
                "PA-II": loss / (2 * x @ x + 1 / (2 * self.C)),
            }[self.variant]
            self.W[y] += tau * x
            self.W[j] -= tau * x
