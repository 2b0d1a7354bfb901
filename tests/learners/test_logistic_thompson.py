"""A logistic model for each label: several labels may be right, or none."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from onebit import NONE_OF_THESE, Decision, LogisticThompson, load
from onebit.evaluation import Log, estimate
from onebit.evaluation.models import OfLearner, model_for
from paths import assert_same_path, one_hot
from problems import assert_finite
from references.logistic_thompson import LogisticThompson as Reference
from test_softmax_thompson import all_views, columns, graded_views, walk


@all_views
def test_it_walks_the_path_of_the_reference(view, covariance, K, storage):
    learner = LogisticThompson(view, covariance, random_state=K)
    found, slow = walk(learner, Reference, K, storage)
    np.testing.assert_allclose(found.W.T, slow.W, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.level, [slow.b, slow.V], rtol=1e-8, atol=1e-9)


@graded_views
def test_it_walks_the_path_of_the_reference_with_rewards(view, covariance, K, storage):
    learner = LogisticThompson(view, covariance, random_state=K)
    found, slow = walk(learner, Reference, K, storage, is_graded=True)
    np.testing.assert_allclose(found.W.T, slow.W, rtol=1e-8, atol=1e-9)


def test_it_walks_the_path_of_the_reference_through_exact_ties():
    X, y = one_hot(4)
    slow = Reference(X.shape[1], 4, "features", False)
    learner = LogisticThompson("features", "diagonal", random_state=0)
    assert_same_path(learner, slow, X, y, sp.csr_array, quadrature=1e-6)


def test_a_bit_says_nothing_of_other_labels_but_by_the_level():
    X, _ = columns(3)
    levels, probabilities = [], []
    for seed in range(8):
        learner, rng = LogisticThompson(classes=range(3)), np.random.default_rng(seed)
        for t, x in enumerate(X):
            learner.learn(Decision(x, t % 2, 1.0), correct=bool(rng.random() < 0.2))
        posterior = learner._run.state.model.posterior
        assert posterior.W[:, :2].all()
        assert not posterior.W[:, 2].any()
        levels.append(expit(posterior.level[0]))
        probabilities.append(learner.right_proba(X)[:, 2])
    assert np.mean(levels) == pytest.approx(0.2, abs=0.05)
    assert np.mean(probabilities, axis=0) == pytest.approx(0.2, abs=0.1)


def test_several_labels_may_be_right_or_none():
    rng = np.random.default_rng(0)
    learner = LogisticThompson(classes=["a", "b", "c"], random_state=0)
    for t in range(3_000):
        x = rng.normal(size=2)
        right = {"a": x[0] > 0, "b": x[0] > 0, "c": False}
        label = "abc"[t % 3]
        learner.learn(Decision(x, label, 1.0), correct=bool(right[label]))
    both, none = learner.right_proba([[1.5, 0.0], [-1.5, 0.0]])
    assert both[:2].min() > 0.9
    assert both[2] < 0.05
    assert none.max() < 0.1
    assert not hasattr(learner, "predict_proba")
    decision = learner.decide([1.5, 0.0], among=["a"])
    assert decision.confidence == pytest.approx(both[0])


def test_confidence_is_the_share_of_right_labels():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(4, 6))
    learner = LogisticThompson(classes=range(6), random_state=1)
    claimed, right = [], []
    for x in rng.normal(size=(2_000, 4)):
        decision = learner.decide(x)
        claimed.append(decision.confidence)
        right.append(bool(rng.random() < expit(x @ W[:, decision.label] - 2.5)))
        learner.learn(decision, correct=right[-1])
    assert np.mean(claimed) == pytest.approx(np.mean(right), abs=0.04)


def test_none_of_these_teaches_that_each_label_is_wrong():
    X, _ = columns(3)
    learner, slow = LogisticThompson(classes=range(3)), Reference(3, 3, "line", True)
    for x in X[:50]:
        learner.learn(Decision(x, 1, 1.0), truth=NONE_OF_THESE)
        slow.learn(x, 1, 1.0, None)
    np.testing.assert_allclose(learner._run.state.model.posterior.W.T, slow.W, rtol=1e-8, atol=1e-9)
    assert learner.right_proba(X).max() < 0.1


def test_a_label_that_is_told_is_right():
    X, _ = columns(3)
    told, bit = LogisticThompson(classes=range(3)), LogisticThompson(classes=range(3))
    for x in X[:50]:
        told.learn(Decision(x, 0, 0.5), truth=2)
        bit.learn(Decision(x, 2, 1.0), correct=True)
    assert np.array_equal(told.scores(X), bit.scores(X))


def test_a_new_label_begins_at_the_level_of_all(tmp_path):
    X, _ = columns(3)
    learner = LogisticThompson(classes=range(3), random_state=0)
    for x in X:
        learner.learn(learner.decide(x), correct=False)
    learner.add_classes([3])
    learner.save(tmp_path / "model")
    for one in (learner, load(tmp_path / "model"), copy.deepcopy(learner)):
        assert one.right_proba(X)[:, 3].max() < 0.1
        assert not one.exclusive


@pytest.mark.parametrize("covariance", [pytest.param("full", marks=pytest.mark.slow), "diagonal"])
@pytest.mark.parametrize("alike", [True, False])
def test_a_new_label_begins_with_what_labels_share(covariance, alike):
    """The reference estimates the correlation of labels from all pairs, one by one."""
    rng = np.random.default_rng(0)
    learner = LogisticThompson("features", covariance, classes=range(3), random_state=0)
    for x in rng.normal(size=(300, 4)):
        decision = learner.decide(x)
        signal = x[0] if alike else x[decision.label]
        learner.learn(decision, correct=bool(signal > 0.0))
    W, n = learner._run.state.model.posterior.W.copy(), 3
    pairs = [W[:, j] @ W[:, k] for j in range(n) for k in range(n) if j != k]
    rho = max(0.0, np.mean(pairs) / np.mean([W[:, k] @ W[:, k] for k in range(n)]))
    correlations = np.full((n, n), rho) + (1.0 - rho) * np.eye(n)
    expected = W @ np.linalg.solve(correlations, np.full(n, rho))
    learner.add_classes([3, 4])
    after = learner._run.state.model.posterior.W
    for k in (3, 4):
        np.testing.assert_allclose(after[:, k], expected, atol=1e-12)
    assert np.array_equal(after[:, :3], W)
    assert (rho > 0.5) == alike


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_stays_finite(scale):
    rng = np.random.default_rng(0)
    X = scale * np.repeat(rng.normal(size=(10, 4)) * [1, 1, 1, 1e-6], 60, axis=0)
    y = rng.integers(3, size=len(X))
    assert_finite(LogisticThompson(random_state=0).fit(X, y), X)
    assert_finite(LogisticThompson(explore=0.0, a=1e-6).fit(X, y), X)


def test_it_is_a_model_of_a_log_in_which_several_labels_may_be_right():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(300, 3)), rng.integers(3, size=300)
    log = Log(labels, np.full(300, 1 / 3), X[np.arange(300), labels] > -1.0, x=X, classes=range(3))
    form = ("features", "diagonal")  # whose replay is compiled anyway
    learner = LogisticThompson(*form, classes=range(3), random_state=0).fit(X[:50], labels[:50])
    model, same = model_for(None, learner, log), OfLearner(learner, log.classes)
    for one in (model, same):
        one.learn(log[:200])
        assert one.predict(log[200:]).sum(axis=1).mean() > 1.5
    np.testing.assert_array_equal(model.predict(log), same.learner.right_proba(X))
    assert estimate(log, learner, "dr").low < np.mean(X > -1.0)


def test_where_clicks_are_rare_a_label_of_which_little_is_known_is_drawn_more_often():
    """All labels have the same mean log-odds, which are low, and the last one was never tried."""
    learner, x = LogisticThompson(classes=range(3), random_state=0), np.ones(2)
    for _ in range(400):
        for label in (0, 1):
            learner.learn(Decision(x, label, 1.0), correct=False)
    posterior = learner._run.state.model.posterior
    posterior.W[:] = 0.0
    right = learner.right_proba([x])[0]
    assert right[0] == pytest.approx(right[1], rel=1e-3)
    assert right[0] < right[2] < 0.5
    assert learner.policy([x])[0].argmax() == learner.predict([x])[0] == 2


def test_longer_examples_are_surer_ones():
    rng = np.random.default_rng(0)
    learner = LogisticThompson(classes=range(3), random_state=0)
    for x in rng.normal(size=(300, 2)):
        learner.learn(Decision(x, 0, 1.0), correct=bool(x[0] > 0.0))
    near, far = learner.decision_function([[0.5, 0.0], [2.0, 0.0]])[:, 0]
    assert far > 2.0 * near > 0.0
