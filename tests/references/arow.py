"""Multiclass AROW with the one best other label (Crammer, Kulesza and Dredze 2009)."""

import numpy as np


class AROW:
    def __init__(self, d, K, r=1.0, covariance="diagonal"):
        self.d, self.K, self.r = d, K, r
        self.diagonal = covariance == "diagonal"
        self.mu = np.zeros(K * d)
        self.Sigma = np.eye(K * d)
        self.W = np.zeros((K, d))
        self.zs = []

    def policy(self, x):
        return np.eye(self.K)[np.argmax(self.W @ x)]

    def learn(self, x, label, p, y):
        e = np.eye(self.K)
        s = self.W @ x
        j = max((k for k in range(self.K) if k != y), key=lambda k: s[k])
        m = s[y] - s[j]
        if m < 1:
            z = np.kron(e[y] - e[j], x)
            self.zs.append(z)
            beta = 1 / (z @ self.Sigma @ z + self.r)
            alpha = (1 - m) * beta
            self.mu = self.mu + alpha * self.Sigma @ z
            if self.diagonal:
                self.Sigma = np.diag(1 / (1 / np.diag(self.Sigma) + z**2 / self.r))
            else:
                self.Sigma = self.Sigma - beta * np.outer(self.Sigma @ z, z @ self.Sigma)
        self.W = self.mu.reshape(self.K, self.d)
