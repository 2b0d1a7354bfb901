"""Inconsistent input is refused by an error that names it; compiled code never sees it."""

import os
import pickle
import re
import sys
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from onebit import SOBA, Banditron, Decision, Perceptron, play
from onebit.core.example import INDEX, Example, dense
from processes import run_python

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 5.0, 6.0]])
LABELS = [0, 1, 2]


def learner():
    return Banditron(classes=LABELS, random_state=0)


# Arrays


def edited(storage=sp.csr_array, **arrays):
    """A sparse matrix of which some arrays were replaced after it was made."""
    X = storage(DENSE)
    for name, value in arrays.items():
        setattr(X, name, value)
    return X


SPARSE = {
    "indptr beyond the data": edited(indptr=np.array([0, 2, 3, 10**9])),
    "indptr that goes back": edited(indptr=np.array([0, 3, 2, 6])),
    "indptr below zero": edited(indptr=np.array([-5, 2, 3, 6])),
    "indptr too short": edited(indptr=np.array([0, 2])),
    "indptr too long": edited(indptr=np.array([0, 2, 3, 6, 6, 6])),
    "data shorter than indices": edited(data=np.ones(4)),
    "an index of 2^32 + 1": edited(indices=np.array([0, 2**32 + 1, 1, 0, 1, 2])),
    "an index below zero": edited(indices=np.array([0, -1, 1, 0, 1, 2], dtype=np.int32)),
    "an index too large": edited(indices=np.array([0, 7, 1, 0, 1, 2], dtype=np.int32)),
    "indices that are floats": edited(indices=np.array([0, 2, 1, 0, 1, 2.0])),
    "more rows than there are": edited(_shape=(10**6, 3)),
    "fewer features than there are": edited(_shape=(3, 2)),
    "csc with indptr beyond the data": edited(sp.csc_array, indptr=np.array([0, 2, 4, 10**9])),
    "csc with an index too large": edited(sp.csc_array, indices=np.full(6, 10**8)),
    "coo with an index too large": edited(
        sp.coo_array, coords=(np.full(6, 10**8), np.zeros(6, int))
    ),
}


@pytest.mark.parametrize("X", SPARSE.values(), ids=SPARSE)
def test_sparse_matrix_that_is_not_sound_is_refused(X):
    X = pickle.loads(pickle.dumps(X))
    started = learner().partial_fit(DENSE, LABELS)
    weights = started.coef_
    for use in (
        lambda: learner().partial_fit(X, LABELS),
        lambda: play(started, X, LABELS),
        lambda: started.policy(X),
    ):
        with pytest.raises(ValueError, match=r"not a sound sparse matrix|has a feature"):
            use()
    np.testing.assert_array_equal(started.coef_, weights)


def row(**arrays):
    X = sp.csr_array(DENSE[[2]])
    for name, value in arrays.items():
        setattr(X, name, value)
    return X


@pytest.mark.parametrize(
    "x",
    [
        row(indptr=np.array([0, 10**9])),
        row(indptr=np.array([2, 1])),
        row(indptr=np.array([0])),
        row(data=np.ones(2)),
        row(indices=np.array([0, 1, 2**32 + 2])),
        row(indices=np.array([0, 1, -1])),
        row(indices=np.array([0, 1, 7], dtype=np.int32)),
        Example(np.arange(3, dtype=np.uint32), np.ones(3), -3),
        Example([0, 1, 2], [1.0, 1.0, 1.0], 3),
        Example(np.arange(3, dtype=np.uint32), np.ones(3), "3"),
        Example(np.array([0, 1, 9], dtype=np.uint32), np.ones(3), 3),
    ],
    ids=repr,
)
def test_sparse_row_that_is_not_sound_is_refused(x):
    for some in (learner(), learner().partial_fit(DENSE, LABELS)):
        for use in (some.decide, lambda x: some.learn(Decision(x, 0, 0.5), correct=True)):  # noqa: B023
            with pytest.raises(ValueError, match=r"sound|has a feature|an Example has"):
                use(x)


def test_sparse_row_is_what_indptr_says():
    """SciPy leaves room behind the last value of a matrix."""
    X = sp.csr_array(DENSE[[0]])
    X.indices = np.append(X.indices, [1]).astype(np.int32)
    X.data = np.append(X.data, [9.0])
    decision = learner().decide(X)
    assert decision.x.indices.tolist() == [0, 2]


class Liar(np.ndarray):
    """An array that says it has three features."""

    @property
    def shape(self):
        return (len(np.asarray(self)), 3)


