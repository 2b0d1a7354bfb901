"""Steps of a pipeline before its learner; files store them by name and parameters.

A file may come from anyone. So it can only name classes that are registered or listed here, with
parameters that cannot run code, read files or take unbounded time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from onebit.core.example import LARGEST, Example
from onebit.core.registry import name_of
from onebit.core.validation import short

_OWN: dict[str, type[Step]] = {}

_STATELESS = {
    "sklearn.feature_extraction.FeatureHasher": {"alternate_sign", "input_type", "n_features"},
    "sklearn.feature_extraction.text.HashingVectorizer": {
        "alternate_sign",
        "analyzer",
        "binary",
        "lowercase",
        "n_features",
        "ngram_range",
        "norm",
        "stop_words",
        "strip_accents",
    },
    "sklearn.preprocessing.Binarizer": {"threshold"},
    "sklearn.preprocessing.Normalizer": {"norm"},
}
"""Steps of scikit-learn that files may hold, each with the parameters that files may set."""

_LONGEST_NGRAM = 10


class Step(TransformerMixin, BaseEstimator, ABC):
    """A step that encodes records as examples, without a fitted state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _OWN[name_of(cls)] = cls

    @abstractmethod
    def encode(self, record: Any) -> Example:
        """Return one record as an example."""

    @abstractmethod
    def transform(self, records: Any) -> Any:
        """Return the examples of many records, as a matrix."""

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters; nothing is learned."""
        self._validate_params()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def step_to_json(step: Any) -> list[Any]:
    """Return the name and the parameters of a step, as JSON types."""
    cls = type(step)
    # Steps of scikit-learn are imported only if the step is not one of our own.
    name = next((name for name in (*_OWN, *_STATELESS) if _class_named(name) is cls), None)
    if name is None:
        names = ", ".join(name.rpartition(".")[2] for name in _STATELESS)
        raise ValueError(
            f"{cls.__name__} cannot be written to a file: it may hold a fitted state or "
            f"functions. Steps of onebit.features can, and of scikit-learn {names}. To save the "
            "learner alone: pipeline[-1].save(path)"
        )
    parameters = {}
    for key, value in step.get_params(deep=False).items():
        if key in _settable(name, cls) or value != signature(cls).parameters[key].default:
            value = value.item() if isinstance(value, np.generic) else value
            parameters[key] = list(value) if isinstance(value, tuple) else value
    try:
        _check_parameters(name, cls, parameters)
    except ValueError as error:
        raise ValueError(f"this {cls.__name__} cannot be written to a file: {error}") from None
    return [name, parameters]


def step_from_json(item: Any) -> Any:
    """Return the step that `step_to_json` described."""
    match item:
        case [str(name), dict(parameters)]:
            cls = _class_named(name)
        case _:
            raise ValueError(f"a step is [name, parameters]; got {short(item)}")
    _check_parameters(name, cls, parameters)
    step = cls(
        **{
            key: tuple(value) if key == "ngram_range" else value
            for key, value in parameters.items()
        }
    )
    step._validate_params()
    return step


def _class_named(name: str) -> Any:
    if name in _OWN:
        return _OWN[name]
    if name not in _STATELESS:
        raise ValueError(f"no step is named {short(name)}: import the module that defines it first")
    module, _, cls = name.rpartition(".")
    return getattr(import_module(module), cls)


def _settable(name: str, cls: Any) -> set[str]:
    return _STATELESS[name] if name in _STATELESS else set(cls._get_param_names())


def _check_parameters(name: str, cls: Any, parameters: dict[str, Any]) -> None:
    for key, value in parameters.items():
        if key not in _settable(name, cls):
            raise ValueError(f"{key}={short(value)} of {cls.__name__} is not one that files hold")
        if key == "ngram_range":
            match value:
                case [int(least), int(most)] if 1 <= least <= most <= _LONGEST_NGRAM:
                    continue
            raise ValueError(
                f"ngram_range of {cls.__name__} is two integers from 1 to {_LONGEST_NGRAM}; got "
                f"{short(value)}"
            )
        is_number = isinstance(value, int | float) and abs(value) <= LARGEST
        if not (is_number or isinstance(value, str | None)):
            raise ValueError(
                f"{key} of {cls.__name__} is a text, a number, True, False or None in a file; got "
                f"{short(value)}"
            )
