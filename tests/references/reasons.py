"""Why OneBitClassifier prefers a label, by the notes of `explain`, with dense inputs."""

import numpy as np

from references.one_bit_classifier import triples


def logarithmic_mean(a, b):
    return a if a == b else (a - b) / (np.log(a) - np.log(b))


def columns_of(name, d):
    """The columns that each input of a view is made from."""
    single = [(j,) for j in range(d)]
    if name == "cells":
        pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
        return [
            (),
            *single,
            *[columns for columns in single for _ in range(16)],
            *[columns for columns in pairs for _ in range(256)],
            *[columns for columns in triples(d, 2) for _ in range(4096)],
        ]
    if name == "products":
        both = [(i, j) if i < j else (i,) for i in range(d) for j in range(i, d)]
        return [*single, *both, ()]
    return [*single, ()]


def amounts(slow, names, factors, x):
    """What each set of columns adds to the difference of two scores."""
    slow.look(x)
    found = {}
    for name, member, of_member in zip(names, slow.members, factors, strict=False):
        sets = columns_of(name, x.size)
        assert len(sets) == member.x.size
        weights = sum(factor * member.W[k] for k, factor in of_member.items())
        for i in np.flatnonzero(member.x):  # a few of thousands
            found[sets[i]] = found.get(sets[i], 0.0) + weights[i] * member.x[i]
    return found


def explain(slow, x, k, other):
    """The amount of each set of columns, the difference of scores, and what neighbours add.

    Neighbours add to what pairs multiply what members say with.
    """
    slow.look(x)
    names = ("line", "cells", "products")[: len(slow.members)]
    part, added = 1.0, np.zeros(slow.K)
    if slow.neighbours is not None:
        total = 2 + slow.neighbours.counts.sum()
        part = 1 - slow.local + slow.local * 2 / total
        added = slow.local * slow.neighbours.counts / total
    at = [k, other]
    both = np.array([w * member.p for w, member in zip(slow.says, slow.members, strict=True)])
    corrected = part * slow.corrected()[at]
    whole = logarithmic_mean(*(corrected + added[at]))
    rest = logarithmic_mean(*corrected) / whole
    shares = [
        rest * logarithmic_mean(*one[at]) / logarithmic_mean(*both.sum(axis=0)[at]) for one in both
    ]
    factors = [
        {k: c * member.c[k], other: -c * member.c[other]}
        for c, member in zip(shares, slow.members, strict=True)
    ]
    found = amounts(slow, names, factors, x)
    difference = float(np.subtract(*np.log(corrected + added[at])))
    of_pairs = {}
    if slow.pairs is not None and slow.pairs.names:
        slow.look(x)
        each = rest * slow.pairs.say / logarithmic_mean(*slow.pairs.factor[at])
        for name, w, r in zip(slow.pairs.names, slow.pairs.trust, slow.pairs.r, strict=True):
            of_pairs[name] = each * w * (r[k] - r[other])
    rows = np.transpose([column.sample for column in slow.columns])
    usual = [amounts(slow, names, factors, row) for row in rows]
    for columns in set().union(*usual) - {()}:
        average = np.mean([one.get(columns, 0.0) for one in usual])
        found[columns] = found.get(columns, 0.0) - average
        found[()] += average
    for name, amount in of_pairs.items():
        found[name] = found.get(name, 0.0) + amount
    return found, difference, (added[k] - added[other]) / whole
