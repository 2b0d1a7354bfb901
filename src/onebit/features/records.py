"""Texts, dicts and rows of tables as examples, by hashing the names of their features."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import murmurhash3_32
from sklearn.utils._param_validation import Interval

from onebit.core.example import INDEX, LARGEST, Example
from onebit.core.explanation import FeatureName
from onebit.core.steps import Step
from onebit.core.validation import short

_WORD = re.compile(r"\w\w+")
"""A word of a text, as in scikit-learn's vectorizers."""

_SPACE = re.compile(r"\s")

_WIDTHS = frozenset(2**k for k in range(1, 31))

_MAX_DEPTH = 32
"""Deepest nesting of dicts and lists, which also ends those that contain themselves."""

_MAX_VALUES = 2**17
"""Most values of a record: lists that share their items can expand beyond all bounds."""

_MAX_NAME_LENGTH = 1000

_COMMON_NUMBERS = frozenset({float, int, bool})
"""Recognised faster than numbers of other kinds."""

_LEAST_VECTOR_SIZE = 8
"""Lists of at least this many numbers are encoded as a whole, which is faster."""

_RECORD = (str, Mapping)

_TIMES = (np.datetime64, np.timedelta64)
"""Times of NumPy, some of which pass for numbers."""


class Records(Step):
    r"""Turn records into examples: texts, JSON-like dicts, rows of tables.

    Each feature has a name, and its column is the hash of that name: nothing is learned from data,
    so new words and fields need no preparation, and the same record gives the same example in any
    process and version.

    ====================================  =================================================
    in a record                           its features, with their values
    ====================================  =================================================
    ``"plan": "Pro"``                     ``plan=Pro``: 1
    ``"subject": "Charged  twice!"``      ``subject=charged``: 1, ``subject=twice``: 1
    ``"amount": 12.5``                    ``amount``: 12.5
    ``"vip": True``                       ``vip``: 1, and 0 for False
    ``"phone": None``                     none
    ``"tags": ["new", "eu"]``             ``tags=new``: 1, ``tags=eu``: 1
    ``"place": [48.1, 11.6]``             ``place.0``: 48.1, ``place.1``: 11.6
    ``"vector": embedding``               ``vector.0``, ``vector.1`` and so on: its numbers
    ``"user": {"age": 31}``               ``user.age``: 31
    a record that is a text               ``charged``: 1, ``twice``: 1
    ====================================  =================================================

    A string that contains white space is a text, and any other string a category, used verbatim.
    The words of a text are lower-cased, have at least two letters, digits or underscores
    (``\w\w+``), and count once, however often they occur. NaN is a missing value, as None is. Dicts
    in a list have the name of the list, and numbers of the same name are summed; numbers and lists
    in a list are named by their positions.

    A list or NumPy array of numbers, such as the embedding of a text, may be in a record beside the
    text itself. The words that a text and a description of a label share (`describe`) say more of a
    rare meaning, an embedding more of synonyms.

    A record may also be a row of pandas (a Series, or a DataFrame of one row) or of polars (a dict,
    or a DataFrame of one row); `transform` also takes a whole DataFrame.

    The hash is the signed 32-bit MurmurHash3 h of the name in UTF-8. The column is abs(h) mod
    n_features, and the value is multiplied by the sign of h, so that two names in one column are as
    likely to cancel as to add up. Dicts that contain no lists, no dicts and no white space give the
    same as `sklearn.feature_extraction.FeatureHasher`.

    Parameters
    ----------
    n_features : int, default=2**16
        The number of columns: a power of two, from 2 to 2^30. Of m names, a share of about exp(-m /
        n_features) have a column to themselves: 98.5 % of 1,000 names at the default, 86 % of
        10,000, 22 % of 100,000. `OneBitClassifier` holds 16 bytes for each feature and label.

    Examples
    --------
    >>> from onebit.features import Records
    >>> example = Records().encode({"subject": "Card charged twice", "plan": "pro", "amount": 12.5})
    >>> example.indices
    array([37234, 41220, 45368, 52090, 58191], dtype=uint32)
    >>> example.values
    array([-1. , -1. ,  1. , 12.5,  1. ])
    >>> Records(n_features=1024).transform(["my card", "my new card"]).shape
    (2, 1024)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [Interval(Integral, 2, 2**30, closed="both")]
    }

    def __init__(self, n_features: int = 2**16) -> None:
        self.n_features = n_features

    def encode(self, record: Any) -> Example:
        """Return one record as an example."""
        indices, values = _columns(_as_record(record), self._width())
        return Example(np.array(indices, INDEX), np.array(values, np.float64), self.n_features)

    def names(self, record: Any) -> dict[int, FeatureName]:
        """Return the names of a record's features, in the words of the record, by their columns.

        Numbers of a list are named by the list, as one feature, if they are encoded as a whole;
        names that share a column are joined by "or".
        """
        last, found = self._width() - 1, _NamedFeatures()
        found.add_record(_as_record(record))
        columns: dict[int, FeatureName] = {}
        named = found.named()
        for h, one in zip(_hashes(name for name, _ in named), named, strict=True):
            name, text = one
            before = columns.get(abs(h) & last)
            if before is not None and before.name != name:
                name, text = f"{before.name} or {name}", f"{before.text} or {text}"
            columns[abs(h) & last] = FeatureName(name, text)
        return columns | found.vector_columns(last)

    def transform(self, records: Any) -> sp.csr_array:
        """Return the examples of many records.

        Parameters
        ----------
        records : iterable of records, or DataFrame

        Returns
        -------
        csr_array of shape (n_records, n_features)
        """
        width = self._width()
        indptr: list[int] = [0]
        indices: list[np.ndarray] = []
        values: list[np.ndarray] = []
        for i, record in enumerate(_rows(records)):
            try:
                own_indices, own_values = _columns(_as_record(record), width)
            except TypeError as error:
                raise TypeError(f"record {i}: {error}") from None
            except ValueError as error:
                raise ValueError(f"record {i}: {error}") from None
            indices.append(np.array(own_indices, np.int32))
            values.append(np.array(own_values, np.float64))
            indptr.append(indptr[-1] + len(own_indices))
        arrays = _joined(values, np.float64), _joined(indices, np.int32), np.array(indptr)
        return sp.csr_array(arrays, shape=(len(indptr) - 1, width))

    def _width(self) -> int:
        width = self.n_features
        if type(width) is not int or width not in _WIDTHS:
            self._validate_params()
        return int(width)

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.n_features not in _WIDTHS:
            raise ValueError(
                "The 'n_features' parameter of Records must be a power of two. "
                f"Got {self.n_features} instead."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.dict = True
        return tags


# Features and their columns


def _columns(record: str | Mapping[Any, Any], width: int) -> tuple[Any, Any]:
    """Return the columns of a record's features, increasing, and their values."""
    found = _Features()
    found.add_record(record)
    columns: dict[int, float] = {}
    last = width - 1
    hashes = _hashes([*found.words, *found.numbers])
    for h, value in zip(hashes, [*found.words.values(), *found.numbers.values()], strict=True):
        if h >= 0:
            column = h & last
        else:
            column, value = -h & last, -value
        columns[column] = columns.get(column, 0.0) + value
    indices = sorted(columns)
    values = list(map(columns.__getitem__, indices))
    return (
        _with_vectors(indices, values, found.vectors, last) if found.vectors else (indices, values)
    )


