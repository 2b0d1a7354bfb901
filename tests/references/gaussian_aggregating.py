"""The normal aggregating forecaster with explicit matrices, told the nodes."""

import numpy as np
from scipy.linalg import helmert
from scipy.special import softmax


class GaussianAggregating:
    def __init__(self, d, K, nodes, B=1.0, R=1.0):
        self.K, self.nodes = K, nodes
        self.c = 1 / (2 * B * R + np.log(K - 1) + 2)
        self.A = 2 * R / B * np.eye(K * d)
        self.G = np.zeros(K * d)
        self.seen = np.zeros(d, dtype=bool)

    def probabilities(self, x):
        """The mean of sigma(z), z from N(g0, A~) without its part along the vector of ones."""
        if not self.seen[x != 0].any():
            return np.full(self.K, 1 / self.K)  # whatever the nodes say, by symmetry
        A_inv = np.linalg.inv(self.A)
        spread = np.kron(np.eye(self.K), x[:, None])
        A = spread.T @ A_inv @ spread / 2
        g = -spread.T @ A_inv @ self.G / 2
        Q = helmert(self.K).T
        L = np.linalg.cholesky(Q.T @ A @ Q)
        return softmax(g + self.nodes @ (Q @ L).T, axis=1).mean(axis=0)

    def learn(self, x, y):
        p = self.probabilities(x)
        S = np.diag(p) - np.outer(p, p)
        self.A = self.A + self.c * np.kron(S, np.outer(x, x))
        self.G = self.G + np.kron(p - np.eye(self.K)[y] - 2 * self.c * S @ np.log(p), x)
        self.seen |= x != 0
