"""Logs in files: JSON lines, Parquet, CSV, and the decision service format of Vowpal Wabbit.

All have the same columns: id, time, label, probability, correct, truth, reward, among, confidence,
least, policy and x; those between right and wrong have a reward in place of correct. In JSON lines
a row is the result of `Decision.to_dict` with its feedback; exported logs of `onebit serve` are
read from JSON lines, too. In CSV, a cell that is neither a number nor a text is JSON. Parquet needs
PyArrow: pip install 'onebit[evaluation]'.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from onebit.core.decision import Decision
from onebit.core.validation import listed
from onebit.evaluation.service_log import COLUMNS as SERVICE_COLUMNS
from onebit.evaluation.service_log import decisions_in, revisions_in

if TYPE_CHECKING:
    from onebit.evaluation.log import Log

SINGULAR = {
    "id": "ids",
    "time": "times",
    "label": "labels",
    "probability": "probabilities",
    **{name: name for name in ("correct", "truth", "reward")},
    **{name: name for name in ("among", "confidence", "least", "policy", "x")},
}
"""The parameter of `Log` for each column of a file."""

Rows = Iterator[tuple[int, dict[str, Any]]]


def read(path: str | PathLike[str], size: int | None, **columns: Any) -> Iterator[dict[str, Any]]:
    """Yield the columns of a log, a batch of rows at a time, as `Log` takes them."""
    path = Path(path)
    if _format(path) == "parquet":
        path.stat()  # or raise as `open` does
        yield from _read_parquet(path, size, columns)
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = _READERS[_format(path)](file, path)
        try:
            while some := list(islice(rows, size)):
                lines = [line for line, _ in some]
                names = dict.fromkeys(name for _, row in some for name in row)
                found = {
                    name: [row.get(name) for _, row in some] for name in SINGULAR if name in names
                }
                yield _checked_columns(found, path, list(names), _where(path, lines), columns)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8: {error}") from None


def parts_of(path: str | PathLike[str]) -> list[Path]:
    """Return the files of a log: those in a folder, in the order of their names, or the file."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    parts = sorted(
        part for part in path.iterdir() if part.suffix.lower().removeprefix(".") in FORMATS
    )
    if not parts:
        raise ValueError(f"{path}: no file in this folder ends in .{', .'.join(FORMATS)}")
    return parts


def joined_classes(parts: Iterable[list[Any]], path: str | PathLike[str]) -> list[Any]:
    """Return the labels of a log from those of its files: as all say, or else sorted."""
    lists = list(parts)
    if all(some == lists[0] for some in lists):
        return lists[0]
    return _sorted_labels({label for some in lists for label in some}, Path(path))


def classes_in(path: str | PathLike[str]) -> list[Any]:
    """Return the labels of a log in a file, which is read to find them unless it lists them."""
    path, found = Path(path), set[Any]()
    if _format(path) == "parquet":
        path.stat()
        with _parquet_file(path) as file:
            said = _classes_said(file, path)
        if said is not None:
            return said
    for part in read(path, size=50_000):
        for name in ("labels", "truth"):
            found |= set(np.asarray(part.get(name, ()), dtype=object).tolist())
        found |= {value for offer in part.get("among") or () for value in offer or ()}
        if "classes" in part:
            return part["classes"]
    return _sorted_labels(found, path)


def _sorted_labels(found: set[Any], path: Path) -> list[Any]:
    try:
        return sorted(found - {None})
    except TypeError:
        raise ValueError(f"{path}: labels are all of one kind; got {list(found)!r:.80}") from None


def write(path: str | PathLike[str], log: Log) -> None:
    """Write a log to a file, in the format that its name implies."""
    path = Path(path)
    if _format(path) == "parquet":
        _write_parquet(path, log)
        return
    lines = _WRITERS[_format(path)](log)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)


def _checked_columns(
    found: dict[str, Any],
    path: Path,
    names: list[str],
    where: Callable[[int], str],
    columns: dict[str, Any],
) -> dict[str, Any]:
    """Return the columns of a file, of which `names` are all, as `Log` takes them."""
    _check_names(names, f"{path}: ")
    for name in ("label", "truth"):
        for i, label in enumerate(_listed(found.get(name))):
            if label is None and name == "label":
                raise ValueError(f"{where(i)}: label is missing")
            _check_label(label, where, i)
    for i, offer in enumerate(_listed(found.get("among"))):
        if not isinstance(offer, list | None):
            raise ValueError(f"{where(i)}: among is a list of labels; got {offer!r:.40}")
        for label in offer or ():
            _check_label(label, where, i)
    return from_columns(found, where=where, **columns)


