"""Changes in streams, and streams in the order of time."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onebit import streams

N, D = 400, 5


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    return X, np.array(["a", "b", "c", "d"])[rng.integers(4, size=N)]


def storages(X):
    return X, sp.csr_array(X)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


CHANGES = {
    "relabelled": lambda X, y, **when: streams.relabelled(X, y, **when),
    "rescaled": lambda X, y, **when: streams.rescaled(X, y, factor=-3.0, **when),
    "swapped": lambda X, y, **when: streams.swapped(X, y, **when),
}


@pytest.mark.parametrize("name", CHANGES)
def test_before_the_change_all_is_as_it_was_and_after_it_nothing_is(stream, name):
    X, y = stream
    given_X, given_y = X.copy(), y.copy()
    for stored in storages(X):
        X_new, y_new = CHANGES[name](stored, y, at=150, back=300)
        moved = (dense(X_new) != X).any(axis=1) | (y_new != y)
        assert not moved[:150].any()
        assert not moved[300:].any()
        # A row may be zero.
        assert moved[150:300].mean() > 0.98
        assert sp.issparse(X_new) == sp.issparse(stored)
        assert (X_new.dtype, y_new.dtype) == (X.dtype, y.dtype)
        assert (dense(stored) == given_X).all()
        assert (y == given_y).all()


@pytest.mark.parametrize("name", CHANGES)
def test_dense_and_sparse_copies_change_in_the_same_way(stream, name):
    X, y = stream
    for when in ({"at": 0}, {"at": 100, "over": 200, "seed": 3}, {"at": N}):
        expected, found = (CHANGES[name](stored, y, **when) for stored in storages(X))
        assert np.array_equal(expected[0], dense(found[0]))
        assert np.array_equal(expected[1], found[1])
        assert found[0].has_canonical_format if sp.issparse(found[0]) else True


@pytest.mark.parametrize("seed", range(5))
def test_every_label_becomes_another_one(stream, seed):
    X, y = stream
    _, y_new = streams.relabelled(X, y, at=0, seed=seed)
    pairs = set(zip(y.tolist(), y_new.tolist(), strict=True))
    assert sorted(before for before, _ in pairs) == sorted(after for _, after in pairs)
    assert len(pairs) == 4
    assert all(before != after for before, after in pairs)


def test_some_labels_change_among_themselves(stream):
    X, y = stream
    _, y_new = streams.relabelled(X, y, at=100, classes=["d", "b"])
    pairs = set(zip(y[100:].tolist(), y_new[100:].tolist(), strict=True))
    assert pairs == {("a", "a"), ("b", "d"), ("c", "c"), ("d", "b")}


def test_labels_may_be_numbers():
    y = np.array([3, 3, 7, 7])
    assert streams.relabelled(np.eye(4), y, at=1)[1].tolist() == [3, 7, 3, 3]


def test_a_change_is_gradual():
    n = 100_000
    y = np.arange(n) % 2
    _, y_new = streams.relabelled(np.zeros((n, 1)), y, at=20_000, over=40_000, back=80_000)
    share = (y_new != y).reshape(20, -1).mean(axis=1)  # of 5,000 rounds each
    rise = (np.arange(8) + 0.5) / 8
    expected = np.concatenate([np.zeros(4), rise, np.ones(4), 1 - rise[:4]])
    assert np.allclose(share, expected, rtol=0, atol=5 * np.sqrt(0.25 / 5_000))
    assert not share[:4].any()
    assert (share[12:16] == 1).all()


def test_features_are_rescaled(stream):
    X, y = stream
    X_new, _ = streams.rescaled(X, y, at=100, factor=10.0, features=[0, 3])
    assert np.array_equal(X_new[100:], X[100:] * [10, 1, 1, 10, 1])
    whole = np.ones((2, 2), dtype=np.int64)
    assert streams.rescaled(whole, [0, 1], at=1, factor=0.5)[0].tolist() == [[1, 1], [0.5, 0.5]]
    assert streams.rescaled(sp.csr_array(whole), [0, 1], at=1, factor=0.5)[0].sum() == 3.0


@pytest.mark.parametrize("seed", range(5))
def test_every_feature_becomes_another_one(stream, seed):
    X, y = stream
    X_new, _ = streams.swapped(X, y, at=100, seed=seed)
    places = [[j for j in range(D) if np.array_equal(X[100:, i], X_new[100:, j])] for i in range(D)]
    assert sorted(j for (j,) in places) == list(range(D))
    assert all(j != i for i, (j,) in enumerate(places))


@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=40),
    until=st.integers(0, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_label_is_held_back(labels, until, seed):
    y = np.array(labels)
    X = np.arange(y.size, dtype=np.float64).reshape(-1, 1)
    own, others = X[y == 0, 0], X[y != 0, 0]
    if own.size == 0 or until > others.size:
        with pytest.raises(ValueError, match=r"no row has the label 0|until is 0 to"):
            streams.held_back(X, y, label=0, until=until)
        return
    for stored in storages(X):
        X_new, y_new = streams.held_back(stored, y, label=0, until=until, seed=seed)
        rows = dense(X_new)[:, 0]
        assert not (y_new[:until] == 0).any()
        assert np.array_equal(y[rows.astype(int)], y_new)
        assert np.array_equal(rows[y_new == 0], own)
        assert np.array_equal(rows[y_new != 0], others)


def test_a_label_held_back_comes_evenly_later():
    y = np.arange(100_000) % 10
    _, y_new = streams.held_back(np.zeros((y.size, 1)), y, label=3, until=50_000)
    share = (y_new[50_000:] == 3).reshape(10, -1).mean(axis=1)
    assert np.allclose(share, 0.2, rtol=0, atol=5 * np.sqrt(0.16 / 5_000))


@pytest.mark.parametrize(
    ("change", "parameters", "words"),
    [
        (streams.relabelled, {"at": 5}, "at is a round, 0 to 4; got 5"),
        (streams.relabelled, {"at": -1}, "at is a round, 0 to 4; got -1"),
        (streams.relabelled, {"at": 2, "over": -1}, "over is a number of rounds; got -1"),
        (streams.relabelled, {"at": 2, "back": 1}, "back is a round, 2 to 4; got 1"),
        (streams.relabelled, {"at": 2, "classes": [1]}, "at least two labels .* got 1"),
        (streams.relabelled, {"at": 2, "classes": [1, 9]}, "no row has the label 9"),
        (streams.swapped, {"at": 2, "features": [2, 4]}, r"numbered 0 to 3; got \[2, 4\]"),
        (streams.swapped, {"at": 2, "features": [1, 1]}, "at least two features .* got 1"),
        (streams.rescaled, {"at": 2, "factor": 2.0, "features": [-1]}, "numbered 0 to 3"),
        (streams.held_back, {"label": 1, "until": 4}, "until is 0 to 3, .* got 4"),
        (streams.held_back, {"label": 9, "until": 1}, "no row has the label 9"),
    ],
)
def test_what_cannot_be_is_refused(change, parameters, words):
    with pytest.raises(ValueError, match=words):
        change(np.eye(4), [0, 1, 2, 3], **parameters)


def test_rows_and_labels_belong_together():
    with pytest.raises(ValueError, match=r"shapes \(4, 4\) and \(3,\)"):
        streams.relabelled(np.eye(4), [0, 1, 2], at=1)


# Changes by name


@pytest.mark.parametrize("name", streams.CHANGES)
def test_changes_have_a_name_and_a_beginning(name):
    X, y = streams.synsep(900, seed=0)
    labels = np.array([f"label {k}" for k in range(9)])[y]
    asked = streams.StreamSpec("synsep", 900, change=name).open(0)
    ((_, changed),) = asked.batches()
    since = streams.CHANGES[name].begins(900)
    _, of_labels = streams.CHANGES[name].make(X, labels, 0)
    np.testing.assert_array_equal(np.array([f"label {k}" for k in changed]), of_labels)
    if name != "held back":
        np.testing.assert_array_equal(changed[:since], y[:since])
        assert (changed[since:] != y[since:]).any()
    else:
        most = np.bincount(y).argmax()
        assert most not in changed[:since]
        assert most in changed[since:]
    if name == "A-B-A":
        np.testing.assert_array_equal(changed[600:], y[600:])
        assert (changed[300:600] != y[300:600]).all()


def test_an_unknown_change_gets_all_names():
    with pytest.raises(ValueError, match="no change 'sudden': there are all permuted, two"):
        streams.StreamSpec("synsep", change="sudden").open()
