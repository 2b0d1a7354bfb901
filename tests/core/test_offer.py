"""Labels on offer: decisions among some of the labels, and states that take more labels."""

import copy
import pickle

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone

from forms import FORMS, first_forms
from onebit import Decision, learners, play
from onebit.core import Kernels
from onebit.core.fingerprint import REPLACEMENTS, fingerprint
from onebit.core.offer import on_offer
from onebit.core.state import check_state, grown, sizes_of
from onebit.core.storage import arrays_of
from onebit.core.validation import positions_of
from onebit.learners import (
    SOBA,
    BanditEG,
    Banditron,
    Confidit,
    ExpConcaveReduction,
    FenchelYoung,
    Folklore,
    Gaptron,
    KernelConfidit,
    KernelSeparableBandit,
    Newtron,
    OneBitClassifier,
    Perceptron,
    SeparableBandit,
    banditron,
)
from onebit.numerics.exploration import gamma_greedy
from onebit.numerics.linear import linear_scores

BANDITS = [learner for learner in FORMS if learner.feedback == "bandit"]

LABELS = ["ash", "birch", "cedar", "elm", "fir"]


def stream(n, K=5, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X @ rng.normal(size=(d, K)), axis=1)


def new(learner, classes=LABELS, seed=3):
    return clone(learner).set_params(classes=classes, random_state=seed)


def states(learner):
    return {name: array.copy() for name, array in arrays_of(learner._run.state)}


def play_among(learner, X, y, offers):
    """Play rounds with labels on offer; return the decisions and the policies."""
    decisions, policies = [], []
    for x, truth, among in zip(X, y, offers, strict=True):
        policies.append(learner.policy(x[np.newaxis], among)[0] if learner._started else None)
        decision = learner.decide(x, among)
        learner.learn(decision, correct=decision.label == LABELS[truth])
        decisions.append(decision)
    return decisions, policies


