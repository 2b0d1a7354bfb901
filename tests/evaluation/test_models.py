"""The model that doubly robust estimates take by default."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from onebit.evaluation import Log
from onebit.evaluation.models import Softmax


def loss(W, x, label, correct):
    """Minus the log likelihood of a bit; the last class is that no label is right."""
    scores = np.append(x, 1.0) @ W
    q = np.exp(scores[label]) / np.exp(scores).sum()
    return -math.log(q if correct else 1.0 - q)


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_bit_moves_the_weights_against_the_slope_of_its_loss(correct, make):
    rng = np.random.default_rng(0)
    x, label, weight = np.array([0.5, 0.0, -2.0]), 1, 3.0
    model = Softmax(3, 4)
    model.W[:] = first = rng.normal(size=(4, 5))
    log = Log([label], [0.3], [correct], x=make(x[np.newaxis]), classes=range(4))
    scores = np.exp(np.append(x, 1.0) @ first)
    np.testing.assert_allclose(model.predict(log)[0], scores[:4] / scores.sum(), rtol=1e-12)
    model.learn(log, np.array([weight]))
    for at in np.ndindex(first.shape):
        step = np.zeros(first.shape)
        step[at] = 1e-6
        slope = loss(first + step, x, label, correct) - loss(first - step, x, label, correct)
        slope *= weight / 2e-6
        assert model.S[at] == pytest.approx(1e-12 + slope**2, abs=1e-7)
        moved = -slope / math.sqrt(model.S[at]) / math.sqrt(1.0 + np.count_nonzero(x))
        assert model.W[at] - first[at] == pytest.approx(moved, abs=1e-6)


def test_rows_without_a_bit_teach_nothing():
    model = Softmax(2, 3)
    model.learn(Log([0], [0.5], [None], x=np.ones((1, 2)), classes=range(3)))
    assert not model.W.any()


def test_it_finds_which_labels_are_right_and_that_none_is():
    """Label k is right where feature k is largest; in a fourth of the rows, no label is."""
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(6_000, 3)), rng.integers(3, size=6_000)
    none = x.max(axis=1) < 0.35
    correct = (labels == x.argmax(axis=1)) & ~none
    log = Log(labels, np.full(6_000, 1 / 3), correct, x=np.abs(x) * x, classes=range(3))
    model = Softmax(3, 3)
    model.learn(log[:5_000])
    q = model.predict(log[5_000:])
    assert q[none[5_000:]].sum(axis=1).mean() < 0.6 < 0.9 < q[~none[5_000:]].sum(axis=1).mean()
    found = q[~none[5_000:]].argmax(axis=1) == x[5_000:].argmax(axis=1)[~none[5_000:]]
    assert found.mean() > 0.9