def _check_names(names: Sequence[str], where: str = "") -> None:
    missing = [name for name in ("label", "probability") if name not in names]
    if missing:
        has = f"there are {listed(names)}" if names else "there are no columns"
        raise ValueError(f"{where}a log has a column {missing[0]!r}; {has}")


def _check_label(label: Any, where: Callable[[int], str], i: int) -> None:
    fits = -(2**63) <= label < 2**64 if isinstance(label, int) else True
    if not (fits and isinstance(label, str | int | float | None)):
        raise ValueError(f"{where(i)}: a label is a text or a number of 64 bits; got {label!r:.40}")


def _listed(column: Any) -> list[Any]:
    """Return a column of Python objects; an array of numbers needs no check."""
    return column if isinstance(column, list) else []


def from_columns(found: Mapping[str, Any], **columns: Any) -> dict[str, Any]:
    """Return the columns of a table as `Log` takes them."""
    _check_names(list(found))
    made = {SINGULAR[name]: found[name] for name in found if name in SINGULAR}
    needed = ("labels", "probabilities")
    made = {name: value for name, value in made.items() if name in needed or not _is_empty(value)}
    if isinstance(made.get("x"), list):
        made["x"] = _examples(made["x"], columns.get("where", "row {}".format))
    if isinstance(made.get("policy"), list) and isinstance(made["policy"][0], Mapping):
        labels = list(dict.fromkeys(label for row in made["policy"] for label in row))
        classes = columns.get("classes") or _labels_named(labels, made["labels"])
        made["policy"] = [[row.get(str(k), 0.0) for k in classes] for row in made["policy"]]
        made["classes"] = classes
    return made | {name: value for name, value in columns.items() if value is not None}


# JSON lines


def _read_jsonl(file: Iterable[str], path: Path) -> Rows:
    rows = _read_objects(file, path)
    first = list(islice(rows, 1))
    is_of_service = first and first[0][1].keys() >= SERVICE_COLUMNS
    rows = chain(first, rows)
    if is_of_service:
        rows = decisions_in(rows, str(path), revisions_in(path))
    yield from rows


def _read_objects(file: Iterable[str], path: Path) -> Rows:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield number, _object(line, path, number)


def _write_jsonl(log: Log) -> Iterator[str]:
    for row in _rows(log):
        yield json.dumps(row) + "\n"


def _rows(log: Log) -> Iterator[dict[str, Any]]:
    """Yield each row of a log as JSON types; unknown values are left out."""
    labels = log.classes.tolist()
    for i in range(len(log)):
        row = log.decision(i).to_dict() | {
            "x": _plain_example(None if log.x is None else log.x[i]),
            "time": None if log.times is None else log.times[i],
            **_said(float(log.correct[i])),
            "truth": None if log.truth[i] < 0 else labels[log.truth[i]],
            "least": None if np.isnan(log.least[i]) else float(log.least[i]),
        }
        if log.policy is not None:
            row["policy"] = dict(zip(map(str, labels), log.policy[i].tolist(), strict=True))
        yield {name: row[name] for name in SINGULAR if row.get(name) is not None}


def _said(correct: float) -> dict[str, Any]:
    """Return feedback as a row has it: a bit, or else a reward."""
    if np.isnan(correct):
        return {}
    return {"reward": correct} if 0.0 < correct < 1.0 else {"correct": bool(correct)}


# CSV


def _read_csv(file: Iterable[str], path: Path) -> Rows:
    csv.field_size_limit(2**31 - 1)
    reader = csv.DictReader(file)
    if reader.fieldnames is None:
        return
    _check_unique(reader.fieldnames, f"{path}:1")
    _check_names(reader.fieldnames, f"{path}:1: ")
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"{path}:{reader.line_num}: a row has as many cells as the header")
        known = {name: row[name] for name in SINGULAR if row.get(name)}
        for name in known.keys() & _NUMBERS:
            known[name] = _number(known[name], name, f"{path}:{reader.line_num}")
        for name in known.keys() & {"label", "truth", "among", "policy", "x"}:
            known[name] = _cell(known[name], f"{path}:{reader.line_num}")
        if "correct" in known:
            known["correct"] = _BITS.get(known["correct"].lower(), known["correct"])
        yield reader.line_num, known


