"""Single rounds: a learner decides about an example, and learns from the feedback."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Never, overload
from weakref import ref

import numpy as np

from onebit.core.blocks import blocks
from onebit.core.choosing import ChoosingMixin, Options, options_of
from onebit.core.decision import (
    NONE_OF_THESE,
    Decision,
    check_decision,
    check_decisions,
    check_id,
    key_of,
    new_decision,
    refuse_positional,
)
from onebit.core.example import Example, Rows, count_rows, most_in_block, row, slice_rows
from onebit.core.generator import LEAST_PROBABILITY
from onebit.core.lesson import (
    Grade,
    Lesson,
    check_bit,
    check_probability,
    check_reward,
)
from onebit.core.lists import DecisionList, check_top, decide_list, decided_list, learn_list
from onebit.core.offer import label_list
from onebit.core.run import Run
from onebit.core.templates import DRAW
from onebit.core.validation import check_example

_EVERY_LABEL = -1
"""The subject of feedback about all labels, in place of the position of one."""

_new_tuple = tuple.__new__


class RoundsMixin(ChoosingMixin):
    """The online interface: `decide` and `learn`, for one example and for many."""

    @overload
    def decide(
        self,
        x: Any,
        among: Any = None,
        *,
        id: str | None = None,
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        x: Any,
        among: Any = None,
        *,
        id: str | None = None,
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
        top: int,
    ) -> DecisionList: ...
    def decide(
        self,
        x: Any,
        among: Any = None,
        *,
        id: str | None = None,  # noqa: A002
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
        top: int | None = None,
    ) -> Decision | DecisionList:
        """Choose a label for one example, or several in order.

        Parameters
        ----------
        x : 1-D array, one sparse row, or a row of a data frame
            It is copied.
        among : array-like of labels, optional
            The labels on offer, from which one is chosen. The decision's probability is
            conditional on them. By default all labels that are not retired are on offer.
        id : str, optional
            Identifies the decision, in at most 200 characters; by default a unique id is generated.
        worth : mapping from labels to numbers >= 0, optional
            What a label brings if it is right. Labels that are not mentioned are worth 1.
        cost : mapping from labels to numbers, optional
            What choosing a label costs, right or wrong; nothing for labels that are not mentioned.
            With worth or cost, the label with the highest worth * P(right) - cost is preferred;
            see `set_utility`.
        explore : bool, default=True
            If not, the greedy label is chosen, with probability one: the one with the highest
            score, or value if there is worth or cost. Feedback for it teaches as any other does,
            but a log of such decisions says nothing about other labels.
        top : int, optional
            Choose a list of this many labels, or of all that are on offer if these are fewer. Each
            place is drawn as a decision among the labels that the places before it left.

        Returns
        -------
        Decision; DecisionList if `top` is given
        """
        options = None
        if worth is not None or cost is not None or explore is not True:
            options = worth, cost, explore
        if top is not None:
            return decide_list(self, x, among, id, options, top)
        run = self._run
        if run is not None:  # the usual case, spared two calls
            if id is not None:
                check_id(id)
            if run.feature_names is None:
                example = check_example(x, run.all_features)
            else:
                run, example = self._prepare_example(x)
        else:
            among = None if among is None else label_list(among, "among")
            run, example = self._validated(RoundsMixin._check_decide, x, among, id, options)
        lock = run.lock
        try:
            lock.acquire(False) or lock.wait()
            if options is None:
                decision = self._decide(run, example, among, id)
            else:
                decision = self._decide_with(options, run, example, among, id)
        except BaseException:
            lock.release_if_owned()
            raise
        lock.release()
        return decision

    def _check_decide(
        self, x: Any, among: Any, name: Any, options: Options | None
    ) -> tuple[Run, Example]:
        """Validate the arguments of `decide`."""
        if name is not None:
            check_id(name)
        run, example = self._prepare_example(x)
        run.current_offer(among)
        self._conditions(run, options)
        return run, example

    @overload
    def decide_many(
        self,
        X: Any,
        among: Any = None,
        *,
        ids: Any = None,
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
    ) -> list[Decision]: ...
    @overload
    def decide_many(
        self,
        X: Any,
        among: Any = None,
        *,
        ids: Any = None,
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
        top: int,
    ) -> list[DecisionList]: ...
    def decide_many(
        self,
        X: Any,
        among: Any = None,
        *,
        ids: Any = None,
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
        top: int | None = None,
    ) -> Any:
        """Choose a label for each row of `X`, as `decide` would, one row after the other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        among : array-like of labels, optional
            The labels on offer, in every row.
        ids : sequence of str, optional
            One for each row.
        worth, cost, explore, top : optional
            As in `decide`, for every row.

        Returns
        -------
        list of Decision; of DecisionList if `top` is given
        """
        options = options_of(worth, cost, explore)
        among = None if among is None else label_list(among, "among")
        arguments = X, among, ids, options, top
        run, rows, names = self._validated(RoundsMixin._check_decide_many, *arguments)
        decisions: list[Any] = []
        for lo, hi in blocks(count_rows(rows), most=most_in_block(rows)):
            block = slice_rows(rows, lo, hi)
            with run.lock:
                for i in range(lo, hi):
                    x = row.py_func(block, i - lo)
                    indices = x.indices.copy() if rows.sparse else run.all_features
                    example = Example(indices, x.values.copy(), x.n_features)
                    if top is not None:
                        given = run, example, among, names[i], options, top
                        decisions.append(decided_list(self, *given))
                    elif options is None:
                        decisions.append(self._decide(run, example, among, names[i]))
                    else:
                        decisions.append(self._decide_with(options, run, example, among, names[i]))
        return decisions

    def _check_decide_many(
        self, X: Any, among: Any, ids: Any, options: Options | None, top: int | None
    ) -> tuple[Run, Rows, list[str | None]]:
        """Validate the arguments of `decide_many`."""
        run, rows = self._prepare_rows(X)
        names = _one_each(ids, count_rows(rows), "ids")
        if top is not None:
            check_top(top, names)
        with run.lock:
            run.current_offer(among)
            self._conditions(run, options)
        return run, rows, [None if name is None else check_id(name) for name in names]

    def _decide(self, run: Run, example: Example, among: Any, name: str | None) -> Decision:
        """Choose a label, while holding the lock."""
        if run.decide is None:
            if self._terms is not None:
                return self._decide_with(None, run, example, among, name)
            run.compile_decide()
        offer = run.default_offer if among is None else run.current_offer(among)
        label, probability, _ = run.decide(run.packed, example, run.scores, offer, run.p, DRAW)
        confidence = None if run.right_probability is None else run.confidence(run.scores, label)
        offered = run.default_among if among is None else run.labels_at(offer)
        return new_decision(example, run.labels[label], probability, offered, name, confidence)

    def _decide_with(
        self, options: Options | None, run: Run, example: Example, among: Any, name: str | None
    ) -> Decision:
        """Choose a label with terms, while holding the lock."""
        offer = run.current_offer(among)
        conditions = self._conditions(run, options)
        label, probability, _ = self._choose(run, example, offer, conditions)
        offered = run.default_among if among is None else run.labels_at(offer)
        confidence = run.confidence(run.scores, label)
        return new_decision(example, run.labels[label], probability, offered, name, confidence)

    def learn(
        self,
        decision: Decision | DecisionList,
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
        taken: Any = None,
        reward: Any = None,
    ) -> None:
        """Learn from the feedback for a decision or a list, now or later, in any order.

        Late feedback is applied to the current weights, with the probability that the decision was
        made with. Learning twice from a decision is an error; see `has_learned`. Feedback about a
        label that has been retired since then is ignored.

        Parameters
        ----------
        decision : Decision or DecisionList
            From `decide`, or made by hand from a log.
        correct : bool, 0 or 1, optional
            Whether the label was right: all that a bandit learner needs. For a list, a sequence
            with a bit for each place, None where it is not known.
        truth : label or NONE_OF_THESE, optional
            The right label, in place of `correct`; a full-information learner needs it. Whether a
            bandit learner learns more from it than one bit is `uses_truth`. NONE_OF_THESE, if no
            label is right, is ignored if labels are `exclusive`: it does not say which label is
            right if one is. Otherwise each label is learned to be wrong.
        taken : label or NONE_OF_THESE, optional
            For a list, in place of `correct`: the label that was taken, the first right one. Labels
            before it were seen and are wrong; of those after it nothing is learned. NONE_OF_THESE
            says that all were seen and are wrong.
        reward : float in [0, 1], optional
            In place of `correct`: a fraction of right. 1 and 0 are the bits. A reward in between
            counts as the mean over a bit that is 1 with this probability, so its likelihood is
            q^reward (1 - q)^(1 - reward), where q is the probability that the label is right.
            Learners that need a bit refuse such a reward, see `takes_rewards`. For a list, a
            sequence with a reward for each place, None where it is not known.
        """
        if unnamed:
            refuse_positional("learn", unnamed)
        if reward is not None:
            correct = self._graded(decision, correct, reward)
        if type(decision) is not Decision or taken is not None:
            if isinstance(decision, DecisionList) or taken is not None:
                learn_list(self, decision, correct, truth, taken)
                return
            check_decision(decision)
        if self._run is not None:  # the usual case, spared one call
            lesson = self._lesson(decision, correct, truth)
        else:
            lesson = self._validated(RoundsMixin._lesson, decision, correct, truth)
        run = lesson.run
        lock = run.lock
        try:
            lock.acquire(False) or lock.wait()
            if decision._learned_by or lesson.key in run.learned:
                self._check_new(decision, run)
            self._learn(decision, lesson)
        except BaseException:
            lock.release_if_owned()
            raise
        lock.release()

    def learn_many(
        self,
        decisions: Iterable[Decision],
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
        reward: Any = None,
    ) -> None:
        """Learn from the feedback for many decisions, as `learn` would, one after the other.

        An error in any of them leaves the learner as it was.

        Parameters
        ----------
        decisions : iterable of Decision
        correct : sequence of bool, 0 or 1, optional
            One for each decision; None where there is `truth` instead.
        truth : sequence of labels, optional
            One for each decision; None where there is `correct` instead.
        reward : sequence of float in [0, 1], optional
            One for each decision, as in `learn`; None where there is `correct` or `truth` instead.
        """
        refuse_positional("learn_many", unnamed)
        decisions = check_decisions(decisions)
        bits = _one_each(correct, len(decisions), "correct")
        if reward is not None:
            rewards = _one_each(reward, len(decisions), "reward")
            given = zip(decisions, bits, rewards, strict=True)
            bits = [bit if r is None else self._graded(one, bit, r) for one, bit, r in given]
        truths = _one_each(truth, len(decisions), "truth")
        if not decisions:
            return
        lessons = self._validated(RoundsMixin._lessons, decisions, bits, truths)
        run = lessons[0].run
        with run.lock:
            for decision in decisions:
                self._check_new(decision, run)
            for decision, lesson in zip(decisions, lessons, strict=True):
                self._learn(decision, lesson)

    def _lessons(
        self, decisions: list[Decision], bits: Sequence[Any], truths: Sequence[Any]
    ) -> list[Lesson]:
        """Validate the arguments of `learn_many`."""
        found = [self._lesson(*feedback) for feedback in zip(decisions, bits, truths, strict=True)]
        seen: set[Any] = set()
        for decision in decisions:
            names = {builtins.id(decision), decision._key} - {None}
            if seen & names:
                raise ValueError(f"{decision!r} is twice among the decisions to learn from")
            seen |= names
        if any(lesson.run is not found[0].run for lesson in found):  # another thread started anew
            return self._lessons(decisions, bits, truths)
        return found

    def has_learned(self, decision: Decision | DecisionList | str) -> bool:
        """Return whether the learner has learned from a decision, or from one with this id.

        It has learned from a list if it has from any of its places.

        It remembers the ids of the last 100,000 decisions, also after it was saved and loaded.
        """
        if isinstance(decision, DecisionList):
            return any(self.has_learned(place) for place in decision)
        key = key_of(decision) if isinstance(decision, str) else check_decision(decision)._key
        by_id = self._started and key in self._run.learned
        return by_id or (not isinstance(decision, str) and ref(self) in decision._learned_by)

    def _graded(self, decision: Any, correct: Any, reward: Any) -> Any:
        """Return rewards as feedback in place of `correct`: bits or grades."""
        if correct is not None:
            raise ValueError("learn takes either correct=... or reward=...")
        if isinstance(decision, DecisionList):
            rewards = _one_each(reward, len(decision), "reward")
            return [self._graded(None, None, one) for one in rewards]
        found = check_reward(reward)
        if type(found) is Grade and self.feedback == "bandit" and not self.takes_rewards:
            raise ValueError(
                f"{type(self).__name__} is an algorithm for bits, and a reward of {reward!r} is no "
                "bit: take a learner that takes_rewards, such as OneBitClassifier, or draw a bit "
                "with this probability: learn(decision, correct=rng.random() < reward)"
            )
        return found

    def _lesson(self, decision: Decision, correct: Any, truth: Any) -> Lesson:
        """Validate the arguments of `learn`."""
        if type(decision) is not Decision:
            check_decision(decision)
        if (correct is None) == (truth is None):
            raise ValueError("learn takes one of correct=..., reward=... and truth=...")
        begun = self._run
        if truth is None and (self if begun is None else begun).feedback == "full":
            raise ValueError(
                f"{type(self).__name__} learns from the label itself: learn(decision, truth=...)"
            )
        probability = decision.probability
        if type(probability) is not float or not LEAST_PROBABILITY <= probability <= 1.0:
            probability = check_probability(probability)
        feedback: Any = 1 if correct is True else 0 if correct is False else check_bit(correct)
        key: Any = decision._number
        if key is None and decision._id is not None:
            key = key_of(check_id(decision._id))
        run, x = begun, decision.x
        if run is not None and (run.feature_names is None or type(x) is Example):
            example = check_example(x, run.all_features)
        else:
            run, example = self._prepare_example(x)
        try:
            label = run.positions[decision.label]
        except (KeyError, TypeError):
            label = run.position_of(decision.label)  # raises an error with a message
        offer = run.all_labels
        if decision.among is not None:
            offer = run.offer(decision.among)
            if label not in offer:
                among = decision.among
                raise ValueError(
                    f"the label {decision.label!r} of a decision is not in its among, {among}"
                )
        subject: Any = label
        if truth is NONE_OF_THESE:
            subject, feedback = None, self._none_feedback
            if not run.exclusive:
                subject = _EVERY_LABEL
        elif feedback is None:
            feedback = subject = self._encode_truth(truth, run)
            if run.feedback == "bandit" and self.uses_truth:
                label, probability, offer = subject, 1.0, run.all_labels
                feedback = self._truth_feedback
            elif run.feedback == "bandit":
                subject, feedback = label, int(feedback == label)
        if run.learn is None and type(feedback) is not float:
            run.learn = run.kernels.learn(run.state)
        # In half the time that Lesson(...) takes.
        lesson = run, key, subject, example, label, probability, offer, feedback
        return _new_tuple(Lesson, lesson)

    def _check_new(self, decision: Decision, run: Run) -> None:
        """Raise if the learner has already learned from the decision, while holding the lock."""
        before = decision._learned_by
        if decision._key in run.learned or (before and ref(self) in before):
            raise ValueError(f"this {type(self).__name__} has already learned from {decision!r}")

    def _learn(self, decision: Decision, lesson: Lesson) -> None:
        """Learn from one decision, while holding the lock."""
        run, key, subject, example, label, probability, offer, feedback = lesson
        if subject is not None and not (run.retired and subject in run.retired):
            if type(feedback) is float:
                self._update_by_grade(run, example, label, probability, offer, feedback)
            else:
                self._update(run, example, label, probability, offer, feedback)
            if run.new_labels:
                run.count_feedback(subject)
        decision._learned_by += (ref(self),)
        if key is not None:
            run.remember(key)

    def _encode_truth(self, truth: Any, run: Run) -> Any:
        """Return `truth` as the kernels take it."""
        return run.position_of(truth)


def _one_each(values: Any, n: int, name: str) -> Sequence[Any]:
    """Return one value for each of n decisions; all None if there are no values."""
    if values is None:
        return [None] * n
    if isinstance(values, str | bytes) or not np.iterable(values):
        raise ValueError(f"{name} is a list with one for each decision; got {values!r:.80}")
    found = list(values)
    if len(found) != n:
        raise ValueError(f"{name} is a list with one for each of {n} decisions; got {len(found)}")
    return found
