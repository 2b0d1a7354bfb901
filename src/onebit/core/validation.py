"""What is given is looked at here, before a learner is touched; errors name the offender."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from onebit.core.example import (
    INDEX,
    LARGEST,
    NOT_SORTED,
    OUTSIDE,
    SOUND,
    Example,
    Rows,
    inspect,
    inspect_rows,
    row,
    rows_of,
)


def check_rows(X: Any, estimator: Any) -> Rows:
    """Return the rows of a matrix, fit to become rounds."""
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=np.float64,
        order="C",
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )
    rows = rows_of(X)
    fault, i, r = inspect_rows(*rows)
    if fault == NOT_SORTED:
        X = X.copy()
        X.sum_duplicates()
        rows = rows_of(X)
        fault, i, r = inspect_rows(*rows)
    if fault != SOUND:
        raise ValueError(_fault(fault, row.py_func(rows, r), i, f"row {r} of X"))
    return rows


def check_example(x: Any, all_features: np.ndarray | None) -> Example:
    """Return one x as an example with memory of its own.

    `all_features` is 0, 1, ... as indices, if the number of features is known.
    """
    if isinstance(x, Example):
        indices, values = x.indices, x.values
        if (indices.dtype, values.dtype) != (INDEX, np.float64) or (
            indices.shape != values.shape or values.ndim != 1
        ):
            raise ValueError(
                "an Example has as many uint32 indices as float64 values; got "
                f"{indices.dtype}{list(indices.shape)} and {values.dtype}{list(values.shape)}"
            )
        # Compiled single rounds trust that the arrays are contiguous.
        example = Example(np.ascontiguousarray(indices), np.ascontiguousarray(values), x.n_features)
    elif sp.issparse(x):
        if x.format != "csr":
            x = sp.csr_array(x.reshape(1, -1) if x.ndim == 1 else x)
        if x.shape[:-1] not in ((1,), ()):
            raise ValueError(_not_one_example(x.shape))
        indices, values = x.indices.astype(INDEX), np.array(x.data, dtype=np.float64)
        example = Example(indices, values, x.shape[-1])
    else:
        values = np.array(x, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(_not_one_example(values.shape))
        if all_features is None or all_features.size != values.size:
            indices = np.arange(values.size, dtype=INDEX)
        else:
            indices = all_features
        example = Example(indices, values, values.size)
    if example.n_features == 0:
        raise ValueError("x has 0 features, and at least one is needed")
    if all_features is not None and example.n_features != all_features.size:
        raise ValueError(
            f"x has {example.n_features} features, but the learner is expecting "
            f"{all_features.size} features"
        )
    fault, i = inspect(*example)
    if fault == NOT_SORTED:
        indices, place = np.unique(example.indices, return_inverse=True)
        summed = np.bincount(place, example.values, minlength=indices.size)
        example = Example(indices, summed, example.n_features)
        fault, i = inspect(*example)
    if fault != SOUND:
        raise ValueError(_fault(fault, example, i, "x (row 0)"))
    return example


def check_labels(y: Any, n_rows: int, estimator: Any) -> np.ndarray:
    """Return the labels of `n_rows` rows as a 1-D array."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, "
            "but the target y is None."
        )
    y = column_or_1d(y, warn=True)
    check_consistent_length(np.empty((n_rows, 0)), y)
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise ValueError(f"y contains NaN or infinity in row {int(np.argmin(np.isfinite(y)))}")
        if (y % 1 != 0).any():
            i = int(np.argmax(y % 1 != 0))
            raise ValueError(f"Unknown label type: continuous, such as {y[i]} in row {i} of y")
    return y


def check_classes(classes: Any) -> np.ndarray:
    """Return the sorted labels of a problem; there must be at least two."""
    found = np.unique(np.asarray(classes))
    if found.size < 2:
        raise ValueError(
            f"classification needs at least two classes; got {found.size} class: {found.tolist()}"
        )
    return found


def positions_of(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the position of each label of `y` in the sorted `classes`."""
    try:
        if classes.dtype.kind == y.dtype.kind == "i" and np.ptp(classes) == classes.size - 1:
            positions = y - classes[0]
            if positions.size and positions.min() >= 0 and positions.max() < classes.size:
                return positions.astype(np.int64, copy=False)
            known = (positions >= 0) & (positions < classes.size)
        else:
            positions = np.searchsorted(classes, y)
            known = classes[np.minimum(positions, classes.size - 1)] == y
    except TypeError:  # labels that do not compare with the classes, such as numbers with strings
        positions, known = np.zeros(len(y), dtype=np.int64), np.zeros(len(y), dtype=bool)
    if not np.all(known):
        i = int(np.argmin(known))
        raise ValueError(f"unknown label {unknown(y[i], classes)}, in row {i}")
    return positions.astype(np.int64, copy=False)


def unknown(label: Any, classes: np.ndarray) -> str:
    """Return words for a label that is none of `classes`."""
    label = label.item() if isinstance(label, np.generic) else label
    shown = ", ".join(repr(known) for known in classes[:5].tolist())
    return f"{label!r}: the classes are {shown}{', ...' if classes.size > 5 else ''}"


def _not_one_example(shape: tuple[int, ...]) -> str:
    return f"x must be one example, a 1-D array or one sparse row; got shape {shape}"


def _fault(fault: int, x: Example, i: int, where: str) -> str:
    j, value = x.indices[i], x.values[i]
    if fault == OUTSIDE:
        return f"{where} has a feature {j}, but features are numbered 0 to {x.n_features - 1}"
    if np.isfinite(value):
        return f"{where} contains {value:g}, in feature {j}: values beyond {LARGEST:g} are refused"
    return f"{where} contains {'NaN' if np.isnan(value) else 'infinity (inf)'}, in feature {j}"