def _with_vectors(
    indices: list[int], values: list[float], vectors: list[tuple[str, np.ndarray]], last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and values with those of whole vectors added."""
    all_columns, all_values = [np.array(indices, np.int64)], [np.array(values, np.float64)]
    for name, vector in vectors:
        h, kept = _vector_hashes(name, vector.size), np.flatnonzero(vector)
        all_columns.append(np.abs(h[kept]) & last)
        all_values.append(np.where(h[kept] >= 0, vector[kept], -vector[kept]))
    found, places = np.unique(np.concatenate(all_columns), return_inverse=True)
    return found, np.bincount(places, np.concatenate(all_values), minlength=found.size)


@lru_cache(maxsize=64)
def _vector_hashes(name: str, size: int) -> np.ndarray:
    return np.array(_hashes(f"{name}.{i}" for i in range(size)), np.int64)


def _joined(arrays: list[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _hashes(names: Iterable[str]) -> list[int]:
    try:
        return list(map(murmurhash3_32, names))
    except UnicodeEncodeError:  # a lone surrogate, which JSON allows
        return [murmurhash3_32(name.encode(errors="surrogatepass")) for name in names]


class _Features:
    """The features of a record: words, which count once, and numbers, which are summed.

    Lists of many numbers are in `vectors`, whole, with their names.
    """

    __slots__ = ("n_values", "numbers", "vectors", "words")

    def __init__(self) -> None:
        self.words: dict[str, float] = {}
        self.numbers: dict[str, float] = {}
        self.vectors: list[tuple[str, np.ndarray]] = []
        self.n_values = 0

    def add_record(self, record: str | Mapping[Any, Any]) -> None:
        if isinstance(record, str):
            self.words.update(dict.fromkeys(_WORD.findall(record.lower()), 1.0))
        else:
            self.add_fields("", record, 0)

    def add_fields(self, name: str, fields: Mapping[Any, Any], depth: int) -> None:
        self._enter(name, fields, depth)
        prefix = f"{name}." if depth else ""
        for key, value in fields.items():
            if not isinstance(key, str):
                raise TypeError(
                    f"the names of fields are texts; got {short(key)}"
                    + (f" in {short(name)}" if depth else "")
                )
            self.add(prefix + key, value, depth)

    def add_items(self, name: str, items: Sequence[Any] | np.ndarray, depth: int) -> None:
        self._enter(name, items, depth)
        if len(items) >= _LEAST_VECTOR_SIZE and self._add_vector(name, items):
            return
        # Of times in nanoseconds, `tolist` makes integers.
        if isinstance(items, np.ndarray) and items.dtype.kind not in "mM":
            items = items.tolist()
        for i, item in enumerate(items):
            by_place = not isinstance(item, _RECORD)
            self.add(f"{name}.{i}" if by_place else name, item, depth)

    def add(self, name: str, value: Any, depth: int) -> None:
        if len(name) > _MAX_NAME_LENGTH:
            raise ValueError(
                f"names of fields have at most {_MAX_NAME_LENGTH} characters; got {short(name)}, "
                f"which has {len(name)}"
            )
        kind = type(value)
        if kind is str:
            if value.isalnum() or not _SPACE.search(value):  # the first test is faster
                self.words[f"{name}={value}"] = 1.0
            else:
                for word in _WORD.findall(value.lower()):
                    self.words[f"{name}={word}"] = 1.0
        elif kind in _COMMON_NUMBERS:
            self._add_number(name, value)
        elif value is None or _is_missing_in_pandas(value):
            pass
        elif isinstance(value, Mapping):
            self.add_fields(name, value, depth + 1)
        elif isinstance(value, list | tuple):
            self.add_items(name, value, depth + 1)
        elif isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, _TIMES):
            self._add_number(name, value)
        elif isinstance(value, str):  # of NumPy, or an Enum
            self.add(name, str.__str__(value), depth)
        elif isinstance(value, np.ndarray) and value.ndim:
            self.add_items(name, value if value.ndim == 1 else list(value), depth + 1)
        else:
            is_date = hasattr(value, "isoformat") or isinstance(value, _TIMES)
            advice = (
                "; make a date a text, or numbers such as its hour and weekday" if is_date else ""
            )
            raise TypeError(
                f"{short(name)} is {_article(value)}; a record has texts, numbers, True, False, "
                f"None, lists and dicts{advice}"
            )

    def _add_vector(self, name: str, items: Sequence[Any] | np.ndarray) -> bool:
        """Add a list of numbers whole; return whether it is one, with all values in range."""
        if isinstance(items, np.ma.MaskedArray):
            return False  # what is masked is missing
        if isinstance(items, np.ndarray):
            is_numeric = items.dtype.kind in "fiub"
        else:
            is_numeric = _COMMON_NUMBERS.issuperset(map(type, items))
        if not is_numeric or len(name) + 21 > _MAX_NAME_LENGTH:
            return False
        try:
            vector = np.nan_to_num(np.asarray(items, np.float64), posinf=np.inf, neginf=-np.inf)
        except OverflowError:  # an integer beyond the floats
            return False
        if np.abs(vector).max() > LARGEST:
            return False
        self.vectors.append((name, vector))
        return True

    def _add_number(self, name: str, value: Any) -> None:
        try:
            number = float(value)
        except (OverflowError, ValueError):  # integers and decimals beyond the floats
            number = np.inf
        if abs(number) <= LARGEST:
            if number:
                self.numbers[name] = self.numbers.get(name, 0.0) + number
        elif number == number:
            raise ValueError(
                f"{short(name)} is {short(value)}: values beyond {LARGEST:g} are refused"
            )

    def _enter(self, name: str, values: Any, depth: int) -> None:
        if depth >= _MAX_DEPTH:
            raise ValueError(
                f"{short(name)} is in more than {_MAX_DEPTH} dicts and lists inside one another"
            )
        self.n_values += 1 + len(values)
        if self.n_values > _MAX_VALUES:
            raise ValueError(f"a record has at most {_MAX_VALUES} values; there are more")


class _NamedFeatures(_Features):
    """The features of a record, with numbers that are zero."""

    __slots__ = ()

    def named(self) -> list[FeatureName]:
        """Return words and numbers with their texts."""
        words = [FeatureName(word, word.replace("=", ": ", 1)) for word in self.words]
        return words + [
            FeatureName(name, f"{name} = {value:.6g}") for name, value in self.numbers.items()
        ]

    def vector_columns(self, last: int) -> dict[int, FeatureName]:
        """Return the columns of whole vectors, each named by its vector."""
        return {
            column: FeatureName(name, f"{name} ({vector.size} numbers)")
            for name, vector in self.vectors
            for column in (np.abs(_vector_hashes(name, vector.size)) & last).tolist()
        }

    def _add_number(self, name: str, value: Any) -> None:
        super()._add_number(name, value)
        if value == 0:
            self.numbers.setdefault(name, 0.0)


def _is_missing_in_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


# Records and tables


def _as_record(record: Any) -> str | Mapping[Any, Any]:
    """Return a record of any form as a text or a mapping."""
    if type(record) is dict or isinstance(record, _RECORD):  # the first test is fast
        return record
    if _is_table(record):
        rows = list(_rows(record))
        if len(rows) != 1:
            raise ValueError(f"one record is one row; got a table of {len(rows)}")
        return rows[0]
    if hasattr(record, "to_dict") and hasattr(record, "to_frame"):  # a row of pandas
        _check_names(record.index)
        return record.to_dict()
    raise TypeError(
        f"a record is a text, a dict or a row of a table with names; got {_article(record)}"
    )


def _rows(records: Any) -> Iterable[Any]:
    if _is_table(records):
        if hasattr(records, "iter_rows"):  # of polars
            return records.iter_rows(named=True)
        _check_names(records.columns)
        return records.to_dict("records")
    if isinstance(records, str | bytes | Mapping) or not np.iterable(records):
        raise TypeError(f"a list of records is needed; got {_article(records)}")
    return records


def _check_names(names: Any) -> None:
    """Raise ValueError if a row of pandas has two values of one name: its dict has the last one."""
    if not getattr(names, "is_unique", True):
        twice = names[names.duplicated()][0]
        raise ValueError(f"a table has one column for each name; there are more for {short(twice)}")


def _is_table(records: Any) -> bool:
    return hasattr(records, "columns") and hasattr(records, "to_dict")
