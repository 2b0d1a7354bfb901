"""Each bound as its docstring states it, letter by letter, and roots by bisection."""

from math import e, exp, log, sqrt


def root(excess, low, high):
    """Where a growing function crosses zero."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return low


def explored(M, T, K, gamma):
    return (1 - gamma) * M + gamma * T * (K - 1) / K


def banditron(T, K, L, U, X, gamma):
    P = 1 - gamma * (K - 1) / K
    rho = (1 - P) / P

    def excess(M):
        return M - L - U * X * sqrt((K / gamma + 1 - rho) * M + rho * T)

    return explored(root(excess, L, 1e9), T, K, gamma)


def bandit_eg(T, d, K, L, U, X, eta, gamma):
    P = 1 - gamma * (K - 1) / K
    rho = (1 - P) / P

    def excess(M):
        squares = (K / gamma + 1) * M + rho * (T - M)
        return M - L - U * log(2 * K * d) / eta - U * eta * X**2 / 2 * squares

    return explored(root(excess, 0, 1e9), T, K, gamma)


def perceptron(L, U, X, q):
    return root(lambda M: M - M ** (1 - 1 / q) * L ** (1 / q) - U * X * sqrt(2 * M), 1e-6, 1e9)


def second_order_perceptron(L, U, X, d, K, a, eta):
    def excess(M):
        Q = d * K * log(1 + 2 * X**2 * M / (a * d * K))
        return M - L - a * eta * U**2 / (2 - eta) - Q / (eta * (2 - eta))

    return root(excess, L, 1e9)


def arow(s, r):
    """From a run's mistakes and updates: A has at most the trace of all updates."""
    n, size, U = s.updates, s.d * s.K, sqrt((s.U**2).sum())
    UAU = r * U**2 + n * 2 * s.X**2 * U**2
    log_det = size * log((r + 2 * s.X**2 * n / size) / r)
    N = s.updates - s.mistakes
    return s.L - N + sqrt(UAU * (log_det + N))


def confidit(T, d, K, U, alpha, delta, Q):
    B1, B2 = 1 + 1 / (1 + alpha) ** 2, U**2 + 18 * log((T + 4) / delta)
    B3 = d * K * log(1 + T / (d * K * (1 + alpha) ** 2))
    return 2 * Q + 2 * sqrt(B1 * T * (B2 + 2 * Q + B3) * B3)


def confidit_separated(T, d, K, U, margin, alpha, delta):
    B2 = U**2 + 18 * log((T + 4) / delta)
    B3 = d * K * log(1 + T / (d * K * (1 + alpha) ** 2))
    return 4 / margin * (1 + alpha + 1 / (1 + alpha)) * (B2 + B3) * B3


def confidit_scaled(T, d, K, U, alpha, delta, a, X):
    """With A_0 = a I and ||x|| <= X: (18) summed up as in the proof of Theorem 1."""
    B3 = d * K * log(1 + T * X**2 / (d * K * a))
    C = a * U**2 + (1 + alpha) ** 2 * (18 * log((T + 4) / delta) + B3)
    squares = C * (1 + X**2 / a) * B3  # sum of eps^2
    return 2 / (1 + alpha) * sqrt(T * squares), lambda margin: 4 / (1 + alpha) / margin * squares


def folklore(T, d, K, B, R, regularization):
    c = 1 / (2 * B * R + log(K - 1) + 2)
    if regularization is None:  # lambda = 2 R / B, and c B R <= 1/2 in the logarithm
        return 2 * R / B * K * B**2 + K * d / (4 * c) * log(1 + T / 2 / (K * d))
    growth = 2 * c * T * R**2 / (regularization * K * d)
    return regularization * K * B**2 + K * d / (4 * c) * log(1 + growth)


def folklore_lookahead(T, d, K, B, R, regularization):
    """Half of the trace: the curvature of a round is in A before it is counted."""
    c = 1 / (2 * B * R + log(K - 1) + 2)
    growth = c * T * R**2 / (regularization * K * d)
    return regularization * K * B**2 + K * d / (4 * c) * log(1 + growth)


