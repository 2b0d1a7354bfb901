"""A mixture of learners, and of a member in plain Python."""

from typing import Annotated, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import (
    SOBA,
    BanditReduction,
    Folklore,
    Mixture,
    OneBitClassifier,
    SoftmaxThompson,
    load,
    play,
)
from onebit.checks import check_learner
from onebit.core import Cost, ProbabilityLearner
from onebit.core.engine import PythonKernels
from onebit.core.example import dense
from onebit.core.state import Field, Generator
from onebit.numerics.exploration import greedy
from onebit.theory import bounds
from paths import assert_same_path, grades
from references.mixture import Mixture as Reference
from references.softmax_thompson import SoftmaxThompson as Model


class Table(NamedTuple):
    """For each value of the first feature, the probability of each label."""

    belief: Annotated[np.ndarray, Field("n_values", "classes", least=0.0, most=1.0)]
    rng: Generator


def score(state, x, scores):
    scores[:] = np.log(state.belief[int(dense(x)[0])])


def learn(state, x, scores, label, probability, offer, correct):
    p = state.belief[int(dense(x)[0])]
    p *= np.where((np.arange(p.size) == label) == bool(correct), 0.95, 0.05)
    p[:] = np.maximum(p / p.sum(), 1e-9)
    return True


KERNELS = PythonKernels("table", score, greedy.py_func, learn)


class Remembers(ProbabilityLearner):
    """A member of a user's own: it remembers what was right for each value of a column."""

    reference, cost, bound = "nobody", Cost("K"), bounds.MIXTURE

    def __init__(self, n_values=50, *, classes=None, random_state=None):
        self.n_values = n_values
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features, n_classes, rng):
        return KERNELS, Table(np.full((self.n_values, n_classes), 1.0 / n_classes), rng)


def visitors(n=600, K=4, seed=0):
    """Visitors who come back, each with a label of their own; the number of one means nothing."""
    rng = np.random.default_rng(seed)
    who = rng.integers(50, size=n)
    return np.c_[who, rng.normal(size=(n, 2))], rng.integers(K, size=50)[who]


def members(**parameters):
    return [
        ("line", SoftmaxThompson("features", "diagonal", **parameters)),
        ("wide", SoftmaxThompson("features", "diagonal", explore=0.5, a=0.1)),
    ]


@pytest.mark.parametrize("is_graded", [False, True], ids=["bits", "rewards"])
@pytest.mark.parametrize(("K", "storage"), [(2, sp.csr_array), (3, np.asarray)])
def test_it_walks_the_path_of_the_reference(K, storage, is_graded):
    rng = np.random.default_rng(K)
    X = rng.normal(size=(150, 3)) * (rng.random((150, 3)) < 0.7)
    y = np.argmax(X @ rng.normal(size=(3, K)), axis=1)
    models = [Model(3, K, "features", False), Model(3, K, "features", False, 0.5, 0.1)]
    for model in models:
        model.scores = lambda model=model: model.posterior.s
    slow = Reference(models, 0.01)
    learner = Mixture(members(), share=0.01, random_state=0)
    rewards = grades(y) if is_graded else None
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6, rewards=rewards)
    found = [member.weight for member in learner.members_]
    np.testing.assert_allclose(found, slow.weights, rtol=1e-6)
    for member, model in zip(learner.members_, models, strict=True):
        W = member.learner._run.state.model.posterior.W.T
        np.testing.assert_allclose(W, model.posterior.W, rtol=1e-6, atol=1e-8)


def test_a_member_of_ones_own_takes_over_where_it_knows_more(tmp_path):
    X, y = visitors()
    alone = play(SoftmaxThompson("features", "diagonal", random_state=0), X, y)
    learner = Mixture([*members(), ("mine", Remembers())], random_state=0)
    history = play(learner, X, y)
    assert history.n_mistakes < 0.6 * alone.n_mistakes
    *_, mine = learner.members_
    assert mine.name == "mine"
    assert mine.weight > 0.99
    assert [*history.weights] == ["line", "wide", "mine"]
    assert mine.learner.score(X, y) > 0.9
    learner.save(tmp_path / "learner")
    again = load(tmp_path / "learner")
    np.testing.assert_array_equal(again.policy(X[:20]), learner.policy(X[:20]))
    assert again.members_[2].weight == mine.weight


def test_a_member_of_ones_own_passes_all_checks():
    check_learner(Remembers())


def test_labels_come_and_go_in_all_members():
    X, y = visitors(200)
    X = np.abs(X)
    learner = Mixture([*members(), ("mine", Remembers())], random_state=0)
    play(learner, X, y)
    before = [member.weight for member in learner.members_]
    learner.add_classes([4])
    learner.retire_classes([0])
    assert [member.weight for member in learner.members_] == before
    p = learner.policy(X)
    assert p.shape == (200, 5)
    assert not p[:, 0].any()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert not learner.predict_proba(X)[:, 0].any()
    play(learner, X, np.where(y == 0, 4, y))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-4, 0.1]))
def test_it_foresees_bits_nearly_as_well_as_its_best_member(seed, share):
    """The bound of the notes, with bits that do not depend on anything."""
    rng, T = np.random.default_rng(seed), 40
    X, bits = rng.normal(size=(T, 2)), rng.random(T) < 0.6
    learner = Mixture([*members(), ("mine", Remembers())], share, classes=range(3))
    X[:, 0] = rng.integers(50, size=T)
    loss, losses = 0.0, np.zeros(3)
    for x, bit in zip(X, bits.tolist(), strict=True):
        decision = learner.decide(x)
        foreseen = [decision.confidence]
        k = int(decision.label)
        foreseen += [one.learner.predict_proba(x[np.newaxis])[0, k] for one in learner.members_]
        q, *qs = np.clip(foreseen, 0.001, 0.999)
        loss -= np.log(q if bit else 1 - q)
        losses -= np.log(np.where(bit, qs, 1 - np.array(qs)))
        learner.learn(decision, correct=bit)
    assert loss <= losses.min() + np.log(3) - T * np.log(1 - share + share / 3) + 0.01 * T


def test_labels_that_are_told_reach_all_members():
    X, y = visitors(150)
    learner = Mixture([*members(), ("mine", Remembers())], classes=range(4), random_state=0)
    learner.teach(X, y)
    assert learner.score(X, y) > 0.8
    assert learner.members_[2].weight > 0.9


def test_the_flagship_and_a_reduction_can_be_members():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    learner = Mixture(
        [("ours", OneBitClassifier(views="line")), ("theirs", BanditReduction(Folklore(), 0.5))],
        random_state=0,
    )
    play(learner, X, rng.integers(3, size=60))
    ours, theirs = learner.members_
    assert ours.weight + theirs.weight == pytest.approx(1.0)
    assert ours.learner.rounds_ == 60


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "at least one"),
        ([SoftmaxThompson()], "pair"),
        ([("a b", SoftmaxThompson())], "identifier"),
        ([("a", SOBA())], "no probability model"),
        ([("a", Folklore())], "BanditReduction"),
        ([("a", SoftmaxThompson()), ("a", SoftmaxThompson())], "differ"),
    ],
)
def test_what_cannot_be_a_member_is_refused(members, message):
    with pytest.raises(ValueError, match=message):
        Mixture(members, classes=range(3)).decide([1.0, 2.0])
