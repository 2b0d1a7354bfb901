"""What docstrings say of defaults is what signatures have."""

import importlib
import inspect
import pkgutil
import re

import onebit


def documented():
    """Yield all functions and classes of the package whose parameters are documented."""
    for module in pkgutil.walk_packages(onebit.__path__, "onebit."):
        if module.name.endswith("__main__"):
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # an extra is missing
            continue
        for name, value in list(names.items()):
            if getattr(value, "__module__", None) != module.name:
                continue
            if inspect.isclass(value):
                yield f"{module.name}.{name}", value, value.__doc__
                for method, function in vars(value).items():
                    function = getattr(function, "__func__", function)
                    if inspect.isfunction(function):
                        yield f"{module.name}.{name}.{method}", function, function.__doc__
            elif inspect.isfunction(value):
                yield f"{module.name}.{name}", value, value.__doc__


def defaults_in(text):
    """Yield names with the default that a docstring says, as in ``gamma : float, default=0.1``."""
    section = re.search(r"Parameters\n\s*-+\n(.*?)(?:\n\s*\n\s*\w+\n\s*-+\n|\Z)", text or "", re.S)
    lines = section[1] if section else ""
    for names, value in re.findall(r"^ *([\w, ]+) : .*?default=(.+)$", lines, re.M):
        for name in names.split(", "):
            yield name, value


def parameters_of(made):
    """Return the parameters of a function, or of a class and those that it is made from."""
    found = {}
    for one in reversed(made.__mro__) if inspect.isclass(made) else [made]:
        function = vars(one).get("__init__") if inspect.isclass(one) else one
        if inspect.isfunction(function):
            found |= inspect.signature(function).parameters
    return found


def test_defaults_are_those_of_the_docstrings():
    seen, wrong = 0, []
    for where, made, text in documented():
        said = dict(defaults_in(text))
        parameters = parameters_of(made) if said else {}
        for name, value in said.items():
            seen += 1
            if parameters[name].default != eval(value, {"__builtins__": {}}):
                wrong.append(f"{where}({name}={parameters[name].default!r}), not {value}")
    assert wrong == []
    assert seen > 200
