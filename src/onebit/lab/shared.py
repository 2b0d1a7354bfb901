"""Streams on disk that all processes memory-map: one copy for all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from onebit.core.fingerprint import name_of
from onebit.lab.results import locked
from onebit.streams import StreamSpec, in_memory


@dataclass(frozen=True)
class Shared:
    """Stored arrays, identified by the hash of their contents."""

    digest: str


@dataclass(frozen=True)
class Made:
    """A stream that a function makes for each seed.

    Parameters
    ----------
    make : callable
        Returns X and y from the arguments and a seed. A function of a module, so that other
        processes find it.
    arguments : tuple
        Values whose `repr` says all.
    """

    make: Callable[..., tuple[Any, np.ndarray]]
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"{self.make.__name__}{self.arguments!r}"


Source = StreamSpec | Shared | Made


def fingerprint(source: Source) -> dict[str, Any]:
    """Return what identifies a stream: for a file, its contents, not its name."""
    if isinstance(source, Shared):
        return {"arrays": source.digest}
    if isinstance(source, Made):
        return {"made": name_of(source.make), "of": repr(source.arguments)}
    found = asdict(source)
    if source.is_file:
        found["name"] = _file_digest(source.name, os.stat(source.name).st_mtime_ns)
    return found


def store(X: Any, y: Any, data: Path) -> Shared:
    """Store a stream that is in memory, and return its identification."""
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    X = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] != codes.size:
        raise ValueError(
            f"a stream has a row of X for each label; got shapes {X.shape} and {codes.shape}"
        )
    found = hashlib.sha256(f"{X.shape} {sp.issparse(X)}".encode())
    for array in (*_arrays(X).values(), codes):
        found.update(np.ascontiguousarray(array).data)
    kept = Shared(found.hexdigest()[:32])
    _write(X, codes, classes.size, data / kept.digest)
    return kept


def shared(source: Source, seed: int, data: Path) -> tuple[Any, np.ndarray, int]:
    """Return a stream as a memory map, its labels 0 to K - 1, and K; the first to ask makes it.

    Epochs are left out, as they repeat the same rows.
    """
    path = data / data_name(source, seed)
    if not path.is_dir():
        if isinstance(source, Shared):
            raise ValueError(f"the arrays of a stream are not at {path}")
        data.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not path.is_dir():
                X, y, classes = _made(source, seed)
                _write(X, np.searchsorted(classes, y), len(classes), path)
    about = json.loads((path / "about.json").read_text())
    arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in about["arrays"]}
    if "X" in arrays:
        return arrays["X"], arrays["y"], about["n_classes"]
    X = sp.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=about["shape"], copy=False
    )
    X.has_canonical_format = about["canonical"]
    return X, arrays["y"], about["n_classes"]


def _made(source: StreamSpec | Made, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a stream and its labels, in order."""
    if isinstance(source, Made):
        X, y = source.make(*source.arguments, seed)
        return X, y, np.unique(y)
    opened = StreamSpec(**{**asdict(source), "epochs": 1}).open(seed)
    return *in_memory(opened.batches()), np.array(opened.classes)


def data_name(source: Source, seed: int) -> str:
    """Return the name of the folder that has a stream."""
    if isinstance(source, Shared):
        return source.digest
    described = fingerprint(source) if isinstance(source, Made) else asdict(source) | {"epochs": 1}
    what = json.dumps([described, seed], sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()[:32]


def _write(X: Any, y: np.ndarray, n_classes: int, path: Path) -> None:
    """Write a stream so that it is whole or not there."""
    if path.is_dir():
        return
    making = Path(tempfile.mkdtemp(dir=path.parent))
    arrays = {**_arrays(X), "y": y}
    for name, array in arrays.items():
        np.save(making / f"{name}.npy", array)
    about = {
        "arrays": list(arrays),
        "n_classes": n_classes,
        "shape": X.shape,
        "canonical": sp.issparse(X) and bool(X.has_canonical_format),
    }
    (making / "about.json").write_text(json.dumps(about))
    making.rename(path)


def _arrays(X: Any) -> dict[str, np.ndarray]:
    if sp.issparse(X):
        return {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    return {"X": X}


@lru_cache
def _file_digest(name: str, changed: int) -> str:
    with open(name, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
