"""Bounds that need more than a stream: a noise model, a margin, weak learners. And refusals."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone

from onebit import play, theory
from onebit.learners import (
    SOBA,
    AdaBoostOLMpp,
    Banditron,
    Confidit,
    Gaptron,
    GaussianAggregating,
    KernelSeparableBandit,
    Newtron,
    Perceptron,
    SeparableBandit,
)
from onebit.learners.boosting import BoostingRegression
from onebit.theory import NotProvenError, Setting, best_linear, bounds


def noise_model(T, u, seed):
    """Two labels with P(y = i) = (1 + u_i . x) / 2, u_1 = -u_0 = u, and unit examples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, len(u)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (rng.random(T) < (1 + X @ u) / 2).astype(int)
    return X, y


def confidit_regret(history, X, y, u):
    """The sum of P(best) - P(label), by the model; of two labels a mistake tells which it was."""
    label = np.where(history.mistakes, 1 - y, y)
    lead = X @ u
    return np.sum(np.where(label == (lead > 0), 0.0, np.abs(lead)))


@pytest.mark.parametrize("u", [[0.9], [0.5, 0.7], [0.1, 0.0, 0.2]])
def test_regret_of_confidit_is_below_theorem_1(u):
    T, u = 5_000, np.array(u)
    X, y = noise_model(T, u, seed=len(u))
    norm = math.sqrt(2) * np.linalg.norm(u)
    learner = Confidit(projection=True, confidence="theory", covariance="full", norm=norm)
    regret = confidit_regret(play(learner, X, y), X, y, u)
    terms = float(learner._run.state.confidence.terms)
    assert terms <= bounds.confidit_terms(T, len(u), 2, 1.0)
    assert regret <= bounds.confidit(T, len(u), 2, norm, terms=terms)
    assert bounds.confidit(T, len(u), 2, norm, terms=terms) <= bounds.confidit(T, len(u), 2, norm)


@pytest.mark.parametrize("seed", range(20))
def test_regret_of_confidit_is_below_its_bound_for_any_lengths_and_any_a(seed):
    """Rows of lengths from X / 10 to X; every width covers the score, as Lemma 6 says."""
    rng = np.random.default_rng(seed)
    T, d, longest, a = 2_000, 1 + seed % 3, 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-2, 2)
    X, _ = noise_model(T, np.zeros(d), seed)
    X *= longest * rng.uniform(0.1, 1.0, size=(T, 1))
    u = rng.normal(size=d)
    u *= rng.uniform(0.2, 1.0) / (longest * np.linalg.norm(u))
    y = (rng.random(T) < (1 + X @ u) / 2).astype(int)
    norm = math.sqrt(2) * np.linalg.norm(u)
    form = {"projection": True, "confidence": "theory", "covariance": "full"}
    learner = Confidit(**form, norm=norm, a=a, normalize=False)
    history = play(learner, X, y)
    regret = confidit_regret(history, X, y, u)
    terms = float(learner._run.state.confidence.terms)
    assert terms <= bounds.confidit_terms(T, d, 2, 1.0, a, longest)
    assert regret <= bounds.confidit(T, d, 2, norm, a=a, X=longest, terms=terms)
    width, label = float(learner._run.state.confidence.width), np.where(history.mistakes, 1 - y, y)
    A = [a * np.eye(d) + X[label == i].T @ X[label == i] for i in (0, 1)]
    for x in X[-50:]:
        widths = sum(math.sqrt(width * x @ np.linalg.solve(some, x)) for some in A)
        assert abs(learner.decision_function([x])[0] - 2 * x @ u) <= widths


