"""The page about the papers has a line for everything in them, and what a line names exists."""

import importlib
import re

import pytest

import onebit
from onebit.lab.experiments import EXPERIMENTS
from onebit.theory import bounds
from test_promises import ROOT, named_on

PAGE = ROOT / "docs" / "papers.md"


def numbered(kind, numbers):
    return [f"{kind} {i}" for i in numbers]


IN_THE_PAPERS = {
    "SOBA (Beygelzimer, Orabona, Zhang 2017)": [
        *numbered("Algorithm", range(1, 3)),
        *numbered("Theorem", range(1, 8)),
        *numbered("Lemma", range(1, 8)),
        "Claim 1",
        "Assumption 1",
        *numbered("Figure", range(1, 3)),
    ],
    "Confidit (Crammer, Gentile 2013)": [
        *numbered("Figure", range(1, 9)),
        *numbered("Theorem", range(1, 3)),
        "Corollary 1",
        *numbered("Lemma", range(1, 12)),
        *numbered("Table", range(1, 7)),
    ],
    "Gaptron (van der Hoeven 2020)": [
        "Algorithm 1",
        "Lemma 1",
        *numbered("Theorem", range(1, 7)),
        *numbered("Table", range(1, 3)),
        "Figure 1",
        "Appendix E",
    ],
    # Its statements are numbered together.
    "FOLKLORE (Agarwal, Kale, Zimmert 2022)": [
        *numbered("Algorithm", range(1, 5)),
        *numbered("Lemma", [1, 6, 7, 8, *range(14, 20)]),
        *numbered("Theorem", [3, 4, 9, 13]),
        *numbered("Remark", [2, 5]),
        *numbered("Definition", [10, 11]),
        "Proposition 12",
        "Table 1",
        "Section 4.3",
        "Appendix D",
        "Appendix F",
    ],
}
"""Everything numbered in the texts of the papers, and what their text alone announces."""


def lines_of(title):
    """Return the lines of a paper's table: what is in the paper, and where it is here."""
    section = PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)
    assert rows[0] == ("in the paper", "here")
    assert len(rows) == section.count("\n|"), "every line of the table is read"
    return rows[2:]


@pytest.mark.parametrize("title", IN_THE_PAPERS)
def test_nothing_in_a_paper_is_without_a_line(title):
    found = [item for item, _ in lines_of(title)]
    assert sorted(found) == sorted(IN_THE_PAPERS[title])


def exists(name):
    """Return whether code or a command that the page names exists, parameters included."""
    if name.startswith("onebit lab run "):
        return name.removeprefix("onebit lab run ") in EXPERIMENTS
    called = re.fullmatch(r"(\w+)\((.*)\)", name)
    if called:
        learner = getattr(onebit, called[1])
        given = re.findall(r"(\w+)=([^,]+)", called[2])
        learner(**{key: eval(value) for key, value in given})._validate_params()
        return True
    first, *rest = name.split(".")
    found = bounds if first == "bounds" else getattr(onebit, first, None)
    if found is None:
        found = importlib.import_module(f"onebit.{first}")
    for part in rest:
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("title", IN_THE_PAPERS)
def test_every_line_names_what_exists_or_says_that_it_is_not_here(title):
    for item, where in lines_of(title):
        names = re.findall(r"`([^`]+)`", where)
        tests = named_on(where)
        code = [name for name in names if "::" not in name]
        assert names or where.startswith(("not here", "a step of")), item
        assert len(tests) + len(code) == len(names), item
        for name in code:
            assert exists(name), name
        for path, test in tests:
            assert f"def {test}(" in (ROOT / path).read_text(), test


def test_a_line_that_is_missing_or_names_nothing_is_found():
    with pytest.raises(ModuleNotFoundError):
        exists("bounds.no_such_bound")
    with pytest.raises(TypeError):
        exists("SOBA(no_such_parameter=1)")
    assert not exists("onebit lab run nothing")
