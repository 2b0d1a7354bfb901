"""Online Newton Step and Follow the Approximate Leader of Hazan, Agarwal and Kale 2007.

The matrices are written out, and FTAL is started with epsilon I. `Oracle` is told gradients.
"""

import numpy as np
from scipy.special import softmax

from references.newtron import in_ball


class Oracle:
    def __init__(self, d, K, variant, D, beta, epsilon):
        self.variant, self.D, self.beta = variant, D, beta
        self.A = epsilon * np.eye(K * d)
        self.b = np.zeros(K * d)
        self.W = np.zeros((K, d))
        self.projections = 0

    def learn(self, gradient):
        w, g = self.W.reshape(-1), gradient.reshape(-1)
        if not g.any():
            return
        self.A = self.A + np.outer(g, g)
        if self.variant == "ons":
            free = w - np.linalg.solve(self.A, g) / self.beta
        else:
            self.b = self.b + np.outer(g, g) @ w - g / self.beta
            free = np.linalg.solve(self.A, self.b)
        self.projections += np.linalg.norm(free) > self.D
        self.W = in_ball(self.A, free, self.D).reshape(self.W.shape)


class OnlineNewton(Oracle):
    def __init__(self, d, K, variant, D, beta, epsilon):
        super().__init__(d, K, variant, D, beta, epsilon)
        self.K = K

    def probabilities(self, x):
        return softmax(self.W @ x)

    def learn(self, x, truth):
        super().learn(np.outer(self.probabilities(x) - np.eye(self.K)[truth], x))
