"""Worth and cost of labels, and limits on exploration: the terms on which a learner decides.

A decision with terms takes the policy that the compiled kernels filled, and changes it before the
label is drawn. So its probability is exact, whatever the learner, and a decision without terms
runs the same machine code as before.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import float64, uint64

from onebit.core.compiling import called_from_python, entry_point
from onebit.core.generator import draw
from onebit.core.offer import is_known
from onebit.core.validation import short, unknown

if TYPE_CHECKING:
    from onebit.core.run import Run

WINDOW = 1_000
"""Length of the window of consecutive decisions in which the explored ones are limited."""

KNOWN_AFTER = 100
"""Feedback after which a label that was added is no longer new.

The standard error of its share of right decisions is then at most 0.5 / sqrt(100) = 0.05.
"""


MOST = sys.float_info.max
"""The largest finite float; comparing with it refuses larger integers, which have no float."""


class Utility(NamedTuple):
    """What labels bring if they are right, and what choosing them costs, by their positions."""

    worth: np.ndarray
    cost: np.ndarray

    def values(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the expected utility of labels that are right with these probabilities."""
        return self.worth * probabilities - self.cost

    def distinguishes(self, offer: np.ndarray) -> bool:
        """Return whether the labels on offer differ in worth or cost, or are worth nothing."""
        worth, cost = self.worth[offer], self.cost[offer]
        same = (worth == worth[0]).all() and (cost == cost[0]).all()
        return not (same and worth[0] > 0.0)


class Terms(NamedTuple):
    """The terms of all decisions of a learner, as they were given.

    Attributes
    ----------
    worth, cost
        Numbers by label; labels that are not mentioned are worth 1 and cost 0.
    max_exploration
        The largest share of explored decisions; None without a limit.
    max_new_share
        The largest share of decisions for labels that are new; None without a limit.
    """

    worth: dict[Any, float] | None = None
    cost: dict[Any, float] | None = None
    max_exploration: float | None = None
    max_new_share: float | None = None


class Conditions(NamedTuple):
    """The terms of one decision.

    Attributes
    ----------
    utility
        None if labels have neither worth nor cost.
    explore
        Whether the label may be another than the greedy one.
    max_exploration, max_new_share
        As in `Terms`.
    """

    utility: Utility | None
    explore: bool
    max_exploration: float | None
    max_new_share: float | None = None


class Window:
    """Which of the last decisions explored, or chose a label that was new.

    Attributes
    ----------
    decisions
        Number of decisions so far.
    explored
        The numbers, counted from one, of the decisions within the window that explored, or chose a
        label that was new.
    """

    __slots__ = ("decisions", "explored")

    def __init__(self, decisions: int = 0, explored: Iterable[int] = ()) -> None:
        self.decisions, self.explored = decisions, deque(explored)

    def count(self) -> int:
        """Return how many of the last WINDOW - 1 decisions are in `explored`."""
        first = self.decisions - (WINDOW - 1)
        while self.explored and self.explored[0] <= first:
            self.explored.popleft()
        return len(self.explored)

    def append(self, explored: bool) -> None:
        """Count a decision."""
        self.decisions += 1
        if explored:
            self.explored.append(self.decisions)

    def probability(self, share: float) -> float:
        """Return the largest probability of exploring in the next decision, if at most `share` do.

        With u explorations in the window, share * WINDOW - u are left, and the probability is
        `share` times that number. With one left, decisions explore as often as the limit allows on
        average: so the limit is nearly used, and few decisions find none left.
        """
        left = math.floor(share * WINDOW + 1e-9) - self.count()
        return min(1.0, share * max(0, left))


def limit_exploration(p: np.ndarray, greedy: int, most: float) -> None:
    """Scale down the probabilities of all labels but the greedy one: they sum to at most `most`."""
    p_greedy = p[greedy]
    p[greedy] = 0.0
    others = p.sum()
    if others <= most:
        p[greedy] = p_greedy
        return
    p *= most / others
    p[greedy] = 1.0 - p.sum()


@called_from_python
def _draw_for_python(rng, p):
    return draw(rng, p)


@cache
def draw_entry() -> Any:
    """Return `draw` for Python, compiled to trust the types of its arguments."""
    return entry_point(_draw_for_python, (uint64[::1], float64[::1]))


# Input validation


