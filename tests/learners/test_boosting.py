"""Boosters against their literal references, and what the papers prove of them."""

import copy
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from onebit import (
    SOBA,
    AdaBoostOL,
    AdaBoostOLM,
    AdaBoostOLMpp,
    BanditReduction,
    Folklore,
    HoeffdingTree,
    OnlineBBM,
    OnlineGradient,
    OnlineMBBM,
    Perceptron,
    load,
    play,
)
from onebit.checks import check_learner
from onebit.core.state import at
from onebit.learners.boosting import BoostingRegression
from onebit.learners.boosting.booster import RULES
from onebit.learners.boosting.weak import least_cost
from onebit.theory import bounds
from paths import continuous
from references import boosting, folklore, hoeffding_tree

BOOSTERS = [AdaBoostOLM, AdaBoostOLMpp, OnlineMBBM, AdaBoostOL, OnlineBBM]
TREE = HoeffdingTree(4, "naive_bayes", max_features=0.5, grace=10)


def reference_of(booster, K):
    """The reference of a booster of `TREE`s that has started."""
    weak = [
        hoeffding_tree.HoeffdingTree(
            np.flatnonzero(at(booster._run.state.weak, i).used), K, 4, bayes=True, grace=10
        )
        for i in range(booster.n_learners)
    ]
    if isinstance(booster, AdaBoostOLMpp):
        return boosting.AdaBoostOLMpp(weak, K, booster.horizon)
    if isinstance(booster, AdaBoostOLM):
        return boosting.AdaBoostOLM(weak, K, 4.0 if isinstance(booster, AdaBoostOL) else None)
    factor = 2 if isinstance(booster, OnlineBBM) else 1
    return boosting.OnlineMBBM(weak, K, factor * booster.gamma)


@pytest.mark.parametrize(
    ("cls", "K", "n"),
    [
        (AdaBoostOLMpp, 3, 130),
        *[pytest.param(cls, 3, 250, marks=pytest.mark.slow) for cls in BOOSTERS[:3]],
        *[pytest.param(cls, 2, 250, marks=pytest.mark.slow) for cls in BOOSTERS],
    ],
)
def test_walks_the_path_of_the_reference(cls, K, n):
    X, y = (part[:n] for part in continuous(K))
    # Weights with the same sum up to rounding would make leaves tie.
    given = {"gamma": 0.1371} if cls is OnlineBBM else {}
    booster = cls(TREE, n_learners=4, **given, classes=range(K), random_state=0)
    booster._start(np.arange(K), X.shape[1])
    reference = reference_of(booster, K)
    for t, truth in enumerate(y):
        p = reference.policy(X[t])
        np.testing.assert_allclose(booster.policy(X[[t]])[0], p, rtol=0, atol=1e-9)
        assert booster.predict(X[[t]])[0] == reference.greedy(X[t])
        play(booster, X[[t]], y[[t]])
        reference.learn(X[t], truth)
    if isinstance(booster, AdaBoostOLM):
        np.testing.assert_allclose(booster._run.state.rule.alpha, reference.alpha, atol=1e-9)
    assert booster._run.state.weak.n_nodes.max() > 1


