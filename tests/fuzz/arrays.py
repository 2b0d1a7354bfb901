"""Examples in every form that Python has for them, sound and broken.

Each maker takes sound rows, a float64 matrix, and returns what to give to a learner in their place
and what must follow: a matrix (the learner must take it, and do as with this matrix), "refuse", or
"either" (taken or refused; in no case may the learner be harmed).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz import forms, values
from fuzz.soundness import assert_same, assert_sound, attempt, copied, snapshot, tell
from onebit import Decision, play
from onebit.checks import not_canonical
from onebit.core.example import INDEX, Example
from onebit.core.learner import Learner

Maker = Callable[[np.random.Generator, np.ndarray], tuple[Any, Any]]
DENSE: list[Maker] = []
SPARSE: list[Maker] = []


class Liar(np.ndarray):
    """An array that says it is larger than it is."""

    @property
    def shape(self):  # type: ignore[override]
        return tuple(50 * n for n in np.asarray(self).shape)


class Foreign:
    """Something that becomes an array when asked, another one each time."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X

    def __array__(self, dtype=None, copy=None):
        self.X = np.vstack([self.X, self.X])
        return self.X.astype(dtype or float)


def dense(maker: Maker) -> Maker:
    DENSE.append(maker)
    return maker


def sparse(maker: Maker) -> Maker:
    SPARSE.append(maker)
    return maker


@dense
def same_values(rng, X):
    """Another layout of the same numbers."""
    wide = np.zeros((X.shape[0] * 2, X.shape[1] * 3))
    wide[::2, ::3] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    return _any(
        rng,
        np.asfortranarray(X),
        wide[::2, ::3],
        X[::-1, ::-1].copy()[::-1, ::-1],
        frozen,
        X.astype(X.dtype.newbyteorder()),
        X.tolist(),
        [list(row) for row in X],
        X.astype(object),
        X.view(type("Own", (np.ndarray,), {})),
        np.frombuffer(X.tobytes()).reshape(X.shape),
    ), X


@dense
def other_numbers(rng, X):
    """Other types of numbers."""
    kinds = [np.float32, np.float16, np.int8, np.int64, np.uint16, np.uint64, np.bool_]
    kind = kinds[rng.integers(len(kinds))]
    Y = (X > 0).astype(kind) if kind is np.bool_ else np.abs(X).astype(kind)
    return Y, Y.astype(np.float64)


@dense
def unfit_values(rng, X):
    """A value that is no number, not finite or too large."""
    Y = X.copy()
    Y[_place(rng, X)] = values.BEYOND[rng.integers(len(values.BEYOND))]
    return _any(rng, Y, np.asfortranarray(Y), Y.astype(object), Y.tolist()), "refuse"


@dense
def strange_values(rng, X):
    """A value that may not be a number at all."""
    Y = X.astype(object)
    Y[_place(rng, X)] = values.STRANGE[rng.integers(len(values.STRANGE))]
    return _any(rng, Y, Y.tolist()), "either"


@dense
def lost_parts(rng, X):
    """Arrays of which a part would be lost."""
    mask = np.zeros(X.shape, dtype=bool)
    mask[_place(rng, X)] = True
    return _any(rng, X + 1j, np.ma.array(X, mask=mask), X.astype(complex) * 1j + 1j), "refuse"


@dense
def wrong_types(rng, X):
    """Arrays of what is no number."""
    return _any(
        rng,
        np.full(X.shape, "x"),
        np.zeros(X.shape, dtype=[("a", float), ("b", int)]),
        np.full(X.shape, None),
        np.full(X.shape, object()),
    ), "refuse"


@dense
def odd_arrays(rng, X):
    """Arrays that may or may not be taken."""
    return _any(
        rng,
        X.view(Liar),
        Foreign(X),
        np.ma.array(X),
        np.asmatrix(X),
        X.astype(np.longdouble),
        X.astype("V8"),
        X.astype("S8"),
        np.zeros(X.shape, dtype="m8[s]"),
        np.zeros(X.shape, dtype="M8[s]"),
        np.broadcast_to(X[0], X.shape),
        memoryview(X),
        iter(X.tolist()),
        X.tobytes(),
        "text",
        7,
        None,
        {},
    ), "either"


@dense
def wrong_shapes(rng, X):
    """Too many dimensions, too few features, none."""
    return _any(
        rng,
        X[np.newaxis],
        np.zeros(()),
        X[:, 1:],
        np.hstack([X, X]),
        np.zeros((X.shape[0], 0)),
        np.zeros((0, X.shape[1] + 1)),
    ), "refuse"


