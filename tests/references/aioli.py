"""AIOLI of Jezequel, Gaillard and Rudi 2020 with explicit matrices, and its minimum written out."""

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit


class Aioli:
    """`weight` is that of the losses of the two labels that x might have."""

    def __init__(self, d, lam, c, weight=1.0):
        self.c, self.weight = c, weight
        self.A = lam * np.eye(d)
        self.b = np.zeros(d)

    def log_odds(self, x):
        q = x @ np.linalg.solve(self.A, x)
        m = -x @ np.linalg.solve(self.A, self.b) / 2
        a = self.weight * q / 2
        if a == 0:
            return m
        return brentq(lambda u: u - m + a * np.tanh(u / 2), m - a, m + a, xtol=1e-15, rtol=1e-15)

    def probabilities(self, x):
        u = self.log_odds(x)
        return np.array([expit(-u), expit(u)])

    def policy(self, x):
        return np.eye(2)[int(self.log_odds(x) > 0)]

    def learn(self, x, y):
        u = self.log_odds(x)
        s = expit(u)
        h = s * (1 - s)
        self.A = self.A + self.c * h * np.outer(x, x)
        self.b = self.b + (s - y - 2 * self.c * h * u) * x


class WrittenOut:
    """Theta_t as the minimiser of its definition, found by a general optimiser."""

    def __init__(self, d, lam, B, R):
        self.d, self.lam, self.BR = d, lam, B * R
        self.rounds = []

    def weights(self, x):
        def objective(theta):
            value, slope = self.lam * theta @ theta, 2 * self.lam * theta
            for g, eta, theta_s in self.rounds:
                along = g @ (theta - theta_s)
                value += along + eta / 2 * along**2
                slope = slope + g * (1 + eta * along)
            u = theta @ x
            value += np.logaddexp(0, u) + np.logaddexp(0, -u)
            return value, slope + np.tanh(u / 2) * x

        return minimize(objective, np.zeros(self.d), jac=True, method="BFGS", tol=1e-12).x

    def learn(self, x, y):
        theta = self.weights(x)
        sign = 2 * y - 1
        g = -sign * expit(-sign * theta @ x) * x
        eta = np.exp(sign * theta @ x) / (1 + self.BR)
        self.rounds.append((g, eta, theta))
