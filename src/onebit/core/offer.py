"""The labels on offer: those that a decision may choose from.

For kernels, an offer is None, if all labels are on offer, or the positions of labels in `classes_`,
in increasing order. They loop with ``for k in on_offer(offer, n)``: compiled for None, this is the
faster loop over ``range(n)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numba.core import types

from onebit.core.compiling import chosen_by_type
from onebit.core.validation import unknown

_LARGEST_POSITION = 2**63 - 1
"""A mask that changes no position, and shows the compiler that it does not count from the end."""


def on_offer(offer, n):
    """Return the positions of the labels on offer, of `n` labels in all."""
    return range(n) if offer is None else offer.tolist()  # a list's integers are faster in Python


@chosen_by_type(on_offer)
def _on_offer(offer, n):
    if isinstance(offer, types.NoneType):
        return lambda offer, n: range(n)
    return lambda offer, n: offer


def n_on_offer(offer, n):
    """Return the number of labels on offer, of `n` labels in all."""
    return n if offer is None else offer.size


@chosen_by_type(n_on_offer, inline=False)
def _n_on_offer(offer, n):
    if isinstance(offer, types.NoneType):
        return lambda offer, n: n
    return lambda offer, n: offer.size


def nth_on_offer(offer, i, n):
    """Return the position of the `i`-th label on offer, of `n` labels in all."""
    return i if offer is None else offer[i]


@chosen_by_type(nth_on_offer, inline=False)
def _nth_on_offer(offer, i, n):
    if isinstance(offer, types.NoneType):
        return lambda offer, i, n: i
    # If all are on offer, a loop reads no positions.
    return lambda offer, i, n: i if offer.size == n else offer[i] & _LARGEST_POSITION


def label_list(given: Any, name: str) -> list[Any]:
    """Return labels as a list, with at least one."""
    if isinstance(given, str | bytes):
        raise ValueError(f"{name} is a list of labels; got the text {given!r}")
    try:
        labels = list(given)
    except TypeError:
        raise ValueError(f"{name} is a list of labels; got {given!r}") from None
    if not labels:
        raise ValueError(f"{name} is empty, and at least one label is needed")
    return labels


def check_among(
    among: Any, positions: Mapping[Any, int], classes: np.ndarray, name: str = "among"
) -> np.ndarray:
    """Return the positions of the labels `among`, in increasing order."""
    labels = label_list(among, name)
    try:
        found = sorted([positions[label] for label in labels])
    except (KeyError, TypeError):
        for label in labels:
            if not is_known(label, positions):
                raise ValueError(f"unknown label {unknown(label, classes)}, in {name}") from None
        raise
    if len(set(found)) < len(found):
        twice = next(a for a, b in pairwise(found) if a == b)
        raise ValueError(f"{name} has the label {classes[twice : twice + 1].tolist()[0]!r} twice")
    return np.array(found, dtype=np.int64)


def is_known(label: Any, positions: Mapping[Any, Any]) -> bool:
    """Return whether `label` is one of the classes; an unhashable value is not."""
    try:
        return label in positions
    except TypeError:
        return False
