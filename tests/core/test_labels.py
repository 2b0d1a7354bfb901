"""Labels that come and go, decisions with ids, and feedback as people give it."""

import json
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import onebit
from onebit import (
    NONE_OF_THESE,
    SOBA,
    Banditron,
    Decision,
    Folklore,
    OneBitClassifier,
    Perceptron,
    SeparableBandit,
    play,
)
from onebit.core.decision import MAX_REMEMBERED_IDS
from onebit.core.storage import arrays_of

# They compile OneBitClassifier, nearly all of them.
pytestmark = pytest.mark.xdist_group("one_bit_classifier")

LABELS = np.array(["ash", "elm", "fir", "oak"])


def stream(n, K=4, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, LABELS[np.argmax(X @ np.random.default_rng(1).normal(size=(d, K)), axis=1)]


def state(learner):
    return {name: array.copy() for name, array in arrays_of(learner._run.state)}


def assert_same(a, b):
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name], err_msg=name)


# Labels


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_a_new_label_is_learned_and_the_others_are_kept(covariance):
    X, y = stream(3_000)
    known = y != "oak"
    settings = {"covariance": covariance, "views": "line", "random_state": 0}
    learner = OneBitClassifier(classes=LABELS[:3], **settings)
    play(learner, X[known], y[known])
    scores = learner.scores(X[:500])
    learner.add_classes(["oak"])
    np.testing.assert_allclose(learner.scores(X[:500])[:, :3], scores, rtol=1e-12)
    whole = OneBitClassifier(classes=LABELS, **settings)
    expected = play(whole, X, y).mistakes[-1_000:].mean()
    assert play(learner, X, y).mistakes[-1_000:].mean() < expected + 0.02
    assert learner.classes_.tolist() == LABELS.tolist()


def test_the_form_stays_where_more_classes_would_have_another(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 200))
    # 201^2 * 4 <= 200,000 < 201^2 * 5
    learner = OneBitClassifier(views="line", classes=[0, 1, 2, 3], random_state=0)
    learner.partial_fit(X, np.arange(50) % 4)
    kernels = learner._run.kernels
    learner.add_classes([4])
    assert learner._run.kernels is kernels
    assert learner.covariance == "auto"
    learner.save(tmp_path / "learner")
    loaded = onebit.load(tmp_path / "learner")
    np.testing.assert_array_equal(loaded.policy(X), learner.policy(X))
    assert loaded._run.kernels is kernels


def test_learners_refuse_more_classes_by_name():
    X, y = stream(20, K=3)
    folklore = Folklore().fit(X, y)
    with pytest.raises(ValueError, match=r"Folklore cannot take further classes: A_inv\.base"):
        folklore.add_classes(["oak"])
    few = OneBitClassifier(classes=["a", "b"], min_probability=0.4)
    few.decide(X[0])
    with pytest.raises(
        ValueError, match="OneBitClassifier cannot take further classes: min_probability"
    ):
        few.add_classes(["c"])
    assert few.classes_.tolist() == ["a", "b"]
    few.decide(X[0])


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ([3], "3 is not of the kind of 'ash'"),
        (["birch", "birch"], "different labels"),
        ([None], "a label is a str"),
        ([["birch"]], "different labels|a label is"),
        (["birch", "elm"], "'elm' is one of the classes already"),
    ],
)
def test_labels_that_cannot_be_added(new, words):
    learner = Banditron(classes=LABELS)
    learner.decide(np.ones(3))
    with pytest.raises(ValueError, match=words):
        learner.add_classes(new)
    assert learner.classes_.tolist() == LABELS.tolist()


def test_longer_texts_and_larger_numbers_are_kept_whole():
    learner = Banditron(classes=LABELS)
    learner.decide(np.ones(3))
    learner.add_classes(["a very long label"])
    assert learner.classes_[-1] == "a very long label"
    numbers = Banditron(classes=[0, 1])
    numbers.decide(np.ones(3))
    numbers.add_classes([-5])
    assert numbers.classes_.tolist() == [0, 1, -5]
    numbers.partial_fit(np.eye(3), [-5, 0, 1])


