"""Learners and their parameters, as the command line names them."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import onebit

if TYPE_CHECKING:
    from onebit import Learner

NOT_SET = ("classes", "random_state")
"""Parameters that other options set."""


def learner_classes() -> dict[str, type[Learner]]:
    """Return every learner by its name, in alphabetical order."""
    classes = sorted(onebit.learners.classes(), key=lambda cls: cls.__name__.lower())
    return {cls.__name__: cls for cls in classes}


def make_learner(name: str, settings: list[str], seed: int) -> Learner:
    """Return the learner of a name, with parameters as in "gamma=0.01"."""
    cls = onebit.learners.named(name)
    known = parameters_of(cls())
    given = {}
    for setting in settings:
        parameter, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value; got {setting!r}")
        if parameter not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"{cls.__name__} has no parameter {parameter!r}: {has}")
        if parameter in given:
            raise ValueError(f"--set {parameter} is given twice; it takes one value")
        given[parameter] = parsed(value)
    learner = cls(**given, random_state=seed)
    # Report values out of range now, not after a long file was read.
    learner._validate_params()
    return learner


def parsed(text: str) -> Any:
    """Return a value given as JSON, or else the text itself."""
    try:
        return json.loads(text, parse_int=parsed_int)
    except json.JSONDecodeError:
        return text
    except RecursionError:
        raise ValueError(f"too many brackets within brackets: {text[:20]}...") from None


def parsed_int(digits: str) -> int:
    """Return an integer that is a parameter or a label."""
    if len(digits) > len(str(-(2**63))) or not -(2**63) <= int(digits) < 2**63:
        shown = digits if len(digits) < 40 else f"{digits[:10]}... of {len(digits)} digits"
        raise ValueError(f"an integer has at most 64 bits; got {shown}")
    return int(digits)


def parsed_list(text: str) -> list[Any]:
    """Return the labels in "a,b,c"."""
    return [parsed(label.strip()) for label in text.split(",")]


def parameters_of(learner: Learner) -> dict[str, Any]:
    """Return the parameters that `--set` takes, in their order."""
    # `get_params` would sort them; the signature has the most important ones first.
    names = inspect.signature(type(learner)).parameters
    return {name: getattr(learner, name) for name in names if name not in NOT_SET}


def shown(parameters: dict[str, Any]) -> str:
    """Return parameters as `--set` takes them."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items()) or "none"
