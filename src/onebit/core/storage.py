"""Learners and pipelines in files: safetensors with a JSON header. Never pickle.

A file is untrusted input: nothing in it is executed, nothing is imported except the steps listed in
`onebit.core.steps`, memory is allocated only for what the file contains, and each array is checked
against the declarations of the learner's state (`onebit.core.state`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError
from sklearn.base import clone

from onebit.core.decision import MAX_REMEMBERED_IDS, check_id, key_of
from onebit.core.engine import PythonKernels
from onebit.core.generator import new_generator
from onebit.core.registry import class_named, name_of
from onebit.core.replacing import replace_file
from onebit.core.state import (
    ANY,
    ROWS,
    check_arrays,
    check_shape,
    check_state,
    declared,
    sizes_of,
    with_arrays,
)
from onebit.core.steps import step_from_json, step_to_json
from onebit.core.terms import (
    new_labels_from_json,
    new_labels_to_json,
    terms_from_json,
    terms_to_json,
    window_from_json,
    window_to_json,
)
from onebit.core.validation import check_classes, short

if TYPE_CHECKING:
    from onebit.core.base import BaseLearner
    from onebit.core.learner import Learner
    from onebit.core.pipeline import Pipeline
    from onebit.core.run import Run

FORMAT = 4
"""Version of the layout below; a file of a later version is refused.

- 1: no checksum; classes are named without their modules.
- 2: a checksum.
- 3: the same; arrays of `OneBitClassifier` have changed.
- 4: the version of the learner's arrays (`Learner.state_version`, 0 in earlier formats), and which
  code wrote the file.
"""

FORMAT_WITH_TERMS = 5
"""Version of files with worth, cost or limits; files without any of them have `FORMAT`."""

_LEARNER = "onebit.learner"
"""Key in the header for the class of a learner that is a parameter of another one."""

_MAX_FEATURES = 10**7
"""The largest n_features of a file in which no array is larger."""

_PIECE = 2**18
"""Bytes of an array that are copied at a time: other threads wait meanwhile."""

_PLAIN_DTYPES = re.compile(r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U[1-9][0-9]{0,6}|\|O")
"""The dtypes of labels that files may hold. Objects are strings and numbers, as in JSON."""


def write(path: str | PathLike[str], learner: Learner, steps: Sequence[Any] = ()) -> None:
    """Write a learner to `path`, with the steps before it if it is in a pipeline.

    An existing file is replaced atomically or not at all.
    """
    replace_file(path, to_bytes(learner, steps))


def to_bytes(learner: Learner, steps: Sequence[Any] = ()) -> bytes:
    """Return the bytes that `write` writes."""
    described = [step_to_json(step) for step in steps]
    if not learner._started:
        return _in_file(_header(learner, learner.get_params(deep=False), described), {})
    run = learner._run
    with run.lock:  # the file has an update by another thread completely or not at all
        return _content(learner, run, described)


def read(path: str | PathLike[str]) -> Learner | Pipeline:
    """Return the learner or pipeline in `path`, which continues as the saved one would.

    Only learners and steps whose class has been imported can be read. An unsound file raises
    ValueError.
    """
    # In one read: another program may write to the file meanwhile.
    with open(path, "rb", opener=_open_to_read) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is not a learner saved by onebit: it is not a regular file")
        content = file.read()
    try:
        return from_bytes(content)
    except ValueError as error:
        raise ValueError(f"{path} is not a learner saved by onebit: {error}") from error


def from_bytes(content: bytes) -> Learner | Pipeline:
    """Return the learner or pipeline that `to_bytes` wrote; raise ValueError for other bytes."""
    steps, learner = parts_from_bytes(content)
    if not steps:
        return learner
    from onebit.core.pipeline import make_pipeline

    return make_pipeline(*steps, learner)


def parts_from_bytes(content: bytes) -> tuple[list[Any], Learner]:
    """Return the steps and the learner that `to_bytes` wrote, without making a pipeline."""
    try:
        return _parts_in(content)
    except (SafetensorError, RecursionError) as error:
        raise ValueError(str(error)) from error


def arrays_of(state: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of a state and of the states inside it, by their names."""
    for name, array, _ in declared(state):
        yield name, array


def writeable(state: Any) -> Any:
    """Return `state`, with copies of the read-only arrays."""
    new = {}
    for name, value in state._asdict().items():
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            new[name] = np.array(value)
        elif hasattr(value, "_asdict"):
            new[name] = writeable(value)
    return state._replace(**new) if new else state


def _open_to_read(path: str, flags: int) -> int:
    # Reading from a pipe without a writer would block.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