@sparse
def same_matrix(rng, X):
    """Another layout of the same matrix."""
    A = sp.csr_array(X)
    halves = not_canonical(A)
    wide = A.copy()
    wide.indices, wide.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    frozen = A.copy()
    for part in (frozen.data, frozen.indices, frozen.indptr):
        part.flags.writeable = False
    swapped = A.copy()
    swapped.data = A.data.astype(A.data.dtype.newbyteorder())
    spread = A.copy()
    spread.data = np.repeat(A.data, 2)[::2]
    formats = [A.tocsc(), A.tocoo(), A.tolil(), A.todok(), A.tobsr((1, 1)), sp.csr_matrix(A)]
    made = _any(rng, A, halves, wide, frozen, swapped, spread, *formats)
    return made, sp.csr_array(made.toarray() + 0.0)


@sparse
def unfit_matrix(rng, X):
    """A stored value that is no number, not finite or too large."""
    A = sp.csr_array(X)
    A.data[rng.integers(A.nnz)] = values.BEYOND[rng.integers(len(values.BEYOND))]
    return A, "refuse"


@sparse
def broken_matrix(rng, X):
    """A CSR matrix whose parts contradict each other."""
    A = sp.csr_array(X)
    fault = rng.integers(16)
    i, j = rng.integers(A.nnz), rng.integers(1, A.indptr.size)
    if fault == 0:
        A.data = A.data[: rng.integers(A.nnz)]
    elif fault == 1:
        A.indices = A.indices[: rng.integers(A.nnz)]
    elif fault == 2:
        A.indices[i] = rng.choice([-1, X.shape[1], X.shape[1] + 7, 2**31 - 1, -(2**31)])
    elif fault == 3:
        A.indices = A.indices.astype(np.int64)
        A.indices[i] += rng.choice([2**32, 2**33, -(2**32), 2**62])
    elif fault == 4:
        A.indptr[j] = rng.choice([-1, A.nnz + 1, 10**6, 2**31 - 1, -(2**31)])
    elif fault == 5:
        A.indptr = A.indptr.astype(np.int64)
        A.indptr[-1] = rng.choice([2**40, A.nnz + 2**32, 2**63 - 1, -(2**63)])
    elif fault == 6:
        A.indptr[0] = rng.choice([-5, 10**6])
    elif fault == 7:
        A.indptr = A.indptr[: rng.integers(A.indptr.size)]
    elif fault == 8:
        A.data = A.data.astype(complex) + 1j
    elif fault == 9:
        A.data = A.data.astype(object)
        A.data[i] = None
    elif fault == 10:
        A.indices = A.indices + 0.5
    elif fault == 11:
        A._shape = (X.shape[0], X.shape[1] + 3)
    elif fault == 12:
        A._shape = (X.shape[0] + 1000, X.shape[1])
    elif fault == 13:
        A.data = A.data.reshape(1, -1)
    elif fault == 14:
        A.indices = A.indices[:0]
    else:
        A._shape = (X.shape[0], int(A.indices.max()) or X.shape[1] + 1)
    return A, "refuse"


