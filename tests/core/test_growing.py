import numpy as np

from onebit.core.growing import Growing


def test_growing_rows_are_what_was_appended():
    rows = np.random.default_rng(0).normal(size=(100, 3))
    growing = Growing(rows[:5].copy())
    for row in rows[5:]:
        growing.append(row)
    np.testing.assert_array_equal(growing.rows, rows)
    empty = Growing(np.zeros(0, dtype=np.int64))
    empty.append(7)
    assert empty.rows.dtype == np.int64
    assert empty.rows.tolist() == [7]