# The content of a file


def _content(learner: Learner, run: Run, steps: list[Any]) -> bytes:
    sizes = _sizes(learner, run.parameters, run.all_features.size, run.classes.size)
    try:
        check_arrays(declared(run.state), sizes)
    except ValueError as error:
        raise ValueError(f"{type(learner).__name__} is not sound, and not saved: {error}") from None
    header = _header(learner, run.parameters, steps) | {
        "classes": _classes_to_json(run.classes),
        "classes_dtype": run.classes.dtype.str,
        "n_features": run.all_features.size,
        "feature_names": [] if run.feature_names is None else run.feature_names.tolist(),
        "retired": sorted(run.retired),
        "learned": run.last_ids(),
        **({"window": window_to_json(run.window)} if run.window.decisions else {}),
    }
    if run.new_labels or run.new_window.decisions:
        header["new_labels"] = new_labels_to_json(run.new_labels, run.new_window)
    return _in_file(
        header, {name: np.ascontiguousarray(value) for name, value in arrays_of(run.state)}
    )


def _header(learner: Learner, parameters: dict[str, Any], steps: list[Any]) -> dict[str, Any]:
    """Return the header entries of a learner that has not started."""
    inner = _inner_versions(type(learner)(**parameters))
    return {
        "format": FORMAT if learner._terms is None else FORMAT_WITH_TERMS,
        "made_by": code_version(learner),
        "learner": name_of(type(learner)),
        "state_version": learner.state_version,
        **({"inner_versions": inner} if inner else {}),
        "parameters": _parameters_to_json(learner, parameters),
        **({"steps": steps} if steps else {}),
        **({"terms": terms_to_json(learner._terms)} if learner._terms is not None else {}),
    }


def code_version(learner: Learner) -> str:
    """Return the version of onebit, and a fingerprint of the learner's kernels.

    Files contain it (`code_version_in`): with another version, a replay may differ.
    """
    version = import_module("onebit").__version__
    code = learner._run.kernels.fingerprint if learner._started else "not started"
    return f"onebit {version}, {code}"


def code_version_in(content: bytes) -> str | None:
    """Return the `code_version` that wrote a file; None for formats before 4."""
    metadata, _ = _parse(content)
    header = _json(metadata["onebit"], "the header")
    return _item(header, "made_by", str) if "made_by" in header else None


