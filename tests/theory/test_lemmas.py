"""Lemmas of the papers as they are stated, on random numbers and on runs of the references.

The table of docs/papers.md names those that other tests contain.
"""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from onebit import losses
from onebit.theory.pictures import hessian_dominance, least_dominance
from paths import continuous
from references import confidit, folklore, soba


def draws(seed=0, n=300):
    """Yield generators, one for each case."""
    return (np.random.default_rng([seed, i]) for i in range(n))


# SOBA


def soba_run(seed, a=1.5, gamma=0.4, K=3, n=100):
    """Return g, z and A_t of each round that updated, and the examples."""
    X, y = continuous(K, n=n)
    rng = np.random.default_rng(seed)
    reference = soba.SOBA(X.shape[1], K, gamma, a, "full")
    found = []
    for x, truth in zip(X, y, strict=True):
        p = reference.policy(x)
        label = rng.choice(K, p=p)
        theta, n_updates = reference.theta, len(reference.n_m)
        reference.learn(x, label, p, label == truth)
        if len(reference.n_m) > n_updates:
            g = theta - reference.theta
            found.append((g, math.sqrt(p[label]) * g, reference.A))
    return found, X


def test_soba_lemma_2_bounds_the_updates_for_any_comparator():
    rounds, X = soba_run(seed=0)
    assert len(rounds) > 20
    most = sum(g @ np.linalg.solve(A, g) for g, _, A in rounds)
    for rng in draws():
        U = 10.0 ** rng.uniform(-2, 1) * rng.normal(size=3 * X.shape[1])
        assert sum(-2 * U @ g - (U @ z) ** 2 for g, z, _ in rounds) <= 1.5 * U @ U + most + 1e-9


def test_soba_lemma_3_bounds_the_quadratic_terms_in_expectation():
    terms = []
    for seed in range(30):
        rounds, X = soba_run(seed)
        terms.append(sum(z @ np.linalg.solve(A, z) for _, z, A in rounds))
    (T, d), K = X.shape, 3
    longest = np.linalg.norm(X, axis=1).max()
    bound = d * K * math.log(1 + 2 * longest**2 * T / (1.5 * d * K))
    assert 0.1 * bound < np.mean(terms) <= bound


def test_soba_lemma_4_bounds_adaptive_exploration():
    for rng in draws():
        T, b, a = int(rng.integers(1, 200)), 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-2, 2)
        c = b * rng.random(T) ** rng.integers(1, 5)
        before = np.cumsum(c) - c
        gamma = np.minimum(np.sqrt((b + before) / np.arange(1, T + 1)), 1)
        most = (2 + 2 * a) * math.sqrt(T * (b + c.sum())) + a * c.sum()
        assert (gamma + a * c / gamma).sum() <= most * (1 + 1e-12)


def test_soba_lemma_5_bounds_the_best_exploration():
    for rng in draws():
        T, H, U = 10.0 ** rng.uniform([0, -2, -2], [6, 4, 2])
        L = T * 10.0 ** rng.uniform(-6, 0)

        few = (U + 1) * math.sqrt(H * T)
        if few >= L:
            gamma, most = min(math.sqrt(H / T), 1), L + 3 * few
        else:
            gamma = min((H * L / T**2) ** (1 / 3), 1)
            most = L + 2 * (math.sqrt(U) + 1) * (H * L * T) ** (1 / 3)
        found = min(T, L + gamma * T + U * H / gamma + math.sqrt(U * H * L / gamma))
        assert found <= most * (1 + 1e-12)


def test_soba_lemma_6_is_a_step_of_online_least_squares():
    for rng in draws(n=100):
        d = int(rng.integers(1, 5))
        A, b, u = rng.uniform(0.1, 2) * np.eye(d), np.zeros(d), rng.normal(size=d)
        for _ in range(10):
            z, alpha = rng.normal(size=d), rng.normal()
            w, A_before = -np.linalg.solve(A, b), A
            A, b = A + np.outer(z, z), b + alpha * z
            after = -np.linalg.solve(A, b)
            left = (w @ z + alpha) ** 2 * (1 - z @ np.linalg.solve(A, z)) - (u @ z + alpha) ** 2
            right = (u - w) @ A_before @ (u - w) - (u - after) @ A @ (u - after)
            assert left <= right + 1e-9


