"""Streams in svmlight files, read a batch at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from onebit.core.example import LARGEST
from onebit.streams.batches import SIZE, check_size
from onebit.streams.lines import lines_of

_MAX_FEATURES = 2**31 - 1
"""Largest number of features; SciPy's indices are int32."""

_MAX_BATCH_BYTES = 2**28
"""Approximate bytes of a batch; it then ends before it has `size` lines."""


def svmlight(
    path: str | PathLike[str],
    n_features: int | None = None,
    size: int = SIZE,
    zero_based: bool = False,
) -> SvmlightFile:
    r"""Return the stream in an svmlight (libsvm) text file, one batch in memory at a time.

    Each line is ``label index:value index:value ...``, with increasing indices; what follows a # is
    a comment. Labels are numbers, or words: texts with a letter, without white space or colon; the
    first label says which of the two all others must be. A file whose name ends in .gz, .bz2 or .xz
    is decompressed on the fly.

    Parameters
    ----------
    path : path of the file
    n_features : int, optional
        Without it the file is read once before the first batch, to find its largest index.
    size : int, default=10_000
        Lines in a batch. Blank lines and comments count, but give no example. A batch ends early if
        its lines exceed 256 MB.
    zero_based : bool, default=False
        Whether the first feature of the file has the index 0, not 1.

    Returns
    -------
    SvmlightFile
        An iterable of pairs (csr_array, labels) that can be iterated any number of times. Its
        `n_features`, `n_examples` and `classes` describe the file.

    Raises
    ------
    FileNotFoundError
        Raised at once, not at the first batch.
    ValueError
        While reading, if a line is malformed, with the name of the file and the line number.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from onebit import SOBA, play, streams
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tickets.svm")
    ...     _ = path.write_text("1 1:0.5 3:1\n2 2:1 # a comment\n1 1:2\n")
    ...     stream = streams.svmlight(path, size=2)
    ...     print(stream.n_features, stream.classes.tolist())
    ...     print([X.toarray().tolist() for X, y in stream])
    ...     play(SOBA(classes=stream.classes), stream).rounds
    3 [1, 2]
    [[[0.5, 0.0, 1.0], [0.0, 1.0, 0.0]], [[2.0, 0.0, 0.0]]]
    3
    """
    return SvmlightFile(path, n_features, size, zero_based)


class SvmlightFile:
    """The stream in an svmlight file, reopened for each `iter`; made by `svmlight`."""

    def __init__(
        self,
        path: str | PathLike[str],
        n_features: int | None = None,
        size: int = SIZE,
        zero_based: bool = False,
    ) -> None:
        check_size(size)
        self.path, self.size, self.zero_based = Path(path), size, zero_based
        self._n_features = n_features
        self.path.open("rb").close()

    def __repr__(self) -> str:
        return f"svmlight({str(self.path)!r}, size={self.size}, zero_based={self.zero_based})"

    @property
    def n_features(self) -> int:
        """Number of features: as given, or else by the largest index in the file."""
        return self._scan.n_features if self._n_features is None else self._n_features

    @property
    def n_examples(self) -> int:
        """Number of examples in the file."""
        return self._scan.n_examples

    @property
    def classes(self) -> np.ndarray:
        """The labels in the file, sorted."""
        return self._scan.classes

    def __iter__(self) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        n_features = self.n_features
        line_number = 1
        source = lines_of(self.path)
        while lines := self._batch(source):
            X, y = self._parsed(lines, line_number, n_features)
            line_number += len(lines)
            if y.size:
                yield X, y

    @cached_property
    def _scan(self) -> _Scan:
        """Scan the file once. Values are left to the parser, which checks all of them."""
        n_examples, largest, widest = 0, -1, 0
        labels: dict[bytes, int | float | str] = {}
        read = _word if self._has_words else label_of
        for line_number, line in enumerate(lines_of(self.path), start=1):
            fields = line.partition(b"#")[0].split()
            if not fields:
                continue
            n_examples += 1
            try:
                if fields[0] not in labels:
                    labels[fields[0]] = read(fields[0])
                # Indices increase, so the last one is the largest of its line.
                if len(fields) > 1 and not fields[-1].startswith(b"qid:"):
                    index = int(fields[-1].partition(b":")[0])
                    if index > largest:
                        largest, widest = index, line_number
            except ValueError as error:
                raise self._error(line_number, line, error) from None
        if not n_examples:
            raise ValueError(f"{self.path}: the file has no examples")
        n_features = min(largest + self.zero_based, _MAX_FEATURES)
        n_bytes = 8 * n_features * len(labels)
        if self._n_features is None and largest <= _MAX_FEATURES and n_bytes > _memory():
            raise ValueError(
                f"{self.path}:{widest}: feature index {largest} makes weights of "
                f"{n_bytes / 2**30:.0f} GiB, more than this machine's memory"
            )
        return _Scan(n_examples, max(n_features, 1), np.unique([*labels.values()]))

    @cached_property
    def _has_words(self) -> bool:
        """Whether the first label is a word, and all others must be."""
        for line in lines_of(self.path):
            if fields := line.partition(b"#")[0].split():
                return _is_word(fields[0].decode(errors="replace"))
        return False

    def _batch(self, source: Iterator[bytes]) -> list[bytes]:
        """Return the lines of the next batch."""
        lines: list[bytes] = []
        n_bytes = 0
        while len(lines) < self.size and n_bytes < _MAX_BATCH_BYTES:
            line = next(source, None)
            if line is None:
                break
            lines.append(line)
            n_bytes += len(line)
        return lines

    def _parsed(
        self, lines: list[bytes], line_number: int, n_features: int
    ) -> tuple[sp.csr_array, np.ndarray]:
        """Return the examples in `lines`, the first of which is line `line_number`."""
        words: dict[str, int] = {}
        try:
            content = b"".join(_numbered(lines, words) if self._has_words else lines)
            X, y = load_svmlight_file(
                BytesIO(content), n_features=n_features, zero_based=self.zero_based
            )
            _check_finite(X.data, y)
            if X.nnz and np.abs(X.data).max() > LARGEST:
                raise ValueError(f"values beyond {LARGEST:g} are refused")
            if self._has_words:
                return sp.csr_array(X), np.array(list(words), dtype=str)[y.astype(np.int64)]
            if y.size and np.abs(y).max() >= 2**53:  # where floats skip integers
                fields = (line.partition(b"#")[0].split() for line in lines)
                y = np.array([label_of(some[0]) for some in fields if some])
        except (ValueError, OverflowError) as error:
            if len(lines) == 1:
                raise self._error(line_number, lines[0], error) from None
            # Bisection finds the one bad line of a large batch quickly.
            middle = len(lines) // 2
            self._parsed(lines[:middle], line_number, n_features)
            self._parsed(lines[middle:], line_number + middle, n_features)
            raise
        return sp.csr_array(X), y.astype(np.int64) if np.all(y == np.rint(y)) else y

    def _error(self, line_number: int, line: bytes, error: Exception) -> ValueError:
        fault = _fault(line, self.zero_based, self._n_features, self._has_words) or str(error)
        return ValueError(f"{self.path}:{line_number}: {fault}")


