"""The boosters of Jung, Goetz and Tewari 2017 and of Agarwal, Kale and Zimmert 2022, literally.

Cost matrices are as in the papers: not shifted, not scaled. Weak learners have
``probabilities(x)`` and ``learn(x, y, weight)``; in `Algorithm4`, the papers' two operations.
"""

import math
from functools import cache

import numpy as np
from scipy.special import expit, logsumexp, softmax

from references.folklore import Folklore


class Booster:
    hedges = True

    def __init__(self, weak, K):
        self.weak, self.K, self.N = weak, K, len(weak)
        self.v = np.ones(self.N)
        self.largest = np.zeros(self.N)
        self.t = 0
        self.chain = cache(self.chain_of)

    def chain_of(self, t, *x):
        """The scores s^0, ..., s^N in round t, the labels, and the cost matrices."""
        s, labels, matrices = [np.zeros(self.K)], [], []
        for i in range(self.N):
            C = self.costs(i, s[-1])
            label = self.predicted(i, np.array(x), C)
            s.append(self.combine(i, s[-1], label))
            labels.append(label)
            matrices.append(C)
        return s, labels, matrices

    def predicted(self, i, x, C):
        """The label of least expected cost."""
        # Weak learners know P(y | x) times the weight of y, but for a constant.
        weights = np.array([self.weight(C, y) for y in range(self.K)])
        p = np.zeros(self.K)
        np.divide(self.weak[i].probabilities(x), weights, out=p, where=weights > 0)
        expected = p @ (C - np.diag(C)[:, np.newaxis])
        # Labels that tie up to rounding are equal.
        return int(np.flatnonzero(expected <= expected.min() + 1e-12)[0])

    def policy(self, x):
        s, _, _ = self.chain(self.t, *x)
        if not self.hedges:
            return np.eye(self.K)[np.argmax(s[-1])]
        p = np.zeros(self.K)
        for i in range(self.N):
            p[np.argmax(s[i + 1])] += self.v[i] / self.v.sum()
        return p

    def greedy(self, x):
        s, _, _ = self.chain(self.t, *x)
        return int(np.argmax(s[np.argmax(self.v) + 1 if self.hedges else -1]))

    def learn(self, x, y):
        s, labels, matrices = self.chain(self.t, *x)
        self.t += 1
        for i in range(self.N):
            self.teach(i, x, matrices[i], y)
            self.adapt(i, s[i], labels[i], y)
            if np.argmax(s[i + 1]) != y:
                self.v[i] *= math.exp(-1)

    def teach(self, i, x, C, y):
        weight = self.weight(C, y)
        self.largest[i] = max(self.largest[i], weight)
        if weight > 0:  # an example whose vote is decided teaches nothing
            self.weak[i].learn(x, y, weight / self.largest[i])


class AdaBoostOLM(Booster):
    def __init__(self, weak, K, eta=None):
        super().__init__(weak, K)
        self.eta = 2 * math.sqrt(2) / (K - 1) if eta is None else eta
        self.alpha = np.zeros(self.N)

    def costs(self, i, s):
        C = np.array([[1 / (1 + math.exp(s[r] - s[k])) for k in range(self.K)]
                      for r in range(self.K)])  # fmt: skip
        np.fill_diagonal(C, 0)
        np.fill_diagonal(C, -C.sum(axis=1))
        return C

    def weight(self, C, y):
        return -C[y, y] / (self.K - 1)

    def combine(self, i, s, label):
        return s + self.alpha[i] * np.eye(self.K)[label]

    def loss(self, s, y):
        return sum(np.logaddexp(0, s[k] - s[y]) for k in range(self.K) if k != y)

    def slope(self, s, label, y, alpha):
        if label != y:
            return expit(s[label] + alpha - s[y])
        return -sum(expit(s[k] - s[y] - alpha) for k in range(self.K) if k != y)

    def adapt(self, i, s, label, y):
        step = self.eta / math.sqrt(self.t) * self.slope(s, label, y, self.alpha[i])
        self.alpha[i] = np.clip(self.alpha[i] - step, -2, 2)


