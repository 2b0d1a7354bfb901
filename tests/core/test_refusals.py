"""Refused input changes nothing: a learner that had not started has still not started."""

from fractions import Fraction

import numpy as np
import pytest

from fuzz.soundness import assert_same, snapshot
from onebit import Banditron, Decision, make_pipeline, play
from onebit.features import Records

X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.5, 0.5, 0.5]])
RECORDS = [{"a": 1.0, "c": 2.0}, {"b": 1.0, "c": -1.0}, {"a": 0.5, "b": 0.5}]
LABELS, P, BITS = ["red", "blue", "red"], [0.5, 0.5, 0.5], [1, 0, 1]


def made(x, label="red", probability=0.5, among=None, name=None):
    return Decision(x, label, probability, among, name)


# Each takes a learner, or a pipeline, and rows as it takes them.
REFUSED = {
    "decide: id of a wrong type": lambda m, x: m.decide(x[0], id=7),
    "decide: id too long": lambda m, x: m.decide(x[0], id="x" * 201),
    "decide: unknown label in among": lambda m, x: m.decide(x[0], among=["red", "teal"]),
    "decide: label twice in among": lambda m, x: m.decide(x[0], among=["red", "red"]),
    "decide: empty among": lambda m, x: m.decide(x[0], among=[]),
    "decide: among is a text": lambda m, x: m.decide(x[0], among="red"),
    "decide_many: too few ids": lambda m, x: m.decide_many(x, ids=["a"]),
    "decide_many: id of a wrong type": lambda m, x: m.decide_many(x, ids=["a", 7, "c"]),
    "decide_many: unknown label in among": lambda m, x: m.decide_many(x, among=["teal"]),
    "learn: label not in among": lambda m, x: m.learn(made(x[0], among=("blue",)), correct=True),
    "learn: unknown label in among": lambda m, x: m.learn(
        made(x[0], among=("red", "teal")), correct=True
    ),
    "learn: unknown label": lambda m, x: m.learn(made(x[0], "teal"), correct=True),
    "learn: unknown truth": lambda m, x: m.learn(made(x[0]), truth="teal"),
    "learn: truth is a list": lambda m, x: m.learn(made(x[0]), truth=["red"]),
    "learn: probability": lambda m, x: m.learn(made(x[0], probability=1.5), correct=True),
    "learn: correct": lambda m, x: m.learn(made(x[0]), correct=0.5),
    "learn: id of a wrong type": lambda m, x: m.learn(made(x[0], name=7), correct=True),
    "learn_many: a bad second lesson": lambda m, x: m.learn_many(
        [made(x[0]), made(x[1], "teal")], correct=[1, 0]
    ),
    "learn_many: a bad second bit": lambda m, x: m.learn_many(
        [made(x[0]), made(x[1])], correct=[1, 2]
    ),
    "learn_many: an id twice": lambda m, x: m.learn_many(
        [made(x[0], name="a"), made(x[1], name="a")], correct=[1, 0]
    ),
    "learn_many: a decision twice": lambda m, x: m.learn_many([made(x[0])] * 2, correct=[1, 0]),
    "replay: unknown label": lambda m, x: m.replay(x, ["red", "teal", "red"], P, BITS),
    "replay: probability": lambda m, x: m.replay(x, LABELS, [0.5, 0.0, 0.5], BITS),
    "replay: unknown label in among": lambda m, x: m.replay(
        x, LABELS, P, BITS, among=["red", "blue", "teal"]
    ),
    "replay: random_state": lambda m, x: m.replay(x, LABELS, P, BITS, bound=2, random_state="a"),
    "partial_fit: unknown label": lambda m, x: m.partial_fit(x, ["red", "teal", "red"]),
    "teach: unknown label": lambda m, x: m.teach(x, ["red", "teal", "red"]),
}
"""Calls with one bad argument, the others sound."""

WRONG_LESSONS = {
    **{
        f"correct={bit}": (
            lambda m, x, bit=bit: m.replay(x, LABELS, P, [1, bit, 0]),
            "correct is 1, 0 or NaN; got .* in row 1",
        )
        for bit in (0.99, -0.5, 1.9, -1.0, 2.0, np.inf)
    },
    **{
        f"bound={bound}": (
            lambda m, x, bound=bound: m.replay(x, LABELS, P, BITS, bound=bound),
            "bound is a finite number of at least 1",
        )
        for bound in (0, 0.5, -3, np.nan, np.inf, True, "2")
    },
    "masked bits": (
        lambda m, x: m.replay(x, LABELS, P, np.ma.array(BITS, mask=[0, 1, 0])),
        "correct is a masked array with values missing",
    ),
    "masked probabilities": (
        lambda m, x: m.replay(x, LABELS, np.ma.array(P, mask=[0, 1, 0]), BITS),
        "probabilities is a masked array with values missing",
    ),
    "a reward beyond the floats": (
        lambda m, x: m.replay(x, LABELS, P, reward=[1, 10**400, 0]),
        "reward contains an integer too large for a float",
    ),
    "label not in among": (
        lambda m, x: m.replay(x, LABELS, P, BITS, among=["red", "green"]),
        "the label 'blue' in row 1 is not in among",
    ),
}
"""What `replay` learned from as if it were sound, with the message that refuses it."""


