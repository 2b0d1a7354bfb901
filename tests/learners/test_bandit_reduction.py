import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from scipy.stats import binomtest, chisquare
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier

from onebit import SOBA, Aioli, Decision, Folklore, Gaptron, Perceptron, load, play
from onebit.core import Kernels, ProbabilityLearner, lean_kernel
from onebit.core.templates import DRAW
from onebit.learners.bandit_reduction import BanditReduction
from onebit.numerics.exploration import greedy
from onebit.theory import best_linear, bounds
from paths import TOLERANCE, continuous, one_hot, repeated, unit
from problems import assert_finite, numpy_generator
from processes import run_python
from references import bandit_reduction, folklore


class FixedState(NamedTuple):
    logits: np.ndarray
    updates: np.ndarray
    rng: np.ndarray


@lean_kernel
def fixed_score(state, x, scores):
    for k in range(scores.size):
        scores[k] = state.logits[k]


@lean_kernel
def fixed_learn(state, x, scores, label, probability, offer, truth):
    state.updates[truth] += 1.0
    return True


FIXED = Kernels("fixed", fixed_score, greedy, fixed_learn)


class Fixed(ProbabilityLearner):
    """It always predicts the same, and counts what it is told."""

    feedback = "full"
    reference = cost = bound = "none"
    _parameter_constraints: ClassVar = {}

    def __init__(self, logits=(0.0, 0.0), *, classes=None, random_state=None):
        self.logits = logits
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features, n_classes, rng):
        return FIXED, FixedState(np.array(self.logits), np.zeros(n_classes), rng)


class Recording(ClassifierMixin, BaseEstimator):
    """A classifier that remembers what it was told, and says `said` of every x."""

    def __init__(self, said=(0.2, 0.3, 0.5)):
        self.said = said

    def partial_fit(self, X, y, classes=None):
        self.classes_ = np.array(classes)
        self.told_ = [*getattr(self, "told_", []), (X[0], y[0])]
        return self

    def predict_proba(self, X):
        return np.array([self.said])


LOGITS = (1.0, 0.0, -1.0, 0.5)


