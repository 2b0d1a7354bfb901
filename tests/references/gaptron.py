"""Algorithm 1 of van der Hoeven 2020, line by line, with dense matrices."""

import numpy as np


class Gaptron:
    def __init__(self, d, K, loss, feedback, eta, gamma, D, by_length=False):
        self.K, self.loss, self.feedback, self.by_length = K, loss, feedback, by_length
        self.eta, self.gamma, self.D = eta, gamma, D
        self.beta = 1 / K
        self.W = np.zeros((K, d))  # line 1
        self.projections = 0

    def policy(self, x):
        e = np.eye(self.K)
        y_star = np.argmax(self.W @ x)  # line 4
        share = max(self.a(x), self.gamma)
        return (1 - share) * e[y_star] + share / self.K * np.ones(self.K)  # line 5

    def learn(self, x, label, p, feedback):
        if self.feedback == "full":
            g = self.gradient(x, feedback)
        else:  # the losses (4) to (6)
            g = self.gradient(x, label) / p[label] if feedback else np.zeros_like(self.W)
        eta = self.eta / max(x @ x, 1e-12) if self.by_length else self.eta
        W = self.W - eta * g  # line 8: the nearest point of the ball
        norm = np.linalg.norm(W)
        if norm > self.D:
            self.projections += 1
            W = W * self.D / norm
        self.W = W

    def a(self, x):
        """The gap maps of Theorems 1 to 3."""
        m_star = self.m(x, np.argmax(self.W @ x))
        if self.loss == "logistic":
            p_star = self.sigma(x).max()
            return 1 - (p_star >= 0.5) * p_star
        if self.loss == "hinge":
            return 0 if m_star > self.beta else 1 - m_star
        return (1 - min(1, m_star)) ** 2

    def gradient(self, x, y):
        """The gradients of (1) to (3) at W_t."""
        e = np.eye(self.K)
        m = self.m(x, y)
        s = self.W @ x
        s[y] = -np.inf
        away = np.outer(e[np.argmax(s)] - e[y], x)
        if self.loss == "logistic":
            return np.outer(self.sigma(x) - e[y], x) / np.log(2)
        if self.loss == "hinge":
            y_star = np.argmax(self.W @ x)
            if y_star == y and self.m(x, y_star) > self.beta:
                return 0 * away
            return away if m < 1 else 0 * away
        if m <= 0:
            return 2 * away
        return 2 * (1 - m) * away if m < 1 else 0 * away

    def m(self, x, y):
        s = self.W @ x
        return s[y] - np.delete(s, y).max()

    def sigma(self, x):
        s = np.exp(self.W @ x)
        return s / s.sum()
