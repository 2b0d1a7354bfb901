"""Arrays of float32 are played in parts, and as their copies in float64 would be."""

import tracemalloc

import numpy as np
import pytest

from onebit import Banditron, play
from onebit.core import example
from onebit.core.blocks import blocks


@pytest.fixture
def stream(monkeypatch):
    monkeypatch.setattr(example, "CONVERTED_VALUES", 100)  # parts of 25 rows
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    return X, np.argmax(X, axis=1)


def learner():
    return Banditron(gamma=0.2, classes=range(4), random_state=0)


def rounds_of(X, y):
    """Return what every way to give many rows says of them, and the weights at the end."""
    one = learner()
    yield play(one, X, y).mistakes
    one.partial_fit(X[:60], y[:60]).teach(X[60:120], y[60:120])
    decisions = one.decide_many(X[:30])
    yield [decision.label for decision in decisions]
    yield [one.decide(x).x.values for x in X[:3]]
    yield [decision.x.values for decision in decisions]
    p = np.full(50, 0.25)
    yield from one.replay(X[:50], y[:50], p, np.ones(50))
    yield from (one.predict(X), one.policy(X), one.policy(X[:3]), one.decision_function(X))
    one.set_limits(max_exploration=0.5)
    yield from (one.policy(X), play(one, X, y).mistakes, one.coef_)
    yield learner().fit(X, y).coef_


def test_rounds_are_those_of_float64(stream):
    X, y = stream
    for ours, theirs in zip(rounds_of(X, y), rounds_of(X.astype(float), y), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("stored", [np.asfortranarray, lambda X: X[::2], lambda X: X.astype(">f4")])
def test_arrays_that_are_stored_in_other_ways(stream, stored):
    X, y = stored(stream[0]), stream[1]
    y = y[: len(X)]
    expected = learner().fit(X.astype(float), y).coef_
    np.testing.assert_array_equal(learner().fit(X, y).coef_, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2e30, -2e30])
def test_values_are_refused_before_any_round(stream, value):
    X, y = stream
    X[199, 3] = value
    errors = []
    for given in (X, X.astype(float)):
        one = learner()
        with pytest.raises(ValueError, match="row 199 of X") as caught:
            play(one, given, y)
        assert not one._started
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_an_array_is_not_copied_as_a_whole():
    X = np.random.default_rng(0).normal(size=(16_000, 512)).astype(np.float32)
    y = np.argmax(X[:, :4], axis=1)
    play(learner(), X[:5], y[:5])  # compiles
    tracemalloc.start()
    play(learner(), X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.4 * X.nbytes


def test_blocks_have_at_most_so_many_rows():
    sizes = [hi - lo for lo, hi in blocks(1_000, most=100)]
    assert sum(sizes) == 1_000
    assert max(sizes) == 100
    assert [hi - lo for lo, hi in blocks(5, [2], most=1)] == [1] * 5