def _in_file(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the content of a file, with arrays where safetensors would put them.

    safetensors itself keeps the GIL for milliseconds while it copies large arrays.
    """
    text = json.dumps(header, allow_nan=False)
    items = {name: np.zeros((), array.dtype) for name, array in arrays.items()}
    sample = safetensors.numpy.save(items, {"onebit": text, "sha256": _digest(text, arrays)})
    (size,) = struct.unpack("<Q", sample[:8])
    layout, end = json.loads(sample[8 : 8 + size]), 0
    order = sorted(arrays, key=lambda name: layout[name]["data_offsets"])
    for name in order:
        start, end = end, end + arrays[name].nbytes
        layout[name] |= {"shape": arrays[name].shape, "data_offsets": [start, end]}
    # The order in a safetensors header varies; the same learner should give the same bytes.
    ordered = json.dumps(layout, sort_keys=True).encode()
    ordered += b" " * (-len(ordered) % 8)  # arrays start at a multiple of eight
    file = BytesIO()
    file.write(struct.pack("<Q", len(ordered)) + ordered)
    for name in order:
        content = arrays[name].reshape(-1).view(np.uint8).data
        for i in range(0, len(content), _PIECE):
            file.write(content[i : i + _PIECE])
    return file.getvalue()


def _parts_in(content: bytes) -> tuple[list[Any], Learner]:
    metadata, arrays = _parse(content)
    header = _json(metadata["onebit"], "the header")
    version = _item(header, "format", int)
    if version > FORMAT_WITH_TERMS:
        raise ValueError(
            f"it has format {version}, and this onebit reads up to {FORMAT_WITH_TERMS}: read it "
            "with a newer one"
        )
    if version < 1:
        raise ValueError(f"format is {version}, and should be from 1 to {FORMAT_WITH_TERMS}")
    has_checksum = version > 1 or "sha256" in metadata
    if has_checksum and metadata.get("sha256") != _digest(metadata["onebit"], arrays):
        raise ValueError("its content does not have the checksum in it: it was damaged")
    steps = _steps(header)
    if "n_features" not in header and not arrays:
        return steps, _unstarted(header, version)
    n_features = _item(header, "n_features", int)
    largest = max([_MAX_FEATURES, *(array.size for array in arrays.values())])
    if not 1 <= n_features <= min(largest, 2**32 - 1):
        raise ValueError(f"n_features is {n_features}, and should be from 1 to {largest}")
    classes = _classes(header, len(metadata["onebit"]))
    names = _item(header, "feature_names", list)
    if names and (len(names) != n_features or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names are not the names of {n_features} features")
    learner = _learner_from_json(header, version)
    versions = _versions(header, learner)
    older = versions != _current_versions(learner)
    sizes = _sizes(learner, learner.get_params(deep=False), n_features, classes.size)
    try:
        if older:
            arrays = _migrated(learner, versions, arrays)
        _check_shapes(learner, arrays, sizes, older)
        learner._start(classes, n_features, np.array(names, dtype=object) if names else None)
    except _MismatchError:
        raise
    except Exception as error:
        # A learner may raise any error for parameters that no valid file has.
        raise ValueError(_wrong_parameters(learner, error)) from error
    grows = isinstance(learner._run.kernels, PythonKernels)
    if older:
        arrays = dict(arrays_of(learner._run.state)) | arrays
    state = _restored(learner._run.state, arrays, grows)
    check_state(state, sizes)
    learner._run.state = state
    learner._run.retire(_retired(header, classes.size))
    learner._run.learned = dict.fromkeys(map(key_of, _learned(header)))
    if "window" in header:
        learner._run.window = window_from_json(_item(header, "window", dict))
    if "new_labels" in header:
        found = new_labels_from_json(_item(header, "new_labels", dict), classes.size)
        learner._run.new_labels, learner._run.new_window = found
    _restore_terms(learner, header)
    if learner._terms is not None:
        learner._conditions(learner._run)
    return steps, learner


def _inner_versions(learner: BaseLearner, prefix: str = "") -> dict[str, int]:
    """Return the `state_version` of each inner learner, by the field of the state that has it."""
    found = {}
    for field, (inner, _) in learner._inner_learners().items():
        found[f"{prefix}{field}"] = inner.state_version
        found |= _inner_versions(inner, f"{prefix}{field}.")
    return found


def _current_versions(learner: BaseLearner) -> dict[str, int]:
    return {"": learner.state_version, **_inner_versions(learner)}


def _versions(header: Mapping[str, Any], learner: Learner) -> dict[str, int]:
    """Return the versions of the arrays in a file: of the learner, as "", and of inner learners.

    Files of earlier formats contain no versions, which counts as 0.
    """
    found = {"": _item(header, "state_version", int) if "state_version" in header else 0}
    inside = _item(header, "inner_versions", dict) if "inner_versions" in header else {}
    for name, current in _current_versions(learner).items():
        version = found[name] = found[name] if name == "" else inside.get(name, 0)
        if type(version) is not int or not 0 <= version <= current:
            where = f" of {name}" if name else ""
            raise ValueError(
                f"state_version is {short(version)}{where}, and this onebit reads "
                f"{type(learner).__name__} up to {current}"
            )
    return found


def _migrated(
    learner: BaseLearner, versions: Mapping[str, int], arrays: dict[str, np.ndarray], at: str = ""
) -> dict[str, np.ndarray]:
    """Return arrays of earlier versions in today's layout; `at` is the field of the learner."""
    for field, (inner, n_copies) in learner._inner_learners().items():
        prefix, place = f"{field}.", f"{at}.{field}" if at else field
        own = {
            name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)
        }
        arrays = {name: a for name, a in arrays.items() if not name.startswith(prefix)}
        if n_copies is None or not own:
            own = _migrated(inner, versions, own, place)
        else:
            each = [
                _migrated(inner, versions, {name: a[i] for name, a in own.items()}, place)
                for i in range(n_copies)
            ]
            own = {name: np.stack([copy[name] for copy in each]) for name in each[0]}
        arrays |= {f"{prefix}{name}": a for name, a in own.items()}
    version = versions[at]
    return arrays if version == learner.state_version else learner._migrate(version, arrays)


def _unstarted(header: Mapping[str, Any], version: int) -> Learner:
    """Return a learner that was saved before its first round."""
    learner = _learner_from_json(header, version)
    try:
        learner._validate_params()
    except Exception as error:
        raise ValueError(_wrong_parameters(learner, error)) from error
    _restore_terms(learner, header)
    return learner


def _restore_terms(learner: Learner, header: Mapping[str, Any]) -> None:
    """Restore worth, cost and limits, which most files lack."""
    if "terms" in header:
        learner._terms = terms_from_json(_item(header, "terms", dict))


