"""Changes detected from the bits: labels are wrong more often than they used to be.

A model says with which probability q a label is right, and may be too sure or not sure enough. Its
own past calibrates it: e is the share of mistakes among rounds with about the same q.
The alternative hypothesis is that what was learned is no longer true in a share rho of the rounds,
and the label wrong there. A right label is evidence of ln(1 - rho) for it, a wrong one of
ln(1 + rho (1 - e) / e): the logarithms of likelihood ratios. Their sum begins again at zero when it
falls below (Page 1954). While nothing changes, it exceeds h in a given round with a probability of
about e^-h.

There are three kinds of sums:

- of all rounds, with rho = 0.8;
- of the rounds of each label, where e is that of the label: the odds of a mistake times the number
  of its mistakes over what was expected of it;
- of all rounds in which much is known: the variance of the chosen label's score is at most what it
  is on average. Here, e is the share of mistakes in such rounds, whatever q was, and rho = 0.5. A
  model that learns from its mistakes becomes unsure before there is evidence by its own
  confidence, above all if the world changes gradually. Where little is known, new labels and new
  kinds of examples bring mistakes too, and nothing that was learned is wrong.

If the first or the last sum is high enough, everything changed; if the sum of a label is, that
label changed. But if the sums of the labels together are higher than that of all rounds, some
labels are right as before. Then only the labels with high sums changed: two that were swapped, say.
For some rounds after that, less evidence is enough for one more label.

If everything changed before, the previous weights may be true again: a fourth sum has the evidence
that they predict bits better than the present ones; the error rates per level calibrate both.

In each round, a learner calls `observe`, which counts a bit, then `verdict`, and if something
changed, `reset`, after it has forgotten what `has_changed`. Before, `needs_former` says whether to
call `observe_former`, too.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel, rarely_called
from onebit.core.state import Amount, Count, Field
from onebit.numerics import tuning
from onebit.numerics.tuning import ChangeConstants

LEVELS, EVEN = 12, 4
"""Levels of confidence, one for each nat of ln(q / (1 - q)); EVEN is the first with q > 1 - q."""

HIGHEST_ODDS = math.exp(LEVELS - 1 - EVEN)
"""q / (1 - q) from which on the level is the highest."""

KEPT = 64
"""Changes that are remembered."""

MISTAKEN, ROUNDS = 0, 1
"""Columns of `Changes.levels`, and places in `Changes.familiar`."""

EVIDENCE, MISTAKES, EXPECTED = 0, 1, 2
"""Columns of `Changes.labels`."""

ROUND, LABEL, SURE = 0, 1, 2
"""Columns of `Changes.seen`."""

FAMILIAR, VARIANCE, SOME_CHANGED, FORMER = 0, 1, 2, 3
"""Places in `Changes.totals`."""

EVERYTHING, RETURNED = -1, -2
"""What may have changed instead of one label: everything, or everything back to what it was."""

NOTHING, SOME = -3, -4
"""What else `verdict` may return; after SOME, `has_changed` returns whether a label changed."""


class Change(NamedTuple):
    """A change that was noticed.

    Attributes
    ----------
    round
        The round in which it was noticed.
    label
        The label that changed; None if everything did.
    evidence
        In nats: the logarithm of how much likelier the last bits are if there was a change than if
        not.
    returned
        Whether what was true before the last change of everything is true again.
    """

    round: int
    label: Any
    evidence: float
    returned: bool = False


class Changes(NamedTuple):
    """What is expected of bits, the evidence that it is no longer true, and the changes noticed.

    Attributes
    ----------
    levels
        For each level of confidence the share MISTAKEN, the newer half of the rounds counting most,
        and ROUNDS.
    labels
        EVIDENCE; MISTAKES since the label last changed; EXPECTED, the expected number of these.
    evidence
        The evidence that everything changed.
    seen
        The last changes, by ROUND, LABEL, or EVERYTHING or RETURNED, and SURE, the evidence; change
        i is in row i modulo `KEPT`.
    n_seen
        Number of changes so far.
    began
        Number of rounds before the last change of everything, or zero.
    familiar
        The same as a row of `levels`, for rounds in which much is known.
    totals
        FAMILIAR, the evidence of these rounds; the mean VARIANCE of the chosen labels' scores, the
        newer half of the rounds counting most; SOME_CHANGED, the rounds before the last change of
        some labels, or zero; FORMER, the evidence that the former weights are true again.
    """

    levels: Annotated[np.ndarray, Field(LEVELS, 2, least=0.0)]
    labels: Annotated[np.ndarray, Field("classes", 3, least=0.0)]
    evidence: Amount
    seen: Annotated[np.ndarray, Field(KEPT, 3, least=RETURNED)]
    n_seen: Count
    began: Count
    familiar: Annotated[np.ndarray, Field(2, least=0.0)]
    totals: Annotated[np.ndarray, Field(4, least=0.0)]
    settings: ChangeConstants

    def check(self) -> None:
        """Check what kernels divide by, and that changes are of labels that there are."""
        for name, rates in (("levels", self.levels), ("familiar", self.familiar)):
            if rates[..., MISTAKEN].max() > 1.0:
                raise ValueError(f"{name} has a share of mistakes above one")
        first = self.settings.first_mistakes, self.settings.first_expected
        if (self.labels[:, [MISTAKES, EXPECTED]] < first).any():
            raise ValueError(f"labels has fewer mistakes, or expected ones, than at first, {first}")
        if self.seen[:, LABEL].max() >= len(self.labels):
            raise ValueError(f"seen has a change of label {self.seen[:, LABEL].max():g}")


def new_changes(n_classes: int) -> Changes:
    """Return what is expected before the first round."""
    settings = tuning.TUNING.changes
    levels, labels = np.zeros((LEVELS, 2)), np.zeros((n_classes, 3))
    levels[:, MISTAKEN] = np.maximum(0.5, 1.0 / (1.0 + np.exp(np.arange(LEVELS) - EVEN)))
    levels[:, ROUNDS] = settings.first_rounds
    labels[:, MISTAKES], labels[:, EXPECTED] = settings.first_mistakes, settings.first_expected
    return Changes(
        levels=levels,
        labels=labels,
        evidence=np.zeros(()),
        seen=np.zeros((KEPT, 3)),
        n_seen=np.zeros((), dtype=np.int64),
        began=np.zeros((), dtype=np.int64),
        familiar=np.array([0.5, settings.first_rounds]),
        totals=np.zeros(4),
        settings=settings,
    )


def listed(changes: Changes, labels: list[Any]) -> list[Change]:
    """Return the last changes, the oldest first."""
    n = int(changes.n_seen)
    rows = changes.seen[np.arange(max(0, n - KEPT), n) % KEPT].tolist()
    return [
        Change(int(t), None if k < 0 else labels[int(k)], sure, k == RETURNED)
        for t, k, sure in rows
    ]


# Evidence


@lean_kernel
def needs_former(changes, correct):
    """Return whether `observe_former` has something to count in this round."""
    return changes.began[()] > 0 and not (correct == 1 and changes.evidence[()] == 0.0)


@lean_kernel
def observe_former(changes, q, others, then, correct):
    """Count how much better the former weights predict a bit; call it before `observe`.

    q and `others` are the probabilities that the label is right and wrong, `then` is that of a
    right one by the former weights.
    """
    rarely_called()
    before = expected(changes.levels[level_of(then, 1.0 - then)])
    now = expected(changes.levels[level_of(q, others)])
    more = 0.0
    if correct > 0:
        more += correct * math.log((1.0 - before) / (1.0 - now))
    if correct < 1:
        more += (1 - correct) * math.log(before / now)
    changes.totals[FORMER] = max(0.0, changes.totals[FORMER] + more)


@lean_kernel
def observe(changes, q, others, v, label, correct, rounds):
    """Count a bit, where q and `others` are the probabilities that the label is right and wrong.

    v is the variance of its label's score, and `rounds` how many there were before.
    """
    levels, labels, settings = changes.levels, changes.labels, changes.settings
    level = levels[level_of(q, others)]
    e = expected(level)
    if correct == 1 and changes.evidence[()] == 0.0:
        changes.totals[FORMER] = 0.0
    if correct < 1 or changes.evidence[()] > 0.0 or labels[label, EVIDENCE] > 0.0:
        rho = settings.changed_share
        odds = labels[label, MISTAKES] / labels[label, EXPECTED] * e / (1.0 - e)
        e_label = odds / (1.0 + odds)
        changes.evidence[()] = more_evidence(changes.evidence[()], e, rho, correct)
        if e_label < settings.most_expected:
            labels[label, EVIDENCE] = more_evidence(labels[label, EVIDENCE], e_label, rho, correct)
    count(level, correct)
    labels[label, MISTAKES] += 1 - correct
    labels[label, EXPECTED] += e
    observe_familiar(changes.familiar, changes.totals, settings, v, correct, rounds)


@lean_kernel
def observe_familiar(familiar, totals, settings, v, correct, rounds):
    """Count a bit if much is known, where v is the variance of its label's score."""
    if v <= totals[VARIANCE]:
        if correct < 1 or totals[FAMILIAR] > 0.0:
            e, rho = (
                max(settings.least_mistakes, expected(familiar)),
                settings.familiar_changed_share,
            )
            totals[FAMILIAR] = more_evidence(totals[FAMILIAR], e, rho, correct)
        count(familiar, correct)
    totals[VARIANCE] += 2.0 / (rounds + 2.0) * (v - totals[VARIANCE])