def test_array_whose_shape_lies_is_refused():
    code = """
import numpy as np
from test_validation import Liar, learner, DENSE, LABELS
started = learner().partial_fit(DENSE, LABELS)
for use in (lambda X: started.policy(X), lambda X: started.partial_fit(X, LABELS)):
    try:
        use(np.ones((3, 10**6)).view(Liar))
    except ValueError as error:
        assert "says that it has 3 features" in str(error), error
    else:
        raise AssertionError("it was believed")
"""
    run_python(code, environment=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=True)


COMPLEX = {
    "array": np.array([1j, 2, 3]),
    "list": [1j, 2, 3],
    "numbers of NumPy": [np.complex128(1j), 2, 3],
    "objects": np.array([np.complex128(1j), 2, 3], dtype=object),
    "sparse row": sp.csr_array(np.array([[1j, 2, 3]])),
}


@pytest.mark.parametrize("x", COMPLEX.values(), ids=COMPLEX)
def test_complex_features_are_refused(x):
    with pytest.raises(ValueError, match=r"complex"):
        learner().decide(x)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        learner().partial_fit(x if sp.issparse(x) else [x], [0])


DATES = np.array([["2020-01-01", "2021-01-01"], ["2022-01-01", "NaT"]], dtype="M8[D]")


@pytest.mark.parametrize(
    "X",
    [
        DATES,
        DATES - DATES[0, 0],
        DATES.tolist(),
        pd.DataFrame(DATES),
        pd.DataFrame({"at": DATES[0]}),
    ],
    ids=["dates", "times between", "list", "frame", "one column"],
)
def test_dates_are_no_features(X):
    """A date that is missing would be a number like any other."""
    row = X.iloc[0] if isinstance(X, pd.DataFrame) else X[0]
    with pytest.raises((TypeError, ValueError), match=r"dates or times|real number, not"):
        learner().decide(row)
    with pytest.raises((TypeError, ValueError), match=r"dates or times|real number, not"):
        learner().partial_fit(X, LABELS[:2])


def test_masked_values_are_refused():
    X = np.ma.array(DENSE, mask=DENSE > 5)
    for use in (
        lambda: learner().partial_fit(X, LABELS),
        lambda: learner().decide(X[2]),
        lambda: learner().partial_fit(DENSE, np.ma.array(LABELS, mask=[0, 1, 0])),
    ):
        with pytest.raises(ValueError, match="masked array"):
            use()
    learner().decide(np.ma.array(DENSE[0], mask=False))


def test_writing_to_a_decision_does_not_reach_the_learner():
    started = pickle.loads(pickle.dumps(learner().partial_fit(DENSE, LABELS)))
    decision = started.decide(DENSE[2])
    with pytest.raises(ValueError, match="read-only"):
        decision.x.indices[0] = 5
    assert started.decide(DENSE[2]).x.indices.tolist() == [0, 1, 2]


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        [b"a", b"b"],
        [timedelta(1), timedelta(2)],
        [datetime(2020, 1, 1), datetime(2021, 1, 1)],
        np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
        np.array([1, 2], dtype="m8[s]"),
        [1j, 2j],
        [None, 1],
        [1, "a"],
        np.array([1, "a"], dtype=object),
        [0.5, 1.5],
        [float("nan"), 1.0],
        [(1, 0), (0, 1)],
        [2**70, 1],
        [2**63, -1],
        ["a", "a\0"],
    ],
    ids=repr,
)
def test_labels_that_cannot_be_told_or_stored_are_refused(labels):
    X = DENSE[:2]
    for use in (
        lambda: SOBA(classes=labels).decide(X[0]),
        lambda: SOBA().fit(X, labels),
        lambda: play(SOBA(), X, labels),
    ):
        with pytest.raises(ValueError, match=r"label|1d array|NaN or infinity|Complex data"):
            use()


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b"],
        [1, 2],
        [True, False],
        [1.0, 2.0],
        np.array(["a", "b"], dtype=object),
        np.array([1, 2], dtype=object),
        np.array([3, 4], dtype=np.uint8),
        [2**53, 2**53 + 1],
        np.array([1, 2], dtype=np.float16),
        np.array(["a", "a\0"], dtype=object),
        ["\ud800", "\U0001f600"],
    ],
    ids=ascii,
)
def test_labels_that_are_allowed_are_told_and_stored(labels, tmp_path):
    some = SOBA(classes=labels, random_state=0)
    decision = some.decide(DENSE[0])
    some.learn(decision, truth=labels[1])
    some.save(tmp_path / "soba.safetensors")
    assert some.fit(DENSE[:2], labels).classes_.tolist() == sorted(labels)


