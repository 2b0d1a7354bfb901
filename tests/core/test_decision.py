import copy
import pickle
from decimal import Decimal

import numpy as np
import pytest

from onebit import Banditron, Decision, make_pipeline
from onebit.core.decision import id_of, key_of, new_id
from onebit.features import Records


def test_a_decision_is_printed_and_pickled():
    decision = Banditron(classes=["a", "b"], random_state=0).decide([1.0, 2.0])
    assert repr(decision) == "Decision(label='a', probability=0.975)"
    thawed = pickle.loads(pickle.dumps(decision))
    assert (thawed.label, thawed.probability) == (decision.label, decision.probability)
    np.testing.assert_array_equal(thawed.x.values, decision.x.values)
    thawed.__setstate__(decision.__getstate__()[:6])  # as earlier versions pickled it
    assert thawed.to_dict() == decision.to_dict()


def test_first_decision_that_is_refused_does_not_start_a_learner():
    learner = Banditron(classes=[0, 1])
    for decision, told in [
        (Decision([1.0, 2.0], 5, 0.5), {"correct": True}),
        (Decision([1.0, 2.0], 1, 0.5), {"truth": 5}),
        (Decision([1.0, 2.0], 1, 2.0), {"correct": True}),
        (Decision([1.0, 2.0], 1, 0.5), {"correct": "no"}),
        (Decision([], 1, 0.5), {"correct": True}),
    ]:
        with pytest.raises(ValueError, match=r"unknown label 5|probability|0 features|correct is"):
            learner.learn(decision, **told)
    assert not hasattr(learner, "classes_")


def test_an_id_that_is_read_late_is_known():
    learner = Banditron(classes=[0, 1], random_state=0)
    decision = learner.decide([1.0, 2.0])
    other = pickle.loads(pickle.dumps(decision))
    learner.learn(decision, correct=True)
    assert decision.id == decision.id == other.id
    assert learner.has_learned(decision.id)
    assert learner._run.last_ids() == [decision.id]
    with pytest.raises(ValueError, match="already learned"):
        learner.learn(other, correct=True)
    decision.id = "mine"
    assert decision.id == "mine"
    assert Decision([1.0], 0, 1.0, id="mine").id == "mine"


def test_every_id_has_a_key_of_its_own():
    made = new_id()
    assert isinstance(key_of(made), int)
    process, _, number = made.partition("-")
    zeros = "0" * 16
    for name in (
        made,
        f"{zeros}-0",
        f"{zeros}-00",
        f"{zeros}-{'f' * 16}",
        f"{zeros}-1{zeros}",
        f"{zeros}--1",
        f"{zeros}+1",
        f"{process}-{number.upper()}A",
        f" {process[1:]}-{number}",
        f"{process}-{number} ",
        f"{process}-1_0",
        "ticket 7",
        "0",
    ):
        assert id_of(key_of(name)) == name


def test_late_feedback_uses_the_decisions_probability_and_the_weights_at_arrival():
    x = np.array([1.0, -1.0])
    learner = Banditron(0.5, classes=[0, 1], random_state=0)
    old = learner.decide(x)
    learner.learn(Decision(-x, 1, 0.25), correct=True)
    before = learner.coef_
    y_hat = np.argmax(before @ x)
    learner.learn(old, correct=True)
    expected = before.copy()
    expected[y_hat] -= x
    expected[old.label] += x / old.probability
    np.testing.assert_allclose(learner.coef_, expected)


def test_a_copy_may_learn_from_the_same_decision():
    learner = Banditron(classes=[0, 1], random_state=0)
    decision = learner.decide([1.0])
    other = copy.deepcopy(learner)
    learner.learn(decision, correct=True)
    other.learn(decision, correct=True)
    np.testing.assert_array_equal(learner.coef_, other.coef_)


@pytest.mark.parametrize("right", [True, np.True_, 1, np.int8(1)])
def test_feedback_is_one_bit(right):
    learners = [Banditron(classes=["a", "b"], random_state=0) for _ in range(2)]
    for learner, correct in zip(learners, (True, right), strict=True):
        learner.learn(Decision([1.0, 2.0], "a", 0.5), correct=correct)
    np.testing.assert_array_equal(learners[0].coef_, learners[1].coef_)


@pytest.mark.parametrize("correct", ["no", "True", 2, -1, 0.5, 1.0, [], np.array([1])])
def test_feedback_that_is_no_bit_is_refused(correct):
    learner = Banditron(classes=["a", "b"], random_state=0)
    with pytest.raises(ValueError, match=r"correct is True or False, or 1 or 0; got "):
        learner.learn(Decision([1.0, 2.0], "a", 0.5), correct=correct)


def test_probabilities_of_a_log_may_be_rounded():
    learners = [Banditron(classes=["a", "b"], random_state=0) for _ in range(2)]
    for learner, probability in zip(learners, (1.0, 1.00002), strict=True):
        learner.learn(Decision([1.0, 2.0], "a", probability), correct=True)
    np.testing.assert_array_equal(learners[0].coef_, learners[1].coef_)


@pytest.mark.parametrize(
    "probability", [None, "0.5", 1.01, 0.0, -0.5, np.nan, [0.5, 0.5], Decimal("nan")]
)
def test_what_is_no_probability_is_refused(probability):
    learner = Banditron(classes=["a", "b"], random_state=0)
    with pytest.raises(ValueError, match=r"a decision's probability is in \[1e-30, 1\]; got "):
        learner.learn(Decision([1.0, 2.0], "a", probability), correct=True)


@pytest.fixture(params=["learner", "pipeline"])
def decided(request):
    """A learner, or a pipeline that ends in one, and a decision of it."""
    learner = Banditron(classes=["a", "b"], random_state=0)
    if request.param == "learner":
        return learner, learner.decide([1.0, 2.0])
    pipeline = make_pipeline(Records(16), learner)
    return pipeline, pipeline.decide("a text")


def test_what_is_no_decision_is_told_what_one_is(decided):
    learner, decision = decided
    what = r"what decide returned.*; got 't10'\..* decision\.to_dict\(\).* Decision\.from_dict"
    with pytest.raises(TypeError, match=what):
        learner.learn("t10", correct=True)
    with pytest.raises(TypeError, match=what):
        learner.learn_many([decision, "t10"], correct=[True, True])
    with pytest.raises(TypeError, match=r"Decision\.from_dict; got \{'id'"):
        learner.learn(decision.to_dict(), correct=True)
    with pytest.raises(TypeError, match="a list of decisions; got one, Decision"):
        learner.learn_many(decision, correct=True)
    with pytest.raises(TypeError, match=r"what decide returned.*; got 10"):
        learner.has_learned(10)
    assert not learner.has_learned(decision)


def test_feedback_is_given_by_its_name(decided):
    learner, decision = decided
    with pytest.raises(TypeError, match=r"^learn takes .*correct=\.\.\. .*truth=.*; got True"):
        learner.learn(decision, True)
    with pytest.raises(TypeError, match=r"^learn_many .*correct=.*truth=.*; got \[True\]"):
        learner.learn_many([decision], [True])
    assert not learner.has_learned(decision)