def rule_of(cls, n, K):
    """The costs of a booster, and the state they need."""
    booster = cls(n_learners=n)
    rule = booster._new_rule(n, K)
    return RULES[cls._rule].costs.py_func, rule


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("first", [-1.999, -0.3, 0.7, 1.999])
def test_alpha_descends_the_logistic_loss_within_its_bounds(first, right):
    rng = np.random.default_rng(0)
    K, t, truth = 4, 3, 2
    rule = AdaBoostOLM()._new_rule(2, K)
    s, label = rng.normal(size=K), truth if right else 1

    def loss(alpha):
        z = s + alpha * np.eye(K)[label]
        return np.log1p(np.exp(np.delete(z, truth) - z[truth])).sum()

    rule.alpha[:] = first
    RULES["adaboost_olm"].adapt.py_func(rule, 1, t, s, label, truth)
    slope = (loss(first + 1e-5) - loss(first - 1e-5)) / 2e-5
    step = 2 * math.sqrt(2) / (K - 1) / math.sqrt(t) * slope
    assert rule.alpha.tolist() == [first, pytest.approx(np.clip(first - step, -2, 2), abs=1e-8)]
    rule.alpha[:] = first
    RULES["adaboost_olm"].adapt.py_func(rule._replace(eta=100.0), 0, t, s, label, truth)
    assert rule.alpha[0] == (2.0 if right else -2.0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    K=st.integers(2, 7),
    n=st.integers(1, 8),
    cls=st.sampled_from(BOOSTERS[:3]),
)
def test_cost_matrices_are_those_of_the_papers_in_the_range_of_weak_learners(seed, K, n, cls):
    """Non-negative, a zero diagonal, rows that sum to the weight, one at most."""
    rng = np.random.default_rng(seed)
    costs, rule = rule_of(cls, n, K)
    i = rng.integers(n)
    s = 10 ** rng.uniform(-2, 2) * rng.normal(size=K)
    if cls is OnlineMBBM:
        s = np.bincount(rng.integers(K, size=i), minlength=K).astype(float)
        reference = boosting.OnlineMBBM([None] * n, K, 0.1)
    elif cls is AdaBoostOLM:
        reference = boosting.AdaBoostOLM([None] * n, K)
    else:
        reference = boosting.AdaBoostOLMpp([None] * n, K, 1_000)
    C = np.full((K, K), np.nan)
    costs(rule, i, s, 0, K - 1, C)
    assert (C >= 0).all()
    assert (np.diag(C) == 0).all()
    assert (C.sum(axis=1) <= 1 + 1e-12).all()
    literal = reference.costs(i, s)
    weights = [reference.weight(literal, y) for y in range(K)]
    np.testing.assert_allclose(C.sum(axis=1), weights, rtol=1e-9, atol=1e-12)
    literal = literal - np.diag(literal)[:, np.newaxis]
    scale = {AdaBoostOLM: K * (K - 1), AdaBoostOLMpp: 1, OnlineMBBM: K - 1}[cls]
    np.testing.assert_allclose(C, literal / scale, rtol=1e-9, atol=1e-12)
    row = np.full((K, K), np.nan)
    costs(rule, i, s, K - 1, K - 1, row)
    np.testing.assert_allclose(row[-1], C[-1], rtol=1e-12, atol=1e-15)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 7), cls=st.sampled_from(BOOSTERS[:3]))
def test_weights_count_once(seed, K, cls):
    """A model of weighted examples predicts what costs least, by what is true of x."""
    rng = np.random.default_rng(seed)
    costs, rule = rule_of(cls, 5, K)
    s = np.bincount(rng.integers(K, size=2), minlength=K).astype(float)
    C = np.empty((K, K))
    costs(rule, 2, s, 0, K - 1, C)
    truth = rng.dirichlet(np.ones(K))
    weighted = truth * C.sum(axis=1)
    label = least_cost.py_func(weighted / weighted.sum(), C, np.empty(K))
    assert truth @ C[:, label] == pytest.approx((truth @ C).min(), abs=1e-9)
    if K == 2:
        assert label == np.argmax(weighted)


def test_rows_without_weight_cost_nothing():
    p, costs = np.full(3, 1 / 3), np.empty(3)
    for tiny in (0.0, 5e-324, 1e-301):
        C = np.array([[0.0, tiny, tiny], [0.2, 0.0, 0.1], [0.3, 0.3, 0.0]])
        assert least_cost.py_func(p, C, costs) == 2
        np.testing.assert_allclose(costs, [7 / 18, 1 / 6, 1 / 9])


def test_weights_of_online_bbm_are_binomial():
    """C(n, k) (1/2 + g)^k (1/2 - g)^{n - k}, for n weak learners to come."""
    N, g = 7, 0.1
    booster = OnlineBBM(n_learners=N, gamma=g)
    costs, rule = RULES["online_mbbm"].costs.py_func, booster._new_rule(N, 2)
    C = np.empty((2, 2))
    for i in range(N):
        for wrong in range(i + 1):
            costs(rule, i, np.array([wrong, i - wrong], dtype=float), 1, 1, C)
            n, lead = N - 1 - i, i - 2 * wrong
            k = (n + 1 - lead) // 2
            expected = math.comb(n, k) * (0.5 + g) ** k * (0.5 - g) ** (n - k) if 0 <= k <= n else 0
            assert C[1, 0] == pytest.approx(expected, abs=1e-14)


