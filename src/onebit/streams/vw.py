"""Streams in Vowpal Wabbit's text format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike

from onebit.core.validation import short
from onebit.streams.batches import SIZE
from onebit.streams.files import number_in
from onebit.streams.lines import texts_of
from onebit.streams.records import N_FEATURES, LabelReader, RecordFile, Round


class VwFile(RecordFile):
    r"""The stream in a Vowpal Wabbit text file, for multiclass classification.

    Each line is ``label ['tag]|namespace feature:value feature ...|namespace
    ...``; a feature without a value has 1, ``|namespace:2`` multiplies all its values by 2. A line
    is the record {namespace: {feature: value}}, which `onebit.features.Records` turns into an
    example: its columns are not those of Vowpal Wabbit. Labels are numbers or words. Importance
    weights other than 1 and the labels of contextual bandits (action:cost:probability) are refused.
    A file whose name ends in .gz, .bz2 or .xz is decompressed on the fly.

    Parameters
    ----------
    path : path of the file, in UTF-8
    n_features : int, default=2**16
        Columns that names are hashed to.
    size : int, default=10_000
        Examples in a batch.

    Raises
    ------
    ValueError
        While reading, if a line is malformed, with the name of the file and the line number.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from onebit import streams
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tickets.vw")
    ...     _ = path.write_text("1 'a|subject card charged:2\n2 |subject invoice |user age:31\n")
    ...     stream = streams.VwFile(path)
    ...     print(stream.n_examples, stream.classes.tolist())
    ...     [X.nnz for X, y in stream]
    2 [1, 2]
    [4]
    """

    def __init__(
        self, path: str | PathLike[str], n_features: int = N_FEATURES, size: int = SIZE
    ) -> None:
        super().__init__(path, size, n_features)

    def _rounds(self) -> Iterator[Round]:
        label_of = LabelReader()
        for line_number, line in enumerate(texts_of(self.path), start=1):
            if line.isspace():
                continue
            place = f"{self.path}:{line_number}"
            head, *spaces = line.split("|")
            if not spaces:
                raise ValueError(f"{place}: there is no | between the label and the features")
            features: dict[str, float] = {}
            for space in spaces:
                _add(features, space, place)
            yield Round(place, label_of(_label(head, place), place), features)


def _label(head: str, place: str) -> str:
    """Return the label before the first |, which a weight, a base and a tag may follow."""
    fields = head.split()
    # A tag is quoted, or touches the |.
    if fields and (fields[-1].startswith("'") or (len(fields) > 1 and not head[-1].isspace())):
        fields.pop()
    if not fields:
        raise ValueError(f"{place}: the label is missing")
    label, *rest = fields
    if ":" in label:
        raise ValueError(f"{place}: a label is a number or a word; got {short(label)}")
    for weight in rest:
        if number_in(weight) != 1.0:
            raise ValueError(f"{place}: importance weights other than 1 are not for rounds: "
                             f"got {short(weight)}")  # fmt: skip
    return label


def _add(features: dict[str, float], space: str, place: str) -> None:
    """Add the features of a namespace, which is named if no white space follows the |."""
    fields = space.split()
    name, scale = "", 1.0
    if fields and not space[0].isspace():
        name, scale = _pair(fields.pop(0), place)
    for field in fields:
        feature, value = _pair(field, place)
        feature = f"{name}.{feature}" if name else feature
        features[feature] = features.get(feature, 0.0) + scale * value


def _pair(field: str, place: str) -> tuple[str, float]:
    name, colon, text = field.partition(":")
    value = number_in(text) if colon else 1.0
    if not name or value is None or not math.isfinite(value):
        raise ValueError(f"{place}: a feature is written name or name:number; got {short(field)}")
    return name, value
