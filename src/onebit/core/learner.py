"""The base class of all learners: a scikit-learn classifier that decides and learns by rounds."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from os import PathLike
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from onebit.core import storage
from onebit.core.decision import Decision
from onebit.core.engine import Kernels, with_own_scratch
from onebit.core.example import INDEX, Example, Rows, count_rows, slice_rows
from onebit.core.generator import new_generator
from onebit.core.linear import weights
from onebit.core.validation import (
    check_classes,
    check_example,
    check_labels,
    check_rows,
    positions_of,
    unknown,
)

_PAUSE = 0.05
"""Seconds of compiled code, about, between two reports of progress; it cannot be interrupted."""


class Learner(ClassifierMixin, BaseEstimator, ABC):
    """A classifier that learns from what is said of its own decisions.

    A subclass gives its kernels and first state in `_begin`, and describes itself in the class
    attributes below. Parameters are read when a learner starts: at `fit`, at the first
    `partial_fit` or at the first `decide`.
    """

    classes: Any
    random_state: Any
    _state: Any
    _scores: np.ndarray
    _p: np.ndarray

    feedback: str = "bandit"
    """What the learner must be told: "bandit" (right or wrong) or "full" (the label)."""

    reference: ClassVar[str]
    """Where the algorithm was published."""

    cost: ClassVar[str]
    """Time of a round; d features, nnz of them not zero, K classes."""

    bound: ClassVar[Any]
    """What is proven of it: an `onebit.theory.Bound`, which says it as text and as a number."""

    forms: ClassVar[list[dict[str, Any]]] = [{}]
    """Parameters that together reach every kernel of the class; `onebit.checks` tries them all."""

    exempt: ClassVar[dict[str, str]] = {}
    """Names of checks that do not hold for this learner, each with the reason."""

    @classmethod
    def is_linear_time(cls) -> bool:
        """Tell whether a round costs O(nnz K), but for forms with a full covariance."""
        return cls.cost.startswith("nnz K")

    @abstractmethod
    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        """Return the kernels for the learner's parameters, and its state before the first round."""

    # The online face

    def decide(self, x: Any) -> Decision:
        """Put out a label for one example.

        Parameters
        ----------
        x : 1-D array or one sparse row
            It is copied; what happens to it later does not matter.

        Returns
        -------
        Decision
        """
        example = self._example(x)
        decide, _ = self._kernels.entries(self._state)
        label, probability, _ = decide(self._state, example, self._scores, self._p)
        return Decision(example, self._labels[label], probability)

    def learn(self, decision: Decision, *, correct: bool | None = None, truth: Any = None) -> None:
        """Learn from the feedback for a decision, now or later, in any order.

        Late feedback meets the weights of the moment it arrives, with the probability of the
        moment of the decision.

        Parameters
        ----------
        decision : Decision
            From `decide`, or made by hand from a log.
        correct : bool, optional
            Whether the label was right: all that a bandit learner needs.
        truth : label, optional
            The right label, in place of `correct`; a full-information learner needs it.
        """
        if (correct is None) == (truth is None):
            raise ValueError("learn takes either correct=... or truth=...")
        if truth is None and (self._feedback if self._started else self.feedback) == "full":
            raise ValueError(
                f"{type(self).__name__} learns from the label itself: learn(decision, truth=...)"
            )
        me = weakref.ref(self)
        if me in decision._learned_by:
            raise ValueError(f"this {type(self).__name__} has already learned from {decision!r}")
        if not 0.0 < decision.probability <= 1.0:
            raise ValueError(f"a decision's probability is in (0, 1]; got {decision.probability}")
        if not self._started:
            for said in (decision.label, truth):
                if said is not None and np.ndim(said) == 0:
                    positions_of(self._given_classes(), np.array([said]))
        example = self._example(decision.x)
        label = self._position_of(decision.label)
        if truth is None:
            feedback = int(bool(correct))
        else:
            feedback = self._told(truth)
            if self._feedback == "bandit":
                feedback = int(feedback == label)
        self._update(example, label, float(decision.probability), feedback)
        decision._learned_by += (me,)

    def policy(self, X: Any) -> np.ndarray:
        """Return, for each row of `X`, the probabilities with which `decide` puts out the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._evaluate(X)[1]

    # The scikit-learn face

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
        self._check_names(X)
        self._start(classes, rows.n_features)
        validate_data(self, X, skip_check_array=True)  # remembers the names of the features
        for _ in self._rounds(rows, truth):
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
        scores, _ = self._evaluate(X)
        return self.classes_[np.argmax(scores, axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of each row of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); for two classes (n_samples,)
            For two classes it is what scikit-learn expects, the lead of the second over the first.
        """
        scores = self._evaluate(X)[0]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def coef_(self) -> np.ndarray:
        """Weights, of shape (n_classes, n_features)."""
        if not self._started:
            raise AttributeError(f"this {type(self).__name__} has not started: it has no weights")
        if not hasattr(self._state, "W"):
            raise AttributeError(f"the scores of this {type(self).__name__} are not linear in x")
        return np.ascontiguousarray(weights(self._state.W).T)

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
        check_is_fitted(self)
        storage.write(path, self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._started:
            # Compiled code writes where it is told, be it a file mapped for reading.
            self._state = storage.writeable(self._state)
            self._scores, self._p = np.array(self._scores), np.array(self._p)

    # How it works

    @property
    def _started(self) -> bool:
        return "_state" in self.__dict__

    def _given_classes(self) -> np.ndarray:
        if self.classes is None:
            name = type(self).__name__
            raise ValueError(f"{name} does not know its labels yet: {name}(classes=[...])")
        return check_classes(self.classes)

    def _start(self, classes: np.ndarray, n_features: int) -> None:
        """Begin anew; on an error nothing has changed."""
        self._validate_params()
        kernels, state = self._begin(n_features, classes.size, new_generator(self.random_state))
        self._resume(classes, n_features, kernels, state)

    def _resume(self, classes: np.ndarray, n_features: int, kernels: Kernels, state: Any) -> None:
        self.classes_, self.n_features_in_ = classes, n_features
        self._kernels, self._state, self._feedback = kernels, state, self.feedback
        self._parameters = self.get_params(deep=False)
        self._labels = classes.tolist()
        self._positions = {label: k for k, label in enumerate(self._labels)}
        self._all_features = np.arange(n_features, dtype=INDEX)
        self._scores, self._p = np.empty(classes.size), np.empty(classes.size)

    def _example(self, x: Any) -> Example:
        """Look at one x, and start with it if need be."""
        if self._started:
            return check_example(x, self._all_features)
        example = check_example(x, None)
        self._start(self._given_classes(), example.n_features)
        return example

    def _position_of(self, label: Any) -> int:
        try:
            return self._positions[label]
        except (KeyError, TypeError):
            raise ValueError(f"unknown label {unknown(label, self.classes_)}") from None

    def _told(self, truth: Any) -> Any:
        """Return `truth` as the kernels are told it."""
        return self._position_of(truth)

    def _update(self, example: Example, label: int, probability: float, feedback: Any) -> None:
        _, learn = self._kernels.entries(self._state)
        learn(self._state, example, self._scores, label, probability, feedback)

    def _prepare(self, X: Any, y: Any, classes: Any = None) -> tuple[Rows, np.ndarray]:
        """Look at all rows and labels before the first round, and start if need be."""
        rows = check_rows(X, self)
        y = check_labels(y, count_rows(rows), self)
        if classes is None:
            known = self.classes_ if self._started else self._given_classes()
        else:
            known = check_classes(classes)
            if self._started and not np.array_equal(known, self.classes_):
                raise ValueError(
                    f"classes={known.tolist()} differ from those the learner started with, "
                    f"{self.classes_.tolist()}"
                )
        truth = positions_of(known, y)
        if self._started:
            validate_data(self, X, skip_check_array=True, reset=False)
        else:
            self._check_names(X)
            self._start(known, rows.n_features)
            validate_data(self, X, skip_check_array=True)
        return rows, truth

    def _check_names(self, X: Any) -> None:
        """Raise for names of features that cannot be remembered, before anything changes."""
        if hasattr(X, "columns"):
            validate_data(clone(self), X, skip_check_array=True)

    def _rounds(self, rows: Rows, truth: np.ndarray) -> Iterator[np.ndarray]:
        """Play the rows, yielding the flags of a block of rounds at a time."""
        full = self._feedback == "full"
        # Other threads may decide meanwhile.
        state, scores, p = with_own_scratch(self._state), self._scores.copy(), self._p.copy()
        lo, size = 0, 64
        while lo < truth.size:
            block = truth[lo : lo + size]
            flags = np.empty(block.size, dtype=np.uint8)
            some = slice_rows(rows, lo, lo + block.size)
            start = perf_counter()
            self._kernels.play(state, some, block, full, scores, p, flags)
            if perf_counter() - start < _PAUSE:
                size *= 2
            lo += block.size
            yield flags

    def _evaluate(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores and the policy of each row."""
        check_is_fitted(self)
        rows = check_rows(X, self)
        validate_data(self, X, skip_check_array=True, reset=False)
        scores = np.empty((count_rows(rows), self.classes_.size))
        p = np.empty_like(scores)
        self._kernels.evaluate(with_own_scratch(self._state), rows, scores, p)
        return scores, p


class ProbabilityLearner(Learner):
    """A learner whose scores are the logarithms of probabilities, up to a constant."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label for each row of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._evaluate(X)[0], axis=1)
