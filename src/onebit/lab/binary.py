"""Confidit on rows of zeros and ones, as in its paper, which are not of unit length."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onebit.core import Kernels, lean_kernel
from onebit.learners.confidit import Confidit, learn_diagonal, policy
from onebit.numerics.linear import products, with_values


@lean_kernel
def score_binary(state, x, scores):
    """Fill the scores w_i . x and n_i = x' A_i^{-1} x, with non-zero features taken as one."""
    scratch = state.scratch
    for i in range(x.values.size):
        scratch.x[i] = 0.0 if x.values[i] == 0.0 else 1.0
    ones = with_values(x, scratch.x)
    products(state.W, ones, scores)
    products(state.A_inv, ones, scratch.n)


KERNELS = Kernels("binary", score_binary, policy, learn_diagonal)


class BinaryConfidit(Confidit):
    """Confidit, version 5, with each non-zero feature taken as 1 and rows not normalised.

    A document of m words then has norm sqrt(m), against A_0 = 4 I: weights and intervals change
    about m times as much in a round as with rows of unit length. No other learner of the paper has
    a fixed constant next to its data that is not tuned. Parameters are those of `Confidit`.

    Examples
    --------
    >>> from onebit import play, streams
    >>> from onebit.lab.binary import BinaryConfidit
    >>> X, y = streams.synsep(2000, seed=0)
    >>> play(BinaryConfidit(eta=100.0), X, y).n_mistakes
    42
    """

    forms: ClassVar[list[dict[str, Any]]] = [{}]

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        if self.covariance != "diagonal" or self.projection:
            raise ValueError("BinaryConfidit has a diagonal covariance, and no projection")
        _, state = super()._begin(n_features, n_classes, rng)
        return KERNELS, state