def _wrong_parameters(learner: Learner, error: Exception) -> str:
    return f"parameters are not those of {type(learner).__name__}: {error}"


def _retired(header: Mapping[str, Any], n_classes: int) -> list[int]:
    """Return the positions of retired labels, which older files lack."""
    found = _item(header, "retired", list) if "retired" in header else []
    sound = all(type(k) is int and 0 <= k < n_classes for k in found)
    if not sound or len(set(found)) < len(found) or len(found) == n_classes:
        raise ValueError(
            f"retired is {short(found)}, and should be distinct positions, 0 to {n_classes - 1}, "
            "of some of the classes"
        )
    return found


def _learned(header: Mapping[str, Any]) -> list[str]:
    """Return the ids of decisions that were learned from, which older files lack."""
    found = _item(header, "learned", list) if "learned" in header else []
    if len(found) > MAX_REMEMBERED_IDS:
        raise ValueError(
            f"learned has {len(found)} ids, and at most {MAX_REMEMBERED_IDS} are remembered"
        )
    return [check_id(name) for name in found]


class _MismatchError(ValueError):
    """The arrays do not match the state."""


def _parse(content: bytes) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return the metadata of a safetensors file and its arrays, which are read-only."""
    try:
        arrays = safetensors.numpy.load(content)
    except KeyError as error:
        raise ValueError(f"it has an array of type {error}") from None
    (size,) = struct.unpack("<Q", content[:8])
    metadata = _json(content[8 : 8 + size].decode(), "the header").get("__metadata__", {})
    if "onebit" not in metadata:
        raise ValueError("it has no header of onebit")
    return metadata, arrays


def _json(text: str, name: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{name} contains {constant}")

    try:
        value = json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a JSON object")
    return value


def _item(header: Mapping[str, Any], name: str, kind: type) -> Any:
    if name not in header:
        raise ValueError(f"the header has no {name}")
    if type(header[name]) is not kind:
        raise ValueError(f"{name} is {short(header[name])}, and should be a JSON {kind.__name__}")
    return header[name]


def _digest(header: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a checksum of a file's content, which detects damage but not forgery."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _classes(header: Mapping[str, Any], header_size: int) -> np.ndarray:
    labels, dtype = _item(header, "classes", list), _item(header, "classes_dtype", str)
    if not _PLAIN_DTYPES.fullmatch(dtype):
        raise ValueError(f"classes_dtype is {short(dtype)}, which labels never have")
    if not all(isinstance(label, str | int | float) for label in labels):
        raise ValueError("classes are not texts or numbers")
    if np.dtype(dtype).itemsize * len(labels) > 64 * header_size + 2**20:
        raise ValueError(f"classes_dtype {dtype} is wider than the labels are")
    try:
        classes = np.array(labels, dtype=dtype)
        # They need not be sorted: labels that were added come last.
        sound = classes.tolist() == labels and check_classes(classes).size == len(labels)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"classes are not of type {dtype}: {error}") from None
    if not sound or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
        raise ValueError(f"classes are not distinct labels of type {dtype}: {short(labels)}")
    return classes


def _classes_to_json(classes: np.ndarray) -> list[Any]:
    labels = classes.tolist()
    plain = all(isinstance(label, str | int | float) for label in labels)
    if not (plain and _PLAIN_DTYPES.fullmatch(classes.dtype.str)):
        raise ValueError(
            f"labels of type {classes.dtype}, such as {labels[0]!r}, cannot be written to a file"
        )
    return labels


def _parameters_to_json(learner: Learner, given: dict[str, Any]) -> dict[str, Any]:
    parameters = dict(given)
    # The generator's state is among the arrays; only `fit` uses its seed.
    if not isinstance(parameters["random_state"], int | None):
        parameters["random_state"] = None
    if parameters["classes"] is not None:
        parameters["classes"] = np.asarray(parameters["classes"])
    for name, value in parameters.items():
        parameters[name] = _value_to_json(value)
        try:
            json.dumps(parameters[name], allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}={value!r} of {type(learner).__name__} cannot be written to a file"
            ) from None
    return parameters


def _value_to_json(value: Any) -> Any:
    """Return the value of a parameter, with learners as JSON objects, also those in lists."""
    from onebit.core.learner import Learner

    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_value_to_json(one) for one in value]
    if not isinstance(value, Learner):
        return value
    return {
        _LEARNER: name_of(type(value)),
        "state_version": value.state_version,
        "parameters": _parameters_to_json(value, value.get_params(deep=False)),
    }


def _value_from_json(value: Any, version: int) -> Any:
    """Return the value of a parameter from what `_value_to_json` returned."""
    if isinstance(value, list):
        return [_value_from_json(one, version) for one in value]
    if isinstance(value, dict) and _LEARNER in value:
        return _learner_from_json(value, version, _LEARNER)
    return value


def _learner_from_json(header: Mapping[str, Any], version: int, key: str = "learner") -> Learner:
    """Return a new learner, with the learners among its parameters."""
    cls = class_named(_item(header, key, str), without_module=version == 1)
    parameters = cls._migrate_parameters(
        header.get("state_version", 0), _item(header, "parameters", dict)
    )
    unknown = parameters.keys() - set(cls._get_param_names())
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {short(min(unknown))}")
    return cls(**{name: _value_from_json(value, version) for name, value in parameters.items()})


def _steps(header: Mapping[str, Any]) -> list[Any]:
    """Return the steps before the learner; none if it is not in a pipeline."""
    steps = []
    for i, item in enumerate(_item(header, "steps", list) if "steps" in header else []):
        try:
            steps.append(step_from_json(item))
        except (TypeError, ValueError) as error:
            raise ValueError(f"steps[{i}]: {error}") from None
    return steps


# States


def _sizes(
    learner: Learner, parameters: dict[str, Any], n_features: int, n_classes: int
) -> dict[str, int]:
    """Return the sizes of the state's named axes, including those of inner learners."""
    from onebit.core.learner import Learner

    inside: dict[str, int] = {}
    for value in parameters.values():
        if isinstance(value, Learner):
            inside |= _sizes(value, value.get_params(deep=False), n_features, n_classes)
    return inside | sizes_of(n_features, n_classes, parameters)


