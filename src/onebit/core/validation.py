"""Input validation, before any state changes; errors name the offending value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_features, validate_data

from onebit.core.example import (
    INDEX,
    LARGEST,
    NO_ROW,
    NOT_SORTED,
    OUTSIDE,
    SOUND,
    Example,
    Rows,
    inspect,
    inspect_entry,
    inspect_rows,
    row,
    rows_of,
)


def check_rows(X: Any, estimator: Any, *, keep_float32: bool = False) -> Rows:
    """Return the rows of a matrix, validated.

    With `keep_float32`, an array of float32 is not converted: `slice_rows` does so, in parts.
    """
    if keep_float32 and _is_sound_float32(X):
        return rows_of(X)
    given = X
    try:
        given = _real(X, "X") if isinstance(X, list | tuple) else X
        _check_storage(given, "X")
        X = check_array(
            _with_floats(given) if sp.issparse(given) else given,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            estimator=estimator,
            input_name="X",
        )
    except OverflowError:
        raise ValueError(_no_float("X")) from None
    except (TypeError, ValueError) as error:
        raise _not_numbers(error, given, "X") from None
    if _num_features(given) != X.shape[1]:
        raise ValueError(
            f"X says that it has {_num_features(given)} features; its values are an array of shape "
            f"{X.shape}"
        )
    rows = rows_of(X)
    fault, i, r = inspect_rows(*rows)
    if fault == NO_ROW:
        raise ValueError(f"X was changed by another thread: there is no row {r} any more")
    if fault == NOT_SORTED:
        indices = rows.indices.view(np.int32).copy()
        X = sp.csr_array((X.data.copy(), indices, rows.indptr), shape=X.shape)
        X.sum_duplicates()
        rows = rows_of(X)
        fault, i, r = inspect_rows(*rows)
    if fault != SOUND:
        raise ValueError(_fault(fault, row.py_func(rows, r), i, f"row {r} of X"))
    return rows


def _is_sound_float32(X: Any) -> bool:
    """Return whether X is an array of float32 that needs no conversion but that of its values."""
    if type(X) is not np.ndarray or X.dtype != np.float32 or X.ndim != 2:
        return False
    if 0 in X.shape or not X.flags.c_contiguous:
        return False
    # False for NaN, too. An unsound array is converted, and the error then says what is wrong.
    return bool(X.min() >= -LARGEST and X.max() <= LARGEST)


def check_example(x: Any, all_features: np.ndarray | None, *, is_first: bool = False) -> Example:
    """Return one x as an example, copied and validated.

    `all_features` are the indices 0, 1, ..., if the number of features is known. The first example
    of a learner is inspected in Python: the learner begins to compile as soon as its form is known.
    """
    kind = type(x)
    if kind is Example or isinstance(x, Example):
        indices, values, n_features = example = x
        if not (  # as `decide` makes them
            type(indices) is type(values) is np.ndarray
            and indices.dtype is _UINT32
            and values.dtype is _FLOAT
            and indices.strides == (4,)  # of one axis, and contiguous
            and values.strides == (8,)
            and len(indices) == len(values)
            and type(n_features) is int
            and 0 <= n_features <= 2**32
        ):
            example = _made_by_hand(x)
    elif kind is np.ndarray or not (kind in _CSR or sp.issparse(x)):
        example = _dense_example(x, all_features)
    else:
        example = _sparse_example(x)
    indices, values, n_features = example
    if all_features is None or n_features != all_features.size:
        _check_number_of_features(n_features, all_features)
    fault, i = (inspect.py_func if is_first else _inspect)(indices, values, n_features)
    if fault == NOT_SORTED:
        indices, place = np.unique(indices, return_inverse=True)
        summed = np.bincount(place, values, minlength=indices.size)
        example = Example(indices, summed, n_features)
        fault, i = _inspect(*example)
    if fault != SOUND:
        raise ValueError(_fault(fault, example, i, "x (row 0)"))
    return example


def _inspect_first(*arrays: Any) -> Any:
    """Compile the inspection, which then replaces this function, and inspect an example."""
    global _inspect
    _inspect = inspect_entry()
    return _inspect(*arrays)


_inspect = _inspect_first


def _check_number_of_features(n: int, all_features: np.ndarray | None) -> None:
    if n == 0:
        raise ValueError("x has 0 features, and at least one is needed")
    if all_features is not None:
        raise ValueError(
            f"x has {n} features, but the learner is expecting {all_features.size} features"
        )


def names_in(x: Any) -> list[str] | None:
    """Return the names of the features in a row of a data frame; None if it has none."""
    names = getattr(x, "columns", getattr(x, "index", None))  # of a frame with one row; of a row
    if isinstance(x, Example) or names is None or callable(names):
        return None
    found = list(names)
    return found if found and all(isinstance(name, str) for name in found) else None


def feature_names(X: Any) -> np.ndarray | None:
    """Return the names of the columns of a data frame, as scikit-learn finds them."""
    if not (hasattr(X, "columns") or hasattr(X, "__dataframe__")):
        return None
    found = BaseEstimator()
    validate_data(found, X, skip_check_array=True)
    return getattr(found, "feature_names_in_", None)


def check_names_in(x: Any, expected: np.ndarray) -> None:
    """Raise for a row of a data frame with other feature names, or in another order."""
    names = names_in(x)
    if names is not None and names != expected.tolist():
        pairs = zip_longest(names, expected.tolist())
        i, (found, wanted) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        raise ValueError(
            f"the names of features should be those that the learner started with, in that order; "
            f"feature {i} is {found!r}, and should be {wanted!r}"
        )


def raise_first(bad: np.ndarray, message: Callable[[int], str]) -> None:
    """Raise ValueError with a message for the first bad row, if there is one."""
    if bad.any():
        raise ValueError(message(int(np.argmax(bad))))


def check_labels(y: Any, n_rows: int, estimator: Any) -> np.ndarray:
    """Return the labels of `n_rows` rows as a 1-D array, validated."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, "
            "but the target y is None."
        )
    _check_storage(y, "y")
    labels = as_labels(y, column_or_1d(y, warn=True), "y")
    check_consistent_length(np.empty((n_rows, 0)), labels)
    return labels


