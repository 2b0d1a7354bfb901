"""Learners that learn from a log: as if told one by one, and as if they had decided."""

import numpy as np
import pytest

from onebit import Banditron, Confidit, OneBitClassifier, Perceptron, make_pipeline, play, streams
from onebit.core import Decision
from onebit.evaluation import Log, counterfactual
from onebit.features import Records


def uniform_log(n=9000, seed=0, **columns):
    X, y = streams.synnonsep(n, seed=seed)
    labels = np.random.default_rng(seed).integers(9, size=n)
    return Log(labels, np.full(n, 1 / 9), labels == y, x=X, least=1 / 9, **columns), X, y


@pytest.mark.parametrize(
    "learner",
    [
        Banditron(random_state=3, classes=range(9)),
        Confidit(
            confidence="theory",
            approximation_error=lambda t: 1 / t,
            random_state=3,
            classes=range(9),
        ),
    ],
    ids=["Banditron", "Confidit"],
)
def test_replay_is_learning_one_by_one(learner):
    log, X, _ = uniform_log(60)
    bits = log.correct.copy()
    bits[::7] = np.nan
    one, other = learner, type(learner)(**learner.get_params())
    one.decide(X[[0]])
    chosen, taken = one.replay(X, log.labels, log.probabilities, bits)
    np.testing.assert_array_equal(taken, ~np.isnan(bits))
    other.decide(X[[0]])
    for i in range(60):
        row = X[[i]]
        assert other.policy(row)[0, log.labels[i]] == pytest.approx(chosen[i], abs=1e-12)
        if taken[i]:
            decision = Decision(row, int(log.labels[i]), log.probabilities[i])
            other.learn(decision, correct=bool(bits[i]))
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_rejection_is_as_if_the_learner_had_decided():
    """Over many logs, the accuracy of the rounds kept is that of playing as many rounds."""
    kept, played = [], []
    for seed in range(16):
        log, X, y = uniform_log(2700, seed)
        (found,) = counterfactual(log, Banditron(gamma=0.1, random_state=seed), random_state=seed)
        assert found.method == "rejection"
        kept.append(found.value)
        learner = Banditron(gamma=0.1, random_state=seed, classes=range(9))
        played.append(1 - play(learner, X[: found.rounds], y[: found.rounds]).error_rate)
    error = np.hypot(np.std(kept), np.std(played)) / np.sqrt(16)
    assert abs(np.mean(kept) - np.mean(played)) < 4 * error
    assert np.mean(kept) > 1.5 / 9


def test_weights_judge_a_learner_that_watches():
    log, X, y = uniform_log()
    (found,) = counterfactual(log, Banditron(gamma=0.1, random_state=0), "weights")
    watching, right = Banditron(gamma=0.1, random_state=0, classes=range(9)), 0.0
    for lo in range(0, 9000, 10):
        some = slice(lo, lo + 10)
        right += watching.policy(X[some])[np.arange(10), y[some]].sum() if lo else 10 / 9
        watching.replay(X[some], log.labels[some], log.probabilities[some], log.correct[some])
    assert found.rounds == 9000
    assert found.low <= right / 9000 <= found.high
    rounds, value, low, high = found.curve.T
    assert (np.diff(rounds) > 0).all()
    assert ((low <= value) & (value <= high)).all()
    assert found.learner.coef_.shape == (9, 400)
    assert high[-1] - low[-1] < 0.1


def test_what_is_not_covered_has_no_value():
    X, y = streams.synnonsep(3000, seed=0)
    log = Log()
    play(OneBitClassifier(random_state=0), X, y, log=log)
    (found,) = counterfactual(log, {"wide": Banditron(gamma=0.5, random_state=0)})
    assert found.method == "weights"
    assert found.name == "wide"
    assert np.isnan(found.value)
    assert found.covered < 0.8
    assert "not covered" in str(found)


def test_pipelines_learn_from_records():
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b"], size=400)
    truth = rng.choice(["a", "b"], size=400)
    log = Log(labels, np.full(400, 0.5), truth=truth, x=[{"word": t} for t in truth], least=0.5)
    router = make_pipeline(Records(n_features=64), Banditron(random_state=0))
    (found,) = counterfactual(log, router, "rejection")
    assert found.name.startswith("Banditron")
    assert found.value > 0.7


def test_labels_on_offer_and_pictures():
    log, *_ = uniform_log(600)
    labels = log.labels.tolist()
    among = [
        sorted({k, (k + 1) % 9, (k + 2) % 9}) if i < 300 else None for i, k in enumerate(labels)
    ]
    p = [1 / 3 if offer else 1 / 9 for offer in among]
    log = Log(labels, p, log.correct, x=log.x, classes=range(9), among=among, least=p)
    found = counterfactual(log, [Banditron(random_state=0), Banditron(random_state=0)], "weights")
    assert len({one.name for one in found}) == 2
    assert len(found[0].plot().lines) == 1


def test_bad_arguments_are_refused():
    log, *_ = uniform_log(50)
    with pytest.raises(ValueError, match='"auto", "rejection" or "weights"'):
        counterfactual(log, Banditron(), "magic")
    with pytest.raises(ValueError, match="Perceptron learns from the label, and a log has bits"):
        counterfactual(log, Perceptron())
    bare = Log(log.labels, log.probabilities, log.correct)
    with pytest.raises(ValueError, match="has no x"):
        counterfactual(bare, Banditron())
    unsaid = Log(log.labels, log.probabilities, log.correct, x=log.x)
    with pytest.raises(ValueError, match="rejection needs the least probability"):
        counterfactual(unsaid, Banditron(), "rejection")
    learner = Banditron(classes=range(9))
    with pytest.raises(ValueError, match="correct is 1, 0 or NaN; got 3 in row 0"):
        learner.replay(log.x, log.labels, log.probabilities, np.full(50, 3.0))
    with pytest.raises(ValueError, match=r"got 0\.0 in row 0"):
        learner.replay(log.x, log.labels, np.zeros(50), log.correct)
    with pytest.raises(ValueError, match="probabilities has one number for each of 50 rows"):
        learner.replay(log.x, log.labels, [1.0], log.correct)
