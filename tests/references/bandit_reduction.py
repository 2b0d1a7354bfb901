"""Algorithm 2 of Agarwal, Kale and Zimmert 2022, around any Alg with `probabilities`, `learn`."""

import numpy as np


class BanditReduction:
    def __init__(self, alg, gamma, K):
        self.alg, self.gamma, self.K = alg, gamma, K
        self.updates = 0

    def policy(self, x):
        """What the two draws of a round come to."""
        return (1 - self.gamma) * self.alg.probabilities(x) + self.gamma / self.K

    def learn(self, x, label, explored, correct):
        if explored and correct:
            self.alg.learn(x, np.eye(self.K)[label])
            self.updates += 1

    def play(self, x, y, rng):
        """A round as printed: the coin, then the label."""
        if explored := rng.random() < self.gamma:
            label = rng.integers(self.K)
        else:
            label = rng.choice(self.K, p=self.alg.probabilities(x))
        self.learn(x, label, explored, label == y)
        return label
