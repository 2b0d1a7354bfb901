"""Many rounds at once: rows that are played, labelled examples, and rounds of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np

from onebit.core.blocks import blocks
from onebit.core.choosing import ChoosingMixin
from onebit.core.example import Rows, count_rows, most_in_block, row, slice_rows
from onebit.core.generator import (
    LEAST_PROBABILITY,
    PROBABILITY_ROUNDING,
    random_state_of,
    unchanged_on_error,
)
from onebit.core.offer import label_list
from onebit.core.run import Run
from onebit.core.templates import LoggedRounds, RoundRecord
from onebit.core.terms import MOST
from onebit.core.validation import (
    check_bits,
    check_classes,
    check_labels,
    check_rows,
    feature_names,
    positions_of,
    raise_first,
)


class BatchesMixin(ChoosingMixin):
    """Many rounds in one call: `teach`, `replay`, and the rounds of `partial_fit` and `play`."""

    def teach(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from labelled examples, without a decision, at any time.

        A bandit learner learns as if it had chosen these labels with probability one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            As in `partial_fit`.

        Returns
        -------
        self
        """
        run, rows, truth = self._prepare_rounds(X, y, classes)
        if run.learn is None:
            run.learn = run.kernels.learn(run.state)
        for lo, hi in blocks(truth.size, most=most_in_block(rows)):
            block = slice_rows(rows, lo, hi)
            with run.lock:
                run.refuse_retired(truth)
                for i, label in enumerate(truth[lo:hi].tolist()):
                    feedback = label if run.feedback == "full" else self._truth_feedback
                    self._update(run, row.py_func(block, i), label, 1.0, run.all_labels, feedback)
                    run.count_feedback(label)
        return self

    def replay(
        self,
        X: Any,
        labels: Any,
        probabilities: Any,
        correct: Any = None,
        *,
        reward: Any = None,
        among: Any = None,
        bound: float | None = None,
        random_state: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from the rounds of a log, whose labels were chosen by others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : array-like of shape (n_samples,)
            The chosen labels.
        probabilities : array-like of shape (n_samples,)
            The probabilities with which they were chosen.
        correct : array-like of shape (n_samples,)
            1 or 0; NaN where there is no feedback.
        reward : array-like of shape (n_samples,), optional
            In place of `correct`: numbers in [0, 1], as `learn` takes them; NaN without feedback.
            If one is between 0 and 1, rounds are learned one by one, in a few microseconds each.
        among : array-like of labels, optional
            The labels on offer, in every round, from which `labels` were chosen; by default all
            that are not retired.
        bound : float >= 1, optional
            By default the learner learns from every bit, with the probability in the log. With a
            bound, it learns from a sample of the rounds that is distributed as if it had chosen the
            labels itself (rejection sampling): a round is kept with the probability that the
            learner gives to its label, divided by `bound` times the probability in the log. The
            quotient must not exceed one.
        random_state : int, RandomState instance or None, default=None
            Seeds the rejection sampling.

        Returns
        -------
        chosen : ndarray of shape (n_samples,)
            The probability that the learner gave to each label in its round.
        taken : ndarray of bool, of shape (n_samples,)
            Whether it learned from the round.
        """
        if self.feedback == "full":
            raise ValueError(f"{type(self).__name__} learns from the label, and a log has bits")
        among = None if among is None else label_list(among, "among")
        with unchanged_on_error(random_state):
            feedback = "correct" if reward is None else "reward", correct, reward
            arguments = X, labels, probabilities, feedback, among, bound, random_state
            run, rows, logged, offer = self._validated(BatchesMixin._check_replay, *arguments)
        n = count_rows(rows)
        chosen, taken = np.empty(n), np.empty(n, dtype=bool)
        for lo, hi in blocks(n, most=most_in_block(rows)):
            some = slice_rows(rows, lo, hi), _slice_fields(logged, lo, hi), float(bound or 0), offer
            with run.lock:
                is_plain = self._terms is None and logged.feedback.dtype == np.int64
                replay = self._replay if is_plain else self._replay_each
                replay(run, *some, chosen[lo:hi], taken[lo:hi])
                for k in list(run.new_labels) if is_plain else ():
                    run.count_feedback(k, int((taken & (logged.labels == k))[lo:hi].sum()))
        return chosen, taken

    def _check_replay(
        self,
        X: Any,
        labels: Any,
        probabilities: Any,
        given: tuple[str, Any, Any],
        among: Any,
        bound: Any,
        random_state: Any,
    ) -> tuple[Run, Rows, LoggedRounds, np.ndarray]:
        """Validate the arguments of `replay`."""
        if bound is not None and not _is_bound(bound):
            raise ValueError(f"bound is a finite number of at least 1, or None; got {bound!r}")
        run, rows = self._prepare_rows(X)
        n = count_rows(rows)
        positions = positions_of(run.classes, check_labels(labels, n, self))
        p = _column(probabilities, n, "probabilities")
        raise_first(
            ~((p >= LEAST_PROBABILITY) & (p <= 1.0 + PROBABILITY_ROUNDING)),
            lambda i: f"a probability is in [{LEAST_PROBABILITY:g}, 1]; got {p[i]} in row {i}",
        )
        feedback = self._logged_feedback(*given, n)
        with run.lock:
            offer = run.current_offer(among)
            retired = run.retired
        raise_first(
            ~np.isin(positions, offer),
            lambda i: (
                f"the label {run.labels[positions[i]]!r} in row {i} is "
                + ("retired" if positions[i] in retired else "not in among")
            ),
        )
        draws = random_state_of(random_state).random_sample(0 if bound is None else n)
        return run, rows, LoggedRounds(positions, np.minimum(p, 1.0), feedback, draws), offer

    def _logged_feedback(self, name: str, correct: Any, reward: Any, n: int) -> np.ndarray:
        """Return the feedback of a log: integers, or floats if some are between 0 and 1."""
        if (correct is None) == (reward is None):
            raise ValueError("replay takes either correct or reward=...")
        found = _column(correct if reward is None else reward, n, name)
        is_bit = np.isnan(found) | (found == 0.0) | (found == 1.0)
        if reward is None:
            raise_first(~is_bit, lambda i: f"correct is 1, 0 or NaN; got {found[i]:g} in row {i}")
        sound = np.isnan(found) | ((found >= 0.0) & (found <= 1.0))
        raise_first(~sound, lambda i: f"reward is in [0, 1], or NaN; got {found[i]:g} in row {i}")
        if not self.takes_rewards:
            raise_first(
                ~is_bit,
                lambda i: (
                    f"{type(self).__name__} is an algorithm for bits, and the reward in row {i} is "
                    f"{found[i]:g}"
                ),
            )
        feedback = np.nan_to_num(found, nan=-1.0)
        return feedback.astype(np.int64) if is_bit.all() else feedback

    def _prepare_rounds(self, X: Any, y: Any, classes: Any = None) -> tuple[Run, Rows, np.ndarray]:
        """Validate all rows and labels; start the learner if it has not started."""
        return self._validated(BatchesMixin._check_rounds, X, y, classes)

    def _check_rounds(self, X: Any, y: Any, classes: Any) -> tuple[Run, Rows, np.ndarray]:
        """Validate the arguments of `partial_fit`, `teach` and `onebit.play`."""
        rows = check_rows(X, self, keep_float32=True)
        y = check_labels(y, count_rows(rows), self)
        known = None if classes is None else check_classes(classes)
        run = self._run
        if run is None:
            known = self._validated_classes() if known is None else known
            truth = positions_of(known, y)
            return self._start(known, rows.n_features, feature_names(X)), rows, truth
        if known is not None and not np.array_equal(known, np.sort(run.classes)):
            raise ValueError(
                f"classes={known.tolist()} differ from those the learner started with, {run.labels}"
            )
        truth = positions_of(run.classes, y)
        self._check_features(run, X, rows)
        return run, rows, truth

    def _prepare_bits(self, X: Any, right: Any) -> tuple[Run, Rows, np.ndarray]:
        """Validate all rows, and which labels are right for each; start the learner if needed."""
        return self._validated(BatchesMixin._check_bits, X, right)

    def _check_bits(self, X: Any, right: Any) -> tuple[Run, Rows, np.ndarray]:
        """Validate the arguments of `onebit.play` where several labels may be right."""
        if self.feedback == "full":
            raise ValueError(
                f"{type(self).__name__} learns from the right label of each row, not from bits; "
                f"got y of shape {np.shape(right)}"
            )
        run, rows = self._prepare_rows(X)
        return run, rows, check_bits(right, count_rows(rows), run.labels)

    def _rounds(
        self,
        run: Run,
        rows: Rows,
        truth: np.ndarray,
        recorded: RoundRecord | None = None,
        ends: Sequence[int] = (),
    ) -> Iterator[np.ndarray]:
        """Play the rows, yielding the flags of a block of rounds at a time; see `blocks`."""
        for lo, hi in blocks(len(truth), ends, most_in_block(rows)):
            block = slice_rows(rows, lo, hi)
            record = None if recorded is None else _slice_fields(recorded, lo, hi)
            with run.lock:
                play = self._play if self._terms is None else self._play_each
                flags = play(run, block, truth[lo:hi], record)
            yield flags


def _slice_fields(columns: Any, lo: int, hi: int) -> Any:
    """Return rounds `lo` to `hi` of a NamedTuple; other fields than arrays are shared."""
    return columns._make(a[lo:hi] if isinstance(a, np.ndarray) else a for a in columns)


def _column(values: Any, n: int, name: str) -> np.ndarray:
    """Return a column of n numbers."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with values missing; fill them in first")
    try:
        found = np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} contains an integer too large for a float") from None
    if found.shape != (n,):
        raise ValueError(f"{name} has one number for each of {n} rows; got shape {found.shape}")
    return found


def _is_bound(bound: Any) -> bool:
    number = isinstance(bound, Real) and not isinstance(bound, bool)
    return bool(number and 1.0 <= bound <= MOST)
