"""Pairs and triples of columns, each with a table that corrects what the other members predict.

Each cell of a pair (`onebit.numerics.bins`) has, for each label, how often it was right there, c,
and how often the other members expected that, e: the sum of their probabilities m. A pair corrects
them by the quotient,

    r_k = (a + c_k) / (a + e_k) / z,

with z such that m_k r_k adds up to one: the posterior mean of a factor with the prior Gamma(a, a).
Where the others are right on average, c is about e, and nothing is corrected. Where cells are
hashed, those that have the same row are counted as one.

Of few columns and labels, triples of columns are beside the pairs, by the same rules. Below,
"pairs" includes them.

The pairs are a mixture of their own: each has a weight, which is multiplied by the likelihood of
each bit, and a share of all weight goes back to all. All pairs together are weighed against no
correction by the same rule. With R, the weighted mean of r, and w, the weight of pairs,

    p_k = m_k (1 - w + w R_k).

After a wrong label, c grows by the probability that each other label has then, by all members.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, no_alias
from onebit.core.state import MOST_ROUNDS, Field, Share, check_weights
from onebit.numerics import tuning
from onebit.numerics.bins import (
    CODES,
    MOST_LISTED,
    Bins,
    n_cells,
    n_pairs,
    n_triple_cells,
    n_triples,
)
from onebit.numerics.changes import SOME, has_changed
from onebit.numerics.neighbours import LEAST_OTHERS, effective_weight, reweighed
from onebit.numerics.posterior_lessons import likelihood, share_of_right
from onebit.numerics.tuning import PairConstants

MOST_PAIRS = 8_192
"""Most pairs of columns, times the number of labels: more would take too long."""

RIGHT, EXPECTED = 0, 1
"""Places in the second axis of `Pairs.cells`."""

OTHERS, MEAN, FACTOR, RATIO = range(4)
"""Rows of `Scratch.labels`."""


class Scratch(NamedTuple):
    """What is computed of one x.

    Attributes
    ----------
    labels
        For each label: m of the OTHERS; R, the MEAN of corrections; the FACTOR of m in p; and room
        for the RATIO in one pair.
    totals
        z of each pair.
    """

    labels: np.ndarray
    totals: np.ndarray


class Pairs(NamedTuple):
    """What was right in the cells of pairs, and how far each pair is trusted.

    If there are too many pairs, both arrays are empty.

    Attributes
    ----------
    cells
        For each cell and label, how often it was RIGHT, and EXPECTED.
    trust
        The weight of each pair beside the other pairs; weights add up to one.
    weight
        How far pairs are trusted; the rest of one is for no correction.
    """

    cells: Annotated[np.ndarray, Field("pair_cells", 2, "classes", least=0.0, most=MOST_ROUNDS)]
    trust: Annotated[np.ndarray, Field("pairs", least=0.0, most=1.0)]
    weight: Share
    settings: PairConstants
    scratch: Scratch

    def check(self) -> None:
        """Check that the weights of the pairs add up to one, if there are any."""
        if self.trust.size:
            check_weights("trust", self.trust)


def new_pairs(n_features: int, n_classes: int) -> Pairs:
    """Return the pairs of columns before the first round; none if they are too many."""
    n, triples = n_pairs(n_features), n_triples(n_features, n_classes)
    if n_features > MOST_LISTED or n * n_classes > MOST_PAIRS:
        n = triples = 0
    rows = n_cells(n_features) if n else 0
    if triples:
        n, rows = n + triples, rows + n_triple_cells(n_features)
    return Pairs(
        cells=np.zeros((rows, 2, n_classes)),
        trust=np.full(n, 1.0 / max(1, n)),
        weight=np.full((), 0.5),
        settings=tuning.TUNING.pairs,
        scratch=Scratch(labels=np.zeros((4, n_classes)), totals=np.zeros(n)),
    )


def with_triples(arrays: Mapping[str, np.ndarray], place: str, d: int) -> dict[str, np.ndarray]:
    """Return the arrays of d columns whose pairs at `place` began before there were triples."""
    named = dict(arrays)
    cells, trust = named[f"{place}cells"], named[f"{place}trust"]
    new = new_pairs(d, cells.shape[2])
    triples = new.trust[trust.size :]
    if triples.size:
        more = len(new.cells) - len(cells)
        named[f"{place}cells"] = np.pad(cells, ((0, more), (0, 0), (0, 0)))
        named[f"{place}trust"] = np.append((1.0 - triples.sum()) * trust, triples)
    return named


@lean_kernel
def are_weighed(pairs):
    """Return whether there are any pairs."""
    return pairs.trust.size > 0


# Scores


@lean_kernel
def correct_by_pairs(pairs, cells, least, p):
    """Correct the probabilities by the other members; `cells` is the member that saw x."""
    if pairs is None:
        return
    if not are_weighed(pairs):
        return
    labels, view = pairs.scratch.labels, cells.view_of_x.scratch
    weight = effective_weight(pairs.weight[()], least)
    for k in range(p.size):
        labels[OTHERS, k] = p[k]
        labels[MEAN, k] = 0.0
    first = view.size[()] - pairs.trust.size
    start = first_cell(cells.view_of_x)
    rows = view.indices[first : view.size[()]]
    add_corrections(
        pairs.cells, rows, start, pairs.trust, pairs.settings.prior, labels, pairs.scratch.totals
    )
    for k in range(p.size):
        labels[FACTOR, k] = 1.0 - weight + weight * labels[MEAN, k]
        p[k] *= labels[FACTOR, k]


@lean_kernel
def first_cell(bins):
    """Return the input that is the first cell of pairs; those of triples follow."""
    d = bins.kinds.shape[0]
    return 1 + d + CODES * d


@lean_kernel
def add_corrections(cells, rows, start, trust, a, labels, totals):
    """Add r of each pair, times its weight, to their mean."""
    no_alias()
    for t in range(trust.size):
        row, total = rows[t] - start, 0.0
        for k in range(labels.shape[1]):
            labels[RATIO, k] = (a + cells[row, RIGHT, k]) / (a + cells[row, EXPECTED, k])
            total += labels[OTHERS, k] * labels[RATIO, k]
        totals[t] = total
        for k in range(labels.shape[1]):
            labels[MEAN, k] += trust[t] / total * labels[RATIO, k]


@lean_kernel
def add_log_factors(pairs, means):
    """Add the logarithms of the factors to the means of scores."""
    if pairs is None:
        return
    if are_weighed(pairs):
        for k in range(means.size):
            means[k] += math.log(pairs.scratch.labels[FACTOR, k])


def weighted_corrections(pairs: Pairs, view: Bins, least: float) -> np.ndarray:
    """Return r of each pair and label for the last x, times the weight of the pair."""
    size, n = int(view.scratch.size), pairs.trust.size
    rows = view.scratch.indices[size - n : size] - first_cell.py_func(view)
    a, cells = pairs.settings.prior, pairs.cells[rows]
    ratios = (a + cells[:, RIGHT]) / (a + cells[:, EXPECTED])
    weights = (
        effective_weight.py_func(float(pairs.weight), least) * pairs.trust / pairs.scratch.totals
    )
    return weights[:, None] * ratios


# Lessons


@lean_kernel
def learn_pairs(pairs, cells, settings, p, label, correct):
    """Weigh the pairs by the bit, and count it; p are the probabilities by all members."""
    if pairs is None:
        return
    if not are_weighed(pairs):
        return
    labels, view, trust = pairs.scratch.labels, cells.view_of_x.scratch, pairs.trust
    others = labels[OTHERS, label]
    own = others * labels[MEAN, label]
    pairs.weight[()] = reweighed(pairs.weight[()], own, others, settings, correct)
    right = share_of_right(correct)
    wrong = (1.0 - right) / max(1.0 - p[label], LEAST_OTHERS)
    for k in range(p.size):
        labels[RATIO, k] = right if k == label else wrong * p[k]
    first = view.size[()] - trust.size
    start = first_cell(cells.view_of_x)
    a, least, total = pairs.settings.prior, settings.least_likelihood, 0.0
    for t in range(trust.size):
        counts = pairs.cells[view.indices[first + t] - start]
        q = others * (a + counts[RIGHT, label]) / (a + counts[EXPECTED, label])
        q = min(max(q / pairs.scratch.totals[t], least), 1.0 - least)
        trust[t] *= likelihood(q, correct)
        total += trust[t]
        for k in range(p.size):
            counts[RIGHT, k] += labels[RATIO, k]
            counts[EXPECTED, k] += labels[OTHERS, k]
    for t in range(trust.size):
        trust[t] = (1.0 - settings.share) * (trust[t] / total) + settings.share / trust.size


# Changes


@lean_kernel
def change_pairs(pairs, changes, what):
    """Forget what was right for labels that changed; if all did, also which pairs are trusted."""
    if pairs is None:
        return
    for k in range(pairs.cells.shape[2]):
        if what != SOME or has_changed(changes, what, k):
            for i in range(pairs.cells.shape[0]):
                pairs.cells[i, RIGHT, k] = pairs.cells[i, EXPECTED, k] = 0.0
    if what != SOME:
        pairs.weight[()] = 0.5
        for t in range(pairs.trust.size):
            pairs.trust[t] = 1.0 / pairs.trust.size
