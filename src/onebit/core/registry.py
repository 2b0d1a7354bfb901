"""The registered classes of learners, by their names in files."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from inspect import isabstract
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onebit.core.learner import Learner

_OWN = __name__.partition(".")[0]

_CLASSES: dict[str, type[Learner]] = {}


def register(cls: type[Learner]) -> None:
    """Register a class, in place of an earlier one of its name, as in a notebook run again."""
    _CLASSES[name_of(cls)] = cls


def classes() -> list[type[Learner]]:
    """Return the registered classes that are not abstract."""
    return [cls for cls in list(_CLASSES.values()) if not isabstract(cls)]


def name_of(cls: type) -> str:
    """Return the name of a class, with its module unless it is onebit's own."""
    if cls.__module__.partition(".")[0] == _OWN:
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def chosen_class(name: str, classes: Iterable[type[Learner]]) -> type[Learner]:
    """Return the class of that name, in upper or lower case; an error suggests similar names."""
    known = {cls.__name__: cls for cls in classes}
    for of_class, cls in known.items():
        if of_class.lower() == name.lower():
            return cls
    likely = _similar(name, known)
    meant = f"did you mean {' or '.join(likely)}?" if likely else f"there are {', '.join(known)}"
    raise ValueError(f"no learner {name!r:.80}: {meant}")


_MAX_SUGGESTIONS = 3


def _similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names most similar to `name`, the likeliest first."""
    plain = {_plain(one): one for one in known}
    wanted = _plain(name)
    parts = [one for one in plain if wanted and (wanted in one or one in wanted)]
    parts.sort(key=lambda one: (not one.startswith(wanted), abs(len(one) - len(wanted))))
    found = dict.fromkeys([*parts, *get_close_matches(wanted, plain)])
    return [plain[one] for one in found][:_MAX_SUGGESTIONS]


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def class_named(name: str, *, without_module: bool = False) -> type[Learner]:
    """Return the class of that name, without importing anything.

    If `without_module`, the name may also be that of a class in any module, if it is the only one.
    """
    found = [_CLASSES[name]] if name in _CLASSES else []
    if without_module and not found:
        found = [cls for cls in _CLASSES.values() if cls.__name__ == name]
    found = [cls for cls in found if not isabstract(cls)]
    if len(found) != 1:
        raise ValueError(f"no learner is named {name!r}: import the module that defines it first")
    return found[0]
