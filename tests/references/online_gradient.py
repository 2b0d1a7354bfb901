"""Projected online gradient descent of Zinkevich 2003, on the logistic loss."""

import numpy as np
from scipy.special import softmax


class OnlineGradient:
    def __init__(self, d, K, D, R=1.0, eta=None):
        self.K, self.D, self.R, self.eta = K, D, R, eta
        self.W = np.zeros((K, d))
        self.t = 0
        self.projections = 0

    def probabilities(self, x):
        return softmax(self.W @ x)

    def learn(self, x, truth):
        self.t += 1
        g = np.outer(self.probabilities(x) - np.eye(self.K)[truth], x)
        eta = self.eta or 2 * self.D / (np.sqrt(2) * self.R * np.sqrt(self.t))
        W = self.W - eta * g
        norm = np.linalg.norm(W)
        if norm > self.D:
            self.projections += 1
            W = W * self.D / norm
        self.W = W
