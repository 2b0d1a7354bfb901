import numpy as np
from scipy.stats import chisquare

from onebit.core.generator import draw, new_generator
from onebit.numerics.exploration import gamma_greedy


def test_policy_matches_what_is_drawn():
    rng = new_generator(1)
    p, scores = np.empty(5), np.array([0.0, 3.0, 1.0, 3.0, 2.0])

    from typing import NamedTuple

    class State(NamedTuple):
        gamma: np.ndarray

    assert gamma_greedy(State(np.array(0.3)), 0, scores, None, p) == 1
    np.testing.assert_allclose(p, [0.06, 0.76, 0.06, 0.06, 0.06])
    counts = np.bincount([draw(rng, p) for _ in range(20_000)], minlength=5)
    assert chisquare(counts, 20_000 * p).pvalue > 1e-6
