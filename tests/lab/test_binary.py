"""Confidit on rows of zeros and ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import play, streams
from onebit.lab.binary import BinaryConfidit
from paths import assert_same_path, continuous
from references import confidit as references


class Reference(references.Confidit):
    def point(self, x):
        return (x != 0).astype(float)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("eta", [0.1, 100.0])
def test_it_is_the_paper_s_on_rows_that_are_not_scaled(eta, storage):
    X, y = continuous(3, d=12, n=300)
    learner = BinaryConfidit(eta, random_state=0)
    assert_same_path(learner, Reference(12, 3, eta), X, y, storage)


def test_values_do_not_matter_and_other_versions_are_refused():
    X, y = streams.synsep(500, seed=0)
    mistakes = {play(BinaryConfidit(10.0), c * X, y).n_mistakes for c in (0.1, 1.0, 7.0)}
    assert len(mistakes) == 1
    with pytest.raises(ValueError, match="diagonal covariance, and no projection"):
        play(BinaryConfidit(projection=True), X, y)