class BoostingRegression:
    """Algorithm 3, with FOLKLORE for two classes and two features and -1 as the second."""

    def __init__(self, T, c, lam):
        self.most = math.log(T)
        self.folklore = Folklore(2, 2, regularization=lam)
        self.folklore.c = c

    def example(self, s, label):
        others = np.delete(s, label)
        half = (s[label] - logsumexp(others)) / 2
        return np.array([np.clip(half, -self.most, self.most), -1.0])

    def predict(self, s, label):
        zeta = self.folklore.logits(self.example(s, label))
        predicted = s + zeta[1] - logsumexp(np.delete(s, label))
        predicted[label] = zeta[0]
        return predicted

    def update(self, s, label, y):
        self.folklore.learn(self.example(s, label), np.eye(2)[int(y != label)])


class AdaBoostOLMpp(Booster):
    def __init__(self, weak, K, T, paper=False):
        super().__init__(weak, K)
        lam, c = math.sqrt(2) * math.sqrt(1 + math.log(T) ** 2), 1 / (2 * (1 + math.log(T)) + 2)
        if paper:  # B = 2, R = 1 + ln T; FOLKLORE's lambda = 2 R / B, and its corrected c
            lam, c = 1 + math.log(T), 1 / (2 * 2 * (1 + math.log(T)) + 2)
        self.regressions = [BoostingRegression(T, c, lam) for _ in weak]

    def costs(self, i, s):
        gradient = softmax(s)[np.newaxis] - np.eye(self.K)  # (C.1), rows are true labels
        return (gradient - np.diag(gradient)[:, np.newaxis]) / self.K

    def weight(self, C, y):
        return C[y].sum()

    def combine(self, i, s, label):
        return self.regressions[i].predict(s, label)

    def adapt(self, i, s, label, y):
        self.regressions[i].update(s, label, y)


class Algorithm4(AdaBoostOLMpp):
    """Algorithm 4 as printed: weak learners have Predict(x, C) and Update(x, C, y).

    `costs_of` and `weight_of` are the sums that the edges of Proposition 12 are made of.
    """

    def __init__(self, weak, K, T):
        super().__init__(weak, K, T, paper=True)
        self.costs_of, self.weight_of = np.zeros(self.N), np.zeros(self.N)

    def predicted(self, i, x, C):
        return self.weak[i].predict(x, C)

    def learn(self, x, y):
        s, labels, _ = self.chain(self.t, *x)
        for i in range(self.N):
            unshifted = softmax(s[i]) - np.eye(self.K)[y]  # C^, in the row of y
            self.costs_of[i] += unshifted[labels[i]]
            self.weight_of[i] -= unshifted[y]
        super().learn(x, y)

    def teach(self, i, x, C, y):
        self.weak[i].update(x, C, y)

    def edges(self):
        """gamma_i = c_+ - c_-, which is minus the sum of C^(y, l) over w."""
        return -self.costs_of / self.weight_of

    def excess(self, gamma):
        """By how much the weak learning condition is broken: K S is the excess of C^."""
        return max(0.0, *(self.costs_of + gamma * self.weight_of)) / self.K


class OnlineMBBM(Booster):
    hedges = False

    def __init__(self, weak, K, gamma):
        super().__init__(weak, K)
        self.gamma = gamma
        self.phi = cache(self.potential)

    def potential(self, r, n, s):
        """phi^r_n, by its definition."""
        if n == 0:
            return float(s[r] <= max(s[k] for k in range(self.K) if k != r))
        total = 0.0
        for k in range(self.K):
            after = tuple(s[i] + (i == k) for i in range(self.K))
            u = (1 - self.gamma) / self.K + self.gamma * (k == r)
            total += u * self.phi(r, n - 1, after)
        return total

    def costs(self, i, s):
        C, n = np.empty((self.K, self.K)), self.N - 1 - i
        for r in range(self.K):
            for k in range(self.K):
                C[r, k] = self.phi(r, n, tuple(int(s[j]) + (j == k) for j in range(self.K)))
        return C

    def weight(self, C, y):
        return np.sum(C[y] - C[y, y]) / (self.K - 1)

    def combine(self, i, s, label):
        return s + np.eye(self.K)[label]

    def adapt(self, i, s, label, y):
        pass
