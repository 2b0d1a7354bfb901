"""Bounds are those of their docstrings, and refuse what the theorems do not cover."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from onebit.learners import (
    AROW,
    SOBA,
    Aggregating,
    Aioli,
    BanditEG,
    BanditReduction,
    Banditron,
    ExpConcaveReduction,
    FenchelYoung,
    Folklore,
    Gaptron,
    Newtron,
    Obama,
    OnlineGradient,
    OnlineNewton,
    PassiveAggressive,
    Perceptron,
    SecondOrderPerceptron,
)
from onebit.numerics.logistic_surrogate import boosting_parameters
from onebit.theory import NotProvenError, Setting, bounds, pictures
from onebit.theory.bounds.banditron import variance_of_right_rounds
from onebit.theory.bounds.gaptron import theory_eta, theory_gamma
from onebit.theory.bounds.logistic import obama_mu
from onebit.theory.bounds.soba import exp_concave_gamma
from references import bounds as reference

SIZES = [(1_000, 3, 2), (50_000, 4, 5)]
EXACT = {"rel": 1e-9}


@pytest.mark.parametrize(("T", "d", "K"), SIZES)
@pytest.mark.parametrize(("L", "U", "X"), [(0.0, 0.5, 1.0), (321.0, 1.7, 2.5)])
def test_bounds_over_a_loss(T, d, K, L, U, X):
    for gamma in (0.05, 0.4):
        assert bounds.banditron(T, K, L, U, X, gamma) == pytest.approx(
            reference.banditron(T, K, L, U, X, gamma), **EXACT
        )
        eta = 0.5 / (U * X**2 * K / gamma)
        assert bounds.bandit_eg(T, d, K, L, U, X, eta, gamma) == pytest.approx(
            reference.bandit_eg(T, d, K, L, U, X, eta, gamma), **EXACT
        )
        for a, eta in [(1.0, 1.0), (3.0, 0.4)]:
            given = T, d, K, L, U, X
            found = bounds.soba(*given, gamma, a, eta), bounds.soba_adaptive(*given, a, eta)
            expected = (
                reference.soba(*given, gamma, a, eta),
                reference.soba_adaptive(*given, a, eta),
            )
            assert found == pytest.approx(expected, **EXACT)
            assert bounds.soba(*given, gamma, a, eta, terms=0.0) == pytest.approx(
                reference.explored(L + a * eta * U**2 / (2 - eta), T, K, gamma)
            )
            # Over the hinge loss, for the best eta of all; with no terms, L and exploration remain.
            assert bounds.soba_hinge(*given, gamma, a, terms=0.0) == pytest.approx(
                reference.explored(L, T, K, gamma), abs=1e-6
            )
    for q in (1.0, 1.3, 2.0):
        found = bounds.perceptron(L, U, X, q)
        assert found == pytest.approx(reference.perceptron(L, U, X, q), rel=1e-7)
    for a, eta in [(1.0, 1.0), (3.0, 0.4)]:
        assert bounds.second_order_perceptron(L, U, X, d, K, a, eta) == pytest.approx(
            reference.second_order_perceptron(L, U, X, d, K, a, eta), rel=1e-7
        )
    for alpha, D, gamma in [(1.0, 1.0, 0.2), (0.3, 2.0, 0.5)]:
        beta = bounds.newtron_beta(K, alpha, D, X, gamma)
        assert beta == pytest.approx(reference.newtron_beta(K, alpha, D, X, gamma), **EXACT)
        given = T, d, K, L, alpha, beta, gamma, D, X
        assert bounds.newtron(*given) == pytest.approx(reference.newtron(*given), **EXACT)
        for wrong in ({"beta": 1.001 * beta}, {"gamma": 0.0}, {"gamma": 1.0}):
            with pytest.raises(NotProvenError, match="beta of at most"):
                bounds.newtron(
                    T, d, K, L, alpha, **{"beta": beta, "gamma": gamma} | wrong, D=D, X=X
                )
    for gamma, eta, D in [(0.3, 0.1, 1.0), (0.7, 0.05, 2.0)]:
        given = T, d, K, L, gamma, eta, D, X
        assert bounds.exp_concave_reduction(*given) == pytest.approx(
            reference.exp_concave_reduction(*given), **EXACT
        )
        assert bounds.exp_concave_reduction(*given, 1e-9, 3.0) == pytest.approx(
            reference.exp_concave_reduction(*given, 1e-9, 3.0), **EXACT
        )
        with pytest.raises(NotProvenError, match="beta of at most"):
            bounds.exp_concave_reduction(*given, beta=1.0)
        with pytest.raises(NotProvenError, match="Theorem 7 needs eta"):
            bounds.exp_concave_reduction(T, d, K, L, gamma, 1.01 / max(1, 2 * X * D), D, X)
    for C in (0.1, 2.0):
        squares = U**2 + 2 * C * L
        assert bounds.passive_aggressive(L, U, X, C) == max(2 * X**2, 1 / C) * squares
        found = bounds.passive_aggressive(L, U, X, C, "PA-II")
        assert found == pytest.approx((2 * X**2 + 1 / (2 * C)) * squares)
    if L:
        with pytest.raises(NotProvenError, match="no hinge loss"):
            bounds.passive_aggressive(L, U, X, 1.0, "PA")
    else:
        assert bounds.passive_aggressive(L, U, X, 1.0, "PA") == 2 * X**2 * U**2


@pytest.mark.parametrize(("T", "d", "K"), SIZES)
@pytest.mark.parametrize(("B", "R"), [(1.0, 1.0), (3.0, 0.5)])
def test_bounds_on_regret(T, d, K, B, R):
    for given in (None, 2.5):
        found = bounds.folklore(T, d, K, B, R, given)
        assert found == pytest.approx(reference.folklore(T, d, K, B, R, given), **EXACT)
        less = bounds.folklore(T, d, K, B, R, given, lookahead=True)
        used = 2 * R / B if given is None else given
        expected = reference.folklore_lookahead(T, d, K, B, R, used)
        assert less == pytest.approx(expected, **EXACT)
        assert less < found
        found = bounds.aioli(T, d, B, R, given)
        expected = reference.aioli(T, d, B, R, 1 / B**2 if given is None else given)
        assert found == pytest.approx(expected, **EXACT)
    least = R**2 / (2 * B * R + math.log(K - 1) + 2)
    bounds.folklore(T, d, K, B, R, 1.001 * least)
    with pytest.raises(NotProvenError, match="regularization of at least"):
        bounds.folklore(T, d, K, B, R, 0.999 * least)
    assert bounds.online_gradient(T, B, R) == pytest.approx(reference.online_gradient(T, B, R))
    given = T, d, K, B, R
    for more in ((), (1e-4, 2.0)):
        found, expected = (
            bounds.online_newton(*given, *more),
            reference.online_newton(*given, *more),
        )
        assert found == pytest.approx(expected, **EXACT)
    with pytest.raises(NotProvenError, match="beta of at most"):
        bounds.online_newton(*given, beta=1.0)
    for mu in (0.1, 0.5):
        assert bounds.aggregating(*given, mu) == pytest.approx(reference.aggregating(*given, mu))
        found, expected = bounds.obama(T, d, K, mu, B, R), reference.obama(T, d, K, mu, B, R)
        assert found == pytest.approx(expected, **EXACT)
    few = 2, 50, 9
    assert bounds.aggregating(*few, B, R, 0.1) == reference.aggregating(*few, B, R, 0.1)
    assert bounds.obama(*few, 0.1, B, R) == pytest.approx(reference.obama(*few, 0.1, B, R))
    size = d * K**2
    C = size * (1 + math.log(max(1, T * (B * R + math.log(K)) / size)))
    assert obama_mu(T, d, K, B, R) == min(0.5, math.sqrt(C / T))
    assert obama_mu(2, 50, 9, B, R) == 0.5
    for alpha, delta, Q in [(1.0, 0.05, 0.0), (0.2, 0.3, 7.0)]:
        found = bounds.confidit(T, d, K, B, alpha, delta, Q)
        assert found == pytest.approx(reference.confidit(T, d, K, B, alpha, delta, Q), **EXACT)
        found = bounds.confidit_separated(T, d, K, B, 0.3, alpha, delta)
        expected = reference.confidit_separated(T, d, K, B, 0.3, alpha, delta)
        assert found == pytest.approx(expected, **EXACT)
        for a, X in [((1 + alpha) ** 2, 1.0), (0.3, 5.0)]:
            regret, separated = reference.confidit_scaled(T, d, K, B, alpha, delta, a, X)
            found = bounds.confidit(T, d, K, B, alpha, delta, a=a, X=X)
            assert found == pytest.approx(regret, **EXACT)
            found = bounds.confidit_separated(T, d, K, B, 0.3, alpha, delta, a=a, X=X)
            assert found == pytest.approx(separated(0.3), **EXACT)
    few_terms = (
        bounds.confidit(T, d, K, B, terms=2.0),
        bounds.confidit_separated(T, d, K, B, 0.3, terms=2.0),
    )
    B2 = B**2 + 18 * math.log((T + 4) / 0.05)
    assert few_terms == pytest.approx(
        (2 * math.sqrt(1.25 * T * (B2 + 2) * 2), 4 / 0.3 * 2.5 * (B2 + 2) * 2)
    )
    found = bounds.boosting_regression(T)
    assert found == pytest.approx(reference.boosting_regression(T, *boosting_parameters(T)))
    B, R = 2.0, 1.0 + math.log(T)
    expected = reference.boosting_regression(T, 1 / (2 * B * R + 2), 2 * R / B, B, R)
    assert bounds.boosting_regression(T, "paper") == pytest.approx(expected)
    for gamma in (None, 0.2):
        found = bounds.bandit_reduction(T, K, 30.0, 25.0, gamma)
        used = min(1.0, math.sqrt(K * 25 / T)) if gamma is None else gamma
        assert found == pytest.approx(30 + K * 25 / used + used * T)
    with pytest.raises(NotProvenError, match="gamma=0"):
        bounds.bandit_reduction(T, K, 30.0, 25.0, 0.0)
    assert bounds.bandit_reduction(10, K, 30.0, 25.0) == 30 + K * 25 + 10


def test_parameters_of_theorems():
    for K, X, D, T in [(3, 1.0, 1.0, 10_000), (5, 2.0, 0.5, 100), (4, 1.0, 3.0, 10**7)]:
        hinge = K**2 * X * D / ((K - 1) * math.sqrt(2 * T))
        assert theory_gamma("hinge", K, X, D, T) == pytest.approx(min(1, hinge))
        smooth = K * X * D * math.sqrt(2 / T)
        assert theory_gamma("smooth_hinge", K, X, D, T) == pytest.approx(min(1, smooth))
        ln2 = math.log(2)
        exploring = K * X * D * max(2 * K * X * D / ln2, 2 * math.sqrt(T / ln2))
        greedy = (K * X * D) ** 2 * math.exp(2 * D * X) / ln2
        expected = min(1, K * X * D / math.sqrt(T * ln2)) if exploring <= greedy else 0
        assert theory_gamma("logistic", K, X, D, T) == pytest.approx(expected)
        for gamma in (0.0, 0.3):
            full = {"hinge": (K - 1) / K, "smooth_hinge": 1 / 4, "logistic": ln2 / 2}
            for loss, top in full.items():
                least = max(math.exp(-2 * D * X), gamma) if loss == "logistic" else gamma
                found = [theory_eta(loss, told, gamma, K, X, D) for told in ("full", "bandit")]
                assert found == pytest.approx([top / (K * X**2), top * least / (K * X) ** 2])
    assert bounds.largest_eta(3.0, 2.0) == 2 / 13
    assert bounds.largest_eta(0.1, 2.0) == 1.0
    assert variance_of_right_rounds(4, 0.4) == pytest.approx(0.3 / 0.7)
    for T, d, K, eta in [(10_000, 5, 3, 0.2), (10, 5, 3, 0.2)]:
        expected = min(1, K * math.sqrt(d * math.log(T) / (eta * T)))
        assert exp_concave_gamma(T, d, K, eta) == pytest.approx(expected)
    for T, L in [(10**6, 10.0), (10**6, 1e6), (3, 10.0)]:
        H = 5 * 9 * 4 * math.log(T)
        many = (9.0 + 1) * math.sqrt(H * T) <= L
        expected = (H * L / T**2) ** (1 / 3) if many else math.sqrt(H / T)
        assert bounds.soba_hinge_gamma(T, 5, 3, L, 3.0, 2.0) == pytest.approx(min(1, expected))
    with pytest.raises(ValueError, match=r"q in \[1, 2\]"):
        bounds.perceptron(1.0, 1.0, 1.0, 2.1)
    with pytest.raises(ValueError, match=r"q in \[1, 2\]"):
        bounds.perceptron(1.0, 1.0, 1.0, 0.9)
    with pytest.raises(NotProvenError, match=r"needs eta < 0\.0"):
        bounds.bandit_eg(1_000, 3, 3, 0.0, 1.0, 1.0, 1.0, 0.1)


SETTING = Setting(
    T=2_000,
    d=4,
    K=3,
    X=0.8,
    largest=0.5,
    U=np.array([[0.3, 0.0, 0.2, -0.1], [0.1, 0.4, -0.2, 0.0], [0.0, -0.3, 0.2, 0.1]]),
    L=123.0,
    learner=None,
    mistakes=70,
    updates=200,
)
U = float(np.linalg.norm(SETTING.U))
ETA = bounds.largest_eta(np.sqrt((SETTING.U**2).sum(axis=1)).max(), SETTING.X)
BETA = bounds.newtron_beta(3, 0.5, 2.0, 0.8, 0.2)

BOUNDS = [
    (Perceptron(), bounds.perceptron(123.0, U, 0.8)),
    (SecondOrderPerceptron(a=2.0, covariance="full"),
     bounds.second_order_perceptron(123.0, U, 0.8, 4, 3, 2.0, ETA)),
    (AROW(r=3.0, covariance="full"), reference.arow(SETTING, 3.0)),
    (PassiveAggressive(C=0.3), bounds.passive_aggressive(123.0, U, 0.8, 0.3)),
    (PassiveAggressive(C=0.3, variant="PA-II"),
     bounds.passive_aggressive(123.0, U, 0.8, 0.3, "PA-II")),
    (Banditron(0.3), bounds.banditron(2_000, 3, 123.0, U, 0.8, 0.3)),
    (BanditEG(0.01, 0.3),
     bounds.bandit_eg(2_000, 4, 3, 123.0, np.abs(SETTING.U).sum(), 0.5, 0.01, 0.3)),
    (SOBA(0.3, 2.0, "full"), bounds.soba(2_000, 4, 3, 123.0, U, 0.8, 0.3, 2.0, ETA)),
    (SOBA("adaptive", 2.0, "full"), bounds.soba_adaptive(2_000, 4, 3, 123.0, U, 0.8, 2.0, ETA)),
    (Newtron(0.2, alpha=0.5, beta=BETA, D=2.0, covariance="full"),
     bounds.newtron(2_000, 4, 3, 123.0, 0.5, BETA, 0.2, 2.0, 0.8)),
    (Folklore(2.0, 0.9), 123.0 + bounds.folklore(2_000, 4, 3, 2.0, 0.9)),
    (Folklore(2.0, 0.9, lookahead=True),
     123.0 + bounds.folklore(2_000, 4, 3, 2.0, 0.9, lookahead=True)),
    (FenchelYoung(gamma=0.2, max_norm=0.9), reference.fenchel_young(2_000, 3, 123.0, U, 0.9, 0.2)),
    (FenchelYoung(radius=3.0, max_norm=0.9, horizon=500),
     bounds.fenchel_young(2_000, 3, 123.0, U, X=0.9,
                          gamma=min(1.0, 3 * 0.9 * 3.0 / math.sqrt(2 * 0.8555 * 2 * 500)))),
    (FenchelYoung("full", eta=0.1, max_norm=0.9),
     bounds.fenchel_young(2_000, 3, 123.0, U, "full", 0.9, eta=0.1)),
    (OnlineGradient(2.0, 0.9), 123.0 + bounds.online_gradient(2_000, 2.0, 0.9)),
    (OnlineNewton(radius=2.0, max_norm=0.9), 123.0 + bounds.online_newton(2_000, 4, 3, 2.0, 0.9)),
    (Aggregating(2.0, mu=0.1), 123.0 + bounds.aggregating(2_000, 4, 3, 2.0, 0.8, 0.1)),
    (Obama(B=2.0, R=0.9, mu=0.1), 123.0 + bounds.obama(2_000, 4, 3, 0.1, 2.0, 0.9)),
    (Obama(B=2.0, R=0.9, horizon=500),
     123.0 + bounds.obama(2_000, 4, 3, obama_mu(500, 4, 3, 2.0, 0.9), 2.0, 0.9)),
    (Gaptron("hinge", "full", radius=3.0, max_norm=0.9),
     bounds.gaptron(2_000, 3, 123.0, U, "hinge", "full", 0.9, 3.0)),
    (Gaptron("hinge", eta="theory", gamma="theory", radius=3.0, max_norm=0.9, horizon=500),
     bounds.gaptron(2_000, 3, 123.0, U, "hinge", "bandit", 0.9, 3.0,
                    theory_gamma("hinge", 3, 0.9, 3.0, 500))),
    (Gaptron("hinge", eta=0.001, gamma=0.5, radius=3.0, max_norm=0.9),
     bounds.gaptron(2_000, 3, 123.0, U, "hinge", "bandit", 0.9, 3.0, 0.5, 0.001)),
    (ExpConcaveReduction(gamma=0.3, radius=2.0, max_norm=0.9),
     bounds.exp_concave_reduction(2_000, 4, 3, 123.0, 0.3, 1 / 3.6, 2.0, 0.9)),
    (ExpConcaveReduction(radius=2.0, max_norm=0.9, horizon=500),
     bounds.exp_concave_reduction(2_000, 4, 3, 123.0, exp_concave_gamma(500, 4, 3, 1 / 3.6),
                                  1 / 3.6, 2.0, 0.9)),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "expected"), BOUNDS, ids=lambda value: str(value)[:40])
def test_a_learner_hands_its_parameters_to_its_bound(learner, expected):
    assert learner.bound(replace(SETTING, learner=learner)) == pytest.approx(expected, **EXACT)


def test_a_reduction_asks_the_learner_inside():
    inside = Folklore(2.0, 0.9)
    regret = bounds.folklore(2_000, 4, 3, 2.0, 0.9)
    for gamma, used in [(0.4, 0.4), ("theory", None)]:
        learner = SimpleNamespace(learner_=inside, gamma=gamma, horizon=500)
        if used is None:
            used = min(1.0, math.sqrt(3 * bounds.folklore(500, 4, 3, 2.0, 0.9) / 500))
        found = BanditReduction.bound(replace(SETTING, learner=learner))
        assert found == pytest.approx(123 + 3 * regret / used + used * 2_000)
    for other in (Perceptron(), object()):
        learner = SimpleNamespace(learner_=other, gamma=0.4, horizon=500)
        with pytest.raises(NotProvenError, match="Theorem 9 needs a bound"):
            BanditReduction.bound(replace(SETTING, learner=learner))
        with pytest.raises(NotProvenError, match="Theorem 9 needs a bound"):
            BanditReduction.bound.comparator(learner, 1.0, None)
    _, norm, radius = BanditReduction.bound.comparator(SimpleNamespace(learner_=inside), 1.0, None)
    assert (norm, radius) == ("rows", 2.0)


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (AROW(), "diagonal covariance"),
        (SecondOrderPerceptron(), "diagonal second-order"),
        (Folklore(R=0.9, curvature="paper"), "curvature as printed"),
        (OnlineGradient(eta=0.1), "the bound is for eta='theory'"),
        (Obama(mu=0.1, eta=0.2), "eta = mu / K"),
        (Obama(mu=1.0), "infinite"),
        *((cls(**given), "longest example") for cls, given in [
            (Folklore, {"R": 0.79}), (Aioli, {"R": 0.79}), (OnlineGradient, {"max_norm": 0.79}),
            (OnlineNewton, {"max_norm": 0.79}), (Obama, {"R": 0.79}),
            (ExpConcaveReduction, {"max_norm": 0.79}), (Gaptron, {"max_norm": 0.79}),
            (FenchelYoung, {"max_norm": 0.79}),
        ]),
    ],
    ids=str,
)  # fmt: skip
def test_settings_without_a_theorem_are_refused(learner, words):
    with pytest.raises(NotProvenError, match=words):
        learner.bound(replace(SETTING, learner=learner))


def test_the_bound_of_arow_needs_a_run():
    for missing in ({"updates": None}, {"mistakes": None}):
        with pytest.raises(NotProvenError, match="of a run"):
            AROW.bound(replace(SETTING, learner=AROW(covariance="full"), **missing))


@pytest.mark.parametrize(
    ("learner", "ball", "loss"),
    [
        (Perceptron(), ("frobenius", None), "hinge"),
        (PassiveAggressive(variant="PA-II"), ("frobenius", None), "squared_hinge"),
        (Newtron(alpha=3.0, D=2.0), ("frobenius", 6.0), "log_loss"),
        (Folklore(B=2.5), ("rows", 2.5), "log_loss"),
        (Aioli(B=3.0), ("rows", 1.5), "log_loss"),
        (OnlineGradient(radius=2.0), ("frobenius", 2.0), "log_loss"),
        (Obama(B=2.0), ("rows", 2.0), "log_loss"),
        (Gaptron("smooth_hinge", radius=7.0), ("frobenius", 7.0), "smooth_hinge"),
        (Gaptron("hinge", "full", radius=None), ("frobenius", None), "hinge"),
        (FenchelYoung(), ("frobenius", None), "logistic"),
    ],
    ids=str,
)
def test_comparators_are_those_of_the_theorem(learner, ball, loss):
    norm, own = ball
    found = learner.bound.comparator(learner, 1.0, None)
    assert found[1:] == (norm, 1.0 if own is None else own)
    assert str(found[0]) == loss
    smaller = learner.bound.comparator(learner, 1.0, 0.5)
    assert smaller[1:] == (norm, 0.5)
    if own is None:
        assert learner.bound.comparator(learner, 1.0, 99.0)[2] == 99.0
    else:
        with pytest.raises(NotProvenError, match="its own parameter"):
            learner.bound.comparator(learner, 1.0, own + 0.01)


def test_pictures_of_losses(tmp_path):
    ax = pictures.eta_family(Figure().add_subplot())
    *family, mistake = ax.lines
    m = np.linspace(-1.5, 1.5, 601)
    for line, eta in zip(family, (0.0, 0.25, 0.5, 0.75, 1.0), strict=True):
        values = np.where(m < 1, 1 - 2 / (2 - eta) * m + eta / (2 - eta) * m**2, 0)
        np.testing.assert_allclose(line.get_xdata(), m)
        np.testing.assert_allclose(line.get_ydata(), values, atol=1e-12)
    np.testing.assert_array_equal(mistake.get_ydata(), m <= 0)
    assert (ax.get_xlim(), ax.get_ylim()) == ((-1.5, 1.5), (-0.1, 6.5))
    ax = pictures.surrogate_gap(Figure().add_subplot())
    assert (ax.get_xlim(), ax.get_xlabel()) == ((-1, 1.5), "margin $z$")
    z = np.linspace(-1, 1.5, 1001)
    slope = np.where(z <= 0, 2, 2 * np.maximum(1 - z, 0))
    gap, spent, wrong = np.maximum(1 - np.abs(z), 0) ** 2, slope**2 / 16, z <= 0
    for line, values in zip(
        ax.lines,
        (np.where(z <= 0, 1 - 2 * z, np.maximum(1 - z, 0) ** 2), wrong + spent,
         (1 - gap) * wrong + gap / 2 + spent),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(line.get_xdata(), z)
        np.testing.assert_allclose(line.get_ydata(), values, atol=1e-9)
    pictures.main(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {
        "soba_figure_1.png", "gaptron_figure_1.png", "folklore_appendix_f.png"}  # fmt: skip