def confidit_examples(T, d, learner, u, rng):
    """Yield seven streams of unit examples; the last two are made against the learner.

    Its adversary sees its policy and knows u: of some examples it takes the one where the label
    that the learner would choose costs most.
    """
    random = rng.normal(size=(T, d))
    corners = np.eye(d)[rng.integers(d, size=T)] * rng.choice([-1.0, 1.0], size=(T, 1))
    close = u + 0.3 * random
    across = random - np.outer(random @ u, u) / (u @ u) + 0.01 * random
    fixed = [random, corners, close, across, np.repeat(random[:1], T, axis=0)]
    yield from (X / np.linalg.norm(X, axis=1, keepdims=True) for X in fixed)
    for n_candidates in (5, 50):
        learner = clone(learner).set_params(classes=[0, 1])
        X = np.empty((T, d))
        for t in range(T):
            Z = rng.normal(size=(n_candidates, d))
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
            lead = Z @ u
            if t > 0:
                chosen = learner.policy(Z).argmax(axis=1)
                lead = np.where(chosen == (lead > 0), 0.0, lead)
            X[t] = Z[np.argmax(np.abs(lead))]
            truth = int(rng.random() < (1 + X[t] @ u) / 2)
            learner.learn(learner.decide(X[t]), truth=truth)
        yield X


@pytest.mark.slow
@pytest.mark.parametrize("u", [[0.9, 0.1], [0.5, 0.7], [0.1, 0.0, 0.2]], ids=str)
def test_regret_of_confidit_is_below_theorem_1_on_many_streams(u):
    """Seven streams for each u, ten times with other labels."""
    T, u, rng = 2_000, np.array(u), np.random.default_rng(0)
    norm = math.sqrt(2) * np.linalg.norm(u)
    learner = Confidit(projection=True, confidence="theory", covariance="full", norm=norm)
    bound = bounds.confidit(T, len(u), 2, norm)
    for X in confidit_examples(T, len(u), learner, u, rng):
        for _ in range(10):
            y = (rng.random(T) < (1 + X @ u) / 2).astype(int)
            history = play(clone(learner).set_params(classes=[0, 1]), X, y)
            assert confidit_regret(history, X, y, u) <= bound


def test_confidit_told_the_opposite_exceeds_theorem_1_and_corollary_1():
    T, u = 60_000, np.array([1.0])
    X, y = noise_model(T, u, seed=0)
    norm = math.sqrt(2)
    learner = Confidit(projection=True, confidence="theory", covariance="full", norm=norm)
    told = play(learner, X, 1 - y)
    label = np.where(told.mistakes, y, 1 - y)
    wrong = np.sum(np.where(label == (X @ u > 0), 0.0, 1.0))
    assert wrong > bounds.confidit(T, 1, 2, norm)
    assert wrong > bounds.confidit_separated(T, 1, 2, norm, margin=2.0)
    right = play(clone(learner), X, y)
    assert confidit_regret(right, X, y, u) <= bounds.confidit_separated(T, 1, 2, norm, margin=2.0)


def test_theorem_2_is_theorem_1_without_approximation_error():
    assert bounds.confidit(1_000, 2, 3, 1.0, approximation_error=0.0) == bounds.confidit(
        1_000, 2, 3, 1.0
    )
    Q, T = 50.0, 1_000
    B2, B3 = 1 + 18 * math.log((T + 4) / 0.05), 6 * math.log(1 + T / 24)
    expected = 2 * Q + 2 * math.sqrt(1.25 * T * (B2 + 2 * Q + B3) * B3)
    assert bounds.confidit(T, 2, 3, 1.0, approximation_error=Q) == pytest.approx(expected)


def test_separable_bandit_is_below_its_bound_and_a_broken_one_is_not():
    K, T = 3, 1_000
    y = np.random.default_rng(0).integers(K, size=T)
    X = 2 * np.eye(K)[y] - 1
    margin = bounds.strong_margin(np.eye(K), X, y)
    assert margin == pytest.approx(2 / math.sqrt(K))
    bound = bounds.separable_bandit(K, R=math.sqrt(K), margin=margin)
    runs = [play(SeparableBandit(random_state=s), X, y).n_mistakes for s in range(10)]
    assert np.mean(runs) <= bound
    # Told the labels of other examples it learns nothing.
    broken = SeparableBandit(random_state=0, classes=range(K))
    broken.partial_fit(X[:100], (y[:100] + 1) % K)
    assert np.sum(broken.predict(X) != y) > bound
    assert bounds.strong_margin(np.eye(K), X, (y + 1) % K) < 0


