"""Every test that the page of promises names exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "promises.md"


def named_on(page: str) -> set[tuple[str, str]]:
    """Return (path, name) of each test that a page names."""
    return set(re.findall(r"`((?:tests|src)/[\w/]+\.py)::(\w+)`", page))


def test_every_test_on_the_page_exists():
    named = named_on(PAGE.read_text())
    missing = []
    for path, name in sorted(named):
        file = ROOT / path
        tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
        functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        if functions.count(name) != 1:
            missing.append(f"{path}::{name}")
    assert not missing
    assert len(named) > 10


def test_every_promise_names_a_test():
    """A promise is an item of a list before "What onebit does not promise"."""
    promised, _ = PAGE.read_text().split("## What onebit does not promise")
    items = re.findall(r"^- .*?(?=^- |^#|\Z|\n\n)", promised, re.MULTILINE | re.DOTALL)
    assert len(items) > 10
    assert [item for item in items if not named_on(item)] == []
