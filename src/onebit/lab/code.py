"""Fingerprints of the code that a result depends on.

As compiled code is kept under a fingerprint of all functions that it can reach and all values that
they use, so is a result: of the learner, the measure and the stream, with every definition of
onebit that these name, directly or through others. An edit elsewhere, of a comment, of
documentation or of the layout changes nothing.

A definition is a function, a class or a value at the top of a module. What it names is read from
its text, so methods of a class count as a whole, and whoever uses a module as a value, as `getattr`
does, depends on all of it. Statements that define nothing count with their module.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from inspect import getsource
from pathlib import Path
from textwrap import dedent
from typing import Any

import onebit

PACKAGE = Path(onebit.__file__).parent

EVERYTHING = "*"
"""The name of all definitions of a module."""


@dataclass
class Module:
    """The definitions of a module, and the objects that its imports name.

    Attributes
    ----------
    path : Path
    definitions : dict {name: list of statements}
    others : list of statements
        Those that define nothing, and count wherever the module does.
    imports : dict {name: (module, name there or None)}
        Of onebit alone.
    """

    path: Path
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    others: list[ast.stmt] = field(default_factory=list)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)


def fingerprint_of(roots: Iterable[Any]) -> str:
    """Return the fingerprint of functions and classes, with all that they reach in onebit.

    Of those that are defined elsewhere, their own text counts.
    """
    return _fingerprint(frozenset(roots))


def names_of(roots: Iterable[Any]) -> frozenset[tuple[str, str]]:
    """Return functions and classes as pairs (module, name)."""
    return frozenset((root.__module__, root.__qualname__.partition(".")[0]) for root in roots)


@cache
def _fingerprint(roots: frozenset[Any]) -> str:
    definitions = reached(names_of(roots))
    texts = [f"{module} {name} {text(module, name)}" for module, name in definitions]
    texts += [_text_elsewhere(root) for root in roots if file_of(root.__module__) is None]
    found = hashlib.sha256(onebit.__version__.encode())
    for line in sorted(texts):
        found.update(line.encode())
    return found.hexdigest()


def _text_elsewhere(root: Any) -> str:
    """Return the code of a function or class that is not of onebit, where its source is known."""
    try:
        tree = ast.parse(dedent(getsource(root)))
    except (OSError, TypeError, SyntaxError):
        return f"{root.__module__} {root.__qualname__}"
    return _without_texts(tree)


@cache
def reached(roots: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Return the definitions that some reach, as pairs (module, name), themselves included."""
    seen: set[tuple[str, str]] = set()
    waiting = list(roots)
    while waiting:
        definition = waiting.pop()
        if definition not in seen and file_of(definition[0]) is not None:
            seen.add(definition)
            seen.add((definition[0], ""))  # the module's other statements
            waiting += used_by(*definition)
            waiting += used_by(definition[0], "")
    return frozenset(seen)


@cache
def used_by(module: str, name: str) -> tuple[tuple[str, str], ...]:
    """Return what a definition names, as pairs (module, name)."""
    statements = _statements(module, name)
    imports = dict(parsed(module).imports)
    for statement in statements:
        imports |= _imports(statement, module)
    found: list[tuple[str, str]] = []
    for statement in statements:
        for parts in _names_used(statement):
            found += _resolved(module, parts, imports)
    return tuple(dict.fromkeys(found))


def text(module: str, name: str) -> str:
    """Return the code of a definition without comments, documentation and layout.

    A file beside the module that the code names counts by its contents.
    """
    lines = []
    for statement in _statements(module, name):
        lines.append(_without_texts(statement))
        lines += _data_files(statement, parsed(module).path.parent)
    return "\n".join(lines)


# What follows from a statement alone is computed once: many results depend on the same ones.


@cache
def _without_texts(tree: ast.AST) -> str:
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [part for part in body if not _is_text(part)] or [ast.Pass()]
    return ast.dump(tree)


def _statements(module: str, name: str) -> list[ast.stmt]:
    found = parsed(module)
    if name == EVERYTHING:
        return [some for statements in found.definitions.values() for some in statements]
    return found.definitions.get(name, []) if name else found.others


def _resolved(
    module: str, parts: tuple[str, ...], imports: dict[str, tuple[str, str | None]]
) -> Iterator[tuple[str, str]]:
    """Yield the definitions of onebit that a dotted name in a module refers to."""
    first, *rest = parts
    if first in imports:
        source, name = imports[first]
        yield from _attribute(source, ([] if name is None else [name]) + rest)
    elif first in parsed(module).definitions:
        yield module, first


def _attribute(module: str, parts: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what attributes of a module refer to; a module alone is all that it defines."""
    if not parts:
        yield module, EVERYTHING
        return
    first, *rest = parts
    found = parsed(module)
    if first in found.definitions:
        yield module, first
    elif found.imports.get(first, (module, first)) != (module, first):
        source, name = found.imports[first]
        yield from _attribute(source, ([] if name is None else [name]) + rest)
    elif file_of(f"{module}.{first}") is not None:
        yield from _attribute(f"{module}.{first}", rest)


@cache
def parsed(module: str) -> Module:
    """Return the definitions of a module of onebit."""
    path = file_of(module)
    assert path is not None
    found = Module(path)
    for statement in ast.parse(path.read_bytes()).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.imports |= _imports(statement, module)
        elif names := list(_defined(statement)):
            for name in names:
                found.definitions.setdefault(name, []).append(statement)
        elif not _is_text(statement):
            found.others.append(statement)
    return found


@cache
def file_of(module: str) -> Path | None:
    """Return the file of a module of onebit, or None if there is none."""
    package, *parts = module.split(".")
    if package != "onebit":
        return None
    base = PACKAGE.joinpath(*parts)
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            several = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (one.id for one in several if isinstance(one, ast.Name))


@cache
def _imports(statement: ast.stmt, module: str) -> dict[str, tuple[str, str | None]]:
    """Return what a statement imports from onebit, wherever in it."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "onebit":
            for alias in node.names:
                found[alias.asname or alias.name] = node.module or "", alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "onebit":
                    source = alias.name if alias.asname else "onebit"
                    found[alias.asname or "onebit"] = source, None
    return found


@cache
def _names_used(statement: ast.stmt) -> tuple[tuple[str, ...], ...]:
    """Return the names that a statement uses, each with the attributes that it takes of it."""
    return tuple(dict.fromkeys(_dotted(statement)))


def _dotted(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield the names that code uses, with the attributes that it takes of them."""
    parts: list[str] = []
    inner: ast.AST = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield (inner.id, *reversed(parts))
    else:
        for child in ast.iter_child_nodes(inner):
            yield from _dotted(child)


def _data_files(statement: ast.stmt, folder: Path) -> Iterator[str]:
    """Yield digests of the files beside a module that its code names."""
    for name in _names_of_files(statement):
        path = folder / name
        if path.is_file() and path.suffix != ".py":
            yield hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _names_of_files(statement: ast.stmt) -> tuple[str, ...]:
    """Return the texts in a statement that may be names of files."""
    texts = [node.value for node in ast.walk(statement) if isinstance(node, ast.Constant)]
    return tuple(
        text
        for text in texts
        if isinstance(text, str) and "." in text and len(text) < 100 and "/" not in text
    )


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is nothing but a text, as documentation is."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
