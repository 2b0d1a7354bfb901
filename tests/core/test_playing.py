import numpy as np
import pytest

from onebit import Banditron, Perceptron, play


def test_play_reports_progress():
    X, y = np.eye(4).repeat(10_000, axis=0), np.arange(4).repeat(10_000)
    seen = []
    play(Perceptron(), X, y, progress=lambda history: seen.append(history.rounds))
    assert seen[-1] == 40_000
    assert len(seen) > 1


def test_play_takes_batches():
    X, y = np.eye(4).repeat(10, axis=0), np.arange(4).repeat(10)
    learner = Banditron(random_state=0, classes=range(4))
    batches = ((X[i : i + 7], y[i : i + 7]) for i in range(0, 40, 7))
    expected = play(Banditron(random_state=0), X, y).mistakes
    np.testing.assert_array_equal(play(learner, batches).mistakes, expected)
    with pytest.raises(ValueError, match="does not know its labels"):
        play(Banditron(), [(X, y)])
