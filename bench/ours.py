"""Measurements of onebit.

Learners are found by introspection: a new one needs no change here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from measuring import Measured, error_rates, repeated
from onebit import SOBA, Aggregating, Obama, learners, play
from onebit.core.compiling import compiled, kernel
from onebit.core.example import row, rows_of
from onebit.core.learner import Learner
from onebit.core.validation import check_rows
from onebit.features import Records
from onebit.numerics.linear import linear_scores
from onebit.numerics.second_order import difference, inner, new_inverse, subtract, times

_SLOW_ROUNDS = 200
"""Rounds of a form whose rounds cost more than O(nnz K), except SOBA, which NumPy also runs."""

_SMALL_PROBLEMS = (Aggregating, Obama)
"""Learners that sample all the weights, and say that they are for small problems only."""


class Form(NamedTuple):
    """A learner's class and the parameters that make it one of its forms."""

    cls: type[Learner]
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """For example ``SOBA gamma=adaptive``."""
        return " ".join([self.cls.__name__, *(f"{k}={v}" for k, v in self.parameters.items())])

    @property
    def full_covariance(self) -> bool:
        """Whether a round costs the square of the number of weights."""
        return self.parameters.get("covariance") == "full"

    @property
    def linear_cost(self) -> bool:
        """Whether a round costs what scoring the row costs, up to a constant."""
        return self.cls.cost.is_linear and not self.full_covariance

    def new(self, n_classes: int) -> Learner:
        """Return a learner before its first round, always with the same seed."""
        return self.cls(**self.parameters, classes=np.arange(n_classes), random_state=0)


def forms(*, full_covariance: bool) -> Iterator[Form]:
    """Yield every form of the learners that can have that many weights, full covariance or not."""
    for name in sorted(learners.__all__):
        cls = getattr(learners, name)
        if cls in _SMALL_PROBLEMS or not cls().__sklearn_tags__().classifier_tags.multi_class:
            continue
        for parameters in cls.forms:
            form = Form(cls, parameters)
            if form.full_covariance == full_covariance:
                yield form


def stream(form: Form, X: sp.csr_array, y: np.ndarray, n_classes: int, repeats: int) -> Measured:
    """Time `play` once its code is compiled, the checks of its input included.

    The first run, on a few rounds and features, compiles or loads what an earlier process compiled.
    """
    few = slice(0, 20)
    first, _ = repeated(1, lambda: play(form.new(n_classes), X[few, :10], y[few]))
    if not form.linear_cost and form.cls is not SOBA:
        X, y, repeats = X[:_SLOW_ROUNDS], y[:_SLOW_ROUNDS], 1
    runs, history = repeated(repeats, lambda: play(form.new(n_classes), X, y))
    return Measured(
        form.name,
        y.size,
        runs,
        *error_rates(history.mistakes),
        updates=history.n_updated,
        first_run_seconds=sum(first.seconds),
    )


def online(form: Form, X: sp.csr_array, y: np.ndarray, n_classes: int, repeats: int) -> Measured:
    """Time `decide` and `learn` together, called from Python with one sparse row after another."""
    learner = form.new(n_classes)
    rounds = [(X[i : i + 1], label) for i, label in enumerate(y.tolist())]

    def run() -> None:
        if learner.feedback == "full":
            for x, truth in rounds:
                learner.learn(learner.decide(x), truth=truth)
        else:
            for x, truth in rounds:
                decision = learner.decide(x)
                learner.learn(decision, correct=decision.label == truth)

    first, _ = repeated(1, run)
    runs, _ = repeated(repeats, run)
    return Measured(form.name, len(rounds), runs, first_run_seconds=sum(first.seconds))


def records(n: int, repeats: int) -> Measured:
    """Time `Records.encode` of records that have ten fields, twenty words in two of them."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(5_000)])
    rounds = [
        {
            "subject": " ".join(rng.choice(words, 5)).capitalize(),
            "body": " ".join(rng.choice(words, 15)),
            "amount": float(rng.normal()),
            "age": int(rng.integers(18, 90)),
            "vip": bool(rng.integers(2)),
            "phone": None,
            **dict(
                zip(
                    ("plan", "country", "channel", "user"),
                    rng.choice(words, 4).tolist(),
                    strict=True,
                )
            ),
        }
        for _ in range(n)
    ]
    encoder = Records()

    def run() -> None:
        for record in rounds:
            encoder.encode(record)

    runs, _ = repeated(repeats, run)
    return Measured("Records, ten fields and twenty words", n, runs)


class _Weights(NamedTuple):
    W: np.ndarray


score: Any = None  # bound to a kernel by `compiled`


def _score_rows(state, rows, scores):
    total = 0.0
    for i in range(rows.indptr.size - 1):
        score(state, row(rows, i), scores)
        total += scores[0]  # a result that is used cannot be compiled away
    return total


def score_pass(X: sp.csr_array, n_classes: int, repeats: int) -> Measured:
    """Time a loop that computes the scores of each row and does nothing else.

    As in `play`, the rows are checked first: what is compared is what learning adds.
    """
    state = _Weights(np.random.default_rng(0).normal(size=(X.shape[1], n_classes)))
    scores = np.empty(n_classes)
    run = compiled("bench.score_pass", _score_rows, nogil=True, score=linear_scores)
    first, _ = repeated(1, lambda: run(state, check_rows(X[:20], None), scores))
    runs, _ = repeated(repeats, lambda: run(state, check_rows(X, None), scores))
    return Measured("score pass", X.shape[0], runs, first_run_seconds=sum(first.seconds))


@kernel
def _update(A_inv, x, plus, minus, n_classes):
    z = difference(x, plus, minus, 1.0, n_classes)
    v = times(A_inv, z)
    q = inner(z, v)
    subtract(A_inv, v, 1.0 / (1.0 + q))
    return q


def _update_inverse(A_inv, rows, n_classes):
    total = 0.0
    for i in range(rows.indptr.size - 1):
        total += _update(A_inv, row(rows, i), i % n_classes, (i + 1) % n_classes, n_classes)
    return total


def inverse_updates(X: sp.csr_array, n_classes: int, repeats: int) -> tuple[Measured, float]:
    """Time A += z z' for one z a row, with all rewrites of the matrix that fall due.

    A second result, the sum of z' A^{-1} z, shows whether another tool did the same.
    """
    run = compiled("bench.inverse_updates", _update_inverse, nogil=True)
    few = X[:20, :10]
    first, _ = repeated(1, lambda: run(new_inverse(10 * n_classes, 1.0), rows_of(few), n_classes))
    rows, n = rows_of(X), X.shape[1] * n_classes
    runs, total = repeated(
        repeats, lambda A_inv: run(A_inv, rows, n_classes), lambda: (new_inverse(n, 1.0),)
    )
    return Measured("onebit", X.shape[0], runs, first_run_seconds=sum(first.seconds)), total
