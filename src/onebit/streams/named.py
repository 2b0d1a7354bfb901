"""Streams by name: public classification data, prepared in the same way for every use."""

from __future__ import annotations

import csv
import lzma
import os
from collections.abc import Callable
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import OneHotEncoder, normalize

from onebit.streams.synthetic import SYNTHETIC
from onebit.streams.tables import long_fields

VARIABLE = "ONEBIT_DATA"
"""Environment variable with the folder of the files."""


class Source(NamedTuple):
    """Where the examples of a named stream are, and how they are made."""

    file: str
    kind: str
    label: str = "y"
    """Column of the label; rows with an empty label are skipped."""
    text: tuple[str, ...] = ("text",)
    """Columns that together form the text."""
    without: str = ""
    """A label whose rows are skipped."""
    fetch: Callable[[], tuple[Any, Any]] | None = None
    """Gets the same data from scikit-learn, which downloads them once."""
    date: str = ""
    """Column of the day, like July 1, 2006, by which the natural order sorts; may be empty."""


def _fetch_20newsgroups() -> tuple[Any, Any]:
    fetched = datasets.fetch_20newsgroups(subset="all")
    return fetched.data, np.array(fetched.target_names)[fetched.target]


def _fetch_covtype() -> tuple[Any, Any]:
    X, y = datasets.fetch_covtype(return_X_y=True)
    return X, y.astype(np.int64)


def _fetch_kddcup99() -> tuple[Any, Any]:
    X, y = datasets.fetch_kddcup99(percent10=True, return_X_y=True)
    columns = [_codes(column) if isinstance(column[0], bytes) else column for column in X.T]
    return np.column_stack(columns).astype(np.float64), _codes(y)