def test_large_labels_do_not_merge():
    some = SOBA(classes=[2**53, 2**53 + 1])
    with pytest.raises(ValueError, match=f"unknown label {2**53 + 2}"):
        some.partial_fit(DENSE[:1], np.array([2**53 + 2], dtype=np.uint64))
    with pytest.raises(ValueError, match="unknown label"):
        SOBA(classes=[5, 2**53 + 1]).partial_fit(DENSE[:1], np.array([2.0**53]))


# Rows of any kind


@pytest.mark.parametrize(
    "convert", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array]
)
def test_sparse_rows_of_any_kind(convert):
    x = np.array([0.0, 2.0, 0.0, -1.0])
    learner = Perceptron(classes=[0, 1])
    learner.learn(learner.decide(convert(x[None])), truth=1)
    np.testing.assert_array_equal(learner.coef_, [-x, x])


def test_many_labels_in_a_small_batch_are_no_warning():
    learner = Banditron(classes=range(40), random_state=0)
    learner.partial_fit(np.ones((30, 2)), np.arange(30))
    assert learner.coef_.shape == (40, 2)


def test_one_dimensional_sparse_array():
    x = np.array([0.0, 2.0, 0.0, -1.0])
    learner = Perceptron(classes=[0, 1])
    learner.learn(learner.decide(sp.coo_array(x)), truth=1)
    np.testing.assert_array_equal(learner.coef_, [-x, x])


def test_corrupt_sparse_rows_are_refused():
    """Indices outside of the matrix would reach other memory."""
    X = sp.csr_array(np.eye(3))
    learner = Perceptron(classes=[0, 1, 2]).fit(X, [0, 1, 2])
    X.indices[1] = 7
    with pytest.raises(ValueError, match="row 1 of X has a feature 7"):
        learner.partial_fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="feature 7"):
        learner.decide(Example(np.array([7], dtype=INDEX), np.ones(1), 3))
    for indices, values in [
        (np.array([1]), np.ones(1)),
        (np.array([0, 50], dtype=INDEX), np.ones(1)),
        (np.array([1], dtype=INDEX), np.ones(2)),
    ]:
        with pytest.raises(ValueError, match="as many uint32 indices as float64 values"):
            learner.decide(Example(indices, values, 3))


def test_strided_examples_are_straightened():
    learner = Perceptron(classes=[0, 1])
    indices, values = np.arange(6, dtype=INDEX)[::2], np.arange(12.0)[::4]
    learner.learn(learner.decide(Example(indices, values, 6)), truth=1)
    np.testing.assert_array_equal(learner.coef_[1], [0, 0, 4, 0, 8, 0])


@pytest.mark.parametrize("kind", [list, np.array])
def test_integers_beyond_all_floats_are_refused(kind):
    learner = Banditron(classes=[0, 1])
    x = kind([10**400, 1])
    for refused in (lambda: learner.decide(x), lambda: learner.partial_fit([x], [0])):
        with pytest.raises(ValueError, match=r"too large for a float: values beyond 1e\+30"):
            refused()


