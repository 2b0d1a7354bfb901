"""Learners in files: arrays in the safetensors format and a JSON header. Never pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from onebit.core.engine import PythonKernels

if TYPE_CHECKING:
    from onebit.core.learner import Learner

FORMAT = 1
"""Version of the layout below; a file of a later version is refused."""

_LEARNER = "onebit.learner"
"""Key, in the header, of the class of a learner that is a parameter of another one."""


def write(path: str | PathLike[str], learner: Learner) -> None:
    """Write a started learner to `path`."""
    state = learner._state
    header = {
        "format": FORMAT,
        "learner": type(learner).__name__,
        "parameters": _plain_parameters(learner, learner._parameters),
        "classes": learner.classes_.tolist(),
        "classes_dtype": learner.classes_.dtype.str,
        "n_features": learner.n_features_in_,
        "feature_names": getattr(learner, "feature_names_in_", np.empty(0)).tolist(),
    }
    arrays = {name: np.ascontiguousarray(value) for name, value in arrays_of(state)}
    try:
        save_file(arrays, path, metadata={"onebit": json.dumps(header)})
    except SafetensorError as error:
        raise OSError(f"cannot write {path}: {error}") from None


def read(path: str | PathLike[str]) -> Learner:
    """Return the learner in `path`, ready to go on as if nothing had happened.

    Only learners of onebit, and those whose class has been imported, can be read.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["onebit"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a learner saved by onebit: {error}") from None
    if header["format"] > FORMAT:
        raise ValueError(
            f"{path} has format {header['format']}, and this onebit reads up to {FORMAT}: "
            "read it with a newer one"
        )
    learner = _made(header["learner"], header["parameters"])
    classes = np.array(header["classes"], dtype=header["classes_dtype"])
    learner._start(classes, header["n_features"])
    grows = isinstance(learner._kernels, PythonKernels)
    try:
        learner._state = _restored(learner._state, arrays, grows)
    except ValueError as error:
        raise ValueError(f"{path} is not a learner saved by onebit: {error}") from None
    if header["feature_names"]:
        learner.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    return learner


def arrays_of(state: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of a state and of the states inside it; numbers follow from parameters.

    A field named `scratch` holds nothing that lasts, and is passed over.
    """
    for name, value in state._asdict().items():
        if name == "scratch":
            continue
        if isinstance(value, np.ndarray):
            yield prefix + name, value
        elif hasattr(value, "_asdict"):
            yield from arrays_of(value, f"{prefix}{name}.")


def writeable(state: Any) -> Any:
    """Return `state`, with copies of the arrays that cannot be written."""
    new = {}
    for name, value in state._asdict().items():
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            new[name] = np.array(value)
        elif hasattr(value, "_asdict"):
            new[name] = writeable(value)
    return state._replace(**new) if new else state


def _restored(state: Any, arrays: dict[str, np.ndarray], grows: bool, prefix: str = "") -> Any:
    """Return `state` with the arrays that were stored; compiled code trusts them to be alike."""
    new = {}
    for name, value in state._asdict().items():
        if name == "scratch":
            continue
        if isinstance(value, np.ndarray):
            stored = arrays.get(prefix + name)
            if stored is None:
                raise ValueError(f"it has no {prefix + name}")
            stored = stored.reshape(()) if value.ndim == 0 and stored.size == 1 else stored
            alike = stored.dtype == value.dtype and stored.ndim == value.ndim
            if not alike or (stored.shape != value.shape and not grows):
                raise ValueError(
                    f"{prefix + name} is {stored.dtype}{list(stored.shape)}, and should be "
                    f"{value.dtype}{list(value.shape)}"
                )
            new[name] = stored
        elif hasattr(value, "_asdict"):
            new[name] = _restored(value, arrays, grows, f"{prefix}{name}.")
    return state._replace(**new)


def _plain_parameters(learner: Learner, given: dict[str, Any]) -> dict[str, Any]:
    from onebit.core.learner import Learner

    parameters = dict(given)
    # The generator's own state is among the arrays; what seeded it matters to `fit` only.
    if not isinstance(parameters["random_state"], int | None):
        parameters["random_state"] = None
    if parameters["classes"] is not None:
        parameters["classes"] = np.asarray(parameters["classes"])
    for name, value in parameters.items():
        value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(value, Learner):
            inner = _plain_parameters(value, value.get_params(deep=False))
            value = {_LEARNER: type(value).__name__, "parameters": inner}
        try:
            json.dumps(value)
        except TypeError:
            raise ValueError(
                f"{name}={value!r} of {type(learner).__name__} cannot be written to a file"
            ) from None
        parameters[name] = value
    return parameters


def _made(name: str, parameters: dict[str, Any]) -> Learner:
    """Return a new learner, and what is a learner among its parameters."""
    made = {
        key: _made(value[_LEARNER], value["parameters"])
        if isinstance(value, dict) and _LEARNER in value
        else value
        for key, value in parameters.items()
    }
    return _class_named(name)(**made)


def _class_named(name: str) -> type[Learner]:
    import onebit.learners  # noqa: F401  (so that its classes exist)
    from onebit.core.learner import Learner

    found = list(Learner.__subclasses__())
    for cls in found:
        if cls.__name__ == name:
            return cls
        found += cls.__subclasses__()
    raise ValueError(f"no learner is named {name}: import the module that defines it first")
