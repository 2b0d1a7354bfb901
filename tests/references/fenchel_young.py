"""Randomized decoding of the logistic loss, with explicit distributions and gradients."""

import numpy as np
from scipy.special import softmax


class FenchelYoung:
    def __init__(self, d, K, feedback, eta, gamma):
        self.K, self.feedback, self.eta, self.gamma = K, feedback, eta, gamma
        self.W = np.zeros((K, d))

    def policy(self, x):
        """The greedy label, or a draw from the softmax if they are far apart; sometimes any."""
        sigma = softmax(self.W @ x)
        greedy = np.eye(self.K)[np.argmax(self.W @ x)]
        distance = np.abs(greedy - sigma).sum()  # two labels have distance 2
        draw = min(1, 2 * distance / 2)
        decoded = (1 - draw) * greedy + draw * sigma
        return (1 - self.gamma) * decoded + self.gamma / self.K

    def learn(self, x, label, p, feedback):
        y = feedback if self.feedback == "full" else label
        gradient = np.outer(softmax(self.W @ x) - np.eye(self.K)[y], x) / np.log(2)
        if self.feedback == "full":
            self.W = self.W - self.eta * gradient
        elif feedback:
            self.W = self.W - self.eta * gradient / p[label]
