"""Figure 1 of Crammer and Gentile 2013, step by step, and the same in dual variables."""

import numpy as np


def projected(D, n, alpha):
    """The scores nearest to D that no class has below -alpha and whose sum is 1 + alpha - K alpha.

    The classes above -alpha are the first r in the decreasing order of (alpha + D_i) / n_i, for the
    last r that fits (Section 3.1).
    """
    order = np.argsort(-(alpha + D) / n)
    for r in range(D.size, 0, -1):
        first, last = order[:r], order[r - 1]
        lam = (1 + alpha - (alpha + D[first]).sum()) / n[first].sum()
        if (alpha + D[last]) / n[last] + lam > 0:
            return np.maximum(-alpha, D + lam * n)
    raise AssertionError("the first class alone always fits")


class Confidit:
    """`draws` is a generator in the state that the learner's has before the first round."""

    def __init__(
        self,
        d,
        K,
        eta=1.0,
        alpha=1.0,
        confidence="constant",
        projection=False,
        covariance="diagonal",
        norm=1.0,
        delta=0.05,
        approximation_error=(0.0,),
        a="theory",
        normalize=True,
        draws=None,
    ):
        self.a, self.normalize = (1 + alpha) ** 2 if a == "theory" else a, normalize
        self.K, self.eta, self.alpha, self.draws = K, eta, alpha, draws
        self.theory, self.projection = confidence == "theory", projection
        self.diagonal = covariance == "diagonal"
        self.norm, self.delta, self.q = norm, delta, approximation_error
        self.A = np.array([self.a * np.eye(d)] * K)
        self.W = np.zeros((K, d))
        self.t, self.terms, self.Q = 1, 0.0, 0.0

    def point(self, x):
        return x / np.linalg.norm(x) if self.normalize and np.any(x) else x

    def scores(self, x):
        """W' of step 2, and D and n of step 3."""
        A_inv_x = np.linalg.solve(self.A, x[:, np.newaxis])[:, :, 0]
        n = np.array([x @ v for v in A_inv_x])
        D = np.array([w @ x for w in self.W])
        if not self.projection or not np.any(x):
            return self.W, D, n
        new = projected(D, n, self.alpha)
        return self.W + ((new - D) / n)[:, np.newaxis] * A_inv_x, new, n

    def multiplier(self):
        """Of n_i in the square of eps_i."""
        if not self.theory:
            return self.eta  # (11)
        eta_t = self.a * self.norm**2 / 2 + (1 + self.alpha) ** 2 * (
            self.terms / 2 + self.Q + 9 * np.log((self.t + 4) / self.delta)
        )
        return 2 * eta_t  # (9), (10)

    def beta(self, correct):
        """Steps 6-7."""
        if self.alpha < 1:
            self.draws.random()  # the label's
            if not correct:
                return -1 if self.draws.random() < (1 + self.alpha) / 2 else 1
        return 1 if correct else -1

    def policy(self, x):
        _, D, n = self.scores(self.point(x))
        return np.eye(self.K)[np.argmax(D + np.sqrt(self.multiplier() * n))]  # step 4

    def learn(self, x, label, p, correct):
        x = self.point(x)
        self.W = self.scores(x)[0].copy()
        b = self.A[label] @ self.W[label] + self.beta(correct) * x
        outer = np.outer(x, x)
        self.A[label] += np.diag(np.diag(outer)) if self.diagonal else outer
        self.W[label] = np.linalg.solve(self.A[label], b)  # step 8
        self.end_round(x @ np.linalg.solve(self.A[label], x))

    def end_round(self, term):
        self.terms += term
        self.Q += self.q(self.t) if callable(self.q) else self.q[min(self.t, len(self.q)) - 1]
        self.t += 1


class KernelConfidit(Confidit):
    """b_i = A_i w_i = sum of c[i, s] phi(x_s) over all rounds s; k is the kernel function."""

    def __init__(self, k, K, **parameters):
        super().__init__(0, K, **parameters)
        self.k = k
        self.x, self.S = [], [[] for _ in range(K)]
        self.gram, self.c = np.zeros((0, 0)), np.zeros((K, 0))

    def point(self, x):
        return x

    def product(self, x, z):
        return self.k(x, z) / (np.sqrt(self.k(x, x) * self.k(z, z)) if self.normalize else 1.0)

    def scores(self, x):
        """The steps of b_i in step 2, and D and n of step 3."""
        k_x = np.array([self.product(z, x) for z in self.x])
        D, n = np.zeros(self.K), np.zeros(self.K)
        for i, S in enumerate(self.S):
            h = np.linalg.solve(self.a * np.eye(len(S)) + self.gram[np.ix_(S, S)], k_x[S])
            n[i] = (self.product(x, x) - k_x[S] @ h) / self.a
            D[i] = (self.c[i] @ k_x - self.c[i] @ self.gram[:, S] @ h) / self.a
        if not self.projection:
            return np.zeros(self.K), D, n
        new = projected(D, n, self.alpha)
        return (new - D) / n, new, n

    def learn(self, x, label, p, correct):
        tau, _, n = self.scores(x)
        tau[label] += self.beta(correct)
        k_x = np.array([[self.product(z, x)] for z in self.x]).reshape(-1, 1)
        self.gram = np.block([[self.gram, k_x], [k_x.T, np.full((1, 1), self.product(x, x))]])
        self.c = np.hstack([self.c, tau[:, np.newaxis]])
        self.S[label].append(len(self.x))
        self.x.append(x)
        self.end_round(n[label] / (1 + n[label]))