@pytest.mark.parametrize("storage", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_a_row_may_have_any_sparse_format(storage):
    started = learner().partial_fit(DENSE, LABELS)
    decision = started.decide(sp.csr_array(DENSE[:1]).asformat(storage))
    np.testing.assert_array_equal(dense(decision.x), DENSE[0])


@pytest.mark.parametrize("storage", ["coo", "csc", "csr", "bsr"])
@pytest.mark.parametrize(("kind", "value"), [(np.int8, 100), (np.uint8, 200), (np.bool_, True)])
def test_duplicates_of_small_integers_are_added_as_numbers(storage, kind, value):
    """SciPy adds them as what they are, so that 100 and 100 made -56."""
    places = np.zeros(2, int), np.zeros(2, int)
    X = sp.coo_array((np.array([value, value], kind), places), shape=(1, 3))
    if storage != "coo":
        of_storage = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[storage]
        indptr = [0, 2, 2, 2] if storage == "csc" else [0, 2]
        data = X.data if storage != "bsr" else X.data.reshape(2, 1, 1)
        X = of_storage((data, np.zeros(2, int), indptr), shape=(1, 3))
    started = learner().partial_fit(DENSE, LABELS)
    for decision in (started.decide(X), *started.decide_many(X)):
        np.testing.assert_array_equal(dense(decision.x), [2.0 * value, 0.0, 0.0])


def test_a_row_that_says_it_is_many_is_refused():
    started, row = learner().partial_fit(DENSE, LABELS), sp.csr_array(DENSE[:1])
    row._shape = (1001, DENSE.shape[1])
    with pytest.raises(ValueError, match="not a sound sparse matrix: indptr has 2 numbers"):
        started.decide(row)


def test_a_row_whose_values_are_a_table_is_refused():
    started, row = learner().partial_fit(DENSE, LABELS), sp.csr_array([[0.0, 0.0, 3.0]])
    row.data = row.data.reshape(1, 1)
    with pytest.raises(ValueError, match=r"not a sound sparse matrix: data is an array \[1, 1\]"):
        started.decide(row)


# Records, which a learner does not take

RECORD = {"subject": "Card charged twice", "amount": 12.5}
LINE = re.escape("onebit.features: onebit.make_pipeline(Records(), OneBitClassifier(...))")


@pytest.mark.parametrize(
    "x",
    [RECORD, "Card charged twice", b"Card", pd.Series(RECORD), ["Card", 1.0], np.array(["Card"])],
    ids=repr,
)
def test_a_record_is_told_of_records(x):
    model = learner()
    with pytest.raises((TypeError, ValueError), match=LINE):
        model.decide(x)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    "X", [[RECORD], ["Card charged twice"], "Card", pd.DataFrame([RECORD]), np.array([RECORD])]
)
def test_records_are_told_of_records(X):
    new, started = learner(), learner().partial_fit(DENSE, LABELS)
    calls = [
        lambda: new.decide_many(X),
        lambda: new.partial_fit(X, [0]),
        lambda: new.fit(X, [0]),
        lambda: new.policy(X),
        lambda: new.replay(X, [0], [0.5], [1]),
        lambda: new.teach(X, [0]),
        lambda: started.predict(X),
        lambda: started.policy(X),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=LINE):
            call()
    assert not hasattr(new, "classes_")


@pytest.mark.parametrize("X", [[1.0, 2.0], [[1.0, 2.0], [3.0]], [[np.nan, 1.0]], [["1", "x y"]]])
def test_the_first_that_is_no_number_is_named(X):
    """Numbers as texts are numbers; what has other faults is not told of records."""
    with pytest.raises(ValueError, match=r"2D array|inhomogeneous|NaN|^X contains 'x y'"):
        learner().decide_many(X)


NOT_A_TIME = [np.datetime64("NaT", "s"), np.timedelta64("NaT", "s"), pd.NaT]


@pytest.mark.parametrize("missing", NOT_A_TIME, ids=["date", "duration", "pandas"])
@pytest.mark.parametrize("kind", [list, lambda row: np.array(row, dtype=object)])
def test_a_missing_time_among_objects_is_refused(missing, kind):
    """NumPy took it as the number -9.2e18."""
    learner = Banditron(classes=[0, 1])
    with pytest.raises(ValueError, match="x has a missing value, NaT, in row 0"):
        learner.decide(kind([1.0, missing]))
    rows = [kind([1.0, 2.0]), kind([1.0, missing])]
    for X in (rows, pd.DataFrame(rows, dtype=object)):
        with pytest.raises(ValueError, match="X has a missing value, NaT, in row 1"):
            learner.partial_fit(X, [0, 1])
    assert not learner._started


def test_a_missing_integer_of_pandas_is_named():
    """In a row of a table, where its column has a type of its own, too."""
    table = pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([None, 1], "Int64")})
    learner = Banditron(classes=[0, 1])
    for row in (table.iloc[0], table.iloc[[0]], [1.0, pd.NA]):
        with pytest.raises(ValueError, match=r"has a missing value, <NA>, in row 0|contains NaN"):
            learner.decide(row)
    assert not learner._started


def test_a_time_among_objects_is_refused():
    """NumPy took it as a number of days, or of whatever its unit is."""
    with pytest.raises(ValueError, match="X contains a date or time, in row 1"):
        learner().decide_many(np.array([[1.0], [np.datetime64("2026-01-01")]], dtype=object))


@pytest.mark.parametrize("kind", [list, tuple, lambda labels: np.array(labels, dtype=object)])
def test_bools_and_numbers_are_labels_of_two_kinds(kind):
    """True became 1."""
    with pytest.raises(ValueError, match="all of one kind; classes contains True and 2"):
        Banditron(classes=kind([True, 2])).decide([1.0])
    with pytest.raises(ValueError, match="all of one kind; y contains True and 2"):
        Banditron().fit([[1.0], [2.0]], kind([2, True]))
    assert Banditron(classes=kind([True, False])).decide([1.0]).label in (True, False)


def test_classes_that_are_not_a_list_are_shown():
    with pytest.raises(ValueError, match=r"classes is a list of labels.* got 'ab'$"):
        Banditron(classes="ab").decide([1.0])