def strongly_separable(T, K, d, rng):
    """Examples, labels, and weights that show how far they are strongly separable."""
    U = np.linalg.qr(rng.normal(size=(d, K)))[0].T
    y = rng.integers(K, size=T)
    signs = np.where(np.arange(K) == y[:, np.newaxis], 1.0, -1.0)
    rest = rng.normal(size=(T, d))
    rest -= rest @ U.T @ U
    return rng.uniform(0.5, 1.0, size=(T, 1)) * (signs @ U) + 0.3 * rest, y, U


def against(learner, X, y, T):
    """The order in which an adversary that sees the policy would show examples, with repetition."""
    learner = clone(learner).set_params(random_state=987_654, classes=range(y.max() + 1))
    order = []
    for t in range(T):
        right = learner.policy(X)[np.arange(len(y)), y] if t else np.ones(len(y))
        order.append(int(np.argmin(right)))
        learner.learn(learner.decide(X[order[-1]]), truth=int(y[order[-1]]))
    return X[order], y[order]


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3, 5, 9])
def test_separable_bandit_is_below_its_bound_on_many_streams(K):
    """Five streams for each K, the last two made against it; the mean over ten seeds."""
    rng, learner = np.random.default_rng(K), SeparableBandit()
    for number in range(5):
        X, y, U = strongly_separable(1_000, K, K + 2 * number, rng)
        margin = bounds.strong_margin(U, X, y)
        assert margin > 0
        if number >= 3:
            X, y = against(learner, X[:100], y[:100], 1_000)
        R = np.linalg.norm(X, axis=1).max()
        one = clone(learner).set_params(classes=range(K))
        runs = [play(clone(one).set_params(random_state=s), X, y).n_mistakes for s in range(10)]
        assert np.mean(runs) <= bounds.separable_bandit(K, R=R, margin=margin)


def adaboost_olm(T, N, is_wrong, seed, sign=1.0):
    """AdaBoost.OLM++ with N weak learners, two labels; return (mistakes, squared edges).

    ``is_wrong(lead, y, rng)`` says whether a weak learner errs that is told by how much the right
    label leads.
    """
    rng = np.random.default_rng(seed)
    regressions = [BoostingRegression(T) for _ in range(N)]
    v, mistakes = np.zeros(N), 0
    gained, weight = np.zeros(N), np.zeros(N)
    for y in rng.integers(2, size=T).tolist():
        s, wrong, told = np.zeros(2), np.zeros(N), []
        for i, regression in enumerate(regressions):
            right = 1.0 / (1.0 + math.exp(min(s[1 - y] - s[y], 700.0)))
            errs = is_wrong(s[y] - s[1 - y], y, rng)
            weak = 1 - y if errs else y
            gained[i] += 1.0 - right if errs else right - 1.0
            weight[i] += right - 1.0
            told.append((s, weak))
            s = sign * regression.predict(s, weak)
            wrong[i] = np.argmax(s) != y
        p = np.exp(sign * v - logsumexp(sign * v))
        mistakes += wrong[rng.choice(N, p=p)]
        v -= wrong
        for regression, (before, weak) in zip(regressions, told, strict=True):
            regression.update(before, weak, y)
    return mistakes, np.sum((gained / weight) ** 2)


WEAK = {
    "any": lambda share: lambda lead, y, rng: rng.random() < share,
    "one label": lambda share: lambda lead, y, rng: y == 1 and rng.random() < 2 * share,
    "in doubt": lambda share: lambda lead, y, rng: abs(lead) < 1 and rng.random() < 2 * share,
    "where it is sure": lambda share: lambda lead, y, rng: lead > 0 and rng.random() < 2 * share,
}
"""How the errors of a weak learner fall; the last two are made against the booster."""


@pytest.mark.slow
@pytest.mark.parametrize("weak", WEAK)
def test_boosting_is_below_proposition_12_on_many_streams(weak):
    T, N = 8_000, 16
    for seed, share in enumerate((0.0, 0.005, 0.01, 0.02, 0.03)):
        mistakes, squared_edges = adaboost_olm(T, N, WEAK[weak](share), seed)
        assert mistakes <= bounds.boosting(T, 2, squared_edges, N) < T