def test_soba_lemma_7_the_alpha_logistic_loss_never_vanishes():
    """With alpha = ln(T) / (8 X D) it is at least log2(1 + (K - 1) T^(-1/4))."""
    for rng in draws(n=100):
        K, T, X, D = int(rng.integers(2, 8)), 10.0 ** rng.uniform(0.1, 8), *rng.uniform(0.1, 3, 2)
        U, x = rng.normal(size=(K, 3)), rng.normal(size=3)
        U *= D * rng.random() ** 0.2 / np.linalg.norm(U)
        x *= X / np.linalg.norm(x)
        loss = losses.of("logistic", alpha=math.log(T) / (8 * X * D))
        assert loss(U @ x, int(np.argmax(U @ x))) >= math.log2(1 + (K - 1) * T**-0.25) - 1e-12


# Confidit


@pytest.mark.parametrize("q", [0.0, 0.1])
def test_confidit_lemmas_1_7_and_8_bound_the_regret_of_a_round(q):
    """P(best) - P(chosen), where every score is within its interval."""
    for rng in draws():
        K, alpha = int(rng.integers(2, 6)), rng.uniform(0, 1)
        delta = rng.normal(size=K)
        eps = 10.0 ** rng.uniform(-2, 1, size=K)
        scores = delta + eps * rng.uniform(-1, 1, size=K)
        chosen, best = np.argmax(scores + eps), np.argmax(delta)
        P = (alpha + delta) / (1 + alpha) + rng.uniform(-q, q, size=K)
        regret = P[best] - P[chosen]
        assert regret <= 2 * q + 2 * eps[chosen] / (1 + alpha) + 1e-12
        if q == 0:
            margin = 10.0 ** rng.uniform(-2, 1)
            near = margin / (1 + alpha) * (delta[best] - delta[chosen] <= margin)
            assert regret <= near + 4 * eps[chosen] ** 2 / ((1 + alpha) * margin) + 1e-12


