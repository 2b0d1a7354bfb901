"""Algorithm 2 of Beygelzimer, Orabona and Zhang 2017, line by line."""

import numpy as np

from references.online_newton import Oracle


class ExpConcaveReduction:
    def __init__(self, d, K, oracle, gamma, eta, D, beta, epsilon):
        self.K, self.gamma, self.eta = K, gamma, eta
        self.oracle = Oracle(d, K, oracle, D, beta, epsilon)
        self.W = self.oracle.W
        self.updates = 0

    def greedy(self, x):
        """Line 4. The eigenvectors of a projection leave 1e-17 where there should be zeros."""
        return np.argmax(np.round(self.W @ x, 12))

    def policy(self, x):
        y_hat = self.greedy(x)
        return (1 - self.gamma) * np.eye(self.K)[y_hat] + self.gamma / self.K * np.ones(self.K)

    def learn(self, x, label, p, correct):
        if correct:  # line 8
            y_hat = self.greedy(x)
            weight = 1 / p[label] * (y_hat != label)
            self.updates += y_hat != label
            self.oracle.learn(weight * gradient(self.W, x, label, self.eta))
        else:
            self.oracle.learn(np.zeros_like(self.W))
        self.W = self.oracle.W  # line 3, of the next round


def margin(W, x, y):
    """The margin of y, and the best other label."""
    s = W @ x
    s[y] = -np.inf
    y_bar = np.argmax(s)
    return W[y] @ x - s[y_bar], y_bar


def loss(W, x, y, eta):
    """l_eta of line 9."""
    m, _ = margin(W, x, y)
    return 1 - 2 / (2 - eta) * m + eta / (2 - eta) * m**2


def gradient(W, x, y, eta):
    e = np.eye(W.shape[0])
    m, y_bar = margin(W, x, y)
    return (-2 / (2 - eta) + 2 * eta / (2 - eta) * m) * np.outer(e[y] - e[y_bar], x)
