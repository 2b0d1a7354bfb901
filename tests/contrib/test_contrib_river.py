"""Learners in River, with River itself."""

import copy
import pickle
import random

import pytest
from river import bandit, checks, datasets, evaluate, metrics, preprocessing

from onebit import AROW, Banditron, Decision, OneBitClassifier, Perceptron, make_pipeline
from onebit.contrib.river import RiverClassifier, RiverPolicy
from onebit.features import Records


def learner(cls=Banditron, **parameters):
    return cls(random_state=0, **parameters)


RIVERS_CHECKS = list(checks.yield_checks(RiverClassifier(learner(classes=[False, True]))))


@pytest.mark.parametrize("check", RIVERS_CHECKS, ids=lambda check: check.__name__)
def test_has_every_behaviour_of_rivers_classifiers(check):
    check(RiverClassifier(learner(classes=[False, True])))


@pytest.mark.parametrize("cls", [OneBitClassifier, Perceptron])
def test_a_round_is_one_of_the_pipeline(cls):
    model = RiverClassifier(learner(cls, classes=[False, True]))
    pipeline = make_pipeline(Records(), learner(cls, classes=[False, True]))
    for x, y in datasets.Phishing().take(100):
        assert not model.pipeline[-1]._started or model.predict_one(x) == pipeline.predict([x])[0]
        model.learn_one(x, y)
        pipeline.learn(pipeline.decide(x), truth=y)
    assert (model.pipeline[-1].coef_ == pipeline[-1].coef_).all()


def test_probabilities():
    model = RiverClassifier(learner(OneBitClassifier, classes=["no", "yes"]))
    for x, y in datasets.Phishing().take(100):
        model.learn_one(x, "yes" if y else "no")
    p = model.predict_proba_one(x)
    (expected,) = model.pipeline.predict_proba([x]).tolist()
    assert p == pytest.approx(dict(zip(["no", "yes"], expected, strict=True)), rel=1e-12)
    assert model.predict_one(x) == max(p, key=p.get)
    with pytest.raises(NotImplementedError, match="Banditron is no probability model"):
        RiverClassifier(learner(classes=[0, 1])).predict_proba_one(x)


def test_learns_in_a_pipeline_of_river():
    """Seven labels: chance is right in one of seven rounds."""
    dataset = datasets.ImageSegments()
    labels = sorted({y for _, y in dataset})
    model = preprocessing.StandardScaler() | RiverClassifier(learner(AROW, classes=labels))
    metric = evaluate.progressive_val_score(dataset, model, metrics.Accuracy())
    assert metric.get() > 0.8


def test_what_changes_in_place_is_seen():
    model = RiverClassifier(learner(classes=["a", "b"]))
    for x in ({"n": 1.0}, {"list": [1.0]}):
        first = model._example(x)
        assert model._example(dict(x)).values.tolist() == first.values.tolist()
        if "n" in x:
            x["n"] = 2.0
        else:
            x["list"][0] = 2.0
        assert model._example(x).values.tolist() == (2 * first.values).tolist()


def test_names_that_are_no_texts():
    model = RiverClassifier(learner(classes=["a", "b"]))
    assert model._example({0: 2.0}).indices == model._example({"0": 2.0}).indices


def test_the_model_is_copied():
    given = learner(classes=["a", "b"])
    model = RiverClassifier(given)
    model.learn_one({"x": 1.0}, "a")
    assert not given._started
    assert not model.clone().pipeline[-1]._started
    for other in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.clone(include_attributes=True),
        RiverClassifier(model.pipeline),
    ):
        before = model.pipeline[-1].coef_.tolist()
        assert other.pipeline[-1].coef_.tolist() == before
        other.learn_one({"x": 1.0}, "b")
        assert model.pipeline[-1].coef_.tolist() == before


def test_bad_input():
    with pytest.raises(TypeError, match=r"a model is a learner of onebit .* got StandardScaler"):
        RiverClassifier(preprocessing.StandardScaler())
    with pytest.raises(ValueError, match="does not know its labels yet"):
        RiverClassifier(learner()).learn_one({"x": 1.0}, "a")
    model = RiverClassifier(learner(classes=["a", "b"]))
    with pytest.raises(ValueError, match="unknown label 'c'"):
        model.learn_one({"x": 1.0}, "c")


# Policies

ARMS = ["ant", "bee", "cat"]


def log(n, seed=0):
    """A log of arms pulled at random: the right arm is that of the largest feature."""
    rng = random.Random(seed)
    for _ in range(n):
        context = {arm[0]: rng.random() for arm in ARMS}
        arm = rng.choice(ARMS)
        yield ARMS, context, arm, arm[0] == max(context, key=context.get)