def confidit_run(T=60, seed=0):
    """Return W' and X of each round of version 1, its A at the end, and the U of two labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    u = np.array([0.6, -0.5])
    U = np.array([u, -u])
    reference = confidit.Confidit(2, 2, projection=True, confidence="theory", covariance="full")
    rounds = []
    for x in X:
        label = int(np.argmax(reference.policy(x)))
        correct = rng.random() < (1 + U[label] @ x) / 2
        before = reference.scores(x)[0]
        reference.learn(x, label, None, correct)
        vector = np.zeros((2, 2))
        vector[label] = x if correct else -x
        A_x = np.linalg.solve(reference.A[label], x)
        rounds.append((before, vector, float(x @ A_x)))
    return rounds, reference, U, X


def test_confidit_lemma_2_bounds_the_error_of_every_score():
    rounds, reference, U, X = confidit_run()
    more = sum(4 * r - (1 - (W * V).sum()) ** 2 + (1 - (U * V).sum()) ** 2 for W, V, r in rounds)
    for x in X:
        W = reference.scores(x)[0]
        for i in range(2):
            n = x @ np.linalg.solve(reference.A[i], x)
            assert ((W[i] - U[i]) @ x) ** 2 <= 2 * n * (2 * (U**2).sum() + more / 2) + 1e-9


@pytest.mark.parametrize("q", [0.0, 0.05])
def test_confidit_lemmas_3_4_and_9_on_the_square_losses_of_a_round(q):
    """Their difference has the mean (Delta - D)^2 / 2 if q = 0, and a variance of that order."""
    for rng in draws():
        alpha = rng.uniform(0, 1)
        delta, D = rng.uniform(-alpha, 1, size=2)
        p = np.clip((alpha + delta) / (1 + alpha) + rng.uniform(-q, q), 0, 1)
        demoted = (1 - p) * (1 + alpha) / 2
        chances, beta = np.array([1 - demoted, demoted]), np.array([1, -1])
        loss = (1 - beta * D) ** 2 / 2 - (1 - beta * delta) ** 2 / 2
        mean, away = chances @ loss, abs(delta - D)
        assert mean >= away**2 / 2 - (1 + alpha) * away * q - 1e-12
        assert q > 0 or mean == pytest.approx(away**2 / 2, abs=1e-12)
        assert chances @ (loss - mean) ** 2 <= (1 + alpha) ** 2 * away**2 + 1e-12


# FOLKLORE


def gradient_of_phi(sigma, x, A):
    """b_t(W; A) of Lemma 7."""
    K, d = sigma.size, x.size
    blocks = np.kron(np.eye(K), np.ones((d, d))) * np.linalg.inv(A)
    return np.kron(sigma, x) - A @ blocks @ np.kron(np.ones(K), x) / 2


def positive(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T + 0.1 * np.eye(n)


def test_folklore_lemmas_7_and_15_make_the_regret_of_a_round_linear():
    for rng in draws(n=100):
        K, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        A, x = positive(rng, K * d), rng.normal(size=d)
        sigma = softmax(rng.normal(size=K))
        phi = rng.normal(size=K * d)
        b = gradient_of_phi(sigma, x, A)
        trace = np.trace(
            np.linalg.solve(A, np.kron(np.diag(sigma) - np.outer(sigma, sigma), np.outer(x, x)))
        )
        for y in (np.eye(K)[rng.integers(K)], rng.dirichlet(np.ones(K))):
            g = np.kron(sigma - y, x)
            left = (phi - g) @ np.linalg.solve(A, phi - g) - phi @ np.linalg.solve(A, phi)
            right = -2 * np.linalg.solve(A, g) @ (phi - b) + trace
            assert left <= right + 1e-9 * (1 + abs(right))
            if y.max() == 1:
                assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


def test_folklore_lemma_8_gives_phi_the_gradient_of_the_minimax_solution():
    for rng in draws(n=100):
        K, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        A, x, W = positive(rng, K * d), rng.normal(size=d), rng.normal(size=(K, d))
        sigma = softmax(W @ x)
        blocks = np.kron(np.eye(K), np.ones((d, d))) * np.linalg.inv(A)
        ones = np.kron(np.ones(K), x)
        B_t = ones / K - A @ blocks @ ones / 2
        mean_gradient = np.kron(sigma - 1 / K, x)
        np.testing.assert_allclose(mean_gradient + B_t, gradient_of_phi(sigma, x, A), atol=1e-9)


def test_folklore_lemma_6_splits_the_regret_into_rounds():
    """With the surrogate of the corrected Lemma 1."""
    K, d, B = 3, 2, 1.0
    rng = np.random.default_rng(0)
    reference = folklore.WrittenOut(d, K, lam=2.0, c=1 / (2 * B + math.log(K - 1) + 2))
    X = rng.normal(size=(12, d))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    y = rng.integers(K, size=12)
    A, suffered, bound = 2.0 * np.eye(K * d), 0.0, 0.0
    for x, truth in zip(X, y, strict=True):
        z = reference.weights(x) @ x
        sigma, e = softmax(z), np.eye(K)[truth]
        suffered -= log_softmax(z)[truth]
        phi, g = gradient_of_phi(sigma, x, A), np.kron(sigma - e, x)
        after = A + reference.c * np.kron(np.diag(sigma) - np.outer(sigma, sigma), np.outer(x, x))
        bound += (phi - g) @ np.linalg.solve(after, phi - g) / 4
        bound -= phi @ np.linalg.solve(A, phi) / 4
        A = after
        reference.learn(x, e)
    for _ in range(300):
        W = rng.normal(size=(K, d))
        W *= B * rng.random() / np.linalg.norm(W, axis=1).max()
        theirs = -sum(log_softmax(W @ x)[truth] for x, truth in zip(X, y, strict=True))
        assert suffered - theirs <= 2.0 * (W**2).sum() + bound + 1e-6


def test_folklore_lemmas_14_18_and_19():
    """The Hessian, the loss after a step in one score, and the best step."""
    for rng in draws():
        K = int(rng.integers(2, 8))
        z, x = rng.normal(scale=3, size=K), rng.normal(size=2)
        p = softmax(z)
        hessian = np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
        assert np.linalg.eigvalsh(hessian)[-1] <= x @ x + 1e-12
        alpha, k, y = rng.uniform(-3, 3), rng.integers(K), rng.integers(K)
        change = log_softmax(z)[y] - log_softmax(z + alpha * np.eye(K)[k])[y]
        most = (math.exp(-alpha) - 1) * (1 - p[y]) if k == y else (math.exp(alpha) - 1) * p[k]
        assert change <= most + 1e-12
        A, B, _ = rng.dirichlet(np.ones(3))
        found = minimize_scalar(
            lambda a, A=A, B=B: A * math.expm1(a) + B * math.expm1(-a), bounds=(-2, 2)
        )
        assert found.fun <= -((A - B) ** 2) / 2 + 1e-9


def needs(sigma, psi, v):
    """The c that (F.2) needs along v (x) x, with the first label right."""
    away = (sigma - np.eye(sigma.size)[0] - psi) @ v
    return (away**2 - (psi @ v) ** 2) / (sigma @ v**2 - (sigma @ v) ** 2)


@pytest.mark.parametrize("BR", [0.5, 2.0, 8.0])
def test_folklore_appendix_f_hessian_dominance_fails_for_three_labels(BR):
    """Whatever symmetric regularizer is taken, c is at least exp(B R) / 2 + 1; with two it is 1."""
    sigma = softmax([0.0, 0.0, BR])
    least = math.exp(BR) / 2 + 1
    for rng in draws(n=50):
        psi = rng.normal(size=3)
        psi[1] = psi[0]  # the symmetry condition
        assert needs(sigma, psi, np.array([1.0, -1.0, 0.0])) == pytest.approx(least, rel=1e-9)
    assert least_dominance(np.array([0.0, 0.0, BR])) >= least * (1 - 1e-9)
    assert least_dominance(np.array([0.0, BR])) == pytest.approx(1.0, rel=1e-9)
    for v in np.random.default_rng(0).normal(size=(100, 3)):
        found = needs(sigma, sigma - 1 / 3, v)
        assert found <= least_dominance(np.array([0.0, 0.0, BR])) * (1 + 1e-9)


def test_the_picture_of_appendix_f():
    two, three, bound = hessian_dominance(Figure().add_subplot()).lines
    np.testing.assert_allclose(two.get_ydata(), 1.0, rtol=1e-9)
    assert (three.get_ydata() >= bound.get_ydata() * (1 - 1e-9)).all()


class Inexact(folklore.Folklore):
    """A solver that is off by up to `error` in every score."""

    def __init__(self, *sizes, error, **parameters):
        super().__init__(*sizes, **parameters)
        self.error, self.rng = error, np.random.default_rng(0)

    def solve(self, *x):
        return super().solve(*x) + self.error * self.rng.uniform(-1, 1, size=self.K)


def test_folklore_remark_5_what_the_tolerance_of_the_solver_costs():
    """An error of e in every score costs at most a few T e, and 1e-12, the solver's, nothing."""
    X, y = continuous(3, n=200)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)

    def suffered(error):
        reference, total = Inexact(X.shape[1], 3, error=error), 0.0
        for x, truth in zip(X, y, strict=True):
            total -= log_softmax(reference.logits(x))[truth]
            reference.learn(x, np.eye(3)[truth])
        return total

    exact = suffered(0.0)
    for error in (1e-12, 1e-6, 1e-3, 1e-1):
        assert abs(suffered(error) - exact) <= 2 * len(y) * error + 1e-9
    assert abs(suffered(1.0) - exact) > 0.5
