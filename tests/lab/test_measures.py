"""What runs measure."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from onebit import AROW, Banditron, Folklore, Perceptron, play, streams
from onebit.lab.measures import (
    CrossValidated,
    HeldOut,
    OnBinaryRows,
    Online,
    Regret,
    WrongTold,
    candidates,
    grid_of,
    with_noise,
)
from onebit.theory import best_linear, online_log_loss


@pytest.fixture(scope="module")
def stream():
    return streams.synsep(600, seed=3)


def perceptron(seed=5):
    return Perceptron(classes=range(9), random_state=seed)


@pytest.mark.parametrize(("change", "since"), [("", 0), ("gradual", 300), ("A-B-A", 200)])
def test_mistakes_are_counted_from_a_change_on(stream, change, since):
    history = play(perceptron(), streams.repeated(*stream, epochs=2))
    found = Online(change=change)(perceptron(), *stream, 2)
    assert found["rounds"] == 1200 - since
    assert found["mistakes"] == history.mistakes[since:].sum()
    assert found["curve_errors"][-1] == found["error"]


def test_wrong_labels_are_told_and_right_ones_counted(stream):
    X, y = stream
    learner = perceptron()
    told = with_noise(learner, y, 0.3)
    assert 0.2 < np.mean(told != y) < 0.3  # one in nine of those drawn anew is right
    wrong = []
    for _ in range(2):
        for x, truth, label in zip(X, y, told, strict=True):
            decision = learner.decide(x.toarray().ravel())
            wrong.append(decision.label != truth)
            learner.learn(decision, truth=label)
    found = WrongTold(0.3)(perceptron(), X, y, 2)
    assert found["mistakes"] == sum(wrong)
    at = np.array(found["curve_rounds"])
    np.testing.assert_allclose(np.array(found["curve_errors"]) * at, np.cumsum(wrong)[at - 1])
    clean, online = WrongTold(0.0)(perceptron(), X, y, 2), Online()(perceptron(), X, y, 2)
    assert clean["curve_errors"] == online["curve_errors"]
    bandit = Banditron(0.2, classes=range(9), random_state=0)
    found = WrongTold(0.1)(bandit, X, y, 1)
    assert found["curve_explored"][-1] == found["explored"] > 50


@pytest.mark.parametrize("stored", [lambda X: X, lambda X: X.toarray()], ids=["sparse", "dense"])
def test_binary_rows_have_ones_where_features_are(stream, stored):
    X, y = stream
    weighted = X.multiply(np.random.default_rng(0).uniform(0.1, 3.0, size=X.shape)).tocsr()
    found = OnBinaryRows(Online())(perceptron(), stored(weighted), y, 2)
    assert found["mistakes"] == Online()(perceptron(), (X != 0).astype(float), y, 2)["mistakes"]
    assert found["mistakes"] != Online()(perceptron(), stored(weighted), y, 2)["mistakes"]


def test_cross_validation_chooses_on_one_split_and_tests_on_clean_folds(stream):
    X, y = stream
    learner = AROW(classes=range(9), random_state=1)
    told = with_noise(learner, y, 0.2)

    def n_wrong(r, train, test, by):
        fitted = play_over(clone(learner).set_params(r=r), X[train], told[train])
        return (fitted.predict(X[test]) != by[test]).sum()

    rs = (0.01, 100.0)
    best = min(rs, key=lambda r: n_wrong(r, slice(480), slice(480, 600), told))
    expected = [
        n_wrong(best, train, test, y) / test.size for train, test in KFold(4).split(np.arange(600))
    ]
    found = CrossValidated(grid_of(r=rs, gamma=(0.1,)), 0.2, folds=4)(learner, X, y, 2)
    assert json.loads(found["chosen"]) == {"r": best}
    assert found["fold_errors"] == expected
    assert found["error"] == pytest.approx(np.mean(expected))
    assert found["rounds"] == 600


def play_over(learner, X, y, epochs=2):
    play(learner, streams.repeated(X, y, epochs=epochs))
    return learner


def test_the_last_rows_are_held_out(stream):
    X, y = stream
    found = HeldOut(n_test=100, n_train=200)(perceptron(), X, y, 1)
    rows = np.random.default_rng(5).permutation(500)[:200]
    wrong = play_over(perceptron(), X[rows], y[rows], 1).predict(X[500:]) != y[500:]
    assert (found["mistakes"], found["rounds"]) == (wrong.sum(), 100)
    assert json.loads(found["chosen"]) == {}


def test_regret_is_over_the_best_weights_up_to_each_time():
    X, y = streams.unit_length(*streams.confidit_synthetic(60, seed=0))
    learner = Folklore(3.0, classes=range(5), random_state=0)
    found = Regret(3.0, (20, 60))(clone(learner), X, y, 1)
    suffered = np.cumsum(online_log_loss(learner, X, y))
    for t, regret in zip(found["times"], found["regret"], strict=True):
        best = best_linear(X[:t], y[:t], radius=3.0, norm="rows", classes=range(5))
        assert regret == pytest.approx(suffered[t - 1] - best.loss)


def test_candidates_are_of_the_parameters_that_a_learner_has():
    grid = {"gamma": (0.1, 0.2), "r": (1.0,)}
    assert candidates(Banditron(), grid) == [{"gamma": 0.1}, {"gamma": 0.2}]
    assert candidates(Perceptron(), grid) == [{}]