def bare():
    return Banditron(classes=["red", "green", "blue"], random_state=0), X


def pipeline():
    return make_pipeline(Records(n_features=16), bare()[0]), RECORDS


def learner_in(model):
    return model.steps[-1][1] if hasattr(model, "steps") else model


def assert_refused(model, x, call, match="."):
    learner = learner_in(model)
    before, ids = snapshot(learner), learner._started and dict(learner._run.learned)
    with pytest.raises((ValueError, TypeError), match=match):
        call(model, x)
    assert_same(before, snapshot(learner), "changed by a refused call")
    assert before or not learner._started
    assert ids == (learner._started and learner._run.learned)


both = pytest.mark.parametrize("kind", [bare, pipeline])


@both
@pytest.mark.parametrize("name", REFUSED)
def test_refused_input_changes_nothing(kind, name):
    model, x = kind()
    assert_refused(model, x, REFUSED[name])
    assert not learner_in(model)._started
    model.learn(model.decide(x[0]), correct=True)
    assert_refused(model, x, REFUSED[name])


@both
@pytest.mark.parametrize("name", WRONG_LESSONS)
def test_replay_refuses_what_is_no_log(kind, name):
    model, x = kind()
    call, match = WRONG_LESSONS[name]
    assert_refused(model, x, call, match)
    assert not learner_in(model)._started
    model.learn(model.decide(x[0]), correct=True)
    assert_refused(model, x, call, match)


@pytest.mark.parametrize("huge", [10**400, -(10**400), np.longdouble("1e4000"), Fraction(10**400)])
def test_numbers_that_are_no_floats_are_refused(huge):
    """Integers beyond the floats raised OverflowError, without the name of the argument."""
    calls = {
        "worth has finite numbers": lambda m, x: m.decide(x[0], worth={"red": huge}),
        "cost has finite numbers": lambda m, x: m.set_utility(cost={"red": huge}),
        "max_exploration is a number in": lambda m, x: m.set_limits(max_exploration=huge),
        "reward is a number in": lambda m, x: m.learn(made(x[0]), reward=huge),
        "probability is in": lambda m, x: m.learn(made(x[0], probability=huge), correct=True),
        "bound is a finite number": lambda m, x: m.replay(x, LABELS, P, BITS, bound=huge),
    }
    for match, call in calls.items():
        assert_refused(*bare(), call, match)


def test_replay_refuses_retired_labels():
    learner, x = bare()
    learner.decide(x[0])
    learner.retire_classes(["blue"])

    def call(learner, x):
        learner.replay(x, LABELS, P, BITS)

    assert_refused(learner, x, call, "the label 'blue' in row 1 is retired")


def test_what_is_refused_draws_nothing_from_a_given_generator():
    given, fresh = np.random.RandomState(3), np.random.RandomState(3)
    learner = Banditron(gamma=0.5, classes=["red", "blue"], random_state=given)
    for call in (REFUSED["decide: id too long"], REFUSED["replay: probability"]):
        assert_refused(learner, X, call)
    with pytest.raises(ValueError, match="gamma"):
        Banditron(gamma=-1.0, random_state=given).fit(X, LABELS)
    other = Banditron(gamma=0.5, classes=["red", "blue"], random_state=fresh)
    for one in (learner, other):
        play(one, X, LABELS)
    assert_same(snapshot(other), snapshot(learner), "another generator")


def test_the_first_call_takes_labels_on_offer_from_an_iterator():
    learner, x = bare()
    assert learner.decide(x[0], among=iter(["red"])).among == ("red",)
    learner, x = bare()
    assert [d.label for d in learner.decide_many(x, among=iter(["red"]))] == ["red"] * 3


def test_a_bound_and_missing_bits_are_learned_from_as_before():
    learner, x = bare()
    chosen, taken = learner.replay(x, LABELS, P, [1, None, 0], bound=1, random_state=0)
    assert not taken[1]
    assert (chosen > 0.0).all()
