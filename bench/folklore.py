"""Speed of FOLKLORE beside Algorithm 1 written down in NumPy: ``python bench/folklore.py``.

"3.3" is the algorithm as one would write it from the paper: A and G as printed (with the linear
term), and W_t by (3.3) with a general optimiser of SciPy. "E" knows Appendix E: it inverts A and
finds z_t in K dimensions with a general solver of SciPy. Both have one thread, as onebit. All three
must predict the same.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import logsumexp, softmax
from threadpoolctl import threadpool_limits

from onebit.core import play
from onebit.learners.folklore import Folklore

SIZES = [(10, 3), (54, 7), (20, 20)]
B = 10.0


class Transcription:
    """Algorithm 1 with matrices of (K d)^2 numbers."""

    def __init__(self, d: int, K: int) -> None:
        self.d, self.K = d, K
        self.c = 1.0 / (2.0 * B + np.log(K - 1) + 2.0)
        self.A = 2.0 / B * np.eye(K * d)
        self.G = np.zeros(K * d)
        self.W = np.zeros(K * d)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return z_t = W_t x, with W_t from (3.3), starting at the last one."""
        K, d = self.K, self.d
        A_inv = np.linalg.inv(self.A)
        of_own_class = np.concatenate(
            [A_inv[k * d : (k + 1) * d, k * d : (k + 1) * d] @ x for k in range(K)]
        )
        B_t = np.tile(x, K) / K - self.A @ of_own_class / 2.0  # Lemma 8

        def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
            Aw, z = self.A @ w, w.reshape(K, d) @ x
            value = w @ Aw + w @ (self.G + B_t) + logsumexp(z) - z.mean()
            return value, 2.0 * Aw + self.G + B_t + np.kron(softmax(z) - 1.0 / K, x)

        options = {"gtol": 1e-9, "ftol": 1e-15}
        self.W = minimize(objective, self.W, jac=True, method="L-BFGS-B", options=options).x
        return self.W.reshape(K, d) @ x

    def learn(self, x: np.ndarray, z: np.ndarray, y: int) -> None:
        """Update A and G."""
        p = softmax(z)
        S = np.diag(p) - np.outer(p, p)
        self.A += self.c * np.kron(S, np.outer(x, x))
        self.G += np.kron(p - np.eye(self.K)[y] - 2.0 * self.c * S @ z, x)


class AppendixE(Transcription):
    """The same, with z_t from the fixed point."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the z with z = g~ - A~ sigma(z)."""
        K, d = self.K, self.d
        A_inv = np.linalg.inv(self.A).reshape(K, d, K, d)
        P = A_inv @ x
        T = np.einsum("i,kil->kl", x, P)
        A = T / 2.0
        g = -np.einsum("ikl,kl->i", P.transpose(2, 0, 1), self.G.reshape(K, d)) / 2.0
        g += np.diag(T) / 4.0

        def off(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            p = softmax(z)
            return z - g + A @ p, np.eye(K) + A @ (np.diag(p) - np.outer(p, p))

        return root(off, g - A @ softmax(g), jac=True, tol=1e-12).x


def stream(T: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit examples in all directions and labels of a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(5.0 * X @ rng.normal(size=(d, K)) + rng.gumbel(size=(T, K)), axis=1)


def walk(learner: Transcription, X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the microseconds of a round, and the probabilities of each."""
    p = np.empty((len(y), learner.K))
    start = time.perf_counter()
    for t, x in enumerate(X):
        z = learner.predict(x)
        p[t] = softmax(z)
        learner.learn(x, z, int(y[t]))
    return 1e6 * (time.perf_counter() - start) / len(y), p


def main() -> None:
    """Print microseconds a round, and how far the predictions are apart."""
    print(f"{'d':>4}{'K':>4}{'3.3':>10}{'E':>10}{'onebit':>10}{'ratios':>12}{'apart':>18}")
    for d, K in SIZES:
        X, y = stream(2_000, d, K)
        n = 50
        with threadpool_limits(1):
            minimum, p_minimum = walk(Transcription(d, K), X[:n], y[:n])
            solver, p_solver = walk(AppendixE(d, K), X[:n], y[:n])
        learner = Folklore(B, classes=range(K))
        p = np.empty((n, K))
        for t in range(n):
            decision = learner.decide(X[t])
            p[t] = softmax(learner._run.scores)
            learner.learn(decision, truth=int(y[t]))
        seconds = []
        for _ in range(4):  # the first one compiles
            start = time.perf_counter()
            play(Folklore(B, classes=range(K)), X, y)
            seconds.append(time.perf_counter() - start)
        ours = 1e6 * min(seconds) / len(y)
        print(
            f"{d:4}{K:4}{minimum:10.0f}{solver:10.0f}{ours:10.1f}"
            f"{minimum / ours:6.0f}{solver / ours:6.0f}"
            f"{np.abs(p - p_minimum).max():9.0e}{np.abs(p - p_solver).max():9.0e}"
        )


if __name__ == "__main__":
    main()
