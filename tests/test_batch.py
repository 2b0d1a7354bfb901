import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDClassifier
from sklearn.utils.validation import check_is_fitted

from onebit import Folklore, Newtron, OneBitClassifier, Perceptron, play, streams
from onebit.batch import to_batch
from onebit.learners.bandit_reduction import BanditReduction
from onebit.theory import bounds
from paths import continuous, unit
from problems import logistic_labels, unit_rows

LEARNERS = [
    Folklore(B=5.0, random_state=3),
    Newtron(random_state=3),
    BanditReduction(Folklore(B=5.0), 0.5, random_state=3),
    BanditReduction(SGDClassifier(loss="log_loss"), 0.5, random_state=3),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=str)


def sample(n, K=3):
    X, y = unit(continuous)(K)
    return X[:n], np.array(["ant", "bee", "cat"])[y[:n]]


W = np.array([[3.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])


def logistic(T, seed):
    """Unit examples in all directions, and labels of a logistic model with weights W."""
    rng = np.random.default_rng(seed)
    X = unit_rows(rng, T, 2)
    return X, logistic_labels(rng, X @ W.T)


@every_learner
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_is_the_learner_at_a_random_time(learner, storage):
    X, y = sample(150)
    frozen = to_batch(learner, storage(X), y)
    assert not hasattr(learner, "classes_")
    (tau,) = frozen.times
    by_hand = clone(learner).set_params(classes=frozen.classes_)
    play(by_hand, storage(X[: tau - 1]), y[: tau - 1])
    np.testing.assert_array_equal(frozen.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(frozen.predict(X), by_hand.predict(X))


@every_learner
def test_is_the_mean_over_random_times(learner):
    X, y = sample(150)
    frozen = to_batch(learner, X, y, snapshots=4)
    assert len(set(frozen.times)) == 4
    assert frozen.times == sorted(frozen.times)
    p = []
    for tau in frozen.times:
        by_hand = clone(learner).set_params(classes=frozen.classes_)
        play(by_hand, X[: tau - 1], y[: tau - 1])
        p.append(by_hand.predict_proba(X))
    assert np.ptp(p, axis=0).max() > 0.01
    np.testing.assert_allclose(frozen.predict_proba(X), np.mean(p, axis=0), rtol=1e-14)
    greedy = frozen.classes_[np.argmax(np.mean(p, axis=0), axis=1)]
    np.testing.assert_array_equal(frozen.predict(X), greedy)


def test_first_time_is_before_any_round():
    X, y = sample(20)
    frozen = to_batch(Folklore(B=5.0), X, y, snapshots=20)
    assert frozen.times == list(range(1, 21))
    np.testing.assert_array_equal(frozen.learners[0].predict_proba(X), 1 / 3)
    assert not np.array_equal(frozen.learners[-1].predict_proba(X), np.full((20, 3), 1 / 3))


def test_times_are_uniform():
    X, y = sample(20)
    for snapshots in (1, 3):
        runs = [
            to_batch(Newtron(), X, y, snapshots, random_state=seed).times for seed in range(400)
        ]
        counts = np.bincount(np.concatenate(runs) - 1, minlength=20)
        assert chisquare(counts).pvalue > 1e-6
        assert counts.size == 20


def test_seed_decides():
    X, y = sample(100)
    learner = Folklore(random_state=1)
    assert to_batch(learner, X, y, 5).times == to_batch(learner, X, y, 5).times
    assert to_batch(learner, X, y, 5, random_state=2).times != to_batch(learner, X, y, 5).times
    assert to_batch(learner, X, y, 5, random_state=1).times == to_batch(learner, X, y, 5).times


def test_excess_risk_is_below_the_average_regret():
    """Over the model that drew the labels, it is the mean divergence from that model."""
    T, B = 1_000, 4.0
    X_new, _ = logistic(500, seed=1_000)
    truth = log_softmax(X_new @ W.T, axis=1)

    def excess(p):
        return np.mean(np.sum(np.exp(truth) * (truth - np.log(p)), axis=1))

    one, mean_of_all, of_mean = [], [], []
    for seed in range(20):
        X, y = logistic(T, seed)
        frozen = to_batch(Folklore(B), X, y, snapshots=5, random_state=seed)
        each = [excess(learner.predict_proba(X_new)) for learner in frozen.learners]
        one.append(each[seed % 5])
        mean_of_all.append(np.mean(each))
        of_mean.append(excess(frozen.predict_proba(X_new)))
    bound = bounds.folklore(T, 2, 3, B) / T
    assert (np.array(of_mean) <= mean_of_all).all()
    assert 0 < np.mean(of_mean) < np.mean(mean_of_all) < bound
    assert np.mean(one) < bound
    assert np.std(of_mean) < np.std(one)


def test_is_a_fitted_classifier():
    X, y = sample(300)
    frozen = to_batch(Folklore(B=5.0, random_state=0), X, y, snapshots=3)
    check_is_fitted(frozen)
    assert frozen.classes_.tolist() == ["ant", "bee", "cat"]
    assert frozen.n_features_in_ == X.shape[1]
    assert clone(frozen) is frozen
    assert 1 / 3 < frozen.score(X, y) <= 1
    with pytest.raises(TypeError, match="does not learn"):
        frozen.fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        frozen.predict(X[:, 1:])
    calibrated = CalibratedClassifierCV(FrozenEstimator(frozen)).fit(X, y)
    assert calibrated.predict_proba(X).shape == (300, 3)


def test_what_is_frozen_does_not_change():
    X, y = sample(100)
    frozen = to_batch(Newtron(random_state=0), X, y, snapshots=2)
    before = frozen.predict_proba(X)
    other = copy.deepcopy(frozen)
    for learner in other.learners:
        learner.partial_fit(X, y)
    np.testing.assert_array_equal(frozen.predict_proba(X), before)
    assert not np.array_equal(other.predict_proba(X), before)


def test_names_of_features_are_remembered():
    X, y = sample(50)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frozen = to_batch(Newtron(random_state=0), frame, y)
    with pytest.raises(ValueError, match="feature names"):
        frozen.predict(frame[list("edcba")])


@pytest.mark.parametrize("snapshots", [0, 51, 1.5])
def test_refuses_what_it_cannot_do(snapshots):
    X, y = sample(50)
    with pytest.raises(ValueError, match="from 1 to the number of rows, 50"):
        to_batch(Newtron(), X, y, snapshots)
    with pytest.raises(ValueError, match="has none"):
        to_batch(Perceptron(), X, y)
    with pytest.raises(ValueError, match="unknown label"):
        to_batch(Newtron(classes=["ant", "bee"]), X, y)


def test_to_batch_without_a_seed_takes_other_times():
    X, y = streams.synsep(500, seed=0)
    soft = OneBitClassifier(covariance="diagonal")
    np.random.seed(0)  # noqa: NPY002
    first = to_batch(soft, X, y, snapshots=3).times
    np.random.seed(0)  # noqa: NPY002
    assert to_batch(soft, X, y, snapshots=3).times != first
