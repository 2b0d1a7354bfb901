"""One seed, one history: each form of each learner takes the path of histories.txt.

As plain Python, in a process of its own, where every index is checked and nothing is compiled: all
forms take seconds.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from forms import FORMS, n_classes
from onebit import OneBitClassifier, play
from onebit.core.storage import from_bytes, to_bytes
from onebit.theory import best_linear, online_log_loss
from written import assert_as_written

WRITTEN = Path(__file__).with_name("histories.txt")


def stream(n, K, seed):
    """Rows of at most unit length with zeros; one label in five is not the likeliest."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7)
    y = np.argmax(X @ rng.normal(size=(4, K)) + 0.3 * rng.normal(size=(n, K)), axis=1)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), y


def number(*arrays):
    """Return one number that depends on all values and their places."""
    values = np.concatenate([np.ravel(np.asarray(array, dtype=float)) for array in arrays])
    values = np.where(np.isfinite(values), values, -7.0)
    return f"{values @ np.cos(np.arange(values.size)):.6g}"


def lived(form):
    """Yield numbers of what a learner does in a life with all kinds of rounds."""
    K = n_classes(form, 3)
    X, y = stream(60, K, 0)
    probes = stream(6, K, 1)[0]
    learner = clone(form).set_params(classes=range(K), random_state=7)
    if hasattr(form, "n_samples"):
        learner.set_params(n_samples=6)  # a sample takes milliseconds
    history = play(learner, X[:20], y[:20])
    yield f"{history.n_mistakes} {history.n_explored} {history.n_updated}"
    play(learner, sp.csr_array(X[20:30]), y[20:30])
    yield number(learner.policy(probes), learner.decision_function(probes))
    made = [learner.decide(x) for x in X[30:36]] + learner.decide_many(X[36:40])
    for decision, truth in zip(made[::-1], y[30:40].tolist(), strict=True):
        learner.learn(decision, truth=truth)
    yield number(
        [d.label for d in made], [d.probability for d in made], [d.confidence or 0 for d in made]
    )
    if K > 2:
        for x, truth in zip(X[40:44], y[40:44].tolist(), strict=True):
            decision = learner.decide(x, among=[0, 2])
            if learner.feedback == "bandit":
                learner.learn(decision, correct=decision.label == truth)
            elif truth != 1:
                learner.learn(decision, truth=truth)
        yield number(learner.policy(probes, among=[1, 2]))
    if learner.feedback == "bandit":
        bits = np.array([1.0, 0.0, np.nan, 1.0, 0.0, 1.0])
        chosen, taken = learner.replay(X[44:50], y[44:50], np.full(6, 0.5), bits)
        yield number(chosen, taken)
        learner.replay(X[50:54], y[50:54], np.full(4, 0.5), bits[2:], bound=2.0, random_state=3)
    learner.teach(X[54:57], y[54:57])
    try:
        learner = from_bytes(to_bytes(learner))
        yield "kept"
    except ValueError:
        yield "not kept"
    try:
        learner.add_classes([K])
        learner.retire_classes([0])
        play(learner, X[57:60], np.full(3, K))
        yield "grown"
    except ValueError:
        yield "not grown"
    yield number(learner.policy(probes), learner.decision_function(probes))


def changing(covariance):
    """Yield numbers of a OneBitClassifier on a stream whose labels change, and change back."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1_300)
    X = np.c_[4.0 * np.eye(3)[y] + rng.normal(size=(y.size, 3)), 50 + rng.random(y.size)]
    y[400:850] = (y[400:850] + 1) % 3
    y[1_150:] = np.where(y[1_150:] < 2, 1 - y[1_150:], y[1_150:])
    learner = OneBitClassifier(covariance=covariance, forgetting=0.5, random_state=0)
    history = play(learner, X, y)
    yield f"{history.n_mistakes} {history.n_updated}"
    yield " ".join(f"{c.round}:{c.label}{'!' if c.returned else ''}" for c in learner.changes_)
    yield number([c.evidence for c in learner.changes_])
    yield number(learner.policy(X[:9]), learner.coef_, learner.intercept_)


def compared():
    """Yield the best weights in hindsight, for all losses and balls, and losses of learners."""
    X, y = stream(40, 3, 2)
    for loss in ("hinge", "squared_hinge", "log_loss", "smooth_hinge", "logistic"):
        for norm in ("frobenius", "rows"):
            rows = sp.csr_array(X) if loss == "hinge" else X
            found = best_linear(rows, y, loss, 2.0, norm)
            yield f"{loss}, {norm}: {found.loss:.5g}, {number(np.round(found.W, 3))}"
    for form in FORMS:
        if form.feedback == "full" and hasattr(form, "predict_proba") and n_classes(form) > 2:
            learner = clone(form).set_params(classes=range(3), random_state=0)
            if hasattr(form, "n_samples"):
                continue
            yield f"{type(form).__name__}: {number(online_log_loss(learner, X[:12], y[:12]))}"


def histories():
    """Yield all lines."""
    for form in FORMS:
        yield f"{' '.join(str(form).split())}: {', '.join(lived(form))}"
    for covariance in ("diagonal", "full"):
        yield f"changing, {covariance}: {', '.join(changing(covariance))}"
    yield from compared()


def test_histories_are_those_of_histories_txt():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert_as_written(done.stdout.splitlines(), WRITTEN)


if __name__ == "__main__":
    print(*histories(), sep="\n")
