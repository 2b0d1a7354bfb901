"""The mutants that `make mutants` draws: what is changed, and which tests are asked."""

import ast
import shlex
from pathlib import Path

import pytest

from mutants.__main__ import outcome_of
from mutants.drawing import Places, changed, draw, room_of
from mutants.watching import ELSEWHERE, OF_ROOM, steps_for

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "onebit"

SOURCE = '''"""A docstring with 1 + 1."""

def f(a: int = 3, *, strict: bool = True) -> "1 + 1":
    """Return 2 < 3."""
    if a < 1:
        raise ValueError(f"a is {a + 1}, not {a < 2}")
    for i in range(a):
        total[i] += g(a, i, strict=True)
    return a * (b + c)
'''


def test_changes_are_of_code_alone():
    found = {changed(SOURCE, change) for place in Places(SOURCE).found for change in place}
    assert all(ast.parse(text) for text in found)
    for old, new in [
        ("if a < 1:", "if False:"),
        ("a < 1", "a <= 1"),
        ("a < 1", "a > 1"),
        ("= 3", "= 4"),
        ("range(a)", "range((a) - 1)"),
        ("range(a)", "range(1, a)"),
        ("+= g", "-= g"),
        ("total[i] += g(a, i, strict=True)", "pass"),
        ("g(a, i", "g(i, a"),
        ("a * (b + c)", "a / (b + c)"),
        ("b + c", "b - c"),
    ]:
        assert SOURCE.replace(old, new, 1) in found, (old, new)
    for kept in ('"""A docstring with 1 + 1."""', "raise ValueError", '-> "1 + 1"', "strict=True"):
        assert all(kept in text or "pass" in text for text in found)


def test_a_seed_draws_the_same_mutants_of_every_room():
    drawn = draw(PACKAGE, 60, 5)
    assert [mutant.key for mutant in draw(PACKAGE, 60, 5)] == [mutant.key for mutant in drawn]
    assert len(drawn) == 60
    assert len({mutant.key for mutant in drawn}) == len(drawn)
    assert {room_of(mutant.path) for mutant in drawn} == {
        *(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()),
        "losses",
        "single files",
    }
    for mutant in drawn:
        source = (PACKAGE / mutant.path).read_text()
        ast.parse(changed(source, mutant.change))
        assert mutant.old != mutant.new
        assert mutant.old.split()[0] in source.splitlines()[mutant.line - 1]


def test_the_tests_of_every_file_are_there():
    for steps in (*OF_ROOM.values(), *ELSEWHERE.values()):
        for step in steps:
            assert all((ROOT / path).exists() for path in step.partition(" -k ")[0].split())
    for path in PACKAGE.rglob("*.py"):
        steps = steps_for(ROOT, path.relative_to(PACKAGE).as_posix())
        files = [file for step in steps for file in shlex.split(step.partition(" -k ")[0])]
        assert len(files) == len(set(files))
        assert any(file.startswith("tests/") for file in files)


@pytest.mark.parametrize(
    ("code", "output", "outcome"),
    [
        (0, "3 passed", "survived"),
        (5, "no tests ran", "survived"),
        (1, "FAILED tests/a.py::b - x", "failed"),
        (2, "ERROR collecting tests/a.py", "trivial"),
        (1, "FAILED a\nnumba.core.errors.TypingError", "trivial"),
        (4, "ImportError while loading conftest", "trivial"),
        (-11, "", "crashed"),
        (134, "", "crashed"),
    ],
)
def test_outcomes(code, output, outcome):
    assert outcome_of(code, output)[0] == outcome


def test_the_test_that_noticed_is_named_by_the_summary():
    output = "ERROR    onebit: no disk\n== short test summary info ==\nFAILED tests/a.py::b - x"
    assert outcome_of(1, output) == ("failed", "tests/a.py::b - x")


def test_tests_that_are_missing_notice_nothing():
    with pytest.raises(RuntimeError, match="no such tests"):
        outcome_of(4, "no tests ran\nERROR: file or directory not found: tests/test_none.py")