class _Scan(NamedTuple):
    n_examples: int
    n_features: int
    classes: np.ndarray


def _memory() -> float:
    """Return the memory of this machine in bytes; infinity where it is unknown."""
    if not hasattr(os, "sysconf"):  # on Windows
        return math.inf
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _check_finite(*numbers: Any) -> None:
    if not all(np.isfinite(some).all() for some in numbers):
        raise ValueError("NaN or infinity")


def label_of(text: bytes) -> int | float:
    """Return a label as a 64-bit integer if it is one, otherwise as a float."""
    number = float(text)
    _check_finite(number)
    if abs(number) < 2**53:
        return int(number) if number == round(number) else number
    if not text.removeprefix(b"-").removeprefix(b"+").isdigit():
        raise ValueError(f"a label beyond 2^53 must be written as an integer; got {number}")
    if not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"a label is an integer of 64 bits; got {int(text)}")
    return int(text)


def number_in(text: str) -> float | None:
    """Return the number that a text represents, including NaN and infinity, or None."""
    if "_" in text or not text.isascii():  # Python's number syntax, not that of data files
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _is_word(label: str) -> bool:
    return number_in(label) is None and ":" not in label and any(map(str.isalpha, label))


def _word(text: bytes) -> str:
    """Return a label that is a word."""
    label = text.decode()
    if not _is_word(label):
        raise ValueError("no word")
    return label


def _numbered(lines: list[bytes], words: dict[str, int]) -> Iterator[bytes]:
    """Yield lines with their labels replaced by numbers, which are assigned in `words`."""
    for line in lines:
        label, *pairs = line.partition(b"#")[0].split() or (None,)
        if label is not None:
            number = words.setdefault(_word(label), len(words))
            yield b" ".join((b"%d" % number, *pairs)) + b"\n"


def _fault(line: bytes, zero_based: bool, n_features: int | None, has_words: bool) -> str | None:
    """Return what is wrong with a line, in the terms of its author, not of a parser."""
    # As text, a line has more kinds of white space than the parsed bytes.
    fields = line.partition(b"#")[0].split()
    label, *pairs = (field.decode(errors="replace") for field in fields)
    if has_words and not (_is_word(label) and "\ufffd" not in label):
        return f"the label must be a word, as the first of the file is; got {_short(label)}"
    if not has_words and _is_word(label):
        return f"the label must be a number, as the first of the file is; got {_short(label)}"
    if not has_words and not math.isfinite(_number(label)):
        return f"the label must be a number or a word; got {_short(label)}"
    previous = -1 if zero_based else 0
    largest = _MAX_FEATURES if n_features is None else n_features - zero_based
    for pair in pairs:
        name, _, value = pair.partition(":")
        if name == "qid":
            continue
        if not (name.isascii() and name.isdecimal()) or not math.isfinite(_number(value)):
            return f"a feature is written index:value, two numbers; got {_short(pair)}"
        if abs(_number(value)) > LARGEST:
            return f"{_short(pair)}: values beyond {LARGEST:g} are refused"
        index = int(name) if len(name) <= len(str(_MAX_FEATURES)) else _MAX_FEATURES + 1
        if not 1 - zero_based <= index <= largest:
            return f"feature indices are {1 - zero_based} to {largest}; got {_short(pair)}"
        if index <= previous:
            return f"feature indices must increase; got {_short(pair)} after {previous}"
        previous = index
    return None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _number(text: str) -> float:
    number = number_in(text)
    return math.nan if number is None else number
