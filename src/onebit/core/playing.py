"""Playing a stream: a round for each of its examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onebit.core.history import History
from onebit.core.learner import Learner
from onebit.core.run import Run
from onebit.core.templates import RoundRecord
from onebit.core.validation import has_bits


def play(
    learner: Learner,
    X: Any,
    y: Any = None,
    *,
    record: bool = True,
    log: Any = None,
    progress: Callable[[History], Any] | None = None,
) -> History:
    """Play a round for each example of a stream, and return the history.

    Parameters
    ----------
    learner : Learner
        It continues from its current state.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or iterable of batches
        Without `y`: an iterable of pairs (X, y), for streams larger than memory. The learner must
        then know its classes.
    y : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        The labels, which only the referee sees: a bandit learner gets one bit, right or wrong.
        Where several labels may be right, or none, as with clicks: for each row and label, whether
        it is right. Columns are in the order of `classes_`, or named by the labels in a data frame.
        The learner must then know its classes.
    record : bool, default=True
        Keep what happened in every round, one byte each. Otherwise the history has only the totals
        and the curve, and memory stays constant however long the stream.
    log : onebit.evaluation.Log, optional
        Each decision is appended to it, with its probability and its bit.
    progress : callable, optional
        Called with the history after each block of rounds, some twenty times a second.

    Returns
    -------
    History

    Examples
    --------
    >>> from onebit import Banditron, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(Banditron(gamma=0.014, random_state=0), X, y)
    History(rounds=10000, error_rate=0.0488, explored=117, updated=10000)
    """
    if not isinstance(learner, Learner):
        got = f"got {learner!r:.80}"
        if hasattr(learner, "steps"):
            got = "of a pipeline, play(pipeline[-1], pipeline[:-1].transform(records), y)"
        raise ValueError(f"play takes a learner, and examples in the form that it takes; {got}")
    history = History(record=record)
    before = learner.rounds_ if _reports_changes(learner) else 0
    for X_batch, y_batch in _batches(X) if y is None else [(X, y)]:
        classes = None
        if y is not None and not learner._started and learner.classes is None:
            classes = None if has_bits(y) else y
        if has_bits(y_batch):
            run, rows, truth = learner._prepare_bits(X_batch, y_batch)
        else:
            run, rows, truth = learner._prepare_rounds(X_batch, y_batch, classes)
        recorded = None if log is None else _new_record(log, run, len(truth))
        ends = history.points(len(truth)) if _is_mixture(learner) else []
        for flags in learner._rounds(
            run, rows, truth, recorded, [t - history.rounds for t in ends]
        ):
            history.append(flags)
            if _reports_changes(learner):
                history.changes = _since(before, learner.changes_)
            if history.rounds in ends:
                history.append_weights(learner.members_)
            if progress is not None:
                progress(history)
        if recorded is not None:
            log.add_rounds(X_batch, recorded, truth, run.classes, run.play_offer)
    return history


def _batches(stream: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the batches of a stream; raise ValueError for examples without labels."""
    if stream is None or isinstance(stream, str | np.ndarray) or hasattr(stream, "shape"):
        raise ValueError(
            f"play takes X and y, or batches of both; y is missing, X is {stream!r:.40}"
        )
    for i, batch in enumerate(stream):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ValueError(f"a batch is a pair (X, y); batch {i} is {batch!r:.80}")
        yield batch[0], batch[1]


def _reports_changes(learner: Any) -> bool:
    """Return whether a learner has `changes_` to report."""
    return learner._started and hasattr(learner, "changes_")


def _is_mixture(learner: Any) -> bool:
    """Return whether a learner has several members, whose weights may change."""
    return len(getattr(learner, "members_", ())) > 1


def _since(before: int, changes: list[Any]) -> list[Any]:
    """Return the changes after round `before`, with rounds counted from there."""
    return [
        change._replace(round=change.round - before) for change in changes if change.round > before
    ]


def _new_record(log: Any, run: Run, n: int) -> RoundRecord:
    """Return an empty record of n rounds, for a log."""
    least, confidence, probabilities = np.full((3, n), np.nan)
    policy = np.empty((n if log.keeps_policy else 0, run.classes.size))
    inverse_temperature = np.nan if run.inverse_temperature is None else run.inverse_temperature
    return RoundRecord(
        np.empty(n, dtype=np.int64),
        probabilities,
        least,
        confidence,
        policy,
        inverse_temperature,
        run.exclusive,
    )
