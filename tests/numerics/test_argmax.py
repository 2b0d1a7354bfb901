import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit.numerics.argmax import argmax, argmax_except


@settings(deadline=None)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.5]), min_size=2, max_size=8), st.data())
def test_argmax_takes_the_lowest_of_ties(scores, data):
    scores = np.array(scores)
    assert argmax(scores) == np.argmax(scores)
    excluded = data.draw(st.integers(0, len(scores) - 1))
    masked = scores.copy()
    masked[excluded] = -np.inf
    assert argmax_except(scores, excluded) == np.argmax(masked)