def check_numbers(given: Any, name: str, least: float = -math.inf) -> dict[Any, float]:
    """Return `worth` or `cost` as a dict of finite numbers by label."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{name} is a mapping from labels to numbers; got {short(given)}")
    found = {}
    for label, value in given.items():
        number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if not (number and max(least, -MOST) <= value <= MOST):
            at_least = "" if least == -math.inf else f" of at least {least:g}"
            raise ValueError(
                f"{name} has finite numbers{at_least}; got {short(value)} for {short(label)}"
            )
        found[label] = float(value)
    return found


def check_worth(given: Any) -> dict[Any, float] | None:
    """Return `worth`, validated; None if it is None."""
    return None if given is None else check_numbers(given, "worth", 0.0)


def check_cost(given: Any) -> dict[Any, float] | None:
    """Return `cost`, validated; None if it is None."""
    return None if given is None else check_numbers(given, "cost")


def check_share(given: Any, name: str) -> float | None:
    """Return a share in [0, 1], validated; None if it is None."""
    if given is None:
        return None
    number = isinstance(given, Real) and not isinstance(given, bool | np.bool_)
    if number and 0.0 <= given <= 1.0:
        return float(given)
    raise ValueError(f"{name} is a number in [0, 1], or None; got {short(given)}")


def check_explore(given: Any) -> bool:
    """Return `explore`, validated."""
    if isinstance(given, bool | np.bool_):
        return bool(given)
    raise ValueError(f"explore is True or False; got {short(given)}")


def utility_of(
    run: Run, worth: Mapping[Any, float] | None, cost: Mapping[Any, float] | None
) -> Utility | None:
    """Return worth and cost by the positions of labels; None if there is neither."""
    if worth is None and cost is None:
        return None
    for name, given in (("worth", worth), ("cost", cost)):
        for label in given or ():
            if not is_known(label, run.positions):
                raise ValueError(f"unknown label {unknown(label, run.classes)}, in {name}")
    return Utility(_column(run, worth, 1.0), _column(run, cost, 0.0))


def _column(run: Run, given: Mapping[Any, float] | None, default: float) -> np.ndarray:
    column = np.full(run.classes.size, default)
    for label, value in (given or {}).items():
        column[run.positions[label]] = value
    return column


# Files


def terms_to_json(terms: Terms) -> dict[str, Any]:
    """Return terms as a file has them: numbers by label as lists of pairs."""
    return {
        "worth": None if terms.worth is None else _pairs(terms.worth),
        "cost": None if terms.cost is None else _pairs(terms.cost),
        "max_exploration": terms.max_exploration,
        **({} if terms.max_new_share is None else {"max_new_share": terms.max_new_share}),
    }


def terms_from_json(found: Mapping[str, Any]) -> Terms:
    """Return the terms in a file; raise ValueError if they are unsound."""
    return Terms(
        check_worth(_from_pairs(found.get("worth"), "worth")),
        check_cost(_from_pairs(found.get("cost"), "cost")),
        check_share(found.get("max_exploration"), "max_exploration"),
        check_share(found.get("max_new_share"), "max_new_share"),
    )


def _pairs(numbers: Mapping[Any, float]) -> list[list[Any]]:
    pairs = []
    for label, value in numbers.items():
        plain = label.item() if isinstance(label, np.generic) else label
        if not isinstance(plain, str | int | float):
            raise ValueError(f"the label {short(label)}, with worth or cost, cannot be written")
        pairs.append([plain, value])
    return pairs


def _from_pairs(pairs: Any, name: str) -> Any:
    if pairs is None:
        return None
    sound = isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs)
    if not sound or not all(isinstance(label, str | int | float) for label, _ in pairs):
        raise ValueError(f"{name} is {short(pairs)}, and should be pairs of labels and numbers")
    return dict(pairs)


def window_to_json(window: Window) -> dict[str, Any]:
    """Return a window as a file has it."""
    window.count()
    return {"decisions": window.decisions, "explored": list(window.explored)}


def new_labels_to_json(feedback: Mapping[int, int], window: Window) -> dict[str, Any]:
    """Return which labels are new, with their feedback so far, and the window, for a file."""
    return {"feedback": [list(pair) for pair in feedback.items()], **window_to_json(window)}


def new_labels_from_json(found: Mapping[str, Any], n_classes: int) -> tuple[dict[int, int], Window]:
    """Return what `new_labels_to_json` was given; raise ValueError if it is unsound."""
    pairs: Any = found.get("feedback")
    sound = isinstance(pairs, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(n) is int for n in pair)
        for pair in pairs
    )
    if not sound or not all(0 <= k < n_classes and 0 <= n < KNOWN_AFTER for k, n in pairs):
        raise ValueError(f"new_labels is {short(dict(found))}, and should list new labels")
    return dict(pairs), window_from_json(found)


def window_from_json(found: Mapping[str, Any]) -> Window:
    """Return the window in a file; raise ValueError if it is unsound."""
    decisions: Any = found.get("decisions")
    explored: Any = found.get("explored")
    sound = type(decisions) is int and decisions >= 0 and isinstance(explored, list)
    sound = sound and len(explored) <= WINDOW and all(type(i) is int for i in explored)
    if not sound or sorted({*explored, 0, decisions + 1}) != [0, *explored, decisions + 1]:
        raise ValueError(f"window is {short(dict(found))}, and should list decisions that explored")
    return Window(decisions, explored)
