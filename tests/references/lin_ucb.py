"""LinUCB (Li et al. 2010) and Thompson sampling (Agrawal and Goyal 2013), both Algorithm 1."""

import numpy as np

from references.one_bit_classifier import winning_probabilities


class LinUCB:
    def __init__(self, d, K, alpha=1.0, regularization=1.0):
        self.alpha = alpha
        self.A = np.array([regularization * np.eye(d)] * K)
        self.b = np.zeros((K, d))
        self.W = np.zeros((K, d))

    def bounds(self, x):
        """The two terms of line 9."""
        n = np.array([x @ np.linalg.inv(A) @ x for A in self.A])
        return self.W @ x, np.sqrt(n)

    def policy(self, x):
        means, deviations = self.bounds(x)
        return np.eye(len(self.A))[np.argmax(means + self.alpha * deviations)]

    def learn(self, x, label, p, correct):
        self.A[label] += np.outer(x, x)  # line 12
        self.b[label] += float(correct) * x  # line 13
        self.W[label] = np.linalg.inv(self.A[label]) @ self.b[label]  # line 8


class LinTS(LinUCB):
    """One vector of weights for all labels, drawn anew in each round, as in the paper.

    Label k has the features of x in block k, so B is block diagonal; `policy` integrates the draws.
    """

    def __init__(self, d, K, v=1.0, regularization=1.0):
        super().__init__(d, K, v, regularization)

    def policy(self, x):
        means, deviations = self.bounds(x)
        if not x.any():
            return np.eye(len(self.A))[0]
        return winning_probabilities(means, self.alpha * deviations)
