"""Algorithm 1 of Agarwal, Kale and Zimmert 2022 with explicit matrices, as printed or corrected."""

from functools import cache

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import log_softmax, logsumexp, softmax


class Folklore:
    """`corrected` has the constant of E1 and the linear term of E2."""

    def __init__(self, d, K, B=1.0, R=1.0, regularization=None, corrected=True):
        self.d, self.K = d, K
        self.lam = 2 * R / B if regularization is None else regularization
        self.corrected = corrected
        self.c = 1 / (2 * B * R + np.log(K - 1) + 2) if corrected else 1 / (B * R + np.log(K) / 2)
        self.A = self.lam * np.eye(K * d)
        self.G = np.zeros(K * d)
        self.solved = cache(self.solve)

    def logits(self, x):
        """The same until the next lesson, so that they are solved for once."""
        return self.solved(*x)

    def solve(self, *x):
        """Appendix E: z = g~ - A~ sigma(z)."""
        x = np.array(x)
        A_inv = np.linalg.inv(self.A)
        spread = np.kron(np.eye(self.K), x[:, None])
        T = spread.T @ A_inv @ spread
        A, g = T / 2, -spread.T @ A_inv @ self.G / 2 + np.diag(T) / 4

        def off(z):
            p = softmax(z)
            return z - g + A @ p, np.eye(self.K) + A @ (np.diag(p) - np.outer(p, p))

        found = root(off, g - A @ softmax(g), jac=True, tol=1e-13)
        assert np.abs(off(found.x)[0]).max() < 1e-10 * (1 + np.abs(found.x).max())
        return found.x

    def probabilities(self, x):
        return softmax(self.logits(x))

    def policy(self, x):
        return np.eye(self.K)[np.argmax(self.logits(x))]

    def learn(self, x, y):
        """Learn from a distribution y."""
        z = self.logits(x)
        p = softmax(z)
        S = np.diag(p) - np.outer(p, p)
        gradient = np.kron(p - y, x)
        hessian = np.kron(S, np.outer(x, x))
        if self.corrected:
            gradient -= 2 * self.c * np.kron(S @ z, x)
        self.A = self.A + self.c * hessian
        self.G = self.G + gradient
        self.solved.cache_clear()


class Lookahead(Folklore):
    """With the phi_t of Lemma 7 for A = A_t(W), solved for all of W, not for W x."""

    def solve(self, *x):
        x, K, d = np.array(x), self.K, self.d
        blocks = np.kron(np.eye(K), np.ones((d, d)))
        ones = np.kron(np.ones(K), x)

        def slope(w):
            """The gradient of ||W||_A^2 + <W, G> + phi_t."""
            p = softmax(w.reshape(K, d) @ x)
            A_t = self.A + self.c * np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
            b = np.kron(p, x) - A_t @ (blocks * np.linalg.inv(A_t)) @ ones / 2
            return 2 * self.A @ w + self.G + b

        first = -np.linalg.solve(self.A, self.G) / 2
        found = root(slope, first, tol=1e-13)
        assert np.abs(slope(found.x)).max() < 1e-9
        return found.x.reshape(K, d) @ x


class WrittenOut:
    """The left side of (3.3), minimised over W by a general optimiser: no A and no G."""

    def __init__(self, d, K, lam, c):
        self.d, self.K, self.lam, self.c = d, K, lam, c
        self.rounds = []
        self.found = cache(self.minimise)

    def surrogate(self, W, x, y, W_t):
        p = softmax(W_t @ x)
        hessian = np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
        gradient = np.kron(p - y, x)
        away = (W - W_t).ravel()
        loss = -y @ log_softmax(W_t @ x)
        value = loss + away @ gradient + self.c * away @ hessian @ away
        return value, gradient + 2 * self.c * hessian @ away

    def weights(self, x):
        """The same until the next lesson."""
        return self.found(*x)

    def minimise(self, *x):
        """The minimiser of lambda ||W||^2 + the surrogates + phi_t (3.1, Lemma 8)."""
        x, K, d = np.array(x), self.K, self.d
        A = self.lam * np.eye(K * d)
        for x_s, _, W_s in self.rounds:
            p = softmax(W_s @ x_s)
            A += self.c * np.kron(np.diag(p) - np.outer(p, p), np.outer(x_s, x_s))
        A_inv = np.linalg.inv(A)
        blocks = np.kron(np.eye(K), np.ones((d, d))) * A_inv
        ones = np.kron(np.ones(K), x)
        B_t = ones / K - A @ blocks @ ones / 2

        def objective(w):
            W = w.reshape(K, d)
            value, slope = self.lam * w @ w, 2 * self.lam * w
            for x_s, y_s, W_s in self.rounds:
                more, more_slope = self.surrogate(W, x_s, y_s, W_s)
                value, slope = value + more, slope + more_slope
            z = W @ x
            value += logsumexp(z) - z.mean() + w @ B_t
            slope = slope + np.kron(softmax(z) - 1 / K, x) + B_t
            return value, slope

        found = minimize(objective, np.zeros(K * d), jac=True, method="BFGS", tol=1e-11)
        return found.x.reshape(K, d)

    def learn(self, x, y):
        self.rounds.append((x, y, self.weights(x)))
        self.found.cache_clear()