def _codes(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def _fetch_mnist() -> tuple[Any, Any]:
    X, y = datasets.fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
    return X, y.astype(np.int64)


SOURCES = {
    "letter": Source("letter/letter.npz", "numeric"),
    "satimage": Source("satimage/satimage.npz", "numeric"),
    "shuttle": Source("shuttle/shuttle.npz", "numeric"),
    "covtype": Source("covtype/covtype.npz", "numeric", fetch=_fetch_covtype),
    "mnist": Source("mnist/mnist.npz", "numeric", fetch=_fetch_mnist),
    "optdigits": Source("optdigits/optdigits.npz", "numeric"),
    "kddcup99": Source("kddcup99_10pct/kddcup99_10pct.npz", "numeric", fetch=_fetch_kddcup99),
    "vowel": Source("vowel/vowel.npz", "numeric"),
    "poker": Source("poker_train/poker_train.npz", "categorical"),
    "connect4": Source("connect4/connect4.npz", "categorical"),
    "fars": Source("fars/fars.npz", "categorical"),
    "dna": Source("dna/dna.npz", "binary"),
    "20newsgroups": Source(
        "20newsgroups/20news_18828.csv.xz", "text", "group", fetch=_fetch_20newsgroups
    ),
    "reuters_r8": Source("reuters21578/reuters21578.csv.xz", "text", "r8", ("title", "body")),
    "clinc150": Source("clinc150/clinc150_full.csv.xz", "text", "intent", without="oos"),
    "banking77": Source("banking77/banking77.csv.xz", "text", "intent"),
    "snips": Source("snips/snips.csv.xz", "text", "intent"),
    "ag_news": Source(
        "ag_news_test/ag_news_test.csv.xz", "text", "class", ("title", "description")
    ),
    "amazon4": Source(
        "amazon_multidomain/amazon4_blitzer.csv.xz",
        "text",
        "domain",
        ("title", "text"),
        date="date",
    ),
    "fdu_mtl": Source("amazon_multidomain/fdu_mtl_labelled.csv.xz", "text", "domain"),
    "rcv1": Source("rcv1_subsets/rcv1_subsets.svm.xz", "vectors", "y4"),
}

NAMES = (*SYNTHETIC, *SOURCES)
"""The names that `load` takes, and on which comparisons are made."""

CHRONOLOGICAL = ("reuters_r8", "amazon4", "kddcup99")
"""Names whose natural order is chronological."""

FORMATS = {
    "numeric": "an .npz with arrays X (rows x features) and y",
    "categorical": "an .npz with arrays X (rows x features, integer codes) and y",
    "binary": "an .npz with arrays X (rows x features, 0 and 1) and y",
    "text": "an xz-compressed CSV with a header and the columns {columns}",
    "vectors": "an xz-compressed svmlight file, and beside it {meta} with the columns {columns}",
}

_RCV1_FEATURES = 47_236


def load(
    name: str,
    *,
    seed: int = 0,
    directory: str | PathLike[str] | None = None,
    prepared: bool = True,
    order: str = "shuffled",
) -> tuple[Any, np.ndarray]:
    """Return a named stream, with its rows shuffled or in their natural order.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    seed : int, default=0
        Seed of the shuffle, or of a synthetic stream itself.
    directory : path, optional
        Folder of the files; by default that in the environment variable ONEBIT_DATA. If they are
        not there, scikit-learn downloads 20newsgroups (the later version with 18,846 texts),
        covtype, kddcup99 and mnist, once.
    prepared : bool, default=True
        Whether rows are prepared as the notes say. If not, X has the raw columns of the file; texts
        have none.
    order : {"shuffled", "natural"}, default="shuffled"
        "natural" leaves rows in the order of their source, which is chronological for those in
        `CHRONOLOGICAL`; see the notes. The synthetic streams have no order other than that of their
        rounds.

    Returns
    -------
    X : ndarray or csr_array of shape (n_rows, n_features), float64
        Dense for numeric features.
    y : ndarray of shape (n_rows,)
        Labels as they are in the file: integers, or strings for texts.

    Raises
    ------
    ValueError
        If there is no such name, or if its file is malformed.
    FileNotFoundError
        If there is no such file; the message says what is expected where.

    Notes
    -----
    How rows are prepared depends only on the kind of features:

    - numeric: each feature is centred and divided by its standard deviation, a constant 1 is
      appended, and the row is divided by its Euclidean norm. A constant feature becomes 0.
    - categorical: one-hot encoding; then the constant and the normalisation.
    - binary: the features as they are; then the constant and the normalisation.
    - text: the words, 0 or 1, as scikit-learn's `CountVectorizer` finds them; then the
      normalisation.
    - vectors (rcv1): as they are; they already have unit length. Duplicates, and vectors with
      several of the four classes, are left out.

    Means, deviations and vocabularies are computed from all rows: the scale of the features is
    known in advance, but nothing about labels.

    The text of reuters_r8, ag_news and amazon4 is the title and the body. clinc150 is without the
    questions that have no intent (oos).

    The synthetic streams are those of `synsep` and `synnonsep` with a million rounds, and of
    `confidit_synthetic` with a thousand.

    What is known about the natural orders:

    - time: reuters_r8, news from February to October 1987, one in twenty of which is older than its
      predecessor; amazon4, sorted by the day of the review, 1997 to 2006; kddcup99, connections in
      a network under attack, one attack after the other.
    - place: covtype, where 95 % of the rows have the label of the row before, and satimage, where
      85 % do. Labels come in runs, but the order is not one of time.
    - sorted by label, or by train and test part: 20newsgroups, clinc150, banking77, fdu_mtl, rcv1.
    - in fars and connect4, neighbours are slightly similar; nothing is known about time. The others
      show no order; that of shuttle was removed by its publishers.

    Examples
    --------
    >>> from onebit import streams
    >>> X, y = streams.load("synsep", seed=1)
    >>> X.shape, len(set(y.tolist()))
    ((1000000, 400), 9)
    """
    if order not in ("shuffled", "natural"):
        raise ValueError(f"order is 'shuffled' or 'natural'; got {order!r}")
    if name in SYNTHETIC:
        return SYNTHETIC[name](seed=seed)
    if name not in SOURCES:
        raise ValueError(f"no stream {name!r}: there are {', '.join(NAMES)}")
    if order == "natural":
        X, y = _read(name, SOURCES[name], directory)
    else:
        X, y = _read(name, SOURCES[name]._replace(date=""), directory)
        shuffled = np.random.default_rng(seed).permutation(len(y))
        X = [X[i] for i in shuffled] if isinstance(X, list) else X[shuffled]
        y = y[shuffled]
    if not prepared:
        if isinstance(X, list):
            raise ValueError(f"{name!r} is a stream of texts, which have no columns as they are")
        return X.astype(np.float64), y
    return _PREPARE[SOURCES[name].kind](X), y


def _read(
    name: str, source: Source, directory: str | PathLike[str] | None
) -> tuple[Any, np.ndarray]:
    """Return examples and labels in the order of their source."""
    folder = os.environ.get(VARIABLE) if directory is None else directory
    path = Path(folder or ".", source.file)
    if folder is not None and path.is_file():
        try:
            X, y = _READ[source.kind](path, source)
        except _MALFORMED as error:
            raise ValueError(f"{path} is not {_format(source)}: {error}") from error
        return X, y
    wanted = (
        f"the stream {name!r} needs the file {source.file} in the folder that directory=... or "
        f"the environment variable {VARIABLE} names: {_format(source)}"
    )
    if source.fetch is None:
        raise FileNotFoundError(wanted)
    try:
        return source.fetch()
    except OSError as error:
        raise FileNotFoundError(
            f"{wanted}; and scikit-learn could not download it: {error}"
        ) from error


_MALFORMED = (ValueError, TypeError, KeyError, EOFError, lzma.LZMAError, BadZipFile)
"""Exceptions that the readers raise for a malformed file."""


def _format(source: Source) -> str:
    """Describe the expected file."""
    columns = ["first", source.label] if source.kind == "vectors" else [source.label, *source.text]
    columns += [source.date] if source.date else []
    return FORMATS[source.kind].format(
        columns=", ".join(columns), meta=_meta(Path(source.file)).name
    )


def _read_arrays(path: Path, source: Source) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as arrays:
        X, y = arrays["X"], arrays[source.label].astype(np.int64)
    if X.shape[:1] != y.shape:
        raise ValueError(f"X has the shape {X.shape} and y {y.shape}")
    return X, y


def _read_table(path: Path, source: Source) -> tuple[list[str], np.ndarray]:
    rows = [row for row in _rows(path) if row[source.label] not in ("", source.without)]
    if source.date:
        rows.sort(key=lambda row: _day(row[source.date]))
    texts = ["\n".join(row[column] for column in source.text) for row in rows]
    return texts, np.array([row[source.label] for row in rows])


def _day(text: str) -> datetime:
    return datetime.strptime(text.strip(), "%B %d, %Y") if text else datetime.min


def _read_vectors(path: Path, source: Source) -> tuple[sp.csr_array, np.ndarray]:
    """Read the vectors of one class that did not occur before."""
    meta = _rows(_meta(path))
    y = np.array([int(row[source.label]) for row in meta])
    used = (y >= 0) & np.array([row["first"] == "1" for row in meta])
    with lzma.open(path) as file:
        X, _ = datasets.load_svmlight_file(file, n_features=_RCV1_FEATURES, zero_based=False)
    if X.shape[0] != y.size:
        raise ValueError(f"it has {X.shape[0]} rows, and {_meta(path).name} {y.size}")
    return sp.csr_array(X)[used], y[used]


def _meta(path: Path) -> Path:
    return path.with_name(path.name.replace(".svm.xz", "_meta.csv.xz"))


def _rows(path: Path) -> list[dict[str, str]]:
    with long_fields(), lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _numeric(X: np.ndarray) -> np.ndarray:
    rows = np.empty((X.shape[0], X.shape[1] + 1))
    features = rows[:, :-1]
    features[:] = X
    features -= features.mean(axis=0)
    # A constant feature may differ from its mean by rounding.
    deviation = np.where(X.min(axis=0) == X.max(axis=0), np.inf, features.std(axis=0))
    features /= deviation
    rows[:, -1] = 1.0
    return normalize(rows, copy=False)


def _categorical(X: np.ndarray) -> sp.csr_array:
    return _with_constant(OneHotEncoder().fit_transform(X))


def _with_constant(X: Any) -> sp.csr_array:
    X = sp.csr_array(X, dtype=np.float64)
    return sp.csr_array(normalize(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")))


def _words(texts: list[str]) -> sp.csr_array:
    return sp.csr_array(
        normalize(CountVectorizer(binary=True, dtype=np.float64).fit_transform(texts))
    )


_READ: dict[str, Callable[[Path, Source], tuple[Any, np.ndarray]]] = {
    "numeric": _read_arrays,
    "categorical": _read_arrays,
    "binary": _read_arrays,
    "text": _read_table,
    "vectors": _read_vectors,
}
_PREPARE: dict[str, Callable[[Any], Any]] = {
    "numeric": _numeric,
    "categorical": _categorical,
    "binary": _with_constant,
    "text": _words,
    "vectors": lambda X: X,
}
