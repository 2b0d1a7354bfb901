import numpy as np
import pytest
import scipy.sparse as sp
from numba import typeof

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
