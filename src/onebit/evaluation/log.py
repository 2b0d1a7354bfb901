"""A log: decisions with their feedback, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from onebit.core.decision import NONE_OF_THESE, Decision
from onebit.core.example import Example, dense
from onebit.core.generator import PROBABILITY_ROUNDING
from onebit.core.offer import is_known
from onebit.core.validation import positions_of, unknown

UNKNOWN = -1
"""The position of an unknown truth."""

NONE = -2
"""The position of NONE_OF_THESE, until its bit is recorded."""


Where = Callable[[Any], str]
"""Returns where in a file a row is."""


class Log:
    """Decisions with their feedback, in the order of the feedback.

    A log is made by ``play(..., log=log)``, from decisions (`from_decisions`), from a data frame
    (`from_frame`), from a file (`read`), or here, by hand, from columns. The contents of columns
    are checked, and an error names the row.

    Parameters
    ----------
    labels : array-like of shape (n,), optional
        What was chosen. Without it the log is empty, for `play` to fill.
    probabilities : array-like of shape (n,)
        With which it was chosen, in (0, 1].
    correct : array-like of shape (n,), optional
        Whether it was right: True or False, 1 or 0; None or NaN without feedback.
    x : {array-like, sparse matrix} of shape (n, n_features), or list of records, optional
        What was decided about: records for a pipeline that takes records, or the examples that it
        made of them. A frame with other columns than numbers becomes records.
    classes : array-like, optional
        All labels, in the order of `policy`; by default those that occur.
    among : list of lists of labels, optional
        Those on offer in each round; None, also for single rounds, means all.
    truth : array-like of shape (n,), optional
        The right labels, where known, else None. `correct` follows from it.
    reward : array-like of shape (n,), optional
        In place of `correct`: a number in [0, 1], a fraction of right; None or NaN where `correct`
        or `truth` says it, or nobody does.
    ids : array-like of shape (n,), optional
        Each decision's unique id.
    times : array-like of shape (n,), optional
        When each decision was made.
    confidence : array-like of shape (n,), optional
        The learner's estimate of the probability that the label is right.
    least : float or array-like of shape (n,), optional
        The least probability that any label on offer had: a learner's `min_probability`. It shows
        that all labels are covered, which the chosen label's probability alone cannot.
    policy : array-like of shape (n, n_classes), optional
        The probabilities of all labels, from which `least` follows.
    keeps_policy : bool, default=False
        Whether `play` stores the probabilities of all labels here.
    where : callable, optional
        Returns where a row is, for errors: by default "row 7".

    Attributes
    ----------
    classes : ndarray
    labels : ndarray of int
        Positions in `classes`.
    truth : ndarray of int
        Positions in `classes`; -1 where unknown.
    correct : ndarray of float
        The bits, and the rewards (see `is_graded`); NaN where unknown.
    probabilities, confidence, least : ndarray of float
        NaN where unknown.
    among : ndarray of bool, of shape (n, n_classes)
        None if the log has none.
    x, policy, ids, times
        As above; None if the log has none.

    Examples
    --------
    >>> from onebit import OneBitClassifier, play, streams
    >>> from onebit.evaluation import Log
    >>> log = Log()
    >>> X, y = streams.synnonsep(2000, seed=0)
    >>> _ = play(OneBitClassifier(random_state=0), X, y, log=log)
    >>> log
    Log(rows=2000, classes=9, right=0.9050, without feedback=0)
    >>> Log(["a", "b"], [0.5, 1.2], [True, None])
    Traceback (most recent call last):
    ValueError: row 1: a probability is in (0, 1]; got 1.2
    """

    def __init__(
        self,
        labels: Any = None,
        probabilities: Any = None,
        correct: Any = None,
        *,
        x: Any = None,
        classes: Any = None,
        among: Any = None,
        truth: Any = None,
        reward: Any = None,
        ids: Any = None,
        times: Any = None,
        confidence: Any = None,
        least: Any = None,
        policy: Any = None,
        keeps_policy: bool = False,
        where: Where | None = None,
    ) -> None:
        self.keeps_policy, self._more = keeps_policy, list[Log]()
        where = (lambda row: f"row {row}") if where is None else where
        labels = [] if labels is None else labels
        n = len(labels)
        if n and probabilities is None:
            raise ValueError("a log has the probability with which each label was chosen")
        truths = [] if truth is None else truth
        self.classes = _classes_of(labels, truths, classes)
        positions = {label: k for k, label in enumerate(self.classes.tolist())}

        def find(label: Any, row: int) -> int:
            try:
                return positions[label]
            except (KeyError, TypeError):
                words = unknown(label, self.classes)
                raise ValueError(f"{where(row)}: unknown label {words}") from None

        self.labels = _positions(labels, self.classes, find)
        for i in np.flatnonzero(self.labels < 0):
            raise ValueError(f"{where(i)}: label is missing")
        self.truth = np.full(n, UNKNOWN)
        self.correct = _bits(correct, n, where)
        if reward is not None:
            rewards = _numbers(reward, n, "reward", where, missing=True)
            _check_range(rewards, "a reward", where)
            for i in np.flatnonzero(~np.isnan(rewards) & (np.abs(rewards - self.correct) > 0.0)):
                raise ValueError(f"{where(i)}: a row has either correct or reward")
            self.correct = np.where(np.isnan(rewards), self.correct, rewards)
        if truth is not None:
            self.truth = _positions(_same_length(truth, n, "truth"), self.classes, find)
            self.correct[self.truth == NONE] = 0.0
            self.truth[self.truth == NONE] = UNKNOWN
        self.probabilities = _numbers(probabilities, n, "probability", where)
        _check_range(self.probabilities, "a probability", where, above=0.0)
        known = self.truth != UNKNOWN
        right = (self.truth == self.labels).astype(float)
        for i in np.flatnonzero(known & (np.abs(self.correct - right) > 0.0)):
            raise ValueError(f"{where(i)}: correct contradicts the truth")
        self.correct[known] = right[known]
        self.confidence = _numbers(confidence, n, "confidence", where, missing=True)
        _check_range(self.confidence, "a confidence", where)
        least = np.full(n, least) if np.ndim(least) == 0 and least is not None else least
        self.least = _numbers(least, n, "least", where, missing=True)
        _check_range(self.least, "the least probability of a label", where)
        for i in np.flatnonzero(self.least > self.probabilities * (1.0 + PROBABILITY_ROUNDING)):
            raise ValueError(
                f"{where(i)}: the label had probability {self.probabilities[i]}, and the least of "
                f"all labels is said to be {self.least[i]}"
            )
        self.among = None if among is None else self._offers(_column(among, n, "among"), find)
        if self.among is not None:
            for i in np.flatnonzero(~self.among[np.arange(n), self.labels]):
                raise ValueError(f"{where(i)}: the label is not among those on offer")
        self.policy = None if policy is None else self._policy(policy, n, where)
        self.x = None if x is None else _examples(x, n)
        self.ids = None if ids is None else _column(ids, n, "ids")
        self.times = None if times is None else _column(times, n, "times")
        self._check_ids(where)

    # Constructors

    @classmethod
    def from_decisions(
        cls,
        decisions: Iterable[Decision],
        *,
        correct: Any = None,
        truth: Any = None,
        reward: Any = None,
        **columns: Any,
    ) -> Self:
        """Return the log of decisions, with their feedback.

        Parameters
        ----------
        decisions : iterable of Decision
        correct, truth, reward : sequence, optional
            As `learn_many` takes them, one for each decision; None where there is no feedback.
        **columns
            More columns: `classes`, `times`, `least`, `policy`; and `x`, where the records
            themselves are to be kept. By default x is the example that each decision holds.
        """
        made = list(decisions)
        x = columns.pop("x", None)
        among = [decision.among for decision in made]
        ids = [decision.id for decision in made]
        return cls(
            [decision.label for decision in made],
            [decision.probability for decision in made],
            correct,
            truth=truth,
            reward=reward,
            x=([decision.x for decision in made] or None) if x is None else x,
            among=None if all(offer is None for offer in among) else among,
            ids=None if any(name is None for name in ids) else ids,
            confidence=[decision.confidence for decision in made],
            **columns,
        )

    @classmethod
    def from_frame(cls, frame: Any, features: Any = None, **columns: Any) -> Self:
        """Return the log in a data frame of pandas, Polars or PyArrow.

        Parameters
        ----------
        frame : data frame
            Its columns `label`, `probability` and, if present, `correct`, `truth`, `reward`, `id`,
            `time`, `confidence`, `least`, `among` and `x`.
        features : list of str, optional
            The columns that make up x, if it is not a single column: an array if all are numbers,
            else records.
        **columns
            What holds for all rows: `classes`, `least`.
        """
        from onebit.evaluation.files import from_columns

        taken = frame.to_pydict() if hasattr(frame, "to_pydict") else _frame_columns(frame)
        if features is not None:
            missing = [name for name in features if name not in taken]
            if missing:
                raise ValueError(f"the frame has no column {missing[0]!r}")
            taken["x"] = _joined_columns({name: taken[name] for name in features})
        return cls(**from_columns(taken, **columns))

    @classmethod
    def read(cls, path: str | PathLike[str], **columns: Any) -> Self:
        """Return the log in a file: .jsonl, .parquet, .csv or .dsjson.

        Parameters
        ----------
        path : path of the file
        **columns
            What holds for all rows: `classes`, `least`.
        """
        from onebit.evaluation.files import classes_in, read

        parts = list(read(path, size=None, **columns))
        if parts and "classes" not in parts[0] and parts[0].get("among"):
            parts[0]["classes"] = classes_in(path)  # also labels that were never chosen
        return cls(**parts[0]) if parts else cls(**columns)

    @classmethod
    def batches(cls, path: str | PathLike[str], size: int = 50_000, **columns: Any) -> LogFile:
        """Return the log in a file as an iterable of logs, one of which is in memory at a time.

        An id that occurs in two batches is not noticed; `read` notices it.

        Parameters
        ----------
        path : path of the file, or of a folder of files
            Files of a folder are parts of one log, in the order of their names.
        size : int, default=50_000
            Rows of a batch.
        **columns
            What holds for all rows: `classes`, `least`. Without `classes`, the file is read once
            before the first batch to find its labels, unless it lists them.
        """
        return LogFile(path, size, columns)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the log to a file: .jsonl, .parquet, .csv or .dsjson."""
        from onebit.evaluation.files import write

        write(path, self)

    # Filled by play

    def add_rounds(
        self,
        X: Any,
        recorded: Any,
        truth: np.ndarray,
        classes: np.ndarray,
        offer: np.ndarray | None,
    ) -> None:
        """Take rounds of `play`: what the engine recorded, and the truth.

        `truth` has the right label of each round, or which labels are right in each.
        """
        if "labels" in self.__dict__ and len(self):
            self._more.append(self[:])
        for name in _COLUMNS:
            self.__dict__.pop(name, None)
        self._more.append(_from_rounds(X, recorded, truth, classes, offer))

    def __getattr__(self, name: str) -> Any:
        # The rounds of many batches become one table only when it is used.
        if name not in _COLUMNS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__ |= vars(join(self._more)) | {"keeps_policy": self.keeps_policy}
        return self.__dict__[name]

    # Views

    def __len__(self) -> int:
        return int(self.labels.size)

    def __getitem__(self, rows: Any) -> Self:
        """Return some rows, by a slice or an array of positions."""
        if isinstance(rows, int | np.integer):
            rows = slice(rows, rows + 1)
        made = type(self)()
        made.classes = self.classes
        for name in _COLUMNS[1:]:
            column = getattr(self, name)
            if isinstance(column, list):
                at = np.arange(len(column))[rows]
                column = [column[i] for i in at.tolist()]
            elif column is not None:
                column = column[rows]
            setattr(made, name, column)
        return made

    @property
    def has_feedback(self) -> np.ndarray:
        """Which decisions have a bit."""
        return ~np.isnan(self.correct)

    @property
    def is_graded(self) -> bool:
        """Whether some feedback is between right and wrong, which `reward` said."""
        return bool(((self.correct > 0.0) & (self.correct < 1.0)).any())

    @property
    def on_offer(self) -> np.ndarray:
        """Which labels were on offer, (n, n_classes)."""
        if self.among is None:
            return np.broadcast_to(True, (len(self), self.classes.size))
        return self.among

    def position_of(self, label: Any) -> int:
        """Return the position of a label in `classes`."""
        for k, known in enumerate(self.classes.tolist()):
            if known == label and isinstance(known, str) == isinstance(label, str):
                return k
        raise ValueError(f"unknown label {unknown(label, self.classes)}")

    def decision(self, i: int) -> Decision:
        """Return the decision of one row."""
        labels = self.classes.tolist()
        among = self.among
        return Decision(
            None if self.x is None else self.x[i],
            labels[self.labels[i]],
            float(self.probabilities[i]),
            None if among is None else tuple(np.array(labels, dtype=object)[among[i]].tolist()),
            None if self.ids is None else self.ids[i],
            None if np.isnan(self.confidence[i]) else float(self.confidence[i]),
        )

    def __repr__(self) -> str:
        known = self.has_feedback
        right = f"{self.correct[known].mean():.4f}" if known.any() else "unknown"
        return (
            f"Log(rows={len(self)}, classes={self.classes.size}, right={right}, "
            f"without feedback={np.count_nonzero(~known)})"
        )

    # Internals

    def _offers(self, among: list[Any], find: Callable[[Any, Any], int]) -> np.ndarray:
        offers = np.ones((len(among), self.classes.size), dtype=bool)
        for i, offer in enumerate(among):
            if offer is not None:
                offers[i] = False
                offers[i, [find(label, i) for label in offer]] = True
        return offers

    def _policy(self, policy: Any, n: int, where: Where) -> np.ndarray:
        p = np.array(policy, dtype=np.float64).reshape(n, -1)
        if p.shape[1] != self.classes.size:
            raise ValueError(f"policy has {p.shape[1]} columns for {self.classes.size} classes")
        for i in np.flatnonzero(~((p >= 0.0).all(axis=1) & (np.abs(p.sum(axis=1) - 1.0) < 1e-3))):
            raise ValueError(f"{where(i)}: the probabilities of all labels do not sum to one")
        chosen = p[np.arange(n), self.labels]
        for i in np.flatnonzero(np.abs(chosen - self.probabilities) > PROBABILITY_ROUNDING):
            raise ValueError(
                f"{where(i)}: the label had probability {self.probabilities[i]}, and "
                f"{chosen[i]} in the probabilities of all labels"
            )
        unsaid = np.isnan(self.least)
        offered = p if self.among is None else np.where(self.among, p, 1.0)
        self.least[unsaid] = offered[unsaid].min(axis=1, initial=1.0)
        return p

    def _check_ids(self, where: Where) -> None:
        first: dict[Any, int] = {}
        for i, name in enumerate(self.ids or ()):
            if first.setdefault(name, i) != i and name is not None:
                raise ValueError(f"{where(i)}: the id {name!r} is that of {where(first[name])} too")


