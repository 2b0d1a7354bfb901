"""The hedge against a constant label: the label it takes, and its share."""

import numpy as np
import pytest

from onebit.numerics.constant import (
    RIGHT,
    ROUNDS,
    constant_label,
    forget_rates,
    new_rates,
    rate,
    share_of_constant,
)


def highest_upper_end(labels, offer):
    right, rounds = labels[offer].T
    alpha, n = 1 + right, len(offer) + rounds
    mean = alpha / n
    return offer[np.argmax(mean + 2.0 * np.sqrt(mean * (1 - mean) / (n + 1)))]


@pytest.mark.parametrize("n_labels", [2, 9, 40])
def test_constant_label_is_that_of_the_highest_upper_end_whatever_was_asked_before(n_labels):
    """Rounds, offers of other sizes, labels and all that are forgotten, and rates from a file."""
    rng = np.random.default_rng(n_labels)
    rates, best = new_rates(n_labels), set()
    for t in range(600):
        label = rng.integers(n_labels)
        rate(rates, 0, None, label, int(rng.random() < 0.1 + 0.02 * label))
        if t % 97 == 96:
            forget_rates(rates, -1 if t % 2 else label)
        if t % 151 == 150:
            rates.labels[:, ROUNDS] += 3.0
            rates.labels[:, RIGHT] += rng.integers(4, size=n_labels)
        size = n_labels if t % 3 else rng.integers(1, n_labels + 1)
        offer = np.sort(rng.choice(n_labels, size, replace=False))
        best.add(constant_label(rates, offer))
        assert constant_label(rates, offer) == highest_upper_end(rates.labels, offer)
        every = np.arange(n_labels)
        assert constant_label(rates, None) == highest_upper_end(rates.labels, every)
    assert len(best) > 1


def test_share_is_zero_where_rounding_would_take_it():
    rates = new_rates(9)
    rates.differed[()] = 1
    shares = []
    for right in range(0, 200, 5):
        rates.ways[0] = right, 200
        shares.append(share_of_constant(rates, 9))
    last = shares.index(0.0)
    assert 0 < last < len(shares) - 1
    assert (np.diff(shares[:last]) < 0).all()
    assert min(shares[:last]) < 1e-9
    assert not any(shares[last:])


@pytest.mark.parametrize("name", ["labels", "ways"])
def test_nothing_was_right_more_often_than_it_was_chosen(name):
    rates = new_rates(3)
    getattr(rates, name)[1] = 2.0, 2.0
    rates.check()
    getattr(rates, name)[1, RIGHT] = 2.1
    with pytest.raises(ValueError, match=f"{name} has more right rounds than rounds"):
        rates.check()
