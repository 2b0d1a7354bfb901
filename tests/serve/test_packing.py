"""How much of an array a packed one takes; tests/serve/test_many_models.py has what comes back."""

import numpy as np
import pytest

from onebit.serve.packing import LEAST_BYTES, packed, unpacked

ROW = np.random.default_rng(0).normal(size=50)


@pytest.mark.parametrize(
    "array",
    [
        np.tile(ROW, (200, 1)),
        np.tile(ROW, (200, 1)).reshape(20, 10, 50),
        np.tile(ROW.astype(np.float32), (200, 1)),
        np.arange(10_000),
        np.full(10_000, 0.1),
    ],
    ids=["rows", "rows of matrices", "rows of 4 bytes", "numbers in order", "one number"],
)
def test_what_repeats_is_kept_once(array):
    found = packed(array)
    assert found.size < array.nbytes / 20
    np.testing.assert_array_equal(unpacked(found), array)


@pytest.mark.parametrize(
    ("n", "is_packed"), [(LEAST_BYTES // 8 - 1, False), (LEAST_BYTES // 8, True)]
)
def test_a_small_array_is_kept_as_it_is(n, is_packed):
    assert (packed(np.zeros(n)).size < n) == is_packed


def test_what_differs_from_row_to_row_is_kept_as_it_is():
    array = np.random.default_rng(0).normal(size=(500, 50))
    content = array.tobytes()
    assert packed(array).buffers == [content]
    half = np.where(np.arange(10_000) % 4 < 2, 0, np.arange(10_000))
    assert packed(half).size < half.nbytes * 1.1  # never more than the array itself
