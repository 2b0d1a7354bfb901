"""OneBitClassifier where several labels may be right, or none."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import NONE_OF_THESE, Decision, LogisticThompson, OneBitClassifier, load, play
from paths import assert_same_path, grades
from references.independent_mixture import IndependentMixture
from test_softmax_thompson import columns

pytestmark = pytest.mark.xdist_group("one_bit_classifier")


@pytest.mark.parametrize(
    ("views", "K", "storage"),
    [
        ("products", 3, np.asarray),
        pytest.param("products", 2, sp.csr_array, marks=pytest.mark.slow),
        pytest.param("cells", 4, sp.csr_array, marks=pytest.mark.slow),
    ],
)
def test_it_walks_the_path_of_the_reference(views, K, storage):
    X, y = columns(K)
    full = {"line": True, "cells": False, "products": True}
    if views == "cells":
        del full["products"]
    slow = IndependentMixture(X.shape[1], K, full)
    learner = OneBitClassifier(exclusive=False, views=views, notice_changes=False, random_state=K)
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6)
    weights = [member.weight for member in learner.members_]
    np.testing.assert_allclose(weights, slow.trust, rtol=1e-6)
    right = [slow.right(x) for x in X[:5]]
    np.testing.assert_allclose(learner.right_proba(X[:5]), right, rtol=1e-6)


@pytest.mark.parametrize(
    "views", [pytest.param(views, marks=pytest.mark.slow) for views in ("cells", "products")]
)
def test_it_walks_the_path_of_the_reference_with_rewards(views):
    X, y = columns(3)
    full = {"line": True, "cells": False, "products": True}
    if views == "cells":
        del full["products"]
    slow = IndependentMixture(X.shape[1], 3, full)
    learner = OneBitClassifier(exclusive=False, views=views, notice_changes=False, random_state=0)
    assert_same_path(learner, slow, X, y, quadrature=1e-6, rewards=grades(y))
    weights = [member.weight for member in learner.members_]
    np.testing.assert_allclose(weights, slow.trust, rtol=1e-6)


def test_the_line_alone_is_logistic_thompson():
    X, y = columns(3)
    line = OneBitClassifier(exclusive=False, views="line", notice_changes=False, random_state=0)
    one = LogisticThompson(random_state=0)
    assert play(line, X, y).mistakes.tolist() == play(one, X, y).mistakes.tolist()
    assert np.array_equal(line.right_proba(X), one.right_proba(X))


def test_what_is_learned_of_none_of_these_depends_on_the_model():
    X, _ = columns(3)
    for exclusive in (True, False):
        learner = OneBitClassifier(exclusive=exclusive, classes=range(3), random_state=0)
        learner.decide(X[0])
        before = learner.right_proba(X)
        for x in X[:60]:
            learner.learn(Decision(x, 1, 1.0), truth=NONE_OF_THESE)
        if exclusive:
            assert np.array_equal(learner.right_proba(X), before)
        else:
            assert learner.right_proba(X).max() < 0.1
            assert sum(member.weight for member in learner.members_) == pytest.approx(1.0)


def test_a_file_keeps_the_model(tmp_path):
    X, y = columns(3)
    learner = OneBitClassifier(exclusive=False, random_state=0).fit(X, y)
    learner.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert not again.exclusive
    assert not hasattr(again, "predict_proba")
    assert np.array_equal(again.right_proba(X), learner.right_proba(X))
    decision = again.decide(X[0])
    label = list(again.classes_).index(decision.label)
    assert decision.confidence == pytest.approx(again.right_proba(X[:1])[0, label])


def test_a_described_label_begins_where_its_description_says():
    """The first labels are right for x near their descriptions, and so is the new one."""
    rng = np.random.default_rng(0)
    D = np.eye(6)
    learner = OneBitClassifier(
        exclusive=False, standardize=False, classes=range(5), random_state=0
    ).describe({k: D[k] for k in range(5)})
    for _ in range(600):
        x = D[rng.integers(6)] + 0.1 * rng.normal(size=6)
        decision = learner.decide(x)
        learner.learn(decision, correct=bool(x[decision.label] > 0.5))
    learner.add_classes({5: D[5]})
    assert learner.worth_[0] > 0.0
    right = learner.right_proba(D)[:, 5]
    assert right[5] > 0.5
    assert right[:5].max() < 0.3


def test_changes_are_noticed_by_the_probability_of_the_label_alone():
    """Those of all labels do not add up to one, and are not made to."""
    X, y = columns(3)
    learner = OneBitClassifier(exclusive=False, random_state=0).fit(X, y)
    right = learner.right_proba(X[:1])[0]
    for k, label in enumerate(learner.classes_.tolist()):
        said = copy.deepcopy(learner)
        said.learn(Decision(X[0], label, 1.0), correct=False)
        found = said._run.state.mixture.scratch.said
        assert found == pytest.approx([right[k], 1.0 - right[k]], rel=1e-9)