# To play with labels on offer takes seconds to compile; the next test does it for one form.
@pytest.mark.parametrize("plays", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_a_retired_label_is_as_if_it_were_not_there(covariance, plays):
    """OneBitClassifier then walks the path of one without that label, which it never knew."""
    X, y = stream(400, K=3)
    labels = ["ash", "elm", "fir"]
    settings = {
        "covariance": covariance,
        "views": "line",
        "random_state": 0,
        "a": 0.5,
        "explore": 0.2,
    }
    without = OneBitClassifier(classes=labels, **settings)
    retired = OneBitClassifier(classes=[*labels, "oak"], **settings)
    for learner in (without, retired):
        learner.policy(X[:1])
        learner._start(np.array(learner.classes), X.shape[1])
    retired.retire_classes(["oak"])
    for x, truth in zip(X, y, strict=True):
        ours, theirs = retired.decide(x), without.decide(x)
        assert (ours.label, ours.confidence) == (theirs.label, theirs.confidence)
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-12)
        for learner, decision in ((retired, ours), (without, theirs)):
            learner.learn(decision, correct=bool(decision.label == truth))
    np.testing.assert_allclose(retired.coef_[:3], without.coef_, rtol=1e-12)
    np.testing.assert_array_equal(retired.coef_[3], 0.0)
    if plays:
        assert play(retired, X, y).n_mistakes == play(without, X, y).n_mistakes
    np.testing.assert_allclose(retired.predict_proba(X)[:, :3], without.predict_proba(X))


def test_a_retired_label_comes_back_with_what_it_knew():
    X, y = stream(3_000)
    form = {"covariance": "diagonal", "standardize": False}
    learner = OneBitClassifier(classes=LABELS, random_state=0, **form)
    play(learner, X, y)
    known = learner.coef_[3].copy()
    learner.retire_classes(["oak"])
    for x, truth in zip(X, y, strict=True):
        if truth != "oak":
            decision = learner.decide(x)
            learner.learn(decision, correct=bool(decision.label == truth))
    np.testing.assert_array_equal(learner.coef_[3], known)
    learner.add_classes(["oak"])
    assert play(learner, X, y).mistakes[:300].mean() < 0.1


def test_streams_with_retired_labels():
    X, y = stream(200)
    bandit = Banditron(classes=LABELS, random_state=0)
    play(bandit, X, y)
    bandit.retire_classes(["oak", "ash"])
    history = play(bandit, X, y)  # the referee may know of labels that are not on offer
    assert history.mistakes[np.isin(y, ["oak", "ash"])].all()
    with pytest.raises(ValueError, match=r"'oak' is retired|'ash' is retired"):
        bandit.teach(X, y)
    full = Perceptron(classes=LABELS)
    full.partial_fit(X, y)
    full.retire_classes(["oak"])
    with pytest.raises(ValueError, match="'oak' is retired"):
        full.partial_fit(X, y)
    one_left = SOBA(classes=LABELS, random_state=0)
    one_left.decide(X[0])
    one_left.retire_classes(LABELS[1:])
    assert one_left.decide(X[0]).probability == 1.0
    with pytest.raises(ValueError, match="'elm' is retired already"):
        one_left.retire_classes(["elm"])


def test_what_is_told_of_a_retired_label_teaches_nothing():
    X, _ = stream(10)
    for learner in (OneBitClassifier(classes=LABELS), Banditron(classes=LABELS)):
        decision, other = learner.decide(X[0]), learner.decide(X[1])
        learner.retire_classes([decision.label])
        before = state(learner)
        learner.learn(decision, correct=False)
        learner.learn(other, truth=decision.label)
        if learner.uses_truth:
            assert_same(before, state(learner))
        assert learner.has_learned(decision)
        assert learner.has_learned(other)


