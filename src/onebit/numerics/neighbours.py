"""Neighbours: what was right, and what was wrong, for examples like x.

A memory has the last examples, scaled, with the label that was chosen for each and whether, or how
far, it was right. Of these, the k = `nearest` examples nearest to x count. Their weights fall with
the squared distance from x, as 1 - d^2 / h^2, where h is the distance of the first example further
away than all k; all that are as far as the k-th count. The weights add up to at most k.

A neighbour for which label j was right counts for j. One for which j was wrong counts for the other
labels, the likely ones most. With m, the probabilities by all other members, R, the sums of weights
by labels that were right, and N, those by labels that were wrong,

    b = (a m + R) / (a + sum of R),
    c_k = R_k + sum over j != k of N_j b_k / (1 - b_j),
    p = (a m + c) / (a + sum of c).

So the prediction of the other members is a prior worth `a` examples, and neighbours correct it
where their bits differ from it. The memory has at most `MOST_CASES` examples and `MOST_NUMBERS`
numbers.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, no_alias
from onebit.core.example import LARGEST
from onebit.core.state import MOST_ROUNDS, Field, Share
from onebit.numerics import tuning
from onebit.numerics.changes import EVERYTHING, SOME, has_changed
from onebit.numerics.posterior_lessons import likelihood, share_of_right
from onebit.numerics.tuning import NeighbourConstants

MOST_CASES, MOST_NUMBERS = 4096, 100_000
"""Most examples in the memory, and most numbers: 0.8 MB."""

LABEL, SHARE_RIGHT, ERA = 0, 1, 2
"""Columns of `Neighbours.cases`."""

STORED, NOW, FORMER, NEWEST = 0, 1, 2, 3
"""Places in `Neighbours.counts`."""

OTHERS, RIGHT, WRONG, COUNTS, P = range(5)
"""Rows of `Scratch.labels`."""

FORGOTTEN = -1
"""The era of examples that no longer count."""

BLOCK = 64
"""Distances that are compared with the largest of the smallest ones at once."""

TIE = 1e-9
"""Squared distances that differ by a smaller share are equal."""

LEAST_OTHERS = 1e-3
"""Least probability that a label is wrong, as a divisor, where it was wrong for a neighbour."""


class Scratch(NamedTuple):
    """What is computed of one x.

    There are few arrays, as each array of a state takes time to compile and to pass on.

    Attributes
    ----------
    x
        Its scaled features, zeros included.
    distances
        Squared distances from each example in the memory; then the smallest of these, increasing.
    labels
        For each label: m of the OTHERS; R and N, of neighbours for which it was RIGHT and WRONG; c,
        their COUNTS; and P.
    """

    x: np.ndarray
    distances: np.ndarray
    labels: np.ndarray


class Neighbours(NamedTuple):
    """The last examples, and how far their prediction is trusted.

    Attributes
    ----------
    examples
        Their scaled features, one column for each.
    cases
        LABEL, the one chosen for each; SHARE_RIGHT, one if it was right, zero if not, or its grade;
        ERA, that of the round.
    counts
        STORED, how many examples there were; NOW and FORMER, the present era and the one before the
        last change of everything; NEWEST, the last of all eras.
    weight
        How far neighbours are trusted; the rest of one is for the other members.
    """

    examples: Annotated[np.ndarray, Field("features", "examples", least=-LARGEST, most=LARGEST)]
    cases: Annotated[np.ndarray, Field("examples", 3, least=FORGOTTEN, most=MOST_ROUNDS)]
    counts: Annotated[np.ndarray, Field(4, dtype=np.int64, least=0, most=MOST_ROUNDS)]
    weight: Share
    settings: NeighbourConstants
    scratch: Scratch

    def check(self) -> None:
        """Check what is used as an index, labels, and that no part of a bit is negative."""
        labels, n_classes = self.cases[:, LABEL], self.scratch.labels.shape[1]
        if not np.isin(labels, np.arange(n_classes)).all():
            raise ValueError(f"cases has a label that is not from 0 to {n_classes - 1}")
        shares = self.cases[:, SHARE_RIGHT]
        if shares.min(initial=0.0) < 0.0 or shares.max(initial=0.0) > 1.0:
            raise ValueError("cases has a share of right that is not from 0 to 1")


def n_examples(n_features: int) -> int:
    """Return how many examples of this size the memory has room for."""
    return max(1, min(MOST_CASES, MOST_NUMBERS // n_features))


def new_neighbours(n_features: int, n_classes: int) -> Neighbours:
    """Return an empty memory."""
    n, settings = n_examples(n_features), tuning.TUNING.neighbours
    return Neighbours(
        examples=np.zeros((n_features, n)),
        cases=np.zeros((n, 3)),
        counts=np.zeros(4, dtype=np.int64),
        weight=np.full((), 0.5),
        settings=settings,
        scratch=Scratch(
            x=np.zeros(n_features),
            distances=np.zeros(n + settings.nearest + 1),
            labels=np.zeros((5, n_classes)),
        ),
    )


def n_stored(neighbours: Neighbours) -> int:
    """Return how many examples are in the memory."""
    return min(int(neighbours.counts[STORED]), len(neighbours.cases))


# Scores


@lean_kernel
def fill_neighbours(neighbours, inputs, others):
    """Fill the probabilities of the labels by the neighbours of x, whose scaled features are given.

    `others` are those by all other members.
    """
    if neighbours is None:
        return
    x, distances, labels = (
        neighbours.scratch.x,
        neighbours.scratch.distances,
        neighbours.scratch.labels,
    )
    cases, now, k = neighbours.cases, neighbours.counts[NOW], neighbours.settings.nearest
    for j in range(x.size):
        x[j] = 0.0
    for i in range(inputs.indices.size - 1):  # the last one is the constant
        x[inputs.indices[i]] = inputs.values[i]
    n = min(neighbours.counts[STORED], cases.shape[0])
    fill_distances(neighbours.examples, x, n, distances)
    radius = radius_of(distances, cases, now, n, k)
    count_neighbours(distances, cases, now, n, radius, k, labels)
    fill_probabilities(labels, neighbours.settings.prior, others)


@lean_kernel
def fill_distances(examples, x, n, distances):
    """Fill the squared distances of x from the first n examples."""
    no_alias()
    # Four columns at a time: the distances then go through memory a fourth as often.
    alone = x.size % 4
    for s in range(n):
        distances[s] = 0.0
    for j in range(alone):
        for s in range(n):
            difference = examples[j, s] - x[j]
            distances[s] += difference * difference
    for j in range(alone, x.size, 4):
        of_a, of_b, of_c, of_d = examples[j], examples[j + 1], examples[j + 2], examples[j + 3]
        for s in range(n):
            a, b, c, d = of_a[s] - x[j], of_b[s] - x[j + 1], of_c[s] - x[j + 2], of_d[s] - x[j + 3]
            distances[s] = distances[s] + a * a + b * b + c * c + d * d


@lean_kernel
def radius_of(distances, cases, now, n, k):
    """Return h^2, from the distances of the first n examples; zero if there is none.

    The smallest k + 1 are filled in after all distances.
    """
    first, m, limit = cases.shape[0], 0, math.inf
    for start in range(0, n, BLOCK):
        end, is_near = min(start + BLOCK, n), False
        for s in range(start, end):  # most blocks have none, which a loop without branches finds
            is_near |= distances[s] < limit
        if not is_near:
            continue
        for s in range(start, end):
            if distances[s] < limit and cases[s, ERA] == now:
                m = min(m + 1, k + 1)
                i = first + m - 1
                while i > first and distances[i - 1] > distances[s]:
                    distances[i] = distances[i - 1]
                    i -= 1
                distances[i] = distances[s]
                if m > k:
                    limit = distances[first + k]
    if m == 0:
        return 0.0
    furthest = (1.0 + TIE) * distances[first + min(m, k) - 1] + 1e-12
    if m <= k:
        return 2.0 * furthest
    if limit > furthest:
        return limit
    radius = math.inf
    for s in range(n):
        if furthest < distances[s] < radius and cases[s, ERA] == now:
            radius = distances[s]
    return radius if radius < math.inf else 2.0 * furthest


@lean_kernel
def count_neighbours(distances, cases, now, n, radius, most, labels):
    """Fill R and N from the distances of the first n examples."""
    total = 0.0
    for k in range(labels.shape[1]):
        labels[RIGHT, k] = labels[WRONG, k] = 0.0
    for s in range(n):
        if distances[s] < radius and cases[s, ERA] == now:
            weight = 1.0 - distances[s] / radius
            total += weight
            label = int(cases[s, LABEL])
            labels[RIGHT, label] += weight * cases[s, SHARE_RIGHT]
            labels[WRONG, label] += weight * (1.0 - cases[s, SHARE_RIGHT])
    if total > most:
        for k in range(labels.shape[1]):
            labels[RIGHT, k] *= most / total
            labels[WRONG, k] *= most / total


@lean_kernel
def fill_probabilities(labels, a, others):
    """Fill c and p from R and N; a label that the other members exclude has none."""
    total, shared = 0.0, 0.0
    for k in range(others.size):
        labels[OTHERS, k] = others[k]
        labels[COUNTS, k] = a * others[k] + labels[RIGHT, k] if others[k] > 0.0 else 0.0
        total += labels[COUNTS, k]
    for k in range(others.size):
        labels[COUNTS, k] /= total  # b, for now
        labels[WRONG, k] /= max(1.0 - labels[COUNTS, k], LEAST_OTHERS)
        shared += labels[WRONG, k]
    total = a
    for k in range(others.size):
        if others[k] > 0.0:
            gained = labels[COUNTS, k] * (shared - labels[WRONG, k])
            labels[COUNTS, k] = labels[RIGHT, k] + gained
        total += labels[COUNTS, k]
    for k in range(others.size):
        labels[P, k] = (a * others[k] + labels[COUNTS, k]) / total


@lean_kernel
def add_neighbours(neighbours, least, p):
    """Mix the probabilities by neighbours into those by all other members."""
    if neighbours is None:
        return
    weight = effective_weight(neighbours.weight[()], least)
    for k in range(p.size):
        p[k] += weight * (neighbours.scratch.labels[P, k] - p[k])


@lean_kernel
def add_log_probabilities(neighbours, least, means):
    """Mix the logarithms of the probabilities by neighbours into the means of scores."""
    if neighbours is None:
        return
    weight = effective_weight(neighbours.weight[()], least)
    if weight > 0.0:
        for k in range(means.size):
            score = math.log(max(neighbours.scratch.labels[P, k], 1e-300))
            means[k] = (1.0 - weight) * means[k] + weight * score


@lean_kernel
def effective_weight(weight, least):
    """Return the weight that a member has in predictions: zero below `least`."""
    return weight if weight >= least else 0.0


def parts_of(neighbours: Neighbours, least: float) -> tuple[float, np.ndarray]:
    """Return what the probabilities by all other members are multiplied with, and what is added."""
    weight = effective_weight.py_func(float(neighbours.weight), least)
    a, counts = neighbours.settings.prior, neighbours.scratch.labels[COUNTS]
    total = a + counts.sum()
    return 1.0 - weight + weight * a / total, weight * counts / total


# Lessons


@lean_kernel
def learn_neighbours(neighbours, settings, label, correct):
    """Weigh the neighbours against all other members by the bit, and store the example."""
    if neighbours is None:
        return
    x, labels, weight = neighbours.scratch.x, neighbours.scratch.labels, neighbours.weight[()]
    own, others = labels[P, label], labels[OTHERS, label]
    neighbours.weight[()] = reweighed(weight, own, others, settings, correct)
    cases, counts = neighbours.cases, neighbours.counts
    slot = counts[STORED] % cases.shape[0]
    for j in range(x.size):
        neighbours.examples[j, slot] = x[j]
    cases[slot, LABEL], cases[slot, SHARE_RIGHT] = label, share_of_right(correct)
    cases[slot, ERA] = counts[NOW]
    counts[STORED] += 1


@lean_kernel
def reweighed(weight, own, others, settings, correct):
    """Return the weight of one of two models after a bit.

    `own` and `others` are the probabilities that it and the other one gave the chosen label.
    """
    least = settings.least_likelihood
    own = weight * likelihood(min(max(own, least), 1.0 - least), correct)
    others = (1.0 - weight) * likelihood(min(max(others, least), 1.0 - least), correct)
    return (1.0 - settings.share) * own / (own + others) + 0.5 * settings.share


# Changes


@lean_kernel
def change_neighbours(neighbours, changes, what):
    """Forget the examples of labels that changed; if all changed, begin an era.

    If what was true before returned, go back to the former era, whose examples count again.
    """
    if neighbours is None:
        return
    cases, counts = neighbours.cases, neighbours.counts
    if what == SOME:
        for s in range(cases.shape[0]):
            if cases[s, ERA] == counts[NOW] and has_changed(changes, what, int(cases[s, LABEL])):
                cases[s, ERA] = FORGOTTEN
        return
    counts[NOW], counts[FORMER] = counts[FORMER], counts[NOW]
    if what == EVERYTHING:
        counts[NEWEST] += 1
        counts[NOW] = counts[NEWEST]
        neighbours.weight[()] = 0.5
