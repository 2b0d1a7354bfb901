"""The base class of all learners: a scikit-learn classifier that decides and learns by rounds."""

from __future__ import annotations

import builtins
import copy
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Real
from os import PathLike
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Never, Self

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from onebit.core import registry, storage
from onebit.core.decision import (
    NONE_OF_THESE,
    Decision,
    check_decision,
    check_decisions,
    check_id,
    decided,
    key_of,
    refuse_unnamed,
)
from onebit.core.engine import DRAW, Kernels, Logged, Noted
from onebit.core.example import Example, Rows, count_rows, one_row, row, slice_rows
from onebit.core.generator import (
    LEAST_PROBABILITY,
    PROBABILITY_ROUNDING,
    draw_rows,
    new_generator,
    random_state_of,
    unchanged_on_error,
)
from onebit.core.offer import check_among, label_list
from onebit.core.started import Started
from onebit.core.state import grown
from onebit.core.turns import starting
from onebit.core.validation import (
    check_classes,
    check_example,
    check_labels,
    check_more_classes,
    check_names_in,
    check_rows,
    names_in,
    positions_of,
    refuse,
    unknown,
)

_PAUSE = 0.05
"""Seconds of compiled code, about, between two reports of progress.

It cannot be interrupted, and other threads that use the learner wait for it.
"""


class Cost(NamedTuple):
    """Time of a round, up to a constant; d features, nnz of them not zero, K classes, round n."""

    round: str
    full: str | None = None
    """With a full covariance, if the learner has such a form."""

    @property
    def is_linear(self) -> bool:
        """Whether a round costs O(nnz K), but with a full covariance."""
        return self.round == LINEAR

    def __str__(self) -> str:
        return self.round if self.full is None else f"{self.round}; full: {self.full}"


LINEAR = "nnz K"
"""The cost of a round of most learners."""