class LogFile:
    """A log in a file: an iterable of logs that can be iterated any number of times."""

    def __init__(self, path: str | PathLike[str], size: int, columns: dict[str, Any]) -> None:
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"a batch has at least one row; got size={size!r}")
        self.path, self.size, self.columns = path, size, columns

    def __iter__(self) -> Any:
        from onebit.evaluation.files import classes_in, joined_classes, parts_of, read

        files = parts_of(self.path)
        if self.columns.get("classes") is None:
            classes = joined_classes(map(classes_in, files), self.path)
            self.columns = self.columns | {"classes": classes}
        return (
            Log(**part) for file in files for part in read(file, size=self.size, **self.columns)
        )


_COLUMNS = (
    *("classes", "labels", "probabilities", "correct", "truth", "confidence", "least"),
    *("among", "policy", "x", "ids", "times"),
)


def join(logs: Iterable[Log]) -> Log:
    """Return several logs as one; later ones may have more classes."""
    parts = list(logs)
    joined, last = Log(), parts[-1]
    n = last.classes.size
    joined.classes = last.classes
    for part in parts:
        if part.classes.tolist() != last.classes[: part.classes.size].tolist():
            raise ValueError(
                f"logs to join have the same classes, or more in the later ones; got "
                f"{part.classes.tolist()!r:.80} and {last.classes.tolist()!r:.80}"
            )
    for name in _COLUMNS[1:]:
        columns = [getattr(part, name) for part in parts]
        if name == "among" and any(column is not None for column in columns):
            columns = [part.on_offer for part in parts]
        if any(column is None for column in columns):
            setattr(joined, name, None)
        elif isinstance(columns[0], list):
            setattr(joined, name, [value for column in columns for value in column])
        elif sp.issparse(columns[0]):
            setattr(joined, name, sp.vstack(columns, format="csr"))
        elif name in ("among", "policy"):
            wide = [np.pad(column, ((0, 0), (0, n - column.shape[1]))) for column in columns]
            setattr(joined, name, np.concatenate(wide))
        else:
            setattr(joined, name, np.concatenate(columns))
    return joined


