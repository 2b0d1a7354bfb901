"""Algorithm 1 of Beygelzimer, Orabona and Zhang 2017, line by line, and its diagonal version."""

import numpy as np


class SOBA:
    def __init__(self, d, K, gamma=0.01, a=1.0, covariance="diagonal"):
        self.d, self.K = d, K
        self.diagonal = covariance == "diagonal"
        self.adaptive = gamma == "adaptive"
        self.gamma = 1.0 if self.adaptive else gamma
        self.A = a * np.eye(K * d)
        self.theta = np.zeros(K * d)
        self.W = np.zeros((K, d))
        self.t = 1
        self.n_m = []
        self.terms = []

    def policy(self, x):
        y_hat = np.argmax(self.W @ x)  # line 4
        return (1 - self.gamma) * np.eye(self.K)[y_hat] + self.gamma / self.K * np.ones(self.K)

    def learn(self, x, label, p, correct):
        e = np.eye(self.K)
        w = self.W.reshape(-1)
        n = 0
        if correct:  # line 9
            y = label
            scores = self.W @ x
            scores[y] = -np.inf
            y_bar = np.argmax(scores)
            g = np.kron(e[y_bar] - e[y], x) / p[y]
            z = np.sqrt(p[y]) * g
            m = ((w @ z) ** 2 + 2 * (w @ g)) / (1 + z @ np.linalg.solve(self.A, z))
            if m + sum(self.n_m) >= 0:
                n = 1
        if n:
            self.n_m.append(m)
            outer = np.outer(z, z)
            self.A = self.A + (np.diag(np.diag(outer)) if self.diagonal else outer)
            self.theta = self.theta - g
            self.terms.append(self._term(z))
        self.W = np.linalg.solve(self.A, self.theta).reshape(self.K, self.d)
        self.t += 1
        if self.adaptive:  # Theorem 5
            self.gamma = min(np.sqrt(self.K * (1 + sum(self.terms)) / self.t), 1)

    def _term(self, z):
        """Z' A_t^{-1} z; for the diagonal form the literal quantity is q / (1 + q)."""
        if not self.diagonal:
            return z @ np.linalg.solve(self.A, z)
        q = z @ (z / (np.diag(self.A) - z**2))
        return q / (1 + q)