@sparse
def odd_matrix(rng, X):
    """A CSR matrix that has too much, or types of its own."""
    A = sp.csr_array(X)
    fault = rng.integers(7)
    if fault == 0:
        A.data = np.append(A.data, [np.nan, 1.0])
    elif fault == 1:
        A.indices = np.append(A.indices, [-1, 2**31 - 1]).astype(np.int32)
    elif fault == 2:
        A.indices = A.indices.astype(np.uint8)
    elif fault == 3:
        A.indptr = A.indptr.astype(np.float64)
    elif fault == 4:
        A.has_sorted_indices, A.has_canonical_format = True, True
        A.indices[:] = A.indices[::-1].copy()
    elif fault == 5:
        A.data[: A.nnz // 2] = 0.0
    else:
        A.indptr = A.indptr[::-1].copy()
    return A, "either"


def one_example(rng, X):
    """An Example by hand, sound or not."""
    d = X.shape[1]
    indices, x = np.arange(d, dtype=INDEX), X[0].copy()
    fault = rng.integers(12)
    if fault == 0:
        return Example(indices, x, d), X
    if fault == 1:
        return Example(indices[::-1], x[::-1], d), X
    if fault == 2:
        return Example(np.repeat(indices, 2)[::2], np.repeat(x, 2)[::2], d), X
    broken = [
        Example(indices, x, d + 1),
        Example(indices, x, max(0, d - 1)),
        Example(indices, x[:-1], d),
        Example(indices + INDEX(2**31), x, d),
        Example(indices.astype(np.int64) - 1, x, d),
        Example(indices, x + np.inf, d),
        Example(indices, x.astype(complex) + 1j, d),
        Example(indices.reshape(1, -1), x.reshape(1, -1), d),
        Example(None, None, d),
    ]
    return broken[fault - 3], "refuse"


def case(form: str, rng: np.random.Generator) -> None:
    """Give one array to one method of one learner."""
    learner = copied(_trained_once(form))
    one_array(learner, rng)
    assert_sound(learner)


def one_array(learner: Learner, rng: np.random.Generator) -> None:
    """Give one array to one method of `learner`."""
    if rng.random() < 0.4:
        _one(learner, rng, learner.n_features_in_)
    else:
        _many(learner, rng, learner.n_features_in_)


def _many(learner: Learner, rng: np.random.Generator, d: int) -> None:
    n = int(rng.integers(1, 8))
    X, y, known = _rows(rng, n, d), forms.labels(rng, learner, n), learner.classes_.tolist()
    makers = DENSE + SPARSE
    maker = makers[rng.integers(len(makers))]
    given, follows = maker(rng, X)
    faces = {
        "partial_fit": lambda one, rows: one.partial_fit(rows, y),
        "play": lambda one, rows: play(one, rows, y).mistakes,
        "fit": lambda one, rows: one.set_params(classes=known).fit(rows, y),
        "policy": lambda one, rows: one.policy(rows),
        "predict": lambda one, rows: one.predict(rows),
        "scores": lambda one, rows: one.decision_function(rows),
    }
    name = rng.choice(list(faces))
    if name == "fit" and maker in (wrong_shapes, broken_matrix) and given.shape[1:] != (d,):
        follows = "either"  # `fit` takes any number of features
    _compare(learner, faces[name], given, follows, f"{maker.__name__} in {name}")


def _one(learner: Learner, rng: np.random.Generator, d: int) -> None:
    X = _rows(rng, 1, d)
    makers = [*DENSE, *SPARSE, one_example]
    maker = makers[rng.integers(len(makers))]
    given, follows = maker(rng, X)
    if isinstance(given, list) or (isinstance(given, np.ndarray) and given.ndim > 1 and len(given)):
        given = given[0]
    if maker is wrong_shapes:
        follows = "either" if np.shape(given) in ((d,), (1, d)) else "refuse"
    if isinstance(follows, np.ndarray):
        follows = follows[0]
    label = forms.labels(rng, learner, 1)[0]

    def decide(one, x):
        decision = one.decide(x)
        tell(one, decision, label)
        return decision.label, decision.probability

    def from_log(one, x):
        tell(one, Decision(x, label, 0.25), label)

    face = decide if rng.random() < 0.5 else from_log
    _compare(learner, face, given, follows, f"{maker.__name__} in {face.__name__}")


def _compare(
    learner: Learner, face: Callable[[Learner, Any], Any], given: Any, follows: Any, what: str
) -> None:
    """Give an array to a method of a learner, and see that what must follow does."""
    try:
        if isinstance(follows, str):
            attempt(learner, lambda: face(learner, given), must=follows, what=what)
            return
        other = copied(learner)
        expected = face(other, follows)
        _, result = attempt(learner, lambda: face(learner, given), must="accept", what=what)
    except Exception as error:
        shown = vars(given) if sp.issparse(given) else repr(given)
        error.add_note(f"given {type(given).__name__}: {shown}")
        raise
    assert_same(snapshot(other), snapshot(learner), f"learned otherwise from {what}")
    if not isinstance(result, Learner | None):
        np.testing.assert_array_equal(result, expected)


_LEARNERS: dict[str, Learner] = {}


def _trained_once(form: str) -> Learner:
    if form not in _LEARNERS:
        _LEARNERS[form] = forms.trained(form, np.random.default_rng(1), 70, 4)
    return _LEARNERS[form]


def _rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = values.matrix(rng, n, d, "gentle")
    X[:, 0] += X[:, 0] == 0.0  # no sparse row is empty
    return X


def _place(rng: np.random.Generator, X: np.ndarray) -> tuple[Any, ...]:
    return tuple(rng.integers(size) for size in X.shape)


def _any(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[rng.integers(len(choices))]
