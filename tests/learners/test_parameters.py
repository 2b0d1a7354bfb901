"""The parameters of every learner, with defaults and constraints, are those of parameters.txt."""

import inspect
from pathlib import Path

from forms import LEARNERS
from onebit.features import Records
from written import assert_as_written

WRITTEN = Path(__file__).with_name("parameters.txt")


def parameters():
    """Yield each parameter of each learner and step: its default, and the values it takes."""
    for cls in (*LEARNERS, Records):
        signature = inspect.signature(cls).parameters
        yield f"{cls.__name__}({', '.join(signature)})"
        for name, constraints in cls._parameter_constraints.items():
            default = signature[name].default if name in signature else "none"
            yield f"  {name}={default!r}: {', '.join(sorted(map(described, constraints)))}"


def described(constraint):
    options = getattr(constraint, "options", None)
    return str(sorted(options)) if options else str(constraint)


def test_parameters_are_those_of_parameters_txt():
    assert_as_written(parameters(), WRITTEN)