def _from_rounds(
    X: Any, recorded: Any, truth: np.ndarray, classes: np.ndarray, offer: np.ndarray | None
) -> Log:
    made, n = Log(), len(truth)
    made.classes, made.labels = classes, recorded.labels
    made.probabilities, made.least = recorded.probabilities, recorded.least
    made.confidence = recorded.confidence
    if truth.ndim == 1:
        made.truth, made.correct = truth, (recorded.labels == truth).astype(float)
    else:
        made.truth = np.full(n, UNKNOWN)
        made.correct = truth[np.arange(n), recorded.labels].astype(float)
    made.policy = recorded.policy if recorded.policy.shape[0] == n else None
    if offer is not None:
        made.among = np.zeros((n, classes.size), dtype=bool)
        made.among[:, offer] = True
    made.x = _examples(X, n)
    return made


def _plain_list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _same_length(values: Any, n: int, name: str) -> Any:
    if len(values) != n:
        raise ValueError(f"{name} has one value for each of {n} rows; got {len(values)}")
    return values


def _column(values: Any, n: int, name: str) -> list[Any]:
    return _same_length(_plain_list(values), n, name)


def _classes_of(labels: Any, truths: Any, classes: Any) -> np.ndarray:
    if classes is None:
        said = {*_plain_list(labels), *_plain_list(truths)} - {None, NONE_OF_THESE}
        found = {label for label in said if label == label}  # in a data frame, NaN is missing
        try:
            classes = sorted(found)
        except TypeError:
            raise ValueError(f"labels are all of one kind; got {list(found)!r:.80}") from None
    made = np.array(_plain_list(classes))
    if made.ndim != 1 or len(set(made.tolist())) < made.size:
        raise ValueError(f"classes is a list of different labels; got {classes!r:.80}")
    return made


