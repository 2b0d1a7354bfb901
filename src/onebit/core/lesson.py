"""Lessons: a decision and its feedback, validated, as kernels take them."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from onebit.core.example import Example
from onebit.core.generator import LEAST_PROBABILITY, PROBABILITY_ROUNDING
from onebit.core.run import Run


class Lesson(NamedTuple):
    """A decision and its feedback, validated.

    Attributes
    ----------
    run
        The learner's run, to which all positions refer.
    key
        The key that identifies the decision; None if it has no id.
    subject
        Position of the label that the feedback is about; None if the feedback teaches nothing.
    example, label, probability, offer, feedback
        As kernels take them.
    """

    run: Run
    key: int | str | None
    subject: int | None
    example: Example
    label: int
    probability: float
    offer: np.ndarray
    feedback: Any


class Grade(float):
    """A validated reward strictly between 0 and 1: feedback in place of a bit."""

    __slots__ = ()


_BITS = (bool, np.bool_, int, np.integer)


def check_bit(correct: Any) -> int | float | None:
    """Return `correct` as 1 or 0, or a validated grade as a float; None if it is None."""
    if correct is None:
        return None
    if type(correct) is Grade:
        return float(correct)
    if isinstance(correct, _BITS) and (correct == 0 or correct == 1):
        return int(correct)
    raise ValueError(f"correct is True or False, or 1 or 0; got {correct!r}")


def check_reward(reward: Any) -> bool | Grade | None:
    """Return a reward in [0, 1] as feedback: a bit if it is 0 or 1; None if it is None."""
    if reward is None:
        return None
    number = isinstance(reward, Real) and not isinstance(reward, bool | np.bool_)
    if number and 0.0 <= reward <= 1.0:
        value = float(reward)
        return Grade(value) if 0.0 < value < 1.0 else value == 1.0
    raise ValueError(f"reward is a number in [0, 1], a fraction of right; got {reward!r:.80}")


def check_probability(probability: Any) -> float:
    """Return the probability of a decision; a rounding error above one is cut off."""
    try:
        sound = LEAST_PROBABILITY <= probability <= 1.0 + PROBABILITY_ROUNDING
    except (TypeError, ValueError, ArithmeticError):  # of None, arrays, decimals that are NaN
        sound = False
    if not sound:
        raise ValueError(
            f"a decision's probability is in [{LEAST_PROBABILITY:g}, 1]; got {probability!r}"
        )
    return min(float(probability), 1.0)
