"""A hedge against a model that is worse than one label for all x.

Where the model's label and the best constant label differ, the bits show which of the two is right
more often. The prior of the constant label's rate is Beta(1, K - 1), as of one of the K labels on
offer; that of the model's rate is optimistic. As two labels that differ are not both right, the
constant label's rate is at most one minus the model's. The constant label is chosen in place of
others with the probability that it is the better one (Thompson 1933), with both posteriors taken as
normal. Of the rounds in which the two differ, the newer half counts most. So a label that was not
chosen for long is tried again: the model may have learned more since.

The best constant label is the one with the highest upper confidence bound on its rate.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, rarely_called
from onebit.core.offer import n_on_offer, nth_on_offer
from onebit.core.state import Count, Field
from onebit.numerics import tuning
from onebit.numerics.argmax import argmax
from onebit.numerics.tuning import HedgeConstants

MODEL, CONSTANT = 0, 1
"""Rows of `Rates.ways`."""

RIGHT, ROUNDS, ON_OFFER = 0, 1, 2
"""Columns of `Rates.ways`, `Rates.labels` and, with how many labels were on offer, `Scratch.known`.
"""

_ZERO_ERFC_AT = 5.87
"""Where erfc / 2 is 5e-17: less than half the distance from one to the next number below it."""


class Scratch(NamedTuple):
    """Upper confidence bounds, kept until they change.

    Attributes
    ----------
    ends
        The upper confidence bound of each label.
    known
        The RIGHT, ROUNDS and ON_OFFER that each bound was computed from.
    """

    ends: np.ndarray
    known: np.ndarray


class Rates(NamedTuple):
    """How often each label was right, and the model's and the constant label where they differ.

    Attributes
    ----------
    labels
        For each label how often it was RIGHT, in ROUNDS that it was chosen in.
    ways
        The same for the model's label and the constant one, in rounds in which these differ.
    differed
        Number of rounds in which they differed.
    """

    labels: Annotated[np.ndarray, Field("classes", 2, least=0.0)]
    ways: Annotated[np.ndarray, Field(2, 2, least=0.0)]
    differed: Count
    settings: HedgeConstants
    scratch: Scratch

    def check(self) -> None:
        """Check that nothing was right more often than it was chosen."""
        for name, rates in (("labels", self.labels), ("ways", self.ways)):
            if (rates[:, RIGHT] > rates[:, ROUNDS] * (1.0 + 1e-9)).any():
                raise ValueError(f"{name} has more right rounds than rounds")


def new_rates(n_classes: int) -> Rates:
    """Return the rates before the first round."""
    return Rates(
        labels=np.zeros((n_classes, 2)),
        ways=np.zeros((2, 2)),
        differed=np.zeros((), dtype=np.int64),
        settings=tuning.TUNING.hedge,
        scratch=Scratch(np.zeros(n_classes), np.zeros((n_classes, 3))),
    )


@lean_kernel
def belief(rate, right, first):
    """Return posterior mean and variance of a rate with the prior Beta(right, first - right)."""
    rounds = rate[ROUNDS] + first
    mean = (rate[RIGHT] + right) / rounds
    return mean, mean * (1.0 - mean) / (rounds + 1.0)


@lean_kernel
def constant_label(rates, offer):
    """Return the label on offer with the highest upper confidence bound; of several, the lowest."""
    labels, known, ends = rates.labels, rates.scratch.known, rates.scratch.ends
    n = n_on_offer(offer, ends.size)
    for i in range(n_on_offer(offer, ends.size)):
        k = nth_on_offer(offer, i, ends.size)
        right, rounds = labels[k, RIGHT], labels[k, ROUNDS]
        if known[k, RIGHT] != right or known[k, ROUNDS] != rounds or known[k, ON_OFFER] != n:
            mean, variance = belief(labels[k], 1.0, n)
            ends[k] = mean + rates.settings.upper * math.sqrt(variance)
            known[k, RIGHT], known[k, ROUNDS], known[k, ON_OFFER] = right, rounds, n
    return argmax(ends, offer)


@lean_kernel
def share_of_constant(rates, n):
    """Return the probability that the constant label, of `n`, is better than the model's.

    It is zero before the two have differed for the first time, as nothing is known of either, and
    where it is so small that 1 - share rounds to one.
    """
    if rates.differed[()] == 0:
        return 0.0
    first = rates.settings.first_right
    model, variance = belief(rates.ways[MODEL], first, first + 1.0)
    constant, more = belief(rates.ways[CONSTANT], 1.0, n)
    difference, variance = model - min(constant, 1.0 - model), 2.0 * (variance + more)
    if difference > 0.0 and difference * difference > _ZERO_ERFC_AT * _ZERO_ERFC_AT * variance:
        return 0.0
    return 0.5 * math.erfc(difference / math.sqrt(variance))


@lean_kernel
def hedge(rates, best, offer, p):
    """Move a share of the policy to the constant label; return the likelier of that and `best`."""
    share = share_of_constant(rates, n_on_offer(offer, p.size))
    if share == 0.0:
        return best
    constant = constant_label(rates, offer)
    for k in range(p.size):
        p[k] *= 1.0 - share
    p[constant] += share
    return constant if share > 0.5 else best


@lean_kernel
def rate(rates, best, offer, label, correct):
    """Count a bit, where `best` is the model's label."""
    constant = constant_label(rates, offer)
    if best != constant:
        rates.differed[()] += 1
        # Weights that grow with the number of the round.
        kept = 1.0 - 2.0 / (rates.differed[()] + 1.0)
        for way in range(2):
            rates.ways[way, RIGHT] *= kept
            rates.ways[way, ROUNDS] *= kept
        if label == best:
            _count(rates.ways[MODEL], correct)
        elif label == constant:
            _count(rates.ways[CONSTANT], correct)
    _count(rates.labels[label], correct)
    if rates.labels[label, ROUNDS] >= rates.settings.most_rounds:
        rates.labels[label, RIGHT] *= 0.5
        rates.labels[label, ROUNDS] *= 0.5


@lean_kernel
def _count(rate, correct):
    rate[RIGHT] += correct
    rate[ROUNDS] += 1.0


@lean_kernel
def forget_rates(rates, label):
    """Forget what is known of a label; if it is negative, of all labels and of the model."""
    rarely_called()
    for k in range(rates.labels.shape[0]):
        if label < 0 or k == label:
            rates.labels[k, RIGHT] = rates.labels[k, ROUNDS] = 0.0
    if label < 0:
        rates.differed[()] = 0
        for way in range(2):
            rates.ways[way, RIGHT] = rates.ways[way, ROUNDS] = 0.0