@pytest.mark.slow
def test_boosting_bound_says_something_and_a_broken_booster_exceeds_it():
    T, N = 10_000, 16
    mistakes, squared_edges = adaboost_olm(T, N, WEAK["any"](0.02), seed=0)
    bound = bounds.boosting(T, 2, squared_edges, N)
    assert mistakes <= bound < 0.95 * T
    broken, _ = adaboost_olm(T // 10, N, WEAK["any"](0.02), seed=0, sign=-1.0)
    assert 10 * broken > bound


class Informed(BaseEstimator):
    """A cost-sensitive weak learner that is told the label in the first column, and errs at times.

    The errors of its copies, each of which gets a seed of its own, are independent.
    """

    def __init__(self, share, random_state=None):
        self.share, self.random_state = share, random_state

    def predict(self, x, cost_matrix):
        label, noise = int(x[0]), x[1] * self.random_state % 1.0
        return label if noise >= self.share else (label + 1) % len(cost_matrix)

    def update(self, x, cost_matrix, label):
        pass


@pytest.mark.parametrize(("T", "N"), [(1_000, 6), pytest.param(12_000, 16, marks=pytest.mark.slow)])
def test_edges_of_a_run_bound_its_mistakes(T, N):
    """Proposition 12, both parts, with the edges and the S of the booster's own run.

    With few rounds and few weak learners the bound exceeds the rounds.
    """
    K = 3
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=T)
    X = np.column_stack([y, rng.random(T)])
    booster = AdaBoostOLMpp(Informed(0.02), N, T, classes=range(K), random_state=0)
    mistakes = play(booster, X, y).n_mistakes
    edges = booster.edges_
    bound = bounds.boosting(T, K, (edges**2).sum(), N)
    assert 0 < mistakes <= bound
    assert bound < T or N == 6
    assert edges[0] > 0.9
    assert (edges <= 1).all()
    edge = edges.min()
    assert booster.excess(edge) == pytest.approx(0, abs=1e-9)
    assert booster.excess(1.0) > booster.excess(0.99) > 0
    weak = bounds.boosting_weak(T, K, edge, booster.excess(edge), N)
    assert mistakes <= bound <= weak * (1 + 1e-9)


def test_hedge_is_below_its_bound_and_a_broken_one_is_not():
    """Experts that are wrong a third of the time, one of them never."""
    rng = np.random.default_rng(0)
    T, N, delta = 300, 50, 0.05
    for seed in range(20):
        wrong = np.random.default_rng(seed).random((T, N)) < 0.33
        wrong[:, 0] = False
        for sign in (1.0, -1.0):
            v, mistakes = np.zeros(N), 0
            for losses in wrong:
                p = np.exp(sign * v - logsumexp(sign * v))
                mistakes += losses[np.searchsorted(np.cumsum(p), rng.random() * p.sum())]
                v -= losses
            assert (mistakes <= bounds.hedge(0, N, delta)) == (sign == 1.0)


def test_banditron_bound_implies_the_published_one():
    """As later papers quote it, for examples of unit length and gamma up to a half."""
    for K in (2, 9):
        for gamma in (0.01, 0.1, 0.5):
            for L in (0.0, 100.0, 1e4):
                for U in (0.5, 5.0):
                    T = 100_000
                    published = (
                        L
                        + gamma * T
                        + 3 * max(2 * K * U**2 / gamma, math.sqrt(2 * U**2 * gamma * T))
                        + math.sqrt(2 * K * U**2 * L / gamma)
                    )
                    assert bounds.banditron(T, K, L, U, 1.0, gamma) <= published