@lean_kernel
def expected(rate):
    """Return the probability of a mistake, from a share of mistakes, by Laplace's rule."""
    n = rate[ROUNDS]
    return (n * rate[MISTAKEN] + 1.0) / (n + 2.0)


@lean_kernel
def count(rate, correct):
    """Count a bit, with a weight that grows with the number of rounds."""
    wrong = 1.0 - correct
    rate[MISTAKEN] += 2.0 / (rate[ROUNDS] + 2.0) * (wrong - rate[MISTAKEN])
    rate[ROUNDS] += 1.0


@lean_kernel
def level_of(q, others):
    """Return the level of confidence, where q and `others` are the probabilities of both bits."""
    if q > HIGHEST_ODDS * others:
        return LEVELS - 1
    place = math.log(max(q, 1e-12) / max(others, 1e-12)) + EVEN
    return int(min(place, LEVELS - 1.0)) if place > 0.0 else 0  # also if it is NaN


@lean_kernel
def more_evidence(evidence, e, rho, correct):
    """Return the evidence of a change after one more bit, where e is how probable a mistake was."""
    if correct == 1:
        return max(0.0, evidence + math.log(1.0 - rho)) if evidence > 0.0 else 0.0
    more = math.log(1.0 + rho * (1.0 - e) / e)
    if correct > 0:  # a grade
        more = correct * math.log(1.0 - rho) + (1 - correct) * more
    return max(0.0, evidence + more)


