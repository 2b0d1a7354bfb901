"""Intervals hold what they promise: at all times, with drift, with heavy weights."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.evaluation import ConfidenceSequence, DifferenceSequence
from onebit.evaluation.intervals import (
    BETS,
    LowerBound,
    log_prior_anytime,
    log_prior_at,
)


def literal_bound(values, prior, alpha):
    """The least of many m for which no bet has won, from the definition."""
    for m in np.linspace(0.0, 1.0, 20_001):
        capital = sum(
            math.exp(p) * math.prod((1.0 + b * x) / (1.0 + b * m) for x in values)
            for p, b in zip(prior, BETS, strict=True)
        )
        if capital <= 1.0 / alpha:
            return m
    return 1.0


@pytest.mark.parametrize("anytime", [True, False])
def test_the_bound_is_the_least_mean_that_is_not_refuted(anytime):
    values = [1.0, 0.0, 3.0, 0.5, 0.0, 1.0, 1.0, 0.0]
    found = LowerBound()
    found.update(values[:3])
    for value in values[3:]:
        found.update(value)
    prior = log_prior_anytime() if anytime else log_prior_at(len(values), 0.3)
    assert found.bound(0.3, anytime=anytime) == pytest.approx(
        literal_bound(values, prior, 0.3), abs=5e-5
    )


def test_priors_are_distributions():
    for prior in (log_prior_anytime(), log_prior_at(1, 0.5), log_prior_at(10**9, 1e-6)):
        assert np.exp(prior).sum() == pytest.approx(1.0, abs=1e-12)


def ever_wrong(X, means, level):
    """Whether the interval at some time does not hold the mean so far; for many runs at once."""
    n = np.arange(1, X.shape[1] + 1)
    so_far = np.cumsum(means, axis=1) / n
    wrong = np.zeros(len(X), dtype=bool)
    for values, claimed in ((X, so_far), (1.0 - X, 1.0 - so_far)):
        capital = np.full(X.shape, -np.inf)
        for prior, b in zip(log_prior_anytime(), BETS, strict=True):
            of_bet = np.cumsum(np.log1p(b * values), axis=1) - n * np.log1p(b * claimed)
            np.logaddexp(capital, prior + of_bet, out=capital)
        wrong |= (capital > -math.log(0.5 * (1.0 - level))).any(axis=1)
    return wrong


@pytest.mark.parametrize("drift", [0.4, pytest.param(0.0, marks=pytest.mark.slow)])
def test_a_sequence_holds_at_all_times(drift):
    """More than 10 % of 300 runs that are wrong at some time would refute a level of 95 %."""
    rng = np.random.default_rng(0)
    means = np.tile(0.5 + drift * np.sin(np.arange(600) / 90), (300, 1))
    X = (rng.random(means.shape) < means).astype(float)
    assert ever_wrong(X, means, 0.95).mean() < 0.1
    # A check that cannot fail would be none: at a level of 20 % many runs are wrong at some time.
    assert ever_wrong(X, means, 0.2).mean() > 0.2


def test_heavy_weights_do_not_fool_the_bounds():
    """A label of probability 0.001 that is always right: its rare bits weigh 1,000 each."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        watched = ConfidenceSequence()
        shown = rng.random(500) < 0.001
        watched.update(np.ones(500), np.where(shown, 1000.0, 0.0))
        wrong += not watched.low <= 1.0 <= watched.high
    assert wrong <= 20


def test_what_is_not_covered_stays_open():
    watched = ConfidenceSequence()
    watched.update([True, False] * 5000, [1.0, 0.0] * 5000)  # the rest weighs nothing
    assert 0.45 < watched.low < 0.5
    assert watched.high == 1.0
    assert watched.mean_weight == 0.5


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.0, 1e6)), min_size=1, max_size=30),
    st.floats(0.05, 0.99),
)
def test_any_bits_and_weights_give_an_interval(pairs, level):
    bits, weights = zip(*pairs, strict=True)
    one, other = ConfidenceSequence(level), ConfidenceSequence(level)
    one.update(bits, weights)
    for pair in pairs:
        other.update(*pair)
    assert 0.0 <= one.low <= one.high <= 1.0
    assert one.interval == pytest.approx(other.interval, abs=1e-9)
    again = ConfidenceSequence.from_dict(json.loads(json.dumps(other.to_dict())))
    assert again.interval == other.interval
    assert (again.n, again.mean) == (other.n, other.mean)


