"""The two algorithms of Beygelzimer et al. 2019, with weights and with kernels."""

import numpy as np


class Perceptrons:
    """Which label to choose and which of the K functions f_i to correct, in either form."""

    def __init__(self, K, form):
        self.K, self.form = K, form

    def policy(self, x):
        f = self.values(x)
        S = [i for i in range(self.K) if f[i] >= 0]
        if not S:
            return np.full(self.K, 1 / self.K)
        return np.eye(self.K)[max(S, key=lambda i: (f[i], -i))]

    def learn(self, x, label, p, correct):
        f = self.values(x)
        S = {i for i in range(self.K) if f[i] >= 0}
        if self.form == "theory":
            if not S:
                if correct:
                    self.correct(label, x, +1)
            elif not correct:
                self.correct(label, x, -1)
        elif correct:
            for i in range(self.K):
                if i == label and f[i] <= 0:
                    self.correct(i, x, +1)
                if i != label and f[i] >= 0:
                    self.correct(i, x, -1)
        elif f[label] >= 0:
            self.correct(label, x, -1)


class SeparableBandit(Perceptrons):
    def __init__(self, d, K, form):
        super().__init__(K, form)
        self.W = np.zeros((K, d))

    def values(self, x):
        return self.W @ x

    def correct(self, i, x, sign):
        self.W[i] += sign * x


class KernelSeparableBandit(Perceptrons):
    """Each class has a list of examples with signs; a full list loses one at random.

    `k` is a function of many examples and one. `random` draws from [0, 1) as the learner does,
    first for each label that it chooses.
    """

    def __init__(self, K, form, k, budget=np.inf, random=None):
        super().__init__(K, form)
        self.k, self.budget, self.random = k, budget, random
        self.lists = [[] for _ in range(K)]

    def values(self, x):
        f = np.zeros(self.K)
        for i, terms in enumerate(self.lists):
            if terms:
                examples, signs = map(np.array, zip(*terms, strict=True))
                f[i] = signs @ self.k(examples, x)
        return f

    def learn(self, x, label, p, correct):
        if self.random is not None:
            self.random()
        super().learn(x, label, p, correct)

    def correct(self, i, x, sign):
        terms = self.lists[i]
        if len(terms) < self.budget:
            terms.append((x, sign))
        else:
            terms[int(self.random() * len(terms))] = (x, sign)
