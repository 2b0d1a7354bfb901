"""Models of which label is right, learned from the bits of a log as they come.

The model that predicts a row has seen only rows before it. This keeps doubly robust intervals
valid, whatever the model: it is cross-fitting in the order of the log, and needs one pass.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from onebit.core.compiling import compiled, lean_kernel
from onebit.core.example import row, rows_of
from onebit.evaluation.log import Log
from onebit.evaluation.policies import decider
from onebit.numerics.linear import products
from onebit.numerics.softmax import softmax

STEP = 1.0
"""Step size of the regression: AdaGrad's eta."""

MOST_WEIGHTS = 50_000_000
"""Maximum weights of the regression; with more features and labels, only labels are modelled."""


@lean_kernel
def _fill_shares(W, x, p):
    """Fill softmax(W x); the last row of W is the intercept."""
    products(W, x, p)
    for k in range(p.size):
        p[k] += W[x.n_features, k]
    softmax(p, 1.0, p)


@lean_kernel
def _move(W, S, at, slopes, x_j, step):
    """Move a row of weights against its gradient, by AdaGrad."""
    for k in range(slopes.size):
        slope = slopes[k] * x_j
        if slope != 0.0:
            S[at, k] += slope * slope
            W[at, k] -= step * slope / math.sqrt(S[at, k])


def _fill(W, rows, p, q):
    """Fill q with the probability that each label is right; p is scratch, also below."""
    for i in range(q.shape[0]):
        _fill_shares(W, row(rows, i), p)
        for k in range(q.shape[1]):
            q[i, k] = p[k]


def _learn(W, S, rows, labels, correct, weights, step, p):
    """Learn from bits: a wrong label makes all others likelier, the likely ones most.

    A reward in between counts as the mean over a bit that is right with this probability.
    """
    for i in range(labels.size):
        if math.isnan(correct[i]):
            continue
        x, label = row(rows, i), labels[i]
        _fill_shares(W, x, p)
        q = p[label]
        for k in range(p.size):
            # - d log likelihood / d score_k, where the bit has the likelihood q or 1 - q.
            if_right = p[k] - np.float64(k == label)
            if_wrong = q if k == label else -q * p[k] / max(1.0 - q, 1e-9)
            p[k] = weights[i] * (correct[i] * if_right + (1.0 - correct[i]) * if_wrong)
        _move(W, S, x.n_features, p, 1.0, step)
        for j in range(x.indices.size):
            _move(W, S, x.indices[j], p, x.values[j], step)


fill = compiled(f"{__name__}.fill", _fill, nogil=True)
learn = compiled(f"{__name__}.learn", _learn, nogil=True)


class Softmax:
    """A logistic regression of which label is right, if any, told one bit per example."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.n_classes = n_classes
        # The last class means that no label is right.
        self.W, self.S = np.zeros((2, n_features + 1, n_classes + 1))
        self.S += 1e-12
        self._p = np.empty(n_classes + 1)

    def predict(self, log: Log) -> np.ndarray:
        """Return the probability that each label is right, for each row."""
        q = np.empty((len(log), self.n_classes))
        fill(self.W, _rows(log.x), self._p, q)
        return q

    def learn(self, log: Log, weights: np.ndarray | None = None) -> None:
        """Learn from the bits of some rows, by default with equal weights."""
        step = STEP / math.sqrt(self._length(log.x))
        weights = np.ones(len(log)) if weights is None else weights
        rows = _rows(log.x)
        learn(self.W, self.S, rows, log.labels, log.correct, weights, step, self._p)

    def _length(self, x: Any) -> float:
        """Return about how many features of an example are non-zero: they all move the score."""
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
    """A learner that knows probabilities as a model, which keeps learning from the log."""

    def __init__(self, learner: Any, classes: np.ndarray) -> None:
        if not is_model(learner):
            raise ValueError(
                f"a model has right_proba or predict_proba, and learns from bits; got "
                f"{learner!r:.80}"
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
            # Where several labels may be right, or none, there is no predict_proba.
            learner = decider(self.learner, log)
            proba = getattr(learner, "right_proba", None) or learner.predict_proba
            return proba(log.x)
        except Exception as error:
            if type(error).__name__ != "NotFittedError":
                raise
            return np.full((len(log), log.classes.size), 1.0 / log.classes.size)

    def learn(self, log: Log) -> None:
        """Learn from the bits of some rows."""
        labels = log.classes[log.labels]
        learner = decider(self.learner, log)
        learner.replay(log.x, labels, log.probabilities, reward=log.correct)


class Given:
    """Predictions that were made elsewhere, one row for each row of the log."""

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


def is_model(learner: Any) -> bool:
    """Return whether a learner can be a model: it knows probabilities, and learns from bits."""
    knows = hasattr(learner, "right_proba") or hasattr(learner, "predict_proba")
    return knows and hasattr(learner, "replay")


def model_for(given: Any, policy: Any, log: Log) -> Any:
    """Return the requested model, for a log that begins with these rows.

    By default this is the policy itself, if it is a probability model of these labels: it predicts
    best what it is evaluated by.
    """
    if given is None and is_model(policy):
        last = policy.steps[-1][1] if hasattr(policy, "steps") else policy
        if list(getattr(last, "classes_", ())) == log.classes.tolist() and log.among is None:
            given = policy
    if given is None:
        if log.x is None or isinstance(log.x, list):
            return Shares(log.classes.size)
        if (log.x.shape[1] + 1) * (log.classes.size + 1) > MOST_WEIGHTS:
            return Shares(log.classes.size)
        return Softmax(log.x.shape[1], log.classes.size)
    if hasattr(given, "predict"):
        return OfLearner(given, log.classes)
    return Given(given)


def _rows(x: Any) -> Any:
    if sp.issparse(x):
        x = sp.csr_array(x, dtype=np.float64)
        return rows_of(x)
    return rows_of(np.ascontiguousarray(x, dtype=np.float64))