def _positions(labels: Any, classes: np.ndarray, find: Callable[[Any, int], int]) -> np.ndarray:
    """Return the positions of labels in `classes`; `find` handles unusual ones."""
    is_array = isinstance(labels, np.ndarray) and not np.ma.is_masked(labels)
    if is_array and labels.dtype.kind == classes.dtype.kind in "iU":
        with suppress(ValueError):  # that names no file and line
            return positions_of(classes, labels)

    def position(one: Any, i: int) -> int:
        if one is None or (isinstance(one, float) and np.isnan(one)):
            return UNKNOWN
        return NONE if one is NONE_OF_THESE else find(one, i)

    found = [position(one, i) for i, one in enumerate(_plain_list(labels))]
    return np.array(found, dtype=np.int64)


def _numbers(values: Any, n: int, name: str, where: Where, *, missing: bool = False) -> np.ndarray:
    if values is None:
        return np.full(n, np.nan)
    try:
        found = np.array(_unmasked(values), dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} contains an integer too large for a float") from None
    except (TypeError, ValueError):
        for i, value in enumerate(_plain_list(values)):
            if not isinstance(value, int | float) and not (missing and value is None):
                raise ValueError(f"{where(i)}: {name} is a number; got {value!r:.40}") from None
        found = np.array([np.nan if v is None else v for v in _plain_list(values)], dtype=float)
    if found.shape != (n,):
        raise ValueError(f"{name} has one number for each of {n} rows; got shape {found.shape}")
    if not missing and np.isnan(found).any():
        raise ValueError(f"{where(int(np.isnan(found).argmax()))}: {name} is missing")
    return found


