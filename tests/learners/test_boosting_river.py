"""Trees of River as weak learners."""

import numpy as np
import pytest

from onebit import AdaBoostOLMpp, play
from test_boosting import easy

pytest.importorskip("river")

from river import naive_bayes, tree


@pytest.mark.parametrize(
    "learner", [tree.HoeffdingTreeClassifier(grace_period=20), naive_bayes.GaussianNB()], ids=str
)
def test_learns(learner):
    """A tree takes weights; naive Bayes, which takes none, learns from a share of the examples."""
    X, y = easy(600)
    booster = AdaBoostOLMpp(learner, 3, random_state=0)
    assert play(booster, X, np.array(["a", "b", "c"])[y]).mistakes[300:].mean() < 0.35
    assert booster.predict_proba(X[:5]).shape == (5, 3)