def has_bits(y: Any) -> bool:
    """Return whether y has a column for each label, and not only one of labels."""
    return len(np.shape(y)) == 2 and np.shape(y)[1] > 1


def check_bits(right: Any, n_rows: int, labels: list[Any]) -> np.ndarray:
    """Return for each row and label, whether it is right, as an array of 1 and 0, validated.

    The columns of a data frame are found by their names.
    """
    names = getattr(right, "columns", None)
    if names is not None:
        if set(names) != set(labels) or len(names) != len(labels):
            raise ValueError(
                f"the columns of y are the labels, {short(labels)}; got {short(list(names))}"
            )
        right = right[labels]
    if np.ma.is_masked(right):
        raise ValueError("y is a masked array with values missing; fill them in first")
    found = right.toarray() if hasattr(right, "toarray") else np.asarray(right)
    if found.shape != (n_rows, len(labels)):
        raise ValueError(
            f"y has one label for each row, or a column for each label, {short(labels)}; got shape "
            f"{found.shape} for {n_rows} rows"
        )
    plain = found
    if found.dtype.kind == "O":  # missing values of pandas compare with nothing
        missing = [type(value).__name__ in _MISSING for value in found.flat]
        plain = np.where(np.reshape(missing, found.shape), np.nan, found)
    is_bit = (plain == 0) | (plain == 1)
    raise_first(
        ~is_bit.all(axis=1),
        lambda i: (
            "y says of each label whether it is right, 1 or 0; got "
            f"{short(found[i][~is_bit[i]][0])} in row {i}"
        ),
    )
    return np.ascontiguousarray(found, dtype=np.uint8)