def _unmasked(values: Any) -> Any:
    """Return values with NaN, which is missing, in place of what is masked."""
    return values.astype(np.float64).filled(np.nan) if np.ma.is_masked(values) else values


def _check_range(values: np.ndarray, what: str, where: Where, above: float | None = None) -> None:
    low = values > above if above is not None else values >= 0.0
    for i in np.flatnonzero(~(np.isnan(values) | (low & (values <= 1.0 + PROBABILITY_ROUNDING)))):
        ends = "(0, 1]" if above is not None else "[0, 1]"
        raise ValueError(f"{where(i)}: {what} is in {ends}; got {values[i]}")
    np.minimum(values, 1.0, out=values)


_SAID: Mapping[Any, float] = {True: 1.0, False: 0.0, None: np.nan}


def _bits(correct: Any, n: int, where: Where) -> np.ndarray:
    if correct is None:
        return np.full(n, np.nan)
    given = np.asarray(_unmasked(correct))
    if given.dtype.kind in "biuf" and given.shape == (n,):
        found = given.astype(np.float64)
        for wrong in np.flatnonzero(~(np.isnan(found) | (found == 0.0) | (found == 1.0))):
            raise ValueError(f"{where(wrong)}: correct is one bit; got {given[wrong]}")
        return found
    found = np.empty(n)
    for i, bit in enumerate(_column(correct, n, "correct")):
        bit = None if isinstance(bit, float) and np.isnan(bit) else bit
        if isinstance(bit, str) or not is_known(bit, _SAID):
            raise ValueError(f"{where(i)}: correct is True, False or None; got {bit!r:.40}")
        found[i] = _SAID[bit]
    return found


