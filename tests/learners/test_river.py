"""Classifiers of River inside of `BanditReduction`."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import play
from onebit.checks import check_learner
from onebit.learners.bandit_reduction import BanditReduction
from test_bandit_reduction import easy

pytest.importorskip("river")

from river import compose, linear_model, naive_bayes, optim, preprocessing


def softmax_regression():
    return linear_model.SoftmaxRegression(optim.SGD(1.0))


@pytest.mark.parametrize(
    "inside",
    [
        softmax_regression(),
        naive_bayes.GaussianNB(),
        compose.Pipeline(preprocessing.StandardScaler(), naive_bayes.GaussianNB()),
    ],
    ids=lambda inside: type(inside).__name__,
)
def test_learns(inside):
    """Chance is wrong in two of three rounds; exploring alone is wrong in two of fifteen."""
    X, y = easy(2_000)
    learner = BanditReduction(inside, 0.2, random_state=0)
    history = play(learner, sp.csr_array(X), y)
    assert history.mistakes[-1_000:].mean() < 0.35
    assert learner.score(*easy(300, seed=1)) > 0.9
    assert inside.predict_proba_one(dict(enumerate(X[0]))) == {}


def test_has_every_behaviour():
    check_learner(BanditReduction(softmax_regression(), 0.5))


def test_is_told_the_positions_of_the_labels():
    X, y = easy(300)
    learner = BanditReduction(softmax_regression(), 0.5, random_state=0).fit(X, y)
    p = [learner.learner_.predict_proba_one(dict(enumerate(x))) for x in X.tolist()]
    expected = [[one[k] for k in range(3)] for one in p]
    np.testing.assert_allclose(learner.predict_proba(X), expected, rtol=1e-12)


def test_binary_classifiers_learn_two_classes_only():
    X, y = easy(500)
    two = y != "cat"
    learner = BanditReduction(linear_model.LogisticRegression(), 0.5, random_state=0)
    learner.fit(X[two], y[two])
    assert learner.score(X[two], y[two]) > 0.9
    assert not learner.__sklearn_tags__().classifier_tags.multi_class
    with pytest.raises(ValueError, match="Only binary classification"):
        learner.fit(X, y)
    assert learner.classes_.tolist() == ["ant", "bee"]


def test_copies_are_independent():
    X, y = easy(300)
    learner = BanditReduction(softmax_regression(), 0.9, random_state=0).fit(X, y)
    before = learner.predict_proba(X)
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        other.partial_fit(X, y)
        np.testing.assert_array_equal(learner.predict_proba(X), before)
        assert not np.array_equal(other.predict_proba(X), before)


def test_is_not_saved(tmp_path):
    learner = BanditReduction(naive_bayes.GaussianNB(), 0.5, random_state=0).fit(*easy(30))
    with pytest.raises(ValueError, match="cannot be written to a file"):
        learner.save(tmp_path / "learner")
    assert not list(tmp_path.iterdir())
