"""Apprentices: models that learn from the decisions of a product, until they are better.

The product sends its own choice with a request. One of the two decides; a share of the decisions
may be left to the other one. Both are evaluated by the same bits, with importance weights, and the
other one takes over on request, or automatically once it is better with the required confidence.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from msgspec import UNSET, Struct

from onebit.serve.estimates import watched
from onebit.serve.rows import ApprenticeSettings, DecisionBody

BITS_AT_ONCE = 64
"""Bits per update of the two accuracies; their difference is updated with each."""

Decider = Literal["product", "model"]


class Apprentice(Struct):
    """Who decides, and how the model and the product compare since then."""

    since: int
    """The row from which on they are compared: the last change."""
    decides: Decider = "product"
    share: float = 0.0
    """Share of the decisions that are left to the one that does not decide."""
    confidence: float | None = None
    """Probability of being better with which the other one takes over; None: it never does."""
    model: dict[str, Any] | None = None
    """The accuracy of the model, as `estimates.watched` keeps it; likewise that of the product."""
    product: dict[str, Any] | None = None
    difference: dict[str, Any] | None = None
    """By how much the model is better: a `DifferenceSequence` in the form of `to_dict`."""
    pending: list[tuple[float, float, float]] = []
    """Bits that the accuracies do not include yet, with the weights of model and product."""

    @property
    def product_share(self) -> float:
        """Share of the decisions that are the choice of the product."""
        return 1.0 - self.share if self.decides == "product" else self.share

    def change(self, settings: ApprenticeSettings, n: int) -> bool:
        """Change the settings by row n; return whether another one decides."""
        if settings.share is not UNSET:
            self.share = settings.share
        if settings.confidence is not UNSET:
            self.confidence = settings.confidence
        if settings.decides is UNSET or settings.decides == self.decides:
            return False
        self._switch(settings.decides, n)
        return True

    def add_bit(self, body: DecisionBody, value: float, n: int) -> bool:
        """Take the feedback of row n, in [0, 1]; return whether another one decides now."""
        if body.seen < self.since or body.model_probability is None or body.product_share is None:
            return False  # it was decided before, or the product made no choice
        weight, other = weights_of(body)
        self.pending.append((value, weight, other))
        if len(self.pending) >= BITS_AT_ONCE:
            self.model, self.product = self.accuracies()
            self.pending = []
        if self._compare(value, weight, other):
            self._switch("model" if self.decides == "product" else "product", n)
            return True
        return False

    def accuracies(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the accuracies of the model and the product, with all bits so far."""
        return (
            watched(self.model, [(bit, weight) for bit, weight, _ in self.pending]),
            watched(self.product, [(bit, weight) for bit, _, weight in self.pending]),
        )

    def _compare(self, value: float, weight: float, other: float) -> bool:
        """Update the difference; return whether the one that does not decide is better."""
        from onebit.evaluation import DifferenceSequence

        level = 0.95 if self.confidence is None else self.confidence
        if self.difference is None:
            found = DifferenceSequence(level)
        else:
            found = DifferenceSequence.from_dict(self.difference | {"level": level})
        found.update(np.array([value]), weight, other)
        self.difference = found.to_dict()
        if self.confidence is None:
            return False
        return found.is_better() if self.decides == "product" else found.is_worse()

    def _switch(self, decides: Decider, n: int) -> None:
        self.decides, self.since = decides, n
        self.model = self.product = self.difference = None
        self.pending = []


def probability_of(
    is_chosen: bool, model: float, product: float | None, product_share: float
) -> float:
    """Return the probability of a label, given the choice of the product.

    Parameters
    ----------
    is_chosen : bool
        Whether the label is the choice of the product.
    model : float
        The probability that the model gives it.
    product : float or None
        The probability with which the product chose, if it has one. It counts only if the product
        decides alone: the product may choose other labels with probabilities that nobody knows.
    product_share : float
        Probability that the choice of the product is taken.
    """
    if product_share == 1.0:
        return 1.0 if product is None else product
    return product_share * is_chosen + (1.0 - product_share) * model


def weights_of(body: DecisionBody) -> tuple[float, float]:
    """Return the importance weights of a decision, for the model and for the product."""
    assert body.model_probability is not None
    weight = body.model_probability / body.probability
    if body.product_share == 1.0:
        return weight, 1.0
    return weight, (body.label == body.chosen) / body.probability