def easy(n, seed=0):
    """Three classes that a linear rule tells apart, with positive features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return np.eye(3)[y] + rng.random((n, 3)) / 2, np.array(["ant", "bee", "cat"])[y]


@pytest.mark.parametrize(
    ("K", "stream", "storage"),
    [
        (2, continuous, np.asarray),
        (3, one_hot, repeated),
        (9, unit(continuous), sp.csr_array),
    ],
)
def test_walks_the_path_of_the_reference(K, stream, storage):
    """The reference is told whether a round explored: where the next draw says it did."""
    X, y = stream(K)
    gamma, stored = 0.5, storage(X)
    reference = bandit_reduction.BanditReduction(folklore.Folklore(X.shape[1], K, B=3.0), gamma, K)
    learner = BanditReduction(Folklore(B=3.0), gamma, classes=range(K), random_state=K)
    for t, truth in enumerate(y):
        row = stored[[t]]
        p = reference.policy(X[t])
        decision = learner.decide(row if sp.issparse(row) else row[0])
        np.testing.assert_allclose(learner._run.p, p, rtol=0, atol=TOLERANCE)
        if t % 50 == 0:
            np.testing.assert_allclose(learner.policy(row)[0], p, rtol=0, atol=TOLERANCE)
        label = decision.label
        assert decision.probability == pytest.approx(p[label], abs=TOLERANCE)
        coin = numpy_generator(learner._run.state.rng).random()
        learner.learn(decision, correct=label == truth)
        reference.learn(X[t], label, coin < gamma / K / p[label], label == truth)
    assert reference.updates > len(y) * gamma / K / 2
    expected = [reference.alg.probabilities(x) for x in X[:200]]
    np.testing.assert_allclose(learner.predict_proba(X[:200]), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("gamma", [0.1, 0.7, 1.0])
def test_label_and_update_are_distributed_as_in_the_reference(gamma):
    """A hundred thousand rounds at one state, against the probabilities of its two draws."""
    K, y, n = 4, 2, 100_000
    learner = BanditReduction(Fixed(LOGITS), gamma, classes=range(K), random_state=0)
    x = learner.decide([1.0]).x
    run = learner._run
    decide, learn = run.kernels.decide(run.state), run.kernels.learn(run.state)
    labels, taught = np.empty(n, dtype=int), np.empty(n, dtype=bool)
    for i in range(n):
        labels[i], p, _ = decide(run.packed, x, run.scores, run.default_offer, run.p, DRAW)
        right = int(labels[i] == y)
        taught[i] = learn(run.packed, x, run.scores, labels[i], p, run.default_offer, right)
    np.testing.assert_array_equal(learner.learner_._run.state.updates, [0, 0, taught.sum(), 0])
    assert (labels[taught] == y).all()
    expected = (1 - gamma) * softmax(LOGITS) + gamma / K
    np.testing.assert_allclose(learner.policy([[1.0]])[0], expected, rtol=1e-14)
    counts = np.append(np.bincount(labels[~taught], minlength=K), taught.sum())
    p = np.append(expected - gamma / K * (np.arange(K) == y), gamma / K)
    possible = p > 1e-12
    assert (counts[~possible] == 0).all()
    assert chisquare(counts[possible], n * p[possible]).pvalue > 1e-6


@pytest.mark.parametrize("n", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_runs_are_distributed_as_those_of_the_reference(n):
    """After eight rounds, what it would say of an x, in n runs of each."""
    X, y = unit(continuous)(3)
    X, y = X[:8], y[:8]
    x = np.ones((1, X.shape[1])) / math.sqrt(X.shape[1])
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for seed in range(n):
        learner = BanditReduction(Folklore(B=5.0), 0.8, classes=range(3), random_state=seed)
        learner.fit(X, y)
        ours.append(learner.predict_proba(x)[0])
        reference = bandit_reduction.BanditReduction(folklore.Folklore(5, 3, B=5.0), 0.8, 3)
        for x_t, y_t in zip(X, y, strict=True):
            reference.play(x_t, y_t, rng)
        theirs.append(reference.alg.probabilities(x[0]))
    ours, theirs = np.array(ours), np.array(theirs)
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / n)
    assert (error > 1e-3).all()
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0])
def test_learns_only_from_exploration(gamma):
    """A model that is always right is told of gamma / K of its rounds."""
    n, K = 20_000, 4
    learner = BanditReduction(Fixed((50.0, 0.0, 0.0, 0.0)), gamma, classes=range(K), random_state=0)
    history = play(learner, np.ones((n, 1)), np.zeros(n, dtype=int))
    updates = learner.learner_._run.state.updates
    assert history.n_updated == updates[0] == updates.sum()
    if gamma in (0.0, 1.0):
        assert history.n_updated == (0 if gamma == 0.0 else n - history.n_mistakes)
    assert binomtest(int(updates[0]), n, gamma / K).pvalue > 1e-6


@pytest.mark.parametrize("q", [0.9, 0.2, 0.1, 0.02])
def test_decisions_from_a_log_teach_with_the_same_chance(q):
    """As long as the log's policy chose every label with probability gamma / K = 0.1."""
    n = 5_000
    learner = BanditReduction(Fixed(LOGITS), 0.4, classes=range(4), random_state=0)
    learner.decide([1.0])
    for _ in range(n):
        learner.learn(Decision([1.0], 1, q), correct=True)
        learner.learn(Decision([1.0], 1, q), correct=False)
    updates = int(learner.learner_._run.state.updates[1])
    assert binomtest(updates, n, min(1.0, 0.1 / q)).pvalue > 1e-6


def test_theory_gamma():
    X = np.eye(6)[:, :5]
    learner = BanditReduction(Folklore(B=3, R=2), horizon=10**6).fit(X, [0, 1, 2, 0, 1, 2])
    regret = bounds.folklore(10**6, 5, 3, 3.0, 2.0)
    assert learner._run.state.gamma == math.sqrt(3 * regret / 10**6)
    learner = BanditReduction(Aioli(regularization=2.0), horizon=10**6)
    learner._start(np.arange(2), 5)
    regret = bounds.aioli(10**6, 5, regularization=2.0)
    assert learner._run.state.gamma == math.sqrt(2 * regret / 10**6)
    assert BanditReduction(horizon=10).fit(X, [0, 1, 2, 0, 1, 2])._run.state.gamma == 1.0


@pytest.mark.parametrize(
    "inside", [Perceptron(), Folklore(curvature="paper"), SGDClassifier(), GaussianNB()]
)
def test_theory_gamma_needs_a_bound(inside):
    learner = BanditReduction(inside, classes=[0, 1])
    with pytest.raises(ValueError, match=r"give a number in \[0, 1\] as gamma"):
        learner.decide([1.0])
    assert not hasattr(learner, "classes_")