def test_slope_of_adaboost_olm_is_that_of_its_loss():
    rng = np.random.default_rng(0)
    for _ in range(200):
        K = rng.integers(2, 6)
        reference = boosting.AdaBoostOLM([None], K)
        s, label, y, alpha = rng.normal(size=K), rng.integers(K), rng.integers(K), rng.normal()
        e = 1e-6 * np.eye(K)[label]
        at_alpha = s + alpha * np.eye(K)[label]
        slope = (reference.loss(at_alpha + e, y) - reference.loss(at_alpha - e, y)) / 2e-6
        assert reference.slope(s, label, y, alpha) == pytest.approx(slope, abs=1e-8)


# The boosting regression


@pytest.mark.parametrize("algorithm", ["folklore", "paper", "aioli"])
def test_regression_has_the_identities_of_algorithm_3(algorithm):
    """Sigma(s^)_l = sigma(zeta)_1, and the others keep their ratios."""
    rng, T, K = np.random.default_rng(0), 300, 4
    regression = BoostingRegression(T, algorithm)
    literal = boosting.AdaBoostOLMpp([None], K, T, algorithm == "paper").regressions[0]
    for _ in range(T):
        s, label = 3 * rng.normal(size=K), int(rng.integers(K))
        y = label if rng.random() < 0.7 else int(rng.integers(K))
        predicted = regression.predict(s, label)
        others = np.delete(np.arange(K), label)
        np.testing.assert_allclose(np.diff(predicted[others]), np.diff(s[others]), atol=1e-12)
        assert softmax(predicted)[label] == pytest.approx(expit(2 * predicted[label]))
        if algorithm != "aioli":
            expected = literal.predict(s, label)  # up to a constant
            np.testing.assert_allclose(predicted - predicted[0], expected - expected[0], atol=1e-9)
        regression.update(s, label, y)
        literal.update(s, label, y)


def test_regression_is_folklore_and_aioli_of_two_classes():
    """With the same constants, by the learners themselves."""
    rng, T = np.random.default_rng(1), 200
    most = math.log(T)
    constants = boosting.AdaBoostOLMpp([None], 2, T).regressions[0].folklore
    other = folklore.Folklore(2, 2, regularization=constants.lam)
    other.c = constants.c
    regression = BoostingRegression(T)
    for _ in range(T):
        h, right = rng.uniform(-most, most), int(rng.random() < 0.6)
        s = np.array([2 * h, 0.0])
        zeta = other.logits(np.array([h, 1.0]))
        assert np.diff(regression.predict(s, 0)) == pytest.approx(np.diff(zeta), abs=1e-9)
        regression.update(s, 0, 1 - right)
        other.learn(np.array([h, 1.0]), np.eye(2)[1 - right])


def losses(T, seed, algorithm="folklore"):
    """Losses of a regression, and of s + alpha e_l for alpha on a grid, in each round."""
    rng, K = np.random.default_rng(seed), 3
    regression, grid = BoostingRegression(T, algorithm), np.linspace(-2, 2, 81)
    own, theirs = np.empty(T), np.empty((T, grid.size))
    for t in range(T):
        s, label = 2 * rng.normal(size=K), int(rng.integers(K))
        scores = s + 1.3 * np.eye(K)[label]
        y = int(np.argmax(scores + rng.gumbel(size=K)))
        own[t] = -np.log(softmax(regression.predict(s, label))[y])
        tried = s + grid[:, np.newaxis] * np.eye(K)[label]
        theirs[t] = -np.log(softmax(tried, axis=1)[:, y])
        regression.update(s, label, y)
    return np.cumsum(own) - np.cumsum(theirs, axis=0).min(axis=1)


@pytest.mark.slow
def test_the_papers_constants_are_those_of_folklore():
    """With B = 2 and R = 1 + ln T, by the learner itself."""
    T, rng = 150, np.random.default_rng(2)
    most = math.log(T)
    learner = Folklore(B=2.0, R=1.0 + most, classes=[0, 1])
    regression = BoostingRegression(T, "paper")
    for _ in range(T):
        h, right = rng.uniform(-most, most), int(rng.random() < 0.6)
        decision = learner.decide([h, -1.0])
        z = learner.scores([[h, -1.0]])[0]
        assert -np.diff(regression.predict([2 * h, 0.0], 0)) == pytest.approx(z[0] - z[1], abs=1e-9)
        regression.update([2 * h, 0.0], 0, 1 - right)
        learner.learn(decision, truth=1 - right)


