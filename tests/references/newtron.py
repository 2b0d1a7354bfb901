"""Newtron and PNewtron of Hazan and Kale 2011, and the variant in the code of SOBA's authors."""

import numpy as np
from scipy.optimize import brentq


def in_ball(A, w, D):
    """The w of ||w|| <= D next to the given one in the norm of A, by the secular equation."""
    if np.linalg.norm(w) <= D:
        return w
    eigenvalues, U = np.linalg.eigh(A)
    c = U.T @ w

    def at(mu):
        return c * eigenvalues / (eigenvalues + mu)

    if np.linalg.norm(at(0)) <= D:  # outside by rounding only
        return w
    high = 1.0
    while np.linalg.norm(at(high)) > D:
        high *= 2
    mu = brentq(lambda mu: np.linalg.norm(at(mu)) - D, 0, high, xtol=1e-300, rtol=1e-15)
    return U @ at(mu)


class Newtron:
    def __init__(self, d, K, gamma=0.01, alpha=10.0, beta=0.01, D=1.0, covariance="diagonal"):
        self.d, self.K = d, K
        self.gamma, self.alpha, self.beta, self.D = gamma, alpha, beta, D
        self.diagonal = covariance == "diagonal"
        self.A = np.eye(K * d) / D
        self.b = np.zeros(K * d)
        self.W = np.zeros((K, d))
        self.free = []

    def softmax(self, x):
        e = np.exp(self.alpha * (self.W @ x - np.max(self.W @ x)))
        return e / e.sum()

    def policy(self, x):
        return (1 - self.gamma) * self.softmax(x) + self.gamma / self.K

    def estimate(self, x, label, p_prime, correct):
        p = self.softmax(x)
        e = np.eye(self.K)[label]
        if correct:
            g = (1 - p[label]) / p_prime[label] * np.kron(1 / self.K - e, x)
            return g, p_prime[label]
        return p[label] / p_prime[label] * np.kron(e - 1 / self.K, x), 1.0

    def learn(self, x, label, p_prime, correct):
        g, kappa = self.estimate(x, label, p_prime, correct)
        outer = kappa * self.beta * np.outer(g, g)
        self.A = self.A + (np.diag(np.diag(outer)) if self.diagonal else outer)
        self.b = self.b + (1 - kappa * self.beta * (g @ self.W.reshape(-1))) * g
        w = -np.linalg.solve(self.A, self.b)
        self.free.append(np.linalg.norm(w))
        if self.diagonal:
            w = w * min(1, self.D / max(np.linalg.norm(w), 1e-300))
        else:
            w = in_ball(self.A, w, self.D)
        self.W = w.reshape(self.K, self.d)


class SOBA2017:
    """`draws` gives the random numbers of the run: one for each label, one for each coin."""

    def __init__(self, d, K, draws, gamma=0.01, alpha=10.0, beta=0.01, D=1.0):
        self.d, self.K, self.draws = d, K, draws
        self.gamma, self.alpha, self.beta, self.D = gamma, alpha, beta, D
        self.diag_A = np.ones(K * d) / D
        self.b = np.zeros(K * d)
        self.W = np.zeros((K, d))
        self.explored = []

    softmax = Newtron.softmax
    policy = Newtron.policy

    def learn(self, x, label, p_prime, correct):
        p = self.softmax(x)
        if correct:
            f = (1 - p[label]) / (p_prime[label] * self.K)
            rows = f * np.ones(self.K)
            rows[label] = -f
            kappa = p_prime[label]
        else:
            f = p[label] / (p_prime[label] * self.K)
            rows = -f * np.ones(self.K)
            rows[label] = f
            kappa = 1.0
        g = np.kron(rows, x)
        self.draws.random()  # drew the label
        explored = self.draws.random() < self.gamma / self.K / p_prime[label]
        self.explored.append(explored)
        w = np.zeros_like(g) if explored else self.W.reshape(-1)
        self.b = self.b + (1 - kappa * self.beta * (g @ w)) * g
        self.diag_A = self.diag_A + kappa * self.beta * g**2
        free = -self.b / self.diag_A
        if free.any():
            self.W = (free * self.D / np.linalg.norm(free)).reshape(self.K, self.d)
