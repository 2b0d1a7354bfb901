"""Models of which label is right, learned from the bits of a log as they come.

The model that judges a row has seen only rows before it. That is what keeps doubly robust intervals
true, whatever the model: it is cross-fitting in the order of the log, and needs one pass.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from onebit.core.compiling import compiled
from onebit.core.example import row, rows_of
from onebit.evaluation.log import Log

STEP = 0.5
"""Of the logistic regressions: AdaGrad's eta."""

MOST_WEIGHTS = 50_000_000
"""Numbers in the regressions, at most; with more features and labels, only labels are modelled."""


def _fill(W, rows, q):
    """Fill the probability that each label is right, by a logistic regression for each."""
    n_features = rows.n_features
    for i in range(q.shape[0]):
        x = row(rows, i)
        for k in range(q.shape[1]):
            q[i, k] = W[n_features, k]
        for j in range(x.indices.size):
            for k in range(q.shape[1]):
                q[i, k] += W[x.indices[j], k] * x.values[j]
        for k in range(q.shape[1]):
            q[i, k] = 1.0 / (1.0 + math.exp(min(max(-q[i, k], -30.0), 30.0)))


def _learn(W, S, rows, labels, correct, step):
    """Learn from bits, each about its label alone, by AdaGrad."""
    n_features = rows.n_features
    for i in range(labels.size):
        if math.isnan(correct[i]):
            continue
        x, k = row(rows, i), labels[i]
        z = W[n_features, k]
        for j in range(x.indices.size):
            z += W[x.indices[j], k] * x.values[j]
        g = 1.0 / (1.0 + math.exp(min(max(-z, -30.0), 30.0))) - correct[i]
        S[n_features, k] += g * g
        W[n_features, k] -= step * g / math.sqrt(S[n_features, k])
        for j in range(x.indices.size):
            slope = g * x.values[j]
            if slope != 0.0:
                at = x.indices[j]
                S[at, k] += slope * slope
                W[at, k] -= step * slope / math.sqrt(S[at, k])


fill = compiled(f"{__name__}.fill", _fill, nogil=True)
learn = compiled(f"{__name__}.learn", _learn, nogil=True)


class Logistic:
    """A logistic regression for each label on the examples that it was chosen for."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.W, self.S = np.zeros((2, n_features + 1, n_classes))
        self.S += 1e-12

    def predict(self, log: Log) -> np.ndarray:
        """Return the probability that each label is right, for each row."""
        q = np.empty((len(log), self.W.shape[1]))
        fill(self.W, _rows(log.x), q)
        return q

    def learn(self, log: Log) -> None:
        """Learn from the bits of some rows."""
        step = STEP / math.sqrt(self._length(log.x))
        learn(self.W, self.S, _rows(log.x), log.labels, log.correct, step)

    def _length(self, x: Any) -> float:
        """Return how many features of an example are not zero, about: they all move the score."""
        return 1.0 + (x.nnz if sp.issparse(x) else np.count_nonzero(x)) / max(1, x.shape[0])


class Shares:
    """How often each label was right: a model that does not look at examples."""

    def __init__(self, n_classes: int) -> None:
        self.right, self.shown = np.full(n_classes, 0.5), np.ones(n_classes)

    def predict(self, log: Log) -> np.ndarray:
        """Return the probability that each label is right, for each row."""
        return np.broadcast_to(self.right / self.shown, (len(log), self.right.size))

    def learn(self, log: Log) -> None:
        """Learn from the bits of some rows."""
        known = log.has_feedback
        self.right += np.bincount(log.labels[known], log.correct[known], self.right.size)
        self.shown += np.bincount(log.labels[known], minlength=self.right.size)


class OfLearner:
    """A learner with `predict_proba` as a model, which goes on to learn from the log."""

    def __init__(self, learner: Any, classes: np.ndarray) -> None:
        if not hasattr(learner, "predict_proba") or not hasattr(learner, "replay"):
            raise ValueError(
                f"a model has predict_proba, and learns from bits; got {learner!r:.80}"
            )
        self.learner = copy.deepcopy(learner)
        last = self.learner.steps[-1][1] if hasattr(learner, "steps") else self.learner
        started = getattr(last, "classes_", None)
        if started is None:
            last.set_params(classes=classes.tolist())
        elif list(started) != list(classes):
            raise ValueError("a model has the same classes as the log, in the same order")

    def predict(self, log: Log) -> np.ndarray:
        """Return the probability that each label is right, for each row."""
        try:
            return self.learner.predict_proba(log.x)
        except Exception as error:
            if type(error).__name__ != "NotFittedError":
                raise
            return np.full((len(log), log.classes.size), 1.0 / log.classes.size)

    def learn(self, log: Log) -> None:
        """Learn from the bits of some rows."""
        labels = log.classes[log.labels]
        self.learner.replay(log.x, labels, log.probabilities, log.correct)


class Given:
    """Predictions that someone else made, a row for each of the log."""

    def __init__(self, predictions: Any) -> None:
        self.predictions, self.at = np.asarray(predictions, dtype=np.float64), 0
        sound = (self.predictions >= 0.0) & (self.predictions <= 1.0)
        if self.predictions.ndim != 2 or not sound.all():
            raise ValueError("predictions are probabilities, a row for each row of the log")

    def predict(self, log: Log) -> np.ndarray:
        """Return the predictions of the next rows."""
        self.at += len(log)
        found = self.predictions[self.at - len(log) : self.at]
        if found.shape != (len(log), log.classes.size):
            raise ValueError(
                f"predictions have a row for each row of the log and {log.classes.size} columns; "
                f"got shape {self.predictions.shape}"
            )
        return found

    def learn(self, log: Log) -> None:
        """Learn nothing."""


def model_for(given: Any, policy: Any, log: Log) -> Any:
    """Return the model that was asked for, for a log that begins with these rows.

    By default the policy itself, if it is a probability model of these labels: it knows most of
    what it is judged by.
    """
    if given is None and hasattr(policy, "predict_proba") and hasattr(policy, "replay"):
        last = policy.steps[-1][1] if hasattr(policy, "steps") else policy
        if list(getattr(last, "classes_", ())) == log.classes.tolist() and log.among is None:
            given = policy
    if given is None:
        if log.x is None or isinstance(log.x, list):
            return Shares(log.classes.size)
        if (log.x.shape[1] + 1) * log.classes.size > MOST_WEIGHTS:
            return Shares(log.classes.size)
        return Logistic(log.x.shape[1], log.classes.size)
    if hasattr(given, "predict"):
        return OfLearner(given, log.classes)
    return Given(given)


def _rows(x: Any) -> Any:
    if sp.issparse(x):
        x = sp.csr_array(x, dtype=np.float64)
        return rows_of(x)
    return rows_of(np.ascontiguousarray(x, dtype=np.float64))