# Verdicts


@lean_kernel
def verdict(changes, label, correct, rounds):
    """Return what changed, after this bit was observed: NOTHING, SOME, EVERYTHING or RETURNED."""
    if correct == 1:
        return NOTHING
    what = what_changed(changes, label, rounds)
    if what == EVERYTHING and changes.totals[FORMER] > changes.settings.returned:
        return RETURNED
    return what


@lean_kernel
def what_changed(changes, label, rounds):
    """Return what the evidence says after a mistake of this label: NOTHING, SOME or EVERYTHING."""
    labels, totals, began = changes.labels, changes.totals, changes.began[()]
    settings = changes.settings
    everything = max(changes.evidence[()], totals[FAMILIAR]) > settings.everything
    if began > 0 and rounds - began < settings.rounds_between:
        everything = False
    one = labels[label, EVIDENCE] > settings.label
    soon = totals[SOME_CHANGED] > 0.0 and rounds - totals[SOME_CHANGED] < settings.related_rounds
    if not (everything or one or (soon and labels[label, EVIDENCE] > settings.related)):
        return NOTHING
    total, highest = 0.0, 0.0
    for k in range(labels.shape[0]):
        total += labels[k, EVIDENCE]
        highest = max(highest, labels[k, EVIDENCE])
    others_are_right = total > changes.evidence[()] + settings.related
    if everything and not (others_are_right and highest > settings.related):
        totals[SOME_CHANGED] = 0.0
        return EVERYTHING
    if everything or one:
        totals[SOME_CHANGED] = rounds
    if others_are_right:
        changes.evidence[()] = totals[FAMILIAR] = 0.0
    return SOME


@lean_kernel
def has_changed(changes, what, k):
    """Return whether label k is to be forgotten, where `what` is the verdict.

    None is where the verdict is RETURNED: the former weights are true again.
    """
    if what == SOME:
        return changes.labels[k, EVIDENCE] > changes.settings.related
    return what == EVERYTHING


@lean_kernel
def reset(changes, what, rounds):
    """Note what changed in this round, and reset its evidence and expectations."""
    rarely_called()
    labels, totals, settings = changes.labels, changes.totals, changes.settings
    if what != SOME:
        sure = max(changes.evidence[()], totals[FAMILIAR])
        note(changes, what, sure, rounds)
        changes.evidence[()] = totals[FAMILIAR] = totals[FORMER] = 0.0
        changes.familiar[MISTAKEN], changes.familiar[ROUNDS] = 0.5, settings.first_rounds
        changes.began[()] = rounds
    for k in range(labels.shape[0]):
        if what != SOME or has_changed(changes, what, k):
            if what == SOME:
                note(changes, k, labels[k, EVIDENCE], rounds)
            labels[k, EVIDENCE] = 0.0
            labels[k, MISTAKES] = settings.first_mistakes
            labels[k, EXPECTED] = settings.first_expected


@lean_kernel
def note(changes, what, sure, rounds):
    """Add a change to those seen."""
    row = changes.seen[changes.n_seen[()] % KEPT]
    row[ROUND], row[LABEL], row[SURE] = rounds + 1, what, sure
    changes.n_seen[()] += 1