def test_labels_come_while_threads_learn():
    """No lesson is lost, but those about labels that were retired meanwhile."""
    X, y = stream(2_000)
    learner = OneBitClassifier(classes=LABELS, covariance="diagonal", views="line", random_state=0)
    learner.decide(X[0])
    failures, done = [], []

    def work(part):
        try:
            for x, truth in zip(X[part::2], y[part::2], strict=True):
                decision = learner.decide(x)
                learner.learn(decision, correct=bool(decision.label == truth))
                learner.policy(X[:2])
                done.append(decision.label)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in (0, 1)]
    for thread in threads:
        thread.start()
    for i in range(20):
        learner.add_classes([f"new {i}"])
        learner.retire_classes([f"new {i}"])
    for thread in threads:
        thread.join()
    assert not failures
    kept = sum(label in LABELS for label in done)
    assert kept <= learner._run.state.rounds <= len(done) == 2_000
    assert learner.classes_.size == 24


# Decisions


def test_confidence_is_the_probability_of_the_model():
    X, y = stream(300)
    for learner in (OneBitClassifier(random_state=0), onebit.Newtron(random_state=0)):
        learner.fit(X, y)
        for x in X[:20]:
            decision = learner.decide(x)
            p = learner.predict_proba(x[np.newaxis])[0]
            assert decision.confidence == pytest.approx(p[LABELS.tolist().index(decision.label)])
    assert Banditron().fit(X, y).decide(X[0]).confidence is None


def test_ids_are_given_or_made():
    learner = Banditron(classes=LABELS)
    made = [learner.decide(np.ones(3)) for _ in range(1_000)]
    assert len({decision.id for decision in made}) == 1_000
    given = learner.decide(np.ones(3), id="ticket 7")
    assert given.id == "ticket 7"
    assert learner.decide(np.ones(3), among=["ash"], id="ticket 8").id == "ticket 8"
    many = learner.decide_many(np.ones((2, 3)), ids=["a", "b"])
    assert [decision.id for decision in many] == ["a", "b"]
    assert not learner.has_learned("ticket 7")
    learner.learn(given, correct=True)
    assert learner.has_learned("ticket 7")
    assert learner.has_learned(given)
    twin = learner.decide(np.zeros(3), id="ticket 7")
    with pytest.raises(ValueError, match="already learned"):
        learner.learn(twin, correct=True)


def test_a_fixed_number_of_ids_is_remembered(tmp_path):
    learner = Banditron(classes=LABELS)
    learner.decide(np.ones(3))
    for i in range(int(1.3 * MAX_REMEMBERED_IDS)):
        learner._run.remember(str(i))
    assert len(learner._run.learned) <= 1.25 * MAX_REMEMBERED_IDS
    last, forgotten = str(int(1.3 * MAX_REMEMBERED_IDS) - MAX_REMEMBERED_IDS), "0"
    assert learner.has_learned(last)
    assert not learner.has_learned(forgotten)
    learner.save(tmp_path / "learner")
    loaded = onebit.load(tmp_path / "learner")
    assert loaded.has_learned(last)
    assert len(loaded._run.learned) == MAX_REMEMBERED_IDS


def test_decisions_as_json():
    learner = OneBitClassifier(classes=LABELS, random_state=0)
    for x in (np.arange(5.0), sp.csr_array(np.eye(1, 5, 3))):
        decision = learner.decide(x, among=["ash", "fir"])
        as_json = json.loads(json.dumps(decision.to_dict()))
        again = Decision.from_dict(as_json)
        assert again.to_dict() == decision.to_dict() == as_json
        learner.learn(again, correct=True)
    by_hand = Decision(np.arange(5.0), np.str_("ash"), np.float64(0.5))
    learner.learn(Decision.from_dict(json.loads(json.dumps(by_hand.to_dict()))), correct=True)


@pytest.mark.parametrize(
    "x",
    [
        {"indices": [9], "values": [1.0], "n_features": 5},
        {"indices": [-1], "values": [1.0], "n_features": 5},
        {"indices": [1, 2], "values": [1.0], "n_features": 5},
        {"indices": [0.5], "values": [1.0], "n_features": 5},
        {"indices": ["a"], "values": [1.0], "n_features": 5},
        {"indices": [1], "values": ["a"], "n_features": 5},
        {"indices": [1], "values": [1.0], "n_features": 10**30},
        {"indices": None, "values": None, "n_features": None},
    ],
)
def test_hostile_json_is_refused(x):
    with pytest.raises(ValueError, match="the x of a decision has as many indices"):
        Decision.from_dict({"x": x, "label": "ash", "probability": 1.0})