def test_gaptron_bounds_are_those_of_the_theorems():
    T, K, X, D, L = 10_000, 5, 2.0, 3.0, 70.0
    ln2 = math.log(2)
    full = {
        "logistic": K * X**2 * D**2 / ln2,
        "hinge": K**2 * X**2 * D**2 / (2 * (K - 1)),
        "smooth_hinge": 2 * K * X**2 * D**2,
    }
    for loss, excess in full.items():
        assert bounds.gaptron(T, K, L, D, loss, "full", X, D) == pytest.approx(L + excess)
    for T in (100, 100_000, 10_000_000):
        bandit = {
            "logistic": K * X * D * max(2 * K * X * D / ln2, 2 * math.sqrt(T / ln2)),
            "hinge": max(K**3 * X**2 * D**2 / (K - 1), 2 * K * X * D * math.sqrt(T / 2)),
            "smooth_hinge": max(4 * K**2 * X**2 * D**2, 2 * K * X * D * math.sqrt(2 * T)),
        }
        for loss, excess in bandit.items():
            assert bounds.gaptron(T, K, L, D, loss, "bandit", X, D) <= (L + excess) * (1 + 1e-9)
    with pytest.raises(NotProvenError, match="step of at most"):
        bounds.gaptron(T, K, L, D, "hinge", "full", X, D, eta=1.0)
    with pytest.raises(NotProvenError, match=r"length at most D = 3; got 3\.1"):
        bounds.gaptron(T, K, L, 3.1, "hinge", "full", X, D)


def test_boosting_bounds_are_those_of_proposition_12():
    T, K, N, edge, regret, delta = 10_000, 3, 20, 0.5, 40.0, 0.1
    a = 2 * (math.exp(0.5) - 1) / (1 - math.exp(-1))
    for excess in (0.0, 7.0):
        best = 4 * (T * math.log(K) / (N * edge**2) + regret / edge**2 + K * excess / edge)
        expected = a * (best + math.log(N)) + 2 * math.log(1 / delta)
        found = bounds.boosting_weak(T, K, edge, excess, N, delta, regret)
        assert found == pytest.approx(expected, rel=1e-12)
    same = bounds.boosting(T, K, N * edge**2, N, delta, regret)
    assert same == pytest.approx(bounds.boosting_weak(T, K, edge, 0.0, N, delta, regret))
    default = bounds.boosting(T, K, 5.0, N)
    regret = bounds.boosting_regression(T)
    assert default == pytest.approx(bounds.boosting(T, K, 5.0, N, 0.05, regret), rel=1e-12)
    weak = bounds.boosting_weak(T, K, edge, 1.0, N, 0.05, regret)
    assert bounds.boosting_weak(T, K, edge, 1.0, N) == pytest.approx(weak, rel=1e-12)


def test_perceptron_bound_solves_theorem_1():
    for L, U in [(0.0, 2.0), (50.0, 0.3), (1e4, 5.0)]:
        for q in (1.0, 1.5, 2.0):
            M = bounds.perceptron(L, U, 1.0, q)
            right = M ** (1 - 1 / q) * L ** (1 / q) + U * math.sqrt(2 * M)
            assert pytest.approx(right, rel=1e-6) == M
        assert bounds.perceptron(L, U, 1.0) <= L + 2 * U**2 + U * math.sqrt(2 * L) + 1e-6
        squared = L + 2 * U**2 + 2 * math.sqrt(2) * U * math.sqrt(L)
        assert bounds.perceptron(L, U, 1.0, 2.0) == pytest.approx(squared)


def test_soba_hinge_bound_solves_its_inequality():
    T, d, K, L, U, gamma = 10_000, 3, 4, 200.0, 2.0, 0.1
    Q = bounds.soba_terms(T, d, K, 1.0, 1.0)
    H = (bounds.soba_hinge(T, d, K, L, U, 1.0, gamma) - gamma * T * 0.75) / (1 - gamma)
    etas = np.geomspace(1e-4, 10, 10_000)
    right = L + etas * U**2 * (H + 0.5) + K * Q / (2 * gamma * etas)
    assert right.min() == pytest.approx(H, rel=1e-5)
    # gamma falls with T like T^(-1/2) where L is small, like T^(-2/3) where it is large.
    for L, fall in [(10.0, 10 ** (1 / 2)), (1e6, 10 ** (2 / 3))]:
        at = [bounds.soba_hinge_gamma(T, d, K, L, 1.0, 1.0) for T in (10**7, 10**8)]
        assert 0 < at[1] < at[0] < 1
        assert at[0] / at[1] == pytest.approx(fall, rel=0.1)