def check_classes(classes: Any) -> np.ndarray:
    """Return the labels of a problem, sorted; at least two are needed."""
    array = np.asarray(classes)
    if array.ndim == 2 and array.shape[1] == 1:  # a column of labels, as scikit-learn has it
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"classes is a list of labels, and a label is {_ALLOWED}; got "
            f"{f'an array of shape {array.shape}' if array.ndim else short(classes)}"
        )
    found = np.unique(as_labels(classes, array, "classes"))
    if found.size < 2:
        raise ValueError(
            f"classification needs at least two classes; got {found.size} class: {found.tolist()}"
        )
    return found


def check_more_classes(classes: np.ndarray, new: list[Any]) -> np.ndarray:
    """Return the classes followed by the `new` ones, which must be of the same kind."""
    more = as_labels(new, np.asarray(new), "classes")
    if more.ndim != 1 or len(set(more.tolist())) < more.size:
        raise ValueError(f"classes to add are a list of different labels; got {short(new)}")
    kinds = {array.dtype.kind for array in (classes, more)}
    if len(kinds - {"O", "U"}) > 1 or (kinds & {"O", "U"} and kinds - {"O", "U"}):
        one, other = short(more.tolist()[0]), short(classes.tolist()[0])
        raise ValueError(f"a label is {_ALLOWED}; {one} is not of the kind of {other}")
    return np.concatenate([classes, more])


_LARGEST_FLOAT = 2**53
"""Up to this size, floats represent all integers exactly."""

_ALLOWED = "a str, an int of 64 bits, a bool or a whole float, all of one kind"


def as_labels(given: Any, array: np.ndarray, name: str) -> np.ndarray:
    """Return `array`, made from `given`, if all its items can be labels."""
    if array.dtype.kind == "O" or (array.dtype.kind == "U" and not isinstance(given, np.ndarray)):
        # NumPy converts everything in a list with strings into strings.
        items = np.ravel(np.asarray(given, dtype=object)).tolist()
        if all(isinstance(item, str) for item in items):
            merged = array.dtype.kind == "U" and next((s for s in items if s.endswith("\0")), None)
            if merged:
                raise ValueError(
                    f"{name} contains {short(merged)}: NumPy drops a NUL at the end of a text, and "
                    "would take two labels as one"
                )
        else:
            _check_bools(items, name)
            array = np.array(items)  # numbers in an array of objects
            if array.dtype.kind not in "biuf" or array.ndim != 1:
                kinds = ", ".join(sorted({type(item).__name__ for item in items}))
                raise ValueError(f"a label is {_ALLOWED}; {name} contains {kinds}")
    elif array.dtype.kind == "T":
        array = array.astype(object)
    elif array.dtype.kind in "iuf" and not hasattr(given, "dtype"):
        _check_bools(np.ravel(np.asarray(given, dtype=object)).tolist(), name)
    elif array.dtype.kind not in "biufU":
        raise ValueError(f"a label is {_ALLOWED}; {name} contains {array.dtype.name}")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            i = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"{name} contains NaN or infinity in row {i}")
        if (array % 1 != 0).any():
            i = int(np.argmax(array % 1 != 0))
            raise ValueError(
                f"Unknown label type: continuous, such as {array[i]} in row {i} of {name}"
            )
        if array.size and float(np.abs(array).max()) > _LARGEST_FLOAT:
            raise ValueError(
                f"{name} contains {array[np.argmax(np.abs(array))]}: floats beyond 2^53 skip "
                "integers, and cannot be labels"
            )
    return array


def _check_bools(items: list[Any], name: str) -> None:
    """Raise for bools among numbers, as NumPy and Python take True as 1."""
    are_bools = [isinstance(item, bool | np.bool_) for item in items]
    if any(are_bools) and not all(are_bools):
        number = short(items[are_bools.index(False)])
        one = short(items[are_bools.index(True)])
        raise ValueError(f"a label is {_ALLOWED}; {name} contains {one} and {number}")