class Learner(ClassifierMixin, BaseEstimator, ABC):
    """A classifier that learns from feedback on its own decisions.

    A subclass gives its kernels and first state in `_begin`, and describes itself in the class
    attributes below. Parameters are read when a learner starts: at `fit`, at the first
    `partial_fit` or at the first `decide`.
    """

    classes: Any
    random_state: Any
    _run: Started = None  # type: ignore[assignment]  # until it has started

    feedback: str = "bandit"
    """What the learner must be told: "bandit" (right or wrong) or "full" (the label)."""

    uses_truth: ClassVar[bool] = False
    """Whether a bandit learner that is told the label learns all that it says.

    If so, it is as if it had chosen that label, with certainty and among all; if not, it learns
    only whether its own label was right.
    """

    _told_bit: ClassVar[int] = 1
    """What kernels are told of a label that someone says is right."""

    reference: ClassVar[str]
    """Where the algorithm was published."""

    cost: ClassVar[Cost]
    """Time of a round."""

    bound: ClassVar[Any]
    """What is proven of it: an `onebit.theory.Bound`, which says it as text and as a number."""

    forms: ClassVar[list[dict[str, Any]]] = [{}]
    """Parameters that together reach every kernel of the class; `onebit.checks` tries them all."""

    exempt: ClassVar[dict[str, str]] = {}
    """Names of checks that do not hold for this learner, each with the reason."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classes": ["array-like", None],
        "random_state": ["random_state"],
    }
    """What every learner's parameters may be; a subclass declares its own in addition."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._parameter_constraints = cls._parameter_constraints | Learner._parameter_constraints
        registry.register(cls)

    @abstractmethod
    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        """Return the kernels for the learner's parameters, and its state before the first round."""

    def _at_size(self, n_features: int, n_classes: int) -> Learner:
        """Return this learner, with what its parameters leave to these sizes decided.

        Files are checked by the state of a smaller learner of the same form.
        """
        return self

    state_version: ClassVar[int] = 0
    """Version of the layout of the state's arrays in files.

    A learner whose arrays get other names, shapes or meanings gets the next version, and reads
    files of earlier ones with `_migrate`.
    """

    @classmethod
    def _migrate_parameters(cls, version: int, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a file of an earlier `state_version`, as they are today."""
        return parameters

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays of a file of an earlier `state_version`, in today's layout.

        Arrays that it leaves out are those of the initial state.
        """
        return arrays

    # The online interface

    def decide(self, x: Any, among: Any = None, *, id: str | None = None) -> Decision:  # noqa: A002
        """Choose a label for one example.

        Parameters
        ----------
        x : 1-D array, one sparse row, or a row of a data frame
            It is copied; what happens to it later does not matter.
        among : array-like of labels, optional
            The labels on offer, which one is chosen from. The probability of the decision is that
            of its label given these. By default all labels are on offer that are not retired.
        id : str, optional
            What the decision is known by, at most 200 characters; by default it gets one that no
            other decision has.

        Returns
        -------
        Decision
        """
        if self._run is not None:  # the usual case, without another call
            if id is not None:
                check_id(id)
            run, example = self._ready(x)
        else:
            among = None if among is None else label_list(among, "among")
            run, example = self._validated(Learner._check_question, x, among, id)
        if run.decide is None:
            run.decide = run.kernels.decide(run.state)
        turns = run.turns
        try:
            turns.acquire(False) or turns.wait()
            offer = run.everything if among is None else self._offer(run, among)
            label, probability, _ = run.decide(run.state, example, run.scores, offer, run.p, DRAW)
            confidence = None if run.share is None else run.confidence(run.scores, label)
            offered = run.among if among is None else run.labels_at(offer)
        except BaseException:
            turns.release_if_owned()
            raise
        turns.release()
        return decided(example, run.labels[label], probability, offered, id, confidence)

    def _check_question(self, x: Any, among: Any, name: Any) -> tuple[Started, Example]:
        """Validate the arguments of `decide`."""
        if name is not None:
            check_id(name)
        run, example = self._ready(x)
        self._offer(run, among)
        return run, example

    def decide_many(self, X: Any, among: Any = None, *, ids: Any = None) -> list[Decision]:
        """Choose a label for each row of `X`: what `decide` would, one row after the other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        among : array-like of labels, optional
            The labels on offer, in every row.
        ids : sequence of str, optional
            One for each row.

        Returns
        -------
        list of Decision
        """
        among = None if among is None else label_list(among, "among")
        run, rows, names = self._validated(Learner._check_questions, X, among, ids)
        n = count_rows(rows)
        decisions: list[Decision] = []
        evaluate = run.kernels.evaluate(n)
        for lo, hi in _blocks(n):
            with run.turns:
                offer, labels = self._offer(run, among), np.empty(hi - lo, dtype=np.int64)
                scores, p = np.empty((2, hi - lo, run.classes.size))
                evaluate(run.state, slice_rows(rows, lo, hi), scores, offer, p)
                draw_rows(run.state.rng, p, labels)
                run.leave_out(scores)
                shares = [run.confidence(scores[i], k) for i, k in enumerate(labels.tolist())]
                offered = run.among if among is None else run.labels_at(offer)
            for i, k in enumerate(labels.tolist()):
                x = row.py_func(rows, lo + i)
                indices = x.indices.copy() if rows.sparse else run.all_features
                x = Example(indices, x.values.copy(), x.n_features)
                label, probability = run.labels[k], float(p[i, k])
                decisions.append(decided(x, label, probability, offered, names[lo + i], shares[i]))
        return decisions

    def _check_questions(
        self, X: Any, among: Any, ids: Any
    ) -> tuple[Started, Rows, list[str | None]]:
        """Validate the arguments of `decide_many`."""
        run, rows = self._ready_for(X)
        names = _of_each(ids, count_rows(rows), "ids")
        with run.turns:
            self._offer(run, among)
        return run, rows, [None if name is None else check_id(name) for name in names]

    def learn(
        self,
        decision: Decision,
        *unnamed: Never,
        correct: bool | None = None,
        truth: Any = None,
    ) -> None:
        """Learn from the feedback for a decision, now or later, in any order.

        Late feedback meets the weights of the moment it arrives, with the probability of the
        moment of the decision. To learn twice from a decision is an error; see `has_learned`. What
        is said of a label that has been retired since teaches nothing.

        Parameters
        ----------
        decision : Decision
            From `decide`, or made by hand from a log.
        correct : bool, 0 or 1, optional
            Whether the label was right: all that a bandit learner needs.
        truth : label or NONE_OF_THESE, optional
            The right label, in place of `correct`; a full-information learner needs it. What a
            bandit learner takes from it is `uses_truth`. That none of the labels is right teaches
            nothing: it does not tell which one is when one is.
        """
        if unnamed:
            refuse_unnamed("learn", unnamed)
        if self._run is not None:  # the usual case, without another call
            run, lesson = self._lesson(decision, correct, truth)
        else:
            run, lesson = self._validated(Learner._lesson, decision, correct, truth)
        turns = run.turns
        try:
            turns.acquire(False) or turns.wait()
            if decision._learned_by or lesson[0] in run.learned:
                self._check_new(decision, run)
            self._learn(run, decision, lesson)
        except BaseException:
            turns.release_if_owned()
            raise
        turns.release()

    def learn_many(
        self,
        decisions: Iterable[Decision],
        *unnamed: Never,
        correct: Any = None,
        truth: Any = None,
    ) -> None:
        """Learn from the feedback for many decisions: as `learn` would, one after the other.

        An error in any of them leaves the learner as it was.

        Parameters
        ----------
        decisions : iterable of Decision
        correct : sequence of bool, 0 or 1, optional
            One for each decision; None where there is `truth` instead.
        truth : sequence of labels, optional
            One for each decision; None where there is `correct` instead.
        """
        refuse_unnamed("learn_many", unnamed)
        decisions = check_decisions(decisions)
        bits = _of_each(correct, len(decisions), "correct")
        truths = _of_each(truth, len(decisions), "truth")
        if not decisions:
            return
        run, lessons = self._validated(Learner._lessons, decisions, bits, truths)
        with run.turns:
            for decision in decisions:
                self._check_new(decision, run)
            for decision, lesson in zip(decisions, lessons, strict=True):
                self._learn(run, decision, lesson)

    def _lessons(
        self, decisions: list[Decision], bits: Sequence[Any], truths: Sequence[Any]
    ) -> tuple[Started, list[tuple[Any, ...]]]:
        """Validate the arguments of `learn_many`."""
        found = [self._lesson(*feedback) for feedback in zip(decisions, bits, truths, strict=True)]
        seen: set[Any] = set()
        for decision in decisions:
            names = {builtins.id(decision), decision._key} - {None}
            if seen & names:
                raise ValueError(f"{decision!r} is twice among the decisions to learn from")
            seen |= names
        run = found[0][0]
        if any(other is not run for other, _ in found):  # another thread started it anew
            return self._lessons(decisions, bits, truths)
        return run, [lesson for _, lesson in found]

    def has_learned(self, decision: Decision | str) -> bool:
        """Tell whether the learner has learned from a decision, or from one with this id.

        It knows the ids of the last 100,000 decisions, also after it was saved and loaded.
        """
        key = key_of(decision) if isinstance(decision, str) else check_decision(decision)._key
        by_id = self._started and key in self._run.learned
        return by_id or (
            not isinstance(decision, str) and weakref.ref(self) in decision._learned_by
        )

    def teach(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from labelled examples, without a decision, at any time.

        A bandit learner learns as if it had chosen the labels, with certainty.

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
        run, rows, truth = self._prepare(X, y, classes)
        if run.learn is None:
            run.learn = run.kernels.learn(run.state)
        for lo, hi in _blocks(truth.size):
            with run.turns:
                _check_not_retired(run, truth)
                for i in range(lo, hi):
                    label = int(truth[i])
                    feedback = label if run.feedback == "full" else self._told_bit
                    self._update(run, row.py_func(rows, i), label, 1.0, run.all_labels, feedback)
        return self

    def replay(
        self,
        X: Any,
        labels: Any,
        probabilities: Any,
        correct: Any,
        *,
        among: Any = None,
        bound: float | None = None,
        random_state: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Go through the rounds of a log, and learn from labels that others chose.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : array-like of shape (n_samples,)
            What was chosen.
        probabilities : array-like of shape (n_samples,)
            With which it was chosen.
        correct : array-like of shape (n_samples,)
            1 or 0; NaN where nobody said.
        among : array-like of labels, optional
            The labels on offer, in every round, from which `labels` were chosen; by default all
            that are not retired.
        bound : float >= 1, optional
            By default the learner learns from every bit, with the probability in the log. With a
            bound, only from rounds drawn so that those are as if it had chosen the labels itself
            (rejection sampling): a round is kept with the probability that the learner has of its
            label, divided by `bound` times that in the log, which must not exceed one.
        random_state : int, RandomState instance or None, default=None
            For these draws.

        Returns
        -------
        chosen : ndarray of shape (n_samples,)
            The probability with which the learner would have chosen each label, when it came.
        taken : ndarray of bool, of shape (n_samples,)
            Whether it learned from the round.
        """
        if self.feedback == "full":
            raise ValueError(f"{type(self).__name__} learns from the label, and a log has bits")
        among = None if among is None else label_list(among, "among")
        with unchanged_on_error(random_state):
            run, rows, logged, offer = self._validated(
                Learner._check_log, X, labels, probabilities, correct, among, bound, random_state
            )
        n = count_rows(rows)
        chosen, taken = np.empty(n), np.empty(n, dtype=bool)
        for lo, hi in _blocks(n):
            some = slice_rows(rows, lo, hi), _some_of(logged, lo, hi), float(bound or 0), offer
            with run.turns:
                self._replay(run, *some, chosen[lo:hi], taken[lo:hi])
        return chosen, taken

    def _check_log(
        self,
        X: Any,
        labels: Any,
        probabilities: Any,
        correct: Any,
        among: Any,
        bound: Any,
        random_state: Any,
    ) -> tuple[Started, Rows, Logged, np.ndarray]:
        """Validate the arguments of `replay`."""
        if bound is not None and not _is_bound(bound):
            raise ValueError(f"bound is a finite number of at least 1, or None; got {bound!r}")
        run, rows = self._ready_for(X)
        n = count_rows(rows)
        positions = positions_of(run.classes, check_labels(labels, n, self))
        p = _column(probabilities, n, "probabilities")
        refuse(
            ~((p >= LEAST_PROBABILITY) & (p <= 1.0 + PROBABILITY_ROUNDING)),
            lambda i: f"a probability is in [{LEAST_PROBABILITY:g}, 1]; got {p[i]} in row {i}",
        )
        bits = _column(correct, n, "correct")
        refuse(
            ~(np.isnan(bits) | (bits == 0.0) | (bits == 1.0)),
            lambda i: f"correct is 1, 0 or NaN; got {bits[i]:g} in row {i}",
        )
        with run.turns:
            offer = self._offer(run, among)
            retired = run.retired
        refuse(
            ~np.isin(positions, offer),
            lambda i: (
                f"the label {run.labels[positions[i]]!r} in row {i} is "
                + ("retired" if positions[i] in retired else "not in among")
            ),
        )
        feedback = np.nan_to_num(bits, nan=-1.0).astype(np.int64)
        draws = random_state_of(random_state).random_sample(0 if bound is None else n)
        return run, rows, Logged(positions, np.minimum(p, 1.0), feedback, draws), offer

    # Labels that come and go

    def add_classes(self, classes: Any) -> Self:
        """Take more labels, with all that was learned of those there are.

        A new label starts as all did before the first round. One that was retired comes back with
        what was known of it.

        Parameters
        ----------
        classes : array-like of labels

        Returns
        -------
        self
        """
        given, run = label_list(classes, "classes"), self._running("add_classes")
        with run.turns:
            back = {run.positions[label] for label in given if _is_in(label, run.positions)}
            for k in sorted(back - run.retired):
                raise ValueError(f"{run.labels[k]!r} is one of the classes already")
            new = [label for label in given if not _is_in(label, run.positions)]
            if new:
                self._grow(run, check_more_classes(run.classes, new))
            run.retire(run.retired - back)
        return self

    def retire_classes(self, classes: Any) -> Self:
        """Let labels be on offer no more, until `add_classes` brings them back.

        They stay in `classes_`, with probability zero.

        Parameters
        ----------
        classes : array-like of labels

        Returns
        -------
        self
        """
        run = self._running("retire_classes")
        with run.turns:
            gone = check_among(classes, run.positions, run.classes, "classes").tolist()
            for k in gone:
                if k in run.retired:
                    raise ValueError(f"{run.labels[k]!r} is retired already")
            if len(run.retired) + len(gone) == run.classes.size:
                raise ValueError("no label would be left on offer")
            run.retire(run.retired.union(gone))
        return self

    @property
    def classes_(self) -> np.ndarray:
        """All labels, also retired ones."""
        return self._of_run("classes_", lambda run: run.classes)

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self._of_run("n_features_in_", lambda run: run.all_features.size)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the features, if the learner started with a data frame."""
        return self._of_run("feature_names_in_", lambda run: run.names)

    def _of_run(self, name: str, get: Callable[[Started], Any]) -> Any:
        """Return an attribute that is there once the learner has started."""
        run = self._run
        found = None if run is None else get(run)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    @property
    def retired_classes_(self) -> np.ndarray:
        """Those of `classes_` that are retired."""
        check_is_fitted(self)
        return self._run.classes[sorted(self._run.retired)]

    def scores(self, X: Any) -> np.ndarray:
        """Return the score of each label for each row of `X`, as the policy sees them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Also for two classes, unlike that of `decision_function`.
        """
        return self._evaluate(X)[1]

    def policy(self, X: Any, among: Any = None) -> np.ndarray:
        """Return, for each row of `X`, the probabilities with which `decide` chooses the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        among : array-like of labels, optional
            The labels on offer, in every row; by default all are.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Zero for labels that are not on offer.
        """
        if self._started or self.classes is None:
            return self._evaluate(X, among, with_policy=True)[2]
        first = clone(self)  # which starts, as this one will
        if isinstance(X, Example):
            first._ready(X)
        else:
            first._ready_for(X)
        return first.policy(X, among)

    # The scikit-learn interface

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and play the rows as rounds, once, in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            A bandit learner is told only whether its labels are right.

        Returns
        -------
        self
        """
        rows = check_rows(X, self)
        y = check_labels(y, count_rows(rows), self)
        classes = check_classes(y if self.classes is None else self.classes)
        truth = positions_of(classes, y)
        names = _feature_names(X)
        with unchanged_on_error(self.random_state):
            run = self._start(classes, rows.n_features, names)
        for _ in self._rounds(run, rows, truth):
            pass
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on with more rows as rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels there will ever be. Needed in the first call, unless the learner was made
            with them.

        Returns
        -------
        self
        """
        for _ in self._rounds(*self._prepare(X, y, classes)):
            pass
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the greedy label of each row of `X`."""
        run, scores, _ = self._evaluate(X)
        return run.classes[np.argmax(scores, axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of each row of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); for two classes (n_samples,)
            For two classes it is what scikit-learn expects, the lead of the second over the first.
        """
        scores = self._evaluate(X)[1]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def coef_(self) -> np.ndarray:
        """Weights, of shape (n_classes, n_features)."""
        if not self._started:
            raise AttributeError(f"this {type(self).__name__} has not started: it has no weights")
        if not hasattr(self._state, "W"):
            raise AttributeError(f"the scores of this {type(self).__name__} are not linear in x")
        with self._run.turns:
            return np.array(np.asarray(self._state.W).T, order="C")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # One bit a row, in one pass over a few hundred rows, is no match for a batch solver.
        tags.classifier_tags.poor_score = self.feedback == "bandit"
        return tags

    # Files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner, its random generator included, to a safetensors file.

        `onebit.load` reads it back.
        """
        storage.write(path, self)

    # Internals

    @property
    def _started(self) -> bool:
        return self._run is not None

    @property
    def _state(self) -> Any:
        return self._run.state

    @_state.setter
    def _state(self, state: Any) -> None:
        self._run.state = state

    @property
    def _kernels(self) -> Kernels:
        return self._run.kernels

    @property
    def _scores(self) -> np.ndarray:
        return self._run.scores

    @property
    def _p(self) -> np.ndarray:
        return self._run.p

    @property
    def _parameters(self) -> dict[str, Any]:
        return self._run.parameters

    def _given_classes(self) -> np.ndarray:
        if self.classes is None:
            name = type(self).__name__
            raise ValueError(f"{name} does not know its labels yet: {name}(classes=[...])")
        return check_classes(self.classes)

    def _validated(self, check: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``check(self, *arguments)``, which validates all arguments of a call.

        It starts a learner that has not started. What it refuses must change nothing: so it starts
        a copy, whose run becomes that of the learner once nothing is refused.
        """
        if not self._started:
            with starting(self), unchanged_on_error(self.random_state):
                if not self._started:
                    first = copy.copy(self)
                    found = check(first, *arguments)
                    if self.__dict__.setdefault("_run", first._run) is first._run:
                        return found
        return check(self, *arguments)

    def _start(
        self, classes: np.ndarray, n_features: int, names: np.ndarray | None = None
    ) -> Started:
        """Begin anew; on an error nothing has changed."""
        self._validate_params()
        kernels, state = self._begin(n_features, classes.size, new_generator(self.random_state))
        return self._resume(classes, n_features, kernels, state, names=names)

    def _resume(
        self,
        classes: np.ndarray,
        n_features: int,
        kernels: Kernels,
        state: Any,
        **options: Any,
    ) -> Started:
        parameters, temper = self.get_params(deep=False), self._temper(state)
        if "learner" in parameters:  # what happens later to one that was given does not matter
            parameters["learner"] = clone(parameters["learner"], safe=False)
        self._run = Started(
            classes, n_features, kernels, state, self.feedback, parameters, temper, **options
        )
        return self._run

    def _temper(self, state: Any) -> float | None:
        """Return what makes softmax(temper * scores) the probabilities of labels; None if nothing.

        A model of probabilities says so, and decisions then have a confidence.
        """
        return None

    def _ready(self, x: Any) -> tuple[Started, Example]:
        """Check one x, and start with it if need be."""
        run = self._run
        if run is None:
            example = check_example(x, None)
            names = names_in(x)
            known = None if names is None else np.array(names, dtype=object)
            return self._start(self._given_classes(), example.n_features, known), example
        kind = type(x)
        if kind is not Example and kind is not np.ndarray and run.names is not None:
            check_names_in(x, run.names)
        return run, check_example(x, run.all_features)

    def _ready_for(self, X: Any) -> tuple[Started, Rows]:
        """Check the rows of X, and start with them if need be."""
        rows = check_rows(X, self)
        run = self._run
        if run is None:
            run = self._start(self._given_classes(), rows.n_features, _feature_names(X))
        else:
            self._check_features(run, X, rows)
        return run, rows

    def _running(self, verb: str) -> Started:
        """Return what the learner has, if it has started."""
        if not self._started:
            raise ValueError(
                f"{verb} is for a learner that has started; before, give all labels as "
                f"{type(self).__name__}(classes=[...])"
            )
        return self._run

    def _grow(self, run: Started, classes: np.ndarray) -> None:
        """Take more classes, while holding the learner; on an error nothing has changed."""
        name, n = type(self).__name__, run.all_features.size
        if not get_tags(self).classifier_tags.multi_class:
            raise ValueError(f"{name} takes no more classes: it is for two")
        # Its form, be it one that the number of classes decided, stays.
        form = clone(self).set_params(**run.parameters)._at_size(n, run.classes.size)
        try:
            kernels, first = form._begin(n, classes.size, run.state.rng.copy())
            state = grown(run.state, first)
        except ValueError as error:
            raise ValueError(f"{name} takes no more classes: {error}") from None
        run.take(classes, kernels, state, form.get_params(deep=False))

    def _lesson(
        self, decision: Decision, correct: Any, truth: Any
    ) -> tuple[Started, tuple[Any, ...]]:
        """Check a decision and its feedback; return them as what `_learn` takes."""
        if type(decision) is not Decision:
            check_decision(decision)
        if (correct is None) == (truth is None):
            raise ValueError("learn takes either correct=... or truth=...")
        begun = self._run
        if truth is None and (self if begun is None else begun).feedback == "full":
            raise ValueError(
                f"{type(self).__name__} learns from the label itself: learn(decision, truth=...)"
            )
        probability = decision.probability
        if type(probability) is not float or not LEAST_PROBABILITY <= probability <= 1.0:
            probability = _probability(probability)
        feedback: Any = int(correct) if correct is True or correct is False else _bit(correct)
        key: Any = decision._number
        if key is None and decision._id is not None:
            key = key_of(check_id(decision._id))
        run, example = self._ready(decision.x)
        try:
            label = run.positions[decision.label]
        except (KeyError, TypeError):
            label = self._position_of(decision.label, run)  # which says what is wrong
        offer = run.all_labels
        if decision.among is not None:
            offer = run.offer(decision.among)
            if label not in offer:
                among = decision.among
                raise ValueError(
                    f"the label {decision.label!r} of a decision is not in its among, {among}"
                )
        about: Any = label
        if truth is NONE_OF_THESE:
            about = None
        elif feedback is None:
            feedback = about = self._told(truth, run)
            if run.feedback == "bandit" and self.uses_truth:
                label, probability, offer = about, 1.0, run.all_labels
                feedback = self._told_bit
            elif run.feedback == "bandit":
                about, feedback = label, int(feedback == label)
        if run.learn is None:
            run.learn = run.kernels.learn(run.state)
        return run, (key, about, example, label, probability, offer, feedback)

    def _check_new(self, decision: Decision, run: Started) -> None:
        """Raise for a decision that was learned from, while holding the learner."""
        before = decision._learned_by
        if decision._key in run.learned or (before and weakref.ref(self) in before):
            raise ValueError(f"this {type(self).__name__} has already learned from {decision!r}")

    def _learn(self, run: Started, decision: Decision, lesson: tuple[Any, ...]) -> None:
        """Learn from one decision, while holding the learner."""
        key, about, example, label, probability, offer, feedback = lesson
        if about is not None and not (run.retired and about in run.retired):
            self._update(run, example, label, probability, offer, feedback)
        decision._learned_by += (weakref.ref(self),)
        if key is not None:
            run.remember(key)

    def _offer(self, run: Started, among: Any) -> np.ndarray:
        """Return the labels on offer now, as kernels are told them."""
        if among is None:
            return run.everything
        offer = run.offer(among)
        for k in sorted(run.retired) if run.retired else ():
            if k in offer:
                raise ValueError(f"the label {run.labels[k]!r}, in among, is retired")
        return offer

    def _position_of(self, label: Any, run: Started | None = None) -> int:
        run = self._run if run is None else run
        try:
            return run.positions[label]
        except (KeyError, TypeError):
            raise ValueError(f"unknown label {unknown(label, run.classes)}") from None

    def _told(self, truth: Any, run: Started) -> Any:
        """Return `truth` as the kernels are told it."""
        return self._position_of(truth, run)

    def _update(
        self,
        run: Started,
        example: Example,
        label: int,
        probability: float,
        offer: np.ndarray,
        feedback: Any,
    ) -> None:
        """Learn from one round, while holding the learner."""
        run.learn(run.state, example, run.scores, label, probability, offer, feedback)

    def _play(
        self, run: Started, rows: Rows, truth: np.ndarray, noted: Noted | None = None
    ) -> np.ndarray:
        """Play a block of rounds while holding the learner, and return their flags."""
        flags = np.empty(truth.size, dtype=np.uint8)
        full = run.feedback == "full"
        if full:
            _check_not_retired(run, truth)
        run.kernels.play(
            run.state, rows, truth, full, run.scores, run.restriction, run.p, flags, noted
        )
        return flags

    def _replay(
        self,
        run: Started,
        rows: Rows,
        logged: Logged,
        bound: float,
        offer: np.ndarray,
        chosen: np.ndarray,
        taken: np.ndarray,
    ) -> None:
        """Learn a block of rounds of a log while holding the learner."""
        run.kernels.replay(run.state, rows, logged, bound, run.scores, offer, run.p, chosen, taken)

    def _prepare(self, X: Any, y: Any, classes: Any = None) -> tuple[Started, Rows, np.ndarray]:
        """Check all rows and labels before the first round, and start if need be."""
        return self._validated(Learner._check_rounds, X, y, classes)

    def _check_rounds(self, X: Any, y: Any, classes: Any) -> tuple[Started, Rows, np.ndarray]:
        rows = check_rows(X, self)
        y = check_labels(y, count_rows(rows), self)
        known = None if classes is None else check_classes(classes)
        run = self._run
        if run is None:
            known = self._given_classes() if known is None else known
            truth = positions_of(known, y)
            return self._start(known, rows.n_features, _feature_names(X)), rows, truth
        if known is not None and not np.array_equal(known, np.sort(run.classes)):
            raise ValueError(
                f"classes={known.tolist()} differ from those the learner started with, {run.labels}"
            )
        truth = positions_of(run.classes, y)
        self._check_features(run, X, rows)
        return run, rows, truth

    def _check_features(self, run: Started, X: Any, rows: Rows) -> None:
        """Raise for other features than those that the learner started with."""
        validate_data(self, X, skip_check_array=True, reset=False)
        if rows.n_features != run.all_features.size:  # another thread started it anew
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{run.all_features.size} features as input"
            )

    def _rounds(
        self, run: Started, rows: Rows, truth: np.ndarray, noted: Noted | None = None
    ) -> Iterator[np.ndarray]:
        """Play the rows, yielding the flags of a block of rounds at a time."""
        for lo, hi in _blocks(truth.size):
            some = slice_rows(rows, lo, hi)
            note = None if noted is None else _some_of(noted, lo, hi)
            with run.turns:
                flags = self._play(run, some, truth[lo:hi], note)
            yield flags

    def _known_rows(self, X: Any) -> tuple[Started, Rows]:
        """Check rows that the learner is asked about; one example, which is faster, is a row."""
        if isinstance(X, Example):
            run, example = self._validated(Learner._ready, X)
            return run, one_row(example)
        check_is_fitted(self)
        run, rows = self._run, check_rows(X, self)
        self._check_features(run, X, rows)
        return run, rows

    def _evaluate(
        self, X: Any, among: Any = None, *, with_policy: bool = False
    ) -> tuple[Started, np.ndarray, np.ndarray]:
        """Return the scores and, if asked for, the policy of each row, with what they are of."""
        run, rows = self._known_rows(X)
        with run.turns:  # there may be more classes before the last row
            evaluate = run.kernels.evaluate(count_rows(rows))
            state, offer = run.state, self._offer(run, among)
            scores = np.empty((count_rows(rows), run.classes.size))
            p = np.empty_like(scores[: None if with_policy else 0])
            retired = sorted(run.retired)
        for lo, hi in _blocks(len(scores)):
            with run.turns:
                evaluate(state, slice_rows(rows, lo, hi), scores[lo:hi], offer, p[lo:hi])
        scores[:, retired] = -np.inf
        return run, scores, p


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of blocks of 0 .. n-1 whose work, between two yields, takes about _PAUSE."""
    lo, size = 0, 64
    while lo < n:
        hi = min(lo + size, n)
        start = perf_counter()
        yield lo, hi
        if perf_counter() - start < _PAUSE:
            size *= 2
        lo = hi


def _some_of(columns: Any, lo: int, hi: int) -> Any:
    """Return rounds `lo` to `hi` of a NamedTuple of arrays, and of numbers for all rounds."""
    return columns._make(a[lo:hi] if isinstance(a, np.ndarray) else a for a in columns)


def _of_each(values: Any, n: int, name: str) -> Sequence[Any]:
    """Return one value for each of n decisions, all None if there are no values."""
    if values is None:
        return [None] * n
    if isinstance(values, str | bytes) or not np.iterable(values):
        raise ValueError(f"{name} is a list with one for each decision; got {values!r:.80}")
    found = list(values)
    if len(found) != n:
        raise ValueError(f"{name} is a list with one for each of {n} decisions; got {len(found)}")
    return found


def _is_in(label: Any, positions: Any) -> bool:
    try:
        return label in positions
    except TypeError:
        return False


def _check_not_retired(run: Started, truth: np.ndarray) -> None:
    for k in run.retired.intersection(truth.tolist()) if run.retired else ():
        raise ValueError(f"the label {run.labels[k]!r} is retired: add_classes([...]) it first")


def _column(values: Any, n: int, name: str) -> np.ndarray:
    """Return n numbers."""
    found = np.array(values, dtype=np.float64)
    if found.shape != (n,):
        raise ValueError(f"{name} has one number for each of {n} rows; got shape {found.shape}")
    return found


def _is_bound(bound: Any) -> bool:
    return isinstance(bound, Real) and not isinstance(bound, bool) and 1.0 <= float(bound) < np.inf


def _feature_names(X: Any) -> np.ndarray | None:
    """Return the names of the columns of a data frame, as scikit-learn finds them."""
    if not (hasattr(X, "columns") or hasattr(X, "__dataframe__")):
        return None
    found = BaseEstimator()
    validate_data(found, X, skip_check_array=True)
    return getattr(found, "feature_names_in_", None)


_BITS = (bool, np.bool_, int, np.integer)


def _bit(correct: Any) -> int | None:
    if correct is None:
        return None
    if isinstance(correct, _BITS) and (correct == 0 or correct == 1):
        return int(correct)
    raise ValueError(f"correct is True or False, or 1 or 0; got {correct!r}")


def _probability(probability: Any) -> float:
    try:
        sound = LEAST_PROBABILITY <= probability <= 1.0 + PROBABILITY_ROUNDING
    except (TypeError, ValueError, ArithmeticError):  # of None, arrays, decimals that are NaN
        sound = False
    if not sound:
        raise ValueError(
            f"a decision's probability is in [{LEAST_PROBABILITY:g}, 1]; got {probability!r}"
        )
    return min(float(probability), 1.0)


class ProbabilityLearner(Learner):
    """A learner whose scores are the logarithms of probabilities, up to a constant."""

    def _temper(self, state: Any) -> float | None:
        return 1.0

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label for each row of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._evaluate(X)[1], axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, exact also where those are nearly zero."""
        return log_softmax(self._evaluate(X)[1], axis=1)
