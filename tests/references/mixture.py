"""Mixture: probability models, weighed by the likelihood of the bits."""

import numpy as np
from scipy.special import softmax


class Mixture:
    """Members have `policy(x)`, `learn(x, label, p, correct)` and, after `policy`, `scores()`."""

    def __init__(self, members, share):
        self.members, self.share = members, share
        self.weights = np.ones(len(members)) / len(members)

    def policy(self, x):
        return self.weights @ np.array([member.policy(x) for member in self.members])

    def learn(self, x, label, p, correct):
        n = len(self.members)
        for i, member in enumerate(self.members):
            member.policy(x)
            q = np.clip(softmax(member.scores())[label], 0.001, 0.999)
            self.weights[i] *= q ** float(correct) * (1 - q) ** (1 - float(correct))
            member.learn(x, label, p, correct)
        self.weights = (1 - self.share) * self.weights / self.weights.sum() + self.share / n
