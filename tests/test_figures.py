"""Commands that the pages name as the source of their figures exist, and CONTRIBUTING has them."""

import re
from pathlib import Path

import pytest

from onebit.lab.experiments import EXPERIMENTS

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
NO_FIGURES = {"make demo", "make test", "make test-all", "make quick", "make fuzz"}
NO_FIGURES |= {"make serve-demo", "onebit lab run bakeoff", "make docs", "make release-check"}
NO_FIGURES |= {"make oldest", "make newest"}
"""What pages name for other reasons."""

COMMAND = re.compile(r"`(python bench/\w+\.py|make [a-z-]+|onebit lab run \w+)[^`]*`")


def table():
    """Return the commands of each page, by CONTRIBUTING."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `((?:docs/)?\w+\.md)` \| (.*) \|$", text, flags=re.MULTILINE)
    return {page: set(COMMAND.findall(commands)) for page, commands in rows}


@pytest.mark.parametrize("page", PAGES)
def test_contributing_has_the_commands_of_a_page(page):
    text = (ROOT / page).read_text()
    named = set(COMMAND.findall(text)) - NO_FIGURES
    assert named <= table().get(page, set())


@pytest.mark.parametrize("page", table())
def test_commands_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    rules = re.findall(r"^([a-z][a-z -]*):(?!=)", makefile, flags=re.MULTILINE)
    targets = {target for rule in rules for target in rule.split()}
    assert table()[page]
    for command in table()[page]:
        name = command.split()[-1]
        if command.startswith("python"):
            assert (ROOT / name).is_file(), command
        elif command.startswith("make"):
            assert name in targets, command
        else:
            assert name in EXPERIMENTS, command


def test_every_page_with_a_table_of_figures_is_listed():
    for page in PAGES:
        has_figures = "---: |" in (ROOT / page).read_text()
        assert not has_figures or page in table() or page == "docs/records.md", page


def test_shares_of_names_without_collision_are_computed():
    text = (ROOT / "docs/records.md").read_text()
    rows = re.findall(r"^\| ([\d,]+) \|((?: \d+ % \|){4})$", text, flags=re.MULTILINE)
    assert len(rows) == 3
    for names, shares in rows:
        n = int(names.replace(",", ""))
        computed = [(1 - 2.0**-bits) ** (n - 1) for bits in (14, 16, 18, 20)]
        assert [int(s) for s in re.findall(r"\d+", shares)] == [round(100 * s) for s in computed]
