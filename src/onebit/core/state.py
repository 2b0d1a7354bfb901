"""Declarations of a state's arrays: their axes, their types and the ranges of their values.

Compiled code trusts the arrays of a state. So each state declares its arrays, in the annotations of
its fields, and `check_state` checks a state against its declarations:

    class State(NamedTuple):
        W: Weights
        labels: Annotated[Growing, Field("rows", dtype=np.int64, least=0, below="classes")]
        A_inv: Annotated[Inverse, Within(n="weights")]
        rng: Generator

A field with two possible forms, such as a full or diagonal covariance, is a union of both.
Conditions that relate several arrays go into a method ``check(self)`` that raises ValueError. The
axes also say how a state grows with more classes, see `grown`.

States of one kind can be `stacked` into one, whose arrays have one more axis.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numba.core import types

from onebit.core.compiling import chosen_by_type
from onebit.core.example import LARGEST

LIMIT = 1e150
"""The largest absolute value in a valid state: its square is finite."""

MOST_ROUNDS = 10**15
"""The largest count in a valid state: one round per microsecond for thirty years."""

ROWS = "rows"
"""The axis that grows. All arrays of a state that have it have the same number of rows."""

ANY = "any"
"""An axis of any size, which the state's own `check` inspects."""

_COMMON = ("features", "classes", "contrasts", "weights", "contrast_weights", ROWS, ANY)
"""Axes whose sizes are those of the whole learner, also of a state inside another."""


class Field:
    """An array: its axes, by name or fixed size, its type, and the range of its values.

    Axes are "features"; "classes"; "contrasts", one less than the classes; "weights", one for each
    feature and class; "contrast_weights", one for each feature and contrast; `ROWS`; an integer
    parameter of the learner, by its name; `ANY`; or any other name, whose size is that in the
    initial state. With `below`, the values are less than the size of that axis.
    """

    def __init__(
        self,
        *axes: str | int,
        dtype: Any = np.float64,
        least: float = -LIMIT,
        most: float = LIMIT,
        below: str | None = None,
    ) -> None:
        self.axes, self.dtype = axes, np.dtype(dtype)
        self.least, self.most, self.below = least, most, below

    def shape(self, sizes: Mapping[str, int]) -> tuple[int | None, ...]:
        """Return the size of each axis, None where `sizes` does not give it."""
        return tuple(axis if isinstance(axis, int) else sizes.get(axis) for axis in self.axes)


class Within:
    """Outer names for the axes of a state inside a field; `each` is an axis before all others.

    Parameters
    ----------
    each : str, optional
        The first axis of every array inside.
    **axes : str
        For an axis inside, its name outside.
    """

    def __init__(self, each: str | None = None, **axes: str) -> None:
        self.each = each
        self.axes: Mapping[Any, str] = axes
        self.outer: Within | None = None

    def __call__(self, field: Field) -> Field:
        """Return the declaration of an inner array, with the outer names."""
        first = () if self.each is None else (self.each,)
        inside = [self.axes.get(axis, axis) for axis in field.axes]
        outside = copy.copy(field)
        outside.axes = (*first, *inside)
        return outside if self.outer is None else self.outer(outside)

    def inside(self, outer: Within) -> Within:
        """Return these names for a state that is itself inside a field."""
        new = copy.copy(self)
        new.outer = outer
        return new


class WithinNamed(Within):
    """Outer names for the axes of one of several states that have the same ones.

    Parameters
    ----------
    name : str
        Put before each axis that is the state's own.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __call__(self, field: Field) -> Field:
        """Return the declaration of an inner array, with the outer names."""
        own = [axis for axis in field.axes if isinstance(axis, str) and axis not in _COMMON]
        self.axes = {axis: f"{self._name}.{axis}" for axis in own}
        return super().__call__(field)


Weights = Annotated[np.ndarray, Field("features", "classes")]
Variances = Annotated[np.ndarray, Field("features", "classes", least=0.0)]
Precisions = Annotated[np.ndarray, Field("features", "classes", least=1e-100)]
Number = Annotated[np.ndarray, Field()]
Amount = Annotated[np.ndarray, Field(least=0.0)]
Share = Annotated[np.ndarray, Field(least=0.0, most=1.0)]
Count = Annotated[np.ndarray, Field(dtype=np.int64, least=0, most=MOST_ROUNDS)]
EXAMPLES = Field(ROWS, "features", least=-LARGEST, most=LARGEST)
"""Declaration of a `Growing` array with an example in each row."""
LABELS = Field(ROWS, dtype=np.int64, least=0, below="classes")
"""Declaration of a `Growing` array with the position of a label in each row."""
Generator = Annotated[np.ndarray, Field(4, dtype=np.uint64, least=0, most=2.0**64)]


class Declared(NamedTuple):
    """An array of a state, by its full name, and its declaration."""

    name: str
    array: np.ndarray
    field: Field | None


def sizes_of(n_features: int, n_classes: int, parameters: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes of the axes that `Field` names."""
    numbers = {name: value for name, value in parameters.items() if type(value) is int}
    return numbers | {
        "features": n_features,
        "classes": n_classes,
        "contrasts": n_classes - 1,
        "weights": n_features * n_classes,
        "contrast_weights": n_features * (n_classes - 1),
    }