def difference_of(bits, first, share, level=0.95):
    """Return the difference of two policies, of which the first one decides in some share."""
    found = DifferenceSequence(level)
    found.update(bits, first / share, ~first / (1.0 - share))
    return found


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(0.0, 1e6), st.floats(0.0, 1e6)), min_size=1, max_size=30
    ),
    st.floats(0.05, 0.99),
)
def test_any_bits_and_weights_give_a_difference(rows, level):
    one, other, swapped = (DifferenceSequence(level) for _ in range(3))
    one.update(*zip(*rows, strict=True))
    for row in rows:
        other.update(*row)
    swapped.update(*(list(zip(*rows, strict=True))[i] for i in (0, 2, 1)))
    assert -1.0 <= one.low <= one.high <= 1.0
    assert one.interval == pytest.approx(other.interval, abs=1e-9)
    assert swapped.interval == pytest.approx((-one.high, -one.low), abs=1e-9)
    assert swapped.mean == pytest.approx(-one.mean)
    again = DifferenceSequence.from_dict(json.loads(json.dumps(other.to_dict())))
    assert (again.interval, again.n, again.mean) == (other.interval, other.n, other.mean)


def test_policies_that_agree_do_not_differ():
    watched = DifferenceSequence()
    assert watched.interval == (-1.0, 1.0)
    watched.update([True, False] * 5000, 1.0)
    assert watched.mean == 0.0
    assert -0.01 < watched.low <= 0.0 <= watched.high < 0.01
    assert not watched.is_better()


def test_no_policy_is_called_better_if_there_is_no_difference():
    """Looked at after every 25 bits: at some time in at most 1 - level of the runs."""
    called = {0.9: 0, 0.1: 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        first, bits = rng.random(1000) < 0.2, rng.random(1000) < 0.7
        for level in called:
            one, other = DifferenceSequence(level), DifferenceSequence(level)
            for lo in range(0, 1000, 25):
                some = slice(lo, lo + 25)
                weights = first[some] / 0.2, ~first[some] / 0.8
                one.update(bits[some], *weights)
                other.update(bits[some], *weights[::-1])
                if one.is_better() or other.is_better():
                    called[level] += 1
                    break
    assert called[0.9] <= 0.1 * 200
    assert called[0.1] > 0.1 * 200  # it can fail


def test_the_better_policy_is_found():
    rng = np.random.default_rng(0)
    first = rng.random(4000) < 0.2
    bits = rng.random(4000) < np.where(first, 0.9, 0.7)
    assert not difference_of(bits[:50], first[:50], 0.2).is_better()
    found = difference_of(bits, first, 0.2)
    assert found.low > 0.0
    assert found.is_better()
    assert not difference_of(bits, ~first, 0.8).is_better()
    with pytest.raises(ValueError, match="one bit"):
        found.update(2, 1.0)
    with pytest.raises(ValueError, match="at least 0"):
        found.update(True, 1.0, -1.0)
    assert repr(found).startswith("DifferenceSequence(n=4000, mean=0.2")


def test_more_bits_narrow_the_interval():
    bits = np.arange(100_000) % 4 > 0
    widths = []
    for n in (0, 100, 1000, 10_000, 100_000):
        watched = ConfidenceSequence()
        watched.update(bits[:n])
        widths.append(watched.interval.width)
    assert widths[0] == 1.0
    assert all(later < earlier / 2 for earlier, later in pairwise(widths))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.5,), "correct is one bit"),
        ((-0.1,), "correct is one bit"),
        (([True, None],), "correct is one bit"),
        ((True, -1.0), "a weight is"),
        ((True, math.nan), "a weight is"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    watched = ConfidenceSequence()
    with pytest.raises(ValueError, match=words):
        watched.update(*arguments)
    assert watched.n == 0
    with pytest.raises(ValueError, match="level is"):
        ConfidenceSequence(95)