def test_json_of_something_else_is_refused():
    with pytest.raises(ValueError, match=r"a decision has 'label'; got \{'x'"):
        Decision.from_dict({"x": [1.0]})
    hostile = Decision.from_dict({"x": [1.0], "label": "ash", "probability": 1.0, "among": 3})
    with pytest.raises(ValueError, match="among is a list of labels; got 3"):
        Banditron(classes=LABELS).learn(hostile, correct=True)


def test_none_of_these_labels_teaches_nothing():
    for cls in (OneBitClassifier, SOBA, Perceptron):
        learner = cls(classes=LABELS)
        decision = learner.decide(np.ones(3))
        before = state(learner)
        learner.learn(decision, truth=NONE_OF_THESE)
        assert_same(before, state(learner))
        assert learner.has_learned(decision)
    assert repr(NONE_OF_THESE) == "NONE_OF_THESE"


def test_an_error_in_one_of_many_leaves_the_learner_as_it_was():
    X, y = stream(20)
    learner = OneBitClassifier(classes=LABELS, random_state=0)
    decisions = learner.decide_many(X)
    before = state(learner)
    with pytest.raises(ValueError, match="correct is True or False"):
        learner.learn_many(decisions, correct=[True] * 19 + ["no"])
    assert_same(before, state(learner))
    learner.learn_many(decisions, correct=[None] * 10 + [True] * 10, truth=[*y[:10]] + [None] * 10)
    with pytest.raises(ValueError, match="already learned"):
        learner.learn_many(decisions[:1], correct=[True])
    learner.learn_many([], correct=[])


# Before the first round, and rows as people have them


def test_saved_before_the_first_round(tmp_path):
    for learner in (OneBitClassifier(classes=["a", "b"], explore=0.2), SeparableBandit()):
        learner.save(tmp_path / "learner")
        loaded = onebit.load(tmp_path / "learner")
        assert loaded.get_params() == learner.get_params()
        assert not loaded._started
    pipeline = onebit.make_pipeline(
        onebit.features.Records(n_features=1024), OneBitClassifier(classes=["a", "b"])
    )
    pipeline.save(tmp_path / "pipeline")
    assert onebit.load(tmp_path / "pipeline").decide({"a": 1}).label in ("a", "b")


def test_policy_before_the_first_decision():
    learner = OneBitClassifier(classes=LABELS, random_state=0)
    np.testing.assert_allclose(learner.policy(np.ones((2, 3))), 0.25, atol=1e-7)
    np.testing.assert_allclose(learner.policy(np.ones((2, 3)), ["ash", "elm"])[0, :2], 0.5)
    assert not learner._started
    with pytest.raises(ValueError, match="NaN"):
        learner.policy([[np.nan]])


def test_rows_of_data_frames():
    X, y = stream(50)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    learner = OneBitClassifier(random_state=0).fit(frame, y)
    row, one, dense = frame.iloc[3], frame.iloc[[3]], X[[3]]
    expected = learner.decide(X[3]).x
    for x in (row, one, dense, X[3]):
        np.testing.assert_array_equal(learner.decide(x).x.values, expected.values)
    for wrong in (row[::-1], one.iloc[:, ::-1]):
        with pytest.raises(ValueError, match="feature 0 is 'f', and should be 'a'"):
            learner.decide(wrong)
    with pytest.raises(ValueError, match="one example"):
        learner.decide(frame)


def test_names_are_remembered_from_the_first_decision():
    frame = pd.DataFrame(np.eye(3), columns=["age", "income", "dwell"])
    learner = Banditron(classes=LABELS)
    learner.decide(frame.iloc[0])
    assert learner.feature_names_in_.tolist() == ["age", "income", "dwell"]
    with pytest.raises(ValueError, match="feature 0 is 'dwell', and should be 'age'"):
        learner.decide(frame.iloc[0][::-1])
    learner.predict(frame)