def _write_csv(log: Log) -> Iterator[str]:
    text = _Line()
    names = [name for name in SINGULAR if name != "reward" or log.is_graded]
    rows = csv.DictWriter(text, names, lineterminator="\n")
    rows.writeheader()
    yield text.take()
    for row in _rows(log):
        rows.writerow({k: v if _is_plain(v) else json.dumps(v) for k, v in row.items()})
        yield text.take()


_NUMBERS = {"probability", "reward", "confidence", "least"}
_BITS: dict[str, Any] = {"true": True, "1": True, "1.0": True, "false": False, "0": False}
_BITS |= {"0.0": False, "none": None, "nan": None, "null": None}


class _Line:
    """What csv writes into."""

    def write(self, text: str) -> None:
        self.text = text

    def take(self) -> str:
        return self.text


def _is_plain(value: Any) -> bool:
    """Return whether a cell shows a value so that it is read back as it was."""
    return not isinstance(value, dict | list) and not (isinstance(value, str) and _is_json(value))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _cell(text: str, where: str) -> Any:
    """Return what is in a cell: JSON, or else a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text[0] in "{[":
            raise ValueError(f"{where}: {text!r:.40} is not JSON") from None
        return text


def _number(text: str, name: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{where}: {name} is a number; got {text!r:.40}") from None


# Vowpal Wabbit's decision service


def _read_dsjson(file: Iterable[str], path: Path) -> Rows:
    """Yield rows; a label is the `_tag` of its action, else its number, from one."""
    dropped: float | None = None
    for number, row in _read_jsonl(file, path):
        if "_label_cost" not in row and "c" not in row:
            continue  # lines that are not decisions
        try:
            actions, p = [int(a) for a in row["a"]], [float(one) for one in row["p"]]
            context = dict(row["c"])
            offered = context.pop("_multi")
            labels = [
                _cell(action["_tag"], "") if "_tag" in action else k
                for k, action in enumerate(offered, 1)
            ]
            policy = {str(labels[a - 1]): q for a, q in zip(actions, p, strict=True)}
            reward, pdrop = _reward_of(row), float(row.get("pdrop", 0.0))
            made = {
                "id": row["EventId"],
                "time": row.get("Timestamp"),
                "label": labels[int(row.get("_label_Action", actions[0])) - 1],
                "probability": float(row.get("_label_probability", p[0])),
                "policy": policy,
                "among": labels,
            }
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"{path}:{number}: a decision has a, p, c with _multi, and EventId: "
                f"{type(error).__name__} {error}"
            ) from None
        if reward is not None and not 0.0 <= reward <= 1.0:
            raise ValueError(f"{path}:{number}: the cost is in [-1, 0]; got {-reward:g}")
        if not 0.0 <= pdrop < 1.0:
            raise ValueError(f"{path}:{number}: pdrop is a probability below 1; got {pdrop:g}")
        dropped = pdrop if dropped is None else dropped
        if pdrop != dropped:
            raise ValueError(
                f"{path}:{number}: pdrop is {pdrop:g}, and {dropped:g} before: decisions were left "
                "out with different probabilities, and estimates from the others would be biased"
            )
        if reward is not None:
            made |= _said(reward)
        yield number, made | {"x": _x_of(context, row)}


def _reward_of(row: Mapping[str, Any]) -> float | None:
    """Return the feedback for a decision, from its cost or else its outcome; None without any."""
    outcomes = row.get("o")
    if outcomes is not None and not outcomes:
        return None  # an empty list
    if "_label_cost" in row:
        return -float(row["_label_cost"])
    if outcomes is None:
        return None
    (outcome,) = outcomes
    return float(outcome["v"])


def _x_of(context: dict[str, Any], row: Mapping[str, Any]) -> Any:
    x = context["x"] if context.keys() == {"x"} else context.get("record", context)
    if isinstance(x, Mapping) and "n_features" in row:
        indices = [int(j) for j in x]
        return {"indices": indices, "values": list(x.values()), "n_features": row["n_features"]}
    return x


def _write_dsjson(log: Log) -> Iterator[str]:
    policy, labels = log.policy, log.classes.tolist()
    if policy is None:
        raise ValueError(
            "dsjson has the probabilities of all labels, and this log only those of the chosen "
            "ones: play with log=Log(keeps_policy=True)"
        )
    for i, row in enumerate(_rows(log)):
        on_offer = np.flatnonzero(log.on_offer[i])
        first = int(np.flatnonzero(on_offer == log.labels[i])[0])
        order = [first, *(k for k in range(on_offer.size) if k != first)]
        x, more = row.get("x", {}), {}
        if isinstance(x, Mapping) and x.keys() == {"indices", "values", "n_features"}:
            more["n_features"] = x["n_features"]
            x = dict(zip(map(str, x["indices"]), x["values"], strict=True))
        numeric = more or isinstance(x, list)
        known = not np.isnan(log.correct[i])
        cost = -float(log.correct[i]) if log.correct[i] > 0.0 else 0.0
        name = str(row.get("id", i))
        yield (
            json.dumps(
                {
                    "_label_cost": cost,
                    "_label_probability": row["probability"],
                    "_label_Action": first + 1,
                    "_labelIndex": first,
                    "o": [{"v": abs(cost), "EventId": name, "ActionTaken": False}] if known else [],
                    "Timestamp": row.get("time"),
                    "Version": "1",
                    "EventId": name,
                    "a": [k + 1 for k in order],
                    "c": {
                        "x" if numeric else "record": x,
                        "_multi": [{"_tag": _tag(labels[k])} for k in on_offer.tolist()],
                    },
                    "p": policy[i, on_offer[order]].tolist(),
                    **more,
                }
            )
            + "\n"
        )


def _tag(label: Any) -> str:
    """Return a label as a text that `_cell` reads back as it was."""
    return label if isinstance(label, str) and not _is_json(label) else json.dumps(label)


# Parquet

_CLASSES = b"onebit.classes"

GROUP = 65_536
"""Rows in a row group of a Parquet file, which a reader holds in memory."""


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Parquet files need PyArrow: pip install 'onebit[evaluation]'", name="pyarrow"
        ) from None
    return pyarrow, parquet


def _read_parquet(
    path: Path, size: int | None, columns: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    with _parquet_file(path) as file:
        if columns.get("classes") is None and (said := _classes_said(file, path)) is not None:
            columns = columns | {"classes": said}
        every = file.schema_arrow.names
        names = [name for name in every if name.split(".")[0] in SINGULAR]
        _check_unique(names, str(path))
        at, n = 0, file.metadata.num_rows
        batches = file.iter_batches(size or max(n, 1), columns=names, use_threads=False)
        for batch in batches:
            found = {name: _from_arrow(batch, name) for name in SINGULAR if name in names}
            if "x.indices" in names:
                found["x"] = _csr_of(batch)
            yield _checked_columns(found, path, every, _where(path, None, at), columns)
            at += batch.num_rows


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    pa, pq = _pyarrow()
    try:
        # Prefetching would keep everything read so far in memory.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=2**16) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: cannot be read as Parquet: {error}") from error


def _classes_said(file: Any, path: Path) -> list[Any] | None:
    """Return the classes that a Parquet file lists, if it does."""
    said = (file.schema_arrow.metadata or {}).get(_CLASSES)
    if said is None:
        return None
    try:
        classes = json.loads(said)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its classes are not JSON: {error}") from None
    if not isinstance(classes, list):
        raise ValueError(f"{path}: its classes are a list of labels; got {classes!r:.40}")
    for label in classes:
        _check_label(label, lambda _: str(path), 0)
    return classes


def _from_arrow(batch: Any, name: str) -> Any:
    pa, _ = _pyarrow()
    column = batch.column(name)
    if pa.types.is_fixed_size_list(column.type):
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False)
    if not column.null_count and pa.types.is_integer(column.type):
        return column.to_numpy()
    if name == "correct" and pa.types.is_boolean(column.type):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    values = column.to_pylist()
    if name == "x" and pa.types.is_string(column.type):
        return [None if value is None else _cell(value, name) for value in values]
    return values


def _csr_of(batch: Any) -> sp.csr_array:
    indices, values = batch.column("x.indices"), batch.column("x.values")
    indptr = indices.offsets.to_numpy()
    arrays = values.flatten().to_numpy(), indices.flatten().to_numpy(), indptr - indptr[0]
    n_features = batch.column("x.n_features")[0].as_py()
    return sp.csr_array(arrays, shape=(batch.num_rows, n_features))


def _write_parquet(path: Path, log: Log) -> None:
    pa, pq = _pyarrow()
    n, labels = len(log), log.classes
    x: Any = log.x
    made: dict[str, Any] = {} if log.ids is None else {"id": log.ids}
    if log.times is not None:
        made["time"] = log.times
    made |= {"label": labels[log.labels], "probability": log.probabilities}
    is_bit = (log.correct == 0.0) | (log.correct == 1.0)
    made["correct"] = pa.array(log.correct == 1.0, mask=~is_bit)
    if log.is_graded:
        made["reward"] = np.where(is_bit, np.nan, log.correct)
    if (log.truth >= 0).any():
        made["truth"] = pa.array(labels[np.maximum(log.truth, 0)], mask=log.truth < 0)
    for name in ("confidence", "least"):
        if not np.isnan(getattr(log, name)).all():
            made[name] = getattr(log, name)
    if log.among is not None:
        made["among"] = [labels[offer].tolist() for offer in log.among]
    if log.policy is not None:
        made["policy"] = _fixed(pa, log.policy)
    if sp.issparse(x):
        indptr = pa.array(x.indptr.astype(np.int32))
        made["x.indices"] = pa.ListArray.from_arrays(indptr, pa.array(x.indices))
        made["x.values"] = pa.ListArray.from_arrays(indptr, pa.array(x.data))
        made["x.n_features"] = np.full(n, x.shape[1])
    elif isinstance(x, np.ndarray):
        made["x"] = _fixed(pa, x.astype(np.float64))
    elif x is not None:
        made["x"] = [json.dumps(_plain_example(one)) for one in x]
    table = pa.table(made).replace_schema_metadata({_CLASSES: json.dumps(labels.tolist())})
    pq.write_table(table, path, row_group_size=GROUP)


def _fixed(pa: Any, matrix: np.ndarray) -> Any:
    flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


# What they share

_READERS: dict[str, Callable[..., Rows]]
_READERS = {"jsonl": _read_jsonl, "csv": _read_csv, "dsjson": _read_dsjson}
_WRITERS = {"jsonl": _write_jsonl, "csv": _write_csv, "dsjson": _write_dsjson}
FORMATS = ("jsonl", "csv", "dsjson", "parquet")


def _format(path: Path) -> str:
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"{path}: the name of a log ends in .{', .'.join(FORMATS)}")
    return ending


def _where(path: Path, lines: list[int] | None, at: int = 0) -> Callable[[int], str]:
    if lines is None:
        return lambda i: f"{path}, row {at + i}"
    return lambda i: f"{path}:{lines[i]}"


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}:{number}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{path}:{number}: a row is a JSON object; got {line.strip()!r:.40}")
    return row


def _check_unique(names: Sequence[str], where: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{where}: {times} columns have the name {name!r}")


def _is_empty(column: Any) -> bool:
    return isinstance(column, list) and all(value is None for value in column)


def _examples(found: list[Any], where: Callable[[int], str]) -> list[Any]:
    """Return examples as decisions have them; lists of numbers must be of one length."""
    are_lists = all(isinstance(x, list) for x in found)
    made = []
    for i, x in enumerate(found):
        try:
            made.append(np.array(x, dtype=np.float64) if are_lists else _example(x))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where(i)}: {error}") from None
        if are_lists and made[i].shape != made[0].shape:
            raise ValueError(
                f"{where(i)}: x has the shape {made[i].shape}, and before it {made[0].shape}"
            )
    return made


def _example(x: Any) -> Any:
    """Return an example as a decision has it."""
    return Decision.from_dict({"x": x, "label": None, "probability": 1.0}).x


def _plain_example(x: Any) -> Any:
    """Return an example as JSON types."""
    if sp.issparse(x):
        row = x.reshape(1, -1).tocsr()
        return {
            "indices": row.indices.tolist(),
            "values": row.data.tolist(),
            "n_features": row.shape[1],
        }
    return Decision(x, None, 1.0).to_dict()["x"]


def _labels_named(names: list[str], labels: list[Any]) -> list[Any]:
    """Return labels by the strings that represent them as JSON keys."""
    if all(isinstance(label, str) for label in labels):
        return sorted(names)
    return sorted(json.loads(name) for name in names)