def positions_of(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the position of each label of `y` in `classes`, which need not be sorted."""
    order = None
    if not (classes[:-1] < classes[1:]).all():  # labels were added
        order = np.argsort(classes)
    ordered = classes if order is None else classes[order]
    try:
        if ordered.dtype.kind == y.dtype.kind == "i" and np.ptp(ordered) == ordered.size - 1:
            positions = y - ordered[0]
            known = (positions >= 0) & (positions < ordered.size)
        else:
            if ordered.dtype.kind != y.dtype.kind:
                ordered, y = _exact(ordered), _exact(y)
            positions = np.searchsorted(ordered, y)
            known = ordered[np.minimum(positions, ordered.size - 1)] == y
    except TypeError:  # labels that do not compare with the classes, such as numbers with strings
        positions, known = np.zeros(len(y), dtype=np.int64), np.zeros(len(y), dtype=bool)
    if not np.all(known):
        i = int(np.argmin(known))
        raise ValueError(f"unknown label {unknown(y[i], classes)}, in row {i}")
    return (positions if order is None else order[positions]).astype(np.int64, copy=False)


def _exact(labels: np.ndarray) -> np.ndarray:
    """Return labels of a type that keeps integers beyond 2^53 distinct."""
    if (
        labels.dtype.kind in "iu"
        and labels.size
        and (labels.max() > _LARGEST_FLOAT or labels.min() < -_LARGEST_FLOAT)
    ):
        return labels.astype(object)
    return labels


def unknown(label: Any, classes: np.ndarray) -> str:
    """Return a message for a label that is not one of `classes`."""
    label = label.item() if isinstance(label, np.generic) else label
    shown = ", ".join(repr(known) for known in classes[:5].tolist())
    return f"{label!r}: the classes are {shown}{', ...' if classes.size > 5 else ''}"


def short(value: Any) -> str:
    """Return the text of a value for an error, in at most 80 characters."""
    if isinstance(value, int) and abs(value) > 10**80:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print the longest
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_MAX_LISTED = 40


def listed(names: Sequence[Any]) -> str:
    """Return names as an error shows them: all, or of very many the first and the last."""
    shown = list(map(short, names))
    if len(shown) > _MAX_LISTED:
        shown[_MAX_LISTED - 5 : -5] = [f"{len(shown) - _MAX_LISTED} more"]
    return ", ".join(shown)


_FLOAT, _FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_INT32, _UINT32 = np.dtype(np.int32), np.dtype(INDEX)
_CSR = (sp.csr_array, sp.csr_matrix)

_as_example: Any = partial(tuple.__new__, Example)
"""`Example._make` without its length check, which takes half the time."""


def _made_by_hand(x: Example) -> Example:
    """Return an example with the types that kernels trust."""
    indices, values, n_features = x
    try:
        sound = (indices.dtype, values.dtype) == (INDEX, np.float64) and (
            indices.shape == values.shape and values.ndim == 1 and 0 <= n_features <= 2**32
        )
    except (AttributeError, TypeError):
        sound = False
    if not sound:
        raise ValueError(
            "an Example has arrays of as many uint32 indices as float64 values, and a number of "
            f"features; got {tuple(x)}"
        )
    # Compiled single rounds trust that the arrays are contiguous.
    return Example(np.ascontiguousarray(indices), np.ascontiguousarray(values), n_features)


def _dense_example(x: Any, all_features: np.ndarray | None) -> Example:
    if type(x) is np.ndarray and x.dtype is _FLOAT:
        values = x.copy()
    elif type(x) is np.ndarray and x.dtype is _FLOAT32:
        values = x.astype(_FLOAT)
    else:
        _check_storage(x, "x")
        try:
            given = _real(x, "x")
            _check_storage(given, "x")
            values = np.array(given, dtype=np.float64)
        except OverflowError:
            raise ValueError(_no_float("x")) from None
        except (TypeError, ValueError) as error:
            raise _not_numbers(error, x, "x") from None
    if values.ndim != 1:
        if values.ndim != 2 or len(values) != 1:
            raise ValueError(_not_one_example(values.shape))
        values = values[0]
    n = len(values)
    known = all_features is not None and all_features.size == n
    indices = all_features if known else np.arange(n, dtype=INDEX)
    return _as_example((indices, values, n))


def _sparse_example(x: Any) -> Example:
    shape, indices, values = x.shape, None, None
    if type(x) in _CSR:
        indices, values = x.indices, x.data
    if not (
        type(values) is type(indices) is np.ndarray
        and shape[0] == 1
        and values.dtype is _FLOAT
        and indices.dtype is _INT32
        and values.ndim == indices.ndim == 1
        and x.indptr.tolist() == [0, len(values)]
        and len(indices) == len(values)
    ):  # not as they usually are
        _check_storage(x, "x")
        if shape[:-1] not in ((1,), ()):
            raise ValueError(_not_one_example(shape))
        if x.format != "csr":
            x = _with_floats(x)
            x = sp.csr_array(x.reshape(1, -1) if x.ndim == 1 else x)
        lo, hi = x.indptr
        indices = x.indices[lo:hi]
        values = np.asarray(_real(x.data[lo:hi], "x"), np.float64)
    return _as_example((indices.astype(_UINT32), values.copy(), shape[-1]))


def _with_floats(X: Any) -> Any:
    """Return a sparse matrix whose duplicates SciPy adds as floats: as int8, 100 + 100 is -56."""
    return X.astype(np.float64) if X.format != "csr" and X.dtype.kind in "biu" else X


def _not_numbers(error: Exception, x: Any, name: str) -> Exception:
    """Return the error to raise for `x`, which is not an array of numbers, with advice."""
    found = x if isinstance(x, _RECORD) else next(filter(_is_record, _items(x)), None)
    if found is None:
        return error
    what = "is" if found is x else "contains"
    # The words of `error` are those that scikit-learn expects of every estimator.
    return type(error)(
        f"{name} {what} {short(found)}, and learners take numbers: {error}. A pipeline of onebit "
        "(not of scikit-learn) decides about texts, dicts and rows of tables, with Records from "
        "onebit.features: onebit.make_pipeline(Records(), OneBitClassifier(...))"
    )


_RECORD = (str, bytes, Mapping)


def _is_record(item: Any) -> bool:
    if not isinstance(item, _RECORD):
        return False
    try:
        float(item)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True
    return False


def _items(x: Any) -> Sequence[Any]:
    if getattr(getattr(x, "dtype", None), "kind", "O") in "biufc":
        return ()
    try:
        return np.asarray(x, dtype=object).ravel().tolist()
    except ValueError:  # of rows of different lengths
        return ()


def _real(x: Any, name: str) -> np.ndarray:
    """Return x as an array; refuse complex numbers."""
    x = np.asarray(x)
    if x.dtype.kind == "c" or (x.dtype.kind == "O" and any(map(np.iscomplexobj, x.flat))):
        raise ValueError(f"{name} contains complex numbers; features are real")
    return x


def _check_storage(X: Any, name: str) -> None:
    """Raise for masked values, dates, and sparse matrices whose arrays contradict each other."""
    if name != "y":
        _check_objects(X, name)
    columns = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", ())
    if name != "y" and any(getattr(dtype, "kind", "") in ("M", "m") for dtype in columns):
        # As a float, a missing date would be -9.2e18.
        raise ValueError(f"{name} contains dates or times; features are numbers, such as days")
    if np.ma.is_masked(X):
        raise ValueError(f"{name} is a masked array with values missing; fill them in first")
    if not sp.issparse(X):
        return
    fault = _sparse_fault(X)
    if fault:
        raise ValueError(f"{name} is not a sound sparse matrix: {fault}")


_MISSING = ("NaTType", "NAType")
"""Types of missing values in pandas, which need not be installed."""


def _check_objects(X: Any, name: str) -> None:
    """Raise for missing values, dates and times among objects.

    NumPy would take times as numbers of some unit.
    """
    kinds = [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", ())
    if not any(getattr(dtype, "kind", "") == "O" for dtype in kinds):
        return
    values = np.asarray(X.data if sp.issparse(X) else X, dtype=object)
    for i, value in enumerate(values.flat):
        missing = type(value).__name__ in _MISSING
        if missing or isinstance(value, np.datetime64 | np.timedelta64):
            row = i // values.shape[-1] if values.ndim > 1 else 0
            where = "" if sp.issparse(X) else f" in row {row}"
            if missing or np.isnat(value):
                shown = str(value) if missing else "NaT"
                raise ValueError(
                    f"{name} has a missing value, {shown},{where}; features are numbers"
                )
            raise ValueError(
                f"{name} contains a date or time,{where}; features are numbers, such as days"
            )


def _sparse_fault(X: Any) -> str | None:
    """Return what is wrong with the arrays of a sparse matrix, which SciPy checks only once."""
    if X.format == "coo":
        return _coordinates_fault(X.data, X.coords, X.shape)
    if X.format not in ("csr", "csc", "bsr"):
        return None
    n_major, n_minor = (1, *X.shape)[-2:]
    if X.format == "csc":
        n_major, n_minor = n_minor, n_major
    elif X.format == "bsr":
        n_major, n_minor = n_major // X.blocksize[0], n_minor // X.blocksize[1]
    indptr, indices, data = X.indptr, X.indices, X.data
    for array, what in ((indptr, "indptr"), (indices, "indices")):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            return f"{what} is an array {list(array.shape)} of {array.dtype}, and not of integers"
    if X.format != "bsr" and data.ndim != 1:
        return f"data is an array {list(data.shape)}, and not a list of values"
    if indptr.size != n_major + 1:
        return f"indptr has {indptr.size} numbers, and {n_major + 1} are needed for {X.shape}"
    if indices.size != len(data):
        return f"there are {indices.size} indices of {len(data)} values"
    if indptr[0] < 0 or indptr[-1] > indices.size or (indptr[1:] < indptr[:-1]).any():
        return f"indptr does not increase from 0 to at most {indices.size}, the number of values"
    # Compiled code compares 32-bit indices with the number of features, row by row.
    if X.format != "csr" or indices.dtype.itemsize > 4:
        return _coordinates_fault(data, (indices,), (n_minor,))
    return None


def _coordinates_fault(
    data: np.ndarray, coordinates: tuple[np.ndarray, ...], shape: tuple[int, ...]
) -> str | None:
    for axis, size in zip(coordinates, shape, strict=True):
        if len(axis) != len(data):
            return f"there are {len(axis)} indices of {len(data)} values"
        if len(axis) and not (axis.min() >= 0 and axis.max() < size):
            wrong = axis.min() if axis.min() < 0 else axis.max()
            return f"it has an index {wrong}, and indices are 0 to {size - 1}"
    return None


def _not_one_example(shape: tuple[int, ...]) -> str:
    return f"x must be one example, a 1-D array or one sparse row; got shape {shape}"


def _no_float(name: str) -> str:
    limit = f"values beyond {LARGEST:g} are refused"
    return f"{name} contains an integer too large for a float: {limit}"


def _fault(fault: int, x: Example, i: int, where: str) -> str:
    j, value = x.indices[i], x.values[i]
    if fault == OUTSIDE:
        j = j.astype(np.int32) if x.n_features < 2**31 else j  # as before it became unsigned
        return f"{where} has a feature {j}, but features are numbered 0 to {x.n_features - 1}"
    if np.isfinite(value):
        return f"{where} contains {value:g}, in feature {j}: values beyond {LARGEST:g} are refused"
    return f"{where} contains {'NaN' if np.isnan(value) else 'infinity (inf)'}, in feature {j}"
