import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from onebit import Banditron, Perceptron, make_pipeline, play
from onebit.features import Records


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


def test_what_is_no_stream_is_refused():
    X, y = np.eye(4), np.arange(4)
    learner = Banditron(random_state=0, classes=range(4))
    for stream in (X, sp.csr_array(X), pd.DataFrame(X), "synsep", None):
        with pytest.raises(ValueError, match="y is missing"):
            play(learner, stream)
    for stream in ([X, y], [(X, y, y)], {"X": X}, X.tolist()):
        with pytest.raises(ValueError, match="a batch is a pair"):
            play(learner, stream)
    for other in (Banditron, 3, make_pipeline(Records(8), Banditron())):
        with pytest.raises(ValueError, match="play takes a learner"):
            play(other, X, y)
    assert not hasattr(learner, "classes_")
