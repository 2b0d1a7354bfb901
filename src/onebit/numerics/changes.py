"""Changes noticed by the bits: those that come out worse than they used to at the same confidence.

A model says with which probability q a label is right, and may be too sure or not sure enough. What
its word is worth, its own past tells: the share e of mistakes among rounds with about the same q.
Against that stands the hypothesis that in a share rho of the rounds what was learned is true no
more, and the label wrong. A right label is evidence of ln(1 - rho) for it, a wrong one of
ln(1 + rho (1 - e) / e): the logarithms of likelihood ratios. Their sum begins again at zero when it
falls below (Page 1954). While nothing changes, it exceeds h in a given round with a probability of
about e^-h.

There is one sum for all rounds, and one for those of each label, where e is that of the label: the
odds of a mistake times the number of its mistakes over what was expected of it.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel
from onebit.core.state import Amount, Count, Field

RHO = 0.8
"""The share of the rounds in which what was learned is true no more, if there is a change.

High, so that a gradual change is noticed when most of it is over: what is learned in its midst
is soon wrong again.
"""

ALL_CHANGED, LABEL_CHANGED = math.log(1e7), math.log(1e12)
"""Evidence of a change: a false alarm in so many rounds, if mistakes were independent.

Those of one label are less so than those of all, as they come in runs when its weights move.
"""

KNOWN = 0.3
"""Of a label, only rounds count in which fewer mistakes were expected: what was never learned
cannot be forgotten."""

LEVELS, EVEN = 12, 4
"""Levels of confidence, one for each nat of ln(q / (1 - q)); EVEN is the first with q > 1 - q."""

HIGHEST_ODDS = math.exp(LEVELS - 1 - EVEN)
"""q / (1 - q) from which on the level is the highest."""

FIRST_ROUNDS = 10.0
"""Rounds that the first belief about a level counts for: mistakes in half of them, or more."""

FIRST_MISTAKES, FIRST_EXPECTED = 2.0, 0.5
"""What a label begins with, so that it is not taken to be as good as others before it is known."""

KEPT = 64
"""Changes that are remembered."""

MISTAKEN, ROUNDS = 0, 1
"""Columns of `Changes.levels`."""

EVIDENCE, MISTAKES, EXPECTED = 0, 1, 2
"""Columns of `Changes.labels`."""

ROUND, LABEL, SURE = 0, 1, 2
"""Columns of `Changes.seen`."""

NOTHING, EVERYTHING = -2, -1
"""What may have changed in place of a label."""


class Change(NamedTuple):
    """A change that was noticed: in which round, of what, and the evidence for it.

    label: the one whose successes ended, or None if it was all. evidence: in nats, the logarithm
    of how much likelier the last bits are if there was a change than if not.
    """

    round: int
    label: Any
    evidence: float


class Changes(NamedTuple):
    """What is expected of bits, the evidence that it is true no more, and the changes noticed.

    levels: for each level of confidence the share MISTAKEN, the newer half of the rounds counting
    most, and ROUNDS. labels: EVIDENCE, and since the label last changed MISTAKES and what was
    EXPECTED of these. evidence: that all changed. seen: the last changes, by ROUND, LABEL, or
    EVERYTHING, and SURE, the evidence; change i is in row i modulo `KEPT`. n_seen: how many there
    were. began: the rounds before the last change of everything.
    """

    levels: Annotated[np.ndarray, Field(LEVELS, 2, least=0.0)]
    labels: Annotated[np.ndarray, Field("classes", 3, least=0.0)]
    evidence: Amount
    seen: Annotated[np.ndarray, Field(KEPT, 3, least=EVERYTHING)]
    n_seen: Count
    began: Count

    def check(self) -> None:
        """Check what kernels divide by, and that changes are of labels that there are."""
        if self.levels[:, MISTAKEN].max() > 1.0:
            raise ValueError("levels has a share of mistakes above one")
        first = FIRST_MISTAKES, FIRST_EXPECTED
        if (self.labels[:, [MISTAKES, EXPECTED]] < first).any():
            raise ValueError(f"labels has fewer mistakes, or expected ones, than at first, {first}")
        if self.seen[:, LABEL].max() >= len(self.labels):
            raise ValueError(f"seen has a change of label {self.seen[:, LABEL].max():g}")


def new_changes(n_classes: int) -> Changes:
    """Return what is expected before the first round."""
    levels, labels = np.zeros((LEVELS, 2)), np.zeros((n_classes, 3))
    levels[:, MISTAKEN] = np.maximum(0.5, 1.0 / (1.0 + np.exp(np.arange(LEVELS) - EVEN)))
    levels[:, ROUNDS] = FIRST_ROUNDS
    labels[:, MISTAKES], labels[:, EXPECTED] = FIRST_MISTAKES, FIRST_EXPECTED
    n_seen, began = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.int64)
    return Changes(levels, labels, np.zeros(()), np.zeros((KEPT, 3)), n_seen, began)


def listed(changes: Changes, labels: list[Any]) -> list[Change]:
    """Return the last changes, the oldest first."""
    n = int(changes.n_seen)
    rows = changes.seen[np.arange(max(0, n - KEPT), n) % KEPT].tolist()
    return [
        Change(int(t), None if k == EVERYTHING else labels[int(k)], sure) for t, k, sure in rows
    ]


@lean_kernel
def notice(changes, q, others, label, correct):
    """Count a bit, where q and `others` are the probabilities that it is right and wrong.

    Return what has changed: NOTHING, EVERYTHING or the label.
    """
    levels, labels = changes.levels, changes.labels
    level = level_of(q, others)
    n = levels[level, ROUNDS]
    part = 1.0 / (n + 2.0)
    e = (n * levels[level, MISTAKEN] + 1.0) * part
    if not correct or changes.evidence[()] > 0.0 or labels[label, EVIDENCE] > 0.0:
        odds = labels[label, MISTAKES] / labels[label, EXPECTED] * e / (1.0 - e)
        e_label = odds / (1.0 + odds)
        changes.evidence[()] = more_evidence(changes.evidence[()], e, correct)
        if e_label < KNOWN:
            labels[label, EVIDENCE] = more_evidence(labels[label, EVIDENCE], e_label, correct)
    wrong = 0.0 if correct else 1.0
    levels[level, MISTAKEN] += 2.0 * part * (wrong - levels[level, MISTAKEN])
    levels[level, ROUNDS] = n + 1.0
    labels[label, MISTAKES] += wrong
    labels[label, EXPECTED] += e
    if changes.evidence[()] > ALL_CHANGED:
        return EVERYTHING
    return label if labels[label, EVIDENCE] > LABEL_CHANGED else NOTHING


@lean_kernel
def level_of(q, others):
    """Return the level of confidence, where q and `others` are the probabilities of both bits."""
    if q > HIGHEST_ODDS * others:
        return LEVELS - 1
    place = math.log(max(q, 1e-12) / max(others, 1e-12)) + EVEN
    return int(min(place, LEVELS - 1.0)) if place > 0.0 else 0  # also if it is NaN


@lean_kernel
def more_evidence(evidence, e, correct):
    """Return the evidence of a change after one more bit, where e is how probable a mistake was."""
    if correct:
        return max(0.0, evidence + math.log(1.0 - RHO)) if evidence > 0.0 else 0.0
    return evidence + math.log(1.0 + RHO * (1.0 - e) / e)


@lean_kernel
def remember(changes, what, rounds):
    """Note a change after so many rounds, and expect of what changed no more than at first.

    The evidence that all changed stays after a change of one label, which may be the first of many.
    """
    labels, row = changes.labels, changes.seen[changes.n_seen[()] % KEPT]
    row[ROUND], row[LABEL] = rounds + 1, what
    row[SURE] = changes.evidence[()] if what == EVERYTHING else labels[what, EVIDENCE]
    changes.n_seen[()] += 1
    for k in range(labels.shape[0]):
        if what == EVERYTHING or k == what:
            labels[k, EVIDENCE] = 0.0
            labels[k, MISTAKES], labels[k, EXPECTED] = FIRST_MISTAKES, FIRST_EXPECTED
    if what == EVERYTHING:
        changes.evidence[()] = 0.0
        changes.began[()] = rounds