def test_mistakes_stay_below_theorem_9():
    rng = np.random.default_rng(0)
    T, d, K, B = 20_000, 2, 3, 5.0
    X = rng.normal(size=(T, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.argmax(X @ rng.normal(size=(d, K)), axis=1)
    loss = best_linear(X, y, radius=B, norm="rows").loss
    excess = 2 * math.sqrt(K * T * bounds.folklore(T, d, K, B))
    assert loss + excess < (1 - 1 / K) * T
    mistakes = [
        play(BanditReduction(Folklore(B), horizon=T, random_state=seed), X, y).n_mistakes
        for seed in range(3)
    ]
    assert max(mistakes) < loss + excess


def test_refuses_learners_of_one_bit():
    with pytest.raises(ValueError, match="BanditReduction is for learners that need the label"):
        BanditReduction(SOBA(), 0.1, classes=[0, 1]).decide([1.0])
    with pytest.raises(ValueError, match="'B' parameter of Folklore"):
        BanditReduction(Folklore(B=-1), 0.1, classes=[0, 1]).decide([1.0])
    with pytest.raises(ValueError, match="binary"):
        BanditReduction(Aioli(), 0.1, classes=[0, 1, 2]).decide([1.0])


def test_parameters_are_nested():
    inside = Folklore(B=1.0)
    learner = BanditReduction(inside, 0.5, classes=range(3), random_state=0)
    assert learner.get_params()["learner__B"] == 1.0
    learner.set_params(learner__B=2.0)
    assert clone(learner).get_params()["learner__B"] == 2.0
    X, y = continuous(3)
    learner.fit(X, y)
    assert not hasattr(inside, "classes_")
    assert learner.learner_.B == 2.0
    same = BanditReduction(Folklore(B=2.0), 0.5, classes=range(3), random_state=0).fit(X, y)
    np.testing.assert_array_equal(learner.predict_proba(X), same.predict_proba(X))


def test_learner_inside_is_seen_as_it_is():
    X, y = easy(400)
    learner = BanditReduction(Folklore(B=10.0), 0.5, random_state=0)
    assert not hasattr(learner, "learner_")
    learner.fit(X, y)
    inside = learner.learner_
    assert isinstance(inside, Folklore)
    np.testing.assert_array_equal(inside.predict(X), learner.predict(X))
    learner.partial_fit(X, y)
    np.testing.assert_array_equal(inside.predict_proba(X), learner.predict_proba(X))


def test_one_seed_for_both():
    """What is random in the learner inside follows the seed of the reduction, unless it has one."""
    X, y = easy(300)
    unseeded, seeded = MLPClassifier((3,)), MLPClassifier((3,), random_state=1)
    p = [
        BanditReduction(inside, 0.5, random_state=seed).fit(X, y).predict_proba(X[:5])
        for inside, seed in [(unseeded, 0), (unseeded, 0), (seeded, 0), (seeded, 0)]
    ]
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_array_equal(p[2], p[3])
    assert not np.array_equal(p[0], p[2])
    assert unseeded.random_state is None


# Files and copies


@pytest.mark.parametrize(
    "inside",
    [
        None,
        Folklore(B=7.0, curvature="paper"),
        pytest.param(Aioli(B=7.0), marks=pytest.mark.slow),
    ],
)
def test_saved_learner_goes_on(inside, tmp_path):
    K = 2 if isinstance(inside, Aioli) else 3
    X, y = continuous(K)
    learner = BanditReduction(inside, 0.5, random_state=0).fit(X, y)
    if inside is not None:
        learner.set_params(learner__B=1.0)  # of no matter to what has started
    learner.save(tmp_path / "learner")
    loaded = load(tmp_path / "learner")
    assert type(loaded.learner) is type(inside)
    assert loaded.learner is None or loaded.learner.B == 7.0
    np.testing.assert_array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    np.testing.assert_array_equal(play(loaded, X, y).mistakes, play(learner, X, y).mistakes)
    np.testing.assert_array_equal(loaded.predict_proba(X), learner.predict_proba(X))


def test_models_of_other_libraries_are_not_saved(tmp_path):
    learner = BanditReduction(SGDClassifier(), 0.5, random_state=0).fit(*easy(30))
    with pytest.raises(ValueError, match=r"learner=SGDClassifier\(\) .* cannot be written"):
        learner.save(tmp_path / "learner")
    assert not list(tmp_path.iterdir())


def test_pickled_learner_goes_on_in_a_new_process(tmp_path):
    X, y = (part[:300] for part in continuous(3))
    learner = BanditReduction(Folklore(), 0.5, random_state=0).fit(X, y)
    (tmp_path / "learner").write_bytes(pickle.dumps((learner, X, y)))
    script = (
        "import pickle, sys, onebit\n"
        "learner, X, y = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(onebit.play(learner, X, y).n_mistakes)"
    )
    output = run_python(script, tmp_path / "learner", check=True).stdout
    assert int(output) == play(learner, X, y).n_mistakes


def test_copies_of_models_are_independent():
    X, y = easy(300)
    learner = BanditReduction(SGDClassifier(loss="log_loss"), 0.9, random_state=0).fit(X, y)
    before = learner.predict_proba(X)
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        other.partial_fit(X, y)
        np.testing.assert_array_equal(learner.predict_proba(X), before)
        assert not np.array_equal(other.predict_proba(X), before)


def test_predicts_the_same_from_several_threads_while_it_learns():
    X, y = continuous(3)
    learner, twin = (BanditReduction(Folklore(), 0.9, random_state=0).fit(X, y) for _ in range(2))
    expected = learner.predict_proba(X)
    with ThreadPoolExecutor(4) as threads:
        for p in threads.map(lambda _: learner.predict_proba(X), range(8)):
            np.testing.assert_array_equal(p, expected)
        looking = [threads.submit(learner.predict_proba, X) for _ in range(8)]
        for x, truth in zip(X, y, strict=True):
            learner.learn(learner.decide(x), truth=truth)
        for future in looking:
            future.result()
    twin.partial_fit(X, y)
    np.testing.assert_array_equal(learner.predict_proba(X), twin.predict_proba(X))


# Other learners


def test_learners_without_probabilities_choose_their_own_labels():
    X, y = continuous(3)
    learner = BanditReduction(Gaptron("logistic", "full"), 0.3, random_state=0).fit(X, y)
    expected = 0.7 * learner.learner_.policy(X) + 0.1
    assert np.unique(expected).size > 10
    np.testing.assert_allclose(learner.policy(X), expected, rtol=1e-14)
    assert not hasattr(learner, "predict_proba")


@pytest.mark.parametrize("K", [2, 3])
def test_classifiers_without_probabilities_choose_the_greedy_label(K):
    X, y = easy(300)
    y = np.where(y == "cat", "bee", y) if K == 2 else y
    learner = BanditReduction(SGDClassifier(), 0.3, random_state=0).fit(X, y)
    inside = learner.learner_
    assert inside.classes_.tolist() == ["ant", "bee", "cat"][:K]
    np.testing.assert_array_equal(learner.predict(X), inside.predict(X))
    np.testing.assert_allclose(learner.decision_function(X), inside.decision_function(X))
    expected = 0.3 / K + 0.7 * (inside.predict(X)[:, np.newaxis] == inside.classes_)
    np.testing.assert_allclose(learner.policy(X), expected, rtol=1e-14)
    assert not hasattr(learner, "predict_proba")


def test_model_is_told_of_right_labels_in_rounds_that_explored():
    X, y = easy(600)
    learner = BanditReduction(Recording(), 0.3, classes=["ant", "bee", "cat"], random_state=0)
    told = 0
    for x, truth in zip(X, y, strict=True):
        decision = learner.decide(sp.csr_array(x[np.newaxis]))
        p = softmax(np.log([0.2, 0.3, 0.5])) if told else np.ones(3) / 3
        np.testing.assert_allclose(learner._run.p, 0.7 * p + 0.1, rtol=1e-12)
        coin = numpy_generator(learner._run.state.rng).random()
        learner.learn(decision, correct=decision.label == truth)
        if decision.label == truth and coin < 0.1 / decision.probability:
            told += 1
            x_told, y_told = learner.learner_.told_[-1]
            np.testing.assert_array_equal(x_told, x)
            assert y_told == truth
        assert len(getattr(learner.learner_, "told_", [])) == told
    assert told > 30
    assert learner.learner_.classes_.tolist() == ["ant", "bee", "cat"]


@pytest.mark.parametrize("said", [(np.nan, 0.5, 0.5), (0.0, 0.0, 0.0), (np.inf, 1.0, 0.0)])
def test_what_is_no_distribution_counts_as_knowing_nothing(said):
    X, y = easy(100)
    learner = BanditReduction(Recording(said), 0.3, random_state=0).fit(X, y)
    assert learner.learner_.told_
    np.testing.assert_allclose(learner.policy(X), 1 / 3)


@pytest.mark.parametrize(
    "inside",
    [
        Folklore(B=20.0),
        SGDClassifier(loss="log_loss"),
        SGDClassifier(),
        MultinomialNB(),
        pytest.param(GaussianNB(), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_learns_around_any_classifier(inside):
    """Chance is wrong in two of three rounds; exploring alone is wrong in two of fifteen."""
    X, y = easy(2_000)
    learner = BanditReduction(inside, 0.2, random_state=0)
    history = play(learner, sp.csr_array(X), y)
    assert history.mistakes[-1_000:].mean() < 0.5
    assert learner.score(*easy(300, seed=1)) > 0.9


@pytest.mark.parametrize("inside", [Folklore(), MultinomialNB()], ids=["folklore", "naive_bayes"])
@pytest.mark.parametrize("gamma", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_extreme_values_stay_finite(inside, gamma, scale):
    X, y = easy(500)
    learner = BanditReduction(inside, gamma, random_state=0).fit(scale * X, y)
    p = learner.policy(scale * X)
    assert (p >= gamma / 3 * (1 - 1e-12)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert_finite(learner, scale * X)
