"""CONTRIBUTING's table of rooms is complete, and imports respect it."""

import ast
import re
from pathlib import Path

import pytest

import onebit

PACKAGE = Path(onebit.__file__).parent
ROOT = Path(__file__).parent.parent


def table():
    """What each room knows, by CONTRIBUTING: rooms, or None for everything."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|.*\| (.*) \|$", text, flags=re.MULTILINE)
    return {room: None if "everything" in known else set(re.findall(r"`(\w+)`", known))
            for room, known in rows}  # fmt: skip


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Rooms that a module imports from, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "onebit" and rest:
                yield node.lineno, rest.partition(".")[0]


ON_DEMAND = {("core/history.py", "theory")}
"""Imports when it is called: `History.regret` is how a person asks for theory."""

MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.name.startswith("__")]


def test_every_room_is_in_the_table():
    rooms = {room_of(path) for path in MODULES}
    assert rooms == set(table())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_respect_the_table(path):
    rooms = table()
    known = rooms[room_of(path)]
    for line, other in imported(path):
        if (path.relative_to(PACKAGE).as_posix(), other) in ON_DEMAND:
            continue
        if other in rooms and other != room_of(path):
            assert known is None or other in known, f"line {line} imports {other}"
