"""Templates of the functions that are compiled for a learner: single rounds, and loops of them.

`onebit.core.engine` makes functions of them, with the three kernels of a learner in the place of
`score`, `policy` and `learn`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, int64
from numba.core.types import NoneType, none

from onebit.core.compiling import chosen_by_type, lean_kernel, open_state, received
from onebit.core.confidence import right_probability
from onebit.core.example import row
from onebit.core.generator import LEAST_PROBABILITY, draw
from onebit.core.offer import on_offer

MISTAKE, EXPLORED, UPDATED = 1, 2, 4
"""The bits of the byte that records a round."""

SCORE, CHOOSE, DRAW = 0, 1, 2
"""How far a single round goes: to the scores, to the policy, or to a label drawn from it."""


class RoundRecord(NamedTuple):
    """What is recorded of rounds, for a log.

    Attributes
    ----------
    labels
        The chosen labels, by their positions.
    probabilities
        Their probabilities.
    least
        The smallest probability of a label on offer.
    confidence
        The probability that the chosen label is right, as `right_probability` has it.
    policy
        The probabilities of all labels; no rows if they are not recorded.
    inverse_temperature
        NaN if the scores are not those of a probability model: then there is no confidence.
    exclusive
        Whether exactly one label is right, by that model.
    """

    labels: np.ndarray
    probabilities: np.ndarray
    least: np.ndarray
    confidence: np.ndarray
    policy: np.ndarray
    inverse_temperature: float
    exclusive: bool


class LoggedRounds(NamedTuple):
    """Rounds of a log.

    Attributes
    ----------
    labels
        The chosen labels, by their positions.
    probabilities
        Their probabilities.
    feedback
        As `learn` takes it; negative where there is none.
    draws
        From [0, 1), one for each round; empty without rejection sampling.
    """

    labels: np.ndarray
    probabilities: np.ndarray
    feedback: np.ndarray
    draws: np.ndarray


def record_round(recorded, i, label, p, scores, offer):
    """Record round `i`, if `recorded` is not None."""
    if recorded is not None:
        _fill_record(recorded, i, label, p, scores, offer)


@chosen_by_type(record_round)
def _record_round(recorded, i, label, p, scores, offer):
    if isinstance(recorded, NoneType):
        return lambda recorded, i, label, p, scores, offer: None
    return lambda recorded, i, label, p, scores, offer: _fill_record(
        recorded, i, label, p, scores, offer
    )


def is_right(truth, i, label):
    """Return whether a label is right in round `i`: 1 or 0.

    `truth` has the right label of each round, or for each round and label, whether it is right.
    """
    return np.int64(truth[i] == label if truth.ndim == 1 else truth[i, label])


@chosen_by_type(is_right)
def _is_right(truth, i, label):
    if truth.ndim == 1:
        return lambda truth, i, label: np.int64(truth[i] == label)
    return lambda truth, i, label: np.int64(truth[i, label])


def feedback_of(truth, i, right, full):
    """Return the feedback of round `i`: whether the label was right, or which label is."""
    return truth[i] if full else right


@chosen_by_type(feedback_of)
def _feedback_of(truth, i, right, full):
    if truth.ndim == 1:
        return lambda truth, i, right, full: truth[i] if full else right
    return lambda truth, i, right, full: right


@lean_kernel
def _fill_record(recorded, i, label, p, scores, offer):
    recorded.labels[i] = label
    recorded.probabilities[i] = p[label]
    least = 1.0
    for k in on_offer(offer, p.size):
        # Labels that are too improbable to be drawn are never chosen.
        least = min(least, p[k] if p[k] >= LEAST_PROBABILITY else 0.0)
    recorded.least[i] = least
    if not math.isnan(recorded.inverse_temperature):
        recorded.confidence[i] = right_probability(
            scores, recorded.inverse_temperature, recorded.exclusive, label
        )
    if recorded.policy.shape[0]:
        for k in range(p.size):
            recorded.policy[i, k] = p[k]


# In the functions below, `compiled` binds these names to the kernels of a learner.
score: Any = None
policy: Any = None
learn: Any = None
opened: Any = open_state


@lean_kernel
def unopened(packed):
    """Return a packed state as it is, for kernels that are compiled separately."""
    return packed


def _play(packed, rows, truth, full, scores, offer, p, flags, recorded):
    state, rng = opened(packed), open_state(packed).rng
    for i in range(flags.size):
        x = row(rows, i)
        score(state, x, scores)
        greedy = policy(state, x, scores, offer, p)
        label = draw(rng, p)
        record_round(recorded, i, label, p, scores, offer)
        right = is_right(truth, i, label)
        feedback = feedback_of(truth, i, right, full)
        updated = learn(state, x, scores, label, p[label], offer, feedback)
        flags[i] = MISTAKE * (right == 0) | EXPLORED * (label != greedy) | UPDATED * bool(updated)


def _replay(packed, rows, logged, bound, scores, offer, p, chosen, taken):
    state = opened(packed)
    for i in range(chosen.size):
        x, label = row(rows, i), logged.labels[i]
        score(state, x, scores)
        policy(state, x, scores, offer, p)
        chosen[i] = p[label]
        taken[i] = False
        if logged.feedback[i] < 0:
            continue
        probability = logged.probabilities[i]
        if bound > 0.0:
            # The rounds that are kept are distributed as if the learner had chosen the labels.
            if logged.draws[i] * bound * probability >= chosen[i]:
                continue
            probability = chosen[i]
        learn(state, x, scores, label, probability, offer, logged.feedback[i])
        taken[i] = True


def _decide(packed, x, scores, offer, p, until):
    state = opened(packed)
    score(state, x, scores)
    label = greedy = np.int64(-1)
    probability = 0.0
    if until >= CHOOSE:
        greedy = policy(state, x, scores, offer, p)
    if until == DRAW:
        label = draw(open_state(packed).rng, p)
        probability = p[label]
    return label, probability, greedy


def _learn(packed, x, scores, label, probability, offer, feedback):
    state = opened(packed)
    score(state, x, scores)
    return learn(state, x, scores, label, probability, offer, feedback)


def _evaluate(packed, rows, scores, offer, p):
    state = opened(packed)
    for i in range(scores.shape[0]):
        x = row(rows, i)
        score(state, x, scores[i])
        if i < p.shape[0]:
            policy(state, x, scores[i], offer, p[i])


TEMPLATES: dict[str, tuple[Any, bool]] = {
    "decide": (_decide, False),
    "learn": (_learn, False),
    "grade": (_learn, False),
    "play": (_play, True),
    "evaluate": (_evaluate, True),
    "replay": (_replay, True),
}
"""Templates of the compiled functions, by name, and whether they release the GIL."""


def _score_kernel(state, x, scores):
    score(state, received(x), received(scores))


def _policy_kernel(state, x, scores, offer, p):
    return policy(state, received(x), received(scores), received(offer), received(p))


def _learn_kernel(state, x, scores, label, probability, offer, feedback):
    given = received(x), received(scores), label, probability, received(offer), feedback
    return bool(learn(state, *given))


SEPARATE: dict[str, tuple[Any, Any]] = {
    "learn": (_learn_kernel, boolean),
    "grade": (_learn_kernel, boolean),
    "score": (_score_kernel, none),
    "policy": (_policy_kernel, int64),
}
"""Templates of the kernels that are compiled separately, the longest first, and their results.

`grade` is `learn` for a fraction of right.
"""

CALLED = {
    "decide": ("score", "policy"),
    "learn": ("score", "learn"),
    "grade": ("score", "grade"),
    "play": ("score", "policy", "learn"),
    "evaluate": ("score", "policy"),
    "replay": ("score", "policy", "learn"),
}
"""The kernels that each of `TEMPLATES` calls."""

OF_LEARN = ("learn_kernel", "learn")
"""What another process compiles while this one compiles what decides."""
