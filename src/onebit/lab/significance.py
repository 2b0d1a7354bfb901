"""Which of two tools made fewer mistakes, as "A Contextual Bandit Bake-off" decides it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

LEVEL = 0.05
"""Largest probability of a win by chance between two tools that are equally good."""


def z_statistic(ours: Any, theirs: Any, rounds: Any) -> np.ndarray:
    """Return by how many standard errors our error rate is below theirs.

    With error rates p and q in n rounds each, the variance of the difference is taken as
    p (1 - p) / n + q (1 - q) / n, as if the two were drawn independently. They are not: both tools
    play the same rounds, tend to fail on the same ones, and the difference varies less. So the test
    finds fewer differences than there are.

    Parameters
    ----------
    ours, theirs : array-like of int
        Mistakes.
    rounds : array-like of int

    Returns
    -------
    ndarray of float
        Infinite where the errors differ and both are 0 or 1; 0 where they are equal.
    """
    p, q = np.asarray(ours) / rounds, np.asarray(theirs) / rounds
    variance = (p * (1.0 - p) + q * (1.0 - q)) / rounds
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p == q, 0.0, (q - p) / np.sqrt(variance))


def significance(ours: Any, theirs: Any, rounds: Any) -> np.ndarray:
    """Return 1 where we win significantly, -1 where we lose, and 0 elsewhere, NaN included.

    We win if 1 - Phi(z) < 0.05, with z of `z_statistic` and Phi the standard normal distribution
    function: an approximate Z-test, one-sided, so that wins and losses by chance are 5 % each.

    Notes
    -----
    A mistake in n rounds with probability p has variance p (1 - p), so the difference of two
    independent error rates has the variance above, and z is about normal where n p (1 - p) is not
    small: the usual test of two proportions, with variances that are not pooled.

    What is known of the paper's test: the authors' scripts (rank_algos.py in albietz/cb_bakeoff)
    have the same variance, with 1e-6 added to the standard error, and call a difference significant
    if 1 - erf(|z|) < 0.05. That is |z| > 1.386, where this test has |z| > 1.645: the normal
    distribution function is (1 + erf(z / sqrt(2))) / 2, and the scripts lack its sqrt(2). Equal and
    independent tools then win by chance in 8.3 % of the runs, not in 5 %. That the paper's text has
    1 - Phi(z) < 0.05, as here, is from memory; it was not compared with the text.

    References
    ----------
    A. Bietti, A. Agarwal and J. Langford. "A contextual bandit bake-off." JMLR 22, 2021. Section 5.

    Examples
    --------
    >>> from onebit.lab.significance import significance
    >>> significance([100, 120, 150], [120, 120, 100], 1000).tolist()
    [0, 0, -1]
    """
    z = z_statistic(ours, theirs, rounds)
    z = np.where(np.isnan(z), 0.0, z)
    return np.sign(z).astype(np.int64) * (norm.sf(np.abs(z)) < LEVEL)
