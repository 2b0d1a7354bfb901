"""Banditron (Kakade, Shalev-Shwartz and Tewari 2008)."""

import numpy as np


class Banditron:
    def __init__(self, d, K, gamma=0.05):
        self.W = np.zeros((K, d))
        self.gamma = gamma

    def policy(self, x):
        K = len(self.W)
        return (1 - self.gamma) * np.eye(K)[np.argmax(self.W @ x)] + self.gamma / K

    def learn(self, x, label, p, correct):
        K = len(self.W)
        y_hat = np.argmax(self.W @ x)
        U = np.zeros_like(self.W)
        for r in range(K):
            U[r] = x * ((correct and label == r) / p[r] - (y_hat == r))
        self.W = self.W + U