def fenchel_young(T, K, L, U, X, gamma):
    """With one bit: the descent has up to K / gamma times the squared gradient, and explores."""
    return L + K * X**2 * U**2 / (2 * 0.8555 * gamma) + gamma * T * (1 - 1 / K)


def aioli(T, d, B, R, regularization):
    rest = 1 + T * R**2 / (8 * regularization * d * (1 + B * R))
    return regularization * B**2 + d * (1 + B * R) * log(rest)


def online_gradient(T, D, R):
    return 3 * (sqrt(2) * R) * D * sqrt(T)


def online_newton(T, d, K, D, R, beta=None, epsilon=None):
    alpha, G = exp(-sqrt(2) * D * R) / (K - 1), sqrt(2) * R
    beta = min(1 / (4 * G * 2 * D), alpha) / 2 if beta is None else beta
    epsilon = 1 / (beta * 2 * D) ** 2 if epsilon is None else epsilon
    rest = 1 + 2 * R**2 * T / (epsilon * d * (K - 1))
    return beta * epsilon * D**2 / 2 + d * (K - 1) / (2 * beta) * log(rest)


def aggregating(T, d, K, B, R, mu):
    return d * K * (1 + log(max(1, T * (B * R + log(K)) / (d * K)))) - T * log(1 - mu)


def obama(T, d, K, mu, B, R):
    inside = max(1, mu * T * (B * R + log(K)) / (d * K**2))
    return d * K**2 / mu * (1 + log(inside)) - T * log(1 - mu)


def newtron(T, d, K, L, alpha, beta, gamma, D, X):
    n = d * (K - 1)
    regret = D / 2 + K * n / (2 * gamma * beta) * log(
        1 + 2 * D * beta * X**2 * T / ((1 - gamma) * n)
    )
    return (1 - gamma) * (L + alpha * regret) + gamma * T * (K - 1) / K


def newtron_beta(K, alpha, D, X, gamma):
    spread = sqrt(2) * alpha * X * D
    c, delta = 1 / (2 + spread + log(K - 1)), 1 / (1 + (K - 1) * exp(spread))
    return 2 * c * alpha * delta * (1 - gamma)


def soba(T, d, K, L, U, X, gamma, a, eta):
    Q = d * K * log(1 + 2 * X**2 * T / (a * d * K))
    greedy = L + a * eta * U**2 / (2 - eta) + K * Q / (gamma * eta * (2 - eta))
    return explored(greedy, T, K, gamma)


def soba_adaptive(T, d, K, L, U, X, a, eta):
    Q, s = d * K * log(1 + 2 * X**2 * T / (a * d * K)), eta * (2 - eta)
    more = (2 + 2 / s) * sqrt(K * T * (1 + Q)) + K * Q / s
    return L + a * eta * U**2 / (2 - eta) + more


def exp_concave_reduction(T, d, K, L, gamma, eta, D, X, beta=None, epsilon=None):
    F = 2 * (1 + sqrt(2) * eta * X * D) / (2 - eta)
    G, alpha = K / gamma * sqrt(2) * X * F, gamma / K * (2 * eta / (2 - eta)) / F**2
    beta = min(1 / (8 * G * D), alpha) / 2 if beta is None else beta
    epsilon = 1 / (2 * D * beta) ** 2 if epsilon is None else epsilon
    n = d * (K - 1)
    rest = 1 + T * G**2 * gamma / (K * epsilon * n)
    regret = beta * epsilon * D**2 / 2 + n / (2 * beta) * log(rest)
    return explored(L + regret, T, K, gamma)


def boosting_regression(T, c, lambda_, B, R):
    """FOLKLORE for two labels and two features, and what clipping costs."""
    regret = lambda_ * 2 * B**2 + 4 / (4 * c) * log(1 + 2 * c * T * R**2 / lambda_ / 4)
    return regret + T * e**2 / T**2
