import numpy as np
import pytest

from onebit.core.example import INDEX, Example
from onebit.numerics.second_order import PENDING, class_inverse, new_inverses, subtract, times


@pytest.mark.parametrize("n", [3, 300])
def test_inverses_equal_those_of_numpy(n):
    """One for each class, over several rewritings; n = 300 takes several tiles."""
    rng = np.random.default_rng(0)
    inverses = new_inverses(2, n, 0.5)
    A = [0.5 * np.eye(n), 0.5 * np.eye(n)]
    for _ in range(3 * PENDING + 5):
        k = rng.integers(2)
        indices = np.sort(rng.choice(n, size=min(n, 5), replace=False)).astype(INDEX)
        z = Example(indices, rng.normal(size=indices.size), n)
        A_inv = class_inverse(inverses, k)
        v = times(A_inv, z)
        dense = np.zeros(n)
        dense[indices] = z.values
        np.testing.assert_allclose(v, np.linalg.solve(A[k], dense), atol=1e-10)
        subtract(A_inv, v, 1 / (1 + dense @ v))
        A[k] += np.outer(dense, dense)
    assert np.array_equal(inverses.base, inverses.base.transpose(0, 2, 1))