@pytest.mark.parametrize("T", [1_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_regret_of_the_regression_is_below_its_bound(T):
    for algorithm, share in [("folklore", 0.3), ("aioli", 0.3), ("paper", 0.6)]:
        regret = losses(T, 0, algorithm)[-1]
        assert regret < share * bounds.boosting_regression(T)
    assert bounds.boosting_regression(T) < bounds.boosting_regression(T, "paper")


# Weak learners of all kinds


def easy(n, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.argmax(X[:, :K], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOOSTERS)
@pytest.mark.parametrize("learner", [Perceptron(), Folklore(), OnlineGradient(), TREE], ids=str)
def test_learners_of_onebit_are_weak_learners(cls, learner):
    K = 3 if cls._many_classes else 2
    X, y = easy(2_000, K)
    booster = cls(learner, 5, random_state=0)
    assert play(booster, X, y).mistakes[1_000:].mean() < 0.3
    check_learner(cls(learner, 3))


@pytest.mark.parametrize(
    ("learner", "n"),
    [
        (GaussianNB(), 100),
        pytest.param(GaussianNB(), 400, marks=pytest.mark.slow),
        pytest.param(SGDClassifier(), 400, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_classifiers_of_scikit_learn_are_weak_learners(learner, n):
    """One takes weights and has margins; the other takes weights and has probabilities."""
    X, y = easy(n)
    names = np.array(["ant", "bee", "cat"])[y]
    booster = AdaBoostOLMpp(learner, 3, random_state=0)
    assert play(booster, X, names).mistakes[n // 2 :].mean() < 0.35
    X = X[:100]
    for other in (copy.deepcopy(booster), pickle.loads(pickle.dumps(booster))):
        assert other.predict(X).tolist() == booster.predict(X).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOOSTERS)
def test_boosters_of_other_libraries_have_every_behaviour(cls):
    check_learner(cls(SGDClassifier(loss="log_loss", random_state=0), 2))


class CostRegression:
    """A linear regression of the cost of each label on x."""

    def __init__(self):
        self.W, self.cost_matrices = None, []

    def predict(self, x, cost_matrix):
        return 0 if self.W is None else int(np.argmin(self.W @ x))

    def update(self, x, cost_matrix, label):
        if self.W is None:
            self.W = np.zeros((len(cost_matrix), x.size))
        self.W += 0.3 * np.outer(cost_matrix[label] - self.W @ x, x) / (1 + x @ x)
        self.cost_matrices.append(cost_matrix)


@pytest.mark.parametrize(("K", "n"), [(2, 60), (4, 100)])
def test_a_cost_sensitive_learner_of_ones_own_walks_the_path_of_algorithm_4(K, n):
    """Predict(x, C) and Update(x, C, y), as the paper has them; ties and zero rows included."""
    X, y = (part[:n] for part in continuous(K))
    own = CostRegression()
    booster = AdaBoostOLMpp(own, 3, n, "paper", classes=range(K), random_state=0)
    reference = boosting.Algorithm4([CostRegression() for _ in range(3)], K, n)
    for x, truth in zip(X, y.tolist(), strict=True):
        p = reference.policy(x)
        decision = booster.decide(sp.csr_array(x[np.newaxis]) if truth else x)
        np.testing.assert_allclose(booster.policy(x[np.newaxis])[0], p, rtol=0, atol=1e-9)
        booster.learn(decision, truth=truth)
        reference.learn(x, truth)
    for model, literal in zip(booster._run.state.weak.models, reference.weak, strict=True):
        np.testing.assert_allclose(model.model.W, literal.W, atol=1e-9)
        np.testing.assert_allclose(model.model.cost_matrices, literal.cost_matrices, atol=1e-9)
    np.testing.assert_allclose(booster.edges_, reference.edges(), atol=1e-9)
    for edge in (0.0, 0.3, 1.0):
        assert booster.excess(edge) == pytest.approx(reference.excess(edge), abs=1e-9)
    assert booster.excess(1.0) > 0
    assert own.W is None  # copies learn
    assert type(clone(booster).learner) is CostRegression
    if K > 2:
        with pytest.raises(ValueError, match="cannot take further classes"):
            booster.add_classes([7])


@pytest.mark.parametrize("cls", BOOSTERS)
def test_every_booster_takes_a_cost_sensitive_learner(cls):
    K = 3 if cls._many_classes else 2
    X, y = easy(150, K)
    booster = cls(CostRegression(), 3, random_state=0)
    assert play(booster, X, y).mistakes[75:].mean() < 0.4
    C = np.array(booster._run.state.weak.models[0].model.cost_matrices)
    assert C.shape == (150, K, K)
    assert (C >= 0).all()
    assert not C[:, range(K), range(K)].any()
    assert (C.sum(axis=2) <= 1 + 1e-12).all()
    assert (C.sum(axis=2) > 0).all(), "rows of other labels than the right one, too"


def test_labels_that_a_cost_sensitive_learner_may_not_return():
    for wrong in (3, -1, 0.0, None):
        own = CostRegression()
        own.predict = lambda x, cost_matrix, wrong=wrong: wrong
        with pytest.raises(ValueError, match="returns a label from 0 to 2"):
            AdaBoostOLMpp(own, 2, classes=range(3)).decide([1.0])


def test_edges_of_weak_learners_that_are_right_or_wrong():
    """One, and 1 - K; nothing exceeds what they allow."""
    for shift, edge in [(0, 1.0), (1, -0.5)]:

        class Told:
            def predict(self, x, cost_matrix, shift=shift):
                return (int(x[0]) + shift) % 3

            def update(self, x, cost_matrix, label):
                pass

        booster = AdaBoostOLMpp(Told(), 2, random_state=0)
        with pytest.raises(NotFittedError):
            booster.edges_  # noqa: B018
        y = np.arange(30) % 3
        booster.partial_fit(y[:1, np.newaxis].astype(float), y[:1], classes=range(3))
        # With s = 0, all wrong labels cost the same: K / (K - 1) times the mean.
        np.testing.assert_allclose(booster.edges_[0], edge, atol=1e-12)
        booster.partial_fit(y[1:, np.newaxis].astype(float), y[1:])
        assert (booster.edges_ == 1.0).all() == (shift == 0)
        assert booster.excess(1.0) == pytest.approx(0, abs=1e-12) or shift == 1
    with pytest.raises(ValueError, match=r"an edge is in \[0, 1\]; got 1\.5"):
        booster.excess(1.5)


def test_a_booster_of_another_library_is_not_saved(tmp_path):
    booster = AdaBoostOLMpp(GaussianNB(), 2, random_state=0).fit(*easy(20))
    with pytest.raises(ValueError, match="cannot be written to a file"):
        booster.save(tmp_path / "booster")
    with pytest.raises(ValueError, match="cannot take further classes"):
        booster.add_classes([7])


def test_trees_are_saved_and_go_on(tmp_path):
    X, y = easy(400)
    booster = AdaBoostOLMpp(TREE, 4, random_state=0).fit(X[:200], y[:200])
    booster.save(tmp_path / "booster")
    loaded = load(tmp_path / "booster")
    expected = play(booster, X[200:], y[200:]).mistakes
    np.testing.assert_array_equal(play(loaded, X[200:], y[200:]).mistakes, expected)
    np.testing.assert_array_equal(loaded.predict_proba(X), booster.predict_proba(X))
    booster._run.state.weak.link[2, 0] = 0
    booster.save(tmp_path / "broken")
    with pytest.raises(ValueError, match=r"weak\.link\[0\] leads back"):
        load(tmp_path / "broken")


def test_weak_learners_are_told_the_label():
    with pytest.raises(ValueError, match="needs one bit only"):
        AdaBoostOLMpp(SOBA(), classes=[0, 1]).decide([1.0])
    with pytest.raises(ValueError, match="supported by AdaBoostOL, and there are 3 classes"):
        AdaBoostOL(Perceptron(), classes=[0, 1, 2]).decide([1.0])


def test_every_weak_learner_has_a_seed_of_its_own():
    """Whatever the random_state of the one they are copies of, and that of what they are in."""
    tree = HoeffdingTree(max_features=0.2, random_state=3)
    learner = BanditReduction(AdaBoostOLMpp(tree, 8), gamma=0.5, classes=[0, 1], random_state=0)
    learner._start(np.arange(2), 20)
    used = learner._run.state.alg.weak.used
    assert (used.sum(axis=1) == 4).all()
    assert len({tuple(row) for row in used.tolist()}) > 4


@pytest.mark.slow
def test_trees_learn_from_one_bit():
    """What no line can tell apart: whether a number is near zero."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4_000, 2))
    y = (np.abs(X[:, 0]) < 0.5).astype(int)
    learner = BanditReduction(AdaBoostOLMpp(TREE, 4), gamma=0.2, random_state=0)
    assert play(learner, X, y).mistakes[3_000:].mean() < 0.3
    assert learner.score(X, y) > 0.85
