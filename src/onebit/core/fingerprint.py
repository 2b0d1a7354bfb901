"""Fingerprints of functions: digests of everything that their compiled code is made from.

The fingerprint of a function covers the bytecode of all functions that it can reach and the values
of all constants that they use, so an edit anywhere leads to a new fingerprint.
"""

from __future__ import annotations

import dis
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

VERSIONED = {"builtins", "math", "cmath", "numpy", "numba"}
"""Packages whose contents follow from their versions."""

OPTIONS: dict[Any, dict[str, Any]] = {}
"""The options that each function was compiled with, by its dispatcher."""

REPLACEMENTS: dict[Any, FunctionType] = {}
"""For each function, the one that chooses its compiled implementation by argument types."""

MARKS: dict[Any, str] = {}
"""Names of values that have no bytecode, such as Numba's intrinsics."""


class FingerprintError(Exception):
    """A function depends on a value that has no canonical text."""


def fingerprint(function: FunctionType, options: dict[str, Any]) -> str:
    """Return the fingerprint of a function that is compiled with `options`."""
    texts: set[str] = set()
    # One function may be compiled with several options. Which comes first, differs between
    # processes, as do the hashes of names; so it is read with all of them.
    seen: set[tuple[FunctionType, str, bool]] = set()
    # Functions that choose code by types run in Python, and may call any function.
    found: list[tuple[FunctionType, dict[str, Any], bool]] = [(function, options, False)]
    while found:
        current, options, in_python = found.pop()
        option_text = str(sorted(options.items()))
        if (current, option_text, in_python) in seen:
            continue
        seen.add((current, option_text, in_python))
        where = name_of(current)
        defaults = canonical_text(current.__defaults__), canonical_text(current.__kwdefaults__)
        code = canonical_code(current.__code__)
        texts.add(f"{where} {option_text} {defaults} {code}")
        for name, value in _outer_names(current):
            if isinstance(value, FunctionType) and value in REPLACEMENTS:
                found.append((REPLACEMENTS[value], {}, True))
                texts.add(f"{where} {name}={name_of(value)}")
            elif _is_dispatcher(value):
                found.append((value.py_func, OPTIONS.get(value, {}), False))
                texts.add(f"{where} {name}={name_of(value.py_func)}")
            elif in_python and isinstance(value, FunctionType):
                found.append((value, {}, True))
                texts.add(f"{where} {name}={name_of(value)}")
            else:
                texts.add(f"{where} {name}={canonical_text(value)}")
    return digest(*sorted(texts))


def digest(*texts: str) -> str:
    """Return a digest of texts, for names of files."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def name_of(function: Callable[..., Any]) -> str:
    """Return the full name of a function in its source."""
    written: Any = getattr(function, "written_as", function.__qualname__)
    return f"{function.__module__}.{written}"


@cache
def canonical_code(code: CodeType) -> str:
    """Return a text of a function's code, without its file and lines."""
    constants = [
        canonical_code(constant) if isinstance(constant, CodeType) else canonical_text(constant)
        for constant in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return repr((code.co_code, code.co_exceptiontable, constants, names, counts))


def canonical_text(value: Any) -> str:
    """Return a text that is equal for equal values, and different for others."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{kind} {value!r}"
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        layout = np.asarray(value).strides, np.asarray(value).flags.writeable
        return f"{kind} {value.dtype.descr} {value.shape} {layout} {content}"
    if isinstance(value, tuple):
        return f"{kind}({', '.join(map(canonical_text, value))})"
    if isinstance(value, slice):  # a constant of code since Python 3.14
        return f"{kind}{canonical_text((value.start, value.stop, value.step))}"
    if isinstance(value, frozenset):
        return f"{kind}({', '.join(sorted(map(canonical_text, value)))})"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        fields: Any = value
        defaults = {n: canonical_text(default) for n, default in fields._field_defaults.items()}
        return f"{value.__module__}.{value.__qualname__} {fields._fields} {defaults}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, numba.types.Type):
        return f"type {value}"
    if isinstance(value, type | BuiltinFunctionType | FunctionType):
        if _is_versioned(value.__module__ or ""):
            return f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, np.ufunc) and value in vars(np).values():
        return repr(value)
    for marked, mark in MARKS.items():
        if value is marked:
            return mark
    raise FingerprintError(value)


def _is_dispatcher(value: Any) -> bool:
    return type(value).__module__.startswith("numba.") and hasattr(value, "py_func")


def _outer_names(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the global and closure names that `function` uses, with their values."""
    names, attributes = _names(function.__code__)
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, ModuleType) and not _is_versioned(value.__name__):
            for attribute in attributes & vars(value).keys():
                yield f"{name}.{attribute}", vars(value)[attribute]
        else:
            yield name, value
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        yield name, cell.cell_contents


@cache
def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the global names and the attributes that code uses."""
    names, attributes = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner_names, inner_attributes = _names(constant)
            names |= inner_names
            attributes |= inner_attributes
    return names, attributes


def _is_versioned(module: str) -> bool:
    return module.partition(".")[0] in VERSIONED