def declared(state: Any, prefix: str = "", declaration: Any = None) -> Iterator[Declared]:
    """Yield the arrays of a state and of the states inside it.

    Fields that are plain numbers follow from parameters, and `scratch` is temporary: both are
    skipped. `declaration` is that of the whole state, if it is itself a field. A state whose fields
    are not annotated has a method ``declaration(name)``.
    """
    cls: Any = type(state)
    declarations = _declarations(cls)
    for name, value in state._asdict().items():
        if name == "scratch":
            continue
        own = next(
            (found for kind, found in declarations.get(name, ()) if isinstance(value, kind)), None
        )
        if hasattr(state, "declaration"):  # its fields are not those of a class
            own = state.declaration(name)
        if isinstance(declaration, Field):
            own = declaration
        elif isinstance(declaration, Within):
            if isinstance(own, Field):
                own = declaration(own)
            elif isinstance(own, Within):
                own = own.inside(declaration)
            elif declaration.each is not None:
                own = declaration
        if isinstance(value, np.ndarray):
            yield Declared(prefix + name, value, own if isinstance(own, Field) else None)
        elif hasattr(value, "_asdict"):
            yield from declared(value, f"{prefix}{name}.", own)


def with_arrays(state: Any, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Any:
    """Return `state` with its arrays replaced by these, given by their full names."""
    new = {}
    for name, value in state._asdict().items():
        if prefix + name in arrays:
            new[name] = arrays[prefix + name]
        elif name != "scratch" and hasattr(value, "_asdict"):
            new[name] = with_arrays(value, arrays, f"{prefix}{name}.")
    return state._replace(**new) if new else state


def stacked(states: Sequence[Any]) -> Any:
    """Return states of one kind as one, with a new first axis of every array.

    Numbers must be equal. The field that holds it is ``Annotated[tuple, Within(each=...)]``, with
    the name of the new axis.
    """
    new = {}
    for name, first in states[0]._asdict().items():
        values = [getattr(state, name) for state in states]
        if isinstance(first, np.ndarray):
            new[name] = np.stack(values)
        elif hasattr(first, "_asdict"):
            new[name] = stacked(values)
    return states[0]._replace(**new)


def at(states, i):
    """Return state number `i` of those `stacked`, as views."""
    new = {}
    for name, value in states._asdict().items():
        if isinstance(value, np.ndarray):
            new[name] = value[i, ...]
        elif hasattr(value, "_asdict"):
            new[name] = at(value, i)
    return states._replace(**new)


@chosen_by_type(at)
def _at(states, i):
    names: dict[str, Any] = {}

    def written(kind: Any, text: str) -> str:
        if isinstance(kind, types.Array):
            return f"{text}[i]" if kind.ndim > 1 else f"{text}[i : i + 1].reshape(())"
        if not isinstance(kind, types.BaseNamedTuple):
            return text
        found: Any = kind
        cls = f"cls_{len(names)}"
        names[cls] = found.instance_class
        fields = zip(found.fields, found.types, strict=True)
        return f"{cls}({', '.join(written(own, f'{text}.{name}') for name, own in fields)})"

    # A tuple cannot be made field by field in a loop, as its fields have different types.
    exec(f"def one(states, i):\n    return {written(states, 'states')}", names)
    return names["one"]


def grown(state: Any, new: Any) -> Any:
    """Return `new`, the initial state of a learner with more classes, with what `state` learned.

    The classes of `state` come first; the others are as in `new`. A state whose arrays depend on
    one another has a method ``begin_classes(self, first)``, which sets what else the classes from
    `first` on need, or raises ValueError if they cannot be added. An array with an axis that mixes
    classes raises ValueError with its name. Numbers, which follow from parameters, are those of
    `new`. No memory is shared with `state`.
    """
    before = {found.name: found.array for found in declared(state)}
    after = list(declared(new))
    n_before, n_after = _n_classes(declared(state)), _n_classes(iter(after))
    arrays = {
        name: _grown_array(name, before[name], first, field, n_before, n_after)
        for name, first, field in after
        if name in before  # others belong to a new class
    }
    whole = with_arrays(new, arrays)
    _begin_classes(whole, n_before)
    return whole


def _n_classes(arrays: Iterator[Declared]) -> int:
    """Return the size of the axis "classes"; 0, if there is none."""
    for _, array, field in arrays:
        if field is not None and "classes" in field.axes:
            return array.shape[field.axes.index("classes")]
    return 0


def _grown_array(
    name: str,
    old: np.ndarray,
    first: np.ndarray,
    field: Field | None,
    n_before: int,
    n_after: int,
) -> np.ndarray:
    """Return `old`, with the additional classes as in `first`."""
    if field is None:
        return old.copy()
    places, shape = [], []
    for axis, size, first_size in zip(field.axes, old.shape, first.shape, strict=True):
        place = np.arange(size)
        if axis in ("contrasts", "contrast_weights"):
            raise ValueError(f"{name} has an axis of {axis}, which cannot take more classes")
        if axis == "weights":  # number j * n_classes + k, for feature j and class k
            place = place // n_before * n_after + place % n_before
        elif axis not in ("classes", ROWS, ANY) and size != first_size:
            return first.copy()  # an array of varying size starts anew
        places.append(place)
        shape.append(size if axis in (ROWS, ANY) else first_size)
    array = first.copy() if first.shape == tuple(shape) else np.zeros(shape, dtype=old.dtype)
    array[np.ix_(*places)] = old
    return array


def _begin_classes(state: Any, first: int) -> None:
    for _, value in _inside(state):
        _begin_classes(value, first)
    begin = getattr(state, "begin_classes", None)
    if callable(begin):
        begin(first)


def check_state(state: Any, sizes: Mapping[str, int]) -> None:
    """Raise ValueError, with the name of the field, unless a state matches its declarations."""
    check_arrays(declared(state), sizes)
    _check_relations(state, "")


def check_arrays(arrays: Iterator[Declared], sizes: Mapping[str, int]) -> None:
    """Raise ValueError for an array whose type, shape or values are not as declared."""
    found = dict(sizes)
    for name, array, field in arrays:
        if field is None:
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{name} contains NaN or infinity")
            continue
        check_shape(name, array, field, found)
        found.update(
            (axis, size)
            for axis, size in zip(field.axes, array.shape, strict=True)
            if isinstance(axis, str) and axis != ANY
        )
        _check_values(name, array, field, found)


def check_shape(name: str, array: np.ndarray, field: Field, sizes: Mapping[str, int]) -> None:
    """Raise ValueError for an array whose type or shape is not as declared."""
    expected = field.shape(sizes)
    fits = array.dtype == field.dtype and array.ndim == len(expected)
    if not fits or any(
        size is not None and size != found
        for size, found in zip(expected, array.shape, strict=True)
    ):
        shown = ", ".join("any" if size is None else str(size) for size in expected)
        raise ValueError(
            f"{name} is {array.dtype}{list(array.shape)}, and should be {field.dtype}[{shown}]"
        )


def check_weights(name: str, weights: np.ndarray) -> None:
    """Raise ValueError unless the weights of a mixture add up to one."""
    if not 0.999 < weights.sum() < 1.001:
        raise ValueError(f"{name} adds up to {weights.sum():g}, and should add up to 1")


def _check_values(name: str, array: np.ndarray, field: Field, sizes: Mapping[str, int]) -> None:
    most = field.most if field.below is None else sizes[field.below] - 1
    if array.size == 0 or array.dtype == np.uint64:
        return
    least_found, most_found = array.min(), array.max()
    if not (least_found >= field.least and most_found <= most):  # or if they are NaN
        at = np.unravel_index(int(np.argmin((array >= field.least) & (array <= most))), array.shape)
        place = f"[{', '.join(map(str, at))}]" if at else ""
        raise ValueError(
            f"{name}{place} is {array[at]}, and should be from {field.least:g} to {most:g}"
        )


def _inside(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield the states inside a state; stacked ones one by one."""
    cls: Any = type(state)
    for name, value in state._asdict().items():
        if name == "scratch" or not hasattr(value, "_asdict"):
            continue
        first = next(declared(value), None)
        is_stacked = any(kind is tuple for kind, _ in _declarations(cls).get(name, ()))
        if is_stacked and first is not None:
            for i in range(len(first.array)):
                yield name, at(value, i)
        else:
            yield name, value


def _check_relations(state: Any, prefix: str) -> None:
    for name, value in _inside(state):
        _check_relations(value, f"{prefix}{name}.")
    check = getattr(state, "check", None)
    if callable(check):
        try:
            check()
        except ValueError as error:
            raise ValueError(f"{prefix}{error}") from None


@cache
def _declarations(cls: Any) -> dict[str, list[tuple[Any, Field | Within]]]:
    """Return the declaration of each field of a state, by the type of its value."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError:  # a class in a function, whose annotations use local names
        return {}
    found: dict[str, list[tuple[Any, Field | Within]]] = {}
    for name, hint in hints.items():
        for kind in (hint,) if hasattr(hint, "__metadata__") else get_args(hint):
            for one in getattr(kind, "__metadata__", ()):
                if isinstance(one, Field | Within):
                    found.setdefault(name, []).append((kind.__origin__, one))
    return found
