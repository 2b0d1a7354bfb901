"""Results in pages of the documentation."""

import re
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from onebit.lab.experiment import Finding, Section
from onebit.lab.experiments import EXPERIMENTS
from onebit.lab.pages import END, command_of, write_page

ABOUT = {"experiment": "drift", "scale": "full", "seeds": 2, "streams": ["a", "b"]}
ABOUT |= {"options": {"feedback": "late 100", "learner": "SOBA"}}

DOCS = Path(__file__).parents[2] / "docs"


def test_the_command_has_all_settings():
    assert command_of(ABOUT) == (
        'onebit lab run drift --scale full --feedback "late 100" --learner SOBA --streams a,b '
        "--seeds 2"
    )


def test_results_replace_those_of_the_same_command(tmp_path):
    page = tmp_path / "page.md"
    begin = f"<!-- Written from `{command_of(ABOUT)}`. -->\n"
    page.write_text(f"Before.\n{begin}previous results\n{END}After.\n")
    table = pd.DataFrame({"stream": ["a"], "error": [0.125], "none": [None]})
    sections = [
        Section("One", "Text.", tables={"t": table}, findings=[Finding("Claim.", True, "Seen.")]),
        Section("Two", "More.", {"fig": Figure()}, tables={"left out": table}, only=()),
        Section("Three", "Left out.", tables={"left out": table}, only=()),
    ]
    write_page(page, ABOUT, sections)
    write_page(page, ABOUT, sections)  # again
    text = page.read_text()
    assert text.startswith(f"Before.\n{begin}### One\n")
    assert text.endswith(f"{END}After.\n")
    assert "| a | 0.125 |  |\n\nClaim. It holds: Seen." in text
    assert text.count("| a |") == 1
    assert "previous results" not in text
    assert "Three" not in text
    assert "](pictures/drift-fig.png)" in text
    assert (tmp_path / "pictures" / "drift-fig.png").exists()
    with pytest.raises(ValueError, match="has no place for the results"):
        write_page(page, ABOUT | {"seeds": None}, sections)


def test_places_in_pages_are_of_experiments_that_can_be_run():
    text = (DOCS / "comparison.md").read_text()
    commands = re.findall(r"<!-- Written from `onebit lab run (\w+) (.*?)`. -->", text)
    assert {name for name, _ in commands} == {"bakeoff", "compare", "drift"}
    assert text.count(END) == len(commands) == 9
    for name, rest in commands:
        options = dict(re.findall(r'--(feedback) "(.*?)"', rest))
        EXPERIMENTS[name].with_options(**options)
        streams = re.findall(r"--streams (\S+)", rest)
        about = {"experiment": name, "scale": "full", "options": options, "seeds": None}
        about["streams"] = streams[0].split(",") if streams else []
        assert command_of(about) == f"onebit lab run {name} {rest}"
