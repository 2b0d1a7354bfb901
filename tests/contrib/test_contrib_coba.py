"""Learners in experiments of coba, with coba itself."""

import copy
import pickle

import coba as cb
import numpy as np
import pytest
from coba.learners import RandomLearner
from sklearn.datasets import load_wine

from onebit import (
    BanditReduction,
    Banditron,
    Folklore,
    OneBitClassifier,
    Perceptron,
    make_pipeline,
    play,
)
from onebit.contrib.coba import CobaLearner
from onebit.features import Records

SHAPES = ["circle", "square", "triangle"]


def wine(seed=0):
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(seed).permutation(y.size)
    return X[order], y[order]


def supervised(X, y):
    return cb.Environments.from_supervised(X, y, "c")


def rewards(environments, learner, evaluator=None):
    evaluator = evaluator or cb.SequentialCB(["reward"])
    return [r["reward"] for r in evaluator.evaluate(environments[0], learner)]


def one_of_three(n, context, seed=0):
    """An environment whose right action is that of the context."""
    rng = np.random.default_rng(seed)
    return [
        {"context": context(i), "actions": SHAPES, "rewards": [float(k == i) for k in range(3)]}
        for i in rng.integers(3, size=n).tolist()
    ]


class Rounds:
    """An environment of these rounds."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.params = {}

    def read(self):
        return iter(self.rounds)


def test_plays_the_rounds_that_the_learner_plays():
    X, y = wine()
    learner = OneBitClassifier(classes=[0, 1, 2], random_state=0)
    expected = ~play(learner, X, y).mistakes
    found = rewards(
        supervised(X.tolist(), y.tolist()), CobaLearner(OneBitClassifier(random_state=0))
    )
    np.testing.assert_array_equal(np.array(found), expected.astype(float))


def test_learns_from_raw_columns():
    """Chance is right in a third of the rounds."""
    found = [
        np.mean(rewards(supervised(X.tolist(), y.tolist()), CobaLearner(OneBitClassifier())))
        for X, y in map(wine, range(3))
    ]
    assert np.mean(found) > 0.85


@pytest.mark.parametrize(
    "context",
    [
        lambda i: tuple(float(k == i) for k in range(3)),
        lambda i: [k == i for k in range(3)],
        lambda i: {i: 1},
        lambda i: {"shape": SHAPES[i], "n": 2.0},
        lambda i: SHAPES[i],
        lambda i: "abc"[i],
        lambda i: (SHAPES[i], 2.0),
        lambda i: ((i == 0, i == 1), 1.0),
    ],
    ids=["tuple", "list", "sparse", "record", "text", "letter", "mixed", "nested"],
)
@pytest.mark.parametrize("cls", [Banditron, OneBitClassifier])
def test_contexts(context, cls):
    learner = CobaLearner(cls(random_state=0))
    found = rewards([Rounds(one_of_three(400, context))], learner)
    assert np.mean(found[200:]) > 0.85


def test_without_contexts():
    """Of a multi-armed bandit, and of a number that says nothing."""
    for nothing in (None, 2.0):
        rounds = one_of_three(300, lambda i: nothing)  # noqa: B023
        for one in rounds:
            one["rewards"] = [0.0, 1.0, 0.0]
        found = rewards([Rounds(rounds)], CobaLearner(OneBitClassifier(random_state=0)))
        assert np.mean(found[100:]) > 0.9


@pytest.mark.parametrize(
    "actions",
    [
        ["a", "b", "c"],
        [0, 1, 2],
        [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
        [[1.0], [2.0], [3.0]],
        [{"size": 1}, {"size": 2}, {"size": 3}],
        ["a", 2, (3, 4)],
    ],
    ids=["texts", "numbers", "tuples", "lists", "dicts", "mixed"],
)
def test_actions(actions):
    rounds = [one | {"actions": actions} for one in one_of_three(200, lambda i: {SHAPES[i]: 1.0})]
    found = rewards([Rounds(rounds)], CobaLearner(OneBitClassifier(random_state=0)))
    assert np.mean(found[100:]) > 0.9


def test_actions_on_offer():
    learner = CobaLearner(Banditron(random_state=0), actions=SHAPES)
    counts = dict.fromkeys(SHAPES, 0)
    p = learner.score({"x": 1.0}, SHAPES[1:], "square")
    assert learner.score({"x": 1.0}, SHAPES[1:], "circle") == 0.0
    for _ in range(500):
        action, probability, more = learner.predict({"x": 1.0}, SHAPES[1:])
        assert probability == learner.score({"x": 1.0}, SHAPES[1:], action)
        assert more["decision"].among == tuple(range(1, 3))
        counts[action] += 1
    assert counts["circle"] == 0
    assert abs(counts["square"] / 500 - p) < 0.05


def test_actions_that_come_later():
    learner, chosen = CobaLearner(OneBitClassifier(random_state=0)), []
    for actions in (SHAPES[:2], [*SHAPES, (1, 2)]):
        for _ in range(100):
            action, probability, more = learner.predict((1.0, 2.0), actions)
            learner.learn((1.0, 2.0), action, float(action == actions[-1]), probability, **more)
            chosen.append(action)
    assert (chosen.count("square") > 80, chosen.count((1, 2)) > 60) == (True, True)


def test_logs_before_the_first_prediction():
    learner = CobaLearner(OneBitClassifier(random_state=0), actions=SHAPES[:2])
    for action in (SHAPES * 20)[:50]:
        learner.learn((1.0,), action, float(action == "triangle"), None)
    assert learner.score((1.0,), SHAPES, "triangle") > 0.9


def test_logs_and_batches():
    """Learning from what another policy logged, rejection sampling, and batches."""
    X, y = wine()

    def environments():
        return supervised(X.tolist(), [SHAPES[k] for k in y])

    logged = environments().logged(RandomLearner())
    off_policy = cb.SequentialCB(["reward"], learn="off", eval="ips")
    found = rewards(logged, CobaLearner(OneBitClassifier(random_state=0)), off_policy)
    assert len(found) == y.size
    logged = environments().logged(RandomLearner())
    found = rewards(logged, CobaLearner(OneBitClassifier(random_state=0)), cb.RejectionCB())
    assert 20 < len(found) < y.size
    found = rewards(environments().batch(4), CobaLearner(OneBitClassifier(random_state=0)))
    assert (len(found), np.mean(found) > 0.8) == (y.size, True)


def test_experiments():
    """Each run of a learner begins anew, so that environments may differ in all."""
    contexts = (lambda i: (1.0, float(i))), (lambda i: SHAPES[i])
    environments = cb.Environments([Rounds(one_of_three(100, one)) for one in contexts])
    learners = [CobaLearner(OneBitClassifier(random_state=0)), RandomLearner()]
    result = cb.Experiment(environments, learners).run(quiet=True)
    assert len(result.interactions) == 400
    assert set(result.learners["family"]) == {"OneBitClassifier", "Random"}


def test_parameters_are_those_of_the_learner():
    params = CobaLearner(OneBitClassifier(explore=0.5, classes=SHAPES), seed=3).params
    assert (params["family"], params["explore"], params["seed"]) == ("OneBitClassifier", 0.5, 3)
    assert "classes" not in params


def test_pipelines_and_copies():
    model = make_pipeline(Records(64), OneBitClassifier(random_state=0))
    learner = CobaLearner(model)
    assert learner.predict((1.0, 2.0), SHAPES)[2]["decision"].x.n_features == 64
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert other.predict((1.0, 2.0), SHAPES)[0] in SHAPES
    assert not model[-1]._started


def test_bad_input():
    with pytest.raises(ValueError, match="Perceptron learns from the label itself"):
        CobaLearner(Perceptron())
    learner = CobaLearner(Banditron(random_state=0), actions=SHAPES)
    for actions in (None, []):
        with pytest.raises(ValueError, match="at least one action is needed"):
            learner.predict((1.0,), actions)
    action, probability, more = learner.predict((1.0,), SHAPES)
    with pytest.raises(ValueError, match=r"from 0, for wrong, to 1, for right; got 1\.5"):
        learner.learn((1.0,), action, 1.5, probability, **more)
    learner.learn((1.0,), action, 1.0, probability, **more)
    with pytest.raises(ValueError, match="x has 2 features"):
        learner.predict((1.0, 2.0), SHAPES)


def test_a_learner_inside_another_is_not_among_the_parameters():
    params = CobaLearner(BanditReduction(Folklore(B=2.0), 0.5), seed=3).params
    assert params == {"family": "BanditReduction", "gamma": 0.5, "horizon": 10_000, "classes": None,
                      "random_state": None, "seed": 3}  # fmt: skip


def test_an_action_without_a_probability_was_certain():
    weights = []
    for probability in (None, 1.0, 0.5):
        learner = CobaLearner(Banditron(random_state=0), SHAPES)
        learner.learn([1.0, 2.0], "square", 1.0, probability)
        weights.append(learner._running.coef_.tolist())
    assert weights[0] == weights[1] != weights[2]
