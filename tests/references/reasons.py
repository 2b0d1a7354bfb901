"""Why OneBitClassifier prefers a label, by the notes of `explain`, with dense inputs."""

import numpy as np


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
        for columns, value, *weights in zip(
            columns_of(name, x.size), member.x, *(member.W[k] for k in of_member), strict=True
        ):
            weight = sum(f * w for f, w in zip(of_member.values(), weights, strict=True))
            found[columns] = found.get(columns, 0.0) + weight * value
    return found


def explain(slow, x, k, other):
    """The amount of each set of columns, the difference of scores, and what neighbours add."""
    slow.look(x)
    names = ("line", "cells", "products")[: len(slow.members)]
    part, added = 1.0, np.zeros(slow.K)
    if slow.neighbours is not None:
        total = 2 + slow.neighbours.counts.sum()
        part = 1 - slow.local + slow.local * 2 / total
        added = slow.local * slow.neighbours.counts / total
    parts = [
        (part * w * member.p[k], part * w * member.p[other])
        for w, member in zip(slow.says, slow.members, strict=True)
    ]
    parts.append((added[k], added[other]))
    whole = logarithmic_mean(*np.sum(parts, axis=0))
    factors = [
        {k: c * member.c[k], other: -c * member.c[other]}
        for c, member in zip(
            [logarithmic_mean(*part) / whole for part in parts[:-1]], slow.members, strict=True
        )
    ]
    found = amounts(slow, names, factors, x)
    difference = float(np.subtract(*np.log(np.sum(parts, axis=0))))
    rows = np.transpose([column.sample for column in slow.columns])
    usual = [amounts(slow, names, factors, row) for row in rows]
    for columns in set().union(*usual) - {()}:
        average = np.mean([one.get(columns, 0.0) for one in usual])
        found[columns] = found.get(columns, 0.0) - average
        found[()] += average
    return found, difference, (added[k] - added[other]) / whole
