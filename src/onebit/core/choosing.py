"""Decisions with worth, cost and limits: how the terms change the policy before a label is drawn.

Rounds with terms are played one by one, also by `partial_fit` and `onebit.play`: their compiled
loops know nothing of terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from onebit.core.base import BaseLearner
from onebit.core.example import Example, Rows, count_rows, row
from onebit.core.run import Run
from onebit.core.templates import (
    CHOOSE,
    EXPLORED,
    MISTAKE,
    UPDATED,
    LoggedRounds,
    feedback_of,
    is_right,
    record_round,
)
from onebit.core.templates import RoundRecord as Record
from onebit.core.terms import (
    Conditions,
    Terms,
    Utility,
    Window,
    check_cost,
    check_explore,
    check_share,
    check_worth,
    draw_entry,
    limit_exploration,
    utility_of,
)

Options = tuple[Any, Any, Any]
"""The arguments worth, cost and explore of a call."""


def options_of(worth: Any, cost: Any, explore: Any) -> Options | None:
    """Return these arguments; None if all have their defaults."""
    if worth is None and cost is None and explore is True:
        return None
    return worth, cost, explore


class ChoosingMixin(BaseLearner):
    """`set_utility`, `set_limits`, and rounds with these terms."""

    def set_utility(
        self, *, worth: Mapping[Any, float] | None = None, cost: Mapping[Any, float] | None = None
    ) -> Self:
        """Set what labels are worth if they are right, and what choosing them costs.

        From then on `decide` prefers the label with the highest worth * P(right) - cost. It
        changes nothing that is learned, nor `predict`. ``decide(x, worth=..., cost=...)`` does the
        same for one decision, in place of what is set here.

        Parameters
        ----------
        worth : mapping from labels to numbers >= 0, optional
            Labels that are not mentioned are worth 1.
        cost : mapping from labels to numbers, optional
            Labels that are not mentioned cost nothing. Without both, all labels are equal again.

        Returns
        -------
        self
        """
        new = self._own_terms()._replace(worth=check_worth(worth), cost=check_cost(cost))
        if self._started:
            with self._run.lock:
                self._utility(self._run, new.worth, new.cost)
        self._set_terms(new)
        return self

    def set_limits(
        self, *, max_exploration: float | None = None, max_new_share: float | None = None
    ) -> Self:
        """Limit the share of decisions that explore, and of labels that are new.

        Parameters
        ----------
        max_exploration : float in [0, 1], optional
            Of any 1,000 consecutive decisions, at most this share is another label than the greedy
            one. The probability of exploring is at most `max_exploration` times the number of such
            decisions that are left, so that they are spread over the window; the probabilities of
            decisions are exact, given the decisions before. None is no limit.
        max_new_share : float in [0, 1], optional
            Of any 1,000 consecutive decisions, at most this share is a label that is new:
            `add_classes` added it, and there was feedback for it fewer than 100 times. If new
            labels would be more probable than the limit leaves, the decision is among the others
            with the probability that remains. With ``explore=False``, it is always among the
            others. The limit gives way only where all labels on offer are new.

        Returns
        -------
        self
        """
        new = self._own_terms()._replace(
            max_exploration=check_share(max_exploration, "max_exploration"),
            max_new_share=check_share(max_new_share, "max_new_share"),
        )
        if new.max_exploration is None and self._started:
            self._run.window = Window()
        if new.max_new_share is None and self._started:
            self._run.new_window = Window()
        self._set_terms(new)
        return self

    def _set_terms(self, terms: Terms) -> None:
        self._terms = None if terms == Terms() else terms
        if self._started:
            with self._run.lock:
                self._run.decide = None

    def _own_terms(self) -> Terms:
        return Terms() if self._terms is None else self._terms

    def _utility(self, run: Run, worth: Any, cost: Any) -> Utility | None:
        found = utility_of(run, worth, cost)
        if found is not None and not self._knows_probabilities(run):
            raise ValueError(
                f"worth and cost need the probability that a label is right, and this "
                f"{type(self).__name__} has no model of it: take OneBitClassifier, or another "
                "learner that has predict_proba"
            )
        return found

    def _conditions(self, run: Run, options: Options | None = None) -> Conditions:
        """Return the terms of a decision, validated, while holding the lock."""
        terms = self._own_terms()
        if options is None:
            if run.conditions is None or run.conditions[:2] != (id(terms), run.classes.size):
                utility = self._utility(run, terms.worth, terms.cost)
                found = Conditions(utility, True, terms.max_exploration, terms.max_new_share)
                run.conditions = id(terms), run.classes.size, found, terms
            return run.conditions[2]
        worth, cost, explore = check_worth(options[0]), check_cost(options[1]), options[2]
        return Conditions(
            self._utility(
                run,
                terms.worth if worth is None else worth,
                terms.cost if cost is None else cost,
            ),
            check_explore(explore),
            terms.max_exploration,
            terms.max_new_share,
        )

    # Policies

    def _fill_policy(
        self,
        run: Run,
        example: Example,
        offer: np.ndarray,
        conditions: Conditions,
        scores: np.ndarray,
        p: np.ndarray,
        most_new: float | None = None,
    ) -> int:
        """Fill scores and policy of one example; return the greedy label.

        New labels have at most the probability that a limit leaves, or `most_new` if it is given.
        """
        if run.choose is None:
            run.compile_decide()
            run.decide = run.choose if self._terms is None else None
        utility, explore, share, new_share = conditions
        if new_share is not None:
            most_new = run.new_window.probability(new_share)
        others = offer if most_new is None else not_new(run, offer)
        if not explore:
            offer = others
        greedy = self._fill_free_policy(run, example, offer, utility, scores, p)
        if others.size < offer.size and most_new is not None:
            of_new = p.copy()
            of_new[others] = 0.0
            if of_new.sum() > most_new:
                greedy = self._fill_free_policy(run, example, others, utility, scores, p)
                p *= 1.0 - most_new
                p += most_new / of_new.sum() * of_new
        if not explore:
            p[:] = 0.0
            p[greedy] = 1.0
        elif share is not None:
            limit_exploration(p, greedy, run.window.probability(share))
        return greedy

    def _fill_free_policy(
        self,
        run: Run,
        example: Example,
        offer: np.ndarray,
        utility: Utility | None,
        scores: np.ndarray,
        p: np.ndarray,
    ) -> int:
        """Fill scores and policy without limits; return the greedy label."""
        _, _, greedy = run.choose(run.packed, example, scores, offer, p, CHOOSE)
        if utility is not None and utility.distinguishes(offer):
            greedy = self._fill_valued_policy(run, utility, offer, scores, p, greedy)
        return int(greedy)

    def _choose(
        self, run: Run, example: Example, offer: np.ndarray, conditions: Conditions
    ) -> tuple[int, float, int]:
        """Return a label, its probability and the greedy label, while holding the lock."""
        p = run.p
        greedy = self._fill_policy(run, example, offer, conditions, run.scores, p)
        # A decision that does not explore leaves the generator alone.
        label = int(draw_entry()(run.state.rng, p)) if conditions.explore else greedy
        _count_decision(run, conditions, label, greedy)
        return label, float(p[label]), greedy

    def _fill_each_policy(
        self,
        run: Run,
        conditions: Conditions,
        rows: Rows,
        scores: np.ndarray,
        offer: np.ndarray,
        p: np.ndarray,
    ) -> None:
        """Fill scores and policy of each row, as if it were the next one to decide about."""
        for i in range(len(scores)):
            x = row.py_func(rows, i)
            self._fill_policy(run, x, offer, conditions, scores[i], p[i])

    # Many rounds

    def _play_each(
        self, run: Run, rows: Rows, truth: np.ndarray, recorded: Record | None = None
    ) -> np.ndarray:
        """Play a block of rounds with the learner's terms, as `_play` does without them."""
        flags = np.empty(len(truth), dtype=np.uint8)
        full, offer = run.feedback == "full", run.default_offer
        conditions = self._conditions(run)
        if full:
            run.refuse_retired(truth)
        self._compile_learn(run)
        for i in range(flags.size):
            x = row.py_func(rows, i)
            label, probability, greedy = self._choose(run, x, offer, conditions)
            record_round(recorded, i, label, run.p, run.scores, offer)
            right = int(is_right(truth, i, label))
            feedback = int(feedback_of(truth, i, right, full))
            updated = self._update(run, x, label, probability, offer, feedback)
            run.count_feedback(label)
            flags[i] = (
                MISTAKE * (not right) | EXPLORED * (label != greedy) | UPDATED * bool(updated)
            )
        return flags

    def _replay_each(
        self,
        run: Run,
        rows: Rows,
        logged: LoggedRounds,
        bound: float,
        offer: np.ndarray,
        chosen: np.ndarray,
        taken: np.ndarray,
    ) -> None:
        """Learn a block of rounds of a log with the learner's terms, as `_replay` does without.

        Only rounds that are kept by rejection sampling count as decisions of this learner.
        """
        conditions = self._conditions(run)
        self._compile_learn(run)
        taken[:] = False
        for i in range(count_rows(rows)):
            x, label = row.py_func(rows, i), int(logged.labels[i])
            greedy = self._fill_policy(run, x, offer, conditions, run.scores, run.p)
            chosen[i] = run.p[label]
            if logged.feedback[i] < 0:
                continue
            probability = float(logged.probabilities[i])
            if bound > 0.0:
                if logged.draws[i] * bound * probability >= chosen[i]:
                    continue
                probability = float(chosen[i])
                _count_decision(run, conditions, label, greedy)
            feedback = float(logged.feedback[i])
            if 0.0 < feedback < 1.0:
                self._update_by_grade(run, x, label, probability, offer, feedback)
            else:
                self._update(run, x, label, probability, offer, int(feedback))
            run.count_feedback(label)
            taken[i] = True

    @staticmethod
    def _compile_learn(run: Run) -> None:
        if run.learn is None:
            run.learn = run.kernels.learn(run.state)


def not_new(run: Run, offer: np.ndarray) -> np.ndarray:
    """Return the labels on offer that are not new; all, if all are new."""
    if not run.new_labels:
        return offer
    others = offer[~np.isin(offer, list(run.new_labels))]
    return others if others.size else offer


def _count_decision(run: Run, conditions: Conditions, label: int, greedy: int) -> None:
    """Count a decision in the window of each limit that is set."""
    if conditions.max_exploration is not None:
        run.window.append(label != greedy)
    if conditions.max_new_share is not None:
        run.new_window.append(label in run.new_labels)
