"""A Hoeffding tree of Domingos and Hulten 2000 whose leaves keep all their examples."""

import math

import numpy as np
from scipy.special import ndtr, softmax


class Leaf:
    def __init__(self, counts):
        self.counts = counts
        self.rounds = []
        self.waited = 0
        self.right = [0.0, 0.0]
        self.split = None

    def examples(self, k=None):
        """The values and weights of all examples, or of those of one class."""
        some = [(x, w) for x, y, w in self.rounds if k is None or y == k]
        return np.array([x for x, _ in some]), np.array([w for _, w in some])

    def weight(self, k):
        return sum(w for _, y, w in self.rounds if y == k)

    def pooled(self, j):
        X, w = self.examples()
        if not len(w):
            return 0.0, 0.0
        mean = np.average(X[:, j], weights=w)
        variance = np.average((X[:, j] - mean) ** 2, weights=w)
        small = variance <= 1e-12 * np.average(X[:, j] ** 2, weights=w)
        return mean, 0.0 if small else variance

    def moments(self, k, j):
        X, w = self.examples(k)
        mean = np.average(X[:, j], weights=w)
        variance = np.average((X[:, j] - mean) ** 2, weights=w)
        return mean, max(variance, 1e-6 * self.pooled(j)[1])


class HoeffdingTree:
    def __init__(self, used, K, n_leaves=32, bayes=False, grace=20, delta=0.1, tie=0.1):
        self.used, self.K, self.n_leaves, self.bayes = used, K, n_leaves, bayes
        self.grace, self.delta, self.tie = grace, delta, tie
        self.root, self.n = Leaf(np.zeros(K)), 1

    def leaf(self, x):
        node = self.root
        while node.split is not None:
            j, threshold, left, right = node.split
            node = right if x[j] > threshold else left
        return node

    def by_counts(self, leaf):
        return (leaf.counts + 1 / self.K) / (leaf.counts.sum() + 1)

    def by_bayes(self, leaf, x):
        if not leaf.rounds:
            return self.by_counts(leaf)
        scores = np.full(self.K, -np.inf)
        for k in range(self.K):
            if leaf.weight(k) > 0:
                scores[k] = math.log(leaf.weight(k))
                for j in self.used:
                    if leaf.pooled(j)[1] > 0:
                        mean, variance = leaf.moments(k, j)
                        scores[k] -= 0.5 * (math.log(variance) + (x[j] - mean) ** 2 / variance)
        return softmax(np.maximum(scores - scores.max(), math.log(1e-300)))

    def probabilities(self, x):
        leaf = self.leaf(x)
        if self.bayes and leaf.right[1] >= leaf.right[0]:
            return self.by_bayes(leaf, x)
        return self.by_counts(leaf)

    def policy(self, x):
        return np.eye(self.K)[np.argmax(self.probabilities(x))]

    def learn(self, x, y, weight=1.0):
        leaf = self.leaf(x)
        if self.bayes:
            for i, p in enumerate((self.by_counts(leaf), self.by_bayes(leaf, x))):
                leaf.right[i] += weight * (np.argmax(p) == y)
        leaf.counts[y] += weight
        leaf.rounds.append((x, y, weight))
        leaf.waited += 1
        if leaf.waited >= self.grace and self.n < self.n_leaves:
            leaf.waited = 0
            self.try_split(leaf)

    def try_split(self, leaf):
        gains = [(0.0, -1, 0.0), *(self.best_threshold(leaf, j) for j in self.used)]
        # The first of the largest, and the largest of the others.
        at = int(np.argmax([gain for gain, _, _ in gains]))
        gain, j, threshold = gains.pop(at)
        w = leaf.examples()[1]
        epsilon = math.sqrt(math.log(1 / self.delta) / (2 * w.sum() ** 2 / (w**2).sum()))
        if j >= 0 and (gain - max(g for g, _, _ in gains) > epsilon or epsilon < self.tie):
            below = np.array([leaf.weight(k) * self.below(leaf, k, j, threshold)
                              for k in range(self.K)])  # fmt: skip
            seen = np.array([leaf.weight(k) for k in range(self.K)], dtype=float)
            leaf.split = j, threshold, Leaf(below), Leaf(seen - below)
            self.n += 1

    def below(self, leaf, k, j, threshold):
        if leaf.weight(k) == 0:
            return 0.0
        mean, variance = leaf.moments(k, j)
        return ndtr((threshold - mean) / math.sqrt(variance))

    def best_threshold(self, leaf, j):
        """The gain of the Gini impurity, with the feature and its threshold."""
        mean, variance = leaf.pooled(j)
        share = np.array([leaf.weight(k) for k in range(self.K)])
        share = share / share.sum()
        best = (0.0, j, 0.0)
        for place in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5) if variance > 0 else ():
            threshold = mean + place * math.sqrt(variance)
            left = share * [self.below(leaf, k, j, threshold) for k in range(self.K)]
            right = share - left
            if 0.01 < left.sum() < 0.99:
                impurity = [1 - np.sum((part / part.sum()) ** 2) for part in (share, left, right)]
                gain = impurity[0] - left.sum() * impurity[1] - right.sum() * impurity[2]
                if gain > best[0]:
                    best = gain, j, threshold
        return best
