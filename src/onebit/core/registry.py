"""The classes of learners that there are, by the names that files know them by."""

from __future__ import annotations

from inspect import isabstract
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onebit.core.learner import Learner

_OWN = __name__.partition(".")[0]

_CLASSES: dict[str, type[Learner]] = {}


def register(cls: type[Learner]) -> None:
    """Remember a class; of two with the same name, as in a notebook run again, the later one."""
    _CLASSES[name_of(cls)] = cls


def name_of(cls: type) -> str:
    """Return the name of a class: onebit's own by that alone, others with their module."""
    if cls.__module__.partition(".")[0] == _OWN:
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def class_named(name: str, *, without_module: bool = False) -> type[Learner]:
    """Return the class of that name; nothing is imported to find it.

    If the name is `without_module`, it may also be that of the one class elsewhere so called.
    """
    found = [_CLASSES[name]] if name in _CLASSES else []
    if without_module and not found:
        found = [cls for cls in _CLASSES.values() if cls.__name__ == name]
    found = [cls for cls in found if not isabstract(cls)]
    if len(found) != 1:
        raise ValueError(f"no learner is named {name!r}: import the module that defines it first")
    return found[0]
