"""Multiclass Perceptron (Duda and Hart 1973), as in section 3 of the SOBA paper."""

import numpy as np


class Perceptron:
    def __init__(self, d, K):
        self.W = np.zeros((K, d))

    def policy(self, x):
        return np.eye(len(self.W))[np.argmax(self.W @ x)]

    def learn(self, x, label, p, truth):
        y_hat = np.argmax(self.W @ x)
        if y_hat != truth:
            self.W[truth] += x
            self.W[y_hat] -= x