def test_newtron_quadratics_are_below_its_loss():
    """The inequality behind `newtron_beta`, at random weights in the ball."""
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        K, d = rng.integers(2, 6), 3
        alpha, D, gamma = (
            10 ** rng.uniform(-1, 1),
            10 ** rng.uniform(-1, 0.5),
            rng.uniform(0.01, 0.9),
        )
        beta = bounds.newtron_beta(K, alpha, D, 1.0, gamma)
        W, U = (D * M / np.linalg.norm(M) for M in rng.normal(size=(2, K, d)))
        x = rng.normal(size=d)
        x /= np.linalg.norm(x)
        y = rng.integers(K)
        p, q = (np.exp(alpha * V @ x - logsumexp(alpha * V @ x)) for V in (W, U))
        s = (U - W) @ x
        mean = s.mean()
        tried = (1 - gamma) * p + gamma / K
        terms = p**2 / tried * (s - mean) ** 2
        quadratic = (1 - p[y]) ** 2 * (s[y] - mean) ** 2 + terms.sum() - terms[y]
        linear = (p - np.eye(K)[y]) @ s
        gain = (np.log(p[y]) - np.log(q[y])) / alpha - linear
        assert gain >= beta / 2 * quadratic - 1e-12


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        (SOBA(), "diagonal covariance"),
        (Newtron(), "PNewtron"),
        (Newtron(covariance="full"), "beta of at most"),
        (Confidit(), "linear noise model"),
        (SeparableBandit(), "strongly separable"),
        (KernelSeparableBandit(), "unknown constants"),
        (Gaptron(max_norm=0.5), "longest example"),
        (Gaptron(), "practical"),
    ],
    ids=str,
)
def test_what_is_not_proven_is_refused_with_the_reason(learner, why):
    X, y = np.eye(2)[[0, 1, 0, 1]], [0, 1, 0, 1]
    history = play(learner.set_params(random_state=0), X, y)
    with pytest.raises(NotProvenError, match=why):
        history.regret(learner, X, y)


def test_regret_over_time():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)), axis=1)
    learner = Perceptron()
    history = play(learner, X, np.array(["a", "b", "c"])[y])
    seen = history.regret(learner, X, np.array(["a", "b", "c"])[y], radius=3.0)
    assert seen.rounds[-1] == 500
    assert seen.suffered[-1] == history.n_mistakes
    assert seen.loss[-1] == pytest.approx(seen.comparator.loss)
    assert seen.comparator.radius == 3.0
    np.testing.assert_allclose(seen.regret, seen.suffered - seen.loss)
    assert (seen.suffered <= seen.bound).all()
    assert [row["rounds"] for row in seen.rows()] == [10, 20, 50, 100, 200, 500]
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = seen.plot(Figure().add_subplot())
    assert len(ax.lines) == 4
    again = theory.regret([history, history], learner, X, np.array(["a", "b", "c"])[y], radius=3.0)
    np.testing.assert_array_equal(again.suffered, seen.suffered)
    other = best_linear(X, np.array(["a", "b", "c"])[y], "log_loss")
    with pytest.raises(NotProvenError, match="over the loss hinge"):
        history.regret(learner, X, np.array(["a", "b", "c"])[y], comparator=other)
    with pytest.raises(ValueError, match="has 400 rounds"):
        history.regret(learner, X[:400], np.array(["a", "b", "c"])[y][:400])


def test_bound_is_text_and_number():
    assert str(Banditron.bound) == "O(T^(2/3)) over hinge loss"
    with pytest.raises(NotProvenError, match="nothing is proven of GaussianAggregating"):
        GaussianAggregating.bound.comparator(GaussianAggregating(), 1.0, None)
    setting = Setting(
        T=1_000,
        d=2,
        K=2,
        X=1.0,
        largest=1.0,
        U=np.eye(2),
        L=10.0,
        learner=Banditron(gamma=0.1),
    )
    expected = bounds.banditron(1_000, 2, 10.0, math.sqrt(2), 1.0, 0.1)
    assert Banditron.bound(setting) == pytest.approx(expected)