def test_is_evaluated_by_river():
    """An arm at random is right in a third of the rounds."""
    shares = []
    for policy in (RiverPolicy(learner(OneBitClassifier)), bandit.RandomPolicy(seed=0)):
        reward, n_used = bandit.evaluate_offline(policy, log(3_000))
        assert n_used > 900
        shares.append(reward.get() / n_used)
    assert shares[0] > 0.85 > 0.4 > shares[1]


def test_a_pull_is_a_decision_among_the_arms():
    policy = RiverPolicy(learner(classes=ARMS))
    expected = make_pipeline(Records(), learner(classes=ARMS))
    for i, (arms, context, _, _) in enumerate(log(200)):
        some = arms if i % 2 else arms[1:]
        arm = policy.pull(some, context)
        decision = expected.decide(context, among=some)
        assert arm == decision.label
        right = arm[0] == max(context, key=context.get)
        policy.update(arm, context, float(right))
        expected.learn(decision, correct=right)
    assert (policy.pipeline[-1].coef_ == expected[-1].coef_).all()
    assert policy._n == 200


def test_an_update_without_its_pull_is_certain():
    """That of a log, which is about another context or arm than the last pull."""
    policy = RiverPolicy(learner(classes=ARMS))
    expected = make_pipeline(Records(), learner(classes=ARMS))
    for arms, context, arm, reward in log(50):
        policy.pull(arms, dict(context))
        policy.update(arm, context, reward)
        expected.learn(Decision(context, arm, 1.0), correct=reward)
    assert (policy.pipeline[-1].coef_ == expected[-1].coef_).all()


def test_burn_in():
    policy, context = RiverPolicy(learner(OneBitClassifier), burn_in=2), {"a": 1.0}
    for _ in range(6):
        arm = policy.pull(ARMS, context)
        policy.update(arm, context, arm == "bee")
    assert policy._counts == dict.fromkeys(ARMS, 2)
    assert policy.pipeline.predict([context]) == ["bee"]


def test_a_reward_is_a_bit_or_its_probability():
    """The bits of a reward of 0.7 are right in seven of ten rounds."""
    seen = []
    policy = RiverPolicy(learner(classes=ARMS), seed=0)
    policy.pipeline[-1].learn = lambda decision, correct: seen.append(correct)
    for _ in range(1_000):
        policy.update("ant", {"x": 1.0}, 0.7)
    assert 650 < sum(seen) < 750
    seen.clear()
    for reward in (0, 1, False, True, 0.0, 1.0):
        policy.update("ant", {"x": 1.0}, reward)
    assert seen == [False, True] * 3
    n = policy._n
    for reward in (-0.1, 1.1, float("nan"), None, "yes"):
        with pytest.raises(ValueError, match="a reward is from 0, for wrong, to 1, for right; got"):
            policy.update("ant", {"x": 1.0}, reward)
    assert (policy._n, len(seen)) == (n, 6)


def test_without_a_context():
    policy = RiverPolicy(learner(OneBitClassifier))
    for _ in range(100):
        arm = policy.pull(ARMS)
        policy.update(arm, None, arm == "bee")
    assert policy.ranking[0] == "bee"
    assert policy._counts["bee"] > 80


def test_clones_of_a_policy_begin_anew():
    policy = RiverPolicy(learner(OneBitClassifier), seed=3, burn_in=1)
    bandit.evaluate_offline(policy, log(100))
    other = policy.clone()
    assert (other.seed, other.burn_in, other._n) == (3, 1, 0)
    assert other.pull(["x", "y"], {}) == "x"
    assert not other.pipeline[-1]._started


def test_labels_are_not_told_to_bandits():
    with pytest.raises(
        ValueError, match=r"Perceptron learns from the label itself.*BanditReduction"
    ):
        RiverPolicy(learner(Perceptron))


@pytest.mark.parametrize("classes", [None, ARMS[:2]])
def test_arms_that_come_later(classes):
    policy = RiverPolicy(learner(OneBitClassifier, classes=classes))
    for arms, right in ((ARMS[:2], "bee"), (ARMS, "cat"), (ARMS[:1], "ant")):
        for _ in range(60):
            arm = policy.pull(arms, {"x": 1.0})
            policy.update(arm, {"x": 1.0}, arm == right)
        assert policy.pull(arms, {"x": 1.0}) == right
    assert sorted(policy.pipeline[-1].classes_) == ARMS
