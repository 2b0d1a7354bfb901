"""Labels in order of their probability of being right, without choosing one."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from onebit.core.example import Example
from onebit.core.run import Run
from onebit.core.scikit_learn import ScikitLearnMixin
from onebit.core.templates import SCORE


class RankedLabel(NamedTuple):
    """A label in a ranking.

    Attributes
    ----------
    label
        The label.
    probability
        The learner's estimate of the probability that it is right; None if its model gives none.
    score
        The score by which labels are ordered.
    """

    label: Any
    probability: float | None
    score: float


class RankingMixin(ScikitLearnMixin):
    """`rank`."""

    def rank(self, x: Any, among: Any = None) -> list[RankedLabel]:
        """Return the labels in order of their probability of being right, the likeliest first.

        Nothing is chosen and nothing changes, the random generator included. A learner whose model
        gives no probabilities orders labels by their scores, and each probability is None. The
        first label is that of `predict`; ties go to the lowest class index.

        Parameters
        ----------
        x : 1-D array, one sparse row, or a row of a data frame
        among : array-like of labels, optional
            The labels to order; by default all that are not retired. Their probabilities are those
            among all labels, as a label may be right without being on offer. They add up to one if
            labels are `exclusive`, and are those of `right_proba`.

        Returns
        -------
        list of RankedLabel

        Examples
        --------
        >>> from onebit import OneBitClassifier
        >>> learner = OneBitClassifier(classes=["a", "b", "c"], random_state=0)
        >>> for x, label in [([1, 0], "a"), ([0, 1], "b"), ([1, 1], "c")] * 20:
        ...     decision = learner.decide(x)
        ...     learner.learn(decision, correct=decision.label == label)
        >>> for label, probability, _ in learner.rank([1, 0]):
        ...     print(label, round(probability, 3))
        a 0.989
        c 0.009
        b 0.002
        """
        run, example = self._started_copy()._prepare_example(x)
        with run.lock:
            scores = self._scores_of(run, example)
            offer = run.current_offer(among)
            probabilities = probabilities_by(run, scores)
        # A stable sort: ties go to the lowest class index.
        order = offer[np.argsort(-scores[offer], kind="stable")]
        return [
            RankedLabel(
                run.labels[k],
                None if probabilities is None else float(probabilities[k]),
                float(scores[k]),
            )
            for k in order.tolist()
        ]

    def _started_copy(self) -> Self:
        """Return the learner, or a copy if it has not started, which starts as this one will."""
        return self if self._started else clone(self)

    def _scores_of(self, run: Run, example: Example) -> np.ndarray:
        """Return the scores of one example, while holding the lock; fill the scratch for it."""
        scores = np.empty(run.classes.size)
        decide = run.kernels.decide(run.state)
        decide(run.packed, example, scores, run.default_offer, np.empty_like(scores), SCORE)
        run.mask_retired(scores)
        return scores


def probabilities_by(run: Run, scores: np.ndarray) -> np.ndarray | None:
    """Return the probability of each label being right by these scores; None without a model."""
    return None if run.inverse_temperature is None else run.probabilities(scores)