def _examples(x: Any, n: int) -> Any:
    """Return examples as a matrix, if they are numbers, else as a list of records."""
    if np.ma.is_masked(x):
        raise ValueError("x is a masked array with values missing; fill them in first")
    if isinstance(x, np.ndarray) or hasattr(x, "iloc"):
        x = _records_in(x)
    if sp.issparse(x):
        made: Any = sp.csr_array(x)
    elif isinstance(x, np.ndarray):
        made = x
    else:
        made = list(x)
        if made and all(isinstance(one, Example) for one in made):
            made = _stacked(made)
        elif made and all(isinstance(one, list | tuple | np.ndarray) for one in made):
            made = np.array(made, dtype=np.float64)
    if (made.shape[0] if hasattr(made, "shape") else len(made)) != n:
        raise ValueError(f"x has one example for each of {n} rows")
    return made


def _records_in(x: Any) -> Any:
    """Return the records in an array or a frame, as a list; numbers as an array."""
    found = np.asarray(x)
    if found.dtype.kind not in "OU" or all(isinstance(value, Real) for value in found.flat):
        return found
    if hasattr(x, "columns"):
        return x.to_dict("records")
    return found.tolist() if found.ndim == 1 else found


def _stacked(examples: list[Example]) -> Any:
    if all(one.values.size == one.n_features for one in examples):
        return np.array([dense(one) for one in examples])
    indptr = np.cumsum([0, *(one.values.size for one in examples)])
    indices = np.concatenate([one.indices for one in examples]).astype(np.int32)
    values = np.concatenate([one.values for one in examples])
    return sp.csr_array((values, indices, indptr), shape=(len(examples), examples[0].n_features))


def _joined_columns(columns: dict[str, Any]) -> Any:
    """Return columns as an array, or as records if there are others than numbers among them."""
    arrays = [np.asarray(column) for column in columns.values()]
    if all(array.dtype.kind in "biuf" for array in arrays):
        return np.column_stack(arrays).astype(float)
    rows = zip(*map(_plain_list, columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _frame_columns(frame: Any) -> dict[str, Any]:
    return {str(name): frame[name] for name in frame.columns}