def _check_shapes(
    learner: Learner, arrays: dict[str, np.ndarray], sizes: dict[str, int], older: bool
) -> None:
    """Raise ValueError unless the arrays have the shapes of a state, before memory is allocated.

    The expected arrays and their axes are those of a small learner of the same form.
    """
    n_features, n_classes = sizes["features"], sizes["classes"]
    small = _small(learner._at_size(n_features, n_classes))
    small._validate_params()
    _, state = small._begin(min(n_features, 2), min(n_classes, 2), new_generator(0))
    expected = {_first_class_name(name): (array, field) for name, array, field in declared(state)}
    for name in () if older else sorted(expected.keys() - set(map(_first_class_name, arrays))):
        raise _MismatchError(f"it has no {name}")
    for name, array in arrays.items():
        if _first_class_name(name) not in expected:
            raise _MismatchError(f"{type(learner).__name__} has no array {name}")
        first, field = expected[_first_class_name(name)]
        if field is not None:
            try:
                check_shape(name, _scalar(array, first.ndim), field, sizes)
            except ValueError as error:
                raise _MismatchError(str(error)) from None


def _first_class_name(name: str) -> str:
    """Return the name of an array, with any class in it replaced by the first one."""
    return re.sub(r"\.[0-9]+(?=\.|$)", ".0", name)


def _small(learner: Learner) -> Learner:
    """Return a copy whose size parameters (n_nodes, n_samples, ...) are at most two."""
    from onebit.core.learner import Learner

    new = clone(learner)
    for name, value in new.get_params(deep=False).items():
        if isinstance(value, Learner):
            new.set_params(**{name: _small(value)})
        elif name.startswith("n_") and type(value) is int and value > 2:
            new.set_params(**{name: 2})
    return new


def _scalar(array: np.ndarray, ndim: int) -> np.ndarray:
    """Return an array of one number as a scalar array, if the state has one there."""
    return array.reshape(()) if ndim == 0 and array.size == 1 else array


def _restored(state: Any, arrays: dict[str, np.ndarray], grows: bool) -> Any:
    """Return `state` with checked copies of the stored arrays: compiled code trusts them."""
    new: dict[str, np.ndarray] = {}
    names = {name for name, _ in arrays_of(state)}
    for name in sorted(names ^ arrays.keys()):
        raise ValueError(f"it has {'no' if name in names else 'an array'} {name}")
    for name, first, field in declared(state):
        stored = _scalar(arrays[name], first.ndim)
        any_shape = {ROWS, ANY}.intersection(field.axes) if field is not None else grows
        matches = stored.dtype == first.dtype and stored.ndim == first.ndim
        if not matches or (stored.shape != first.shape and not any_shape):
            raise ValueError(
                f"{name} is {stored.dtype}{list(stored.shape)}, and should be "
                f"{first.dtype}{list(first.shape)}"
            )
        new[name] = np.array(stored, order="C")
    return with_arrays(state, new)
