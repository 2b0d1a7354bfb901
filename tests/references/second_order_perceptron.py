"""Multiclass second-order Perceptron by Kesler's construction, and its diagonal versions."""

import numpy as np


class SecondOrderPerceptron:
    def __init__(self, d, K, a=1.0, covariance="diagonal", include_current=False):
        self.d, self.K = d, K
        self.diagonal = covariance == "diagonal"
        self.include_current = include_current
        self.A = a * np.eye(K * d)
        self.theta = np.zeros(K * d)
        self.W = np.zeros((K, d))
        self.zs = []

    def scores(self, x):
        A = self.A + np.diag(np.tile(x**2, self.K)) if self.include_current else self.A
        return self._solve(A) @ x

    def policy(self, x):
        return np.eye(self.K)[np.argmax(self.scores(x))]

    def learn(self, x, label, p, y):
        e = np.eye(self.K)
        y_hat = np.argmax(self.scores(x))
        if y_hat != y:
            z = np.kron(e[y_hat] - e[y], x)
            self.zs.append(z)
            outer = np.outer(z, z)
            self.A = self.A + (np.diag(np.diag(outer)) if self.diagonal else outer)
            self.theta = self.theta - z
            self.W = self._solve(self.A)

    def _solve(self, A):
        w = self.theta / np.diag(A) if self.diagonal else np.linalg.solve(A, self.theta)
        return w.reshape(self.K, self.d)
