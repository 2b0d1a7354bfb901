import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.core.compiling import kernel
from onebit.numerics.changes import (
    EVERYTHING,
    SOME,
    has_changed,
    listed,
    new_changes,
    observe,
    reset,
    verdict,
)
from references import one_bit_classifier as reference


@kernel
def counted(changes, q, v, label, correct, rounds, found):
    """Count one bit, and note what changed, as the learner does."""
    observe(changes, q, 1.0 - q, v, label, correct, rounds)
    what = verdict(changes, label, correct, rounds)
    for k in range(found.size):
        found[k] = has_changed(changes, what, k)
    if what in (EVERYTHING, SOME):
        reset(changes, what, rounds)
    return what


def bits(seed, K, n):
    """Bits that come out as said, and worse in some stretches: of all labels, or of some."""
    rng = np.random.default_rng(seed)
    labels, v = rng.integers(K, size=n), rng.exponential(size=n)
    q = rng.beta(9.0, 1.0, size=n)
    wrong = np.zeros(n, dtype=bool)
    for start in range(150, n, 350):
        stretch = slice(start, start + int(rng.integers(20, 200)))
        unsure = rng.random() < 0.4
        q[stretch] = np.where(unsure, rng.uniform(0.2, 0.6), q[stretch])
        wrong[stretch] = rng.random(wrong[stretch].size) < rng.uniform(0.4, 1.0)
        if not unsure and rng.random() < 0.7:
            wrong[stretch] &= np.isin(labels[stretch], rng.choice(K, size=2, replace=False))
    return q, v, labels, ~wrong & (rng.random(n) < q)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), K=st.integers(2, 6))
def test_bits_are_counted_as_by_the_reference(seed, K):
    changes, slow, found = new_changes(K), reference.Changes(K), np.zeros(K, dtype=bool)
    for t, (q, v, label, correct) in enumerate(zip(*bits(seed, K, 2_000), strict=True)):
        what = counted(changes, q, v, label, correct, t, found)
        expected, everything = slow.changed(q, 1.0 - q, v, label, correct, t)
        assert np.flatnonzero(found).tolist() == expected.tolist()
        assert (what == EVERYTHING) == everything
        np.testing.assert_allclose(changes.evidence, slow.evidence, atol=1e-9)
        np.testing.assert_allclose(changes.totals[0], slow.familiar, atol=1e-9)


@pytest.mark.parametrize("familiar", [False, True])
def test_a_model_that_grew_unsure_where_much_is_known_is_noticed(familiar):
    """Mistakes that the model expects are no evidence, except where it erred less before."""
    changes, found = new_changes(4), np.zeros(4, dtype=bool)
    rng = np.random.default_rng(0)
    for t in range(1_000):
        counted(changes, 0.95, 1.0, t % 4, rng.random() < 0.95, t, found)
    v = 1.0 if familiar else 2.0
    for t in range(1_000, 1_060):
        counted(changes, 0.4, v, t % 4, rng.random() < 0.3, t, found)
    assert [change.label for change in listed(changes, list("abcd"))] == [None] * familiar


def test_two_labels_that_changed_are_told_from_all():
    for some, n_found in ((2, 2), (8, 1)):
        changes, found = new_changes(8), np.zeros(8, dtype=bool)
        for t in range(1_000):
            counted(changes, 0.97, 1.0, t % 8, t % 33 > 0, t, found)
        for t in range(1_000, 1_200):
            counted(changes, 0.97, 2.0, t % 8, t % 8 >= some, t, found)
            if changes.n_seen:
                break
        assert len({change.label for change in listed(changes, list("abcdefgh"))}) == n_found
