"""What bits tell of single labels, of confusions, of confidence and of a log's probabilities."""

import math

import numpy as np
import pytest

from onebit import Banditron, play, streams
from onebit.evaluation import Log, by_label, calibration, check_probabilities, confusion, estimate


@pytest.fixture(scope="module")
def played():
    X, y = streams.synnonsep(6000, seed=0)
    log = Log()
    learner = Banditron(gamma=0.3, random_state=0, classes=range(9))
    play(learner, X, y, log=log)
    return log, X, y, learner


def test_labels(played):
    log, _, y, _ = played
    results = by_label(log)
    assert [one.label for one in results] == list(range(9))
    held = []
    for k, one in enumerate(results):
        chosen = log.labels == k
        assert (one.shown, one.right) == (chosen.sum(), (chosen & (y == k)).sum())
        assert one.precision == one.right / one.shown
        held.append(one.share_interval.low <= (y == k).mean() <= one.share_interval.high)
        recall = one.right / (y == k).sum()
        held.append(one.recall_interval.low <= recall <= one.recall_interval.high)
        assert one.precision_interval.low < one.precision < one.precision_interval.high
        assert one.recall == pytest.approx(recall, abs=0.25)
    assert np.mean(held) > 0.9


def test_a_label_that_is_never_chosen_is_unknown():
    log = Log(["a"] * 50, [1.0] * 50, [True] * 50, classes=["a", "b"])
    first, second = by_label(log)
    assert first.precision == 1.0
    assert second.shown == 0
    assert math.isnan(second.precision)
    assert math.isnan(second.share)
    assert math.isnan(second.recall)
    assert second.share_interval == (0.0, 1.0)
    assert second.recall_interval == (0.0, 1.0)


def test_confusion(played):
    log, X, y, learner = played
    found, predicted = confusion(log, learner, greedy=True), learner.predict(X)
    truth = np.array([[((predicted == j) & (y == k)).mean() for k in range(9)] for j in range(9)])
    np.testing.assert_allclose(found.chosen, [(predicted == j).mean() for j in range(9)])
    assert ((found.low <= truth) & (truth <= found.high)).mean() > 0.95
    assert np.nanmax(np.abs(found.share - truth)) < 0.05
    with pytest.raises(ValueError, match="has a bit"):
        confusion(Log(["a"], [1.0], classes=["a", "b"]), "a")


def test_calibration():
    rng = np.random.default_rng(0)
    claimed = rng.random(5000)
    labels, p = ["a"] * 5000, np.ones(5000)
    honest = calibration(Log(labels, p, rng.random(5000) < claimed, confidence=claimed))
    assert honest.verdict.startswith("honest")
    assert len(honest.bins) == 10
    assert sum(one.n for one in honest.bins) == 5000
    assert honest.error < 0.05
    sure = calibration(Log(labels, p, rng.random(5000) < claimed**2, confidence=claimed))
    assert sure.verdict == "too sure"
    modest = calibration(Log(labels, p, rng.random(5000) < claimed**0.5, confidence=claimed))
    assert modest.verdict == "too modest"
    assert sure.error > 3 * honest.error
    same = calibration(Log(labels[:9], p[:9], [True] * 9, confidence=[0.5] * 9))
    assert len(same.bins) == 1
    assert "confidence" in honest.plot().get_xlabel()
    with pytest.raises(ValueError, match="both a confidence and a bit"):
        calibration(Log(labels, p, np.ones(5000)))
    with pytest.raises(ValueError, match="bins is"):
        calibration(Log(labels, p, np.ones(5000), confidence=claimed), bins=0)


def test_wrong_probabilities_are_noticed(played):
    log, _, _, learner = played
    assert check_probabilities(log).passed
    p = log.probabilities
    for claimed in (np.full(p.size, 0.2), 0.5 * p + 0.2, np.ones(p.size)):
        wrong = Log(log.labels, claimed, log.correct, least=min(claimed.min(), 1 / 30))
        assert not check_probabilities(wrong).passed
    assert "all probabilities are 1" in check_probabilities(wrong).warnings[-1]
    # All labels are about as frequent: that they are not uniform for each x, a policy shows.
    even = Log(log.labels, np.full(p.size, 1 / 9), log.correct, x=log.x, least=1 / 9)
    assert check_probabilities(even).passed
    assert "not those that labels" in estimate(even, learner).warnings[0]
    shares = np.tile([0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05], (p.size, 1))
    whole = Log(log.labels, shares[0, log.labels], policy=shares)
    assert sum(not one.passed for one in check_probabilities(whole).labels) > 3
    # What only the probabilities of the chosen labels are known of can only be too frequent.
    one = Log([0] * 100, [0.5] * 100, classes=[0, 1])
    assert [label.passed for label in check_probabilities(one).labels] == [False, True]