@first_forms(BANDITS)
def test_every_bandit_learner_decides_among_labels(learner):
    X, y = stream(60)
    learner = new(learner)
    among = ["fir", "birch", "cedar"]
    play_among(learner, X, y, [LABELS if i % 2 else among for i in range(60)])

    on, off = [1, 2, 4], [0, 3]
    p = learner.policy(X, among)
    np.testing.assert_allclose(p[:, on].sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (p >= 0).all()
    assert (p[:, off] == 0).all()
    i = np.argmin(p.max(axis=1))  # the example whose label is least certain
    drawn = [learner.decide(X[i], among) for _ in range(2_000)]
    counts = np.array([sum(d.label == label for d in drawn) for label in LABELS])
    assert (counts[p[i] == 0] == 0).all()
    if np.count_nonzero(p[i]) > 1:
        assert chisquare(counts[p[i] > 0], 2_000 * p[i][p[i] > 0]).pvalue > 1e-6
    for decision in drawn[:50]:
        assert decision.probability == p[i][LABELS.index(decision.label)]
        assert decision.among == ("birch", "cedar", "fir")

    alone = learner.decide(X[0], ["elm"])
    assert (alone.label, alone.probability) == ("elm", 1.0)
    np.testing.assert_array_equal(learner.policy(X[:1], ["elm"]), [[0, 0, 0, 1, 0]])
    for decision, right in [(alone, False), (learner.decide(X[1], ["ash"]), True)]:
        learner.learn(decision, correct=right)

    pending = [learner.decide(x, among) for x in X]  # the feedback is late, and in another order
    for decision, truth in list(zip(pending, y, strict=True))[::-1]:
        learner.learn(decision, correct=decision.label == LABELS[truth])
    learner.learn(Decision(X[0], "ash", 0.5, ["elm", "ash"]), truth="birch")
    assert all(np.isfinite(array).all() for array in states(learner).values())


@first_forms(BANDITS)
def test_all_labels_on_offer_are_as_none_named(learner):
    """To the last bit; and in `play`, whose code has no offer."""
    X, y = stream(40)
    default, named, played = new(learner), new(learner), new(learner)
    named.decide(X[0], LABELS[::-1])
    for other in (default, played):
        other.decide(X[0])
    for x, truth in zip(X, y, strict=True):
        ours, theirs = default.decide(x), named.decide(x, LABELS)
        assert (ours.label, ours.probability) == (theirs.label, theirs.probability)
        default.learn(ours, correct=ours.label == LABELS[truth])
        named.learn(theirs, correct=theirs.label == LABELS[truth])
    play(played, X, [LABELS[truth] for truth in y])
    np.testing.assert_array_equal(default.policy(X), named.policy(X, LABELS))
    for name, array in states(default).items():
        np.testing.assert_array_equal(array, states(named)[name], err_msg=name)
        np.testing.assert_array_equal(array, states(played)[name], err_msg=name)


ON_THOSE_CLASSES_ONLY = [
    Banditron(0.3),
    SOBA(0.3),
    SOBA(0.3, covariance="full"),
    Newtron(0.3),
    Newtron(0.3, covariance="full"),
    Newtron(0.3, variant="soba2017"),
    Confidit(),
    Confidit(covariance="full"),
    KernelConfidit(),
    SeparableBandit(),
    SeparableBandit("repository"),
    KernelSeparableBandit(form="repository"),
    ExpConcaveReduction("ftal", gamma=0.3, eta=0.5, beta=0.1, epsilon=1.0),
    Gaptron("logistic", eta=0.1, gamma=0.3),
    Gaptron("hinge", eta=0.1, gamma=0.3),
    Gaptron("smooth_hinge", eta=0.1, gamma=0.3),
    FenchelYoung(eta=0.1, gamma=0.3),
]
"""Learners whose round with labels on offer is one of a problem with these labels alone."""


@first_forms(ON_THOSE_CLASSES_ONLY)
def test_a_label_never_on_offer_might_as_well_come_later(learner):
    """Five labels, of which four are on offer, go as four labels do; then the fifth is added."""
    X, y = stream(150, K=4)
    five, four = new(learner), new(learner, LABELS[:4])
    ours, our_policies = play_among(five, X, y, [LABELS[:4]] * len(y))
    theirs, their_policies = play_among(four, X, y, [None] * len(y))
    assert [d.label for d in ours] == [d.label for d in theirs]
    for p, q in zip(our_policies[1:], their_policies[1:], strict=True):
        np.testing.assert_allclose(p, np.append(q, 0.0), rtol=1e-9, atol=1e-12)

    first = new(learner)._start(five.classes_, X.shape[1]).state
    whole = copy.deepcopy(four)
    whole._resume(five.classes_, X.shape[1], four._run.kernels, grown(four._run.state, first))
    check_state(whole._run.state, sizes_of(X.shape[1], 5, whole.get_params()))
    for name, array in states(five).items():
        if name == "W.changes":  # it starts anew after as many as there are weights
            continue
        np.testing.assert_allclose(states(whole)[name], array, rtol=1e-8, atol=1e-11, err_msg=name)
    np.testing.assert_allclose(whole.scores(X), five.scores(X), rtol=1e-8, atol=1e-11)


def more_classes(learner, X, classes):
    """Return a copy of a learner that was trained with the first of `classes`, with all of them."""
    first = new(learner, classes)._start(np.array(classes), X.shape[1]).state
    whole = copy.deepcopy(learner)
    whole._resume(
        np.array(classes), X.shape[1], learner._run.kernels, grown(learner._run.state, first)
    )
    return whole


MIXED = {
    "AdaBoostOL",
    "Aggregating",
    "Aioli",
    "BanditReduction",  # around Folklore, or a classifier of another library
    "Folklore",
    "GaussianAggregating",
    "Obama",
    "OnlineBBM",
}
"""Learners whose arrays do not tell the classes apart, or that are for two classes."""

SHARED = {"AdaBoostOLMpp", "HoeffdingTree", "Mixture", "OneBitClassifier"}
"""Learners whose scores are logarithms of probabilities, of which a new class takes a part."""

LEVELLED = {"LogisticThompson"}
"""Learners in which a new class begins with the level of the scores of all."""


@first_forms()
def test_a_state_takes_more_classes_or_says_why_not(learner):
    few = LABELS[:4] if learner.__sklearn_tags__().classifier_tags.multi_class else LABELS[:2]
    X, y = stream(60, K=len(few))
    learner = new(learner, few)
    play(learner, X, np.array(few)[y])
    before = states(learner)
    if type(learner).__name__ in MIXED:
        with pytest.raises(ValueError, match="classes"):
            more_classes(learner, X, LABELS[: len(few) + 1])
        return
    whole = more_classes(learner, X, LABELS[: len(few) + 1])
    share = 1.0
    if isinstance(learner, BanditEG):  # all weights have their part of one mass
        share = whole._run.state.W.scale / learner._run.state.W.scale
    expected, found = share * learner.scores(X), whole.scores(X)
    if type(learner).__name__ in SHARED:
        greedy = expected.argmax(axis=1)
        same = found[:, : len(few)].argmax(axis=1) == greedy
        # Neighbours share out what a wrong label says of others: now among one label more.
        has_neighbours = any(one.name == "neighbours" for one in getattr(learner, "members_", ()))
        assert same.mean() >= (0.95 if has_neighbours else 1.0)
    elif not getattr(learner, "projection", False):  # which moves the scores of all classes
        np.testing.assert_allclose(found[:, : len(few)], expected, rtol=1e-9, atol=1e-12)
        if type(learner).__name__ not in LEVELLED:
            np.testing.assert_array_equal(found[:, len(few)], 0.0)
    if hasattr(learner, "coef_"):
        expected, found = share * learner.coef_, whole.coef_[: len(few)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    check_state(whole._run.state, sizes_of(X.shape[1], len(few) + 1, whole.get_params()))
    X, y = stream(60, K=len(few) + 1, seed=1)
    play(whole, X, np.array(LABELS)[y])
    assert all(np.isfinite(array).all() for array in states(whole).values())
    for name, array in states(learner).items():  # which shares nothing with the other one
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@pytest.mark.xdist_group("one_bit_classifier")
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_a_new_class_is_as_little_known_as_all_were_at_first(covariance):
    """By its policy: the deviation of its score, which has grown older for the others."""
    X, y = stream(500, K=4)
    form = {"covariance": covariance, "views": "line", "forgetting": 2.0, "a": 1.0}
    learner = new(OneBitClassifier(**form), LABELS[:4])
    play(learner, X, np.array(LABELS)[y])
    whole = more_classes(learner, X, LABELS)
    untrained = new(OneBitClassifier(**form))
    for other in (whole, untrained):
        other.decide(X[0])
    np.testing.assert_allclose(
        whole._run.state.line.scratch.v[4], untrained._run.state.line.scratch.v[4], rtol=1e-12
    )
    assert whole._run.state.line.scratch.v[4] > 1.5 * whole._run.state.line.scratch.v[:4].mean()


@pytest.mark.parametrize("learner", [Folklore(), learners.Aggregating()], ids=str)
def test_a_state_that_mixes_classes_refuses_more_by_name(learner):
    X, y = stream(10, K=3)
    learner = new(learner, LABELS[:3]).fit(X, np.array(LABELS)[y % 3])
    first = new(learner)._start(np.array(LABELS), X.shape[1]).state
    with pytest.raises(ValueError, match=r"A_inv\.base has an axis of contrast_weights|samples"):
        grown(learner._run.state, first)


@pytest.mark.xdist_group("one_bit_classifier")
def test_a_classifier_that_models_the_truth_learns_of_labels_not_on_offer():
    x = np.ones(3)
    learner = new(OneBitClassifier())
    before = learner.decide(x, ["ash", "elm"])
    learner.learn(before, correct=False)
    p = learner.predict_proba(x[np.newaxis])[0]
    rest = [LABELS.index(label) for label in LABELS if label != before.label]
    assert p[LABELS.index(before.label)] < 1.0 / len(LABELS)
    assert (p[rest] > 1.0 / len(LABELS)).all()  # on offer or not, one of them was right


@pytest.mark.xdist_group("folklore")
def test_a_full_information_learner_is_restricted_in_its_choice_only():
    X, y = stream(100)
    free, restricted = new(Perceptron()), new(Perceptron())
    for x, truth in zip(X, y, strict=True):
        free.learn(free.decide(x), truth=LABELS[truth])
        decision = restricted.decide(x, ["elm", "fir"])
        assert decision.label in ("elm", "fir")
        restricted.learn(decision, truth=LABELS[truth])
    np.testing.assert_array_equal(free.coef_, restricted.coef_)
    soft = new(Folklore()).fit(X, np.array(LABELS)[y])
    soft.learn(soft.decide(X[0], ["ash", "elm"]), truth=[0.2] * 5)


def test_code_for_offers_is_cached_and_never_stale(monkeypatch):
    kernels = Kernels("offers", linear_scores, gamma_greedy, banditron.learn)
    fresh = kernels.function("decide")
    before = fingerprint(fresh.py_func, {})
    monkeypatch.setitem(REPLACEMENTS, on_offer, lambda offer, n: lambda offer, n: range(n))
    changed = kernels.function("decide")
    assert fingerprint(changed.py_func, {}) != before


def test_a_decision_keeps_its_labels_on_offer():
    learner = new(Banditron())
    decision = learner.decide(np.ones(3), np.array(["elm", "ash"]))
    assert decision.among == ("ash", "elm")
    assert repr(decision).endswith(", among=('ash', 'elm'))")
    assert "among" not in repr(learner.decide(np.ones(3)))
    copied = pickle.loads(pickle.dumps(decision))
    assert copied.among == ("ash", "elm")
    learner.learn(copied, correct=True)


@pytest.mark.parametrize(
    ("among", "words"),
    [
        ([], "among is empty"),
        (["ash", "oak"], "unknown label 'oak': the classes are 'ash', .*, in among"),
        (["ash", ["elm"]], "unknown label"),
        (["ash", "elm", "ash"], "among has the label 'ash' twice"),
        ("ash", "among is a list of labels; got the text 'ash'"),
        (3, "among is a list of labels; got 3"),
    ],
)
def test_what_is_no_offer_is_refused_and_starts_no_learner(among, words):
    learner, x = new(Banditron()), np.ones(3)
    for refused in (
        lambda: learner.decide(x, among),
        lambda: learner.learn(Decision(x, "ash", 0.5, among), correct=True),
    ):
        with pytest.raises(ValueError, match=words):
            refused()
        assert not hasattr(learner, "classes_")
    learner.decide(x)
    with pytest.raises(ValueError, match=words):
        learner.policy([x], among)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
@pytest.mark.parametrize("labels", [[0, 1, 2], [10, 20, 30], ["a", "b", "c"], [0.0, 1.0, 5.0]])
def test_classes_may_be_in_any_order(labels, order):
    classes = np.array(labels)[order]
    y = classes[[2, 0, 1, 1, 0]]
    np.testing.assert_array_equal(positions_of(classes, y), [2, 0, 1, 1, 0])
    with pytest.raises(ValueError, match="unknown label"):
        positions_of(classes, np.array([*labels, 99 if labels[0] != "a" else "z"]))
