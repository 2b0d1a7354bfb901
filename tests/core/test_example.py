import numpy as np
import pytest
import scipy.sparse as sp
from numba import typeof
from sklearn.base import clone

from onebit import Banditron, OneBitClassifier
from onebit.core.example import rows_of


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array])
def test_kernels_are_not_compiled_anew_for_read_only_arrays(made):
    X = made(np.arange(6.0).reshape(3, 2))
    expected = rows_of(X.copy())
    for array in [X] if made is np.asarray else [X.data, X.indices, X.indptr]:
        array.flags.writeable = False
    found = rows_of(X)
    assert typeof(found) == typeof(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert np.shares_memory(found.values, X if made is np.asarray else X.data)


def test_rows_keep_the_memory_of_a_read_only_array(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((1000, 3)))
    rows = rows_of(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert rows.values.sum() == 3000


@pytest.mark.xdist_group("one_bit_classifier")
def test_rows_are_contiguous_however_they_are_stored():
    """Kernels are compiled for one layout."""
    whole = sp.csr_array(np.arange(12.0).reshape(3, 4))
    X = whole.copy()
    X.data = np.repeat(whole.data, 2)[::2]
    X.indices = np.repeat(whole.indices, 2)[::2]
    rows = rows_of(X)
    assert rows.values.flags.c_contiguous
    assert rows.indices.flags.c_contiguous
    np.testing.assert_array_equal(rows.values, whole.data)
    y = [0, 1, 2]
    for learner in (Banditron(random_state=0), OneBitClassifier(random_state=0)):
        expected = clone(learner).fit(whole, y).coef_
        np.testing.assert_array_equal(learner.fit(X, y).coef_, expected)
